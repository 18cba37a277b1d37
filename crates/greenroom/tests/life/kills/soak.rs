//! Workers of every kind of pool are killed at all times, while callers call and senders send: no
//! caller waits forever, no key is in hand twice, and the ledger is exact. A long run takes the
//! number of seconds from the environment, and prints the longest pause:
//!
//! ```sh
//! GREENROOM_SOAK_SECONDS=600 cargo test --release -p greenroom --test actors soak -- --nocapture
//! ```

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use greenroom::{
    Actor, Answer, Backoff, CallError, Context, Delivery, Envelope, ExitReason, Pool, PoolBuilder,
    Restarts, Stop, batch::Batches, policy::RoundRobin,
};

use super::clerk::{NO_WAIT, compute, runtime};

const KEYS: u64 = 6;
const WORKERS: usize = 4;
const CALLERS: u64 = 2;

/// The longest allowed wait for the next outcome, however busy the machine is.
const HANGS: Duration = Duration::from_secs(30);

const ASKED_FOR: &str = "asked for";

#[derive(Debug, Clone, Copy)]
struct Job {
    key: u64,
    number: u64,
}

/// The shared state of a pool's workers.
#[derive(Default)]
struct Desk {
    is_keyed: bool,
    in_hand: [AtomicBool; KEYS as usize],
    /// The number of handlers that have started.
    begun: AtomicU64,
    twice: AtomicU64,
}

struct InHand(Arc<Desk>, u64);

impl InHand {
    fn begin(desk: &Arc<Desk>, key: u64) -> Self {
        if desk.in_hand[key as usize].swap(true, Ordering::SeqCst) && desk.is_keyed {
            desk.twice.fetch_add(1, Ordering::SeqCst);
        }
        desk.begun.fetch_add(1, Ordering::Relaxed);
        Self(desk.clone(), key)
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.0.in_hand[self.1 as usize].store(false, Ordering::SeqCst);
    }
}

struct Clerk(Arc<Desk>);

impl Actor for Clerk {
    type Message = Job;
    type Reply = u64;
    type Error = ();

    async fn handle(&mut self, job: Job, _: &mut Context<Self>) -> Result<u64, ()> {
        let _in_hand = InHand::begin(&self.0, job.key);
        match job.number % 100 {
            0 => compute(Duration::from_millis(3)),
            1..5 => compute(Duration::from_micros(100)),
            5..15 => tokio::time::sleep(Duration::from_millis(1)).await,
            15..40 => tokio::task::yield_now().await,
            40 => return Err(()),
            41 => panic!("{ASKED_FOR}"),
            _ => {}
        }
        Ok(job.number)
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<Job, u64, ()>,
        cx: &mut Context<Self>,
    ) -> Result<Answer<u64>, ()> {
        let others: Vec<u64> = delivery.messages_mut().skip(1).map(|job| job.number).collect();
        let reply = self.handle(delivery.take(), cx).await;
        for (companion, number) in delivery.batch_items().iter_mut().zip(others) {
            companion.settle(Ok(number));
        }
        reply.map(Answer::Reply)
    }
}

type Outcome = Result<u64, CallError<(), Job>>;

/// A pool under test, and its record so far.
struct Soaked {
    name: &'static str,
    pool: Pool<Clerk>,
    desk: Arc<Desk>,
    over: AtomicBool,
}

impl Soaked {
    fn builder(is_keyed: bool) -> (PoolBuilder<Clerk>, Arc<Desk>) {
        let desk = Arc::new(Desk { is_keyed, ..Desk::default() });
        let of_workers = desk.clone();
        let restarts = Restarts { max: u32::MAX, backoff: NO_WAIT, ..Restarts::default() };
        let backoff = Backoff::new(Duration::ZERO, Duration::from_millis(2));
        let pool = Pool::new(move |_| Clerk(of_workers.clone())).workers(WORKERS).capacity(64);
        (pool.restarts(restarts).retry(30, backoff).poison_limit(1_000), desk)
    }

    async fn all() -> Vec<Arc<Self>> {
        type Keyed = fn(PoolBuilder<Clerk>) -> PoolBuilder<Clerk>;
        let plain: [(&str, Keyed); 5] = [
            ("shared", |pool| pool),
            ("quick", |pool| pool.quick_handlers(true)),
            ("limited", |pool| pool.concurrency(3)),
            ("by a policy", |pool| pool.dispatch(RoundRobin::new())),
            ("with a time limit", |pool| pool.time_limit(Duration::from_secs(5))),
        ];
        let mut all = Vec::new();
        for (name, set_up) in plain {
            let (pool, desk) = Self::builder(false);
            all.push(Self::new(name, set_up(pool).spawn().await.unwrap(), desk));
        }
        let key = |job: &Job| job.key;
        let (pool, desk) = Self::builder(true);
        all.push(Self::new("keyed", pool.ordered_by(key).spawn().await.unwrap(), desk));
        let (pool, desk) = Self::builder(true);
        let pool = pool.batches(Batches::of(5)).ordered_by(key);
        all.push(Self::new("in batches", pool.spawn().await.unwrap(), desk));
        let (pool, desk) = Self::builder(true);
        all.push(Self::new("sticky", pool.sticky_by(key).spawn().await.unwrap(), desk));
        all
    }

