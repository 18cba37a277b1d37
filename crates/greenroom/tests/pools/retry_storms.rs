//! Messages that are retried at once, again and again: other messages get their turn between the
//! attempts.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use greenroom::{
    Backoff, Envelope, PoolBuilder,
    batch::{Batch, Batches},
    policy::RoundRobin,
    prelude::*,
};

/// Attempts after which a storm ends by itself: messages not handled by then have starved.
const LONG: u32 = 20_000;

/// The number of messages besides the storm.
const OTHERS: u32 = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Job {
    key: u32,
    number: u32,
    fails: bool,
}

/// The record of a storm.
#[derive(Default)]
struct Seen {
    attempts: AtomicU32,
    over: AtomicBool,
    handled: Mutex<Vec<Job>>,
}

impl Seen {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    fn handle(&self, job: Job) -> Result<u32, ()> {
        if job.fails && !self.is_over() {
            if self.attempts.fetch_add(1, Ordering::SeqCst) >= LONG {
                self.over.store(true, Ordering::SeqCst);
            }
            return Err(());
        }
        self.handled.lock().unwrap().push(job);
        Ok(job.number)
    }

    /// The numbers of this key, in the order in which they were handled.
    fn numbers(&self, key: u32) -> Vec<u32> {
        let handled = self.handled.lock().unwrap();
        handled.iter().filter(|job| job.key == key).map(|job| job.number).collect()
    }
}

#[derive(Clone, Default)]
struct Clerk(Arc<Seen>);

impl Actor for Clerk {
    type Message = Job;
    type Reply = u32;
    type Error = ();

    async fn handle(&mut self, job: Job, _cx: &mut Context<Self>) -> Result<u32, ()> {
        self.0.handle(job)
    }
}

/// Like `Clerk`, several at a time.
#[derive(Clone)]
struct Office(Arc<Seen>);

impl Actor for Office {
    type Message = Batch<Job>;
    type Reply = Vec<Result<u32, ()>>;
    type Error = ();

    async fn handle(
        &mut self,
        jobs: Batch<Job>,
        _cx: &mut Context<Self>,
    ) -> Result<Vec<Result<u32, ()>>, ()> {
        Ok(jobs.into_iter().map(|job| self.0.handle(job)).collect())
    }
}

const AT_ONCE: Backoff = Backoff::new(Duration::ZERO, Duration::ZERO);

const PATIENCE: Stop = Stop::within(Duration::from_secs(60));

/// How a pool distributes its messages to its workers.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Shared,
    Keyed,
    /// With order per key, and messages without a key.
    Keyless,
    Sticky,
    ByPolicy,
}

const KINDS: [Kind; 5] = [Kind::Shared, Kind::Keyed, Kind::Keyless, Kind::Sticky, Kind::ByPolicy];

async fn spawn<A>(builder: PoolBuilder<A>, kind: Kind) -> Pool<A>
where
    A: Actor<Message = Job, Reply = u32, Error = ()>,
{
    let builder = builder.capacity(1_000).seed(7).retry(u32::MAX, AT_ONCE);
    let spawned = match kind {
        Kind::Shared => builder.spawn().await,
        Kind::Keyed => builder.ordered_by(|job: &Job| job.key).spawn().await,
        Kind::Keyless => builder.ordered_by_opt(|_: &Job| None::<u32>).spawn().await,
        // A table so large that no two keys share a slot.
        Kind::Sticky => builder.sticky_by(|job: &Job| job.key).sticky_table(1 << 20).spawn().await,
        Kind::ByPolicy => builder.dispatch(RoundRobin::new()).spawn().await,
    };
    spawned.unwrap()
}

/// This many messages that fail at every attempt, each with its own key and one message behind it.
#[derive(Debug, Clone, Copy)]
struct Storm {
    messages: u32,
    urgent: bool,
}

