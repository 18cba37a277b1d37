//! Real threads, every kind of handler, producers that come and go, and a stop in the middle. This
//! covers what random programs on one thread cannot: the watchdog takes shards away from computing
//! handlers, and wake-ups cross.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use greenroom::{
    Actor, Address, Backoff, CallError, Context, FailureTable, FinalAction, Pool, Restarts, Rule,
    Stop, StopReport, limits::Rate, shares::ShareLimits,
};

use crate::quiet;

const KEYS: usize = 40;
const MOST: usize = 400_000;
const ENOUGH: u64 = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Job {
    id: u32,
    key: usize,
    /// Position among the messages of its key that one producer sends.
    turn: u32,
}

/// What the handlers have observed.
struct Seen {
    keyed: bool,
    /// Per key: the turn handled last, and the message in hand.
    last: Vec<AtomicU32>,
    in_hand: Vec<AtomicBool>,
    handled: Vec<AtomicU8>,
    violations: Mutex<Vec<String>>,
}

impl Seen {
    fn new(keyed: bool) -> Arc<Self> {
        Arc::new(Self {
            keyed,
            last: (0..KEYS).map(|_| AtomicU32::new(0)).collect(),
            in_hand: (0..KEYS).map(|_| AtomicBool::new(false)).collect(),
            handled: (0..MOST).map(|_| AtomicU8::new(0)).collect(),
            violations: Mutex::default(),
        })
    }

    fn violation(&self, what: String) {
        self.violations.lock().unwrap().push(what);
    }

    fn begin(self: &Arc<Self>, job: Job) -> InHand {
        if self.keyed {
            if self.in_hand[job.key].swap(true, Ordering::SeqCst) {
                self.violation(format!("key {} in hand twice at {}", job.key, job.turn));
            }
            let last = self.last[job.key].load(Ordering::SeqCst);
            if last > job.turn {
                self.violation(format!("key {}: {} after {last}", job.key, job.turn));
            }
            self.last[job.key].store(job.turn, Ordering::SeqCst);
        }
        InHand(self.clone(), job.key)
    }
}

struct InHand(Arc<Seen>, usize);

impl Drop for InHand {
    fn drop(&mut self) {
        self.0.in_hand[self.1].store(false, Ordering::SeqCst);
    }
}

struct Worker(Arc<Seen>);

impl Actor for Worker {
    type Message = Job;
    type Reply = u32;
    type Error = ();

    async fn handle(&mut self, job: Job, _cx: &mut Context<Self>) -> Result<u32, ()> {
        let in_hand = self.0.begin(job);
        match job.id % 1_009 {
            // Long enough for the watchdog to take the shard away, and ending at a random phase of
            // its ticks.
            0 => compute(Duration::from_micros(2_000 + u64::from(job.id % 3_000))),
            1..5 => tokio::time::sleep(Duration::from_millis(1)).await,
            5..7 => panic!("on purpose"),
            7..17 => return Err(()),
            17..120 => tokio::task::yield_now().await,
            120..200 => {
                // Suspended, then computing on a lane.
                tokio::task::yield_now().await;
                compute(Duration::from_micros(20));
            }
            _ => {}
        }
        drop(in_hand);
        self.0.handled[job.id as usize].fetch_add(1, Ordering::SeqCst);
        Ok(job.id)
    }
}

