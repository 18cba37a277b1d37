//! Deliveries that are held back until older ones have come (N06).
//!
//! A server delivers new messages while old ones, which it had delivered to a reader that is gone,
//! wait for the end of their time to be acknowledged. Given at once, the new ones of a key would
//! overtake the old ones. So, while any of those are missing, everything is held here, and
//! continues in the order of the stream.
//!
//! The number missing is the number that the server waits for minus the number open here. Both are
//! taken at one moment, at which every acknowledgement has reached the server; from then on, each
//! message that comes, up to the last delivered one, is one less.

use std::{collections::BTreeMap, time::Duration};

use greenroom_bus::source::Taken;
use tokio::time::Instant;

/// The interval at which the server is asked how many it waits for.
pub(super) const ASK_EVERY: Duration = Duration::from_millis(500);

/// Old messages are waited for this long beyond their time to be acknowledged.
const GRACE: Duration = Duration::from_secs(2);

/// The wait starts over at most this often after a lost connection.
const LOSSES: usize = 3;

/// Messages that were delivered and are neither open here nor acknowledged.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Missing {
    /// How many, as far as is known.
    pub(super) count: Option<u64>,
    /// Up to here the server had delivered when that was found out.
    up_to: u64,
}

impl Missing {
    /// The server waits for this many acknowledgements, of messages up to there; this many are open
    /// here.
    pub(super) fn asked(waits_for: u64, up_to: u64, open: u64) -> Self {
        Self { count: Some(waits_for.saturating_sub(open)), up_to }
    }

    /// A message that was not open has come.
    pub(super) fn comes(&mut self, position: u64) {
        if let Some(count) = self.count.as_mut().filter(|_| position <= self.up_to) {
            *count = count.saturating_sub(1);
        }
    }
}

/// The messages that are held back.
#[derive(Debug)]
pub(super) struct Hold {
    messages: BTreeMap<u64, Taken>,
    bytes: usize,
    pub(super) missing: Missing,
    /// Nothing is waited for any longer.
    pub(super) until: Instant,
    /// When to ask the server again.
    pub(super) ask_at: Instant,
    /// How often the connection was lost during the wait.
    losses: usize,
}

/// Whether to keep holding.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Holding {
    /// Something is missing.
    Wait,
    /// All is there.
    Complete,
    /// It takes too long, or too much room: this many are missing, or the number is not known.
    Enough(Option<u64>),
}

impl Hold {
    /// Begins to hold. `ack_wait` is the time after which a message comes back.
    pub(super) fn new(ack_wait: Duration, now: Instant) -> Self {
        Self {
            messages: BTreeMap::new(),
            bytes: 0,
            missing: Missing::default(),
            until: now + patience(ack_wait),
            ask_at: now,
            losses: 0,
        }
    }

    /// The connection was lost.
    pub(super) fn loses(&mut self) {
        self.losses += 1;
    }

    /// Nothing can come now: the time in which it should begins later. Not without end: a message
    /// that ends the connection each time that it comes would hold up all others for ever.
    pub(super) fn wait_on(&mut self, ack_wait: Duration, now: Instant) {
        if self.losses <= LOSSES {
            self.until = now + patience(ack_wait);
        }
        self.ask_at = self.ask_at.max(now + ASK_EVERY);
    }

    /// Nothing was read for long. Missing messages may be in the socket, or were not requested.
    pub(super) fn begin_anew(&mut self, ack_wait: Duration, now: Instant) {
        (self.until, self.ask_at) = (now + patience(ack_wait), now);
    }

    /// The server has answered which messages are missing.
    pub(super) fn asked(&mut self, missing: Missing, now: Instant) {
        self.missing = missing;
        self.ask_at = now + ASK_EVERY;
    }

    /// A message that was not open has come.
    pub(super) fn keep(&mut self, taken: Taken) {
        self.missing.comes(taken.position);
        self.bytes += bytes_of(&taken);
        if let Some(before) = self.messages.insert(taken.position, taken) {
            self.bytes -= bytes_of(&before);
        }
    }

