//! P17, P19, P20, P21: restarts, budgets, slots, factories, exit signals for pools.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use greenroom::{
    Actor, Backoff, CallError, Context, DeadLetterReason, ExitReason, Pool, PoolBuilder,
    RestartPolicy, Restarts, Stop, TrySendError, inspect::WorkerStatus, pool::WhenExhausted,
};
use tokio::time::Instant;

use crate::life::probe::{Do, HOUR, Journal, Probe, SECOND, settle, until, up};

fn workers(journal: &Journal, workers: usize) -> PoolBuilder<Probe> {
    let probe = Probe::new("it", journal);
    Pool::new(move |_| probe.clone()).workers(workers)
}

/// How a worker ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Normally,
    WithAnError,
    ByAPanic,
    ByAKill,
    ByASignal,
}

impl End {
    const ALL: [Self; 5] =
        [Self::Normally, Self::WithAnError, Self::ByAPanic, Self::ByAKill, Self::ByASignal];

    async fn of_one(self, pool: &Pool<Probe>) {
        let me = pool.call(Do::Nothing).await.unwrap();
        match self {
            Self::Normally => drop(pool.call(Do::with(|cx| cx.stop())).await),
            Self::WithAnError => drop(pool.call(Do::exit(ExitReason::failed("no disk"))).await),
            Self::ByAPanic => drop(pool.call(Do::Panic).await),
            Self::ByAKill => me.exit(ExitReason::Killed),
            Self::ByASignal => me.exit(ExitReason::Shutdown),
        }
        settle().await;
    }

    fn is_normal(self) -> bool {
        matches!(self, Self::Normally | Self::ByASignal)
    }
}