fn compute(time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

/// Sends until told to stop. Each producer has its own keys. Returns the accepted messages.
async fn produce(
    address: Address<Job, u32, ()>,
    producer: usize,
    producers: usize,
    next: Arc<AtomicU32>,
    over: Arc<AtomicBool>,
) -> Vec<u32> {
    let mut accepted = Vec::new();
    let mut turns = HashMap::<usize, u32>::new();
    let mut random = 0x9E37_79B9_u64 * (producer as u64 + 1);
    while !over.load(Ordering::Relaxed) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        // Half of the messages go to one hot key.
        let key = if random & 1 == 0 { 0 } else { (random >> 8) as usize % (KEYS / producers) };
        let key = key * producers + producer;
        let turn = turns.entry(key).or_default();
        *turn += 1;
        let id = next.fetch_add(1, Ordering::Relaxed);
        if id as usize >= MOST {
            break;
        }
        let job = Job { id, key, turn: *turn };
        let sent = match random >> 40 & 15 {
            0 => !matches!(
                address.call(job).await,
                Err(CallError::Stopped | CallError::NotAccepted(_))
            ),
            1 => address.try_send(job).is_ok(),
            2 => match address.reserve().await {
                Ok(permit) => permit.send(job).is_ok(),
                Err(_) => false,
            },
            _ => address.send(job).await.is_ok(),
        };
        if sent {
            accepted.push(id);
        }
        if random >> 50 & 1023 == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    accepted
}

struct Run {
    seen: Arc<Seen>,
    dead: Arc<AtomicU64>,
    accepted: Vec<u32>,
    report: StopReport<Job>,
}

async fn run(
    keyed: bool,
    shares: Option<ShareLimits>,
    workers: usize,
    capacity: usize,
    time: Duration,
    stop: Stop,
) -> Run {
    const PRODUCERS: usize = 4;
    let (seen, dead) = (Seen::new(keyed), Arc::new(AtomicU64::new(0)));
    let (shared, buried) = (seen.clone(), dead.clone());
    let row = Rule::Retry {
        attempts: 2,
        backoff: Backoff::new(Duration::from_millis(1), Duration::from_millis(5)),
        finally: FinalAction::DeadLetter,
    };
    let builder = Pool::new(move |_| Worker(shared.clone()))
        .workers(workers)
        .capacity(capacity)
        .restarts(Restarts {
            max: u32::MAX,
            backoff: Backoff::new(Duration::ZERO, Duration::ZERO),
            ..Restarts::default()
        })
        .retry_with(|job| *job, FailureTable::all(row))
        .on_dead_letter(move |_| {
            buried.fetch_add(1, Ordering::SeqCst);
        });
    let share = |job: &Job| job.id % 7;
    let started = match (keyed, shares) {
        (true, None) => builder.ordered_by(|job: &Job| job.key).spawn().await,
        (true, Some(limits)) => {
            let builder = builder.ordered_by(|job: &Job| job.key);
            builder.shared_by(share).share_limits(limits).spawn().await
        }
        (false, None) => builder.spawn().await,
        (false, Some(limits)) => builder.shared_by(share).share_limits(limits).spawn().await,
    };
    let pool = started.unwrap();
    let (next, over) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|producer| {
            let address = pool.address();
            tokio::spawn(produce(address, producer, PRODUCERS, next.clone(), over.clone()))
        })
        .collect();
    tokio::time::sleep(time).await;
    // Even on a slow machine: a run of a few messages shows nothing.
    while pool.stats().accepted <= ENOUGH {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // The stop comes while all producers send; several stops come at once.
    let (report, other, another) = tokio::join!(pool.stop(stop), pool.stop(stop), pool.stop(stop));
    let mut report = report;
    report.left_over.extend(other.left_over.into_iter().chain(another.left_over));
    report.stats = pool.stats();
    over.store(true, Ordering::Relaxed);
    let mut accepted = Vec::new();
    for producer in producers {
        accepted.extend(producer.await.unwrap());
    }
    Run { seen, dead, accepted, report }
}

impl Run {
    fn check(&self) {
        let (stats, seen) = (self.report.stats, &self.seen);
        assert_eq!(*seen.violations.lock().unwrap(), Vec::<String>::new());
        assert!(self.report.wedged.is_empty(), "{:?}", self.report.wedged);
        assert!(stats.ledger_holds() && stats.accepted == stats.settled(), "{stats:?}");
        assert!(stats.accepted > ENOUGH, "{stats:?}");
        let handled: u64 =
            seen.handled.iter().map(|times| u64::from(times.load(Ordering::SeqCst))).sum();
        assert_eq!(stats.handled, handled);
        assert!(seen.handled.iter().all(|times| times.load(Ordering::SeqCst) <= 1));
        assert_eq!(stats.dead_lettered, self.dead.load(Ordering::SeqCst));
        assert_eq!(stats.returned as usize, self.report.left_over.len());
        assert!(self.accepted.len() as u64 <= stats.accepted);
        let returned: std::collections::HashSet<u32> =
            self.report.left_over.iter().map(|job| job.id).collect();
        let gone = self.accepted.iter().filter(|id| {
            seen.handled[**id as usize].load(Ordering::SeqCst) == 0 && !returned.contains(id)
        });
        assert!(gone.count() as u64 <= stats.dead_lettered, "messages vanished: {stats:?}");
        for job in &self.report.left_over {
            let times = seen.handled[job.id as usize].load(Ordering::SeqCst);
            assert_eq!(times, 0, "{job:?} was handled and given back");
        }
    }
}

fn threads(count: usize) -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(count).enable_all().on_thread_start(quiet::on_this_thread);
    builder.build().unwrap()
}

const PATIENCE: Stop = Stop::within(Duration::from_secs(30));
const A_WHILE: Duration = Duration::from_millis(500);

#[test]
fn q14_nothing_is_lost_or_repeated_under_load_with_shares() {
    let free = ShareLimits::default();
    let capped = free.in_hand(2);
    let slow = capped.rate(Rate::per_second(5_000));
    for (keyed, limits, workers, stop) in [
        (true, free, 16, PATIENCE),
        (false, free, 16, PATIENCE),
        (true, capped, 16, PATIENCE),
        (false, capped, 16, PATIENCE),
        (true, slow, 8, PATIENCE),
        (true, free, 64, Stop::within(Duration::ZERO)),
        (false, capped, 8, Stop::Now),
    ] {
        let runtime = threads(4);
        let run = runtime.block_on(async {
            let run = run(keyed, Some(limits), workers, 300, A_WHILE, stop);
            tokio::time::timeout(Duration::from_secs(60), run).await
        });
        let run = run.expect("the pool did not stop: a wake-up or an outcome was lost");
        run.check();
        assert!(stop != PATIENCE || run.report.left_over.is_empty());
    }
}

#[test]
fn p26_nothing_is_lost_or_repeated_under_load() {
    for (keyed, workers, capacity, stop) in [
        (true, 16, 300, PATIENCE),
        (false, 16, 300, PATIENCE),
        (true, 5, 1, PATIENCE),
        (false, 2, 1, PATIENCE),
        (true, 200, 5_000, Stop::within(Duration::ZERO)),
        (false, 8, 1_000, Stop::within(Duration::ZERO)),
        (true, 8, 1_000, Stop::Now),
        (false, 8, 1_000, Stop::Now),
    ] {
        let runtime = threads(4);
        let run = runtime.block_on(async {
            let run = run(keyed, None, workers, capacity, A_WHILE, stop);
            tokio::time::timeout(Duration::from_secs(60), run).await
        });
        let run = run.expect("the pool did not stop: a wake-up or an outcome was lost");
        run.check();
        if stop == PATIENCE {
            assert!(run.report.left_over.is_empty());
        }
    }
}
