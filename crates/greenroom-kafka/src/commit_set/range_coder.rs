//! An adaptive binary range coder: the price of a bit depends on how unexpected it is.
//!
//! The encoder keeps an interval of 32 bits, which each bit narrows in proportion to how likely it
//! was. Its top byte is written once it is certain; a carry may still run through bytes that are
//! 0xff, so these are counted and held back. The method is Martin's of 1979, with probabilities
//! that adapt.

/// A probability has this many bits.
const PRECISION: u32 = 16;
/// Below this, the top byte of the interval is certain.
const NARROW: u32 = 1 << 24;
/// How quickly a probability adapts, at first and later on: by halves, quarters, and so on down to
/// this power of two.
const SLOWEST: u32 = 7;

/// How likely the next bit of its kind is 0.
#[derive(Clone, Copy)]
pub(super) struct Chance {
    zero: u32,
    /// How many bits it has seen, up to a number beyond which it no longer matters.
    seen: u32,
}

impl Default for Chance {
    fn default() -> Self {
        Self { zero: 1 << (PRECISION - 1), seen: 0 }
    }
}

impl Chance {
    /// The part of an interval that encodes 0: neither nothing nor all.
    fn part_of(self, range: u32) -> u32 {
        (range >> PRECISION) * self.zero
    }

    /// Like a count of all earlier bits at first, and later like an average over the last ones.
    fn learn(&mut self, bit: bool) {
        let wanted = if bit { 0 } else { (1_i64 << PRECISION) - 1 };
        let slowness = i64::from(self.seen) + 2;
        let most = 1_i64 << SLOWEST;
        let step = (wanted - i64::from(self.zero)) / slowness.min(most);
        let zero = i64::from(self.zero) + step;
        self.zero = zero.clamp(64, (1 << PRECISION) - 64) as u32;
        self.seen = (self.seen + 1).min(1 << SLOWEST);
    }
}

pub(super) struct Encoder<'a> {
    into: &'a mut Vec<u8>,
    low: u64,
    range: u32,
    /// The last byte that is certain but for a carry.
    held: u8,
    /// That byte, and this many 0xff after it; at first there is none.
    count_held: u64,
}

impl<'a> Encoder<'a> {
    pub(super) fn new(into: &'a mut Vec<u8>) -> Self {
        Self { into, low: 0, range: u32::MAX, held: 0, count_held: 0 }
    }

    pub(super) fn bit(&mut self, chance: &mut Chance, bit: bool) {
        let zero = chance.part_of(self.range);
        if bit {
            self.low += u64::from(zero);
            self.range -= zero;
        } else {
            self.range = zero;
        }
        chance.learn(bit);
        while self.range < NARROW {
            self.range <<= 8;
            self.shift();
        }
    }

    fn shift(&mut self) {
        let carry = (self.low >> 32) as u8;
        let top = (self.low >> 24) as u8;
        // The first byte is held whatever it is: there is none before it to carry into.
        if carry == 1 || top != 0xff || self.count_held == 0 {
            if self.count_held > 0 {
                self.into.push(self.held.wrapping_add(carry));
                for _ in 1..self.count_held {
                    self.into.push(0xff_u8.wrapping_add(carry));
                }
            }
            self.held = top;
            self.count_held = 0;
        }
        self.count_held += 1;
        self.low = (self.low & 0x00ff_ffff) << 8;
    }

    /// Writes the number in the interval that ends with the most zeros: a reader beyond the
    /// end reads zeros.
    pub(super) fn end(mut self) {
        let last = self.low + u64::from(self.range) - 1;
        for zeros in (0..=32).rev() {
            let rounded = last >> zeros << zeros;
            if rounded >= self.low {
                self.low = rounded;
                break;
            }
        }
        for _ in 0..5 {
            self.shift();
        }
    }
}

pub(super) struct Decoder<'a> {
    from: std::slice::Iter<'a, u8>,
    value: u32,
    range: u32,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(from: &'a [u8]) -> Self {
        let mut decoder = Self { from: from.iter(), value: 0, range: u32::MAX };
        for _ in 0..4 {
            decoder.shift();
        }
        decoder
    }

    fn shift(&mut self) {
        let next = self.from.next().copied().unwrap_or(0);
        self.value = (self.value << 8) | u32::from(next);
    }

    pub(super) fn bit(&mut self, chance: &mut Chance) -> bool {
        let zero = chance.part_of(self.range);
        let bit = self.value >= zero;
        if bit {
            self.value -= zero;
            self.range -= zero;
        } else {
            self.range = zero;
        }
        chance.learn(bit);
        while self.range < NARROW {
            self.range <<= 8;
            self.shift();
        }
        bit
    }
}
