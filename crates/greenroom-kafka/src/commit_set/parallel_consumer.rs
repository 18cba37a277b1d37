//! The texts of Confluent's parallel-consumer, which is retired: its users move without a replay
//! (F03).
//!
//! Its texts are base64 of a byte that names the form, and the form: the length and a bitmap (the
//! lowest bit first, a set bit is done), or run lengths in turn, open ones first. Numbers are
//! signed and big-endian, of two bytes in the first version and of four in the second. Each form
//! may be compressed with zstd. All count from the committed offset.

use std::io::Read;

use base64::{
    Engine,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use greenroom_bus::watermark::Positions;

use super::{
    runs::{self, FromBits, Run},
    unreadable::Unreadable,
};

/// More bytes than any of its sets has. A text that claims to unpack to more is not a set.
const MOST_UNPACKED: u64 = 1 << 20;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The settled positions in a text of Confluent's parallel-consumer, next to a committed offset.
///
/// The texts of that program have no checksum, and say nowhere whose they are: other base64 may
/// look like one. So ask this only of a group that is known to have been its own.
///
/// # Errors
/// It is no such text, or its length and its content disagree.
pub fn decode_parallel_consumer(offset: u64, text: &str) -> Result<Positions, Unreadable> {
    let foreign = || Unreadable("it is no set of parallel-consumer".to_owned());
    let bytes = BASE64.decode(text).map_err(|_| foreign())?;
    let (magic, packed) = bytes.split_first().ok_or_else(foreign)?;
    let runs = match magic {
        b'l' => bitmap::<2>(packed),
        b'o' => bitmap::<4>(packed),
        b'n' => run_lengths::<2>(packed),
        b'e' => run_lengths::<4>(packed),
        b'a' => unpack(packed).and_then(|bytes| bitmap::<2>(&bytes)),
        b's' => unpack(packed).and_then(|bytes| bitmap::<4>(&bytes)),
        b'J' => unpack(packed).and_then(|bytes| run_lengths::<2>(&bytes)),
        b'p' => unpack(packed).and_then(|bytes| run_lengths::<4>(&bytes)),
        _ => return Err(foreign()),
    };
    runs.and_then(|runs| runs::positions(offset, runs)).ok_or_else(|| {
        let why = "it begins as a set of parallel-consumer, and its length and content disagree";
        Unreadable(why.to_owned())
    })
}

fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    let unpacked = ruzstd::decoding::StreamingDecoder::new(packed).ok()?;
    let mut bytes = Vec::new();
    unpacked.take(MOST_UNPACKED + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= MOST_UNPACKED).then_some(bytes)
}

/// A number of two or four bytes that is not negative.
fn number(bytes: &[u8]) -> Option<u64> {
    let first = *bytes.first()?;
    (first < 0x80).then(|| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn bitmap<const WIDTH: usize>(bytes: &[u8]) -> Option<Vec<Run>> {
    let (length, bits) = bytes.split_at_checked(WIDTH)?;
    let length = number(length)?;
    // Its versions write a byte more than the bits need, or none.
    let spare = (bits.len() as u64).checked_sub(length.div_ceil(8))?;
    let is_done = |bit: u64| bits[(bit / 8) as usize] >> (bit % 8) & 1 == 1;
    if spare > 1 || (length..bits.len() as u64 * 8).any(is_done) {
        return None;
    }
    let mut runs = FromBits::default();
    (0..length).for_each(|bit| runs.push(is_done(bit), 1));
    Some(runs.end())
}

fn run_lengths<const WIDTH: usize>(bytes: &[u8]) -> Option<Vec<Run>> {
    let lengths = bytes.chunks_exact(WIDTH);
    if !lengths.remainder().is_empty() {
        return None;
    }
    let mut runs = FromBits::default();
    for (at, length) in lengths.enumerate() {
        // Only the first may be of nothing, where the lowest offset is done.
        let length = number(length).filter(|length| *length > 0 || at == 0)?;
        runs.push(at % 2 == 1, length);
    }
    Some(runs.end())
}
