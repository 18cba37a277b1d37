//! A13: how actors and pools are stopped.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use greenroom::{
    Actor, Backoff, CallError, Context, ExitReason, Pool, SendError, Stop, StopReport, TrySendError,
};
use tokio::time::Instant;

use crate::life::probe::{Do, HOUR, Journal, Probe, SECOND, alone, poll_once, settle};

fn names(report: &StopReport<Do>) -> Vec<String> {
    report.left_over.iter().map(|message| format!("{message:?}")).collect()
}

#[tokio::test(start_paused = true)]
async fn a13_a_graceful_stop_handles_what_is_queued_and_refuses_the_rest() {
    let journal = Journal::default();
    let pool = alone(Probe::new("it", &journal)).await;
    for _ in 0..5 {
        pool.send(Do::Sleep(SECOND)).await.unwrap();
    }
    let address = pool.address();
    let refused = async {
        settle().await;
        assert!(matches!(address.try_send(Do::Nothing), Err(TrySendError::Stopped(_))));
        assert!(address.send(Do::Nothing).await.is_err());
        assert!(matches!(
            address.call(Do::Nothing).await,
            Err(CallError::NotAccepted(SendError::Stopped(_)))
        ));
    };
    let (report, ()) = tokio::join!(pool.stop(Stop::within(HOUR)), refused);
    assert!(report.left_over.is_empty() && report.wedged.is_empty());
    assert_eq!((report.stats.handled, report.stats.ledger_holds()), (5, true));
}