    fn new(name: &'static str, pool: Pool<Clerk>, desk: Arc<Desk>) -> Arc<Self> {
        Arc::new(Self { name, pool, desk, over: AtomicBool::new(false) })
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    async fn call(self: Arc<Self>, caller: u64) {
        let mut number = caller * 17;
        while !self.is_over() {
            number += 1;
            let (job, urgent) = (Job { key: number % KEYS, number }, number.is_multiple_of(31));
            let outcome = match urgent {
                true => self.pool.call_with(job, Envelope::urgent()).await,
                false => self.pool.call(job).await,
            };
            self.check(number, &outcome);
        }
    }

    /// After thirty attempts a message may fail for good.
    fn check(&self, number: u64, outcome: &Outcome) {
        let is_expected = match outcome {
            Ok(reply) => *reply == number,
            Err(CallError::Failed(())) => number % 100 == 40,
            Err(CallError::Panicked(_)) => number % 100 == 41,
            Err(CallError::Killed) => true,
            Err(_) => false,
        };
        assert!(is_expected, "{}: {number} came to {outcome:?}", self.name);
    }

    async fn send(self: Arc<Self>) {
        let mut number = 0;
        while !self.is_over() {
            number += 1;
            self.pool.send(Job { key: number % KEYS, number }).await.unwrap();
            if number.is_multiple_of(16) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }

    fn kill(&self, place: usize) {
        let workers = self.pool.admin().workers();
        workers[place % workers.len()].erase().exit(ExitReason::Killed);
    }

    /// Kills from within a task, even just before a call.
    async fn kill_from_inside(self: Arc<Self>) {
        for place in 0.. {
            if self.is_over() {
                return;
            }
            self.kill(place);
            match place % 5 {
                0 => tokio::time::sleep(Duration::from_millis(1)).await,
                _ => tokio::task::yield_now().await,
            }
        }
    }

    async fn end(&self) {
        let report = self.pool.stop(Stop::within(HANGS)).await;
        let stats = report.stats;
        assert!(
            stats.ledger_holds() && stats.accepted == stats.settled(),
            "{}: {stats:?}",
            self.name
        );
        assert!(report.left_over.is_empty() && report.wedged.is_empty(), "{}", self.name);
        assert_eq!(self.desk.twice.load(Ordering::SeqCst), 0, "{}: a key in hand twice", self.name);
        println!(
            "{:>20}: {:>9} accepted, {:>8} retries, {:>8} restarts",
            self.name, stats.accepted, stats.retries, stats.restarts
        );
    }
}

/// From its own thread, measures how long no handler of a pool starts although senders always have
/// messages for it, and kills from there as well.
fn watch(all: &[Arc<Soaked>], time: Duration) -> Duration {
    let (start, mut longest) = (Instant::now(), Duration::ZERO);
    let mut seen: Vec<_> = all.iter().map(|_| (0, Instant::now())).collect();
    for round in 0.. {
        if start.elapsed() >= time {
            break;
        }
        for (soaked, (begun, since)) in all.iter().zip(&mut seen) {
            let now = soaked.desk.begun.load(Ordering::Relaxed);
            longest = longest.max(since.elapsed());
            assert!(since.elapsed() < HANGS, "{}: nothing is begun", soaked.name);
            if now != *begun {
                (*begun, *since) = (now, Instant::now());
            }
            soaked.kill(round);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    all.iter().for_each(|soaked| soaked.over.store(true, Ordering::SeqCst));
    longest
}

async fn soak(time: Duration) -> Duration {
    let all = Soaked::all().await;
    let mut tasks = tokio::task::JoinSet::new();
    for soaked in &all {
        (0..CALLERS).for_each(|caller| drop(tasks.spawn(soaked.clone().call(caller))));
        tasks.spawn(soaked.clone().send());
        tasks.spawn(soaked.clone().kill_from_inside());
    }
    let watched = all.clone();
    let longest = tokio::task::spawn_blocking(move || watch(&watched, time));
    let longest = longest.await.unwrap();
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    for soaked in &all {
        soaked.end().await;
    }
    longest
}

fn seconds() -> u64 {
    std::env::var("GREENROOM_SOAK_SECONDS").ok().and_then(|time| time.parse().ok()).unwrap_or(2)
}

#[test]
fn a12_p18_p26_kills_at_all_times_stop_nobody_and_lose_nothing() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload_as_str() != Some(ASKED_FOR) {
            hook(panic);
        }
    }));
    let ended: Vec<_> = [1, 2]
        .map(|threads| {
            // On a thread, so that a runtime whose thread never returns fails the test instead of
            // hanging it.
            let time = Duration::from_secs(seconds()) / 2;
            let (tell, told) = std::sync::mpsc::channel();
            std::thread::spawn(move || tell.send(runtime(threads).block_on(soak(time))));
            (threads, told.recv_timeout(time + 4 * HANGS))
        })
        .into();
    let _ = std::panic::take_hook();
    for (threads, longest) in ended {
        let longest = longest.expect("it has hung, or failed");
        println!("{threads} threads: the longest that no handler of a pool began: {longest:?}");
    }
}
