//! The events of a child, and how the plan reacts.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    Fall, Moment, Plan, PlanNotice, PlannedChild,
    entry::{ChildEntry, Debut, Phase, Wish},
};
use crate::{
    ExitReason,
    supervisor::{
        child::{ChildExit, ChildId},
        report::SupervisorEnd,
        spec::OnExceeded,
    },
};

impl Plan {
    /// A child has ended by itself. A report of an earlier life, or one that crosses with an order
    /// to go down, changes nothing.
    pub(crate) fn exited(&mut self, exit: ChildExit, at: Moment) {
        let Some((place, entry)) = self.living(exit.child, exit.life) else {
            return self.notices.push(PlanNotice::Spent(exit.reason));
        };
        match entry.phase {
            Phase::Starting => entry.died = Some(exit.reason),
            Phase::Up => {
                let restarted_anyway = entry.wish == Wish::Cycle;
                entry.has_fallen(Fall::Suspend);
                self.decide(place, exit.reason, restarted_anyway, at);
            }
            _ => self.notices.push(PlanNotice::Spent(exit.reason)),
        }
    }

    /// A start has succeeded. A child may have ended again before this arrived.
    pub(crate) fn started(&mut self, child: ChildId, life: u64, at: Moment) {
        let Some((_, entry)) = self.living(child, life) else { return };
        if entry.phase != Phase::Starting {
            return;
        }
        entry.has_started();
        let died = entry.died.take();
        self.notices.push(PlanNotice::Up(child));
        if let Some(reason) = died {
            self.exited(ChildExit { child, life, reason }, at);
        }
    }

    /// A start has failed: the first one is an error, others are retried, at no charge.
    pub(crate) fn start_failed(&mut self, child: ChildId, life: u64, reason: String, at: Moment) {
        let Some((_, entry)) = self.living(child, life) else { return };
        if entry.phase != Phase::Starting {
            return;
        }
        entry.has_fallen(Fall::Suspend);
        if !entry.wants_up() {
            return;
        }
        match entry.debut {
            Some(Debut::Spawn) => {
                let name = entry.name();
                self.end_as(SupervisorEnd::StartFailed { child: name, reason });
            }
            Some(Debut::Added) => {
                entry.end_for_good();
                self.notices.push(PlanNotice::NotAdded { child, reason });
            }
            None => {
                let (child, after) = (entry.name(), entry.try_again(at));
                self.notices.push(PlanNotice::TriesAgain { child, after, reason });
            }
        }
    }

    /// An order to go down is done. A removed child is forgotten, and returned.
    pub(crate) fn fell(&mut self, child: ChildId, how: Fall) -> Option<PlannedChild> {
        let place = self.entries.iter().position(|entry| entry.member.id == child)?;
        self.entries[place].has_fallen(how);
        let forgotten = how == Fall::Stop && self.end.is_none();
        forgotten.then(|| self.entries.remove(place).member)
    }

    fn living(&mut self, child: ChildId, life: u64) -> Option<(usize, &mut ChildEntry)> {
        let mut entries = self.entries.iter_mut().enumerate();
        entries.find(|(_, entry)| entry.member.id == child && entry.life == life)
    }

    /// Decides on a child that has ended and is now down. If it was to go down and up again, that
    /// is not charged to its budget.
    fn decide(&mut self, place: usize, reason: ExitReason, restarted_anyway: bool, at: Moment) {
        let entry = &mut self.entries[place];
        if !entry.wants_up() {
            return self.notices.push(PlanNotice::Spent(reason));
        }
        if !entry.member.spec.rules.policy.starts_again(reason.is_normal()) {
            return self.ended(place, reason);
        }
        if restarted_anyway {
            return self.notices.push(PlanNotice::Spent(reason));
        }
        match entry.log.next(&entry.member.spec.rules.restarts, at.now, at.chance) {
            Some(after) => self.restart(place, reason, after, at.now),
            None => self.exceeded(place, reason),
        }
    }

    fn ended(&mut self, place: usize, reason: ExitReason) {
        let entry = &mut self.entries[place];
        entry.end_for_good();
        self.notices.push(PlanNotice::Ended { child: entry.name(), reason: reason.clone() });
        if entry.member.spec.rules.significant {
            let child = entry.name();
            self.end_as(SupervisorEnd::Significant { child, reason });
        }
    }

    fn restart(&mut self, place: usize, reason: ExitReason, after: Duration, now: Instant) {
        let child = self.entries[place].name();
        self.notices.push(PlanNotice::Restarts { child, after, reason });
        for affected in self.strategy.affected(place, self.entries.len()) {
            self.entries[affected].restart_with(now + after);
        }
        self.entries[place].in_line = self.strategy.in_order();
    }

    fn exceeded(&mut self, place: usize, reason: ExitReason) {
        let entry = &mut self.entries[place];
        self.notices.push(PlanNotice::Exceeded { child: entry.name(), reason: reason.clone() });
        match entry.member.spec.rules.on_exceeded {
            OnExceeded::DisableChild => entry.disable(),
            OnExceeded::StopSupervisor => {
                let child = entry.name();
                self.end_as(SupervisorEnd::Exceeded { child, reason });
            }
        }
    }
}
