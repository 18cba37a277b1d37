//! The one task of a supervisor: receives events, tells the plan, and has its orders carried out.
//!
//! It never waits for a child, so it answers at once even if its children do not. It ends
//! when the plan is over.

use std::{collections::HashMap, sync::Arc, time::Duration};

use greenroom_queue::lock::Mutex;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};

use super::{
    chance::Chance,
    change::Change,
    child::{ChildExit, ChildId, ExitReporter},
    error::ChildError,
    hands::{Hands, OrderOutcome},
    kept::KeptChild,
    plan::{Fall, Moment, Order, Plan, PlannedChild},
    report::{ChildStop, SupervisorEnd, SupervisorReport},
    spec::ChildSpec,
    terms::{Terms, sleep_until},
    waiting::Waiting,
};
use crate::{Stop, pool::StopSummary};

mod told;

/// How long after the deadline a child may take to end at once: twice what a pool takes.
const LET_GO: Duration = Duration::from_secs(1);

/// What a running supervisor can be told.
pub(crate) enum Command {
    /// The id is new.
    Add(ChildId, ChildSpec, oneshot::Sender<Result<Change<()>, ChildError>>),
    Remove(ChildId, oneshot::Sender<Result<Change<StopSummary>, ChildError>>),
    Enable(ChildId, oneshot::Sender<Result<Change<()>, ChildError>>),
    Stop(Stop),
    /// Go down, and keep the children for another start.
    Suspend(Duration),
}

pub(crate) struct Runner {
    /// What logs call the supervisor.
    name: Arc<str>,
    /// Also read by the handle, for its list of children. Locked for a moment; no user
    /// code runs meanwhile.
    plan: Arc<Mutex<Plan>>,
    /// All children that the plan knows.
    children: HashMap<ChildId, ChildSpec>,
    hands: Hands,
    commands: mpsc::UnboundedReceiver<Command>,
    exits: Exits,
    /// On what terms children go down.
    terms: watch::Sender<Terms>,
    /// The deadline has passed.
    late: bool,
    /// Callers that wait for children to come up or to go.
    waiting: Waiting,
    /// The caller that waits until all children have been up.
    boot: Option<oneshot::Sender<Result<(), SupervisorEnd>>>,
    /// Children that have stopped, in that order.
    stops: Vec<ChildStop>,
    chance: Chance,
}

/// Where children report their exits.
struct Exits {
    told: mpsc::UnboundedReceiver<ChildExit>,
    /// Given to each child that is started.
    reports: mpsc::UnboundedSender<ChildExit>,
}

/// The rest of a supervisor that has gone down.
pub(crate) struct Finished {
    /// The children that can be started again, in start order.
    pub(crate) kept: Vec<KeptChild>,
    pub(crate) report: SupervisorReport,
    /// It has stopped for good.
    pub(crate) stopped: bool,
    /// The caller that still waits until all children have been up.
    pub(crate) boot: Option<oneshot::Sender<Result<(), SupervisorEnd>>>,
}

impl Runner {
    pub(crate) fn new(
        name: Arc<str>,
        plan: Arc<Mutex<Plan>>,
        kept: Vec<KeptChild>,
        commands: mpsc::UnboundedReceiver<Command>,
        chance: Chance,
    ) -> Self {
        let (reports, told) = mpsc::unbounded_channel();
        Self {
            name,
            plan,
            children: kept.into_iter().map(|kept| (kept.id, kept.spec)).collect(),
            hands: Hands::new(),
            commands,
            exits: Exits { told, reports },
            terms: watch::Sender::new(Terms::default()),
            late: false,
            waiting: Waiting::default(),
            boot: None,
            stops: Vec::new(),
            chance,
        }
    }

    /// Tells when all children have been up, or why it ended before.
    pub(crate) fn tell_boot(&mut self, boot: oneshot::Sender<Result<(), SupervisorEnd>>) {
        self.boot = Some(boot);
    }

    /// Runs until all children are down.
    pub(crate) async fn run(mut self) -> Finished {
        loop {
            self.carry_out();
            if self.plan.lock().is_over() {
                return self.finish();
            }
            self.hear().await;
        }
    }

    fn carry_out(&mut self) {
        let (orders, notices) = {
            let mut plan = self.plan.lock();
            (plan.orders(Instant::now()), plan.notices())
        };
        notices.into_iter().for_each(|notice| self.tell(notice));
        orders.into_iter().for_each(|order| self.give(order));
        let plan = self.plan.clone();
        self.waiting.forget_overtaken(|child| plan.lock().wants_up(child));
    }

