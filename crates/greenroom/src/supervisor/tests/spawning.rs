//! The first start, and children that come later.

use std::time::Duration;

use super::{child, settled, specs, state, tasks, up};
use crate::Stop;
use crate::supervisor::{
    ChangeError, ChildError, ChildSpec, ChildState, Strategy, Supervisor, SupervisorEnd,
    SupervisorError,
    fake::{Act, Fake},
};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn s01_children_are_started_one_after_the_other_and_stopped_in_reverse() {
    let (log, fakes) = Fake::some::<3>();
    fakes[0].next("start", Act::Takes(SECOND));
    let supervisor = Supervisor::new(Strategy::OneForOne);
    let supervisor = specs(&fakes).into_iter().fold(supervisor, Supervisor::child);
    let handle = supervisor.spawn().await.expect("all start");
    assert_eq!(log.take(), "start a, a done, start b, start c");
    let ids: Vec<_> = handle.children().iter().map(|child| child.id).collect();
    assert!(ids.is_sorted());
    let report = handle.stop(Stop::within(SECOND)).await;
    assert_eq!(log.take(), "stop c, stop b, stop a");
    let names: Vec<_> = report.children.iter().map(|child| &*child.name).collect();
    assert_eq!(names, ["c", "b", "a"]);
    assert_eq!(handle.children(), []);
}

#[tokio::test(start_paused = true)]
async fn s01_a_child_that_does_not_start_fails_the_spawn_and_leaves_nothing_running() {
    let before = tasks();
    let (log, fakes) = Fake::some::<3>();
    fakes[1].next("start", Act::Fails);
    let supervisor = Supervisor::new(Strategy::OneForOne);
    let spawned = specs(&fakes).into_iter().fold(supervisor, Supervisor::child).spawn().await;
    let Err(SupervisorError::Ended(SupervisorEnd::StartFailed { child, reason })) = spawned else {
        panic!("{spawned:?}")
    };
    assert_eq!((&*child, &*reason), ("b", "not today"));
    assert_eq!(log.take(), "start a, start b, stop c, stop b, stop a");
    settled().await;
    assert_eq!(tasks(), before);
}

#[tokio::test(start_paused = true)]
async fn s01_a_start_that_panics_is_one_that_fails() {
    let (_, [a]) = Fake::some();
    a.next("start", Act::Panics);
    let spawned = Supervisor::new(Strategy::OneForOne).child(a).spawn().await;
    let Err(SupervisorError::Ended(SupervisorEnd::StartFailed { reason, .. })) = spawned else {
        panic!("{spawned:?}")
    };
    assert!(reason.contains("start of a"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn s01_a_spawn_that_is_dropped_stops_what_it_has_started() {
    let before = tasks();
    let (log, [a, b]) = Fake::some();
    b.next("start", Act::Hangs);
    let spawn = Supervisor::new(Strategy::OneForOne).child(a).child(b).spawn();
    assert!(tokio::time::timeout(SECOND, spawn).await.is_err());
    settled().await;
    assert_eq!(log.take(), "start a, start b, start of b dropped, stop b, stop a");
    assert_eq!(tasks(), before);
}

#[tokio::test(start_paused = true)]
async fn s01_a_supervisor_that_is_ended_during_its_start_says_by_whom() {
    let (_, [a, b]) = Fake::some();
    b.next("start", Act::Takes(SECOND));
    let first = ChildSpec::new(a.clone()).temporary().significant();
    let spawn = tokio::spawn(Supervisor::new(Strategy::OneForOne).child(first).child(b).spawn());
    settled().await;
    a.panics();
    let spawned = spawn.await.expect("no panic");
    let end = spawned.expect_err("it is ended");
    assert!(
        matches!(end, SupervisorError::Ended(SupervisorEnd::Significant { child, .. }) if &*child == "a")
    );
}

#[tokio::test(start_paused = true)]
async fn s01_added_children_come_last_and_go_first() {
    let (log, [a, b]) = Fake::some();
    let handle = up(Strategy::OneForOne, &log, [a.into()]).await;
    let mut added = handle.add(b).expect("it runs");
    assert_eq!(added.done(SECOND).await, Ok(()));
    assert_eq!(added.done(SECOND).await, Ok(()), "it can be asked again");
    assert_eq!(child(&handle, "b").id, added.id());
    handle.stop(Stop::Now).await;
    assert_eq!(log.take(), "start b, stop b, stop a");
}

#[tokio::test(start_paused = true)]
async fn s01_an_added_child_that_does_not_start_is_no_child() {
    let (log, [a, b]) = Fake::some();
    b.next("start", Act::Fails);
    let handle = up(Strategy::OneForOne, &log, [a.into()]).await;
    let mut added = handle.add(b).expect("it runs");
    let failed = ChangeError::StartFailed { reason: "not today".to_owned() };
    assert_eq!(added.done(SECOND).await, Err(failed));
    settled().await;
    assert_eq!(handle.children().len(), 1);
    assert_eq!(log.take(), "start b, stop b");
}

#[tokio::test(start_paused = true)]
async fn s01_the_handle_answers_while_a_start_and_a_stop_hang() {
    let (log, [a, b, c]) = Fake::some();
    let handle = up(Strategy::RestForOne, &log, [a.clone().into(), b.clone().into()]).await;
    a.next("start", Act::Hangs);
    // Its order is repeated when the supervisor is stopped, and at the deadline.
    (0..3).for_each(|_| b.next("stop", Act::Hangs));
    a.panics();
    let began = tokio::time::Instant::now();
    let mut removed = handle.remove(child(&handle, "b").id).expect("a child");
    let mut added = handle.add(c).expect("it runs");
    assert_eq!(handle.enable(added.id()).unwrap_err(), ChildError::NotDisabled(added.id()));
    assert_eq!(handle.children().len(), 3);
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(removed.done(SECOND).await, Err(ChangeError::UnderWay));
    assert_eq!(added.done(SECOND).await, Err(ChangeError::UnderWay));
    handle.stop(Stop::within(SECOND)).await;
    assert_eq!(removed.done(SECOND).await, Err(ChangeError::Overtaken), "it never answered");
    assert_eq!(added.done(SECOND).await, Err(ChangeError::Overtaken));
    assert_eq!(handle.remove(added.id()).unwrap_err(), ChildError::NotRunning);
}

#[tokio::test(start_paused = true)]
async fn s01_a_removed_child_is_stopped_in_its_own_way_and_forgotten() {
    let (log, [a, b]) = Fake::some();
    let spec = ChildSpec::new(b.clone()).stop(Stop::within(3 * SECOND)).significant();
    let handle = up(Strategy::OneForAll, &log, [a.into(), spec]).await;
    b.queued.store(5, std::sync::atomic::Ordering::SeqCst);
    let id = child(&handle, "b").id;
    let mut removed = handle.remove(id).expect("a child");
    assert_eq!(removed.done(SECOND).await.expect("it stopped").left_over, 5);
    assert_eq!(b.hows(), [Stop::within(3 * SECOND)]);
    assert_eq!(handle.children().len(), 1, "forgotten");
    assert_eq!(state(&handle, "a"), ChildState::Running, "nor has it ended its supervisor");
    assert_eq!(handle.remove(id).unwrap_err(), ChildError::Unknown(id));
    assert_eq!(log.take(), "stop b");
}
