//! Whether it is a message that ends the connection, though none was found.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;

/// For each filter of the consumer, the position from which its deliveries are searched.
pub(super) type LookFrom = BTreeMap<String, u64>;

/// Losses of the connection with something on its way, and nothing found that they came of.
#[derive(Debug, Default)]
pub(super) struct Suspicion {
    /// By then, a message that caused the loss has come again.
    until: Option<Instant>,
    /// It was lost again before that time.
    is_confirmed: bool,
    /// All below was looked through since it was lost first: it may take more than one time.
    pub(super) look_from: LookFrom,
}

impl Suspicion {
    /// The connection was lost, and nothing was found. Messages on their way come again within this
    /// time.
    pub(super) fn loses(&mut self, comes_within: Duration, now: Instant) {
        self.is_confirmed = self.is_fresh(now);
        self.until = Some(now + comes_within);
    }

    /// Whether a message that caused the loss may still come again.
    pub(super) fn is_fresh(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    /// Whether it was lost repeatedly. Until that stops, messages are requested one by one, so that
    /// one that ends the connection takes no other with it.
    pub(super) fn is_confirmed(&self, now: Instant) -> bool {
        self.is_confirmed && self.is_fresh(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn z12_messages_are_asked_for_one_by_one_as_long_as_the_connection_is_lost_in_a_row() {
        let (mut suspicion, within) = (Suspicion::default(), Duration::from_secs(10));
        let mut now = Instant::now();
        suspicion.loses(within, now);
        assert!(suspicion.is_fresh(now) && !suspicion.is_confirmed(now), "it may be the network");
        for _ in 0..3 {
            now += within - Duration::from_secs(1);
            suspicion.loses(within, now);
            assert!(suspicion.is_confirmed(now));
        }
        now += within;
        assert!(!suspicion.is_confirmed(now), "it was not lost for once");
        suspicion.loses(within, now);
        assert!(!suspicion.is_confirmed(now), "the row begins anew");
    }
}