    pub(super) fn is_over(&self, most_bytes: usize, now: Instant) -> Holding {
        match self.missing.count {
            Some(0) => Holding::Complete,
            missing if now >= self.until || self.bytes > most_bytes => Holding::Enough(missing),
            _ => Holding::Wait,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    /// The messages that were held back, in the order of the stream.
    pub(super) fn release(self) -> impl Iterator<Item = Taken> {
        self.messages.into_values()
    }
}

/// A message that had just been delivered comes back after `ack_wait`.
pub(super) fn patience(ack_wait: Duration) -> Duration {
    ack_wait + ack_wait / 4 + GRACE
}

fn bytes_of(taken: &Taken) -> usize {
    match &taken.event {
        Ok(event) => event.approximate_bytes(),
        Err(malformed) => malformed.raw.len(),
    }
}

#[cfg(test)]
mod tests {
    use greenroom_bus::source::Malformed;

    use super::*;

    fn taken(position: u64) -> Taken {
        Taken { position, event: Err(Malformed::new(vec![0; 10], "test")) }
    }

    fn missing(count: u64) -> Missing {
        Missing::asked(count, 9, 0)
    }

    fn hold() -> Hold {
        Hold::new(Duration::from_secs(10), Instant::now())
    }

    #[tokio::test(start_paused = true)]
    async fn n06_what_is_new_waits_for_what_is_old_and_goes_on_in_order() {
        let (mut hold, now) = (hold(), Instant::now());
        hold.keep(taken(12));
        assert_eq!(hold.is_over(100, now), Holding::Wait, "nobody knows yet what is missing");
        hold.asked(Missing::asked(3, 9, 1), now);
        hold.keep(taken(8));
        hold.keep(taken(11));
        assert_eq!(hold.is_over(100, now), Holding::Wait);
        hold.keep(taken(5));
        assert_eq!(hold.is_over(100, now), Holding::Complete);
        let order: Vec<u64> = hold.release().map(|taken| taken.position).collect();
        assert_eq!(order, [5, 8, 11, 12]);
    }

    #[tokio::test(start_paused = true)]
    async fn n06_holding_is_bounded_in_time_and_bytes() {
        let (mut hold, now) = (hold(), Instant::now());
        hold.asked(missing(2), now);
        assert_eq!(hold.is_over(15, now), Holding::Wait);
        hold.keep(taken(12));
        hold.keep(taken(13));
        assert_eq!(hold.is_over(15, now), Holding::Enough(Some(2)));
        let later = now + Duration::from_secs(15);
        assert_eq!(hold.is_over(100, later), Holding::Enough(Some(2)));
    }

    #[tokio::test(start_paused = true)]
    async fn n06_a_connection_that_is_lost_again_and_again_does_not_hold_for_ever() {
        let (mut hold, mut now) = (hold(), Instant::now());
        for _ in 0..=LOSSES {
            hold.asked(missing(1), now);
            now += Duration::from_secs(10);
            assert_eq!(hold.is_over(100, now), Holding::Wait, "what is missing has its time");
            hold.loses();
            hold.wait_on(Duration::from_secs(10), now);
        }
        now += Duration::from_secs(10);
        assert_eq!(hold.is_over(100, now), Holding::Enough(Some(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn n06_time_in_which_nothing_was_read_is_no_wait_in_vain() {
        let (mut hold, mut now) = (hold(), Instant::now());
        hold.asked(missing(2), now);
        let (ack_wait, frozen) = (Duration::from_secs(10), Duration::from_secs(60));
        now += frozen;
        hold.begin_anew(ack_wait, now);
        assert_eq!(hold.is_over(100, now), Holding::Wait, "nothing could come");
        assert_eq!(hold.ask_at, now);
        now += patience(ack_wait);
        assert_eq!(hold.is_over(100, now), Holding::Enough(Some(2)));
    }

    #[tokio::test(start_paused = true)]
    async fn n06_what_is_acknowledged_meanwhile_is_not_missing() {
        let (mut hold, now) = (hold(), Instant::now());
        hold.asked(missing(2), now);
        hold.keep(taken(9));
        hold.asked(Missing::asked(1, 9, 1), now);
        assert_eq!(hold.is_over(100, now), Holding::Complete);
    }
}
