//! A token bucket: a number of messages a second on average, and a number at once.
//!
//! Tokens flow in evenly, up to the burst; each message takes one (Turner, "New directions in
//! communications", IEEE Communications Magazine 24(10), 1986). Over any stretch of time `t`, no
//! more than `burst + rate × t` are taken.
//!
//! Everything is counted in whole numbers: a token has as many parts as the period has nanoseconds,
//! and each nanosecond brings as many parts as the rate has messages. So three per second remain
//! three per second after a year, however often the bucket is asked.

use std::time::Duration;

use crate::{SpawnError, size::check_range};

/// The most messages per period, and the largest burst. Keeps every product within 128 bits.
const MOST: u64 = 1_000_000_000;
/// The longest period.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// A number of messages per time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    messages: u64,
    per: Duration,
}

impl Rate {
    /// This many in this time. `Rate::new(1, Duration::from_secs(60))` is one a minute.
    pub const fn new(messages: u64, per: Duration) -> Self {
        Self { messages, per }
    }

    /// This many a second.
    pub const fn per_second(messages: u64) -> Self {
        Self::new(messages, Duration::from_secs(1))
    }

    /// The messages, and the time that they are for.
    pub const fn parts(self) -> (u64, Duration) {
        (self.messages, self.per)
    }

    /// How many messages a pool may start at once after a pause: a tenth of a second's worth, which
    /// makes up for the pauses of its scheduler.
    pub(in crate::pool) fn burst(self) -> u64 {
        let tenth = Duration::from_millis(100).as_nanos() * u128::from(self.messages);
        let burst = tenth.checked_div(self.per.as_nanos()).unwrap_or(1);
        u64::try_from(burst).unwrap_or(MOST).clamp(1, MOST)
    }

    /// Messages and period, if they are in range.
    pub(in crate::pool) fn checked(self) -> Result<(u64, Duration), SpawnError> {
        self.check(self.burst()).map(|()| (self.messages, self.per))
    }

    fn check(self, burst: u64) -> Result<(), SpawnError> {
        let shown = |number| usize::try_from(number).unwrap_or(usize::MAX);
        let (messages, seconds) = (shown(self.messages), shown(self.per.as_secs()));
        let (range, is_period) = ("1 to 1,000,000,000", !self.per.is_zero() && self.per <= LONGEST);
        check_range((1..=MOST).contains(&self.messages), "rate.messages", messages, range)?;
        check_range(is_period, "rate.per (seconds)", seconds, "above 0 and up to a day")?;
        check_range((1..=MOST).contains(&burst), "burst", shown(burst), range)
    }
}

/// A bucket of tokens. It starts full.
///
/// ```
/// use std::time::Duration;
/// use greenroom::limits::{Rate, TokenBucket};
///
/// let mut bucket = TokenBucket::new(Rate::per_second(10), 2)?;
/// let start = Duration::ZERO;
/// assert!(bucket.try_acquire(start) && bucket.try_acquire(start)); // the burst
/// assert!(!bucket.try_acquire(start));
/// assert_eq!(bucket.next_at(), Duration::from_millis(100));
/// assert!(bucket.try_acquire(bucket.next_at()));
/// # Ok::<(), greenroom::SpawnError>(())
/// ```
#[derive(Debug, Clone)]
pub struct TokenBucket {
    rate: Rate,
    burst: u64,
    /// The fill of the bucket, in parts of a token; at most the burst.
    parts: u128,
    /// The latest time so far. Earlier times bring nothing, so a clock that goes back makes no
    /// tokens.
    seen: Duration,
}

impl TokenBucket {
    /// A full bucket that fills at `rate` and holds up to `burst`. A burst of 1 spaces messages
    /// evenly; a tenth of a second's worth lets a pool make up for the pauses of its scheduler.
    ///
    /// # Errors
    /// A rate or burst that is 0 or above 1,000,000,000, or a period that is 0
    /// or longer than a day.
    pub fn new(rate: Rate, burst: u64) -> Result<Self, SpawnError> {
        rate.check(burst)?;
        let mut bucket = Self { rate, burst, parts: 0, seen: Duration::ZERO };
        bucket.parts = bucket.full();
        Ok(bucket)
    }

