//! Children that end.

use std::{sync::atomic::Ordering, time::Duration};

use tokio::time::{Instant, sleep};

use super::{child, settled, specs, state, tasks, up};
use crate::{
    ExitReason, Restarts, Stop,
    supervisor::{
        ChildSpec, ChildState, OnExceeded, Strategy, SupervisorEnd,
        fake::{Act, Fake},
    },
};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn s04_a_restart_keeps_the_child_and_what_it_has_queued() {
    let (log, fakes) = Fake::some::<3>();
    let handle = up(Strategy::RestForOne, &log, specs(&fakes)).await;
    fakes.iter().for_each(|fake| fake.queued.store(9, Ordering::SeqCst));
    fakes[1].panics();
    settled().await;
    assert_eq!(log.take(), "suspend c, start b, start c");
    assert_eq!(fakes.each_ref().map(|fake| fake.queued.load(Ordering::SeqCst)), [9; 3]);
    assert_eq!(child(&handle, "a").restarts, 0);
    assert_eq!(child(&handle, "c").restarts, 1);
    let report = handle.stop(Stop::Now).await;
    assert_eq!(report.summary().left_over, 27, "what is left over is told at the end");
}

#[tokio::test(start_paused = true)]
async fn s02_the_first_restart_is_at_once_and_the_next_after_the_backoff() {
    let (log, [a]) = Fake::some();
    let handle = up(Strategy::OneForOne, &log, [a.clone().into()]).await;
    let began = Instant::now();
    a.panics();
    settled().await;
    assert_eq!(log.take(), "start a");
    a.panics();
    settled().await;
    assert_eq!((log.take(), state(&handle, "a")), (String::new(), ChildState::Restarting));
    sleep(Duration::from_millis(100)).await;
    assert_eq!((&*log.take(), state(&handle, "a")), ("start a", ChildState::Running));
    assert!(began.elapsed() >= Duration::from_millis(50), "at least half of the backoff");
}

#[tokio::test(start_paused = true)]
async fn s02_a_budget_that_is_used_up_stops_the_supervisor() {
    let before = tasks();
    let (log, [a, b]) = Fake::some();
    let fragile = ChildSpec::new(a.clone()).restarts(Restarts { max: 0, ..Restarts::default() });
    let handle = up(Strategy::OneForOne, &log, [fragile, b.into()]).await;
    a.panics();
    let report = handle.ended().await;
    assert!(matches!(&report.end, SupervisorEnd::Exceeded { child, .. } if &**child == "a"));
    assert_eq!(log.take(), "stop b, stop a");
    settled().await;
    assert_eq!(tasks(), before);
    assert_eq!(handle.stop(Stop::Now).await.children.len(), 2, "the same report");
}

#[tokio::test(start_paused = true)]
async fn s02_a_budget_that_is_used_up_disables_the_child_until_it_is_enabled() {
    let (log, [a, b]) = Fake::some();
    let fragile = ChildSpec::new(a.clone())
        .restarts(Restarts { max: 1, ..Restarts::default() })
        .on_exceeded(OnExceeded::DisableChild);
    let handle = up(Strategy::OneForOne, &log, [fragile, b.into()]).await;
    for expected in ["start a", "disable a"] {
        a.panics();
        settled().await;
        assert_eq!(log.take(), expected);
    }
    assert_eq!(state(&handle, "a"), ChildState::Disabled);
    assert_eq!(state(&handle, "b"), ChildState::Running);
    a.next("start", Act::Fails);
    let mut enabled = handle.enable(child(&handle, "a").id).expect("it is disabled");
    assert_eq!(enabled.done(SECOND).await, Ok(()));
    assert_eq!(log.take(), "start a, start a", "a start that fails is tried again");
    a.panics();
    settled().await;
    assert_eq!(log.take(), "start a", "the budget is fresh, and the first restart at once");
}

#[tokio::test(start_paused = true)]
async fn s03_p20_a_start_that_fails_is_tried_again_until_it_works_at_no_charge() {
    let (log, [a]) = Fake::some();
    let spec = ChildSpec::new(a.clone()).restarts(Restarts { max: 1, ..Restarts::default() });
    let handle = up(Strategy::OneForOne, &log, [spec]).await;
    (0..20).for_each(|_| a.next("start", Act::Fails));
    a.next("start", Act::Panics);
    a.panics();
    sleep(Duration::from_secs(900)).await;
    assert_eq!(log.take().split(", ").count(), 22);
    assert_eq!(state(&handle, "a"), ChildState::Running);
    assert_eq!(child(&handle, "a").restarts, 1);
}

#[tokio::test(start_paused = true)]
async fn s03_a_significant_child_ends_its_supervisor() {
    let (log, [a, b]) = Fake::some();
    let main = ChildSpec::new(a.clone()).significant();
    let handle = up(Strategy::OneForOne, &log, [main, b.into()]).await;
    a.exits(ExitReason::Shutdown);
    let report = handle.ended().await;
    assert!(matches!(&report.end, SupervisorEnd::Significant { child, .. } if &**child == "a"));
    assert_eq!(log.take(), "stop b, stop a");
}

#[tokio::test(start_paused = true)]
async fn s03_a_child_that_ends_while_it_starts_is_restarted() {
    let (log, [a]) = Fake::some();
    let handle = up(Strategy::OneForOne, &log, [a.clone().into()]).await;
    a.next("start", Act::Dies);
    a.panics();
    sleep(SECOND).await;
    assert_eq!(log.take(), "start a, start a");
    assert_eq!(state(&handle, "a"), ChildState::Running);
}

#[tokio::test(start_paused = true)]
async fn s01_a_child_that_lets_go_slowly_is_waited_for_as_long_as_its_stop_may_take() {
    let (log, [a, b]) = Fake::some();
    let slow = ChildSpec::new(b.clone()).stop(Stop::within(2 * SECOND));
    let _handle = up(Strategy::OneForAll, &log, [a.clone().into(), slow]).await;
    b.next("suspend", Act::Takes(60 * SECOND));
    a.panics();
    sleep(SECOND).await;
    assert_eq!(log.take(), "suspend b");
    sleep(2 * SECOND).await;
    assert_eq!(log.take(), "b done, start a, start b");
}

#[tokio::test(start_paused = true)]
async fn s01_a_suspension_that_panics_is_as_good_as_done() {
    let (log, [a, b]) = Fake::some();
    let _handle = up(Strategy::OneForAll, &log, [a.clone().into(), b.clone().into()]).await;
    b.next("suspend", Act::Panics);
    a.panics();
    settled().await;
    assert_eq!(log.take(), "suspend b, start a, start b");
}

#[tokio::test(start_paused = true)]
async fn s01_one_task_supervises_any_number_of_children() {
    let before = tasks();
    let (log, fakes) = Fake::some::<5>();
    let handle = up(Strategy::OneForAll, &log, specs(&fakes)).await;
    fakes[2].panics();
    settled().await;
    assert_eq!(tasks(), before + 1);
    drop(handle);
    settled().await;
    assert_eq!(tasks(), before);
}
