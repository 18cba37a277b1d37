//! How much is measured, as the command line has it.

/// Events of a run, and how often all runs take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Of each run, at least one.
    pub events: u64,
    /// At least one.
    pub rounds: usize,
}

impl Options {
    /// `--events N` and `--rounds N`, where they differ from what is usual.
    ///
    /// # Errors
    /// What is not understood.
    pub fn of(args: &[&str], usual: Self) -> Result<Self, String> {
        let mut options = usual;
        for pair in args.chunks(2) {
            let wrong = || format!("unknown: {}", pair.join(" "));
            match pair {
                ["--events", value] => options.events = value.parse().map_err(|_| wrong())?,
                ["--rounds", value] => options.rounds = value.parse().map_err(|_| wrong())?,
                _ => return Err(wrong()),
            }
        }
        Ok(Self { events: options.events.max(1), rounds: options.rounds.max(1) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_without_its_value_is_told() {
        let usual = Options { events: 20_000, rounds: 5 };
        for wrong in [&["--events"][..], &["--speed", "1"], &["--rounds", "many"]] {
            assert!(Options::of(wrong, usual).is_err(), "{wrong:?}");
        }
        let options = Options::of(&["--rounds", "2", "--events", "0"], usual);
        assert_eq!(options, Ok(Options { events: 1, rounds: 2 }));
        assert_eq!(Options::of(&[], usual), Ok(usual));
    }
}