const STORMS: [Storm; 4] = [
    Storm { messages: 1, urgent: false },
    Storm { messages: 3, urgent: false },
    Storm { messages: 80, urgent: false },
    Storm { messages: 3, urgent: true },
];

/// Starts a storm, and returns once the other messages have been handled.
async fn weather<A>(pool: &Pool<A>, seen: &Arc<Seen>, storm: Storm)
where
    A: Actor<Message = Job, Reply = u32, Error = ()>,
{
    let envelope = || if storm.urgent { Envelope::urgent() } else { Envelope::new() };
    for key in 0..storm.messages {
        pool.send_with(Job { key, number: 0, fails: true }, envelope()).await.unwrap();
        pool.send_with(Job { key, number: 1, fails: false }, envelope()).await.unwrap();
    }
    while seen.attempts.load(Ordering::SeqCst) <= storm.messages && !seen.is_over() {
        tokio::task::yield_now().await;
    }
    let others = (0..OTHERS).map(|number| {
        let address = pool.address();
        tokio::spawn(async move {
            let job = |key| Job { key, number, fails: false };
            address.send(job(1_000 + number % 4)).await.unwrap();
            assert_eq!(address.call(job(2_000 + number)).await, Ok(number));
        })
    });
    for other in others.collect::<Vec<_>>() {
        other.await.unwrap();
    }
}

/// Reports what has starved, if anything.
async fn tried<A>(builder: PoolBuilder<A>, seen: &Arc<Seen>, kind: Kind, storm: Storm) -> String
where
    A: Actor<Message = Job, Reply = u32, Error = ()>,
{
    let pool = spawn(builder, kind).await;
    weather(&pool, seen, storm).await;
    let starved = seen.over.swap(true, Ordering::SeqCst);
    let report = pool.stop(PATIENCE).await;
    assert!(report.stats.ledger_holds() && report.left_over.is_empty(), "{kind:?} {storm:?}");
    if starved { format!("{kind:?} {storm:?}\n") } else { String::new() }
}

/// Like `tried`, in a pool where messages of a key are handled one by one.
async fn tried_in_order(workers: usize, kind: Kind, storm: Storm) -> String {
    let clerk = Clerk::default();
    let seen = clerk.0.clone();
    let builder = Pool::new(move |_| clerk.clone()).workers(workers);
    let starved = tried(builder, &seen, kind, storm).await;
    if matches!(kind, Kind::Keyed | Kind::Sticky) {
        for key in 0..storm.messages {
            assert_eq!(seen.numbers(key), [0, 1], "{kind:?} {storm:?}");
        }
    }
    starved
}

async fn every_kind_weathers_every_storm() {
    let mut starved = String::new();
    for kind in KINDS {
        for storm in STORMS {
            for workers in [1, 2] {
                starved += &tried_in_order(workers, kind, storm).await;
            }
            if !matches!(kind, Kind::ByPolicy) {
                let office = Office(Arc::default());
                let seen = office.0.clone();
                let builder = Pool::batched(move |_| office.clone(), Batches::of(4)).workers(2);
                let batched = tried(builder, &seen, kind, storm).await;
                starved += &batched.replace('\n', " in batches\n");
            }
        }
    }
    assert!(starved.is_empty(), "{starved}");
}

#[tokio::test]
async fn a_message_that_is_attempted_at_once_again_lets_others_have_their_turn() {
    every_kind_weathers_every_storm().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_is_attempted_at_once_again_starves_nobody_on_several_threads() {
    every_kind_weathers_every_storm().await;
}

/// Like a storm, for an actor that stands alone.
#[tokio::test]
async fn an_actor_that_attempts_a_message_at_once_again_answers_its_callers() {
    let clerk = Clerk::default();
    let seen = clerk.0.clone();
    let builder = Pool::new(move |_| clerk.clone()).workers(1);
    let starved = tried(builder, &seen, Kind::Shared, STORMS[0]).await;
    assert!(starved.is_empty(), "{starved}");
}
