//! Pools and actors under supervisors.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use greenroom::{
    CallError, NotAccepted, Restarts, Supervisor,
    prelude::*,
    supervisor::{ChildSpec, ChildState, OnExceeded, Strategy},
};
use tokio::task::JoinHandle;

const SECOND: Duration = Duration::from_secs(1);
const NONE: Restarts = Restarts {
    max: 0,
    window: Duration::from_secs(60),
    backoff: greenroom::Backoff::new(SECOND, SECOND),
};

/// Records its starts and ends.
type Log = Arc<Mutex<Vec<String>>>;

/// Panics at 0, otherwise sleeps for this many milliseconds.
struct Clerk(&'static str, Log);

impl Actor for Clerk {
    type Message = u64;
    type Reply = u64;
    type Error = ();

    async fn started(&mut self, _cx: &mut Context<Self>) -> Result<(), ()> {
        self.1.lock().unwrap().push(format!("{} starts", self.0));
        Ok(())
    }

    async fn handle(&mut self, ms: u64, _cx: &mut Context<Self>) -> Result<u64, ()> {
        assert!(ms > 0, "on purpose");
        tokio::time::sleep(Duration::from_millis(ms)).await;
        Ok(ms)
    }

    async fn stopped(&mut self, _reason: &greenroom::ExitReason) {
        self.1.lock().unwrap().push(format!("{} ends", self.0));
    }
}

fn clerk(name: &'static str, log: &Log) -> (Pool<Clerk>, ChildSpec) {
    let log = log.clone();
    let pool = Pool::new(move |_| Clerk(name, log.clone())).name(name).workers(1).restarts(NONE);
    pool.supervised().unwrap()
}

fn take(log: &Log) -> Vec<String> {
    std::mem::take(&mut *log.lock().unwrap())
}

#[tokio::test(start_paused = true)]
async fn s04_what_is_queued_survives_the_restart_and_the_killer_follows_the_failure_table() {
    let log = Log::default();
    let (pool, child) = clerk("a", &log);
    pool.try_send(5).unwrap();
    assert_eq!(pool.stats().queued, 1, "it waits for the first start");
    let root = Supervisor::new(Strategy::OneForOne).child(child).spawn().await.unwrap();
    let killer = pool.call(0);
    let later = async {
        tokio::task::yield_now().await;
        pool.call(7).await
    };
    let (killed, later) = tokio::join!(killer, later);
    assert!(matches!(killed, Err(CallError::Panicked(_))));
    assert_eq!(later, Ok(7));
    let stats = pool.stats();
    assert_eq!((stats.handled, stats.dead_lettered, stats.queued), (2, 1, 0));
    assert!(stats.ledger_holds());
    root.stop(Stop::within(SECOND)).await;
    assert_eq!(pool.try_send(1).unwrap_err().without_message(), NotAccepted::Stopped);
}

#[tokio::test(start_paused = true)]
async fn s01_each_strategy_restarts_whom_it_should_and_stops_in_reverse_order() {
    for (strategy, restarted) in [
        (Strategy::OneForOne, &["b ends", "b starts"][..]),
        (Strategy::RestForOne, &["b ends", "c ends", "b starts", "c starts"]),
        (Strategy::OneForAll, &["b ends", "c ends", "a ends", "a starts", "b starts", "c starts"]),
    ] {
        let log = Log::default();
        let mut root = Supervisor::new(strategy);
        let pools = ["a", "b", "c"].map(|name| {
            let (pool, child) = clerk(name, &log);
            (pool, Some(child))
        });
        let pools = pools.map(|(pool, mut child)| {
            let spec = ChildSpec::new(child.take().unwrap());
            root = std::mem::replace(&mut root, Supervisor::new(strategy)).child(spec);
            pool
        });
        let root = root.spawn().await.unwrap();
        assert_eq!(take(&log), ["a starts", "b starts", "c starts"], "{strategy:?}");
        assert!(pools[1].call(0).await.is_err());
        tokio::time::sleep(SECOND).await;
        assert_eq!(take(&log), restarted, "{strategy:?}");
        assert_eq!(pools[2].call(1).await, Ok(1));
        root.stop(Stop::within(SECOND)).await;
        assert_eq!(take(&log), ["c ends", "b ends", "a ends"], "{strategy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn s02_a_child_whose_budget_is_used_up_is_disabled_and_brought_back() {
    let log = Log::default();
    let (pool, child) = clerk("a", &log);
    let spec = ChildSpec::new(child).restarts(NONE).on_exceeded(OnExceeded::DisableChild);
    let root = Supervisor::new(Strategy::OneForOne).child(spec).spawn().await.unwrap();
    let _ = pool.call(0).await;
    tokio::time::sleep(SECOND).await;
    let children = root.children();
    assert_eq!(children[0].state, ChildState::Disabled);
    assert_eq!(pool.try_send(1).unwrap_err().without_message(), NotAccepted::NoWorkers);
    let mut enabled = root.enable(children[0].id).unwrap();
    enabled.done(SECOND).await.unwrap();
    assert_eq!(pool.call(1).await, Ok(1));
}

#[tokio::test(start_paused = true)]
async fn s02_a_supervisor_that_gives_up_stops_its_children() {
    let log = Log::default();
    let (pool, child) = clerk("a", &log);
    let root = Supervisor::new(Strategy::OneForOne).child(ChildSpec::new(child).restarts(NONE));
    let root = root.spawn().await.unwrap();
    let _ = pool.call(0).await;
    root.ended().await;
    assert_eq!(pool.try_send(1).unwrap_err().without_message(), NotAccepted::Stopped);
    assert!(pool.erase().exit_reason().is_some());
}

#[tokio::test(start_paused = true)]
async fn s03_p20_a_start_that_fails_during_a_restart_is_tried_again_until_it_works() {
    let (broken, starts) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let (fails, counts) = (broken.clone(), starts.clone());
    let factory = move |_| {
        counts.fetch_add(1, Ordering::SeqCst);
        match fails.load(Ordering::SeqCst) {
            true => Err("no connection"),
            false => Ok(Clerk("a", Log::default())),
        }
    };
    let builder = Pool::try_new(factory).workers(1).restarts(NONE);
    let (pool, child) = builder.supervised().unwrap();
    let root = Supervisor::new(Strategy::OneForOne).child(child).spawn().await.unwrap();
    broken.store(true, Ordering::SeqCst);
    let _ = pool.call(0).await;
    pool.try_send(1).unwrap();
    tokio::time::sleep(600 * SECOND).await;
    assert!(starts.load(Ordering::SeqCst) > 10, "it is tried again and again");
    assert_eq!(pool.stats().queued, 1);
    broken.store(false, Ordering::SeqCst);
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(pool.stats().handled, 1);
    assert_eq!(root.children()[0].state, ChildState::Running);
}

#[tokio::test(start_paused = true)]
async fn s01_a_handler_that_is_still_busy_is_dropped_at_the_end_of_patience() {
    let log = Log::default();
    let ((first, a), (second, b)) = (clerk("a", &log), clerk("b", &log));
    let spec = ChildSpec::new(b).stop(Stop::within(SECOND));
    let root = Supervisor::new(Strategy::OneForAll).child(a).child(spec).spawn().await.unwrap();
    let stuck = second.address();
    let stuck = tokio::spawn(async move { stuck.call(1_000_000).await });
    tokio::task::yield_now().await;
    let _ = first.call(0).await;
    tokio::time::sleep(5 * SECOND).await;
    assert!(stuck.is_finished(), "it was dropped");
    assert_eq!((first.call(1).await, second.call(1).await), (Ok(1), Ok(1)));
    root.stop(Stop::within(SECOND)).await;
    assert!(second.stats().ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn s01_nothing_is_left_running_of_a_pool_that_was_never_started() {
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = alive();
    let (pool, child) = clerk("a", &Log::default());
    assert!(alive() > before);
    drop((pool, child));
    tokio::time::sleep(SECOND).await;
    assert_eq!(alive(), before);
}

/// The message was accepted for a worker that was never going to be started.
#[tokio::test(start_paused = true)]
async fn s02_p22_a_permit_of_a_sticky_pool_that_is_disabled_gives_its_message_back() {
    let pool = Pool::new(|_| Clerk("a", Log::default())).workers(1).restarts(NONE);
    let (pool, child) = pool.sticky_by(|ms: &u64| *ms).supervised().unwrap();
    let spec = ChildSpec::new(child).restarts(NONE).on_exceeded(OnExceeded::DisableChild);
    let root = Supervisor::new(Strategy::OneForOne).child(spec).spawn().await.unwrap();
    assert_eq!(pool.call(1).await, Ok(1));
    let permit = pool.try_reserve().unwrap();
    let _ = pool.call(0).await;
    tokio::time::sleep(SECOND).await;
    assert_eq!(root.children()[0].state, ChildState::Disabled);
    assert!(permit.send(5).is_err());
    assert!(pool.stats().queued == 0 && pool.stats().ledger_holds());
    let mut enabled = root.enable(root.children()[0].id).unwrap();
    enabled.done(SECOND).await.unwrap();
    assert_eq!(pool.call(1).await, Ok(1));
}

/// Panics at 0. At 1 it blocks its thread until it is released.
struct Blocks(Arc<Gate>);

#[derive(Default)]
struct Gate {
    is_blocked: AtomicU32,
    is_open: AtomicBool,
}

impl Actor for Blocks {
    type Message = u64;
    type Reply = u64;
    type Error = ();

    async fn handle(&mut self, number: u64, _cx: &mut Context<Self>) -> Result<u64, ()> {
        assert!(number > 0, "on purpose");
        if number == 1 {
            self.0.is_blocked.fetch_add(1, Ordering::SeqCst);
            while !self.0.is_open.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(number)
    }
}

/// Releases the worker at the end of a test, even of one that fails.
struct Opens(Arc<Gate>);

impl Drop for Opens {
    fn drop(&mut self) {
        self.0.is_open.store(true, Ordering::SeqCst);
    }
}

fn blocks(workers: usize) -> (Opens, Pool<Blocks>, ChildSpec) {
    let gate = Arc::new(Gate::default());
    let blocks = gate.clone();
    let pool = Pool::new(move |_| Blocks(blocks.clone())).workers(workers).restarts(NONE);
    let (pool, child) = pool.supervised().unwrap();
    (Opens(gate), pool, child)
}

fn calls(pool: &Pool<Blocks>, number: u64) -> JoinHandle<Result<u64, CallError<(), u64>>> {
    let address = pool.address();
    tokio::spawn(async move { address.call(number).await })
}

/// Polls until the condition holds. The result does not depend on how long that takes.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let waits = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(30 * SECOND, waits).await.expect(what);
}

/// The pool stayed open, and accepted messages that were never handled once the worker had ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s02_a_pool_is_disabled_although_a_worker_is_wedged() {
    let (gate, pool, child) = blocks(2);
    let spec = ChildSpec::new(child).restarts(NONE).on_exceeded(OnExceeded::DisableChild);
    let root = Supervisor::new(Strategy::OneForOne).child(spec.stop(Stop::within(Duration::ZERO)));
    let root = root.spawn().await.unwrap();
    let wedged = calls(&pool, 1);
    until("one worker is wedged", || gate.0.is_blocked.load(Ordering::SeqCst) == 1).await;
    let _ = pool.call(0).await;
    let behind = calls(&pool, 2);
    until("it is disabled", || root.children()[0].state == ChildState::Disabled).await;
    let refused = || {
        let why = pool.try_send(3).map_err(|error| error.without_message());
        why == Err(NotAccepted::NoWorkers)
    };
    until("it refuses messages, and one worker is still wedged", refused).await;
    let behind = tokio::time::timeout(30 * SECOND, behind).await.expect("it is a dead letter");
    assert!(matches!(behind.unwrap(), Err(CallError::NoWorkers)));
    drop(gate);
    assert!(wedged.await.is_ok());
    until("no worker is left", || pool.stats().in_hand == 0 && pool.stats().live == 0).await;
    assert!(refused());
    assert!(pool.stats().ledger_holds());
    let mut enabled = root.enable(root.children()[0].id).unwrap();
    enabled.done(SECOND).await.unwrap();
    assert_eq!((pool.call(4).await, pool.stats().live), (Ok(4), 2));
    root.stop(Stop::within(SECOND)).await;
}

/// The worker was found busy when the others were restarted, and stayed down when it had ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s01_a_wedged_worker_of_a_pool_that_is_restarted_is_started_once_it_ends() {
    let (gate, pool, child) = blocks(1);
    let (other, sibling) = clerk("a", &Log::default());
    let root = Supervisor::new(Strategy::OneForAll).child(sibling);
    let root =
        root.child(ChildSpec::new(child).stop(Stop::within(Duration::ZERO))).spawn().await.unwrap();
    let wedged = calls(&pool, 1);
    until("it is wedged", || gate.0.is_blocked.load(Ordering::SeqCst) == 1).await;
    let _ = other.call(0).await;
    until("both run again", || {
        root.children().iter().all(|child| child.state == ChildState::Running && child.restarts > 0)
    })
    .await;
    let behind = calls(&pool, 2);
    drop(gate);
    assert!(wedged.await.is_ok());
    let behind = tokio::time::timeout(30 * SECOND, behind).await.expect("a worker is there");
    assert!(matches!(behind.unwrap(), Ok(2)));
    root.stop(Stop::within(SECOND)).await;
    assert!(pool.stats().ledger_holds());
}

/// The worker was told to rest, and left the pool for good.
#[tokio::test(start_paused = true)]
async fn s01_p28_an_adopted_worker_rests_with_its_pool_and_comes_back_with_it() {
    let log = Log::default();
    let ((sibling, a), (pool, b)) = (clerk("a", &log), clerk("b", &log));
    let other = Pool::new(|_| Clerk("other", Log::default())).workers(1).capacity(1);
    let other = other.spawn().await.unwrap();
    let spec = ChildSpec::new(b).stop(Stop::within(SECOND));
    let root = Supervisor::new(Strategy::OneForAll).child(a).child(spec).spawn().await.unwrap();
    let change = pool.admin().adopt(other.address()).unwrap();
    assert!(change.done(SECOND).await.is_complete());
    for round in 1..4 {
        // The pool's own worker is busy, and the adopted one waits for room or is idle.
        let busy = round % 2 * 5_000;
        pool.admin().workers()[0].address().send(busy + 1).await.unwrap();
        for _ in 0..busy / 1_000 {
            pool.send(busy).await.unwrap();
        }
        tokio::time::sleep(SECOND / 10).await;
        let _ = sibling.call(0).await;
        tokio::time::sleep(100 * SECOND).await;
        let stats = pool.stats();
        assert_eq!((stats.configured, stats.live, stats.queued), (2, 2, 0), "{round}");
        let before = other.stats().handled;
        let calls = (0..4).map(|_| pool.address());
        let calls = calls.map(|pool| tokio::spawn(async move { pool.call(1).await }));
        for call in calls.collect::<Vec<_>>() {
            assert_eq!(call.await.unwrap(), Ok(1));
        }
        assert!(other.stats().handled > before, "it has its share");
    }
    root.stop(Stop::within(SECOND)).await;
    assert!(pool.stats().ledger_holds());
    assert_eq!(other.call(1).await, Ok(1), "it lives on by itself");
}
