//! The rules, in their order, and the change that each asks for.

use super::{Advisor, Edit, Figures, Finding, Inbox, Proposal};
use crate::size::MAX_WORKERS;

/// If workers are busy for a smaller share of their time, messages do not wait for lack of workers.
const BUSY_ENOUGH: f64 = 0.5;

impl Advisor {
    /// The first finding that applies.
    pub(super) fn finding(&self, figures: &Figures) -> Finding {
        if figures.full_per_minute() > self.full_per_minute {
            return self.of_back_pressure(figures);
        }
        if figures.p99.is_some_and(|p99| p99 > self.p99) {
            return self.of_latency(figures);
        }
        if figures.utilisation < self.low_use && figures.is_used() {
            return Finding::Roomy;
        }
        Finding::Fine
    }

    fn of_back_pressure(&self, figures: &Figures) -> Finding {
        if figures.utilisation > self.high_use {
            Finding::Crowded
        } else if figures.room() < self.shallow as f64 {
            Finding::Shallow
        } else {
            Finding::SlowToDrain
        }
    }

    fn of_latency(&self, figures: &Figures) -> Finding {
        let long = figures.depth() > self.deep as f64 || figures.utilisation > self.deep_share;
        if long { Finding::LongQueue } else { Finding::SlowHandler }
    }

    /// The change, if it can be named and is within the limits. `most_waiting` messages waited at a
    /// time recently.
    pub(super) fn proposal(
        &self,
        finding: Finding,
        figures: &Figures,
        most_waiting: f64,
    ) -> Option<Proposal> {
        let inbox = match finding {
            Finding::Crowded | Finding::Shallow => self.grown(figures),
            Finding::LongQueue => self.shrunk(figures, 0.0),
            Finding::Roomy => self.shrunk(figures, most_waiting),
            Finding::SlowToDrain | Finding::SlowHandler | Finding::Fine => None,
        };
        let workers = if finding == Finding::LongQueue { more_workers(figures) } else { None };
        Proposal { inbox, workers }.if_any()
    }

    fn grown(&self, figures: &Figures) -> Option<Edit> {
        let (inbox, most) = (figures.inbox, self.most_queue / parts(figures));
        Edit::up(inbox.key(), inbox.messages(), inbox.messages().saturating_mul(2).min(most))
    }

    /// Half, if `enough` messages in total still fit.
    fn shrunk(&self, figures: &Figures, enough: f64) -> Option<Edit> {
        let inbox = figures.inbox;
        let least = self.least_queue.max(enough.ceil() as usize).div_ceil(parts(figures));
        Edit::down(inbox.key(), inbox.messages(), inbox.messages().div_ceil(2).max(least))
    }
}

/// The number of parts into which the total bound is divided.
fn parts(figures: &Figures) -> usize {
    match figures.inbox {
        Inbox::PerWorker(_) => figures.workers.max(1),
        Inbox::InAll(_) => 1,
    }
}

/// Half as many again: the service that they call may cope with that, but not with twice as many.
fn more_workers(figures: &Figures) -> Option<Edit> {
    if figures.busy < BUSY_ENOUGH {
        return None;
    }
    let (from, most) = (figures.workers, figures.most_workers.min(MAX_WORKERS));
    Edit::up("pool_size", from, from.saturating_add((from / 2).max(1)).min(most))
}
