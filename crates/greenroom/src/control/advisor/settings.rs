//! When something is worth advice, and within which limits.

use std::time::Duration;

use crate::{SpawnError, size::MAX_CAPACITY};

/// The length of a period unless said otherwise: longer than most bursts, and short enough for
/// a person who watches.
const DEFAULT_PERIOD: Duration = Duration::from_secs(5 * 60);
/// Shorter periods would hold too few looks to average.
const LEAST_PERIOD: Duration = Duration::from_secs(1);

/// The settings: when a finding is worth advice, and how often. The default is what the fields say.
///
/// ```
/// use std::time::Duration;
/// use greenroom::advisor::{Advisor, Figures, Inbox, Judge};
///
/// let mut judge = Judge::new(Advisor::default())?;
/// let quiet = Figures::of(Inbox::PerWorker(1000), 256);
/// let crowded = Figures { inbox_full: 60, utilisation: 0.91, ..quiet }; // in five minutes
///
/// let advice = judge.advise(&crowded);
/// assert_eq!(advice.change.unwrap().to_string(), "inbox_size: 1000 -> 2000");
/// # Ok::<(), greenroom::SpawnError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Advisor {
    /// How long a period is, of which figures are averaged and after which advice is given; 5
    /// minutes unless said otherwise, at least a second. Several times as long as the bursts that
    /// the pool is to bear.
    pub period: Duration,
    /// How often a minute the inbox may become full; 10 unless said otherwise. Each time, senders
    /// wait (or are refused).
    pub full_per_minute: f64,
    /// The average share of the inbox in use that counts as much; 0.8 unless said otherwise. With
    /// back-pressure, an inbox that is fuller is grown.
    pub high_use: f64,
    /// Messages per worker below which an inbox is shallow; 500 unless said otherwise. As many
    /// as come in one burst.
    pub shallow: usize,
    /// The 99th percentile that is allowed, from the acceptance of a message to its end; 100 ms
    /// unless said otherwise. The promise to the callers.
    pub p99: Duration,
    /// Messages per worker that are a long queue, on average; 5,000 unless said otherwise.
    pub deep: usize,
    /// The share of the inbox that is a long queue, however short; 0.8 unless said otherwise.
    pub deep_share: f64,
    /// The average share of the inbox in use that counts as little; 0.2 unless said otherwise. An
    /// inbox that is used less is shrunk.
    pub low_use: f64,
    /// The fewest messages in all to advise, however many workers there are; 1 unless said
    /// otherwise.
    pub least_queue: usize,
    /// The most messages in all to advise; 100,000,000 unless said otherwise.
    pub most_queue: usize,
}

impl Default for Advisor {
    fn default() -> Self {
        Self {
            period: DEFAULT_PERIOD,
            full_per_minute: 10.0,
            high_use: 0.8,
            shallow: 500,
            p99: Duration::from_millis(100),
            deep: 5_000,
            deep_share: 0.8,
            low_use: 0.2,
            least_queue: 1,
            most_queue: MAX_CAPACITY,
        }
    }
}

impl Advisor {
    /// How long a period is.
    #[must_use]
    pub const fn period(self, period: Duration) -> Self {
        Self { period, ..self }
    }

    /// How often a minute the inbox may become full.
    #[must_use]
    pub const fn full_per_minute(self, times: f64) -> Self {
        Self { full_per_minute: times, ..self }
    }

    /// The average share of the inbox in use that counts as much.
    #[must_use]
    pub const fn high_use(self, share: f64) -> Self {
        Self { high_use: share, ..self }
    }

    /// Messages per worker below which an inbox is shallow.
    #[must_use]
    pub const fn shallow(self, messages: usize) -> Self {
        Self { shallow: messages, ..self }
    }

    /// The 99th percentile that is allowed.
    #[must_use]
    pub const fn p99(self, time: Duration) -> Self {
        Self { p99: time, ..self }
    }

    /// Messages per worker that are a long queue.
    #[must_use]
    pub const fn deep(self, messages: usize) -> Self {
        Self { deep: messages, ..self }
    }

    /// The share of the inbox that is a long queue.
    #[must_use]
    pub const fn deep_share(self, share: f64) -> Self {
        Self { deep_share: share, ..self }
    }

    /// The average share of the inbox in use that counts as little.
    #[must_use]
    pub const fn low_use(self, share: f64) -> Self {
        Self { low_use: share, ..self }
    }

    /// The fewest and the most messages in all to advise.
    #[must_use]
    pub const fn queue_within(self, least: usize, most: usize) -> Self {
        Self { least_queue: least, most_queue: most, ..self }
    }

    pub(super) fn checked(self) -> Result<Self, SpawnError> {
        let out_of_range = |setting, value, range| SpawnError::OutOfRange { setting, value, range };
        if self.period < LEAST_PERIOD {
            let millis = self.period.as_millis() as usize;
            return Err(out_of_range("advisor.period (in ms)", millis, "at least 1,000"));
        }
        if !(1..=MAX_CAPACITY).contains(&self.least_queue) {
            return Err(out_of_range("advisor.least_queue", self.least_queue, "1 to 100,000,000"));
        }
        if !(self.least_queue..=MAX_CAPACITY).contains(&self.most_queue) {
            let range = "at least advisor.least_queue, and up to 100,000,000";
            return Err(out_of_range("advisor.most_queue", self.most_queue, range));
        }
        if !(0.0..=f64::INFINITY).contains(&self.full_per_minute) {
            return Err(out_of_range("advisor.full_per_minute", 0, "0 or more"));
        }
        self.checked_shares()
    }

    fn checked_shares(self) -> Result<Self, SpawnError> {
        let shares = [
            ("advisor.high_use", self.high_use),
            ("advisor.deep_share", self.deep_share),
            ("advisor.low_use", self.low_use),
        ];
        let wrong = shares.into_iter().find(|(_, share)| !(0.0..=1.0).contains(share));
        match wrong {
            Some((setting, share)) => Err(SpawnError::OutOfRange {
                setting,
                value: (share * 100.0) as usize,
                range: "0% to 100%",
            }),
            None => Ok(self),
        }
    }
}
