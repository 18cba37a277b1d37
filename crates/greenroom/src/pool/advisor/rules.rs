//! The rules, in their order, and what each asks for.

use std::fmt;

use super::{
    Advisor, Edit, Figures, Inbox, Proposal,
    course::Way::{self, Grow, Shrink},
};
use crate::pool::roster::MAX_WORKERS;

/// Where workers are busy for a smaller part of their time, messages do not wait for want of workers.
const BUSY_ENOUGH: f64 = 0.5;

/// What was found, and what that asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Finding {
    /// 1: back-pressure, and the inbox is mostly used. Grow it.
    Crowded,
    /// 1: back-pressure, and the inbox is shallow. Grow it.
    Shallow,
    /// 1: back-pressure, although the inbox is deep and not mostly used. Look at the handler's speed.
    SlowToDrain,
    /// 2: messages take long, and wait in a long queue. Shrink the inbox and add workers.
    LongQueue,
    /// 2: messages take long, without a long queue. Optimise the handler.
    SlowHandler,
    /// 3: the inbox is hardly used. Shrink it.
    Roomy,
    /// 3: fine as it is.
    Fine,
}

impl Finding {
    /// Which of the three rules it is part of.
    pub fn number(self) -> u8 {
        match self {
            Self::Crowded | Self::Shallow | Self::SlowToDrain => 1,
            Self::LongQueue | Self::SlowHandler => 2,
            Self::Roomy | Self::Fine => 3,
        }
    }

    /// What it does with the inbox.
    pub(super) fn way(self) -> Option<Way> {
        match self {
            Self::Crowded | Self::Shallow => Some(Grow),
            Self::LongQueue | Self::Roomy => Some(Shrink),
            Self::SlowToDrain | Self::SlowHandler | Self::Fine => None,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Crowded => "the inbox is too small: grow it",
            Self::Shallow => "bursts do not fit into the inbox: grow it",
            Self::SlowToDrain => "bursts fill a deep inbox: look at the handler's speed",
            Self::LongQueue => "messages wait in a long queue: shrink the inbox and add workers",
            Self::SlowHandler => "messages take long without a queue: optimise the handler",
            Self::Roomy => "the inbox is larger than is needed: shrink it",
            Self::Fine => "fine as it is",
        })
    }
}

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

    /// What to change, where that can be said and is within the limits. So many messages waited at a time lately.
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
        let (inbox, workers) = (figures.inbox, figures.workers.max(1));
        let most = match inbox {
            Inbox::PerWorker(_) => self.most_inbox.min(self.most_queue / workers),
            Inbox::InAll(_) => self.most_inbox.saturating_mul(workers).min(self.most_queue),
        };
        let to = inbox.messages().saturating_mul(2).min(most);
        Edit::up(inbox.key(), inbox.messages(), to)
    }

    /// Half, where that is enough for so many messages in all.
    fn shrunk(&self, figures: &Figures, enough: f64) -> Option<Edit> {
        let (inbox, workers) = (figures.inbox, figures.workers.max(1));
        let (least, enough) = match inbox {
            Inbox::PerWorker(_) => {
                let least = self.least_inbox.max(self.least_queue.div_ceil(workers));
                (least, enough / workers as f64)
            }
            Inbox::InAll(_) => {
                (self.least_inbox.saturating_mul(workers).max(self.least_queue), enough)
            }
        };
        let to = inbox.messages().div_ceil(2).max(enough.ceil() as usize).max(least);
        Edit::down(inbox.key(), inbox.messages(), to)
    }
}

/// Half as many again: what they call may bear that, where it could not bear the double.
fn more_workers(figures: &Figures) -> Option<Edit> {
    if figures.busy < BUSY_ENOUGH {
        return None;
    }
    let (from, most) = (figures.workers, figures.most_workers.min(MAX_WORKERS));
    Edit::up("pool_size", from, from.saturating_add((from / 2).max(1)).min(most))
}
