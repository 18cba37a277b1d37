//! How long, with how much, as the command line has it.

use std::{fmt, time::Duration};

use crate::{Failure, USAGE};

#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub seconds: u64,
    pub events: u64,
    pub keys: usize,
    pub seed: u64,
    pub is_static: bool,
}

impl Options {
    pub fn of(args: &[&str]) -> Result<Self, Failure> {
        let mut options =
            Self { seconds: 600, events: 1_000_000, keys: 100_000, seed: 1, is_static: false };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let wrong = || format!("unknown: {arg}\n{USAGE}");
            let mut number = || {
                let value = args.next().and_then(|value| value.parse::<u64>().ok());
                value.filter(|value| *value > 0).ok_or_else(wrong)
            };
            match *arg {
                "--seconds" => options.seconds = number()?,
                "--events" => options.events = number()?,
                "--keys" => options.keys = usize::try_from(number()?)?,
                "--seed" => options.seed = number()?,
                "--static" => options.is_static = true,
                _ => return Err(wrong().into()),
            }
        }
        Ok(options)
    }

    pub fn time(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seconds, events, keys, seed, is_static } = self;
        let members = if *is_static { "static members" } else { "members" };
        write!(f, "{events} events, {keys} Zipf keys, {seconds} s, two {members}, seed {seed}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_the_whole_proof() {
        let options = Options::of(&["--seconds", "60", "--static"]).expect("it is understood");
        assert_eq!((options.seconds, options.events, options.is_static), (60, 1_000_000, true));
        for wrong in [&["--seconds"][..], &["--events", "0"], &["--kills", "3"]] {
            assert!(Options::of(wrong).is_err(), "{wrong:?}");
        }
    }
}
