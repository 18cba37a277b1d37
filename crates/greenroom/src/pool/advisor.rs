//! What to change in a pool's settings, said every few minutes from what it looked like meanwhile.
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
//! The first column that applies counts, and in it the first row. All depths are per worker, as
//! `inbox_size` is; the limits are those of the [`Advisor`].
//!
//! # What the rules mean
//! 1. **Back-pressure** is how often the inbox *becomes* full: senders find no room, and it was
//!    down to half before. One that is simply full for hours became so once, and is the affair of
//!    rule 2. An inbox that is mostly used needs room; one that is not, but shallow, is too small
//!    for its bursts; a deep one that fills all the same is drained too slowly, and more room would
//!    only let messages wait longer.
//! 2. **p99** is of the time that messages of the period were in the pool, waiting and in hand.
//!    Where they wait in a long queue, a shorter one and more workers (half as many again) shorten
//!    the wait: workers are added only where those that there are are busy for half of their time,
//!    because late messages beside idle workers wait for their key, or for a limit. Where there is
//!    no queue, the time is the handler's.
//! 3. An inbox is shrunk by no more than to the **most that waited** at a time within a day
//!    (all that there was room for where it was full, the double where it had to grow), and not
//!    for a period in which nothing was sent: a quiet night is no reason to be short of room in
//!    the morning.
//!
//! # Advice and acts
//! Advice ([`Advice`]) says its rule, the figures, and the lines of the configuration to change.
//! The pool keeps the latest ([`PoolAdmin::advice`](crate::PoolAdmin::advice)), and tells when it
//! changes ([`PoolEvent::Advised`](crate::PoolEvent::Advised), which is logged).
//!
//! With [`Advisor::act`] the pool follows it at once, while it works: no message is lost, and
//! the order of none changes. It watches for at least a whole period after each act, and does the
//! opposite of what it did last only when the figures have asked for that for two whole periods in
//! a row; for four the next time, and so on up to 32, until it goes on in one direction.
//!
//! A running pool is given another advisor, or none, with
//! [`PoolAdmin::set_advisor`](crate::PoolAdmin::set_advisor).
//!
//! # Which to use
//! | for | there is |
//! |---|---|
//! | load that comes and goes within seconds or minutes | [`autoscale`](super::autoscale): the number of workers, each second |
//! | an inbox and a size that suit the job, found out once and written down | the advisor, which only says so |
//! | pools that nobody looks after | the advisor with [`act`](Advisor::act), and [`bounds`](crate::PoolBuilder::bounds) |
//!
//! Both can be had: the advisor leaves the number of workers to the autoscaler then. In a pool with
//! a policy that chooses a worker, each worker has a mailbox whose size does not change, so there
//! the advisor never acts.
//!
//! # Price
//! One more measurement for each message that is measured, and a look at the queues a second.

use std::time::Duration;

use crate::SpawnError;

mod advice;
pub(crate) mod advising;
mod course;
mod figures;
mod finding;
mod period;
mod rules;
mod settings;
pub(super) mod task;

pub use super::inbox::Inbox;
pub use advice::{Advice, Edit, Proposal};
pub use figures::Figures;
pub use finding::Finding;
pub use settings::Advisor;

use super::autoscale::calm::Calm;
use course::{Course, Way};

/// For how long it is remembered how many messages waited: a day has its busy hours.
const REMEMBERED: Duration = Duration::from_secs(24 * 3600);

/// The state between two periods. Without clock, task or lock: a pool that is set up with
/// [`advise`](crate::PoolBuilder::advise) feeds it the figures of each period; for other pools,
/// whoever owns them can.
#[derive(Debug, Clone)]
pub struct Judge {
    settings: Advisor,
    /// For how many messages room was needed at a time, lately.
    peaks: Calm,
    course: Course,
}

impl Judge {
    /// A judge that has seen nothing.
    ///
    /// # Errors
    /// A setting out of range.
    pub fn new(settings: Advisor) -> Result<Self, SpawnError> {
        let settings = settings.checked()?;
        Ok(Self { settings, peaks: Calm::since(Duration::ZERO), course: Course::default() })
    }

    /// The settings.
    pub fn settings(&self) -> &Advisor {
        &self.settings
    }

    /// Looks at the figures of a period and says what they ask for. Where that is to be
    /// [acted](Advice::acted) upon, it takes for granted that it is.
    pub fn advise(&mut self, figures: &Figures) -> Advice {
        let finding = self.settings.finding(figures);
        let needed = match finding.way() {
            // Nobody knows how many would have come in. What is grown now is not taken away as soon
            // as it helps.
            Some(Way::Grow) => 2.0 * figures.capacity() as f64,
            _ => figures.most_waiting(),
        };
        self.peaks.add(figures.at, needed, REMEMBERED);
        let change = self.settings.proposal(finding, figures, self.peaks.peak());
        let finding = match change {
            // All of it was needed lately.
            None if finding == Finding::Roomy => Finding::Fine,
            _ => finding,
        };
        let way = finding.way().filter(|_| change.is_some());
        let acted = self.settings.acts && self.course.follow(way);
        Advice { finding, figures: *figures, change, acted }
    }
}

#[cfg(test)]
mod cases;
#[cfg(test)]
mod simulated;
