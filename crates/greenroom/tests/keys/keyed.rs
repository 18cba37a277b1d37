//! Order per key without head-of-line blocking (keyed-pools.md, K01 to K08).

use std::{
    collections::HashMap,
    convert::Infallible,
    hash::{Hash, Hasher},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use greenroom::{Actor, Backoff, Context, Pool, PoolBuilder, Stop};
use tokio::sync::Semaphore;

/// Runs a closure for each message.
#[derive(Clone)]
struct Run<F>(F);

type Job = (u64, u64);

impl<F, Fut> Actor for Run<F>
where
    F: FnMut(Job) -> Fut + Send + 'static,
    Fut: Future<Output = Result<(), ()>> + Send,
{
    type Message = Job;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, job: Job, _cx: &mut Context<Self>) -> Result<(), ()> {
        (self.0)(job).await
    }
}

const PATIENCE: Stop = Stop::within(Duration::from_secs(60));

/// Workers that run a closure, with a copy of it each. The first number of a job is its key.
fn keyed<F, Fut>(workers: usize, run: F) -> PoolBuilder<Run<F>, u64>
where
    F: FnMut(Job) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<(), ()>> + Send,
{
    ordered_by(workers, |job| job.0, run)
}

/// Like [`keyed`], with other keys.
fn ordered_by<F, Fut, K>(
    workers: usize,
    key: impl Fn(&Job) -> K + Send + Sync + 'static,
    run: F,
) -> PoolBuilder<Run<F>, K>
where
    F: FnMut(Job) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<(), ()>> + Send,
    K: Hash + Eq + Send + Sync + 'static,
{
    let run = Run(run);
    Pool::new(move |_| run.clone()).workers(workers).ordered_by(key)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn k01_order_per_key_holds_under_real_threads() {
    const KEYS: u64 = 50;
    const EACH: u64 = 2_000;
    let last: Arc<Vec<Mutex<u64>>> = Arc::new((0..KEYS).map(|_| Mutex::new(0)).collect());
    let pool = keyed(16, move |(key, number)| {
        let last = last.clone();
        async move {
            if number.is_multiple_of(7) {
                tokio::task::yield_now().await;
            }
            let mut last = last[key as usize].try_lock().expect("a key is in hand twice");
            assert_eq!(*last + 1, number, "key {key}");
            *last = number;
            Ok(())
        }
    });
    let pool = pool.capacity(500).spawn().await.unwrap();
    let mut producers = tokio::task::JoinSet::new();
    for producer in 0..4 {
        let address = pool.address();
        producers.spawn(async move {
            for number in 1..=EACH {
                for key in (0..KEYS).filter(|key| key % 4 == producer) {
                    address.send((key, number)).await.unwrap();
                }
            }
        });
    }
    while producers.join_next().await.is_some() {}
    let report = pool.stop(PATIENCE).await;
    assert_eq!(report.stats.handled, KEYS * EACH, "{:?}", report.stats);
    assert!(report.stats.ledger_holds());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn k03_a_handler_that_computes_delays_its_own_key_only() {
    const OTHERS: usize = 1_000;
    let done = Arc::new(AtomicUsize::new(0));
    let overtaken = Arc::new(AtomicBool::new(false));
    let flag = overtaken.clone();
    let pool = keyed(8, move |(key, number)| {
        let (done, overtaken) = (done.clone(), flag.clone());
        async move {
            match (key, number) {
                // Computes, without suspending, until every other key has been handled.
                (0, 0) => {
                    while done.load(Ordering::Acquire) < OTHERS {
                        std::hint::spin_loop();
                    }
                }
                (0, _) => overtaken.store(done.load(Ordering::Acquire) < OTHERS, Ordering::Release),
                _ => {
                    done.fetch_add(1, Ordering::AcqRel);
                }
            }
            Ok(())
        }
    });
    let pool = pool.capacity(10_000).spawn().await.unwrap();
    pool.send((0, 0)).await.unwrap();
    pool.send((0, 1)).await.unwrap();
    for key in 1..=OTHERS as u64 {
        pool.send((key, 0)).await.unwrap();
    }
    let report = pool.stop(PATIENCE).await;
    assert_eq!(report.stats.handled as usize, OTHERS + 2);
    assert!(
        !overtaken.load(Ordering::Acquire),
        "the second message of the key ran beside the first"
    );
}

#[tokio::test(start_paused = true)]
async fn k01_a_suspended_key_holds_up_no_other() {
    let gate = Arc::new(Semaphore::new(0));
    let log = Arc::new(Mutex::new(Vec::new()));
    let (opened, seen) = (gate.clone(), log.clone());
    let pool = keyed(2, move |job| {
        let (gate, log) = (opened.clone(), seen.clone());
        async move {
            if job == (1, 0) {
                gate.acquire().await.unwrap().forget();
            }
            log.lock().unwrap().push(job);
            Ok(())
        }
    });
    let pool = pool.spawn().await.unwrap();
    for job in [(1, 0), (1, 1), (2, 0), (3, 0)] {
        pool.send(job).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(log.lock().unwrap().len(), 2, "the other keys are done while the first waits");
    assert_eq!((pool.stats().queued, pool.stats().in_hand), (1, 1));
    gate.add_permits(1);
    pool.stop(PATIENCE).await;
    let ones: Vec<_> = log.lock().unwrap().iter().filter(|job| job.0 == 1).copied().collect();
    assert_eq!(ones, [(1, 0), (1, 1)]);
}

#[tokio::test]
async fn k02_keys_that_are_done_leave_nothing_behind() {
    let pool = keyed(8, |(_, number)| async move {
        if number.is_multiple_of(3) {
            tokio::task::yield_now().await;
        }
        Ok(())
    });
    let pool = pool.spawn().await.unwrap();
    for key in 0..20_000 {
        pool.send((key, key)).await.unwrap();
    }
    pool.address();
    let report = pool.stop(PATIENCE).await;
    assert_eq!(report.stats.handled, 20_000);
    assert_eq!(report.stats.queued, 0);
}

#[tokio::test(start_paused = true)]
async fn k04_a_hot_key_gives_way_to_others() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let seen = log.clone();
    let pool = keyed(1, move |job| {
        let log = seen.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            log.lock().unwrap().push(job.0);
            Ok(())
        }
    });
    let pool = pool.capacity(10_000).spawn().await.unwrap();
    for number in 0..200 {
        pool.send((1, number)).await.unwrap();
    }
    for key in 2..6 {
        pool.send((key, 0)).await.unwrap();
    }
    pool.stop(PATIENCE).await;
    let log = log.lock().unwrap();
    let first_other = log.iter().position(|key| *key != 1).unwrap();
    assert!(first_other <= 16, "{first_other} of one key in a row while others are ready");
    assert_eq!(log.len(), 204);
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Colliding(u64);

impl Hash for Colliding {
    fn hash<H: Hasher>(&self, state: &mut H) {
        0_u8.hash(state);
    }
}

#[tokio::test(start_paused = true)]
async fn k05_keys_with_the_same_hash_do_not_wait_for_one_another() {
    let done = Arc::new(Mutex::new(HashMap::new()));
    let seen = done.clone();
    let pool = ordered_by(
        2,
        |job| Colliding(job.0),
        move |(key, _)| {
            let done = seen.clone();
            async move {
                if key == 0 {
                    tokio::time::sleep(Duration::from_secs(3_600)).await;
                }
                done.lock().unwrap().insert(key, tokio::time::Instant::now());
                Ok(())
            }
        },
    );
    let pool = pool.spawn().await.unwrap();
    let start = tokio::time::Instant::now();
    for key in 0..10 {
        pool.send((key, 0)).await.unwrap();
    }
    pool.stop(Stop::within(Duration::from_secs(7_200))).await;
    let done = done.lock().unwrap();
    assert!((1..10).all(|key| done[&key] - start < Duration::from_secs(1)));
    assert!(done[&0] - start >= Duration::from_secs(3_600));
}

#[tokio::test(start_paused = true)]
async fn k07_a_retry_parks_the_key_and_not_the_worker() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let seen = log.clone();
    let failed = Arc::new(AtomicBool::new(false));
    let pool = keyed(1, move |job| {
        let (log, failed) = (seen.clone(), failed.clone());
        async move {
            if job == (1, 0) && !failed.swap(true, Ordering::SeqCst) {
                return Err(());
            }
            log.lock().unwrap().push(job);
            Ok(())
        }
    });
    let ten_seconds = Duration::from_secs(10);
    let pool = pool.retry(3, Backoff::new(ten_seconds, ten_seconds)).spawn().await.unwrap();
    for job in [(1, 0), (1, 1), (2, 0), (2, 1)] {
        pool.send(job).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(*log.lock().unwrap(), [(2, 0), (2, 1)]);
    assert_eq!((pool.stats().waiting, pool.stats().queued, pool.stats().idle), (1, 1, 1));
    let report = pool.stop(PATIENCE).await;
    assert_eq!(*log.lock().unwrap(), [(2, 0), (2, 1), (1, 0), (1, 1)]);
    assert_eq!(report.stats.retries, 1);
}

#[tokio::test(start_paused = true)]
async fn k08_after_the_last_attempt_the_lane_goes_on() {
    let dead = Arc::new(Mutex::new(Vec::new()));
    let letters = dead.clone();
    let pool = keyed(2, |(_, number)| async move { if number == 0 { Err(()) } else { Ok(()) } })
        .retry(3, Backoff::new(Duration::from_millis(100), Duration::from_secs(1)))
        .on_dead_letter(move |letter| {
            letters.lock().unwrap().push((letter.message, letter.attempts))
        });
    let pool = pool.spawn().await.unwrap();
    pool.send((1, 0)).await.unwrap();
    pool.call((1, 1)).await.unwrap();
    let report = pool.stop(PATIENCE).await;
    assert_eq!(*dead.lock().unwrap(), [(Some((1, 0)), 3)]);
    assert_eq!((report.stats.handled, report.stats.dead_lettered, report.stats.retries), (1, 1, 2));
}

/// Two workers are suspended, so the clock sleeps. One of them comes back and takes a message that
/// computes; messages behind it in the same shard must not wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn k03_a_worker_that_comes_back_from_a_wait_delays_its_own_key_only() {
    let (done, overtook) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let flag = overtook.clone();
    let pool = ordered_by(
        2,
        |job| Colliding(job.0),
        move |(key, wait)| {
            let (done, overtook) = (done.clone(), flag.clone());
            async move {
                match key {
                    1 | 2 => tokio::time::sleep(Duration::from_millis(wait)).await,
                    3 => {
                        let patience = Instant::now() + Duration::from_secs(5);
                        while !done.load(Ordering::Acquire) && Instant::now() < patience {
                            std::hint::spin_loop();
                        }
                        overtook.store(done.load(Ordering::Acquire), Ordering::Release);
                    }
                    _ => done.store(true, Ordering::Release),
                }
                Ok(())
            }
        },
    );
    let pool = pool.spawn().await.unwrap();
    pool.send((1, 50)).await.unwrap();
    pool.send((2, 150)).await.unwrap();
    // On a busy machine the first may be done by then.
    while pool.stats().dispatched < 2 {
        tokio::task::yield_now().await;
    }
    pool.send((3, 0)).await.unwrap();
    pool.send((4, 0)).await.unwrap();
    pool.stop(PATIENCE).await;
    assert!(overtook.load(Ordering::Acquire), "a key waited for another that computes");
}

#[tokio::test(start_paused = true)]
async fn k01_a_key_of_a_megabyte_and_an_empty_one_are_keys_like_others() {
    let seen: Arc<Mutex<Vec<(usize, u64)>>> = Arc::default();
    let log = seen.clone();
    let pool = ordered_by(
        4,
        |job| "k".repeat(job.0 as usize),
        move |(key, number)| {
            let seen = log.clone();
            async move {
                tokio::time::sleep(Duration::from_millis(10 - number)).await;
                seen.lock()
                    .unwrap_or_else(|broken| broken.into_inner())
                    .push((key as usize, number));
                Ok(())
            }
        },
    );
    let pool = pool.spawn().await.unwrap();
    for number in 0..5 {
        for length in [0, 1 << 20] {
            pool.send((length, number)).await.unwrap();
        }
    }
    pool.stop(PATIENCE).await;
    let seen = seen.lock().unwrap_or_else(|broken| broken.into_inner());
    for length in [0, 1 << 20] {
        let of_key = seen.iter().filter(|(key, _)| *key == length).map(|(_, number)| *number);
        assert!(of_key.eq(0..5), "{seen:?}");
    }
}

/// What a worker does with a message, in this order: yield, sleep, compute.
struct Chore;

impl Actor for Chore {
    type Message = (u32, Duration, Duration);
    type Reply = Duration;
    type Error = Infallible;

    async fn handle(
        &mut self,
        (_, sleeps, computes): Self::Message,
        _: &mut Context<Self>,
    ) -> Result<Duration, Infallible> {
        let began = Instant::now();
        tokio::task::yield_now().await;
        if !sleeps.is_zero() {
            tokio::time::sleep(sleeps).await;
        }
        std::thread::sleep(computes);
        Ok(began.elapsed())
    }
}

/// It may compute on the very thread that waits for the timers of the runtime, without counting as
/// awake: the watchdog has another thread take care of the timers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k03_a_handler_that_computes_after_a_wait_stops_no_other_s_timer() {
    let pool = Pool::new(|_| Chore).workers(2).ordered_by(|chore: &(u32, _, _)| chore.0);
    let pool = pool.spawn().await.unwrap();
    for key in 0..200 {
        pool.call((key, Duration::ZERO, Duration::ZERO)).await.unwrap();
    }
    for round in 0..3 {
        let [address, other] = [pool.address(), pool.address()];
        let (long, nap) = (Duration::from_secs(2), Duration::from_millis(20));
        let computes = tokio::spawn(async move { address.call((1, nap, long)).await });
        let slept = tokio::spawn(async move { other.call((2, 5 * nap, Duration::ZERO)).await });
        let slept = slept.await.unwrap().unwrap();
        assert!(slept < long / 2, "round {round}: it slept for {slept:?}");
        computes.await.unwrap().unwrap();
    }
}
