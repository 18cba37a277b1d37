//! Sets against a reference, the entropy bound, damage, and the texts of others.

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::STANDARD};
use greenroom_bus::watermark::Positions;
use proptest::prelude::*;

use super::{Alphabet, Encoded, Limit, decode, decode_parallel_consumer, encode, has_room};

const WIDE: Limit = Limit { units: 4_096, alphabet: Alphabet::Wide };
const ASCII: Limit = Limit { units: 4_096, alphabet: Alphabet::Ascii };

fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Everything from `lowest` below `next` that is not in here is done.
fn positions(next: u64, open: &BTreeSet<u64>) -> Positions {
    Positions::new(next, open.iter().map(|at| *at..at + 1)).unwrap()
}

/// What is done from `lowest` on, one by one.
fn done(positions: &Positions) -> BTreeSet<u64> {
    positions.done().flatten().collect()
}

fn log2_choose(n: u64, k: u64) -> f64 {
    (0..k).map(|i| ((n - i) as f64).log2() - ((i + 1) as f64).log2()).sum()
}

/// A sequence that looks random and is always the same.
fn random(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// As far as this, an offset is open with this likelihood; the lowest one is.
fn random_set(seed: u64, span: u64, open: f64) -> Positions {
    let mut random = random(seed);
    let lowest = 1_000_000;
    let mut set: BTreeSet<u64> = (lowest..lowest + span).filter(|_| random() < open).collect();
    set.insert(lowest);
    set.remove(&(lowest + span - 1));
    positions(lowest + span, &set)
}

/// Mostly short, as runs are.
fn run_length() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 1_u64..400, 1 => 400_u64..100_000]
}

proptest! {
    #[test]
    fn f01_what_is_read_is_what_was_written(
        lowest in prop_oneof![0_u64..300, Just(u64::from(u32::MAX)), Just((1 << 62) - 100_000)],
        lengths in prop::collection::vec((run_length(), run_length()), 0..300),
        wide in any::<bool>(),
        tail in 0_u64..3,
    ) {
        let (mut at, mut open) = (lowest, Vec::new());
        for (opens, dones) in &lengths {
            open.push(at..at + opens);
            at += opens + dones;
        }
        open.extend((tail > 0).then_some(at..at + tail));
        let positions = Positions::new(at + tail, open).unwrap();
        let encoded = encode(&positions, if wide { WIDE } else { ASCII });
        prop_assert!(encoded.is_whole && units(&encoded.text) <= 4_096);
        prop_assert!(!encoded.text.contains('\0'));
        let read = decode(positions.lowest(), &encoded.text).unwrap();
        prop_assert_eq!(read.lowest(), positions.lowest());
        prop_assert!(read.done().eq(positions.done()));
    }

    /// Where not all fits, what does is true, and begins at the lowest.
    #[test]
    fn f01_what_does_not_fit_is_left_out_from_the_far_end(
        lengths in prop::collection::vec((1_u64..40, 1_u64..40), 1..200),
        limit in 0_usize..100,
        wide in any::<bool>(),
    ) {
        let alphabet = if wide { Alphabet::Wide } else { Alphabet::Ascii };
        let (mut at, mut open) = (7, BTreeSet::new());
        for (opens, dones) in &lengths {
            open.extend(at..at + opens);
            at += opens + dones;
        }
        let positions = positions(at, &open);
        let Encoded { text, is_whole } = encode(&positions, Limit { units: limit, alphabet });
        prop_assert!(units(&text) <= limit);
        let read = decode(7, &text).unwrap();
        let (all, kept) = (done(&positions), done(&read));
        prop_assert_eq!(is_whole, kept == all);
        prop_assert!(all.iter().take(kept.len()).eq(kept.iter()), "{:?} of {:?}", kept, all);
    }

    /// Whatever stands there: no panic, no endless work, and nothing below the offset.
    #[test]
    fn f03_no_text_breaks_the_reader(
        text in ".{0,60}", bytes in prop::collection::vec(any::<u8>(), 0..80), magic in 0_usize..10,
        offset in prop_oneof![Just(0_u64), Just(i64::MAX as u64), any::<u64>()],
    ) {
        let mut magical = vec![b"LlanJosepx"[magic]];
        magical.extend(&bytes);
        let mut wide = "G".to_owned();
        Alphabet::Wide.write(&bytes, &mut wide);
        let mut ascii = "g".to_owned();
        Alphabet::Ascii.write(&bytes, &mut ascii);
        for text in [text, STANDARD.encode(&magical), wide, ascii] {
            if let Ok(read) = decode(offset, &text) {
                prop_assert!(read.lowest() >= offset && read.next() >= offset);
            }
        }
    }

    #[test]
    fn f03_a_changed_character_or_offset_is_found(
        at in 0_usize..1_000, by in 1_u32..0x7fff, other in 1_u64..1_000,
    ) {
        let positions = random_set(3, 5_000, 0.2);
        let text = encode(&positions, WIDE).text;
        let mut changed: Vec<char> = text.chars().collect();
        let at = 1 + at % (changed.len() - 1);
        let value = (u32::from(changed[at]) - 0x800 + by) % 0x8000;
        changed[at] = char::from_u32(0x800 + value).unwrap();
        let changed: String = changed.into_iter().collect();
        // 24 bits of checksum: the last character holds padding, which is not read.
        if let Ok(read) = decode(positions.lowest(), &changed) {
            prop_assert_eq!(read, positions.clone());
        }
        prop_assert!(decode(positions.lowest() + other, &text).is_err());
    }
}

