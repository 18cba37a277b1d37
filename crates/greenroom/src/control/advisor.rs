//! Recommends changes to a pool's settings every few minutes, based on its figures in that time.
//!
//! ```text
//!                        full more than 10 times a minute       p99 above 100 ms             otherwise
//!                        ────────────────────────────────       ────────────────             ─────────
//!  above 0.8 used        1  grow the inbox (double)             2  a queue above 5,000 or
//!  below 500 deep        1  grow the inbox (double)                0.8 of the inbox:         3  below 0.2 used:
//!  otherwise             1  look at the handler's speed            shrink it, add workers       shrink the inbox (half)
//!                                                               2  otherwise: optimise       3  otherwise: fine as it is
//!                                                                  the handler
//! ```
//!
//! The first column that applies counts, and in it the first row. All depths are per worker, like
//! `inbox_size`; the limits are those of the [`Advisor`].
//!
//! # The meaning of the rules
//! 1. **Back-pressure** is how often the inbox *becomes* full: senders find no room, and it was
//!    down to half before. An inbox that is full for hours became full once, and rule 2 covers
//!    it. An inbox that is mostly used needs room. One that is mostly shallow is too small for its
//!    bursts. A deep one that fills up anyway is drained too slowly, and more room would only let
//!    messages wait longer.
//! 2. **p99** covers the whole time that messages of the period were in the pool, waiting and in
//!    hand. If they wait in a long queue, a shorter queue and more workers (half as many again)
//!    shorten the wait. Workers are added only if the present ones are busy for half of their time,
//!    because messages that are late while workers are idle wait for their key, or for a limit. If
//!    there is no queue, the time is the handler's.
//! 3. An inbox is not shrunk below the **most that waited** at a time within a day (its whole room
//!    if it was full, twice that if it had to grow). A period in which nothing was sent does not
//!    shrink it: a quiet night is no reason to be short of room in the morning.
//!
//! # Advice
//! Advice ([`Advice`]) names its rule, the figures, and the lines of the configuration to change.
//! The pool keeps the latest ([`PoolAdmin::advice`](crate::PoolAdmin::advice)), and reports when it
//! changes ([`PoolEvent::Advised`](crate::PoolEvent::Advised), which is logged).
//!
//! The advisor changes nothing itself. [`PoolAdmin::set_advisor`](crate::PoolAdmin::set_advisor)
//! gives a running pool another advisor, or none.
//!
//! # Which to use
//! | for | there is |
//! |---|---|
//! | load that comes and goes within seconds or minutes | [`autoscale`](super::autoscale): the number of workers, each second |
//! | an inbox and a size that suit the job, found out once and written down | the advisor, which only says so |
//!
//! Both can be used together: then the advisor leaves the number of workers to the autoscaler.
//!
//! # Price
//! One look at the queues per second, and a copy of the pool's measurements (some fifteen
//! kilobytes) per period.

use std::time::Duration;

use crate::SpawnError;

mod advice;
mod figures;
mod finding;
pub(crate) mod period;
mod rules;
mod settings;

pub use crate::size::Inbox;
pub use advice::{Advice, Edit, Proposal};
pub use figures::Figures;
pub use finding::Finding;
pub use settings::Advisor;

use super::peaks::Peaks;

/// How long the number of waiting messages is remembered: a day includes its busy hours.
const REMEMBERED: Duration = Duration::from_secs(24 * 3600);

/// The state between two periods, without clock, task or lock. A pool with
/// [`advise`](crate::PoolBuilder::advise) feeds it the figures of each period; for other pools,
/// their owner can.
#[derive(Debug, Clone)]
pub struct Judge {
    settings: Advisor,
    /// How many messages recently needed room at a time.
    peaks: Peaks,
}

impl Judge {
    /// A judge without observations.
    ///
    /// # Errors
    /// A setting out of range.
    pub fn new(settings: Advisor) -> Result<Self, SpawnError> {
        Ok(Self { settings: settings.checked()?, peaks: Peaks::default() })
    }

    /// The settings.
    pub fn settings(&self) -> &Advisor {
        &self.settings
    }

    /// Returns advice for the figures of a period.
    pub fn advise(&mut self, figures: &Figures) -> Advice {
        let finding = self.settings.finding(figures);
        let needed = match finding.grows() {
            // The number that would have arrived is unknown. Room that is added now is not removed
            // as soon as it helps.
            true => 2.0 * figures.capacity() as f64,
            false => figures.most_waiting(),
        };
        self.peaks.add(figures.at, needed, REMEMBERED);
        let change = self.settings.proposal(finding, figures, self.peaks.peak());
        let finding = match change {
            // All of it was needed recently.
            None if finding == Finding::Roomy => Finding::Fine,
            _ => finding,
        };
        Advice { finding, figures: *figures, change }
    }
}

#[cfg(test)]
mod cases;
#[cfg(test)]
mod simulated;
