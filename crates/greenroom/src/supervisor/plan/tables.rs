//! Every pair of an event and a request.

use std::time::Duration;

use tokio::time::Instant;

use super::{Fall, Moment, Order, Plan, PlannedChild};
use crate::{
    ExitReason, RestartPolicy, Restarts, Stop,
    supervisor::{
        child::{ChildExit, ChildId},
        fake::{Fake, Log},
        info::ChildState,
        spec::{ChildSpec, OnExceeded, Rules},
        strategy::Strategy::{self, OneForAll, OneForOne, RestForOne},
    },
};

pub(super) const RULES: Rules = Rules {
    policy: RestartPolicy::Permanent,
    restarts: Restarts {
        max: 2,
        window: Duration::from_secs(60),
        backoff: crate::Backoff::new(Duration::from_millis(100), Duration::from_secs(30)),
    },
    on_exceeded: OnExceeded::StopSupervisor,
    significant: false,
};

pub(super) fn abnormal() -> ExitReason {
    ExitReason::Panicked { message: "boom".to_owned(), location: None }
}

/// A plan, and its orders.
pub(super) struct Bench {
    pub(super) plan: Plan,
    pub(super) now: Instant,
    given: Vec<String>,
}

impl Bench {
    /// A plan of which nothing has been done.
    pub(super) fn fresh(strategy: Strategy, rules: &[Rules]) -> Self {
        let members = (1..).zip(rules).map(|(id, rules)| Self::member(id, *rules, false));
        let mut plan = Plan::new(strategy, Fall::Stop);
        plan.start_with(members);
        Self { plan, now: Instant::now(), given: Vec::new() }
    }

    /// All children are up.
    pub(super) fn up(strategy: Strategy, rules: &[Rules]) -> Self {
        let mut bench = Self::fresh(strategy, rules);
        bench.run();
        bench
    }

    pub(super) fn member(id: u64, rules: Rules, added: bool) -> PlannedChild {
        let child = Fake::new(&id.to_string(), &Log::default());
        let spec = ChildSpec { child, stop: Stop::Now, rules };
        PlannedChild::new(ChildId(id), spec, added)
    }

    pub(super) fn at(&self) -> Moment {
        Moment { now: self.now, chance: 1.0 }
    }

    pub(super) fn exit(&mut self, id: u64, reason: ExitReason) {
        let child = ChildId(id);
        let life = self.plan.find(child).expect("a child").life;
        let at = self.at();
        self.plan.exited(ChildExit { child, life, reason }, at);
    }

    /// The orders that are given now, without anything being done.
    pub(super) fn give(&mut self) -> Vec<Order> {
        let orders = self.plan.orders(self.now);
        self.given.extend(orders.iter().map(|order| match order {
            Order::Start { child, .. } => format!("start {child}"),
            Order::Fall { child, how } => format!("{how:?} {child}").to_lowercase(),
        }));
        orders
    }

    pub(super) fn given(&mut self) -> String {
        self.give();
        std::mem::take(&mut self.given).join(", ")
    }

    pub(super) fn done(&mut self, order: Order) {
        let at = self.at();
        match order {
            Order::Start { child, life } => self.plan.started(child, life, at),
            Order::Fall { child, how } => drop(self.plan.fell(child, how)),
        }
    }

    pub(super) fn fails(&mut self, id: u64) {
        let child = ChildId(id);
        let (life, at) = (self.plan.find(child).expect("a child").life, self.at());
        self.plan.start_failed(child, life, "not today".to_owned(), at);
    }

    pub(super) fn start_done(&mut self, id: u64) {
        let child = ChildId(id);
        let life = self.plan.find(child).expect("a child").life;
        self.done(Order::Start { child, life });
    }

    pub(super) fn fall_done(&mut self, id: u64, how: Fall) {
        self.done(Order::Fall { child: ChildId(id), how });
    }

    /// All orders are carried out at once, until there are none; no time passes.
    pub(super) fn run(&mut self) -> String {
        loop {
            let orders = self.give();
            if orders.is_empty() {
                return std::mem::take(&mut self.given).join(", ");
            }
            orders.into_iter().for_each(|order| self.done(order));
        }
    }

