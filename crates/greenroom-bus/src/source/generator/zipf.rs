//! Seeded chance, and Zipf's law in constant memory.

/// The generator SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators",
/// OOPSLA 2014). Fixed here, so that a seed makes the same events in every version.
#[derive(Debug, Clone)]
pub struct Chance {
    state: u64,
}

impl Chance {
    /// Chance from this seed on.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to, not including, 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// From 0 up to, not including, `end`.
    pub fn below(&mut self, end: usize) -> usize {
        ((self.unit() * end as f64) as usize).min(end.saturating_sub(1))
    }
}

/// Draws 1 to n with weights of `1 / k^exponent`, in constant memory and time:
/// rejection-inversion (Hörmann, Derflinger: "Rejection-inversion to generate variates from
/// monotone discrete distributions", ACM TOMACS 6.3, 1996). The names are the paper's: `h` is
/// the weight as a function of a real number, `H` its integral, and a drawn point of the
/// integral is inverted and rounded.
#[derive(Debug, Clone)]
pub struct Zipf {
    n: f64,
    exponent: f64,
    integral_first: f64,
    integral_last: f64,
    /// Within this distance of a whole number every point is accepted without computing a weight.
    shortcut: f64,
}

impl Zipf {
    /// Numbers from 1 to `n`, with this exponent; 0 makes them all alike.
    pub fn new(n: u32, exponent: f64) -> Self {
        let mut zipf =
            Self { n: n.into(), exponent, integral_first: 0.0, integral_last: 0.0, shortcut: 0.0 };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(zipf.n + 0.5);
        zipf.shortcut = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    /// The next number.
    pub fn draw(&self, chance: &mut Chance) -> u32 {
        loop {
            let span = self.integral_first - self.integral_last;
            let point = self.integral_last + chance.unit() * span;
            let x = self.inverse(point);
            let k = (x + 0.5).floor().clamp(1.0, self.n);
            if k - x <= self.shortcut || point >= self.integral(k + 0.5) - self.weight(k) {
                return k as u32;
            }
        }
    }

    fn weight(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        exp_minus_one_over((1.0 - self.exponent) * log) * log
    }

    fn inverse(&self, integral: f64) -> f64 {
        let t = (integral * (1.0 - self.exponent)).max(-1.0);
        (log_one_plus_over(t) * integral).exp()
    }
}

/// Below this the quotients are taken from their series: there they would divide zero by zero.
const NEAR_ZERO: f64 = 1e-8;

/// `(e^x - 1) / x`.
fn exp_minus_one_over(x: f64) -> f64 {
    if x.abs() > NEAR_ZERO { x.exp_m1() / x } else { 1.0 + x / 2.0 }
}

/// `ln(1 + x) / x`.
fn log_one_plus_over(x: f64) -> f64 {
    if x.abs() > NEAR_ZERO { x.ln_1p() / x } else { 1.0 - x / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b04_drawn_shares_follow_zipfs_law() {
        const DRAWS: u32 = 200_000;
        for exponent in [0.0, 0.5, 1.0, 1.5] {
            let (zipf, mut chance) = (Zipf::new(10, exponent), Chance::new(7));
            let mut counts = [0_u32; 10];
            (0..DRAWS).for_each(|_| counts[zipf.draw(&mut chance) as usize - 1] += 1);
            let total: f64 = (1..=10).map(|k| f64::from(k).powf(-exponent)).sum();
            for (at, count) in counts.into_iter().enumerate() {
                let share = (at as f64 + 1.0).powf(-exponent) / total;
                let drawn = f64::from(count) / f64::from(DRAWS);
                assert!(
                    (drawn - share).abs() < 0.005,
                    "s={exponent} k={}: {drawn} {share}",
                    at + 1
                );
            }
        }
    }

    #[test]
    fn b04_a_single_key_is_always_drawn() {
        let (zipf, mut chance) = (Zipf::new(1, 1.0), Chance::new(7));
        assert!((0..1000).all(|_| zipf.draw(&mut chance) == 1));
    }
}
