//! Stops: in time, overtaken, dropped, during something else.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};

use super::{settled, specs, tasks, up};
use crate::{
    Stop,
    supervisor::{
        ChildSpec, Strategy, SupervisorEnd,
        fake::{Act, Fake},
    },
};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn s01_each_child_is_stopped_in_its_own_way_within_the_time_of_all() {
    let (log, fakes) = Fake::some::<3>();
    let [a, b, c] = specs(&fakes);
    let specs =
        [a.stop(Stop::Now), b.stop(Stop::within(60 * SECOND)), c.stop(Stop::within(SECOND))];
    let handle = up(Strategy::OneForOne, &log, specs).await;
    handle.stop(Stop::within(10 * SECOND)).await;
    let hows = fakes.each_ref().map(|fake| fake.hows());
    let expected = [Stop::Now, Stop::within(10 * SECOND), Stop::within(SECOND)];
    assert_eq!(hows, expected.map(|how| vec![how]));
}

#[tokio::test(start_paused = true)]
async fn s01_at_the_deadline_the_rest_is_stopped_at_once_and_what_hangs_is_given_up() {
    let before = tasks();
    let (log, fakes) = Fake::some::<3>();
    let handle = up(Strategy::OneForOne, &log, specs(&fakes)).await;
    // When its order is repeated, at the deadline, it hangs again.
    (0..2).for_each(|_| fakes[2].next("stop", Act::Hangs));
    let began = Instant::now();
    let report = handle.stop(Stop::within(2 * SECOND)).await;
    assert_eq!(began.elapsed(), 3 * SECOND);
    assert_eq!(fakes[0].hows(), [Stop::within(Duration::ZERO)]);
    assert_eq!(report.summary().wedged, ["c"]);
    assert_eq!(report.children.len(), 3);
    settled().await;
    assert_eq!(tasks(), before);
}

#[tokio::test(start_paused = true)]
async fn s01_a_more_urgent_stop_overtakes_and_all_get_the_same_report() {
    let (log, [a, b]) = Fake::some();
    let patient = ChildSpec::new(b.clone()).stop(Stop::within(900 * SECOND));
    let handle = Arc::new(up(Strategy::OneForOne, &log, [a.into(), patient]).await);
    b.next("stop", Act::Takes(600 * SECOND));
    let first = tokio::spawn({
        let handle = handle.clone();
        async move { handle.stop(Stop::within(900 * SECOND)).await }
    });
    sleep(SECOND).await;
    let began = Instant::now();
    let second = handle.stop(Stop::Now).await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert!(Arc::ptr_eq(&second, &first.await.expect("no panic")));
    assert_eq!(b.hows(), [Stop::within(900 * SECOND), Stop::Now]);
    assert_eq!(log.take(), "stop b, stop of b dropped, stop b, stop a");
}

#[tokio::test(start_paused = true)]
async fn s01_a_stop_during_a_restart_gives_the_restart_up() {
    let before = tasks();
    let (log, [a, b]) = Fake::some();
    let handle = up(Strategy::RestForOne, &log, [a.clone().into(), b.clone().into()]).await;
    a.next("start", Act::Hangs);
    a.panics();
    sleep(60 * SECOND).await;
    assert_eq!(log.take(), "suspend b, start a");
    let report = handle.stop(Stop::within(SECOND)).await;
    assert_eq!(log.take(), "stop b, start of a dropped, stop a");
    assert!(matches!(report.end, SupervisorEnd::Stopped));
    settled().await;
    assert_eq!(tasks(), before);
}

#[tokio::test(start_paused = true)]
async fn s01_dropping_the_handle_stops_the_children_and_does_not_wait() {
    let before = tasks();
    let (log, fakes) = Fake::some::<2>();
    let handle = up(Strategy::OneForOne, &log, specs(&fakes)).await;
    fakes[1].next("stop", Act::Takes(SECOND));
    drop(handle);
    settled().await;
    assert_eq!(log.take(), "stop b");
    sleep(SECOND).await;
    assert_eq!(log.take(), "b done, stop a");
    assert_eq!(fakes[0].hows(), [Stop::Now]);
    assert_eq!(tasks(), before);
}

#[tokio::test(start_paused = true)]
async fn s01_a_stop_whose_future_is_dropped_goes_on() {
    let (log, [a]) = Fake::some();
    let handle = up(Strategy::OneForOne, &log, [a.clone().into()]).await;
    a.next("stop", Act::Takes(2 * SECOND));
    let stop = handle.stop(Stop::within(60 * SECOND));
    assert!(tokio::time::timeout(SECOND, stop).await.is_err());
    assert!(matches!(handle.ended().await.end, SupervisorEnd::Stopped));
    assert_eq!(log.take(), "stop a, a done");
}

#[tokio::test(start_paused = true)]
async fn s01_a_stop_that_panics_is_told_as_one_that_did_not_answer() {
    let (log, [a]) = Fake::some();
    let handle = up(Strategy::OneForOne, &log, [a.clone().into()]).await;
    a.next("stop", Act::Panics);
    assert_eq!(handle.stop(Stop::Now).await.children[0].summary, None);
}

#[test]
fn s01_a_stop_answers_when_the_runtime_of_the_supervisor_is_gone() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let first = runtime();
    let (log, [a]) = Fake::some();
    let child = Arc::downgrade(&a);
    let handle = first.block_on(up(Strategy::OneForOne, &log, [a.into()]));
    drop(first);
    assert!(child.upgrade().is_none() && handle.children().is_empty(), "it let its child go");
    let report = runtime().block_on(handle.stop(Stop::Now));
    assert_eq!(report.children, []);
}
