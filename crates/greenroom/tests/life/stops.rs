//! How pools end: several stops at once, deadlines, runtimes that shut down, workers between two
//! lives (A13, P22).

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use greenroom::{
    Actor, Backoff, CallError, Context, ExitReason, Pool, Restarts, SendError, Stop,
    inspect::WorkerStatus,
};
use tokio::time::Instant;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Ask {
    Echo(u32),
    Sleep(Duration),
    Panic,
    Fail,
}

struct Desk;

impl Actor for Desk {
    type Message = Ask;
    type Reply = u32;
    type Error = ();

    async fn handle(&mut self, message: Ask, _cx: &mut Context<Self>) -> Result<u32, ()> {
        match message {
            Ask::Echo(number) => return Ok(number),
            Ask::Sleep(time) => tokio::time::sleep(time).await,
            Ask::Panic => panic!("boom"),
            Ask::Fail => return Err(()),
        }
        Ok(0)
    }
}

const HOUR: Duration = Duration::from_secs(3_600);
const SECOND: Duration = Duration::from_secs(1);

async fn one_mailbox() -> Pool<Desk> {
    Pool::new(|_| Desk).workers(1).capacity(10).spawn().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a13_a_second_stop_that_wants_it_now_interrupts_no_handler() {
    let pool = one_mailbox().await;
    let call = pool.call(Ask::Sleep(10 * SECOND));
    let stops = async {
        tokio::time::sleep(SECOND).await;
        pool.send(Ask::Echo(1)).await.unwrap();
        let now = async {
            tokio::time::sleep(SECOND).await;
            pool.stop(Stop::Now).await
        };
        tokio::join!(pool.stop(Stop::within(HOUR)), now)
    };
    let (answer, (graceful, now)) = tokio::join!(call, stops);
    assert_eq!(answer, Ok(0), "the deadline of the graceful stop was an hour away");
    let mut left_over = graceful.left_over;
    left_over.extend(now.left_over);
    assert_eq!(left_over, [Ask::Echo(1)]);
}

#[tokio::test(start_paused = true)]
async fn a13_a_deadline_holds_beside_a_stop_that_waits_without_end() {
    let pool = one_mailbox().await;
    pool.send(Ask::Sleep(HOUR)).await.unwrap();
    tokio::time::sleep(SECOND).await;
    let start = Instant::now();
    let deadline = async {
        tokio::time::sleep(SECOND).await;
        let report = pool.stop(Stop::within(SECOND)).await;
        assert!(start.elapsed() < 3 * SECOND);
        report
    };
    let (now, report) = tokio::join!(pool.stop(Stop::Now), deadline);
    assert!(start.elapsed() < 3 * SECOND, "the handler was dropped for both");
    assert!(now.wedged.is_empty() && report.wedged.is_empty());
    assert_eq!(report.stats.dead_lettered, 1);
}

#[tokio::test(start_paused = true)]
async fn a13_a_panic_on_the_last_message_does_not_hold_up_the_stop() {
    let pool = Pool::new(|_| Desk)
        .workers(1)
        .restarts(Restarts { max: 9, window: HOUR, backoff: Backoff::new(HOUR, HOUR) })
        .spawn()
        .await
        .unwrap();
    assert!(pool.call(Ask::Panic).await.is_err());
    pool.send(Ask::Sleep(SECOND)).await.unwrap();
    pool.send(Ask::Panic).await.unwrap();
    let start = Instant::now();
    let report = pool.stop(Stop::within(24 * HOUR)).await;
    assert!(start.elapsed() < 2 * SECOND, "{:?}", start.elapsed());
    assert!(report.left_over.is_empty() && report.stats.ledger_holds());
}

#[tokio::test]
async fn a13_a_worker_that_is_being_started_does_not_hold_up_the_stop() {
    let starts = Arc::new(AtomicUsize::new(0));
    let count = starts.clone();
    let (hold, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let pool = Pool::new(move |_| {
        if count.fetch_add(1, Ordering::SeqCst) == 1 {
            let _ = held.lock().unwrap().recv();
        }
        Desk
    })
    .workers(1)
    .spawn()
    .await
    .unwrap();
    assert!(pool.call(Ask::Panic).await.is_err());
    while starts.load(Ordering::SeqCst) < 2 {
        tokio::task::yield_now().await;
    }
    let stopped = tokio::time::timeout(20 * SECOND, pool.stop(Stop::within(HOUR))).await;
    assert!(stopped.unwrap().stats.ledger_holds());
    drop(hold);
}

/// Like `Desk`, but it never finishes restarting after a panic.
struct Shocked;

impl Actor for Shocked {
    type Message = Ask;
    type Reply = u32;
    type Error = ();

    async fn handle(&mut self, message: Ask, _cx: &mut Context<Self>) -> Result<u32, ()> {
        match message {
            Ask::Sleep(time) => tokio::time::sleep(time).await,
            _ => panic!("boom"),
        }
        Ok(0)
    }

    async fn stopped(&mut self, reason: &ExitReason) {
        if reason.is_abnormal() {
            std::future::pending().await
        }
    }
}

/// A pool of one worker, in a slot whose last worker was given up and is still stuck, and that
/// slot.
async fn given_up() -> (Pool<Shocked>, usize) {
    let restarts = Restarts { max: 0, ..Restarts::default() };
    let pool = Pool::new(|_| Shocked).workers(2).restarts(restarts).spawn().await.unwrap();
    assert!(pool.call(Ask::Panic).await.is_err());
    let workers = pool.admin().worker_stats();
    let is_disabled = |status| status == Some(WorkerStatus::Disabled);
    let slot = workers.iter().find(|worker| is_disabled(worker.status)).unwrap().slot;
    pool.admin().remove_worker(1 - slot).unwrap().done(SECOND).await;
    (pool, slot)
}

#[tokio::test(start_paused = true)]
async fn a13_p19_a_hook_of_a_worker_that_was_given_up_does_not_hold_up_the_stop() {
    for is_removed in [false, true] {
        for stop in [Stop::Now, Stop::within(SECOND)] {
            let (pool, slot) = given_up().await;
            match is_removed {
                true => drop(pool.admin().remove_worker(slot).unwrap().done(SECOND).await),
                false => drop(pool.admin().enable(slot).unwrap().done(SECOND).await),
            }
            let report = tokio::time::timeout(HOUR, pool.stop(stop)).await;
            let report = report.expect("the hook is dropped");
            assert!(report.wedged.is_empty() && report.stats.ledger_holds());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a13_p19_a_hook_that_is_dropped_takes_no_slot_from_the_next_worker() {
    let (pool, slot) = given_up().await;
    pool.admin().enable(slot).unwrap().done(SECOND).await;
    pool.send(Ask::Sleep(60 * SECOND)).await.unwrap();
    tokio::time::sleep(SECOND).await;
    let leaves = pool.admin().remove_worker(slot).unwrap();
    let start = Instant::now();
    let left = async {
        let report = leaves.done(HOUR).await;
        (report.left, start.elapsed().as_secs())
    };
    let stop = async { tokio::join!(pool.stop(Stop::Now), left) };
    let (report, left) = tokio::time::timeout(HOUR, stop).await.unwrap();
    assert_eq!((report.stats.handled, left), (1, (vec![slot], 59)));
}

#[tokio::test(start_paused = true)]
async fn a13_waits_may_be_without_end() {
    let pool = Pool::new(|_| Desk)
        .workers(1)
        .ordered_by(|_: &Ask| 1)
        .retry(9, Backoff::new(Duration::MAX, Duration::MAX))
        .restarts(Restarts {
            backoff: Backoff::new(Duration::MAX, Duration::MAX),
            ..Restarts::default()
        })
        .spawn()
        .await
        .unwrap();
    pool.send(Ask::Fail).await.unwrap();
    tokio::time::sleep(SECOND).await;
    assert_eq!(pool.stats().waiting, 1);
    let report = tokio::time::timeout(HOUR, pool.stop(Stop::within(Duration::MAX))).await;
    assert!(report.is_err(), "it waits for the retry");
    let report = pool.stop(Stop::within(SECOND)).await;
    assert_eq!(report.left_over, [Ask::Fail], "what waits for another attempt is returned too");
    assert!(report.stats.ledger_holds());
}

#[test]
fn a06_calls_that_are_queued_when_the_runtime_goes_are_resolved() {
    let theirs =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build();
    let theirs = theirs.unwrap();
    let pool = theirs.block_on(one_mailbox());
    let ours = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    ours.block_on(async {
        pool.send(Ask::Sleep(HOUR)).await.unwrap();
        let (in_hand, queued) = (pool.call(Ask::Sleep(HOUR)), pool.call(Ask::Echo(1)));
        let gone = async {
            while pool.stats().accepted < 3 {
                tokio::task::yield_now().await;
            }
            theirs.shutdown_background();
        };
        let (in_hand, queued, ()) = tokio::join!(in_hand, queued, gone);
        assert_eq!((in_hand, queued), (Err(CallError::Stopped), Err(CallError::Stopped)));
        assert_eq!(pool.call(Ask::Echo(2)).await, Err(SendError::Stopped(Ask::Echo(2)).into()));
        let report = pool.stop(Stop::within(SECOND)).await;
        assert_eq!(report.left_over.len() as u64, report.stats.returned);
        assert!(report.stats.ledger_holds());
    });
}

#[tokio::test(start_paused = true)]
async fn p05_a_spawn_that_is_cancelled_leaves_nothing_running() {
    struct Slow(#[expect(dead_code, reason = "held to see it dropped")] Arc<()>);
    impl Actor for Slow {
        type Message = ();
        type Reply = ();
        type Error = ();
        async fn handle(&mut self, (): (), _cx: &mut Context<Self>) -> Result<(), ()> {
            Ok(())
        }
        async fn started(&mut self, _cx: &mut Context<Self>) -> Result<(), ()> {
            std::future::pending().await
        }
    }
    let alive = Arc::new(());
    let held = alive.clone();
    let spawn = Pool::new(move |_| Slow(held.clone())).workers(4).spawn();
    assert!(tokio::time::timeout(SECOND, spawn).await.is_err());
    tokio::time::sleep(SECOND).await;
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h01_the_largest_pool_starts_works_and_stops() {
    let pool = Pool::new(|_| Desk).workers(65_536).capacity(1).ordered_by(|_: &Ask| 1);
    let pool = pool.spawn().await.unwrap();
    for number in 0..100 {
        assert_eq!(pool.call(Ask::Echo(number)).await, Ok(number));
    }
    let report = pool.stop(Stop::within(60 * SECOND)).await;
    assert_eq!((report.stats.handled, report.wedged.len()), (100, 0));
}