/// Intake stops exactly when it would no longer fit: what was let in before fits, in whatever order
/// it is done.
#[test]
fn f01_what_is_let_in_fits_in_whatever_order_it_is_done() {
    for (seed, span, open, more, units) in [
        (1, 30_000, 0.05, 6_000, 4_096),
        (2, 400_000, 0.004, 3_000, 4_096),
        (3, 90_000, 0.02, 256, 1_000),
        (4, 2_000, 0.9, 4_000, 300),
        (5, 100_000, 0.001, 9_000, 800),
    ] {
        let limit = Limit { units, alphabet: Alphabet::Wide };
        let before = random_set(seed, span, open);
        let mut most = (0, more);
        while most.1 - most.0 > 1 {
            let middle = (most.0 + most.1) / 2;
            most =
                if has_room(&before, middle, limit) { (middle, most.1) } else { (most.0, middle) };
        }
        let mut chance = random(seed + 100);
        for likely in [0.05, 0.3, 0.5, 0.7, 0.95] {
            let open: BTreeSet<u64> = before
                .open()
                .iter()
                .cloned()
                .flatten()
                .chain(before.next()..before.next() + most.0)
                .filter(|at| *at == before.lowest() || chance() < likely)
                .collect();
            let after = positions(before.next() + most.0, &open);
            assert!(encode(&after, limit).is_whole, "seed {seed}, {likely}, {} more", most.0);
        }
    }
}

#[test]
fn f01_random_sets_cost_little_more_than_their_entropy() {
    for (span, open) in [
        (60_000, 0.5),
        (60_000, 0.1),
        (60_000, 0.01),
        (200_000, 0.02),
        (1_000_000, 0.001),
        (10_000, 0.9),
        (3_000, 0.3),
        (500_000, 0.000_1),
    ] {
        let positions = random_set(11, span, open);
        let count_open = positions.count_open();
        let bound = log2_choose(span, count_open) / 8.0;
        let limit = Limit { units: 100_000, alphabet: Alphabet::Wide };
        let text = encode(&positions, limit).text;
        let bytes = (units(&text) - 1) as f64 * 15.0 / 8.0;
        assert!(
            bytes <= bound * 1.04 + 40.0,
            "{span} offsets, {count_open} open: {bytes:.0} bytes, and the bound is {bound:.0}"
        );
        assert_eq!(done(&decode(positions.lowest(), &text).unwrap()), done(&positions));
    }
}

#[test]
fn f01_sixty_thousand_offsets_fit_whatever_is_open_of_them() {
    for seed in 0..3 {
        let positions = random_set(seed, 61_000, 0.5);
        assert!(encode(&positions, WIDE).is_whole, "seed {seed}");
    }
    let mut alternating: BTreeSet<u64> = (0..61_000).step_by(2).collect();
    alternating.insert(0);
    assert!(encode(&positions(61_000, &alternating), WIDE).is_whole);
    assert!(!encode(&random_set(1, 70_000, 0.5), WIDE).is_whole);
}

#[test]
fn z01_one_stuck_event_costs_a_dozen_characters() {
    let positions = Positions::new(200_000, std::iter::once(100_000..100_001)).unwrap();
    let encoded = encode(&positions, ASCII);
    assert!(encoded.is_whole && units(&encoded.text) <= 16, "{encoded:?}");
}

#[test]
fn f12_a_text_has_no_more_utf16_units_than_the_limit_and_only_characters_that_every_broker_keeps() {
    let positions = random_set(5, 90_000, 0.5);
    for units_allowed in [1, 2, 10, 1_000, 4_096] {
        let encoded = encode(&positions, Limit { units: units_allowed, alphabet: Alphabet::Wide });
        assert!(units(&encoded.text) <= units_allowed);
        let is_plain = |c: char| c == 'G' || (0x800..0x8800).contains(&u32::from(c));
        assert!(encoded.text.chars().all(is_plain));
    }
    let full = encode(&positions, WIDE).text;
    assert!(units(&full) > 4_080, "{}", units(&full));
    let ascii = encode(&positions, ASCII).text;
    assert!(ascii.is_ascii() && ascii.len() > 4_080);
}

