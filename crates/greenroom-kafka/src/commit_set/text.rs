//! The text of a commit: whose it is, how it is written, and whether it is whole.

use greenroom_bus::watermark::Positions;

use super::{
    alphabet::Alphabet,
    bitmap, models,
    runs::{self, Run},
    unreadable::Unreadable,
};

/// The first character of a text of ours in each alphabet. No text of the parallel-consumer begins
/// with one of these.
const WIDE: char = 'G';
const ASCII: char = 'g';

/// How the bytes behind the head are to be read. The upper half is a version.
const RUNS: u8 = 0x10;
const BITMAP: u8 = 0x11;

/// The form, and 24 bits of checksum.
const HEAD: usize = 4;

/// Bits that the coder may lose until it knows lengths that it has not seen before.
const LEARNING: u64 = 800;

/// More runs than any text can hold: a run takes more than a hundredth of a bit, and no broker is
/// known to take a megabyte.
const MOST_RUNS: u64 = 1 << 20;

/// A broker's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// UTF-16 code units: `offset.metadata.max.bytes` of the broker, 4,096 by default.
    pub units: usize,
    /// The characters that it takes.
    pub alphabet: Alphabet,
}

/// A set as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// Empty if nothing is done beyond the lowest open offset, or where no set fits.
    pub text: String,
    /// False if the highest settled offsets are left out because the whole does not fit: after a
    /// crash, they are delivered again.
    pub is_whole: bool,
}

/// The densest text for the settled positions beyond the lowest open one, within a limit. It is to
/// be committed next to that position, [`Positions::lowest`].
///
/// Takes time for each open range: some 50 ns.
pub fn encode(positions: &Positions, limit: Limit) -> Encoded {
    let runs = runs::from_positions(positions);
    if runs.is_empty() {
        return Encoded { text: String::new(), is_whole: true };
    }
    let capacity = limit.alphabet.capacity(limit.units.saturating_sub(1));
    let offset = positions.lowest();
    let fits = |count: usize| bytes(offset, &runs[..count], capacity);
    if let Some(bytes) = fits(runs.len()) {
        return Encoded { text: text(&bytes, limit.alphabet), is_whole: true };
    }
    // As many of the lowest runs as fit.
    let (mut fitting, mut count, mut beyond) = (None, 0, runs.len());
    while beyond - count > 1 {
        let middle = count + (beyond - count) / 2;
        match fits(middle) {
            Some(bytes) => (fitting, count) = (Some(bytes), middle),
            None => beyond = middle,
        }
    }
    let text = fitting.map(|bytes| text(&bytes, limit.alphabet));
    Encoded { text: text.unwrap_or_default(), is_whole: false }
}

/// Whether the set will fit completely, in whatever order the open offsets are settled, together
/// with this many more offsets still to come.
///
/// Each of them adds at most one bit, as it would in a bitmap: whatever the order, the settled ones
/// form one subset. The coder takes some more, which is allowed for.
pub fn has_room(positions: &Positions, more: u64, limit: Limit) -> bool {
    let capacity = capacity_bits(limit);
    // Either a bitmap of all of them fits, or the coded set.
    bitmap_bits(positions) + more <= capacity || coded_bits(positions, more) <= capacity
}

/// How much of the room is taken: 1 and more where nothing else is [let in](has_room).
pub fn used(positions: &Positions, limit: Limit) -> f64 {
    let bits = bitmap_bits(positions).min(coded_bits(positions, 0));
    bits as f64 / capacity_bits(limit).max(1) as f64
}

fn capacity_bits(limit: Limit) -> u64 {
    limit.alphabet.capacity(limit.units.saturating_sub(1)) as u64 * 8
}

fn bitmap_bits(positions: &Positions) -> u64 {
    positions.next() - positions.lowest() + (HEAD as u64 + 10) * 8
}

/// The coded size once all open offsets and this many more are settled, in the order with the
/// longest code.
fn coded_bits(positions: &Positions, more: u64) -> u64 {
    let runs = runs::from_positions(positions);
    let coded = shorter(positions.lowest(), &runs).len() as u64 * 8;
    let open = positions.count_open() + more;
    coded + open + open / 16 + LEARNING
}

fn text(bytes: &[u8], alphabet: Alphabet) -> String {
    let mut text = String::with_capacity(bytes.len() * 2 + 4);
    text.push(if alphabet == Alphabet::Wide { WIDE } else { ASCII });
    alphabet.write(bytes, &mut text);
    text
}

/// The shorter of two forms. `None` if that is too long.
fn bytes(offset: u64, runs: &[Run], capacity: usize) -> Option<Vec<u8>> {
    Some(shorter(offset, runs)).filter(|bytes| bytes.len() <= capacity)
}

fn shorter(offset: u64, runs: &[Run]) -> Vec<u8> {
    let coded = form(offset, RUNS, |into| models::write(runs, into));
    match bitmap::least_bytes(runs) + HEAD as u64 {
        longer if longer > coded.len() as u64 => coded,
        _ => form(offset, BITMAP, |into| bitmap::write(runs, into)),
    }
}

/// Zeros at the end are left out: a reader beyond the end reads zeros.
fn form(offset: u64, form: u8, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = vec![form, 0, 0, 0];
    write(&mut bytes);
    strip(&mut bytes);
    let check = check(offset, form, &bytes[HEAD..]);
    bytes[1..HEAD].copy_from_slice(&check);
    bytes
}

fn strip(bytes: &mut Vec<u8>) {
    let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
    bytes.truncate((bytes.len() - zeros).max(HEAD));
}

/// FNV-1a, cut to 24 bits.
fn check(offset: u64, form: u8, payload: &[u8]) -> [u8; 3] {
    let offset = offset.to_le_bytes();
    let all = offset.iter().chain([&form]).chain(payload);
    let hash = all.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let [a, b, c, ..] = (hash ^ (hash >> 32)).to_le_bytes();
    [a, b, c]
}

/// The settled positions in the text next to a committed offset, from which an assignment starts.
/// If the text is empty, none beyond the offset is settled.
///
/// # Errors
/// Why the text is not to be trusted. The offset alone counts then.
pub fn decode(offset: u64, text: &str) -> Result<Positions, Unreadable> {
    // Some clients append a NUL.
    let text = text.trim_end_matches('\0');
    let (alphabet, coded) = match text.chars().next() {
        None => return Ok(Positions::starting_at(offset)),
        Some(WIDE) => (Alphabet::Wide, &text[1..]),
        Some(ASCII) => (Alphabet::Ascii, &text[1..]),
        Some(_) => {
            let why = "another program has written it; a set of parallel-consumer is read with \
                       `from: parallel-consumer`, when a group starts here for the first time";
            return Err(Unreadable(why.to_owned()));
        }
    };
    let damaged = || Unreadable("it begins as a set of Greenroom, and is damaged".to_owned());
    let mut bytes = alphabet.read(coded).filter(|bytes| bytes.len() >= HEAD).ok_or_else(damaged)?;
    strip(&mut bytes);
    let (head, payload) = bytes.split_at(HEAD);
    if head[1..] != check(offset, head[0], payload) {
        let why = "it is a set of Greenroom that is damaged, or of another offset";
        return Err(Unreadable(why.to_owned()));
    }
    let runs = match head[0] {
        RUNS => models::read(payload, MOST_RUNS),
        BITMAP => bitmap::read(payload),
        form => {
            let why = format!("it is a set of a newer Greenroom (form {form})");
            return Err(Unreadable(why));
        }
    };
    runs.and_then(|runs| runs::positions(offset, runs)).ok_or_else(damaged)
}