#[tokio::test(start_paused = true)]
async fn a13_at_the_deadline_handlers_are_dropped_and_the_rest_is_returned() {
    let journal = Journal::default();
    let pool = alone(Probe::new("it", &journal)).await;
    pool.send(Do::Sleep(HOUR)).await.unwrap();
    pool.send(Do::Nothing).await.unwrap();
    pool.send(Do::Fail).await.unwrap();
    let begun = Instant::now();
    let report = pool.stop(Stop::within(SECOND)).await;
    assert!(begun.elapsed() < 2 * SECOND);
    assert_eq!(names(&report), ["Sleep", "Nothing", "Fail"]);
    assert!(report.wedged.is_empty() && report.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn a13_a_lane_in_backoff_is_returned_in_order() {
    let journal = Journal::default();
    let probe = Probe::new("it", &journal);
    let pool = Pool::new(move |_| probe.clone()).workers(2).ordered_by(|_: &Do| 1);
    let pool = pool.retry(9, Backoff::new(HOUR, HOUR)).spawn().await.unwrap();
    pool.send(Do::Fail).await.unwrap();
    pool.send(Do::Nothing).await.unwrap();
    settle().await;
    let report = pool.stop(Stop::within(SECOND)).await;
    assert_eq!(names(&report), ["Fail", "Nothing"]);
    assert!(report.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn a13_stop_now_ends_after_the_message_in_hand() {
    let journal = Journal::default();
    let pool = alone(Probe::new("it", &journal)).await;
    pool.send(Do::Sleep(HOUR)).await.unwrap();
    pool.send(Do::Nothing).await.unwrap();
    settle().await;
    let report = pool.stop(Stop::Now).await;
    assert_eq!(names(&report), ["Nothing"]);
    assert_eq!((report.stats.handled, report.stats.returned), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a13_every_stop_resolves_and_the_first_gets_what_is_left_over() {
    let journal = Journal::default();
    let pool = alone(Probe::new("it", &journal)).await;
    for _ in 0..3 {
        pool.send(Do::Sleep(HOUR)).await.unwrap();
    }
    settle().await;
    let stops = (pool.stop(Stop::within(SECOND)), pool.stop(Stop::within(HOUR)));
    let (first, second) = tokio::join!(stops.0, stops.1);
    assert_eq!(first.left_over.len() + second.left_over.len(), 3);
    assert!(first.left_over.is_empty() || second.left_over.is_empty());
    assert!(pool.stop(Stop::Now).await.left_over.is_empty());
    assert!(pool.admin().stop(Stop::within(HOUR)).await.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn a13_dropping_the_last_address_drains_and_stops() {
    let journal = Journal::default();
    let pool = alone(Probe::new("it", &journal)).await;
    for _ in 0..3 {
        pool.send(Do::Sleep(SECOND)).await.unwrap();
    }
    let (me, address, begun) = (pool.erase(), pool.address(), Instant::now());
    drop(pool);
    settle().await;
    assert!(me.is_alive());
    drop(address);
    assert!(!me.is_alive());
    assert!(matches!(me.ended().await, ExitReason::Shutdown));
    assert!(begun.elapsed() >= 3 * SECOND, "the queue was handled");
}

#[tokio::test(start_paused = true)]
async fn a13_a_stop_during_a_start_does_not_wait_for_it() {
    let journal = Journal::default();
    let probe = Probe::new("it", &journal);
    let pool = Pool::new(move |slot| match slot {
        0 => probe.clone(),
        _ => Probe { slow_start: HOUR, ..probe.clone() },
    });
    let pool = pool.workers(3).spawn().await.unwrap();
    let begun = Instant::now();
    let report = pool.stop(Stop::within(HOUR)).await;
    assert!(begun.elapsed() < SECOND && report.wedged.is_empty());
    assert_eq!(journal.all(), ["it started 0", "it stopped shut down"]);
}

/// Stops a pool of two from one of its own handlers or hooks, and waits for its end.
async fn stopped_from_inside(how: Stop, through: impl Fn(&Pool<Stopper>) -> Inside) {
    let pool = Pool::new(|_| Stopper(None)).workers(2).spawn().await.unwrap();
    let call = pool.call((through(&pool), how));
    let answer = tokio::time::timeout(SECOND, call).await;
    assert!(matches!(answer, Ok(Ok(()))), "{how:?} {answer:?}");
    let ended = tokio::time::timeout(SECOND, pool.erase().ended()).await;
    assert!(ended.is_ok(), "{how:?}");
    assert!(pool.stop(Stop::Now).await.stats.ledger_holds());
}

enum Inside {
    ThroughThePool(greenroom::PoolAdmin<Stopper>),
    ThroughAnAddress(greenroom::AnyAddress),
    InItsHook(greenroom::AnyAddress),
}

struct Stopper(Option<greenroom::AnyAddress>);

impl Actor for Stopper {
    type Message = (Inside, Stop);
    type Reply = ();
    type Error = ();

    async fn handle(
        &mut self,
        (inside, how): (Inside, Stop),
        cx: &mut Context<Self>,
    ) -> Result<(), ()> {
        match inside {
            Inside::ThroughThePool(pool) => drop(pool.stop(how).await),
            Inside::ThroughAnAddress(pool) => drop(pool.stop(how).await),
            Inside::InItsHook(pool) => {
                self.0 = Some(pool);
                cx.stop();
            }
        }
        Ok(())
    }

    async fn stopped(&mut self, _reason: &ExitReason) {
        if let Some(pool) = &self.0 {
            pool.stop(Stop::Now).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a13_a_handler_or_hook_may_stop_its_own_pool() {
    for how in [Stop::Now, Stop::within(HOUR)] {
        stopped_from_inside(how, |pool| Inside::ThroughThePool(pool.admin())).await;
        stopped_from_inside(how, |pool| Inside::ThroughAnAddress(pool.erase())).await;
        stopped_from_inside(how, |pool| Inside::InItsHook(pool.erase())).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a13_a_worker_may_leave_its_pool_and_does_not_wait_for_itself() {
    let pool = Pool::new(|_| Stopper(None)).workers(2).spawn().await.unwrap();
    let worker = pool.admin().workers()[0].address().clone();
    let me = worker.erase();
    let left = worker.call((Inside::ThroughAnAddress(me.clone()), Stop::Now));
    assert!(matches!(tokio::time::timeout(SECOND, left).await, Ok(Ok(()))));
    assert!(matches!(me.ended().await, ExitReason::Normal));
    assert_eq!(pool.stats().configured, 1);
}

#[tokio::test(start_paused = true)]
async fn a13_what_is_queued_is_given_back_also_where_nobody_waits_for_the_stop() {
    let journal = Journal::default();
    let pool = alone(Probe::new("it", &journal)).await;
    pool.send(Do::Sleep(SECOND)).await.unwrap();
    let call = pool.call(Do::Nothing);
    let given_up = async {
        settle().await;
        assert!(poll_once(pool.stop(Stop::Now)).await.is_pending());
    };
    let (answer, ()) = tokio::join!(call, given_up);
    assert!(matches!(answer, Err(CallError::Stopped)));
    assert!(matches!(pool.erase().ended().await, ExitReason::Shutdown));
}

/// Blocks its thread while it is told to.
struct Blocker;

impl Actor for Blocker {
    type Message = Arc<AtomicBool>;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, go: Arc<AtomicBool>, _cx: &mut Context<Self>) -> Result<(), ()> {
        while !go.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a13_a_worker_that_blocks_its_thread_is_listed_as_wedged() {
    let pool = Pool::new(|_| Blocker).name("mill").workers(1).spawn().await.unwrap();
    let go = Arc::new(AtomicBool::new(false));
    pool.send(go.clone()).await.unwrap();
    pool.send(go.clone()).await.unwrap();
    while pool.stats().in_hand == 0 {
        tokio::task::yield_now().await;
    }
    let report = pool.stop(Stop::within(Duration::from_millis(10))).await;
    go.store(true, Ordering::SeqCst);
    assert_eq!(report.wedged, ["mill-0"]);
    assert_eq!(report.left_over.len(), 1);
    assert!(report.stats.ledger_holds());
}
