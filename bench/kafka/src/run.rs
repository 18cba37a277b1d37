//! One run of one side.

use std::fmt;

use crate::Failure;

/// As a process prints it, and as another one reads it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run {
    /// From the first event in a handler's hands to the last that is handled.
    pub seconds: f64,
    pub events: u64,
    /// Seconds of processor time within that.
    pub processor: f64,
    /// Seconds that the busiest key was in handlers' hands: no order per key is quicker.
    pub busiest: f64,
}

impl Run {
    pub fn rate(self) -> f64 {
        self.events as f64 / self.seconds
    }

    /// Microseconds of processor time of an event.
    pub fn each(self) -> f64 {
        self.processor * 1e6 / self.events as f64
    }

    /// How near it came to what its own handlers allowed.
    pub fn of_bound(self) -> f64 {
        self.busiest / self.seconds
    }

    pub fn read(line: &str) -> Result<Self, Failure> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [seconds, events, processor, busiest] = words.as_slice() else {
            return Err(format!("it printed {line:?}").into());
        };
        Ok(Self {
            seconds: seconds.parse()?,
            events: events.parse()?,
            processor: processor.parse()?,
            busiest: busiest.parse()?,
        })
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seconds, events, processor, busiest } = self;
        write!(f, "{seconds} {events} {processor} {busiest}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read() {
        let run = Run { seconds: 1.25, events: 7, processor: 0.5, busiest: 1.0 };
        assert_eq!(Run::read(&run.to_string()).expect("it is whole"), run);
        assert_eq!(run.of_bound(), 0.8);
        assert!(Run::read("1 2").is_err());
    }
}
