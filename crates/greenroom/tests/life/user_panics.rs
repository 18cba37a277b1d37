//! User code that panics in unexpected places: drops, comparisons, policies, hooks. Each message
//! still has one outcome, and the pool continues (P02, P18, A10).

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    task::{Context as TaskContext, Wake, Waker},
    time::Duration,
};

use greenroom::{
    Actor, CallError, Context, DeadLetterReason, ExitReason, FailureAction, FailureTable,
    FinalAction, Pool, PoolBuilder, PoolStats, Restarts, Rule, SpawnError, Stop,
    failure::FailedAttempt,
};

/// Panics when it is dropped, unless another panic is unwinding.
#[derive(Debug)]
struct Explosive(bool);

impl Drop for Explosive {
    fn drop(&mut self) {
        assert!(!self.0 || std::thread::panicking(), "dropped");
    }
}

#[derive(Debug)]
struct Message {
    key: u32,
    fails: bool,
    panics: bool,
    _drop: Explosive,
}

impl Message {
    fn plain(key: u32) -> Self {
        Self { key, fails: false, panics: false, _drop: Explosive(false) }
    }

    fn explosive(key: u32) -> Self {
        Self { _drop: Explosive(true), ..Self::plain(key) }
    }
}

#[derive(Default)]
struct Worker(#[expect(dead_code, reason = "for its drop")] Option<Explosive>);

impl Actor for Worker {
    type Message = Message;
    type Reply = u32;
    type Error = u32;

    const KEEPS_MESSAGE: bool = true;

    async fn handle(&mut self, _: Message, _cx: &mut Context<Self>) -> Result<u32, u32> {
        unreachable!("it only looks")
    }

    async fn receive(
        &mut self,
        delivery: &mut greenroom::Delivery<Message, u32, u32>,
        _cx: &mut Context<Self>,
    ) -> Result<greenroom::Answer<u32>, u32> {
        let message = delivery.message().unwrap();
        let (key, fails, panics) = (message.key, message.fails, message.panics);
        if key.is_multiple_of(2) {
            tokio::task::yield_now().await;
        }
        if panics {
            panic!("boom");
        }
        if fails { Err(key) } else { Ok(greenroom::Answer::Reply(key)) }
    }
}

/// A key whose drop and comparison may panic.
struct Key(u32, #[expect(dead_code, reason = "for its drop")] Explosive, Arc<AtomicBool>);

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        assert!(!self.2.load(Ordering::SeqCst), "cannot be compared");
        self.0 == other.0
    }
}

impl Eq for Key {}

impl std::hash::Hash for Key {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        0_u8.hash(state);
    }
}

const SOON: Stop = Stop::within(Duration::from_secs(600));

fn restless() -> Restarts {
    Restarts { max: 1_000_000, ..Restarts::default() }
}

#[tokio::test(start_paused = true)]
async fn p26_messages_whose_drop_panics_have_one_outcome() {
    for fails in [false, true] {
        let pool = Pool::new(|_| Worker::default()).workers(2).spawn().await.unwrap();
        for key in 0..20 {
            pool.send(Message { fails, ..Message::plain(key) }).await.unwrap();
            let mut explosive = Message::explosive(key);
            explosive.fails = fails;
            pool.send(explosive).await.unwrap();
        }
        let stats = pool.stop(SOON).await.stats;
        let expected = if fails { (0, 40) } else { (40, 0) };
        assert_eq!((stats.handled, stats.dead_lettered), expected);
        assert_eq!(stats.restarts, 0);
    }
}

async fn with_keys(drops: bool, compares: bool) -> PoolStats {
    let touchy = Arc::new(AtomicBool::new(compares));
    let pool = Pool::new(|_| Worker::default())
        .workers(3)
        .restarts(restless())
        .ordered_by(move |message: &Message| Key(message.key, Explosive(drops), touchy.clone()))
        .spawn()
        .await
        .unwrap();
    for round in 0..20 {
        for key in 0..5 {
            pool.send(Message { panics: round == 7, ..Message::plain(key) }).await.unwrap();
        }
    }
    let report = pool.stop(SOON).await;
    assert!(report.left_over.is_empty() && report.stats.ledger_holds());
    report.stats
}

