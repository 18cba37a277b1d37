//! Partitions of topics.

use std::{fmt, sync::Arc};

/// A partition of a topic.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) topic: Arc<str>,
    pub(crate) partition: i32,
}

/// The prefix of the names of places.
const SCHEME: &str = "kafka:";

impl Place {
    pub(crate) fn new(topic: &str, partition: i32) -> Self {
        Self { topic: topic.into(), partition }
    }

    /// Its name in errors and dead letters: `kafka:orders/7`.
    pub(crate) fn source(&self) -> Arc<str> {
        format!("{SCHEME}{self}").into()
    }

    /// The one with [this source](Self::source).
    pub(crate) fn of_source(source: &str) -> Option<Self> {
        let (topic, partition) = source.strip_prefix(SCHEME)?.rsplit_once('/')?;
        Some(Self::new(topic, partition.parse().ok()?))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.topic, self.partition)
    }
}

/// At most this many elements of a list are named.
const NAMED: usize = 12;

/// Partitions in words, in their order: `orders/0-11, returns/3`.
pub(crate) fn spans<'a>(places: impl Iterator<Item = &'a Place>) -> String {
    let mut places: Vec<&Place> = places.collect();
    places.sort_unstable();
    let follows = |one: &&Place, next: &&Place| {
        one.topic == next.topic && one.partition + 1 == next.partition
    };
    let pieces: Vec<_> = places.chunk_by(follows).collect();
    let named = pieces.iter().take(NAMED).map(|piece| match piece {
        [] => String::new(),
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{}", last.partition),
    });
    let mut text = named.collect::<Vec<_>>().join(", ");
    if pieces.len() > NAMED {
        text.push_str(&format!(", and {} more", pieces.len() - NAMED));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o17_partitions_that_follow_each_other_are_named_together() {
        let of = |topic: &str, numbers: &[i32]| -> Vec<Place> {
            numbers.iter().map(|number| Place::new(topic, *number)).collect()
        };
        let places = [of("returns", &[3]), of("orders", &[1, 0, 2, 5])].concat();
        assert_eq!(spans(places.iter()), "orders/0-2, orders/5, returns/3");
        let every_other: Vec<i32> = (0..15).map(|number| number * 2).collect();
        assert!(spans(of("o", &every_other).iter()).ends_with("o/22, and 3 more"));
        assert_eq!(spans(std::iter::empty()), "");
    }

    #[test]
    fn d06_a_partition_is_known_by_what_letters_call_it() {
        let place = Place::new("orders.eu", 7);
        assert_eq!(&*place.source(), "kafka:orders.eu/7");
        assert_eq!(Place::of_source(&place.source()), Some(place));
        for other in
            ["kafka:orders", "kafka:a,b", "nats:ORDERS/shop", "file:kafka:a/1", "kafka:a/x"]
        {
            assert_eq!(Place::of_source(other), None, "{other}");
        }
    }
}