    /// Takes a token, if there is one.
    pub fn try_acquire(&mut self, now: Duration) -> bool {
        self.fill(now);
        let left = self.parts.checked_sub(self.token());
        self.parts = left.unwrap_or(self.parts);
        left.is_some()
    }

    /// The first moment at which there is a token, unless another caller takes it before: the
    /// latest time seen, if there is one already.
    pub fn next_at(&self) -> Duration {
        let missing = self.token().saturating_sub(self.parts);
        let wait = missing.div_ceil(u128::from(self.rate.messages));
        // At most a day: a token's worth.
        let wait = Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX));
        self.seen.saturating_add(wait)
    }

    /// Gives back a token that was not used.
    pub fn give_back(&mut self) {
        self.parts = self.full().min(self.parts + self.token());
    }

    /// Changes the rate and the burst from now on. Tokens in the bucket stay, as far as
    /// the new burst has room.
    ///
    /// # Errors
    /// Those of [`new`](Self::new); nothing has changed then.
    pub fn set(&mut self, now: Duration, rate: Rate, burst: u64) -> Result<(), SpawnError> {
        rate.check(burst)?;
        self.fill(now);
        let parts = self.parts;
        let old_token = self.token();
        (self.rate, self.burst) = (rate, burst);
        self.parts = self.full().min(parts * self.token() / old_token);
        Ok(())
    }

    fn fill(&mut self, now: Duration) {
        let elapsed = now.saturating_sub(self.seen);
        self.seen = self.seen.max(now);
        let flown = elapsed.as_nanos() * u128::from(self.rate.messages);
        self.parts = self.full().min(self.parts + flown);
    }

    /// The parts of one token.
    fn token(&self) -> u128 {
        self.rate.per.as_nanos()
    }

    /// The parts of a full bucket.
    fn full(&self) -> u128 {
        u128::from(self.burst) * self.token()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const NANOSECOND: Duration = Duration::from_nanos(1);

    fn bucket(rate: Rate, burst: u64) -> TokenBucket {
        TokenBucket::new(rate, burst).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Takes all there is.
    fn drain(bucket: &mut TokenBucket, now: Duration) -> u64 {
        std::iter::from_fn(|| bucket.try_acquire(now).then_some(())).count() as u64
    }

    #[test]
    fn p24_a_pause_brings_a_burst_and_no_more() {
        let mut bucket = bucket(Rate::per_second(100), 7);
        assert_eq!(drain(&mut bucket, Duration::ZERO), 7);
        assert_eq!(drain(&mut bucket, Duration::from_millis(30)), 3);
        assert_eq!(drain(&mut bucket, 1_000 * SECOND), 7);
    }

    #[test]
    fn p24_a_rate_that_does_not_divide_a_second_does_not_drift() {
        let mut bucket = bucket(Rate::per_second(3), 1);
        let mut now = Duration::ZERO;
        assert!(bucket.try_acquire(now));
        for _ in 0..300_000 {
            now = bucket.next_at();
            assert!(!bucket.try_acquire(now - NANOSECOND));
            assert!(bucket.try_acquire(now));
        }
        let drift = now.abs_diff(100_000 * SECOND);
        assert!(
            drift <= 300_000 * NANOSECOND,
            "each wait is rounded up to a nanosecond: {drift:?}"
        );
    }

    #[test]
    fn p24_asking_often_costs_no_tokens() {
        let mut bucket = bucket(Rate::per_second(3), 10);
        let millis = (0..1_000_000).map(Duration::from_millis);
        let taken: u64 = millis.map(|now| drain(&mut bucket, now)).sum();
        assert_eq!(taken, 10 + 2_999);
    }

    #[test]
    fn p24_a_clock_that_goes_back_makes_no_tokens() {
        let mut bucket = bucket(Rate::per_second(1), 1);
        assert!(bucket.try_acquire(10 * SECOND));
        assert!(!bucket.try_acquire(SECOND));
        assert!(!bucket.try_acquire(10 * SECOND));
        assert_eq!(bucket.next_at(), 11 * SECOND);
        assert!(bucket.try_acquire(11 * SECOND));
    }

    #[test]
    fn p24_a_token_given_back_is_there_again() {
        let mut bucket = bucket(Rate::new(1, 60 * SECOND), 1);
        assert!(bucket.try_acquire(SECOND));
        bucket.give_back();
        bucket.give_back();
        assert_eq!(drain(&mut bucket, SECOND), 1, "never more than the burst");
    }

    #[test]
    fn p24_a_new_rate_holds_from_now_on_and_keeps_the_tokens() {
        let mut bucket = bucket(Rate::per_second(10), 20);
        assert_eq!((0..5).filter(|_| bucket.try_acquire(SECOND)).count(), 5);
        assert!(bucket.set(SECOND, Rate::new(60, 60 * SECOND), 12).is_ok());
        assert_eq!(drain(&mut bucket, SECOND), 12);
        assert_eq!(bucket.next_at(), 2 * SECOND);
        assert!(bucket.set(2 * SECOND, Rate::per_second(0), 12).is_err());
        assert_eq!(drain(&mut bucket, 3 * SECOND), 2);
    }

    #[test]
    fn p24_rates_out_of_range_are_refused() {
        let refused = |rate, burst| match TokenBucket::new(rate, burst) {
            Err(SpawnError::OutOfRange { setting, .. }) => setting,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(Rate::per_second(0), 1), "rate.messages");
        assert_eq!(refused(Rate::per_second(MOST + 1), 1), "rate.messages");
        assert_eq!(refused(Rate::new(1, Duration::ZERO), 1), "rate.per (seconds)");
        assert_eq!(refused(Rate::new(1, Duration::MAX), 1), "rate.per (seconds)");
        assert_eq!(refused(Rate::per_second(1), 0), "burst");
        assert_eq!(refused(Rate::per_second(1), u64::MAX), "burst");
    }

    #[test]
    fn p24_extremes_do_not_overflow() {
        let mut widest = bucket(Rate::new(MOST, LONGEST), MOST);
        assert!(widest.try_acquire(Duration::MAX));
        widest.give_back();
        assert!(widest.set(Duration::MAX, Rate::new(MOST, NANOSECOND), 1).is_ok());
        assert_eq!(drain(&mut widest, Duration::MAX), 1);
        assert_eq!(widest.next_at(), Duration::MAX);
    }

    proptest! {
        #[test]
        fn p24_no_stretch_of_time_gets_more_than_its_burst_and_its_rate(
            messages in 1..2_000_u64,
            per_millis in 1..5_000_u64,
            burst in 1..50_u64,
            steps in prop::collection::vec((0..200_000_000_u64, 0..5_usize), 1..300),
        ) {
            let rate = Rate::new(messages, Duration::from_millis(per_millis));
            let mut bucket = bucket(rate, burst);
            let mut now = Duration::ZERO;
            let mut taken: Vec<Duration> = Vec::new();
            for (nanos, asks) in steps {
                now += Duration::from_nanos(nanos);
                taken.extend((0..asks).filter(|_| bucket.try_acquire(now)).map(|_| now));
                let next = bucket.next_at();
                prop_assert_eq!(bucket.clone().try_acquire(now), next <= now);
                prop_assert!(bucket.clone().try_acquire(next));
                prop_assert!(next <= now || !bucket.clone().try_acquire(next - NANOSECOND));
            }
            for first in 0..taken.len() {
                let stretch = taken[taken.len() - 1] - taken[first];
                let count = (taken.len() - first) as u128;
                let flown = stretch.as_nanos() * u128::from(messages) / rate.per.as_nanos();
                prop_assert!(count <= u128::from(burst) + flown);
            }
        }
    }
}
