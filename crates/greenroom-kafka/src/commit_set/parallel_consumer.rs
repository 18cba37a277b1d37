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

/// More bytes than any of its sets has. What claims to unpack to more is no set.
const MOST_UNPACKED: u64 = 1 << 20;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

pub(super) fn decode(offset: u64, text: &str) -> Result<Positions, Unreadable> {
    let foreign = || Unreadable("another program has written it".to_owned());
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
        Unreadable("it begins as a set of parallel-consumer, and is damaged".to_owned())
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
    let mut runs = FromBits::default();
    for bit in 0..length.min(bits.len() as u64 * 8) {
        runs.push(bits[(bit / 8) as usize] >> (bit % 8) & 1 == 1, 1);
    }
    Some(runs.end())
}

fn run_lengths<const WIDTH: usize>(bytes: &[u8]) -> Option<Vec<Run>> {
    let mut runs = FromBits::default();
    // What is left at the end, of fewer bytes than a number, is not looked at there either.
    for (at, length) in bytes.chunks_exact(WIDTH).enumerate() {
        runs.push(at % 2 == 1, number(length)?);
    }
    Some(runs.end())
}
