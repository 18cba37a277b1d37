//! Waiting until workers run: `Pool::ready`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use greenroom::{
    Backoff, ExitReason, Restarts, Stop,
    inspect::{Items, WorkerStatus},
    pool::NotReady,
    prelude::*,
};
use tokio::{sync::Semaphore, time::Instant};

const SECOND: Duration = Duration::from_secs(1);

/// The first starts at once; each of the others needs a permit.
struct Gated(Arc<Semaphore>);

impl Actor for Gated {
    type Message = ();
    type Reply = ();
    type Error = String;

    async fn started(&mut self, cx: &mut Context<Self>) -> Result<(), String> {
        if cx.slot() > 0 {
            self.0.acquire().await.map_err(|error| error.to_string())?.forget();
        }
        Ok(())
    }

    async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), String> {
        Ok(())
    }
}

async fn gated(workers: usize) -> (Pool<Gated>, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let of_workers = gate.clone();
    let pool = Pool::new(move |_| Gated(of_workers.clone())).quick_factory().workers(workers);
    (pool.spawn().await.unwrap(), gate)
}

fn not_ready(error: NotReady) -> (usize, usize, Option<String>, bool) {
    (error.wanted, error.live, error.last_error, error.stopped)
}

#[tokio::test(start_paused = true)]
async fn p16_ready_resolves_with_the_start_of_the_last_worker_that_is_wanted() {
    let (pool, gate) = gated(4).await;
    let begun = Instant::now();
    pool.ready(0, Duration::ZERO).await.unwrap();
    pool.ready(1, Duration::ZERO).await.unwrap();
    let opens = async {
        for _ in 0..3 {
            tokio::time::sleep(SECOND).await;
            gate.add_permits(1);
        }
    };
    let at = |workers| {
        let pool = &pool;
        async move {
            pool.ready(workers, 60 * SECOND).await.unwrap();
            begun.elapsed().as_secs()
        }
    };
    let (two, three, four, ()) = tokio::join!(at(2), at(3), at(4), opens);
    assert_eq!((two, three, four), (1, 2, 3));
}

#[tokio::test(start_paused = true)]
async fn p16_who_waits_in_vain_hears_how_many_run_and_why_the_last_start_failed() {
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = tries.clone();
    let factory = move |slot| match slot {
        0 | 1 => Ok(Gated(Arc::new(Semaphore::new(9)))),
        _ => Err(format!("no {slot}, try {}", counted.fetch_add(1, Ordering::SeqCst) + 1)),
    };
    let restarts = Restarts { backoff: Backoff::new(SECOND, SECOND), ..Restarts::default() };
    let pool = Pool::try_new(factory).quick_factory().workers(3).restarts(restarts);
    let pool = pool.spawn().await.unwrap();
    pool.ready(2, SECOND).await.unwrap();
    let begun = Instant::now();
    let error = pool.admin().ready(3, 10 * SECOND).await.unwrap_err();
    assert_eq!(begun.elapsed(), 10 * SECOND);
    let last = format!("no 2, try {}", tries.load(Ordering::SeqCst));
    assert_eq!(
        error.to_string(),
        format!("2 of 3 workers run; the last start that failed: {last}")
    );
    assert_eq!(not_ready(error), (3, 2, Some(last), false));
}

#[tokio::test(start_paused = true)]
async fn p16_who_waits_for_workers_of_a_pool_that_stops_hears_it_at_once() {
    let (pool, _gate) = gated(2).await;
    let begun = Instant::now();
    let stops = async {
        tokio::time::sleep(SECOND).await;
        pool.admin().stop(Stop::Now).await;
    };
    let (waited, _) = tokio::join!(pool.ready(2, Duration::MAX), stops);
    let error = waited.unwrap_err();
    assert!(begun.elapsed() < 2 * SECOND);
    assert!(error.to_string().contains("the pool is stopping"), "{error}");
    let again = pool.ready(1, Duration::MAX).await.unwrap_err();
    assert_eq!((again.wanted, again.live, again.stopped), (1, 0, true));
}

