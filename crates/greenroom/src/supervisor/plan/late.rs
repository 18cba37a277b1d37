//! Starts that fail, and exits that are reported too early, too late or not at all.

use std::time::Duration;

use super::{
    Fall, PlanNotice,
    tables::{Bench, RULES, abnormal},
};
use crate::{
    ExitReason, RestartPolicy,
    supervisor::{
        child::{ChildExit, ChildId},
        info::ChildState::{Running, Stopped},
        spec::{OnExceeded, Rules},
        strategy::Strategy::{OneForAll, OneForOne, RestForOne},
    },
};

const DISABLES: Rules = Rules {
    on_exceeded: OnExceeded::DisableChild,
    restarts: crate::Restarts { max: 0, ..RULES.restarts },
    ..RULES
};

#[test]
fn s03_a_start_that_fails_is_tried_again_for_ever_at_no_charge() {
    let mut bench = Bench::up(RestForOne, &[RULES; 2]);
    bench.exit(1, abnormal());
    let mut waits = Vec::new();
    for _ in 0..50 {
        bench.later(30_000);
        let given = bench.given();
        assert!(given.is_empty() || given.ends_with("start 1") || given == "suspend 2", "{given}");
        if given == "suspend 2" {
            bench.fall_done(2, Fall::Suspend);
            assert_eq!(bench.given(), "start 1");
        }
        bench.fails(1);
        waits.push(bench.plan.next_due(bench.now).expect("it is tried again") - bench.now);
    }
    let millis: Vec<_> = waits.iter().map(Duration::as_millis).collect();
    assert_eq!(millis[..4], [100, 200, 400, 800]);
    assert_eq!(millis[49], 30_000);
    bench.later(30_000);
    assert_eq!(bench.run(), "start 1, start 2", "later ones have waited");
    bench.exit(1, abnormal());
    assert_eq!(bench.run(), "suspend 2, start 1, start 2", "the budget is whole");
}

#[test]
fn s03_one_whose_start_fails_does_not_hold_up_others_under_one_for_one() {
    let mut bench = Bench::up(OneForOne, &[RULES; 2]);
    bench.exit(1, abnormal());
    bench.given();
    bench.fails(1);
    bench.exit(2, abnormal());
    assert_eq!(bench.given(), "start 2");
}

#[test]
fn s03_an_exit_that_is_heard_before_the_start_is_not_lost() {
    let mut bench = Bench::fresh(OneForOne, &[RULES]);
    assert_eq!(bench.given(), "start 1");
    bench.exit(1, abnormal());
    assert_eq!(bench.given(), "");
    bench.start_done(1);
    assert_eq!(bench.run(), "start 1");
    assert_eq!(bench.plan.children()[0].restarts, 1);
}

#[test]
fn s03_a_late_exit_of_an_earlier_life_changes_nothing() {
    let mut bench = Bench::up(OneForOne, &[DISABLES]);
    let (child, at) = (ChildId(1), bench.at());
    bench.plan.exited(ChildExit { child, life: 0, reason: abnormal() }, at);
    let unknown = ChildId(9);
    bench.plan.exited(ChildExit { child: unknown, life: 1, reason: abnormal() }, at);
    let spent = |notice: &PlanNotice| matches!(notice, PlanNotice::Spent(_));
    assert_eq!(
        bench.plan.notices().into_iter().filter(spent).count(),
        2,
        "and is not dropped here"
    );
    assert_eq!(bench.run(), "");
    assert_eq!(bench.states(), [Running]);
}

#[test]
fn s03_an_exit_that_crosses_with_the_order_to_go_down_changes_nothing() {
    let mut bench = Bench::up(RestForOne, &[RULES, DISABLES]);
    bench.exit(1, abnormal());
    assert_eq!(bench.given(), "suspend 2");
    bench.exit(2, abnormal());
    bench.fall_done(2, Fall::Suspend);
    bench.exit(2, abnormal());
    assert_eq!(bench.run(), "start 1, start 2");
}

#[test]
fn s03_a_child_that_has_ended_stays_ended_when_others_are_restarted() {
    let transient = Rules { policy: RestartPolicy::Transient, ..RULES };
    let mut bench = Bench::up(OneForAll, &[RULES, transient]);
    bench.exit(2, ExitReason::Shutdown);
    assert_eq!(bench.run(), "disable 2");
    bench.exit(1, abnormal());
    assert_eq!(bench.run(), "start 1");
    assert_eq!(bench.states(), [Running, Stopped]);
}