#[tokio::test(start_paused = true)]
async fn p17_the_policy_says_which_ends_are_followed_by_a_restart() {
    for policy in [RestartPolicy::Permanent, RestartPolicy::Transient, RestartPolicy::Temporary] {
        for end in End::ALL {
            let journal = Journal::default();
            let pool = workers(&journal, 1).restart_policy(policy).spawn().await.unwrap();
            end.of_one(&pool).await;
            let again = match policy {
                RestartPolicy::Permanent => true,
                RestartPolicy::Transient => !end.is_normal(),
                RestartPolicy::Temporary => false,
            };
            let stats = pool.stats();
            let expected = (u64::from(again), usize::from(again));
            assert_eq!((stats.restarts, stats.live), expected, "{policy:?} {end:?}");
            assert_eq!(pool.call(Do::Nothing).await.is_ok(), again);
            assert!(pool.stop(Stop::within(SECOND)).await.stats.ledger_holds());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn p17_the_budget_refills_as_its_window_passes_and_restarts_wait_longer_and_longer() {
    let journal = Journal::default();
    let pool = workers(&journal, 1).spawn().await.unwrap();
    let mut waits = Vec::new();
    for _ in 0..3 {
        let begun = Instant::now();
        assert!(pool.call(Do::Panic).await.is_err());
        pool.call(Do::Nothing).await.unwrap();
        waits.push(begun.elapsed().as_millis());
    }
    assert!(waits[0] <= 1 && (50..=101).contains(&waits[1]), "{waits:?}");
    assert!((100..=201).contains(&waits[2]), "{waits:?}");
    tokio::time::sleep(60 * SECOND).await;
    for live in [1, 1, 1, 0] {
        assert!(pool.call(Do::Panic).await.is_err());
        tokio::time::sleep(SECOND).await;
        assert_eq!(pool.stats().live, live);
    }
    assert_eq!(pool.stats().restarts, 6);
}

#[tokio::test(start_paused = true)]
async fn p17_each_worker_has_a_budget_of_its_own() {
    let journal = Journal::default();
    let restarts = Restarts { max: 1, ..Restarts::default() };
    let pool = workers(&journal, 2).restarts(restarts).spawn().await.unwrap();
    let all: Vec<_> =
        pool.admin().workers().iter().map(|worker| worker.address().clone()).collect();
    for worker in &all {
        assert!(worker.call(Do::Panic).await.is_err());
    }
    tokio::time::sleep(SECOND).await;
    assert_eq!((pool.stats().live, pool.stats().restarts), (2, 2));
    assert!(all[0].call(Do::Panic).await.is_err());
    tokio::time::sleep(SECOND).await;
    assert_eq!(pool.stats().live, 1);
    assert!(all[1].call(Do::Nothing).await.is_ok());
}

fn once(then: WhenExhausted, journal: &Journal, size: usize) -> PoolBuilder<Probe> {
    let restarts = Restarts { max: 0, ..Restarts::default() };
    workers(journal, size).restarts(restarts).when_exhausted(then)
}

#[tokio::test(start_paused = true)]
async fn p19_the_work_of_a_disabled_slot_is_taken_over_and_enable_brings_it_back() {
    for then in [WhenExhausted::Disable, WhenExhausted::Escalate] {
        let journal = Journal::default();
        let pool = once(then, &journal, 2).spawn().await.unwrap();
        let worker = pool.admin().workers()[0].address().clone();
        worker.send(Do::Panic).await.unwrap();
        worker.send(Do::Nothing).await.unwrap();
        let call = worker.call(Do::Nothing);
        assert!(tokio::time::timeout(SECOND, call).await.unwrap().is_ok(), "the other has done it");
        let stats = pool.stats();
        assert_eq!(
            (stats.live, stats.configured, stats.handled, stats.dead_lettered),
            (1, 2, 2, 1)
        );
        assert!(pool.admin().enable(0).unwrap().done(SECOND).await.is_complete());
        assert_eq!(pool.stats().live, 2);
        assert!(pool.admin().enable(0).is_err(), "it is not disabled");
        assert!(pool.stop(Stop::within(SECOND)).await.stats.ledger_holds());
    }
}

/// Stops when it is told to. Its hook waits, and counts.
struct Parting {
    begun: Arc<AtomicUsize>,
    finished: Arc<AtomicUsize>,
    explodes: bool,
}

impl Drop for Parting {
    fn drop(&mut self) {
        assert!(!self.explodes || std::thread::panicking(), "dropped");
    }
}

impl Actor for Parting {
    type Message = ();
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, (): (), cx: &mut Context<Self>) -> Result<(), ()> {
        cx.stop();
        Ok(())
    }

    async fn stopped(&mut self, _: &ExitReason) {
        self.begun.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(SECOND).await;
        self.finished.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn p13_p19_the_hook_of_a_disabled_worker_ends_though_its_slot_is_enabled_meanwhile() {
    for explodes in [false, true] {
        let (begun, finished) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let counts = (begun.clone(), finished.clone());
        let build = move |_| {
            let (begun, finished) = counts.clone();
            Parting { begun, finished, explodes }
        };
        let pool = Pool::new(build).workers(2).spawn().await.unwrap();
        pool.ready(2, SECOND).await.unwrap();
        pool.call(()).await.unwrap();
        settle().await;
        assert_eq!(begun.load(Ordering::SeqCst), 1);
        let slots = pool.admin().worker_stats();
        let is_disabled = |status| status == Some(WorkerStatus::Disabled);
        let slot = slots.iter().find(|worker| is_disabled(worker.status)).unwrap().slot;
        assert_eq!(finished.load(Ordering::SeqCst), 0, "the hook waits");
        let change = pool.admin().enable(slot).unwrap().done(SECOND).await;
        assert!(change.is_complete(), "{change:?}");
        tokio::time::sleep(2 * SECOND).await;
        assert_eq!(finished.load(Ordering::SeqCst), 1, "it explodes: {explodes}");
        assert_eq!(pool.stats().live, 2);
        assert!(pool.stop(Stop::within(HOUR)).await.wedged.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn p19_without_any_slot_the_queue_is_dead_letters_and_the_pool_refuses() {
    let journal = Journal::default();
    let letters = journal.clone();
    let note = move |letter: greenroom::DeadLetter<Do, _>| {
        letters.note(format_args!("letter {:?} {}", letter.reason, letter.message.is_some()));
    };
    let pool = once(WhenExhausted::Disable, &journal, 1).on_dead_letter(note);
    let pool = pool.spawn().await.unwrap();
    pool.send(Do::Panic).await.unwrap();
    pool.send(Do::Nothing).await.unwrap();
    let call = pool.call(Do::Nothing);
    assert!(matches!(call.await, Err(CallError::NoWorkers)));
    assert!(matches!(pool.try_send(Do::Nothing), Err(TrySendError::NoWorkers(_))));
    let reason = DeadLetterReason::NoWorkers;
    assert_eq!(journal.count(&format!("letter {reason:?} true")), 2);
    assert!(pool.stats().ledger_holds());
    assert!(pool.admin().enable(0).unwrap().done(SECOND).await.is_complete());
    assert!(pool.call(Do::Nothing).await.is_ok());
    assert!(pool.stop(Stop::within(SECOND)).await.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn p19_a_pool_may_stop_instead_for_the_reason_of_its_worker() {
    let journal = Journal::default();
    let pool = up(once(WhenExhausted::StopPool, &journal, 3)).await;
    assert!(pool.call(Do::Panic).await.is_err());
    assert!(matches!(pool.erase().ended().await, ExitReason::Panicked { .. }));
    assert_eq!(journal.count("it stopped panicked"), 3);
    assert!(matches!(pool.try_send(Do::Nothing), Err(TrySendError::Stopped(_))));
}

#[tokio::test(start_paused = true)]
async fn p20_a_factory_that_fails_or_panics_is_tried_until_it_works() {
    for panics in [false, true] {
        let calls = Arc::new(AtomicUsize::new(0));
        let count = calls.clone();
        let probe = Probe::default();
        let pool = Pool::try_new(move |_| match count.fetch_add(1, Ordering::SeqCst) {
            1..20 if panics => panic!("no factory"),
            1..20 => Err("no factory"),
            _ => Ok(probe.clone()),
        });
        let restarts = Restarts { max: 1, ..Restarts::default() };
        let pool = pool.workers(1).restarts(restarts).spawn().await.unwrap();
        assert!(pool.call(Do::Panic).await.is_err());
        let call = tokio::time::timeout(HOUR, pool.call(Do::Nothing)).await;
        assert!(call.unwrap().is_ok());
        let stats = pool.stats();
        assert_eq!((stats.restarts, stats.live, calls.load(Ordering::SeqCst)), (1, 1, 21));
    }
}

#[tokio::test(start_paused = true)]
async fn p20_a_hook_that_fails_to_start_costs_no_budget() {
    let journal = Journal::default();
    let probe = Probe::new("it", &journal);
    let broken = probe.broken.clone();
    let restarts = Restarts { max: 1, ..Restarts::default() };
    let pool = Pool::new(move |_| probe.clone()).workers(1).restarts(restarts);
    let pool = pool.spawn().await.unwrap();
    broken.store(true, Ordering::SeqCst);
    assert!(pool.call(Do::Panic).await.is_err());
    tokio::time::sleep(10 * SECOND).await;
    assert!(journal.count("it started 1") > 3);
    broken.store(false, Ordering::SeqCst);
    assert!(pool.call(Do::Nothing).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn p20_a_factory_that_blocks_holds_up_nobody() {
    let (hold, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let pool = Pool::new(move |slot| {
        if slot == 0 {
            let _ = held.lock().unwrap().recv();
        }
        Probe::default()
    });
    let pool = pool.workers(2).spawn().await.unwrap();
    for _ in 0..10 {
        pool.call(Do::Nothing).await.unwrap();
    }
    drop(hold);
    let report = pool.stop(Stop::within(10 * SECOND)).await;
    assert!(report.stats.ledger_holds() && report.wedged.is_empty());
}

#[tokio::test(start_paused = true)]
async fn p21_an_exit_signal_to_a_pool_stops_it_with_all_workers() {
    let reasons = [
        (ExitReason::Normal, "normal"),
        (ExitReason::Shutdown, "shut down"),
        (ExitReason::failed("no disk"), "failed"),
    ];
    for (reason, text) in reasons {
        let journal = Journal::default();
        let probe = Probe::trap("it", &journal);
        let pool = up(Pool::new(move |_| probe.clone()).workers(3)).await;
        let call = pool.call(Do::Sleep(SECOND));
        let exit = async {
            settle().await;
            pool.erase().exit(reason.clone());
        };
        let (answer, ()) = tokio::join!(call, exit);
        assert!(answer.is_ok(), "the message in hand was handled");
        assert_eq!(pool.erase().ended().await.to_string(), reason.to_string());
        assert_eq!(journal.count(&format!("it stopped {text}")), 3, "{:?}", journal.all());
        assert!(matches!(pool.try_send(Do::Nothing), Err(TrySendError::Stopped(_))));
    }
}

#[tokio::test(start_paused = true)]
async fn p21_a_pool_that_is_killed_drops_its_handlers() {
    let journal = Journal::default();
    let pool = workers(&journal, 2).spawn().await.unwrap();
    let call = pool.call(Do::Sleep(HOUR));
    let begun = Instant::now();
    let kill = async {
        settle().await;
        pool.erase().exit(ExitReason::Killed);
    };
    let (answer, ()) = tokio::join!(call, kill);
    assert!(answer.is_err() && begun.elapsed() < SECOND);
    assert!(matches!(pool.erase().ended().await, ExitReason::Killed));
    let report = pool.stop(Stop::Now).await;
    assert!(report.stats.ledger_holds() && report.left_over.len() == 1);
}

#[tokio::test(start_paused = true)]
async fn p21_neither_a_workers_own_exit_nor_a_late_notice_stops_the_pool() {
    let journal = Journal::default();
    let restarts = Restarts { max: 100, ..Restarts::default() };
    let pool = workers(&journal, 4).restarts(restarts).spawn().await.unwrap();
    for reason in [ExitReason::Normal, ExitReason::Shutdown, ExitReason::failed("no disk")] {
        pool.call(Do::exit(reason)).await.unwrap();
        settle().await;
    }
    let other = Pool::one(Probe::default()).spawn().await.unwrap();
    pool.erase().link(&other.erase());
    other.send(Do::with(|cx| cx.stop())).await.unwrap();
    other.erase().ended().await;
    // The same for workers that are already gone.
    let me = pool.call(Do::Nothing).await.unwrap();
    me.stop(Stop::Now).await;
    for reason in [ExitReason::Normal, ExitReason::Killed, ExitReason::failed("late")] {
        me.exit(reason);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(pool.erase().is_alive() && pool.call(Do::Nothing).await.is_ok());
    until(&pool, |stats| stats.live == 1 && stats.ledger_holds()).await;
}

#[tokio::test(start_paused = true)]
async fn p17_who_waits_for_a_restart_for_long_is_stopped_at_once() {
    let journal = Journal::default();
    let backoff = Backoff::new(HOUR, HOUR);
    let pool = workers(&journal, 1).restarts(Restarts { backoff, ..Restarts::default() });
    let pool = pool.spawn().await.unwrap();
    assert!(pool.call(Do::Panic).await.is_err());
    assert!(pool.call(Do::Panic).await.is_err());
    let begun = Instant::now();
    pool.stop(Stop::within(HOUR)).await;
    assert!(begun.elapsed() < SECOND);
}
