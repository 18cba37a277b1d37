//! Inputs that are nearly right, and how long to try them.
//!
//! Random bytes do not get past the first character of most parsers. So each target begins with
//! texts that are right (its seeds) and with words that mean something in its format (its tokens),
//! and changes them as a bad network, a half-written file or an attacker would. bolero draws the
//! changes, repeats and shrinks what fails, and hands the same targets to a fuzzer that watches
//! coverage where one is installed.

use std::{env, fs, ops::Bound, time::Duration};

use bolero::{Driver, ValueGenerator};

/// Seconds for each target where [`SECONDS`] does not say.
const DEFAULT_SECONDS: f64 = 1.0;

/// The variable of the environment with the seconds for each target.
const SECONDS: &str = "GREENROOM_FUZZ_SECONDS";

/// The variable with the name of a file that holds the input at hand. For one target at a time.
const KEEP: &str = "GREENROOM_FUZZ_KEEP";

/// At most so many changes are made to one seed.
const MOST_CHANGES: usize = 8;

/// A piece is repeated so often at most: enough to overflow the stack of a parser that recurses.
const MOST_REPEATS: usize = 20_000;

/// An input does not grow beyond this, in bytes.
const LONGEST: usize = 256 * 1024;

/// How long one target runs.
pub fn time_per_target() -> Duration {
    let seconds = env::var(SECONDS).ok().map(|text| {
        text.parse().unwrap_or_else(|_| panic!("{SECONDS} must be a number of seconds: {text:?}"))
    });
    Duration::from_secs_f64(seconds.unwrap_or(DEFAULT_SECONDS))
}

/// Runs a property on changed seeds for as long as the environment says.
#[macro_export]
macro_rules! fuzz {
    ($seeds:expr, $tokens:expr, $property:expr) => {
        bolero::check!()
            .with_generator($crate::Changed { seeds: $seeds, tokens: $tokens })
            .with_iterations(usize::MAX)
            .with_test_time($crate::time_per_target())
            .for_each($crate::kept($property))
    };
}

/// The property, which notes each input before it is tried: one that overflows the stack or hangs
/// is not told of otherwise.
pub fn kept(property: impl Fn(&[u8])) -> impl Fn(&Vec<u8>) {
    let file = env::var_os(KEEP);
    move |input| {
        if let Some(file) = &file {
            fs::write(file, input).expect("the input can be kept");
        }
        property(input);
    }
}

/// Seeds with changes.
#[derive(Debug, Clone, Copy)]
pub struct Changed {
    /// Inputs that are right.
    pub seeds: &'static [&'static [u8]],
    /// Pieces that mean something.
    pub tokens: &'static [&'static str],
}

impl ValueGenerator for Changed {
    type Output = Vec<u8>;

    fn generate<D: Driver>(&self, driver: &mut D) -> Option<Vec<u8>> {
        let mut input = self.seeds[below(driver, self.seeds.len())?].to_vec();
        for _ in 0..below(driver, MOST_CHANGES + 1)? {
            self.change(driver, &mut input)?;
            input.truncate(LONGEST);
        }
        Some(input)
    }
}

impl Changed {
    fn change<D: Driver>(&self, driver: &mut D, input: &mut Vec<u8>) -> Option<()> {
        let at = below(driver, input.len() + 1)?;
        let length = below(driver, (input.len() - at).min(64) + 1)?;
        let piece = at..at + length;
        match below(driver, 11)? {
            0 => drop(input.drain(piece)),
            1 => input.truncate(at),
            2 if at < input.len() => input[at] ^= 1 << below(driver, 8)?,
            3 if at < input.len() => input[at] = byte(driver)?,
            4 => {
                let bytes = [byte(driver)?, byte(driver)?, byte(driver)?];
                input.splice(at..at, bytes[..1 + below(driver, 3)?].iter().copied());
            }
            5 | 6 => drop(input.splice(at..at, self.token(driver)?.bytes())),
            7 => drop(input.splice(piece, self.token(driver)?.bytes())),
            8 => {
                let piece = input[piece].to_vec();
                input.splice(at..at, piece);
            }
            9 => {
                let other = self.seeds[below(driver, self.seeds.len())?];
                input.truncate(at);
                input.extend_from_slice(&other[below(driver, other.len() + 1)?..]);
            }
            10 if below(driver, 8)? == 0 => {
                let times = below(driver, MOST_REPEATS)?;
                input.splice(at..at, self.token(driver)?.repeat(times).into_bytes());
            }
            _ => {}
        }
        Some(())
    }

    fn token<D: Driver>(&self, driver: &mut D) -> Option<&'static str> {
        Some(self.tokens[below(driver, self.tokens.len())?])
    }
}

fn below<D: Driver>(driver: &mut D, limit: usize) -> Option<usize> {
    driver.gen_usize(Bound::Included(&0), Bound::Excluded(&limit.max(1)))
}

fn byte<D: Driver>(driver: &mut D) -> Option<u8> {
    driver.gen_u8(Bound::Unbounded, Bound::Unbounded)
}