    fn give(&mut self, order: Order) {
        match order {
            Order::Start { child, life } => {
                let Some(spec) = self.children.get(&child) else { return };
                let exits = ExitReporter::new(child, life, self.exits.reports.clone());
                self.hands.start(child, life, spec.child.clone(), exits);
            }
            Order::Fall { child, how } => {
                let Some(spec) = self.children.get(&child) else { return };
                let terms = self.terms.subscribe();
                self.hands.fall(child, how, spec.child.clone(), spec.stop, terms);
            }
        }
    }

    async fn hear(&mut self) {
        let alarm = self.alarm();
        tokio::select! {
            biased;
            (child, outcome) = self.hands.next() => self.done(child, outcome),
            Some(exit) = self.exits.told.recv() => {
                let at = self.moment();
                self.plan.lock().exited(exit, at);
            }
            Some(command) = self.commands.recv() => self.obey(command),
            () = sleep_until(alarm) => self.look_at_the_clock(),
        }
    }

    fn moment(&mut self) -> Moment {
        Moment { now: Instant::now(), chance: self.chance.next() }
    }

    /// When a child is due to start, or the time to go down is over.
    fn alarm(&self) -> Option<Instant> {
        let grace = if self.late { LET_GO } else { Duration::ZERO };
        let deadline = self.terms.borrow().deadline().map(|at| at + grace);
        let due = self.plan.lock().next_due(Instant::now());
        [deadline, due].into_iter().flatten().min()
    }

    /// At the deadline the rest goes down at once, in no order; a child that is not down a
    /// second later is given up.
    fn look_at_the_clock(&mut self) {
        let Some(deadline) = self.terms.borrow().deadline() else { return };
        let now = Instant::now();
        if now >= deadline && !self.late {
            self.late = true;
            self.plan.lock().hurry();
        } else if now >= deadline + LET_GO {
            self.give_up();
        }
    }

    fn give_up(&mut self) {
        let (given_up, stopped) = {
            let mut plan = self.plan.lock();
            (plan.give_up(), plan.stops())
        };
        for child in given_up {
            self.hands.give_up(child);
            if stopped {
                self.stopped(child, None);
            }
        }
    }

    fn done(&mut self, child: ChildId, outcome: OrderOutcome) {
        let at = self.moment();
        match outcome {
            OrderOutcome::Started { life, result: Ok(()) } => {
                self.plan.lock().started(child, life, at)
            }
            OrderOutcome::Started { life, result: Err(reason) } => {
                self.plan.lock().start_failed(child, life, reason, at);
            }
            OrderOutcome::Fell { how, summary } => {
                if how == Fall::Stop {
                    self.stopped(child, summary);
                }
                self.plan.lock().fell(child, how);
            }
        }
    }

    fn stopped(&mut self, child: ChildId, summary: Option<StopSummary>) {
        let (name, ends) = {
            let plan = self.plan.lock();
            (plan.name_of(child), plan.end().is_some())
        };
        self.waiting.gone(child, summary.clone());
        self.children.remove(&child);
        if ends {
            self.stops.push(ChildStop { id: child, name, summary });
        }
    }

    pub(crate) fn obey(&mut self, command: Command) {
        match command {
            Command::Add(id, spec, answer) => {
                let _ = answer.send(self.add(id, spec));
            }
            Command::Remove(id, answer) => {
                let removed = self.plan.lock().remove(id);
                let _ = answer.send(removed.map(|()| self.waiting.for_gone(id)));
            }
            Command::Enable(id, answer) => {
                let enabled = self.plan.lock().enable(id);
                let _ = answer.send(enabled.map(|()| self.waiting.for_up(id)));
            }
            Command::Stop(how) => {
                self.on_terms_of(how);
                self.plan.lock().stop();
            }
            Command::Suspend(patience) => {
                self.on_terms_of(Stop::within(patience));
                self.plan.lock().suspend();
            }
        }
    }

    fn add(&mut self, id: ChildId, spec: ChildSpec) -> Result<Change<()>, ChildError> {
        let member = PlannedChild { id, name: spec.child.name(), rules: spec.rules, added: true };
        self.plan.lock().add(member)?;
        self.children.insert(id, spec);
        Ok(self.waiting.for_up(id))
    }

    fn on_terms_of(&mut self, how: Stop) {
        self.terms.send_if_modified(|terms| {
            let before = std::mem::replace(terms, terms.with(how));
            before != *terms
        });
    }

    fn finish(mut self) -> Finished {
        let plan = self.plan.lock();
        let kept = plan.kept().filter_map(|(id, added)| {
            let spec = self.children.remove(&id)?;
            Some(KeptChild { id, added, spec })
        });
        Finished {
            kept: kept.collect(),
            report: SupervisorReport {
                end: plan.end().cloned().unwrap_or(SupervisorEnd::Stopped),
                children: self.stops,
            },
            stopped: plan.stops(),
            boot: self.boot,
        }
    }
}