#[test]
fn f12_a_trailing_nul_is_borne() {
    let positions = random_set(9, 300, 0.3);
    let text = encode(&positions, WIDE).text + "\0";
    assert_eq!(done(&decode(positions.lowest(), &text).unwrap()), done(&positions));
    assert_eq!(decode(5, "\0").unwrap(), Positions::starting_at(5));
}

#[test]
fn f03_a_text_of_somebody_else_is_refused() {
    for text in ["hello", "{}", "AAAAAA==", "AgAAAA==", "G", "g", "Gx", "Ghello", "日本", "7g=="]
    {
        assert!(decode(5, text).is_err(), "{text}");
    }
}

/// Written by hand from the published description of the format.
#[test]
fn f03_the_sets_of_the_parallel_consumer_are_read() {
    // From 100 on: open 100, done 101 and 102, open 103 and 104, done 105 to 107.
    let expected = Positions::new(108, [100..101, 103..105]).unwrap();
    let bits = 0b1110_0110;
    let read = |bytes: &[u8]| decode_parallel_consumer(100, &STANDARD.encode(bytes)).unwrap();
    assert_eq!(read(&[b'l', 0, 8, bits, 0]), expected);
    assert_eq!(read(&[b'o', 0, 0, 0, 8, bits]), expected);
    assert_eq!(read(&[b'n', 0, 1, 0, 2, 0, 2, 0, 3]), expected);
    assert_eq!(read(&[b'e', 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3]), expected);
    // What is open at the end was seen, and is as good as not seen.
    assert_eq!(read(&[b'l', 0, 20, bits, 0, 0]), expected);
    // A first run of length 0: the committed offset itself is done.
    assert_eq!(read(&[b'n', 0, 0, 0, 4]), Positions::starting_at(104));
    // A zstd frame with one raw block.
    let framed = |payload: &[u8]| {
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x20, payload.len() as u8];
        let head = (payload.len() as u32) << 3 | 1;
        frame.extend(&head.to_le_bytes()[..3]);
        frame.extend(payload);
        frame
    };
    for (magic, payload) in [
        (b'a', vec![0, 8, bits]),
        (b's', vec![0, 0, 0, 8, bits]),
        (b'J', vec![0, 1, 0, 2, 0, 2, 0, 3]),
        (b'p', vec![0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3]),
    ] {
        let mut bytes = vec![magic];
        bytes.extend(framed(&payload));
        assert_eq!(read(&bytes), expected, "{}", char::from(magic));
    }
}

#[test]
fn f03_a_damaged_set_of_the_parallel_consumer_is_refused() {
    for bytes in [
        &[b'l'][..],
        &[b'l', 0],
        &[b'l', 0xff, 0xff, 1],
        &[b'n', 0x80, 0, 0, 1],
        &[b'a', 1, 2, 3],
        // Too few bits, too many, and one that is set beyond the last.
        &[b'l', 0, 20, 1, 1],
        &[b'l', 0, 8, 1, 0, 0],
        &[b'l', 0, 7, 0x80],
        // Half a number, and a run of nothing.
        &[b'n', 0, 1, 0],
        &[b'n', 0, 1, 0, 0, 0, 1],
    ] {
        assert!(decode_parallel_consumer(100, &STANDARD.encode(bytes)).is_err(), "{bytes:?}");
    }
}

/// The first claims 28,519 bits and has 160: 74 of 500 events were never handled.
#[test]
fn f03_the_base64_of_other_programs_is_no_set_of_the_parallel_consumer() {
    for words in
        ["log processor of team a", "owned by team b", "last seen: never", "offsets", "latest"]
    {
        let text = STANDARD.encode(words);
        assert!(decode(100, &text).is_err(), "{words}");
        assert!(decode_parallel_consumer(100, &text).is_err(), "{words}");
    }
}

/// The first byte of the coder is 0xff where the first run is long, which was taken for 0: what was
/// open was read as done.
#[test]
fn f01_a_set_that_begins_with_a_long_open_run_is_read_as_it_was_written() {
    for open in (1..2_000).chain([1 << 20, 1 << 40]) {
        for done in [1, 5, 8_576, 1 << 21] {
            let positions = Positions::new(open + done, std::iter::once(0..open)).unwrap();
            for limit in [WIDE, ASCII] {
                let text = encode(&positions, limit).text;
                assert_eq!(decode(0, &text).as_ref(), Ok(&positions), "{open} open, {done} done");
            }
        }
    }
}
