//! The decisions of a supervisor, without clock, task or lock: it receives events with their times,
//! and answers with orders.
//!
//! Restarts overlap. While one is in progress, another child fails, one is removed, or the
//! supervisor is stopped. A list of steps for each would have to be changed halfway, so there is
//! none. Each child has a [`Phase`] (its present state) and a [`Wish`] (its intended state). Events
//! change these, and the orders are the difference between the two, as far as the order of the
//! children allows:
//!
//! ```text
//!            a      b        c        d
//! all up     Up     Up       Up       Up
//! b fails    Up     Down↑    Up⟲      Up⟲      RestForOne: c and d are to go down and up again; b waits for that
//! orders     ·      ·        ·        suspend  the last one first, one at a time
//!            ·      ·        suspend  ·
//!            ·      start    ·        ·        then in start order, when the backoff is over
//!            ·      ·        start    ·
//!            ·      ·        ·        start
//! ```
//!
//! | during a restart | then |
//! |---|---|
//! | another one fails that is to be restarted anyway | it counts as down already; nothing is charged to its budget |
//! | another one fails that is not | the two restarts become one |
//! | a start fails | it is retried with backoff, forever; later ones in line wait |
//! | a child is removed, or disabled | the others do not wait for it |
//! | the supervisor is to end | whatever is under way is given up; all go down, the last one first |
//!
//! The price: each event visits all children, so a supervisor is for tens or hundreds of them. For
//! thousands of equal children, use pools.

use std::sync::Arc;

use tokio::time::Instant;

use super::{
    child::{Child, ChildId},
    error::ChildError,
    info::ChildInfo,
    report::SupervisorEnd,
    spec::ChildSpec,
    strategy::Strategy,
};

mod entry;
mod happened;
#[cfg(test)]
mod late;
mod member;
mod moment;
mod order;
mod orders;
#[cfg(test)]
mod random;
#[cfg(test)]
mod tables;
#[cfg(test)]
mod tests;

use self::entry::{ChildEntry, Debut, Phase, Wish};
pub(crate) use self::{
    member::PlannedChild,
    moment::Moment,
    order::{Fall, Order, PlanNotice},
};

/// Everything that a supervisor knows about its children.
pub(crate) struct Plan {
    strategy: Strategy,
    /// In start order.
    entries: Vec<ChildEntry>,
    /// Why it ends, once it does.
    end: Option<SupervisorEnd>,
    /// The effect of its end on its children. A root stops them; a nested supervisor suspends them,
    /// as it may be restarted, unless it is ordered to stop.
    last_fall: Fall,
    /// All children have been up once.
    booted: bool,
    /// Notices for callers and logs, in order.
    notices: Vec<PlanNotice>,
}

impl Plan {
    pub(crate) fn new(strategy: Strategy, last_fall: Fall) -> Self {
        let (entries, notices) = (Vec::new(), Vec::new());
        Self { strategy, entries, end: None, last_fall, booted: false, notices }
    }

    /// The children to start first.
    pub(crate) fn start_with(&mut self, members: impl IntoIterator<Item = PlannedChild>) {
        let entries = members.into_iter().map(|member| ChildEntry::new(member, Debut::Spawn));
        self.entries.extend(entries);
    }

    /// A plan for the next run, with the children that can be started again. Returns the former
    /// plan and the other children.
    pub(crate) fn renew(&mut self) -> (Self, Vec<PlannedChild>) {
        let mut former = std::mem::replace(self, Self::new(self.strategy, self.last_fall));
        let entries = std::mem::take(&mut former.entries).into_iter();
        let (gone, kept): (Vec<_>, Vec<_>) =
            entries.partition(|entry| entry.phase == Phase::Stopped);
        self.start_with(kept.into_iter().map(|entry| entry.member));
        (former, gone.into_iter().map(|entry| entry.member).collect())
    }

    /// Adds a child after all others, in a supervisor that is [going](Self::still_going).
    pub(crate) fn add(&mut self, member: PlannedChild) {
        let mut entry = ChildEntry::new(member, Debut::Added);
        entry.in_line = self.strategy.in_order();
        self.entries.push(entry);
    }

    /// Stops a child for good. The others do not wait for it.
    pub(crate) fn remove(&mut self, id: ChildId) -> Result<(), ChildError> {
        self.still_going()?;
        let entry = self.find(id).ok_or(ChildError::Unknown(id))?;
        entry.wish = Wish::Gone;
        entry.in_line = false;
        Ok(())
    }

