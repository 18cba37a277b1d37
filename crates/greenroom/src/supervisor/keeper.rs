//! A supervisor between its runs: a nested one goes down and comes up again,
//! with the same children.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use greenroom_queue::discard::discard;
use greenroom_queue::lock::Mutex;
use tokio::sync::{mpsc, oneshot, watch};

use super::{
    chance::Chance,
    child::{ChildId, ExitReporter},
    error::{ChildError, SupervisorError},
    info::ChildInfo,
    kept::KeptChild,
    plan::{Fall, Plan, PlannedChild},
    report::{SupervisorEnd, SupervisorReport},
    runner::{Command, Finished, Runner},
    spec::ChildSpec,
    strategy::Strategy,
};
use crate::Stop;

pub(crate) struct Keeper {
    pub(crate) name: Arc<str>,
    strategy: Strategy,
    /// What its own end is for its children.
    last_fall: Fall,
    /// Each run takes its seed from here.
    chance: Mutex<Chance>,
    /// The id of the next child.
    next: AtomicU64,
    state: Mutex<State>,
}

/// Left by the first start or stop, by the end of the run, and by nothing.
enum State {
    Down(Vec<KeptChild>),
    Up(Link),
    Stopped(Arc<SupervisorReport>),
}

/// To a run.
#[derive(Clone)]
struct Link {
    commands: mpsc::UnboundedSender<Command>,
    plan: Arc<Mutex<Plan>>,
    /// Closed when the run has ended, after the state was changed.
    gone: watch::Receiver<()>,
}

impl Link {
    async fn gone(&self) {
        let mut gone = self.gone.clone();
        while gone.changed().await.is_ok() {}
    }

    /// The run has ended without a report: its runtime was shut down.
    fn is_lost(&self) -> bool {
        self.gone.has_changed().is_err()
    }
}

impl Keeper {
    pub(crate) fn new(
        name: Arc<str>,
        strategy: Strategy,
        last_fall: Fall,
        chance: Chance,
        specs: Vec<ChildSpec>,
    ) -> Arc<Self> {
        let next = AtomicU64::new(specs.len() as u64 + 1);
        let kept = specs.into_iter().zip(1..).map(|(spec, id)| KeptChild {
            id: ChildId(id),
            added: false,
            spec,
        });
        let state = Mutex::new(State::Down(kept.collect()));
        Arc::new(Self { name, strategy, last_fall, chance: Mutex::new(chance), next, state })
    }

    pub(crate) fn next_id(&self) -> ChildId {
        ChildId(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Starts the children in order. If one does not start, the others are down
    /// again when this returns.
    ///
    /// # Cancel safety
    /// A dropped future leaves the start under way.
    pub(crate) async fn start(
        self: &Arc<Self>,
        exits: Option<ExitReporter>,
    ) -> Result<(), SupervisorError> {
        let (boot, booted) = oneshot::channel();
        self.begin(|runner| runner.tell_boot(boot), exits);
        let ended = booted.await.unwrap_or(Err(SupervisorEnd::Stopped));
        ended.map_err(SupervisorError::from)
    }

    /// A run, if it is down.
    fn begin(self: &Arc<Self>, first: impl FnOnce(&mut Runner), exits: Option<ExitReporter>) {
        let mut state = self.state.lock();
        let State::Down(kept) = &mut *state else { return };
        let kept = std::mem::take(kept);
        let plan = Arc::new(Mutex::new(self.plan(&kept)));
        let (commands, inbox) = mpsc::unbounded_channel();
        let (alive, gone) = watch::channel(());
        let chance = Chance::new(Some(self.chance.lock().next().to_bits()));
        let mut runner = Runner::new(self.name.clone(), plan.clone(), kept, inbox, chance);
        *state = State::Up(Link { commands, plan, gone });
        drop(state);
        first(&mut runner);
        let keeper = self.clone();
        tokio::spawn(async move {
            let _alive = alive;
            keeper.settle(runner.run().await, exits);
        });
    }

    fn plan(&self, kept: &[KeptChild]) -> Plan {
        let members = kept.iter().map(|kept| PlannedChild {
            id: kept.id,
            name: kept.spec.child.name(),
            rules: kept.spec.rules,
            added: kept.added,
        });
        Plan::new(self.strategy, self.last_fall, members)
    }

    /// A run has ended. Its starter is told once: by the error of the start, or by an exit.
    fn settle(&self, finished: Finished, exits: Option<ExitReporter>) {
        let end = finished.report.end.clone();
        let state = match finished.stopped {
            true => State::Stopped(Arc::new(finished.report)),
            false => State::Down(finished.kept),
        };
        // Dropped when the lock is not held any more: a reason may hold an error of a user.
        let former = std::mem::replace(&mut *self.state.lock(), state);
        discard(former);
        if let Some(boot) = finished.boot {
            let _ = boot.send(Err(end));
        } else if let (Some(exits), Some(reason)) = (exits, end.exit_reason()) {
            exits.report(reason);
        }
    }

    /// The run, if there is one.
    fn link(&self) -> Option<Link> {
        match &*self.state.lock() {
            State::Up(link) => Some(link.clone()),
            State::Down(_) | State::Stopped(_) => None,
        }
    }

    /// Tells the run, if there is one.
    pub(crate) fn tell(&self, command: Command) {
        if let Some(link) = self.link() {
            let _ = link.commands.send(command);
        }
    }

    /// Asks the run, which answers at once.
    pub(crate) async fn ask<T>(
        &self,
        question: impl FnOnce(oneshot::Sender<Result<T, ChildError>>) -> Command,
    ) -> Result<T, ChildError> {
        let (sender, answer) = oneshot::channel();
        self.tell(question(sender));
        answer.await.unwrap_or(Err(ChildError::NotRunning))
    }

    pub(crate) fn children(&self) -> Vec<ChildInfo> {
        self.link().map(|link| link.plan.lock().children()).unwrap_or_default()
    }

    /// Goes down, and keeps the children.
    pub(crate) async fn suspend(&self, patience: Duration) {
        if let Some(link) = self.link() {
            let _ = link.commands.send(Command::Suspend(patience));
            link.gone().await;
        }
    }

    /// Goes down, and disables the children, the last one first.
    pub(crate) async fn disable(&self, patience: Duration) {
        self.suspend(patience).await;
        let children: Vec<_> = match &*self.state.lock() {
            State::Down(kept) => kept.iter().map(|kept| kept.spec.child.clone()).collect(),
            State::Up(_) | State::Stopped(_) => Vec::new(),
        };
        for child in children.into_iter().rev() {
            child.disable(patience).await;
        }
    }

    /// Stops for good. The run goes on stopping when the future is dropped.
    pub(crate) async fn stop(self: &Arc<Self>, how: Stop) -> Arc<SupervisorReport> {
        loop {
            if let Some(report) = self.report() {
                return report;
            }
            self.begin(|runner| runner.obey(Command::Stop(how)), None);
            self.tell(Command::Stop(how));
            self.gone().await;
        }
    }

    /// Returns when there is no run.
    pub(crate) async fn gone(&self) {
        if let Some(link) = self.link() {
            link.gone().await;
        }
    }

    /// How it ended, once it has stopped for good.
    pub(crate) fn report(&self) -> Option<Arc<SupervisorReport>> {
        match &*self.state.lock() {
            State::Stopped(report) => Some(report.clone()),
            State::Up(link) if link.is_lost() => Some(Arc::new(SupervisorReport::empty())),
            State::Down(_) | State::Up(_) => None,
        }
    }
}
