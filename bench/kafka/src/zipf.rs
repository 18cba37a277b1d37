//! Keys of which few are hot and most are cold.

use crate::random::Random;

/// The key of rank n (from 1) is drawn in proportion to 1/n.
pub struct Zipf {
    /// How likely a key is of this rank or of a lower one.
    up_to: Vec<f64>,
}

impl Zipf {
    pub fn new(keys: usize) -> Self {
        let mut sum = 0.0;
        let mut up_to: Vec<f64> = (1..=keys)
            .map(|rank| {
                sum += 1.0 / rank as f64;
                sum
            })
            .collect();
        up_to.iter_mut().for_each(|of| *of /= sum);
        Self { up_to }
    }

    pub fn draw(&self, random: &mut Random) -> usize {
        let at = random.even();
        self.up_to.partition_point(|of| *of <= at).min(self.up_to.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_key_is_drawn_twice_as_often_as_the_second() {
        let (zipf, mut random) = (Zipf::new(1_000), Random::new(7));
        let mut drawn = vec![0_u32; 1_000];
        (0..1_000_000).for_each(|_| drawn[zipf.draw(&mut random)] += 1);
        let ratio = f64::from(drawn[0]) / f64::from(drawn[1]);
        assert!((1.9..2.1).contains(&ratio), "{ratio}");
        // 1 / (1 + 1/2 + .. + 1/1000)
        assert!((131_000..136_000).contains(&drawn[0]), "{}", drawn[0]);
    }
}