    /// Brings back a child that was disabled or has ended, with a fresh budget.
    pub(crate) fn enable(&mut self, id: ChildId) -> Result<(), ChildError> {
        self.still_going()?;
        let in_order = self.strategy.in_order();
        let entry = self.find(id).ok_or(ChildError::Unknown(id))?;
        match entry.wish {
            Wish::Off(_) => entry.enable(in_order),
            Wish::Gone => return Err(ChildError::Unknown(id)),
            _ => return Err(ChildError::NotDisabled(id)),
        }
        if entry.phase == Phase::Up {
            self.notices.push(PlanNotice::Up(id));
        }
        Ok(())
    }

    /// The supervisor stops for good.
    pub(crate) fn stop(&mut self) {
        self.last_fall = Fall::Stop;
        self.end_as(SupervisorEnd::Stopped);
    }

    /// The supervisor goes down, and may come up again.
    pub(crate) fn suspend(&mut self) {
        self.end_as(SupervisorEnd::Stopped);
    }

    /// The deadline has passed: all children that are not down go down now, in no order.
    pub(crate) fn hurry(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.in_line = false);
    }

    /// Repeats orders to go down that are in progress, on new terms.
    pub(crate) fn give_falls_anew(&mut self) {
        for entry in &mut self.entries {
            entry.anew = matches!(entry.phase, Phase::Falling(_));
        }
    }

    /// All go down, the last one first. The first reason is kept; a stop turns a suspension into a
    /// stop.
    fn end_as(&mut self, end: SupervisorEnd) {
        self.end.get_or_insert(end);
        for entry in &mut self.entries {
            entry.fall_with_all(self.last_fall);
        }
    }

    pub(crate) fn still_going(&self) -> Result<(), ChildError> {
        self.end.is_none().then_some(()).ok_or(ChildError::NotRunning)
    }

    fn find(&mut self, id: ChildId) -> Option<&mut ChildEntry> {
        self.entries.iter_mut().find(|entry| entry.member.id == id)
    }

    /// Why it ends, if it does.
    pub(crate) fn end(&self) -> Option<&SupervisorEnd> {
        self.end.as_ref()
    }

    /// It ends, and all children are down.
    pub(crate) fn is_over(&self) -> bool {
        self.end.is_some() && self.entries.iter().all(|entry| entry.pending_fall().is_none())
    }

    /// Children that are not down yet count as down, and are returned.
    pub(crate) fn give_up(&mut self) -> Vec<ChildId> {
        let mut given_up = Vec::new();
        for entry in self.entries.iter_mut().rev() {
            if let Some(fall) = entry.pending_fall() {
                entry.has_fallen(fall);
                given_up.push(entry.member.id);
            }
        }
        given_up
    }

    fn entry(&self, id: ChildId) -> Option<&ChildEntry> {
        self.entries.iter().find(|entry| entry.member.id == id)
    }

    pub(crate) fn spec(&self, id: ChildId) -> Option<&ChildSpec> {
        self.entry(id).map(|entry| &entry.member.spec)
    }

    /// The child is up, or on its way.
    pub(crate) fn wants_up(&self, id: ChildId) -> bool {
        self.entry(id).is_some_and(ChildEntry::wants_up)
    }

    /// The name of a child. Empty if it was forgotten.
    pub(crate) fn name_of(&self, id: ChildId) -> Arc<str> {
        self.entry(id).map(ChildEntry::name).unwrap_or_default()
    }

    /// Its end is for good.
    pub(crate) fn stops(&self) -> bool {
        self.last_fall == Fall::Stop
    }

    /// The children themselves, in start order.
    pub(crate) fn handles(&self) -> Vec<Arc<dyn Child>> {
        self.entries.iter().map(|entry| entry.member.spec.child.clone()).collect()
    }

    /// The children in start order.
    pub(crate) fn children(&self) -> Vec<ChildInfo> {
        self.entries.iter().map(ChildEntry::info).collect()
    }

    /// The notices since the last query.
    pub(crate) fn notices(&mut self) -> Vec<PlanNotice> {
        std::mem::take(&mut self.notices)
    }

    /// The earliest due time of a child that only waits for its time to start.
    pub(crate) fn next_due(&self, now: Instant) -> Option<Instant> {
        let waiting = self.entries.iter().filter(|entry| entry.is_to_start());
        waiting.filter_map(|entry| entry.not_before).filter(|at| *at > now).min()
    }
}