    pub(super) fn later(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }

    pub(super) fn states(&self) -> Vec<ChildState> {
        self.plan.children().into_iter().map(|child| child.state).collect()
    }
}

const STRATEGIES: [Strategy; 3] = [OneForOne, OneForAll, RestForOne];

/// The orders when the second of four is restarted.
fn restart(strategy: Strategy) -> &'static str {
    match strategy {
        OneForOne => "start 2",
        OneForAll => "suspend 4, suspend 3, suspend 1, start 1, start 2, start 3, start 4",
        RestForOne => "suspend 4, suspend 3, start 2, start 3, start 4",
    }
}

#[test]
fn s01_each_strategy_with_each_policy_and_each_reason() {
    use RestartPolicy::{Permanent, Temporary, Transient};
    for strategy in STRATEGIES {
        for (policy, reason, restarts) in [
            (Permanent, ExitReason::Shutdown, true),
            (Permanent, abnormal(), true),
            (Transient, ExitReason::Shutdown, false),
            (Transient, abnormal(), true),
            (Temporary, ExitReason::Shutdown, false),
            (Temporary, abnormal(), false),
        ] {
            let second = Rules { policy, ..RULES };
            let mut bench = Bench::up(strategy, &[RULES, second, RULES, RULES]);
            bench.exit(2, reason.clone());
            let expected = if restarts { restart(strategy) } else { "disable 2" };
            assert_eq!(bench.run(), expected, "{strategy:?}, {policy:?}, {reason:?}");
            let state = if restarts { ChildState::Running } else { ChildState::Stopped };
            assert_eq!(bench.states()[1], state, "{strategy:?}, {policy:?}, {reason:?}");
        }
    }
}

#[test]
fn s01_each_policy_of_a_child_that_is_restarted_for_anothers_sake() {
    for (policy, expected) in [
        (RestartPolicy::Permanent, "suspend 3, start 2, start 3"),
        (RestartPolicy::Transient, "suspend 3, start 2, start 3"),
        (RestartPolicy::Temporary, "disable 3, start 2"),
    ] {
        let mut bench = Bench::up(RestForOne, &[RULES, RULES, Rules { policy, ..RULES }]);
        bench.exit(2, abnormal());
        assert_eq!(bench.run(), expected, "{policy:?}");
    }
}

#[test]
fn s02_each_strategy_with_each_answer_to_a_budget_that_is_used_up() {
    for strategy in STRATEGIES {
        for (on_exceeded, expected, state) in [
            (OnExceeded::DisableChild, "disable 2", ChildState::Disabled),
            (OnExceeded::StopSupervisor, "stop 4, stop 3, stop 2, stop 1", ChildState::Stopped),
        ] {
            let second = Rules { on_exceeded, ..RULES };
            let mut bench = Bench::up(strategy, &[RULES, second, RULES, RULES]);
            for _ in 0..2 {
                bench.exit(2, abnormal());
                bench.later(200);
                assert_eq!(bench.run(), restart(strategy));
            }
            bench.exit(2, abnormal());
            assert_eq!(bench.run(), expected, "{strategy:?}, {on_exceeded:?}");
            assert_eq!(bench.states()[1], state);
            assert_eq!(bench.plan.is_over(), state == ChildState::Stopped);
        }
    }
}

#[test]
fn s03_the_end_of_a_significant_child_with_each_policy_and_each_reason() {
    use RestartPolicy::{Permanent, Temporary, Transient};
    for (policy, reason, ends) in [
        (Permanent, ExitReason::Shutdown, false),
        (Permanent, abnormal(), false),
        (Transient, ExitReason::Shutdown, true),
        (Transient, abnormal(), false),
        (Temporary, ExitReason::Shutdown, true),
        (Temporary, abnormal(), true),
    ] {
        let second = Rules { policy, significant: true, ..RULES };
        let mut bench = Bench::up(OneForOne, &[RULES, second, RULES]);
        bench.exit(2, reason.clone());
        let expected = if ends { "stop 3, stop 2, stop 1" } else { "start 2" };
        assert_eq!(bench.run(), expected, "{policy:?}, {reason:?}");
        assert_eq!(bench.plan.is_over(), ends);
    }
}