#[tokio::test(start_paused = true)]
async fn p16_a_worker_that_is_added_or_started_again_counts_once_it_runs() {
    let (pool, gate) = gated(2).await;
    gate.add_permits(1);
    pool.ready(2, SECOND).await.unwrap();
    pool.admin().workers()[1].kill();
    while pool.broadcast().workers().len() == 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(pool.ready(2, SECOND).await.unwrap_err().live, 1, "it is being started again");
    gate.add_permits(1);
    pool.ready(2, SECOND).await.unwrap();

    let change = pool.admin().add(1).unwrap();
    assert_eq!(pool.ready(3, SECOND).await.unwrap_err().live, 2);
    gate.add_permits(1);
    pool.ready(3, SECOND).await.unwrap();
    assert!(change.done(SECOND).await.is_complete());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p16_nobody_sleeps_through_the_last_start() {
    for _ in 0..50 {
        let (pool, gate) = gated(9).await;
        let admin = pool.admin();
        let waits = tokio::spawn(async move { admin.ready(9, 60 * SECOND).await });
        gate.add_permits(8);
        pool.ready(9, 60 * SECOND).await.unwrap();
        waits.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn p25_each_list_of_workers_says_who_is_being_started() {
    let (pool, gate) = gated(3).await;
    let admin = pool.admin();
    let listed = || -> Vec<_> { admin.workers().iter().map(|worker| worker.status()).collect() };
    let counted = || {
        let stats = admin.stats();
        (stats.configured, stats.live, stats.starting, pool.broadcast().workers().len())
    };
    let looked_at = || -> Vec<_> {
        let (inspected, figures) = (admin.inspect(&Items::All), admin.worker_stats());
        let inspected = inspected.workers.iter().map(|worker| worker.figures.map(|it| it.status));
        assert!(inspected.eq(figures.iter().map(|worker| worker.status)));
        figures.iter().map(|worker| (worker.live, worker.status)).collect()
    };
    const STARTING: Option<WorkerStatus> = Some(WorkerStatus::Starting);
    const LIVE: Option<WorkerStatus> = Some(WorkerStatus::Live);
    assert_eq!(listed(), [LIVE, STARTING, STARTING]);
    assert_eq!(counted(), (3, 3, 2, 1));
    assert_eq!(looked_at(), [(true, LIVE), (true, STARTING), (true, STARTING)]);

    gate.add_permits(2);
    pool.ready(3, SECOND).await.unwrap();
    assert_eq!(listed(), [LIVE; 3]);
    assert_eq!(counted(), (3, 3, 0, 3));

    let gone = admin.workers().remove(2);
    admin.remove_worker(2).unwrap().done(SECOND).await;
    assert_eq!((gone.status(), counted()), (None, (2, 2, 0, 2)));
    let vacant = admin.worker_stats().remove(2);
    assert_eq!((vacant.live, vacant.status), (false, None));
    pool.stop(Stop::within(SECOND)).await;
}

#[tokio::test(start_paused = true)]
async fn p26_a_pool_that_has_ended_shows_no_live_workers() {
    let (pool, gate) = gated(3).await;
    gate.add_permits(2);
    pool.ready(3, SECOND).await.unwrap();
    assert_eq!(pool.stop(Stop::within(SECOND)).await.stats.live, 0);
    assert_eq!((pool.stats().live, pool.stats().starting), (0, 0));
    let workers = pool.admin().worker_stats();
    assert!(workers.len() == 3 && workers.iter().all(|worker| !worker.live));
    let single = Pool::one(Gated(gate)).spawn().await.unwrap();
    single.erase().exit(ExitReason::Killed);
    single.erase().ended().await;
    assert_eq!((single.stats().live, single.stats().starting), (0, 0));
    assert_eq!(single.admin().worker_stats()[0].status, None);
}
