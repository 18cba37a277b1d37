//! The tokens of one share, as one number.

/// How many messages of a share may be started in a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareRate {
    /// The number of messages per period, at least 1.
    pub messages: u64,
    /// The length of the period in nanoseconds, at least 1.
    pub per: u64,
    /// The number of messages that may start at once after a pause, at least 1.
    pub burst: u64,
}

/// A token bucket, stored as the time at which it is full again (the generic cell rate algorithm of
/// ITU-T I.371). The time is counted in parts: a nanosecond adds as many parts as the rate has
/// messages, and a token costs as many as the period has nanoseconds. So no rate drifts, and a full
/// bucket need not be stored.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bucket {
    full_at: u128,
}

impl ShareRate {
    fn parts(self, nanos: u64) -> u128 {
        u128::from(nanos) * u128::from(self.messages)
    }

    fn token(self) -> u128 {
        u128::from(self.per)
    }

    /// The first nanosecond by which this many parts have been added.
    fn nanos(self, parts: u128) -> u64 {
        u64::try_from(parts.div_ceil(u128::from(self.messages))).unwrap_or(u64::MAX)
    }
}

impl Bucket {
    pub(super) fn take(&mut self, rate: ShareRate, now: u64) {
        self.full_at = self.full_at.max(rate.parts(now)) + rate.token();
    }

    /// Gives back a token that was not used.
    pub(super) fn give_back(&mut self, rate: ShareRate) {
        self.full_at = self.full_at.saturating_sub(rate.token());
    }

    /// The first moment at which a token is available.
    pub(super) fn next_at(self, rate: ShareRate) -> u64 {
        let room = rate.token() * u128::from(rate.burst.saturating_sub(1));
        rate.nanos(self.full_at.saturating_sub(room))
    }

    pub(super) fn full_at(self, rate: ShareRate) -> u64 {
        rate.nanos(self.full_at)
    }

    /// Switches to another rate: as many tokens are missing as before.
    pub(super) fn change(&mut self, from: ShareRate, to: ShareRate, now: u64) {
        let missing = self.full_at.saturating_sub(from.parts(now));
        let tokens = missing.saturating_mul(to.token()) / from.token();
        self.full_at = to.parts(now).saturating_add(tokens);
    }
}

#[cfg(test)]
mod tests {
    use super::{Bucket, ShareRate};

    const SECOND: u64 = 1_000_000_000;

    /// Takes all available tokens.
    fn drain(bucket: &mut Bucket, rate: ShareRate, now: u64) -> u64 {
        let mut taken = 0;
        while bucket.next_at(rate) <= now {
            bucket.take(rate, now);
            taken += 1;
        }
        taken
    }

    #[test]
    fn q04_a_pause_brings_a_burst_and_no_more() {
        let rate = ShareRate { messages: 100, per: SECOND, burst: 7 };
        let mut bucket = Bucket::default();
        assert_eq!(drain(&mut bucket, rate, 5), 7);
        assert_eq!(drain(&mut bucket, rate, 5 + SECOND * 3 / 100), 3);
        assert_eq!(drain(&mut bucket, rate, 1_000 * SECOND), 7);
    }

    #[test]
    fn q04_a_rate_below_one_an_hour_does_not_drift() {
        let rate = ShareRate { messages: 7, per: 24 * 3_600 * SECOND, burst: 1 };
        let (mut bucket, mut now) = (Bucket::default(), 0);
        bucket.take(rate, now);
        for _ in 0..7_000 {
            now = bucket.next_at(rate);
            bucket.take(rate, now);
        }
        let wanted = 1_000 * 24 * 3_600 * SECOND;
        assert!(now.abs_diff(wanted) <= 7_000, "each wait is rounded up to a nanosecond: {now}");
    }

    #[test]
    fn q04_a_token_given_back_is_there_again() {
        let rate = ShareRate { messages: 1, per: 60 * SECOND, burst: 1 };
        let mut bucket = Bucket::default();
        bucket.take(rate, SECOND);
        bucket.give_back(rate);
        assert_eq!(drain(&mut bucket, rate, SECOND), 1);
    }

    #[test]
    fn q09_another_rate_holds_from_now_on_and_keeps_what_is_missing() {
        let slow = ShareRate { messages: 1, per: 3_600 * SECOND, burst: 1 };
        let fast = ShareRate { messages: 10, per: SECOND, burst: 1 };
        let mut bucket = Bucket::default();
        bucket.take(slow, 0);
        bucket.change(slow, fast, 1_800 * SECOND);
        assert_eq!(bucket.next_at(fast), 1_800 * SECOND + SECOND / 20, "half a token is missing");
    }
}
