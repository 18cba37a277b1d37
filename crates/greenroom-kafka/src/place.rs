//! Partitions of topics.

use std::{fmt, sync::Arc};

/// A partition of a topic.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) topic: Arc<str>,
    pub(crate) partition: i32,
}

/// What the places of records are called by begins so.
const SCHEME: &str = "kafka:";

impl Place {
    pub(crate) fn new(topic: &str, partition: i32) -> Self {
        Self { topic: topic.into(), partition }
    }

    /// What errors and dead letters call it: `kafka:orders/7`.
    pub(crate) fn source(&self) -> Arc<str> {
        format!("{SCHEME}{self}").into()
    }

    /// The one that is [called so](Self::source).
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

#[cfg(test)]
mod tests {
    use super::*;

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
