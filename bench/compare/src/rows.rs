//! The rows of the comparison (`bench/PROTOCOL.md`): what each measures, which way is better, and
//! how many messages it takes.

/// What a figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Millions of messages a second.
    Rate,
    /// Nanoseconds of a call.
    Call,
    /// Microseconds, of arrivals that wait for nobody.
    Latency,
    /// Resident memory as a multiple of the payload.
    Memory,
}

#[derive(Debug)]
pub struct Row {
    pub name: &'static str,
    pub what: &'static str,
    pub figure: Figure,
    /// Of the messages asked for, one in so many: fewer where each takes longer.
    one_in: u64,
}

/// How long a repetition should take, at most.
const SECONDS: f64 = 1.5;
/// Arrivals of the row with latency, as the protocol says.
const ARRIVALS_PER_SECOND: f64 = 20_000.0;
/// Messages of the row with memory: 256 inboxes of 1,000.
const FULL: u64 = 256_000;
/// With fewer, starting and ending would be what is measured.
const LEAST: u64 = 1_000;
/// Of the messages asked for, those that warm up.
const WARM_UP_ONE_IN: u64 = 10;

const fn row(name: &'static str, what: &'static str, figure: Figure, one_in: u64) -> Row {
    Row { name, what, figure, one_in }
}

/// With work right behind without it: a throughput of handlers that do nothing
/// fades with what they do.
pub static ROWS: [Row; 14] = [
    row("A4", "messages without a key, 4 workers, handlers that count", Figure::Rate, 1),
    row("A4-75ns", "the same, with 75 ns of work for each message", Figure::Rate, 1),
    row("A4-460ns", "the same, with 460 ns of work", Figure::Rate, 2),
    row("A4-2400ns", "the same, with 2.4 us of work", Figure::Rate, 8),
    row("A256", "messages without a key, 256 workers, handlers that count", Figure::Rate, 1),
    row("A256-75ns", "the same, with 75 ns of work for each message", Figure::Rate, 1),
    row("A256-460ns", "the same, with 460 ns of work", Figure::Rate, 2),
    row("A256-2400ns", "the same, with 2.4 us of work", Figure::Rate, 8),
    row("B-uniform", "in order per key, a million uniform keys, 256 workers", Figure::Rate, 1),
    row("B-zipf", "in order per key, a million keys by Zipf's law, 256 workers", Figure::Rate, 1),
    row(
        "C",
        "p99 of rare keys, of which no message sleeps, beside those that do",
        Figure::Latency,
        25,
    ),
    row("D1", "a call and its reply, 1 caller, 4 workers", Figure::Call, 10),
    row("D64", "calls and their replies, 64 callers at once, 4 workers", Figure::Call, 5),
    row("E-full", "256 full inboxes of 1,000 messages of 200 bytes", Figure::Memory, 1),
];

impl Row {
    pub fn named(name: &str) -> Option<&'static Self> {
        ROWS.iter().find(|row| row.name == name)
    }

    /// True for `A4` of A4, and for `A` and `C` as well.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || (name.len() == 1 && self.name.starts_with(name))
    }

    pub fn unit(&self) -> &'static str {
        match self.figure {
            Figure::Rate => "M/s",
            Figure::Call => "ns/call",
            Figure::Latency => "us p99",
            Figure::Memory => "x payload",
        }
    }

    pub fn more_is_better(&self) -> bool {
        self.figure == Figure::Rate
    }

    /// How many times better greenroom is than the other.
    pub fn ratio(&self, greenroom: f64, other: f64) -> f64 {
        match self.more_is_better() {
            true => greenroom / other,
            false => other / greenroom,
        }
    }

    /// Memory is asked of a program that was started for it, and time does not matter.
    pub fn needs_own_process(&self) -> bool {
        self.figure == Figure::Memory
    }

    /// Messages of the repetition that warms up; `None` where there is none.
    pub fn warm_up(&self, asked: u64) -> Option<u64> {
        (!self.needs_own_process()).then(|| (asked / self.one_in / WARM_UP_ONE_IN).max(LEAST))
    }

    /// Messages of a repetition, where this figure was that of the warm-up.
    pub fn messages(&self, asked: u64, figure: f64) -> u64 {
        let seconds_each = match self.figure {
            Figure::Rate => 1e-6 / figure,
            Figure::Call => figure * 1e-9,
            Figure::Latency => ARRIVALS_PER_SECOND.recip(),
            Figure::Memory => return FULL,
        };
        let most = (asked / self.one_in).max(LEAST);
        ((SECONDS / seconds_each) as u64).clamp(LEAST, most)
    }

    /// How long one repetition of it takes, at most and without what is around it.
    pub fn seconds(&self) -> f64 {
        SECONDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(row: &str, figure: f64) -> u64 {
        Row::named(row).unwrap().messages(5_000_000, figure)
    }

    #[test]
    fn a_repetition_takes_no_longer_than_a_second_and_a_half() {
        assert_eq!(messages("A4", 0.2), 300_000);
        assert_eq!(messages("D1", 22_600.0), 66_371);
        assert_eq!(messages("C", 190.0), 30_000);
    }

    #[test]
    fn a_repetition_has_no_more_messages_than_were_asked_for() {
        assert_eq!(messages("A4", 80.0), 5_000_000);
        assert_eq!(messages("A4-460ns", 80.0), 2_500_000);
        assert_eq!(messages("D1", 120.0), 500_000);
    }

    #[test]
    fn a_tenth_of_the_messages_warms_up() {
        let warm_up = |row| Row::named(row).unwrap().warm_up(5_000_000);
        assert_eq!([warm_up("A4"), warm_up("C")], [Some(500_000), Some(20_000)]);
        assert_eq!(warm_up("E-full"), None);
    }

    #[test]
    fn a_ratio_above_one_says_that_greenroom_is_better() {
        let ratio = |row, own, other| Row::named(row).unwrap().ratio(own, other);
        assert_eq!(ratio("A4", 60.0, 10.0), 6.0);
        assert_eq!(ratio("D1", 100.0, 300.0), 3.0);
    }
}
