//! The text beside a committed offset, which any client of the group may have written: sets of
//! Greenroom in both alphabets and both forms, with a checksum that is right, and those of the
//! parallel-consumer.

use std::ops::Range;

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use fuzz::fuzz;
use greenroom_bus::watermark::{Positions, Watermark};
use greenroom_kafka::commit_set::{
    Alphabet, Limit, Unreadable, decode, decode_parallel_consumer, encode, has_room,
};

/// Beside offset 0: runs and a bitmap of ours; then what others write.
const TEXTS: &[&[u8]] = &[
    "gEEfZOQNM-5qg".as_bytes(),
    "G\u{1023}\u{7e4e}\u{2869}\u{57b9}\u{5d00}".as_bytes(),
    "gEE9MLB4".as_bytes(),
    "bAAI5gA=".as_bytes(),
    "bwAAAAjm".as_bytes(),
    "bgABAAIAAgAD".as_bytes(),
    "ZQAAAAEAAAACAAAAAgAAAAM=".as_bytes(),
    "G\u{1027}\u{5b0b}\u{bc0}".as_bytes(),
    "{\"somebody\":\"else\"}".as_bytes(),
    "".as_bytes(),
];

/// Behind the head: a form and what it holds. Forms are drawn by the first byte.
const PAYLOADS: &[&[u8]] = &[
    // Runs: how many, and the coder's bytes.
    b"\x03\x5a\x21\x80\x44",
    b"\xff\xff\x3f\xff\xff\xff\xff\xff\xff\xff\xff",
    // A bitmap: how long, and its bits.
    b"\x08\xe6",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f\xe6",
    // Lengths and lengths of runs of two and of four bytes.
    b"\x00\x08\xe6\x00",
    b"\x00\x01\x00\x02\x00\x02\x00\x03",
    b"\x00\x00\x00\x01\x00\x00\x00\x02\x7f\xff\xff\xff\x7f\xff\xff\xff",
    // A frame of zstd: one raw block of three bytes; and one block that repeats a byte a million
    // times.
    b"\x28\xb5\x2f\xfd\x20\x03\x19\x00\x00\x00\x08\xe6",
    b"\x28\xb5\x2f\xfd\xa0\x00\x00\x10\x00\x02\x00\x10\xff\x03\x00\x10\xff",
];

const TOKENS: &[&str] = &[
    "G",
    "g",
    "\u{800}",
    "\u{87ff}",
    "\u{8800}",
    "\u{1f600}",
    "\0",
    "A",
    "==",
    "-_",
    "+/",
    "\u{7f}",
    "\u{1}",
    "\u{0}\u{1}",
    "\u{0}\u{0}\u{0}\u{1}",
    "(\u{b5}/",
];

const OFFSETS: [u64; 4] = [0, 100, 1 << 40, i64::MAX as u64];

/// Forms of ours: runs, a bitmap, and one that is not there yet.
const FORMS: [u8; 3] = [0x10, 0x11, 0x12];
/// Those of the parallel-consumer: bitmaps and runs, and both in zstd.
const MAGIC: &[u8] = b"lonasJep";

const WIDE: Limit = Limit { units: 4_096, alphabet: Alphabet::Wide };
const ASCII: Limit = Limit { units: 4_096, alphabet: Alphabet::Ascii };
const SHORT: Limit = Limit { units: 24, alphabet: Alphabet::Wide };

/// What is read is a set of offsets from there on, and is the same when it was written and read
/// again. `None` where it is refused, with a reason.
fn read(offset: u64, text: &str) -> Option<Positions> {
    checked(offset, text, decode(offset, text))
}

fn checked(offset: u64, text: &str, read: Result<Positions, Unreadable>) -> Option<Positions> {
    let positions = match read {
        Ok(positions) => positions,
        Err(why) => {
            assert!(!why.to_string().is_empty());
            return None;
        }
    };
    let (lowest, next) = (positions.lowest(), positions.next());
    assert!(offset <= lowest && lowest <= next && next <= i64::MAX as u64, "{text:?}");
    let mut watermark = Watermark::default();
    watermark.assign(&positions);
    let _ = watermark.receive(lowest);
    Some(positions)
}