#[tokio::test(start_paused = true)]
async fn p26_keys_whose_drop_panics_lose_nothing() {
    let stats = with_keys(true, false).await;
    assert_eq!((stats.handled, stats.dead_lettered, stats.restarts), (95, 5, 5));
}

#[tokio::test(start_paused = true)]
async fn k05_keys_whose_comparison_panics_lose_nothing() {
    let stats = with_keys(false, true).await;
    assert_eq!((stats.handled, stats.dead_lettered, stats.restarts), (95, 5, 5));
}

#[tokio::test(start_paused = true)]
async fn p18_a_policy_that_panics_makes_a_dead_letter() {
    let pool = Pool::new(|_| Worker::default())
        .workers(1)
        .failure_policy(|_: FailedAttempt<'_, u32>, _: f64| -> FailureAction { panic!("no idea") })
        .on_dead_letter(|_| panic!("nobody is told"))
        .spawn()
        .await
        .unwrap();
    let failed = pool.call(Message { fails: true, ..Message::plain(1) }).await;
    assert!(matches!(failed, Err(CallError::Panicked(_))), "{failed:?}");
    let panicked = pool.call(Message { panics: true, ..Message::plain(1) }).await;
    assert_eq!(panicked, Err(CallError::Panicked("boom".to_owned())));
    assert_eq!(pool.call(Message::plain(3)).await, Ok(3));
    assert_eq!(pool.stop(SOON).await.stats.dead_lettered, 2);
}

#[tokio::test(start_paused = true)]
async fn p18_a_copy_that_panics_makes_a_dead_letter() {
    let row = Rule::Once(FinalAction::Return);
    let pool = Pool::new(|_| Worker::default())
        .workers(1)
        .retry_with(
            |message: &Message| match message.key {
                1 => panic!("cannot be copied"),
                key => Message::plain(key),
            },
            FailureTable::all(row),
        )
        .spawn()
        .await
        .unwrap();
    assert!(matches!(pool.call(Message::plain(1)).await, Err(CallError::Panicked(_))));
    assert_eq!(pool.call(Message::plain(2)).await, Ok(2));
    assert_eq!(pool.stats().live, 1);
}

#[tokio::test(start_paused = true)]
async fn p20_an_actor_whose_drop_panics_is_restarted() {
    let pool = Pool::new(|_| Worker(Some(Explosive(true)))).workers(1).spawn().await.unwrap();
    assert!(pool.call(Message { panics: true, ..Message::plain(1) }).await.is_err());
    assert_eq!(pool.call(Message::plain(2)).await, Ok(2));
}

/// An error of a start that cannot be quoted.
#[derive(Debug)]
struct Unspeakable;

impl std::fmt::Display for Unspeakable {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        panic!("no words")
    }
}

impl std::error::Error for Unspeakable {}

/// Some of its starts fail.
struct Reluctant {
    starts: Arc<AtomicU32>,
    fails: std::ops::Range<u32>,
}

impl Reluctant {
    fn pool(workers: usize, fails: std::ops::Range<u32>) -> PoolBuilder<Self> {
        let starts = Arc::default();
        let build = move |_| Self { starts: Arc::clone(&starts), fails: fails.clone() };
        Pool::new(build).workers(workers)
    }
}

impl Actor for Reluctant {
    type Message = bool;
    type Reply = ();
    type Error = Box<dyn std::error::Error + Send + Sync>;

    async fn handle(&mut self, panics: bool, _: &mut Context<Self>) -> Result<(), Self::Error> {
        assert!(!panics, "boom");
        Ok(())
    }

