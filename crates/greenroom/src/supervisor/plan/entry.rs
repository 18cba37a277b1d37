//! A child in a plan: its present state, and its intended one.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{
    member::PlannedChild,
    moment::Moment,
    order::{Fall, Order},
};
use crate::{
    ExitReason, RestartPolicy,
    pool::RestartLog,
    supervisor::info::{ChildInfo, ChildState},
};

/// The state of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Not at work; its queue is kept. Left by an order to start, or to go down further.
    Down,
    /// An order to start is in progress. Left when it has started or failed, or by an order to go
    /// down.
    Starting,
    /// At work. Left by its own exit, or by an order to go down.
    Up,
    /// An order to go down is in progress. Left when it is done, or by an order to go down further.
    Falling(Fall),
    /// Not at work, and refuses it. Otherwise like `Down`.
    Disabled,
    /// Stopped for good. Never left.
    Stopped,
}

/// The intended state of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// Up.
    Up,
    /// Down first, then up.
    Cycle,
    /// Down, with the whole supervisor.
    Down,
    /// Disabled.
    Off(Off),
    /// Stopped for good.
    Gone,
}

/// Why a child is disabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Off {
    /// Its budget is used up.
    Exceeded,
    /// It has ended, and its policy does not restart it.
    Ended,
}

/// A child that has not been up yet, and whose first start must not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Debut {
    /// Else the spawn fails.
    Spawn,
    /// Else it is not added.
    Added,
}

pub(super) struct ChildEntry {
    pub(super) member: PlannedChild,
    pub(super) phase: Phase,
    pub(super) wish: Wish,
    /// It goes down only after the later ones in line, and comes up only when the earlier ones in
    /// line are up and none is to go down any more.
    pub(super) in_line: bool,
    /// Whether the order to go down that is in progress must be repeated.
    pub(super) anew: bool,
    /// It is not started before this time.
    pub(super) not_before: Option<Instant>,
    /// Until it has been up.
    pub(super) debut: Option<Debut>,
    /// Counts orders to start, to detect late reports.
    pub(super) life: u64,
    /// How it ended while it was being started.
    pub(super) died: Option<ExitReason>,
    /// Starts that have failed in a row.
    pub(super) failures: u32,
    /// How often it was restarted.
    restarts: u64,
    /// Its own failures.
    pub(super) log: RestartLog,
}

impl ChildEntry {
    pub(super) fn new(member: PlannedChild, debut: Debut) -> Self {
        Self {
            member,
            phase: Phase::Down,
            wish: Wish::Up,
            in_line: true,
            anew: false,
            not_before: None,
            debut: Some(debut),
            life: 0,
            died: None,
            failures: 0,
            restarts: 0,
            log: RestartLog::default(),
        }
    }

    pub(super) fn name(&self) -> Arc<str> {
        self.member.name.clone()
    }

    /// Whether it is, or is meant to be, at work.
    pub(super) fn wants_up(&self) -> bool {
        matches!(self.wish, Wish::Up | Wish::Cycle)
    }

    /// It waits for its start.
    pub(super) fn is_to_start(&self) -> bool {
        self.wish == Wish::Up && matches!(self.phase, Phase::Down | Phase::Disabled)
    }

    /// How far it still has to go down, including an order under way.
    pub(super) fn pending_fall(&self) -> Option<Fall> {
        let fall = match self.wish {
            Wish::Up => return None,
            Wish::Cycle | Wish::Down => Fall::Suspend,
            Wish::Off(_) => Fall::Disable,
            Wish::Gone => Fall::Stop,
        };
        let reached = match self.phase {
            Phase::Starting | Phase::Up | Phase::Falling(_) => None,
            Phase::Down => Some(Fall::Suspend),
            Phase::Disabled => Some(Fall::Disable),
            Phase::Stopped => Some(Fall::Stop),
        };
        (reached < Some(fall)).then_some(fall)
    }

    /// Whether an order to go down this far is in progress.
    pub(super) fn is_falling(&self, fall: Fall) -> bool {
        matches!(self.phase, Phase::Falling(under_way) if under_way >= fall)
    }

    /// The child is now down to the level of `fall`.
    pub(super) fn has_fallen(&mut self, fall: Fall) {
        self.phase = match fall {
            Fall::Suspend => Phase::Down,
            Fall::Disable => Phase::Disabled,
            Fall::Stop => Phase::Stopped,
        };
        self.turn();
    }

    /// From going down to coming up.
    fn turn(&mut self) {
        if self.wish == Wish::Cycle {
            self.wish = Wish::Up;
        }
    }

    /// A new life.
    pub(super) fn start(&mut self) -> Order {
        self.phase = Phase::Starting;
        self.life += 1;
        Order::Start { child: self.member.id, life: self.life }
    }

    pub(super) fn has_started(&mut self) {
        self.phase = Phase::Up;
        self.failures = 0;
        self.not_before = None;
        if self.debut.take().is_none() {
            self.restarts += 1;
        }
    }

    /// Schedules another start. Returns the wait before it.
    pub(super) fn try_again(&mut self, at: Moment) -> Duration {
        self.failures = self.failures.saturating_add(1);
        let after = self.member.spec.rules.restarts.backoff.wait(self.failures, at.chance);
        self.not_before = Some(at.now + after);
        after
    }

    /// It is restarted together with another child. A child that is never restarted ends here.
    pub(super) fn restart_with(&mut self, at: Instant) {
        if !self.wants_up() {
            return;
        }
        if self.member.spec.rules.policy == RestartPolicy::Temporary && self.debut.is_none() {
            self.end_for_good();
        } else {
            if self.phase == Phase::Up || self.phase == Phase::Starting {
                self.wish = Wish::Cycle;
            }
            self.not_before = self.not_before.max(Some(at));
        }
        self.in_line = true;
    }

    /// It has ended and is not restarted. A child that had been added later is forgotten.
    pub(super) fn end_for_good(&mut self) {
        self.wish = if self.member.added { Wish::Gone } else { Wish::Off(Off::Ended) };
        self.in_line = false;
    }

    pub(super) fn disable(&mut self) {
        self.wish = Wish::Off(Off::Exceeded);
        self.in_line = false;
    }

    pub(super) fn enable(&mut self, in_line: bool) {
        self.wish = Wish::Up;
        self.in_line = in_line;
        self.not_before = None;
        self.failures = 0;
        self.log = RestartLog::default();
    }

    /// The supervisor ends.
    pub(super) fn fall_with_all(&mut self, fall: Fall) {
        self.in_line = true;
        self.wish = match (fall, self.wish) {
            (Fall::Stop, _) | (_, Wish::Gone) => Wish::Gone,
            (_, off @ Wish::Off(_)) => off,
            _ => Wish::Down,
        };
    }

    pub(super) fn info(&self) -> ChildInfo {
        let state = match (self.wish, self.phase) {
            (Wish::Up, Phase::Up) => ChildState::Running,
            (Wish::Up | Wish::Cycle, _) if self.debut.is_some() => ChildState::Starting,
            (Wish::Up | Wish::Cycle, _) => ChildState::Restarting,
            (Wish::Off(Off::Exceeded), _) => ChildState::Disabled,
            (Wish::Off(Off::Ended) | Wish::Down | Wish::Gone, _) => ChildState::Stopped,
        };
        ChildInfo { id: self.member.id, name: self.name(), state, restarts: self.restarts }
    }
}