/// What is written stays within its limit, is read again, and says no more than was said to it.
fn written(positions: &Positions) {
    for limit in [WIDE, ASCII, SHORT] {
        let encoded = encode(positions, limit);
        assert!(encoded.text.encode_utf16().count() <= limit.units, "{limit:?}");
        let again = read(positions.lowest(), &encoded.text).expect("what was written is read");
        assert!(again.next() <= positions.next());
        if encoded.is_whole {
            assert_eq!(done(&again), done(positions), "{limit:?}");
        } else {
            assert!(!has_room(positions, 0, limit), "{limit:?}: it was let in");
            assert!(done(positions).starts_with(&done(&again)), "{limit:?}");
        }
    }
}

fn done(positions: &Positions) -> Vec<Range<u64>> {
    positions.done().collect()
}

/// Beside an offset, with the checksum that it should have.
fn sealed(offset: u64, form: u8, payload: &[u8]) -> Vec<u8> {
    let zeros = payload.iter().rev().take_while(|byte| **byte == 0).count();
    let payload = &payload[..payload.len() - zeros];
    let offset = offset.to_le_bytes();
    let all = offset.iter().chain([&form]).chain(payload);
    let hash = all.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let sum = (hash ^ (hash >> 32)).to_le_bytes();
    let mut bytes = vec![form, sum[0], sum[1], sum[2]];
    bytes.extend(payload);
    bytes
}

fn ascii(bytes: &[u8]) -> String {
    format!("g{}", URL_SAFE_NO_PAD.encode(bytes))
}

/// 15 bits in each character from U+0800 on.
fn wide(bytes: &[u8]) -> String {
    let bit = |at: usize| bytes.get(at / 8).map_or(0, |byte| byte >> (7 - at % 8) & 1);
    let characters = (bytes.len() * 8).div_ceil(15);
    let value = |at: usize| (0..15).fold(0, |value, of| value << 1 | u32::from(bit(at * 15 + of)));
    let of = |at| char::from_u32(0x800 + value(at)).expect("it is no surrogate");
    std::iter::once('G').chain((0..characters).map(of)).collect()
}

#[test]
fn texts() {
    fuzz!(TEXTS, TOKENS, |input| {
        let text = String::from_utf8_lossy(input);
        for offset in OFFSETS {
            if let Some(positions) = read(offset, &text) {
                written(&positions);
            }
        }
    });
}

#[test]
fn sets_with_a_checksum_that_is_right() {
    fuzz!(PAYLOADS, TOKENS, |input| {
        let Some((drawn, payload)) = input.split_first() else { return };
        let offset = OFFSETS[usize::from(drawn >> 4) % OFFSETS.len()];
        let form = FORMS[usize::from(*drawn) % FORMS.len()];
        let bytes = sealed(offset, form, payload);
        let read = [ascii(&bytes), wide(&bytes)].map(|text| read(offset, &text));
        assert_eq!(read[0], read[1], "the alphabet changes nothing");
        if let Some(positions) = &read[0] {
            written(positions);
        }
    });
}

#[test]
fn sets_of_the_parallel_consumer() {
    fuzz!(PAYLOADS, TOKENS, |input| {
        for magic in MAGIC {
            let bytes = [&[*magic], input].concat();
            for offset in OFFSETS {
                let text = STANDARD.encode(&bytes);
                assert!(decode(offset, &text).is_err(), "it is read only where it is asked for");
                let read = decode_parallel_consumer(offset, &text);
                if let Some(positions) = checked(offset, &text, read) {
                    written(&positions);
                }
            }
        }
    });
}

/// Any set of offsets that a partition may have come to, from the lengths of its runs.
#[test]
fn sets_that_are_written() {
    fuzz!(PAYLOADS, TOKENS, |input| {
        let (mut at, mut open) = (OFFSETS[1], Vec::new());
        for run in input.chunks_exact(2).take(4_096) {
            // Long ones now and then.
            let [free, done] = [run[0], run[1]].map(|length| match length {
                240.. => 1 << (length - 230),
                length => 1 + u64::from(length % 16),
            });
            open.push(at..at + free);
            at += free + done;
        }
        written(&Positions::new(at, open).expect("in order"));
    });
}

#[test]
fn seeds_are_sets() {
    let read = |text: &&&[u8]| {
        let text = std::str::from_utf8(text).expect("it is text");
        decode(0, text).or_else(|_| decode_parallel_consumer(0, text)).is_ok()
    };
    let foreign: Vec<&&[u8]> = TEXTS.iter().filter(|text| !read(text)).collect();
    assert_eq!(foreign, [&b"{\"somebody\":\"else\"}".as_slice()]);
}