    async fn started(&mut self, _: &mut Context<Self>) -> Result<(), Self::Error> {
        let start = self.starts.fetch_add(1, Ordering::Relaxed);
        match self.fails.contains(&start) {
            true => Err(Box::new(Unspeakable)),
            false => Ok(()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn p20_a_restart_whose_error_cannot_be_quoted_is_tried_again() {
    let pool = Reluctant::pool(1, 1..3).spawn().await.unwrap();
    assert!(pool.call(true).await.is_err());
    let call = pool.call_timeout(false, Duration::from_secs(60)).await;
    assert!(call.is_ok(), "{call:?}");
}

#[tokio::test(start_paused = true)]
async fn p05_p20_a_first_start_whose_error_cannot_be_quoted_is_told_and_tried_again() {
    let failed = Reluctant::pool(2, 0..9).spawn().await.err();
    let Some(SpawnError::NoWorkerStarted { reason, .. }) = failed else { panic!("{failed:?}") };
    assert!(reason.contains("dyn core::error::Error"), "it names the type: {reason}");

    let pool = Reluctant::pool(2, 2..4).spawn().await.unwrap();
    pool.ready(2, Duration::from_secs(1)).await.unwrap();
    let change = pool.admin().add(1).unwrap().done(Duration::from_secs(1)).await;
    assert_eq!(change.failed.len(), 1, "{change:?}");
    pool.ready(3, Duration::from_secs(60)).await.unwrap();
}

/// On one thread, where no watchdog finds abandoned work.
#[tokio::test(start_paused = true)]
async fn p18_the_messages_behind_a_handler_whose_drop_panics_at_its_time_limit_go_on() {
    struct Stuck;
    impl Actor for Stuck {
        type Message = bool;
        type Reply = ();
        type Error = ();
        async fn handle(&mut self, sticks: bool, _cx: &mut Context<Self>) -> Result<(), ()> {
            if sticks {
                let _held = Explosive(true);
                std::future::pending::<()>().await;
            }
            Ok(())
        }
        async fn restarting(&mut self, _: &ExitReason) {
            std::future::pending().await
        }
    }
    let pool = Pool::new(|_| Stuck).workers(2).ordered_by(|_: &bool| 0);
    let pool = pool.time_limit(Duration::from_secs(1)).spawn().await.unwrap();
    let calls = async { tokio::join!(pool.call(true), pool.call(false)) };
    let (first, second) = tokio::time::timeout(Duration::from_secs(60), calls).await.unwrap();
    assert_eq!((first, second), (Err(CallError::Panicked("dropped".to_owned())), Ok(())));
}

#[tokio::test(start_paused = true)]
async fn p18_each_verdict_is_followed_for_sends_and_calls() {
    type Outcome = (Option<CallError<u32, Message>>, u64, u64, u64);
    let table = |error, panic| FailureTable {
        error: Rule::Once(error),
        panic: Rule::Once(panic),
        ..FailureTable::default()
    };
    let boom = || Some(CallError::Panicked("boom".to_owned()));
    let failed = || Some(CallError::Failed(1));
    // The verdict, the result of a call, and the figures of a call and a send: failed, dead
    // letters, dropped.
    let rows: [(FinalAction, bool, Outcome); 6] = [
        (FinalAction::Return, false, (failed(), 1, 1, 0)),
        (FinalAction::DeadLetter, false, (failed(), 0, 2, 0)),
        (FinalAction::Drop, false, (Some(CallError::Dropped), 0, 0, 2)),
        (FinalAction::Return, true, (boom(), 0, 2, 0)),
        (FinalAction::DeadLetter, true, (boom(), 0, 2, 0)),
        (FinalAction::Drop, true, (Some(CallError::Dropped), 0, 0, 2)),
    ];
    for (finally, panics, expected) in rows {
        let other = FinalAction::DeadLetter;
        let table = if panics { table(other, finally) } else { table(finally, other) };
        let pool = Pool::new(|_| Worker::default()).workers(1).failure_policy(table);
        let pool = pool.spawn().await.unwrap();
        let message = || Message { fails: !panics, panics, ..Message::plain(1) };
        let answer = pool.call(message()).await.err();
        pool.send(message()).await.unwrap();
        let stats = pool.stop(SOON).await.stats;
        let outcome = (answer, stats.failed, stats.dead_lettered, stats.dropped);
        assert_eq!(outcome, expected, "{finally:?}, panics: {panics}");
    }
}

#[tokio::test(start_paused = true)]
async fn p18_a_message_that_keeps_killing_is_poisoned_whatever_the_policy_says() {
    let reasons = Arc::new(Mutex::new(Vec::new()));
    for (attempts, kills) in [(2, 2), (9, 2)] {
        let told = reasons.clone();
        let backoff = greenroom::Backoff::new(Duration::from_millis(1), Duration::from_millis(1));
        let row = Rule::Retry { attempts, backoff, finally: FinalAction::Drop };
        let pool = Pool::new(|_| Worker::default())
            .failure_policy(FailureTable::all(row))
            .on_dead_letter(move |letter| told.lock().unwrap().push(letter.reason))
            .spawn()
            .await
            .unwrap();
        let answer = pool.call(Message { panics: true, ..Message::plain(1) }).await;
        assert_eq!(answer, Err(CallError::Poisoned { kills }));
        assert_eq!(pool.stop(SOON).await.stats.retries, 1);
    }
    assert_eq!(*reasons.lock().unwrap(), [DeadLetterReason::Poisoned; 2]);
}

#[tokio::test(start_paused = true)]
async fn a10_whoever_spawns_gets_the_error_of_a_started_hook() {
    struct Shy;
    impl Actor for Shy {
        type Message = ();
        type Reply = ();
        type Error = String;
        async fn handle(&mut self, (): (), _cx: &mut Context<Self>) -> Result<(), String> {
            Ok(())
        }
        async fn started(&mut self, _cx: &mut Context<Self>) -> Result<(), String> {
            Err("the database is down".to_owned())
        }
    }
    let spawned = Pool::new(|_| Shy).workers(2).spawn().await;
    let Err(SpawnError::NoWorkerStarted { reason, .. }) = spawned else { panic!("it started") };
    assert_eq!(reason, "the `started` hook failed: the database is down");
}

/// A waker of a user's own executor that panics.
struct Alarm;

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        panic!("woken");
    }
}

#[tokio::test(start_paused = true)]
async fn a10_wakers_that_panic_end_no_pool() {
    for workers in 1..3 {
        for capacity in [1, 2, 100] {
            let pool = Pool::new(|_| Worker::default()).workers(workers).capacity(capacity);
            let pool = pool.restarts(restless()).spawn().await.unwrap();
            for round in 0..200 {
                let (waker, address) = (Waker::from(Arc::new(Alarm)), pool.address());
                let mut task = TaskContext::from_waker(&waker);
                let message = |key| Message { panics: round % 7 == 3, ..Message::plain(key) };
                let mut waits: Vec<Pin<Box<dyn Future<Output = ()>>>> = Vec::new();
                for key in 0..4 {
                    let (call, send) = (address.call(message(key)), address.send(message(key)));
                    waits.push(Box::pin(async { drop(call.await) }));
                    waits.push(Box::pin(async { drop(send.await) }));
                    waits.push(Box::pin(async { drop(address.reserve().await) }));
                }
                for wait in &mut waits {
                    let _ = wait.as_mut().poll(&mut task);
                }
                tokio::time::sleep(Duration::from_millis(round % 3)).await;
                // An abandoned wait passes its place on, and wakes the next waiter.
                for wait in waits {
                    let _ = catch_unwind(AssertUnwindSafe(|| drop(wait)));
                }
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(pool.call(Message::plain(1)).await, Ok(1), "{workers} {capacity}");
            let report = pool.stop(SOON).await;
            assert!(report.stats.ledger_holds() && report.left_over.is_empty());
        }
    }
}
