//! What may be asked of a system.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// Messages without a key, each with so many nanoseconds of work.
    Unkeyed { workers: usize, nanos: u32 },
    /// Messages with keys, in order per key.
    Keyed(Draw),
    /// Latency of messages that have no reason to wait, while others sleep.
    Latency,
    /// Calls by so many callers at once.
    Calls { callers: u64 },
    /// Memory of full inboxes.
    Full,
}

/// How keys are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    Uniform,
    Zipf,
}

const fn unkeyed(workers: usize, nanos: u32) -> Row {
    Row::Unkeyed { workers, nanos }
}

const NAMES: [(&str, Row); 14] = [
    ("A4", unkeyed(4, 0)),
    ("A4-75ns", unkeyed(4, 75)),
    ("A4-460ns", unkeyed(4, 460)),
    ("A4-2400ns", unkeyed(4, 2_400)),
    ("A256", unkeyed(256, 0)),
    ("A256-75ns", unkeyed(256, 75)),
    ("A256-460ns", unkeyed(256, 460)),
    ("A256-2400ns", unkeyed(256, 2_400)),
    ("B-uniform", Row::Keyed(Draw::Uniform)),
    ("B-zipf", Row::Keyed(Draw::Zipf)),
    ("C", Row::Latency),
    ("D1", Row::Calls { callers: 1 }),
    ("D64", Row::Calls { callers: 64 }),
    ("E-full", Row::Full),
];

impl Row {
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.iter().map(|(_, row)| *row)
    }

    pub fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, row)| *row)
    }

    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, row)| *row == self).map_or("", |(name, _)| name)
    }
}

impl Serialize for Row {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_a_name_of_its_own_that_leads_back_to_it() {
        for row in Row::all() {
            assert_eq!(Row::named(row.name()), Some(row));
        }
        assert_eq!(Row::named("A5"), None);
    }
}
