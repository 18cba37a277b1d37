//! Random events in random order: the plan settles, and ends.

use proptest::{prelude::*, strategy::Strategy as Random};

use super::{
    Order,
    entry::Phase,
    tables::{Bench, RULES, abnormal},
};
use crate::{
    ExitReason, RestartPolicy,
    supervisor::{
        child::ChildId,
        spec::{OnExceeded, Rules},
        strategy::Strategy,
    },
};

#[derive(Debug, Clone)]
enum Step {
    Exit(u64, bool),
    /// One of the orders in progress is done.
    Done(usize),
    /// A start in progress fails.
    Fails(usize),
    Later(u64),
    Remove(u64),
    Enable(u64),
    Add,
}

fn step() -> impl Random<Value = Step> {
    prop_oneof![
        3 => (1..7_u64, any::<bool>()).prop_map(|(id, normal)| Step::Exit(id, normal)),
        6 => any::<usize>().prop_map(Step::Done),
        1 => any::<usize>().prop_map(Step::Fails),
        2 => (0..500_u64).prop_map(Step::Later),
        1 => (1..7_u64).prop_map(Step::Remove),
        1 => (1..7_u64).prop_map(Step::Enable),
        1 => Just(Step::Add),
    ]
}

fn rules() -> impl Random<Value = Rules> {
    let policies = [RestartPolicy::Permanent, RestartPolicy::Transient, RestartPolicy::Temporary];
    prop::sample::select(policies.to_vec()).prop_map(|policy| Rules {
        policy,
        on_exceeded: OnExceeded::DisableChild,
        ..RULES
    })
}

/// A plan and the orders in progress.
struct World {
    bench: Bench,
    under_way: Vec<Order>,
    added: u64,
}

impl World {
    /// Takes the orders; a new one for a child replaces the former.
    fn give(&mut self) {
        for order in self.bench.give() {
            self.under_way.retain(|former| former.child() != order.child());
            self.under_way.push(order);
        }
    }

    fn step(&mut self, step: Step, extra: Rules) {
        let plan = &mut self.bench.plan;
        match step {
            Step::Exit(id, _) if plan.find(ChildId(id)).is_none() => {}
            Step::Exit(id, true) => self.bench.exit(id, ExitReason::Shutdown),
            Step::Exit(id, false) => self.bench.exit(id, abnormal()),
            Step::Done(at) => self.end_one(at, false),
            Step::Fails(at) => self.end_one(at, true),
            Step::Later(millis) => self.bench.later(millis),
            Step::Remove(id) => drop(plan.remove(ChildId(id))),
            Step::Enable(id) => drop(plan.enable(ChildId(id))),
            Step::Add => {
                self.added += 1;
                plan.add(Bench::member(4 + self.added, extra, true));
            }
        }
    }

    fn end_one(&mut self, at: usize, fails: bool) {
        if self.under_way.is_empty() {
            return;
        }
        let order = self.under_way.swap_remove(at % self.under_way.len());
        match order {
            Order::Start { child, .. } if fails => self.bench.fails(child.0),
            order => self.bench.done(order),
        }
    }

    /// Everything is done, and time passes.
    fn come_to_rest(&mut self) {
        for _ in 0..1_000 {
            self.give();
            self.end_one(0, false);
            self.bench.later(100);
        }
        assert_eq!(self.under_way, []);
    }
}

proptest! {
    #[test]
    fn s01_whatever_happens_all_children_come_to_what_they_are_to_be(
        strategy in prop::sample::select(&[Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne][..]),
        given in prop::collection::vec(rules(), 4),
        extra in rules(),
        steps in prop::collection::vec(step(), 0..60),
        stops in any::<bool>(),
    ) {
        let bench = Bench::up(strategy, &given);
        let mut world = World { bench, under_way: Vec::new(), added: 0 };
        for step in steps {
            world.step(step, extra);
            world.give();
        }
        if stops {
            world.bench.plan.stop();
        }
        world.come_to_rest();
        let plan = &world.bench.plan;
        prop_assert_eq!(plan.is_over(), stops);
        for entry in &plan.entries {
            prop_assert_eq!(entry.pending_fall(), None);
            prop_assert_eq!(entry.wants_up(), entry.phase == Phase::Up);
        }
    }
}
