//! The state that a supervisor's handle, its own supervisor and its run share: the plan, which
//! outlives the runs, and the waiting callers.

use std::sync::Arc;

use greenroom_queue::discard::discard;
use greenroom_queue::lock::Mutex;
use tokio::sync::{Notify, oneshot, watch};

use super::{
    change::Change,
    child::ChildId,
    error::ChildError,
    plan::{Fall, Moment, Plan, PlannedChild},
    report::{ChildStop, SupervisorEnd, SupervisorReport},
    spec::ChildSpec,
    strategy::Strategy,
    terms::Terms,
    waiting::{Callers, Waiting},
};
use crate::{Stop, chance::Chance, pool::StopSummary};

pub(crate) struct Keeper {
    pub(super) name: Arc<str>,
    /// Locked only briefly. No user code runs under the lock: values that may contain user code are
    /// dropped, shown and woken after it.
    pub(super) state: Mutex<State>,
    /// Notified when the run should look at the state.
    pub(super) changed: Notify,
}

pub(super) struct State {
    pub(super) plan: Plan,
    pub(super) chance: Chance,
    /// The id of the next child.
    next: u64,
    /// Whether a run carries the plan out. Set by `begin`, cleared by the end of the run.
    runs: bool,
    /// Closed when the run has ended, after the state was changed.
    gone: watch::Receiver<()>,
    /// The terms on which children go down in this run.
    pub(super) terms: Terms,
    /// Callers that wait for children to come up or to be gone.
    pub(super) waiting: Waiting,
    /// The caller that waits until all children have been up.
    pub(super) boot: Option<oneshot::Sender<Result<(), SupervisorEnd>>>,
    /// Children that have stopped in this run, in that order.
    pub(super) stops: Vec<ChildStop>,
    /// The report, once it has stopped for good.
    report: Option<Arc<SupervisorReport>>,
}

impl Keeper {
    pub(super) fn new(
        name: Arc<str>,
        mut plan: Plan,
        chance: Chance,
        specs: Vec<ChildSpec>,
    ) -> Self {
        let next = specs.len() as u64 + 1;
        let members = (1..).zip(specs);
        plan.start_with(members.map(|(id, spec)| PlannedChild::new(ChildId(id), spec, false)));
        let state = State {
            plan,
            chance,
            next,
            runs: false,
            gone: watch::channel(()).1,
            terms: Terms::default(),
            waiting: Waiting::default(),
            boot: None,
            stops: Vec::new(),
            report: None,
        };
        Self { name, state: Mutex::new(state), changed: Notify::new() }
    }

    /// Changes the children, if there is a run, and notifies it.
    pub(super) fn change<T>(
        &self,
        act: impl FnOnce(&mut State) -> Result<Change<T>, ChildError>,
    ) -> Result<Change<T>, ChildError> {
        let mut state = self.state.lock();
        let begun = match state.runs {
            true => act(&mut state),
            false => Err(ChildError::NotRunning),
        };
        drop(state);
        self.changed.notify_one();
        begun
    }

    /// Ends the run on these terms, if there is one.
    pub(super) fn go_down(&self, how: Stop, fall: fn(&mut Plan)) {
        let mut state = self.state.lock();
        if state.runs {
            state.go_down(how, fall);
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Returns once there is no run.
    pub(super) async fn gone(&self) {
        let mut gone = self.state.lock().gone.clone();
        while gone.changed().await.is_ok() {}
    }

    /// The report, once it has stopped for good.
    pub(super) fn report(&self) -> Option<Arc<SupervisorReport>> {
        self.state.lock().report.clone()
    }

    /// Begins a run, unless there is one or it has stopped for good.
    pub(super) fn begin(self: &Arc<Self>, first: impl FnOnce(&mut State)) -> Option<Run> {
        let mut state = self.state.lock();
        if state.runs || state.report.is_some() {
            return None;
        }
        let (alive, gone) = watch::channel(());
        (state.runs, state.gone, state.terms) = (true, gone, Terms::default());
        first(&mut state);
        Some(Run { keeper: self.clone(), ended: false, _alive: alive })
    }

    /// Ends the run. Reports that to a caller that waits for the start, or else returns its reason.
    ///
    /// # Errors
    /// Another order has come since the run saw that it was over: it must continue.
    fn end(&self) -> Result<Option<SupervisorEnd>, NotOver> {
        let mut state = self.state.lock();
        if !state.plan.is_over() {
            return Err(NotOver);
        }
        state.runs = false;
        let end = state.plan.end().cloned().unwrap_or(SupervisorEnd::Stopped);
        let children = std::mem::take(&mut state.stops);
        if state.plan.stops() {
            state.report = Some(Arc::new(SupervisorReport { end: end.clone(), children }));
        }
        let boot = state.boot.take();
        let rest = (state.plan.renew(), std::mem::take(&mut state.waiting));
        drop(state);
        discard(rest);
        let Some(boot) = boot else { return Ok(Some(end)) };
        let _ = boot.send(Err(end));
        Ok(None)
    }
}

/// A run that carries the plan out. If it is dropped before its end, its runtime was shut down: the
/// supervisor has stopped for good, and releases its children.
pub(super) struct Run {
    pub(super) keeper: Arc<Keeper>,
    ended: bool,
    /// Dropped last: a caller that waits for it then finds the end in the state.
    _alive: watch::Sender<()>,
}

impl Run {
    /// Like [`Keeper::end`].
    pub(super) fn end(&mut self) -> Result<Option<SupervisorEnd>, NotOver> {
        let end = self.keeper.end()?;
        self.ended = true;
        Ok(end)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let mut state = self.keeper.state.lock();
        state.runs = false;
        state.report = Some(Arc::new(SupervisorReport::empty()));
        let plan = std::mem::replace(&mut state.plan, Plan::new(Strategy::OneForOne, Fall::Stop));
        let rest = (plan, std::mem::take(&mut state.waiting), state.boot.take());
        drop(state);
        discard(rest);
    }
}

/// The run still has something to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotOver;

impl State {
    /// A child has stopped for good. Returns the callers that wait for that.
    pub(super) fn stopped(
        &mut self,
        child: ChildId,
        summary: Option<StopSummary>,
    ) -> Callers<StopSummary> {
        if self.plan.end().is_some() {
            let name = self.plan.name_of(child);
            self.stops.push(ChildStop { id: child, name, summary });
        }
        self.waiting.gone(child)
    }

    pub(super) fn go_down(&mut self, how: Stop, fall: fn(&mut Plan)) {
        let terms = self.terms.with(how);
        if terms != self.terms {
            self.terms = terms;
            self.plan.give_falls_anew();
        }
        fall(&mut self.plan);
    }

    /// Takes the spec, if there is a run.
    pub(super) fn add(&mut self, spec: &mut Option<ChildSpec>) -> Result<Change<()>, ChildError> {
        self.plan.still_going()?;
        let id = ChildId(self.next);
        self.next += 1;
        if let Some(spec) = spec.take() {
            self.plan.add(PlannedChild::new(id, spec, true));
        }
        Ok(self.waiting.for_up(id))
    }

    pub(super) fn moment(&mut self) -> Moment {
        Moment { now: tokio::time::Instant::now(), chance: self.chance.fraction() }
    }
}
