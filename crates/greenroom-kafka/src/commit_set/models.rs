//! Run lengths, coded by the statistics of earlier lengths.
//!
//! A length is written as how many bits it has, one by one, and then these bits from the top. The
//! first few of them are predicted each by those above it; the rest hardly can be.

use super::{
    range_coder::{Chance, Decoder, Encoder},
    runs::Run,
    varint,
};

/// A length of more bits is none.
const MOST_BITS: usize = 62;
/// This many bits below the top one are predicted by those above them.
const PREDICTED: usize = 3;

/// Statistics of the lengths of one kind, open or settled.
struct Lengths {
    /// Whether it has more than this many bits.
    longer: [Chance; MOST_BITS + 1],
    /// By its number of bits, and by the bits that were read.
    upper: Vec<[Chance; 1 << PREDICTED]>,
    /// By how many bits it has: all the others.
    lower: [Chance; MOST_BITS + 1],
}

impl Lengths {
    fn new() -> Self {
        Self {
            longer: [Chance::default(); MOST_BITS + 1],
            upper: vec![[Chance::default(); 1 << PREDICTED]; MOST_BITS + 1],
            lower: [Chance::default(); MOST_BITS + 1],
        }
    }

    /// The chance of the next bit of a length, given these bits and the number of bits below its
    /// top one.
    fn below(&mut self, bits: usize, known: u64, count_known: usize) -> &mut Chance {
        match count_known {
            predicted if predicted < PREDICTED => &mut self.upper[bits][known as usize],
            _ => &mut self.lower[bits],
        }
    }

    fn write(&mut self, length: u64, coder: &mut Encoder<'_>) {
        let bits = length.ilog2() as usize;
        for fewer in 0..bits {
            coder.bit(&mut self.longer[fewer], true);
        }
        if bits < MOST_BITS {
            coder.bit(&mut self.longer[bits], false);
        }
        for count_known in 0..bits {
            let at = bits - 1 - count_known;
            let bit = length >> at & 1 == 1;
            coder.bit(self.below(bits, length >> (at + 1), count_known), bit);
        }
    }

    fn read(&mut self, coder: &mut Decoder<'_>) -> u64 {
        let mut bits = 0;
        while bits < MOST_BITS && coder.bit(&mut self.longer[bits]) {
            bits += 1;
        }
        let mut length = 1;
        for count_known in 0..bits {
            length = length << 1 | u64::from(coder.bit(self.below(bits, length, count_known)));
        }
        length
    }
}

/// Of runs that are not empty.
pub(super) fn write(runs: &[Run], into: &mut Vec<u8>) {
    varint::write(runs.len() as u64, into);
    let (mut open, mut done) = (Lengths::new(), Lengths::new());
    let mut coder = Encoder::new(into);
    for run in runs {
        open.write(run.open, &mut coder);
        done.write(run.done, &mut coder);
    }
    coder.end();
}

/// `None` if it claims more runs than such a text can hold.
pub(super) fn read(bytes: &[u8], most_runs: u64) -> Option<Vec<Run>> {
    let (count, coded) = varint::read(bytes)?;
    if count > most_runs {
        return None;
    }
    let (mut open, mut done) = (Lengths::new(), Lengths::new());
    let mut coder = Decoder::new(coded);
    let run = |_| Run { open: open.read(&mut coder), done: done.read(&mut coder) };
    Some((0..count).map(run).collect())
}
