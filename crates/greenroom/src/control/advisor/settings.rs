//! The thresholds and limits of advice.

use std::time::Duration;

use crate::{
    SpawnError,
    size::{MAX_CAPACITY, check_range},
};

/// The default length of a period: longer than most bursts, and short enough for an operator to
/// watch.
const DEFAULT_PERIOD: Duration = Duration::from_secs(5 * 60);
/// Shorter periods would contain too few observations to average.
const LEAST_PERIOD: Duration = Duration::from_secs(1);

/// The settings: when a finding is worth advice, and how often. Each field states its default; to
/// set one, write `Advisor { shallow: 100, ..Advisor::default() }`.
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
pub struct Advisor {
    /// The length of a period, over which figures are averaged and after which advice is given; 5
    /// minutes by default, at least a second. Choose several times the length of the bursts that
    /// the pool must absorb.
    pub period: Duration,
    /// How often per minute the inbox may become full; 10 by default. Each time, senders wait (or
    /// are refused).
    pub full_per_minute: f64,
    /// The average share of the inbox in use that counts as high; 0.8 by default. With
    /// back-pressure, a fuller inbox is enlarged.
    pub high_use: f64,
    /// Messages per worker below which an inbox is shallow; 500 by default. Choose the size of a
    /// burst.
    pub shallow: usize,
    /// The allowed 99th percentile of the time from the acceptance of a message to its end; 100 ms
    /// by default. Choose the time that callers were promised.
    pub p99: Duration,
    /// Messages per worker that make a long queue, on average; 5,000 by default.
    pub deep: usize,
    /// The share of the inbox that makes a long queue, however short it is; 0.8 by default.
    pub deep_share: f64,
    /// The average share of the inbox in use that counts as low; 0.2 by default. An inbox that is
    /// used less is shrunk.
    pub low_use: f64,
    /// The fewest messages in total to advise, however many workers there are; 1 by default.
    pub least_queue: usize,
    /// The most messages in total to advise; 100,000,000 by default.
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
    pub(super) fn checked(self) -> Result<Self, SpawnError> {
        let Self { period, full_per_minute, least_queue, most_queue, .. } = self;
        let queues = 1..=MAX_CAPACITY;
        let millis = period.as_millis() as usize;
        check_range(period >= LEAST_PERIOD, "advisor.period (in ms)", millis, "at least 1,000")?;
        let range = "1 to 100,000,000";
        check_range(queues.contains(&least_queue), "advisor.least_queue", least_queue, range)?;
        let is_most = least_queue <= most_queue && queues.contains(&most_queue);
        let range = "at least advisor.least_queue, and up to 100,000,000";
        check_range(is_most, "advisor.most_queue", most_queue, range)?;
        check_range(full_per_minute >= 0.0, "advisor.full_per_minute", 0, "0 or more")?;
        for (setting, share) in [
            ("advisor.high_use", self.high_use),
            ("advisor.deep_share", self.deep_share),
            ("advisor.low_use", self.low_use),
        ] {
            let is_share = (0.0..=1.0).contains(&share);
            check_range(is_share, setting, (share * 100.0) as usize, "0% to 100%")?;
        }
        Ok(self)
    }
}
