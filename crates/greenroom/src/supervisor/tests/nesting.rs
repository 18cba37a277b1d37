//! Supervisors under supervisors.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;

use super::{child, settled, state, tasks, up};
use crate::{
    ExitReason, Restarts, Stop,
    supervisor::{
        ChildSpec, ChildState, OnExceeded, Strategy, Supervisor, SupervisorEnd, SupervisorError,
        fake::{Act, Fake},
        plan::{Fall, Plan},
        runner::Runner,
    },
};

const SECOND: Duration = Duration::from_secs(1);

/// A supervisor that gives up at the first failure of `a`, and has `b` as well.
fn brittle(a: &Arc<Fake>, b: &Arc<Fake>) -> Supervisor {
    let once = ChildSpec::new(a.clone()).restarts(Restarts { max: 0, ..Restarts::default() });
    Supervisor::new(Strategy::OneForOne).name("inner").child(once).child(b.clone())
}

#[tokio::test(start_paused = true)]
async fn s01_a_supervisor_starts_and_stops_where_it_stands() {
    let before = tasks();
    let (log, [a, b, c, d]) = Fake::some();
    let root = Supervisor::new(Strategy::OneForOne).child(c).child(brittle(&a, &b)).child(d);
    let handle = root.spawn().await.expect("all start");
    assert_eq!(log.take(), "start c, start a, start b, start d");
    let report = handle.stop(Stop::within(SECOND)).await;
    assert_eq!(log.take(), "stop d, stop b, stop a, stop c");
    assert_eq!(report.summary().wedged, [""; 0]);
    settled().await;
    assert_eq!(tasks(), before);
}

#[tokio::test(start_paused = true)]
async fn s02_one_that_gives_up_is_restarted_by_its_own_with_the_same_children() {
    let (log, [a, b, c]) = Fake::some();
    let specs = [brittle(&a, &b).into(), c.into()];
    let handle = up(Strategy::RestForOne, &log, specs).await;
    b.queued.store(3, std::sync::atomic::Ordering::SeqCst);
    a.panics();
    sleep(SECOND).await;
    assert_eq!(log.take(), "suspend b, suspend c, start a, start b, start c");
    assert_eq!(b.queued.load(std::sync::atomic::Ordering::SeqCst), 3);
    assert_eq!(child(&handle, "inner").restarts, 1);
    assert_eq!(handle.stop(Stop::Now).await.summary().left_over, 3);
}

#[tokio::test(start_paused = true)]
async fn s02_an_order_to_stop_that_comes_as_a_run_ends_is_carried_out() {
    let (log, [a, b]) = Fake::some();
    let keeper = brittle(&a, &b).keeper(Fall::Suspend);
    let mut run = keeper.begin(|_| {}).expect("there is no run");
    let mut runner = Runner::new(keeper.clone());
    let running = tokio::spawn(async move {
        runner.run().await;
        runner
    });
    settled().await;
    keeper.go_down(Stop::within(SECOND), Plan::suspend);
    let mut runner = running.await.expect("it does not panic");
    assert_eq!(log.take(), "start a, start b, suspend b, suspend a");
    keeper.go_down(Stop::within(SECOND), Plan::stop);
    assert!(run.end().is_err(), "there is something to do");
    runner.run().await;
    assert_eq!(log.take(), "stop b, stop a");
    assert!(run.end().is_ok());
}

#[tokio::test(start_paused = true)]
async fn s02_one_that_gives_up_too_often_ends_its_own_as_well() {
    let before = tasks();
    let (log, [a, b, c]) = Fake::some();
    let inner =
        ChildSpec::new(brittle(&a, &b)).restarts(Restarts { max: 1, ..Restarts::default() });
    let handle = up(Strategy::OneForOne, &log, [inner, c.into()]).await;
    a.panics();
    settled().await;
    assert_eq!(log.take(), "suspend b, start a, start b");
    a.panics();
    let report = handle.ended().await;
    assert!(matches!(&report.end, SupervisorEnd::Exceeded { child, .. } if &**child == "inner"));
    assert_eq!(log.take(), "suspend b, stop c, stop b, stop a");
    settled().await;
    assert_eq!(tasks(), before);
}

