//! Systems: owning actors and pools, counting and stopping them (A17).

use std::{
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

use greenroom::{
    Actor, Context, ExitReason, Pool, PoolBuilder, Restarts, SpawnError, Stop, System,
    TrySendError, pool::WhenExhausted,
};
use tokio::{runtime, time::Instant};

type Log = Arc<Mutex<Vec<String>>>;

struct Desk {
    name: &'static str,
    log: Log,
}

impl Actor for Desk {
    type Message = Duration;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, time: Duration, _: &mut Context<Self>) -> Result<(), ()> {
        assert!(time != Duration::MAX, "on purpose");
        tokio::time::sleep(time).await;
        self.log.lock().unwrap().push(format!("{} handled", self.name));
        Ok(())
    }

    async fn stopped(&mut self, _: &ExitReason) {
        self.log.lock().unwrap().push(format!("{} stopped", self.name));
    }
}

fn desk(name: &'static str, log: &Log) -> PoolBuilder<Desk> {
    let log = log.clone();
    Pool::new(move |_| Desk { name, log: log.clone() }).name(name).workers(1)
}

fn taken(log: &Log) -> Vec<String> {
    std::mem::take(&mut log.lock().unwrap())
}

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test(start_paused = true)]
async fn a17_a_shutdown_drains_those_that_were_started_last_first() {
    let (system, log) = (System::new(), Log::default());
    let first = system.start(desk("first", &log)).await.unwrap();
    let second = desk("second", &log).spawn().await.unwrap();
    system.adopt(&second);
    let third = system.start(desk("third", &log)).await.unwrap();
    system.adopt(&first);
    assert_eq!(system.len(), 3, "one that it owns already keeps its place");
    for _ in 0..2 {
        first.send(SECOND).await.unwrap();
        second.send(5 * SECOND).await.unwrap();
        third.send(7 * SECOND).await.unwrap();
    }
    let start = Instant::now();
    let report = system.shutdown(HOUR).await;
    assert_eq!(start.elapsed(), 14 * SECOND, "all have been at work meanwhile");
    let names: Vec<_> = report.ends.iter().map(|end| &*end.name).collect();
    assert_eq!(names, ["third", "second", "first"]);
    assert!(report.is_clean());
    let stopped: Vec<_> =
        taken(&log).into_iter().filter(|line| line.ends_with("stopped")).collect();
    assert_eq!(stopped, ["third stopped", "second stopped", "first stopped"]);
    assert!(system.is_empty());
    assert!(matches!(first.try_send(SECOND), Err(TrySendError::Stopped(_))));
}

#[tokio::test(start_paused = true)]
async fn a17_one_that_is_stopped_later_accepts_what_those_before_it_still_send() {
    let (system, log) = (System::new(), Log::default());
    let first = system.start(desk("first", &log)).await.unwrap();
    let second = system.start(desk("second", &log)).await.unwrap();
    second.send(10 * SECOND).await.unwrap();
    let use_first = async {
        tokio::time::sleep(5 * SECOND).await;
        first.send(SECOND).await.unwrap();
        second.try_send(SECOND).unwrap_err();
    };
    let (report, ()) = tokio::join!(system.shutdown(HOUR), use_first);
    assert!(report.is_clean());
}

#[tokio::test(start_paused = true)]
async fn a17_all_share_one_deadline_and_what_is_left_of_it_is_each_ones() {
    let (system, log) = (System::new(), Log::default());
    let mut pools = Vec::new();
    for name in ["first", "second", "third", "fourth"] {
        let pool = system.start(desk(name, &log)).await.unwrap();
        pool.send(8 * SECOND).await.unwrap();
        pools.push(pool);
    }
    pools[2].send(8 * SECOND).await.unwrap();
    for _ in 0..3 {
        pools[0].send(8 * SECOND).await.unwrap();
    }
    let start = Instant::now();
    let report = system.shutdown(10 * SECOND).await;
    assert!(start.elapsed() <= 11 * SECOND);
    let ends: Vec<_> = report.ends.iter().map(|end| (&*end.name, end.summary.left_over)).collect();
    assert_eq!(ends, [("fourth", 0), ("third", 0), ("second", 0), ("first", 2)]);
    assert_eq!(report.wedged().count(), 0, "who waits lets go");
    assert!(!report.is_clean());
}

/// Blocks its thread until it is told to return.
struct Wedge(Mutex<mpsc::Receiver<()>>);

impl Actor for Wedge {
    type Message = ();
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), ()> {
        let _ = self.0.lock().unwrap().recv();
        Ok(())
    }
}

/// Pools on their own threads, each with a stuck handler, shut down on virtual time.
fn shut_down_wedged(within: Duration) {
    let busy =
        runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
    // Dropped first, even when the test fails: the runtime waits for its handlers.
    let mut let_go = Vec::new();
    let system = System::new();
    for name in ["one", "two", "three"] {
        let (sender, receiver) = mpsc::channel();
        let_go.push(sender);
        let wedge = Mutex::new(Some(Wedge(Mutex::new(receiver))));
        let pool = Pool::new(move |_| wedge.lock().unwrap().take().unwrap()).name(name).workers(1);
        busy.block_on(async {
            let pool = system.start(pool).await.unwrap();
            pool.send(()).await.unwrap();
            while pool.stats().in_hand == 0 {
                tokio::task::yield_now().await;
            }
        });
    }
    let here = runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let report = here.unwrap().block_on(async {
        let start = Instant::now();
        let report = system.shutdown(within).await;
        assert!(start.elapsed() <= within + SECOND + SECOND / 100, "they are waited for together");
        report
    });
    assert_eq!(report.wedged().collect::<Vec<_>>(), ["three-0", "two-0", "one-0"]);
    assert!(system.is_empty(), "it has done with them");
}

