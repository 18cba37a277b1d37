//! Events that happen while something else is in progress.

use super::{
    Debut, Fall, Order, PlanNotice,
    tables::{Bench, RULES, abnormal},
};
use crate::{
    ExitReason, RestartPolicy,
    supervisor::{
        child::ChildId,
        error::ChildError,
        info::ChildState::{Disabled, Restarting, Running, Starting},
        report::SupervisorEnd,
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
fn s01_children_start_in_order_each_when_the_one_before_is_up() {
    let mut bench = Bench::fresh(OneForOne, &[RULES; 3]);
    assert_eq!(bench.given(), "start 1");
    assert_eq!(bench.given(), "", "an order is given once");
    bench.start_done(1);
    assert_eq!(bench.given(), "start 2");
    assert_eq!(bench.states(), [Running, Starting, Starting]);
}

#[test]
fn s01_a_first_start_that_fails_stops_all_in_reverse_order() {
    let mut bench = Bench::fresh(OneForOne, &[RULES; 3]);
    bench.give();
    bench.start_done(1);
    bench.given();
    bench.fails(2);
    assert_eq!(bench.run(), "stop 3, stop 2, stop 1");
    let Some(SupervisorEnd::StartFailed { child, reason }) = bench.plan.end() else { panic!() };
    assert_eq!((&**child, &**reason), ("2", "not today"));
}

#[test]
fn s01_the_last_one_goes_down_first_and_each_waits_for_the_one_behind() {
    let mut bench = Bench::up(RestForOne, &[RULES; 4]);
    bench.exit(2, abnormal());
    assert_eq!(bench.given(), "suspend 4");
    assert_eq!(bench.states(), [Running, Restarting, Restarting, Restarting]);
    bench.fall_done(4, Fall::Suspend);
    assert_eq!(bench.given(), "suspend 3");
    bench.fall_done(3, Fall::Suspend);
    assert_eq!(bench.given(), "start 2");
    bench.start_done(2);
    assert_eq!(bench.given(), "start 3");
}

#[test]
fn s02_two_that_fail_at_once_under_one_for_all_are_one_restart_and_one_is_charged() {
    let mut bench = Bench::up(OneForAll, &[DISABLES, RULES, DISABLES]);
    bench.exit(2, abnormal());
    // The budgets of both are zero: if they were charged they would be disabled.
    bench.exit(1, abnormal());
    assert_eq!(bench.given(), "suspend 3");
    bench.exit(3, abnormal());
    bench.fall_done(3, Fall::Suspend);
    assert_eq!(bench.run(), "start 1, start 2, start 3");
    assert_eq!(bench.states(), [Running; 3]);
}

#[test]
fn s02_one_that_fails_outside_of_a_restart_that_is_under_way_makes_it_larger() {
    let mut bench = Bench::up(RestForOne, &[RULES; 4]);
    bench.exit(3, abnormal());
    assert_eq!(bench.given(), "suspend 4");
    bench.exit(2, abnormal());
    bench.fall_done(4, Fall::Suspend);
    assert_eq!(bench.run(), "start 2, start 3, start 4");
}

#[test]
fn s02_a_start_that_is_under_way_is_given_up_when_an_earlier_one_fails() {
    let mut bench = Bench::up(RestForOne, &[RULES; 3]);
    bench.exit(2, abnormal());
    assert_eq!(bench.given(), "suspend 3");
    bench.fall_done(3, Fall::Suspend);
    assert_eq!(bench.given(), "start 2");
    bench.exit(1, abnormal());
    assert_eq!(bench.given(), "suspend 2");
    bench.start_done(2);
    assert_eq!(bench.given(), "", "what the start came to is not heard any more");
    bench.fall_done(2, Fall::Suspend);
    assert_eq!(bench.run(), "start 1, start 2, start 3");
}

#[test]
fn s02_the_first_restart_is_at_once_and_the_next_waits_with_all_that_go_along() {
    let mut bench = Bench::up(RestForOne, &[RULES; 3]);
    bench.exit(2, abnormal());
    assert_eq!(bench.run(), "suspend 3, start 2, start 3");
    bench.exit(2, abnormal());
    assert_eq!(bench.run(), "suspend 3");
    assert_eq!(
        bench.plan.next_due(bench.now),
        Some(bench.now + std::time::Duration::from_millis(100))
    );
    bench.later(99);
    assert_eq!(bench.run(), "");
    bench.later(1);
    assert_eq!(bench.run(), "start 2, start 3");
}

#[test]
fn s02_the_budget_refills_as_the_window_passes() {
    let mut bench =
        Bench::up(OneForOne, &[Rules { on_exceeded: OnExceeded::DisableChild, ..RULES }]);
    for _ in 0..4 {
        bench.exit(1, abnormal());
        bench.later(30_000);
        assert_eq!(bench.run(), "start 1");
    }
    assert_eq!(bench.plan.children()[0].restarts, 4);
    bench.exit(1, abnormal());
    bench.later(1_000);
    assert_eq!(bench.run(), "start 1", "one within the last minute, at most");
    bench.exit(1, abnormal());
    assert_eq!(bench.run(), "disable 1", "two within the last minute");
}

#[test]
fn s02_a_disabled_child_stays_down_and_comes_back_with_a_fresh_budget() {
    let once = crate::Restarts { max: 1, ..RULES.restarts };
    let second = Rules { restarts: once, ..DISABLES };
    let mut bench = Bench::up(OneForAll, &[RULES, second, RULES]);
    bench.exit(2, abnormal());
    bench.run();
    bench.exit(2, abnormal());
    assert_eq!(bench.run(), "disable 2", "the others go on");
    bench.exit(1, abnormal());
    assert_eq!(bench.run(), "suspend 3, start 1, start 3");
    assert_eq!(bench.states(), [Running, Disabled, Running]);
    assert_eq!(bench.plan.enable(ChildId(1)), Err(ChildError::NotDisabled(ChildId(1))));
    assert_eq!(bench.plan.enable(ChildId(2)), Ok(()));
    assert_eq!(bench.run(), "start 2", "the others go on");
    bench.exit(2, abnormal());
    assert_eq!(bench.run(), "suspend 3, suspend 1, start 1, start 2, start 3", "at once");
}

#[test]
fn s02_a_child_that_is_enabled_while_it_goes_down_comes_up_when_it_is_down() {
    let mut bench = Bench::up(OneForOne, &[DISABLES]);
    bench.exit(1, abnormal());
    assert_eq!(bench.given(), "disable 1");
    assert_eq!(bench.plan.enable(ChildId(1)), Ok(()));
    assert_eq!(bench.given(), "");
    bench.fall_done(1, Fall::Disable);
    assert_eq!(bench.run(), "start 1");
}

#[test]
fn s02_a_child_that_is_removed_while_it_is_restarted_holds_up_nobody() {
    let mut bench = Bench::up(RestForOne, &[RULES; 3]);
    bench.exit(1, abnormal());
    assert_eq!(bench.given(), "suspend 3");
    assert_eq!(bench.plan.remove(ChildId(3)), Ok(()));
    assert_eq!(bench.given(), "stop 3, suspend 2");
    bench.fall_done(2, Fall::Suspend);
    assert_eq!(bench.given(), "start 1");
    assert_eq!(bench.plan.remove(ChildId(1)), Ok(()));
    assert_eq!(bench.given(), "stop 1, start 2");
    bench.fall_done(1, Fall::Stop);
    bench.fall_done(3, Fall::Stop);
    bench.start_done(2);
    assert_eq!(bench.given(), "");
    assert_eq!(bench.states(), [Running]);
    assert_eq!(bench.plan.remove(ChildId(1)), Err(ChildError::Unknown(ChildId(1))));
}

#[test]
fn s02_a_removed_child_is_not_brought_back() {
    let mut bench = Bench::up(OneForOne, &[RULES]);
    assert_eq!(bench.plan.remove(ChildId(1)), Ok(()));
    bench.exit(1, abnormal());
    assert_eq!(bench.plan.enable(ChildId(1)), Err(ChildError::Unknown(ChildId(1))));
    assert_eq!(bench.run(), "stop 1");
}

#[test]
fn s01_a_stop_during_a_restart_gives_up_what_is_under_way() {
    let mut bench = Bench::up(RestForOne, &[RULES; 3]);
    bench.exit(1, abnormal());
    assert_eq!(bench.given(), "suspend 3");
    bench.plan.stop();
    assert_eq!(bench.given(), "stop 3", "in place of the suspension");
    bench.fall_done(3, Fall::Stop);
    assert_eq!(bench.run(), "stop 2, stop 1");
    assert!(bench.plan.is_over());
    assert_eq!(bench.plan.enable(ChildId(1)), Err(ChildError::NotRunning));
}

#[test]
fn s01_a_stop_gives_up_a_start_when_its_turn_comes() {
    let mut bench = Bench::up(OneForOne, &[RULES; 2]);
    bench.exit(1, abnormal());
    assert_eq!(bench.given(), "start 1");
    bench.plan.stop();
    assert_eq!(bench.given(), "stop 2");
    bench.fails(1);
    assert_eq!(bench.given(), "", "a start that failed meanwhile is not tried again");
    bench.fall_done(2, Fall::Stop);
    assert_eq!(bench.given(), "stop 1");
}

#[test]
fn s01_at_the_deadline_all_go_down_at_once() {
    let mut bench = Bench::up(OneForOne, &[RULES; 3]);
    bench.plan.stop();
    assert_eq!(bench.given(), "stop 3");
    bench.plan.hurry();
    assert_eq!(bench.given(), "stop 2, stop 1");
    bench.fall_done(2, Fall::Stop);
    assert_eq!(bench.plan.give_up(), [ChildId(3), ChildId(1)]);
    assert!(bench.plan.is_over());
}

#[test]
fn s02_a_nested_supervisor_that_gives_up_keeps_its_children_until_it_is_stopped() {
    let members = (1..=3).map(|id| Bench::member(id, DISABLES, false));
    let mut bench = Bench::up(OneForOne, &[]);
    let second = Rules { on_exceeded: OnExceeded::StopSupervisor, ..DISABLES };
    bench.plan = super::Plan::new(OneForOne, Fall::Suspend);
    bench.plan.start_with(members);
    bench.plan.entries[1].member.spec.rules = second;
    bench.run();
    bench.exit(2, abnormal());
    assert_eq!(bench.given(), "suspend 3");
    bench.fall_done(3, Fall::Suspend);
    assert_eq!(bench.given(), "suspend 1");
    bench.plan.stop();
    assert_eq!(bench.given(), "stop 3");
    bench.fall_done(3, Fall::Stop);
    assert_eq!(bench.given(), "stop 2");
    assert!(matches!(bench.plan.end(), Some(SupervisorEnd::Exceeded { .. })), "the first reason");
}

#[test]
fn s01_an_added_child_that_does_not_start_is_removed_and_one_that_has_ended_is_forgotten() {
    let mut bench = Bench::up(OneForOne, &[RULES]);
    let temporary = Rules { policy: RestartPolicy::Temporary, ..RULES };
    for id in [2, 3] {
        bench.plan.add(Bench::member(id, temporary, true));
    }
    assert_eq!(bench.given(), "start 2, start 3", "under OneForOne neither waits for the other");
    bench.plan.notices();
    bench.fails(2);
    assert!(matches!(bench.plan.notices()[..], [PlanNotice::NotAdded { child: ChildId(2), .. }]));
    bench.start_done(3);
    assert_eq!(bench.run(), "stop 2");
    bench.exit(3, ExitReason::Shutdown);
    assert_eq!(bench.run(), "stop 3");
    assert_eq!(bench.states(), [Running]);
}

#[test]
fn s01_a_child_that_is_added_during_a_restart_waits_for_its_turn() {
    let mut bench = Bench::up(RestForOne, &[RULES; 2]);
    bench.exit(1, abnormal());
    assert_eq!(bench.given(), "suspend 2");
    bench.plan.add(Bench::member(3, RULES, true));
    assert_eq!(bench.given(), "");
    bench.fall_done(2, Fall::Suspend);
    assert_eq!(bench.run(), "start 1, start 2, start 3");
}

#[test]
fn s01_all_children_of_the_spawn_have_been_up_once_before_it_has_booted() {
    let mut bench = Bench::fresh(OneForOne, &[RULES; 2]);
    bench.give();
    bench.start_done(1);
    bench.give();
    bench.plan.notices();
    bench.exit(1, ExitReason::Shutdown);
    bench.give();
    assert!(bench.plan.entries.iter().any(|entry| entry.debut == Some(Debut::Spawn)));
    assert!(!bench.plan.notices().iter().any(|notice| matches!(notice, PlanNotice::Booted)));
    bench.start_done(2);
    assert!(bench.give().iter().all(|order| matches!(order, Order::Start { .. })));
    assert!(bench.plan.notices().iter().any(|notice| matches!(notice, PlanNotice::Booted)));
}