#[tokio::test(start_paused = true)]
async fn s02_one_that_gives_up_too_often_is_disabled_with_all_its_children_and_comes_back() {
    let (log, [a, b]) = Fake::some();
    let inner = ChildSpec::new(brittle(&a, &b))
        .restarts(Restarts { max: 0, ..Restarts::default() })
        .on_exceeded(OnExceeded::DisableChild);
    let handle = up(Strategy::OneForOne, &log, [inner]).await;
    a.panics();
    settled().await;
    assert_eq!(log.take(), "suspend b, disable b, disable a");
    assert_eq!(state(&handle, "inner"), ChildState::Disabled);
    let mut enabled = handle.enable(child(&handle, "inner").id).expect("it is disabled");
    assert_eq!(enabled.done(SECOND).await, Ok(()));
    assert_eq!(log.take(), "start a, start b");
    handle.stop(Stop::Now).await;
    assert_eq!(log.take(), "stop b, stop a");
}

#[tokio::test(start_paused = true)]
async fn s01_one_is_restarted_for_anothers_sake_with_all_its_children() {
    let (log, [a, b, c]) = Fake::some();
    let _handle = up(Strategy::RestForOne, &log, [c.clone().into(), brittle(&a, &b).into()]).await;
    c.panics();
    settled().await;
    assert_eq!(log.take(), "suspend b, suspend a, start c, start a, start b");
}

#[tokio::test(start_paused = true)]
async fn s03_a_restart_of_one_whose_child_does_not_start_is_tried_again() {
    let (log, [a, b]) = Fake::some();
    let handle = up(Strategy::OneForOne, &log, [brittle(&a, &b).into()]).await;
    b.next("start", Act::Fails);
    a.panics();
    sleep(SECOND).await;
    assert_eq!(log.take(), "suspend b, start a, start b, suspend a, start a, start b");
    assert_eq!(state(&handle, "inner"), ChildState::Running);
}

#[tokio::test(start_paused = true)]
async fn s01_the_spawn_fails_with_the_reason_of_the_one_inside() {
    let (log, [a, b, c]) = Fake::some();
    b.next("start", Act::Fails);
    let spawned =
        Supervisor::new(Strategy::OneForOne).child(c).child(brittle(&a, &b)).spawn().await;
    let Err(SupervisorError::Ended(SupervisorEnd::StartFailed { child, reason })) = spawned else {
        panic!("{spawned:?}")
    };
    assert_eq!(&*child, "inner");
    assert!(reason.contains("child b could not be started"), "{reason}");
    assert_eq!(log.take(), "start c, start a, start b, suspend a, stop b, stop a, stop c");
}

#[tokio::test(start_paused = true)]
async fn s03_one_whose_significant_child_ends_has_ended_normally() {
    let (log, [a, b]) = Fake::some();
    let inner = || {
        let main = ChildSpec::new(a.clone()).significant();
        ChildSpec::new(Supervisor::new(Strategy::OneForOne).name("inner").child(main))
    };
    let handle = up(Strategy::OneForOne, &log, [inner().permanent(), b.into()]).await;
    a.exits(ExitReason::Shutdown);
    settled().await;
    assert_eq!(
        log.take(),
        "disable a, start a",
        "a permanent one starts again, with the child that ended"
    );
    assert_eq!(state(&handle, "inner"), ChildState::Running);
    handle.stop(Stop::Now).await;

    let handle = up(Strategy::OneForOne, &log, [inner().transient()]).await;
    a.exits(ExitReason::Shutdown);
    settled().await;
    assert_eq!(state(&handle, "inner"), ChildState::Stopped, "a transient one does not");
}

#[tokio::test(start_paused = true)]
async fn s01_a_start_inside_that_hangs_is_given_up_when_the_root_stops() {
    let before = tasks();
    let (log, [a, b]) = Fake::some();
    let handle = up(Strategy::OneForOne, &log, [brittle(&a, &b).into()]).await;
    b.next("start", Act::Hangs);
    a.panics();
    sleep(SECOND).await;
    assert_eq!(log.take(), "suspend b, start a, start b");
    let report = handle.stop(Stop::within(SECOND)).await;
    assert_eq!(report.summary().wedged, [""; 0]);
    assert!(log.take().ends_with("stop b, stop a"));
    settled().await;
    assert_eq!(tasks(), before);
}