#[test]
fn a17_those_that_do_not_let_go_are_named_and_take_no_time_of_their_own() {
    shut_down_wedged(Duration::ZERO);
    shut_down_wedged(10 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a17_dropping_a_node_tells_all_to_end_now_and_waits_for_nobody() {
    let (system, log) = (System::new(), Log::default());
    let first = system.start(desk("first", &log)).await.unwrap();
    let second = system.start(desk("second", &log)).await.unwrap();
    let busy = system.start(desk("busy", &log)).await.unwrap();
    for _ in 0..3 {
        busy.send(10 * SECOND).await.unwrap();
    }
    tokio::time::sleep(SECOND).await;
    let start = Instant::now();
    drop(system);
    assert_eq!(start.elapsed(), Duration::ZERO);
    for pool in [&first, &second, &busy] {
        assert!(matches!(pool.try_send(SECOND), Err(TrySendError::Stopped(_))));
    }
    tokio::time::sleep(SECOND).await;
    assert_eq!(taken(&log), ["second stopped", "first stopped"]);
    tokio::time::sleep(HOUR).await;
    assert_eq!(taken(&log), ["busy handled", "busy stopped"], "only what was in hand");
    assert_eq!(busy.stop(Stop::Now).await.left_over.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a17_a_node_keeps_its_actors_alive() {
    let (system, log) = (System::new(), Log::default());
    let pool = system.start(desk("first", &log)).await.unwrap();
    let weak = pool.downgrade();
    drop(pool);
    tokio::time::sleep(HOUR).await;
    assert!(weak.is_alive());
    drop(system);
    assert!(!weak.is_alive());
}

#[test]
fn a17_a_node_may_outlive_the_runtime_and_be_dropped_outside() {
    let (system, log) = (System::new(), Log::default());
    let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let pool = runtime.block_on(system.start(desk("first", &log))).unwrap();
    let dropped = System::new();
    dropped.adopt(&pool);
    drop(dropped);
    assert!(!pool.downgrade().is_alive());
    drop(runtime);
    assert_eq!(system.len(), 0);
    drop((system, pool));
}

#[tokio::test(start_paused = true)]
async fn a17_one_that_ends_by_itself_leaves_the_count() {
    let (system, log) = (System::new(), Log::default());
    let stays = system.start(desk("stays", &log)).await.unwrap();
    let stops = system.start(desk("stops", &log)).await.unwrap();
    let dies = desk("dies", &log)
        .restarts(Restarts { max: 0, ..Restarts::default() })
        .when_exhausted(WhenExhausted::StopPool);
    let dies = system.start(dies).await.unwrap();
    assert_eq!(system.len(), 3);
    stops.send(SECOND).await.unwrap();
    let stop = stops.stop(Stop::within(HOUR));
    let look = async {
        tokio::task::yield_now().await;
        assert_eq!(system.len(), 3, "it drains");
    };
    tokio::join!(stop, look);
    assert_eq!(system.len(), 2);
    dies.send(Duration::MAX).await.unwrap();
    tokio::time::sleep(SECOND).await;
    assert_eq!(system.len(), 1, "no worker is left");
    let report = system.shutdown(HOUR).await;
    assert_eq!(report.ends.iter().map(|end| &*end.name).collect::<Vec<_>>(), ["stays"]);
    drop(stays);
}

#[tokio::test(start_paused = true)]
async fn a17_a_shutdown_that_is_dropped_has_lost_nobody() {
    let (system, log) = (System::new(), Log::default());
    system.start(desk("first", &log)).await.unwrap();
    let second = system.start(desk("second", &log)).await.unwrap();
    second.send(10 * SECOND).await.unwrap();
    assert!(tokio::time::timeout(SECOND, system.shutdown(HOUR)).await.is_err());
    assert_eq!(system.len(), 2);
    let report = system.shutdown(HOUR).await;
    assert_eq!(report.ends.iter().map(|end| &*end.name).collect::<Vec<_>>(), ["second", "first"]);
}

#[tokio::test(start_paused = true)]
async fn a17_who_is_adopted_during_a_shutdown_is_stopped_too() {
    let (system, log) = (System::new(), Log::default());
    let first = system.start(desk("first", &log)).await.unwrap();
    first.send(10 * SECOND).await.unwrap();
    let late = async {
        tokio::time::sleep(SECOND).await;
        system.start(desk("late", &log)).await.unwrap()
    };
    let (report, late) = tokio::join!(system.shutdown(HOUR), late);
    assert_eq!(report.ends.iter().map(|end| &*end.name).collect::<Vec<_>>(), ["first", "late"]);
    assert!(!late.downgrade().is_alive());
}

#[tokio::test(start_paused = true)]
async fn a17_a_start_that_fails_adds_nobody() {
    let (system, log) = (System::new(), Log::default());
    let failed = system.start(desk("first", &log).workers(70_000)).await;
    assert!(matches!(failed, Err(SpawnError::OutOfRange { .. })));
    assert!(system.is_empty());
}
