//! Events that wait beside a pool, in order.
//!
//! ```text
//!            ┌─ the pool is full ────────────▶ one queue
//! event ─────┤
//!            └─ its key has as many as it may ▶ behind its key; later ones of that key too, and nobody else
//! ```

use std::collections::{HashMap, VecDeque};

use greenroom::{NotAccepted, TrySendError, pool::Permit};

use super::{
    intake::JobAddress,
    order_audit::Line,
    shared::{Job, Shared},
    worker::BusError,
};
use crate::dead_letter::Reason;

/// Room for one event in a pool, or why there will be none any more.
pub(super) type Room<'a> = Result<Permit<'a, Job, (), BusError>, NotAccepted>;

/// What waits beside one pool.
#[derive(Default)]
pub(super) struct Waiting {
    /// For room in the pool. None of these stands in a line of `behind`.
    queue: VecDeque<Job>,
    /// For room behind a key, by the line that they stand in. Never empty ones.
    behind: HashMap<Line, VecDeque<Job>>,
}

/// What follows for an event that a pool does not take.
enum Then {
    /// It waits for room in the pool.
    Waits,
    /// It waits for room behind its key.
    WaitsBehindKey,
    /// It is refused: its source may deliver it again.
    Refused,
    /// The pool takes nothing any more.
    Gone,
}

impl Then {
    fn of(why: NotAccepted) -> Self {
        match why {
            NotAccepted::Full => Self::Waits,
            NotAccepted::KeyFull => Self::WaitsBehindKey,
            NotAccepted::Parked => Self::Refused,
            _ => Self::Gone,
        }
    }
}

impl Waiting {
    pub(super) fn len(&self) -> usize {
        self.queue.len() + self.behind.values().map(VecDeque::len).sum::<usize>()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.behind.is_empty()
    }

    /// True where events wait for room in the pool.
    pub(super) fn wants_room(&self) -> bool {
        !self.queue.is_empty()
    }

    /// True where events wait for room behind their keys, of which nobody tells.
    pub(super) fn waits_behind_keys(&self) -> bool {
        !self.behind.is_empty()
    }

    pub(super) fn push(&mut self, job: Job) {
        let line = job.line.as_ref().and_then(|line| self.behind.get_mut(line));
        line.unwrap_or(&mut self.queue).push_back(job);
    }

    /// Hands over what there is room for.
    pub(super) fn feed(&mut self, shared: &Shared, pool: &JobAddress) {
        self.behind.retain(|_, jobs| feed_line(shared, pool, jobs));
        while !self.queue.is_empty() {
            let Err(why) = pool.try_send_many(&mut self.queue) else { continue };
            match Then::of(why) {
                Then::Waits => return,
                Then::WaitsBehindKey => self.set_first_aside(),
                Then::Refused => drop(self.queue.pop_front()),
                Then::Gone => self.queue.drain(..).for_each(|job| gone(shared, why, job)),
            }
        }
    }

    /// Hands the first of those that wait over, in the room that was reserved for it. The room must be used: given back, it
    /// would go to another input that waits for it, and from there back, for ever.
    pub(super) fn hand_over(&mut self, shared: &Shared, room: Room<'_>) {
        let Some(job) = self.queue.pop_front() else { return };
        let sent = match room {
            Ok(permit) => permit.send(job),
            Err(why) => return gone(shared, why, job),
        };
        let Err(error) = sent else { return };
        let why = error.without_message();
        let Some(job) = error.into_message() else { return };
        match Then::of(why) {
            Then::Waits => self.queue.push_front(job),
            Then::WaitsBehindKey => {
                self.queue.push_front(job);
                self.set_first_aside();
            }
            Then::Refused => drop(job),
            Then::Gone => gone(shared, why, job),
        }
    }

    /// The first, and those after it in its line, wait behind their key from here on.
    fn set_first_aside(&mut self) {
        let Some(line) = self.queue.front().and_then(|job| job.line.clone()) else { return };
        let (aside, rest) = self.queue.drain(..).partition(|job| job.line.as_ref() == Some(&line));
        self.queue = rest;
        self.behind.insert(line, aside);
    }
}

/// Hands over what there is room for behind a key. True while some are left.
fn feed_line(shared: &Shared, pool: &JobAddress, jobs: &mut VecDeque<Job>) -> bool {
    while let Some(job) = jobs.pop_front() {
        let Err(error) = pool.try_send(job) else { continue };
        let why = error.without_message();
        let Some(job) = TrySendError::into_message(error) else { continue };
        match Then::of(why) {
            Then::Waits | Then::WaitsBehindKey => {
                jobs.push_front(job);
                return true;
            }
            Then::Refused => drop(job),
            Then::Gone => gone(shared, why, job),
        }
    }
    false
}

/// A pool takes nothing any more: the event is a dead letter when its workers are gone, and refused by a stop.
pub(super) fn gone(shared: &Shared, why: NotAccepted, job: Job) {
    if why == NotAccepted::NoWorkers {
        let error = "every worker of its pool was disabled after too many restarts";
        shared.give_up(job, Reason::NoWorkers, error.to_owned());
    }
}
