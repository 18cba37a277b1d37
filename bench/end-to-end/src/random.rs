//! Numbers that are the same in each run (xorshift64: Marsaglia, "Xorshift RNGs", 2003).

pub struct Random(u64);

impl Random {
    pub fn new() -> Self {
        Self(0x9E37_79B9_7F4A_7C15)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
