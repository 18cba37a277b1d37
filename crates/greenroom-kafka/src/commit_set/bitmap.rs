//! A set as a bit for each offset: the shortest where runs are short.

use super::{
    runs::{FromBits, Run, span},
    varint,
};

/// How many bytes it takes at least.
pub(super) fn least_bytes(runs: &[Run]) -> u64 {
    span(runs).div_ceil(8) + 1
}

pub(super) fn write(runs: &[Run], into: &mut Vec<u8>) {
    let span = span(runs);
    varint::write(span, into);
    let start = into.len();
    into.resize(start + span.div_ceil(8) as usize, 0);
    let mut at = 0;
    for run in runs {
        at += run.open;
        for bit in at..at + run.done {
            into[start + (bit / 8) as usize] |= 1 << (bit % 8);
        }
        at += run.done;
    }
}

/// Zeros at the end may be missing. `None` if it is longer than its header says.
pub(super) fn read(bytes: &[u8]) -> Option<Vec<Run>> {
    let (span, bits) = varint::read(bytes)?;
    if bits.len() as u64 > span.div_ceil(8) {
        return None;
    }
    let mut runs = FromBits::default();
    for bit in 0..span.min(bits.len() as u64 * 8) {
        runs.push(bits[(bit / 8) as usize] >> (bit % 8) & 1 == 1, 1);
    }
    Some(runs.end())
}
