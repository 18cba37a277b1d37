//! Sticky pools: the same key, the same worker.

use std::{
    collections::{BTreeMap, HashMap},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use greenroom::{
    Address, Backoff, CallError, DeadLetter, Envelope, FailureTable, FinalAction, Overflow,
    PoolBuilder, PoolEvent, PoolEvents, Restarts, Rule, SendError, SpawnError, inspect::Items,
    pool::AdminError, prelude::*, topic::Event,
};

use crate::keys::room::assert_room;

const SOON: Duration = Duration::from_secs(600);
const A_MOMENT: Duration = Duration::from_millis(1);

/// The instruction in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Nothing,
    /// Sleeps for this many milliseconds.
    Sleep(u64),
    /// Fails this often.
    Fail(u32),
    /// Fails once, after this many milliseconds.
    FailLate(u64),
    Panic,
    /// Calls the pool with the same key.
    CallAgain,
}

#[derive(Debug, Clone)]
struct Job {
    key: u64,
    number: u32,
    deed: Deed,
}

fn job(key: u64, number: u32) -> Job {
    Job { key, number, deed: Deed::Nothing }
}

fn sleep(key: u64, number: u32, ms: u64) -> Job {
    Job { key, number, deed: Deed::Sleep(ms) }
}

/// What was handled: the slot, the key and the number, in order.
type Log = Arc<Mutex<Vec<(usize, u64, u32)>>>;

/// The pool of a worker that calls it.
type Home = Arc<Mutex<Option<Address<Job, usize, &'static str>>>>;

#[derive(Clone)]
struct Desk {
    log: Log,
    /// Attempts per message.
    attempts: Arc<Mutex<HashMap<u32, u32>>>,
    home: Home,
}

impl Actor for Desk {
    type Message = Job;
    type Reply = usize;
    type Error = &'static str;

    async fn handle(&mut self, job: Job, cx: &mut Context<Self>) -> Result<usize, Self::Error> {
        let attempt = {
            let mut attempts = self.attempts.lock().unwrap();
            let attempt = attempts.entry(job.number).or_default();
            *attempt += 1;
            *attempt
        };
        match job.deed {
            Deed::Nothing => {}
            Deed::Sleep(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Deed::Fail(times) if attempt <= times => return Err("on purpose"),
            Deed::FailLate(ms) if attempt == 1 => {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                return Err("on purpose");
            }
            Deed::Fail(_) | Deed::FailLate(_) => {}
            Deed::Panic => panic!("on purpose"),
            Deed::CallAgain => {
                let home = self.home.lock().unwrap().clone().unwrap();
                let called = home.call(self::job(job.key, 99)).await;
                assert!(matches!(called, Err(CallError::WouldDeadlock(_))), "{called:?}");
            }
        }
        self.log.lock().unwrap().push((cx.slot(), job.key, job.number));
        Ok(cx.slot())
    }
}

impl Desk {
    fn new() -> Self {
        Self { log: Log::default(), attempts: Arc::default(), home: Arc::default() }
    }

    fn pool(&self, workers: usize) -> PoolBuilder<Desk> {
        let desk = self.clone();
        Pool::new(move |_slot| desk.clone()).workers(workers).seed(7).sticky_by(|job: &Job| job.key)
    }

    fn numbers_of(&self, key: u64) -> Vec<u32> {
        let log = self.log.lock().unwrap();
        log.iter().filter(|(_, of, _)| *of == key).map(|(_, _, number)| *number).collect()
    }

    fn numbers(&self) -> Vec<u32> {
        self.log.lock().unwrap().iter().map(|(_, _, number)| *number).collect()
    }
}

fn fails(key: u64, number: u32, times: u32) -> Job {
    Job { key, number, deed: Deed::Fail(times) }
}

/// The worker that answers for each of these keys.
async fn homes(pool: &Pool<Desk>, keys: u64) -> BTreeMap<u64, usize> {
    let mut homes = BTreeMap::new();
    for key in 0..keys {
        homes.insert(key, pool.call(job(key, 0)).await.unwrap());
    }
    homes
}

/// Keys of the worker in this slot.
fn keys_of(homes: &BTreeMap<u64, usize>, slot: usize) -> Vec<u64> {
    homes.iter().filter(|(_, home)| **home == slot).map(|(key, _)| *key).collect()
}

#[tokio::test(start_paused = true)]
async fn t01_a_key_stays_with_its_worker_while_the_size_does_not_change() {
    let desk = Desk::new();
    let pool = desk.pool(8).restarts(Restarts { max: 99, ..Restarts::default() });
    let pool = pool.spawn().await.unwrap();
    let before = homes(&pool, 300).await;
    assert!((0..8).all(|slot| !keys_of(&before, slot).is_empty()), "each worker has some");
    // Restarts change nothing, and messages that wait in the meantime are handled by the restarted
    // worker.
    for key in 0..20 {
        pool.send(Job { key, number: 1, deed: Deed::Panic }).await.unwrap();
        pool.send(job(key, 2)).await.unwrap();
    }
    tokio::time::sleep(SOON).await;
    let log = desk.log.lock().unwrap().clone();
    let others = log.iter().filter(|(slot, key, _)| before[key] != *slot).count();
    assert_eq!((others, log.iter().filter(|(_, _, number)| *number == 2).count()), (0, 20));
    assert_eq!(homes(&pool, 300).await, before);
    assert!(pool.stats().restarts > 0);
}

#[tokio::test(start_paused = true)]
async fn t01_messages_without_a_key_are_for_any_worker() {
    let desk = Desk::new();
    let again = desk.clone();
    let pool = Pool::new(move |_slot| again.clone()).workers(2);
    let pool = pool.sticky_by_opt(|job: &Job| (job.key > 0).then_some(job.key));
    let pool = pool.spawn().await.unwrap();
    let home = pool.call(job(1, 0)).await.unwrap();
    pool.send(sleep(1, 1, 10_000)).await.unwrap();
    tokio::time::sleep(A_MOMENT).await;
    for number in 10..20 {
        assert_eq!(pool.call(job(0, number)).await.unwrap(), 1 - home, "the other one is free");
    }
}

#[tokio::test(start_paused = true)]
async fn t02_growing_and_shrinking_move_no_more_keys_than_they_must() {
    const KEYS: u64 = 2_000;
    let desk = Desk::new();
    let pool = desk.pool(7).spawn().await.unwrap();
    let mut before = homes(&pool, KEYS).await;
    let four = before.clone();
    for workers in 8..12 {
        pool.admin().add(1).unwrap().done(SOON).await;
        let after = homes(&pool, KEYS).await;
        let moved: Vec<_> = before.keys().filter(|key| before[key] != after[key]).collect();
        assert!(moved.iter().all(|key| after[key] == workers - 1), "to the new one only");
        let share = KEYS as usize / workers;
        assert!((share * 3 / 4..share * 5 / 4).contains(&moved.len()), "{} moved", moved.len());
        before = after;
    }
    pool.admin().remove_worker(3).unwrap().done(SOON).await;
    let after = homes(&pool, KEYS).await;
    let moved = before.keys().filter(|key| before[key] != after[key]);
    assert!(moved.clone().all(|key| before[key] == 3), "from the one that has gone only");
    assert_eq!(moved.count(), keys_of(&before, 3).len());
    assert_ne!(four, after);
}

/// A pool of two, a key that the worker in slot 0 has in hand for this long, and another of its
/// keys.
async fn one_in_hand(desk: &Desk, pool: &Pool<Desk>, ms: u64) -> (u64, u64) {
    let homes = homes(pool, 50).await;
    let of = keys_of(&homes, 0);
    desk.log.lock().unwrap().clear();
    pool.send(sleep(of[0], 1, ms)).await.unwrap();
    pool.send(job(of[0], 2)).await.unwrap();
    pool.send(job(of[1], 3)).await.unwrap();
    tokio::time::sleep(A_MOMENT).await;
    (of[0], of[1])
}

#[tokio::test(start_paused = true)]
async fn t02_messages_of_a_key_that_moves_wait_for_the_one_in_hand_and_others_do_not() {
    let desk = Desk::new();
    let pool = desk.pool(2).spawn().await.unwrap();
    let (slow, other) = one_in_hand(&desk, &pool, 10_000).await;
    let change = pool.admin().remove_worker(0).unwrap();
    pool.send(job(slow, 4)).await.unwrap();
    pool.send_with(job(slow, 5), Envelope::urgent()).await.unwrap();
    pool.send(job(other, 6)).await.unwrap();
    tokio::time::sleep(A_MOMENT).await;
    assert_eq!(desk.log.lock().unwrap()[..], [(1, other, 3), (1, other, 6)]);
    let stats = pool.stats();
    assert_eq!((stats.queued, stats.held, stats.in_hand), (3, 3, 1));
    assert!(stats.oldest.is_some() && stats.ledger_holds());
    let figures = pool.admin().inspect(&Items::All).workers[0].figures.unwrap();
    assert_eq!((figures.mailbox, figures.held), (3, 3));
    assert!(change.done(SOON).await.is_complete());
    tokio::time::sleep(A_MOMENT).await;
    assert_eq!(desk.numbers_of(slow), [1, 5, 2, 4], "an urgent one overtakes, the others do not");
    let log = desk.log.lock().unwrap().clone();
    assert!(log.iter().all(|(slot, _, number)| (*number == 1) == (*slot == 0)));
    assert_eq!((pool.stats().held, pool.stats().queued), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn t02_a_worker_that_does_not_hand_its_keys_over_is_told_once() {
    let (desk, notices) = (Desk::new(), PoolEvents::new(1_000));
    let mut receiver = notices.subscribe();
    let pool = desk.pool(2).pool_events(notices).spawn().await.unwrap();
    let (slow, _) = one_in_hand(&desk, &pool, 1_000_000).await;
    let change = pool.admin().remove_worker(0).unwrap();
    pool.send(job(slow, 4)).await.unwrap();
    let mut told = || {
        std::iter::from_fn(|| receiver.try_recv()).filter_map(Event::into_item).find_map(|notice| {
            match notice.what {
                PoolEvent::SlotHeld { slot, messages, held_for } => {
                    Some((slot, messages, held_for))
                }
                _ => None,
            }
        })
    };
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert_eq!(told(), None, "it may take a while");
    tokio::time::sleep(Duration::from_millis(200)).await;
    let (slot, messages, held_for) = told().unwrap();
    assert_eq!((slot, messages), (0, 2));
    assert!(held_for >= Duration::from_secs(1));
    pool.admin().add(1).unwrap().done(SOON).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(told(), None, "once");
    drop(change);
}

#[tokio::test(start_paused = true)]
async fn t02_what_a_disabled_worker_had_goes_to_others_in_order_and_its_share_comes_back() {
    let desk = Desk::new();
    let pool = desk.pool(3).restarts(Restarts { max: 0, ..Restarts::default() });
    let pool = pool.spawn().await.unwrap();
    let before = homes(&pool, 100).await;
    let key = keys_of(&before, 1)[0];
    pool.send(sleep(key, 1, 50)).await.unwrap();
    pool.send(Job { key, number: 2, deed: Deed::Panic }).await.unwrap();
    for number in 3..30 {
        pool.send(job(key, number)).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(pool.stats().live, 2);
    assert_eq!(desk.numbers_of(key)[2..], (3..30).collect::<Vec<_>>()[..]);
    let meanwhile = homes(&pool, 100).await;
    assert!(before.keys().all(|key| (before[key] == 1) == (before[key] != meanwhile[key])));
    pool.admin().enable(1).unwrap().done(SOON).await;
    let after = homes(&pool, 100).await;
    let moved = after.keys().filter(|key| after[key] != meanwhile[key]);
    assert!(moved.clone().count() > 10 && moved.clone().all(|key| after[key] == 1));
}

#[tokio::test(start_paused = true)]
async fn t02_order_holds_from_many_workers_to_none_and_back() {
    let desk = Desk::new();
    let pool = desk.pool(4).hold_when_empty().spawn().await.unwrap();
    let mut sent = 0;
    for workers in [4, 0, 3, 1, 0, 6, 2] {
        for _ in 0..40 {
            sent += 1;
            pool.send(sleep(u64::from(sent % 8), sent, 7)).await.unwrap();
        }
        let _ = pool.admin().resize(workers).unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(pool.stats().ledger_holds());
    }
    pool.admin().resize(3).unwrap().done(SOON).await;
    tokio::time::sleep(SOON).await;
    for key in 0..8 {
        let expected: Vec<_> = (1..=sent).filter(|number| u64::from(number % 8) == key).collect();
        assert_eq!(desk.numbers_of(key), expected);
    }
    assert_eq!(pool.stats().handled, u64::from(sent));
}

#[tokio::test(start_paused = true)]
async fn t02_a_retried_message_comes_before_later_ones_of_its_key_also_where_that_moves() {
    let desk = Desk::new();
    let backoff = Backoff::new(Duration::from_secs(10), Duration::from_secs(10));
    let row = Rule::Retry { attempts: 9, backoff, finally: FinalAction::DeadLetter };
    let pool = desk.pool(2).retry_with(Job::clone, FailureTable::all(row));
    let pool = pool.spawn().await.unwrap();
    let homes = homes(&pool, 50).await;
    let (key, other) = (keys_of(&homes, 0)[0], keys_of(&homes, 0)[1]);
    desk.log.lock().unwrap().clear();
    pool.send(fails(key, 1, 1)).await.unwrap();
    pool.send(job(key, 2)).await.unwrap();
    pool.send(job(other, 3)).await.unwrap();
    tokio::time::sleep(A_MOMENT).await;
    assert_eq!((pool.stats().waiting, pool.stats().queued), (1, 2));
    pool.send_with(job(other, 4), Envelope::urgent()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(desk.numbers(), [4], "only urgent ones go before it");
    tokio::time::sleep(SOON).await;
    assert_eq!(desk.numbers(), [4, 1, 2, 3]);

    // While it waits, its key moves to the other worker, where it is not attempted before it is
    // due.
    desk.log.lock().unwrap().clear();
    desk.attempts.lock().unwrap().clear();
    pool.send(fails(key, 11, 2)).await.unwrap();
    tokio::time::sleep(A_MOMENT).await;
    let started = tokio::time::Instant::now();
    pool.admin().remove_worker(0).unwrap().done(SOON).await;
    pool.send(job(key, 12)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(desk.numbers(), [0; 0]);
    while desk.numbers().is_empty() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(started.elapsed() > Duration::from_secs(9), "{:?}", started.elapsed());
    assert_eq!(desk.numbers(), [11, 12]);
    assert!(desk.log.lock().unwrap().iter().all(|(slot, _, _)| *slot == 1));
    assert_eq!(pool.stats().waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn t02_a_retry_of_the_message_that_others_wait_for_goes_with_its_key() {
    let desk = Desk::new();
    let backoff = Backoff::new(Duration::from_secs(10), Duration::from_secs(10));
    let row = Rule::Retry { attempts: 9, backoff, finally: FinalAction::DeadLetter };
    let pool = desk.pool(2).retry_with(Job::clone, FailureTable::all(row));
    let pool = pool.time_limit(Duration::from_secs(5)).spawn().await.unwrap();
    let (slow, _) = one_in_hand(&desk, &pool, 6_000).await;
    // The table slot moves while the message is in hand; then it fails for the first of nine times.
    pool.admin().remove_worker(0).unwrap().done(SOON).await;
    pool.send(job(slow, 4)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(desk.numbers_of(slow), [0; 0], "later ones wait for its attempts");
    tokio::time::sleep(SOON).await;
    assert_eq!(desk.numbers_of(slow), [2, 4], "all its attempts took too long");
    assert_eq!(pool.stats().dead_letters.total(), 1);
}

/// Other workers are disabled, and one is enabled again, while a leaving worker has a message in
/// hand. The next message of its key was started at the same time, or before the retry.
#[tokio::test(start_paused = true)]
async fn t02_a_key_waits_for_a_worker_that_leaves_also_where_no_other_was_left_meanwhile() {
    let backoff = Backoff::new(Duration::from_secs(10), Duration::from_secs(10));
    let row = Rule::Retry { attempts: 2, backoff, finally: FinalAction::DeadLetter };
    for (deed, attempts) in [(Deed::Sleep(100), 1), (Deed::FailLate(100), 2)] {
        let desk = Desk::new();
        let pool = desk.pool(2).retry_with(Job::clone, FailureTable::all(row));
        let pool = pool.restarts(Restarts { max: 0, ..Restarts::default() });
        let pool = pool.spawn().await.unwrap();
        let homes = homes(&pool, 50).await;
        let (key, other) = (keys_of(&homes, 0)[0], keys_of(&homes, 1)[0]);
        desk.attempts.lock().unwrap().clear();
        desk.log.lock().unwrap().clear();
        pool.send(Job { key, number: 1, deed }).await.unwrap();
        tokio::time::sleep(A_MOMENT).await;
        let leaves = pool.admin().remove_worker(0).unwrap();
        pool.send(job(key, 2)).await.unwrap();
        let disabled = pool.call(Job { key: other, number: 9, deed: Deed::Panic }).await;
        assert!(matches!(disabled, Err(CallError::NoWorkers)), "{disabled:?}");
        assert_eq!((pool.stats().live, pool.stats().in_hand, pool.stats().queued), (0, 1, 0));
        assert!(pool.stats().ledger_holds());
        let change = pool.admin().enable(1).unwrap();
        pool.send(job(key, 3)).await.unwrap();
        change.done(SOON).await;
        pool.send(job(key, 4)).await.unwrap();
        tokio::time::sleep(A_MOMENT).await;
        assert_eq!((desk.numbers(), pool.stats().held), (vec![], 2), "one is in hand");
        tokio::time::sleep(SOON).await;
        assert_eq!(desk.numbers_of(key), [1, 3, 4], "the second was a dead letter");
        assert_eq!(desk.attempts.lock().unwrap()[&1], attempts);
        let stats = pool.stats();
        assert_eq!((stats.dead_letters.total(), stats.held, stats.waiting), (2, 0, 0));
        assert!(stats.ledger_holds());
        drop(leaves);
    }
}

#[tokio::test(start_paused = true)]
async fn t02_a_pool_that_stops_gives_back_what_is_held() {
    let desk = Desk::new();
    let pool = desk.pool(2).spawn().await.unwrap();
    let (slow, _) = one_in_hand(&desk, &pool, 1_000_000).await;
    let change = pool.admin().remove_worker(0).unwrap();
    pool.send(job(slow, 4)).await.unwrap();
    let report = pool.stop(Stop::within(Duration::from_secs(1))).await;
    let left_over: Vec<_> = report.left_over.iter().map(|job| job.number).collect();
    assert_eq!(left_over.len() as u64, report.stats.returned);
    assert_eq!(left_over.iter().filter(|number| [2, 4].contains(number)).count(), 2);
    assert!(report.stats.ledger_holds(), "{:?}", report.stats);
    drop(change);
}

#[tokio::test(start_paused = true)]
async fn t02_keys_of_a_worker_that_cannot_be_started_go_to_others_until_it_can() {
    let desk = Desk::new();
    let broken = Arc::new(AtomicBool::new(true));
    let (again, is_broken) = (desk.clone(), broken.clone());
    let factory = move |slot| {
        assert!(slot != 1 || !is_broken.load(Ordering::SeqCst), "on purpose");
        again.clone()
    };
    let pool = Pool::new(factory).workers(2).sticky_by(|job: &Job| job.key);
    let pool = pool.spawn().await.unwrap();
    assert!(homes(&pool, 50).await.values().all(|slot| *slot == 0));
    broken.store(false, Ordering::SeqCst);
    tokio::time::sleep(SOON).await;
    assert!(homes(&pool, 50).await.values().filter(|slot| **slot == 1).count() > 10);
}

#[tokio::test(start_paused = true)]
async fn t03_sequential_ids_spread_evenly_over_256_workers() {
    const IDS: usize = 100_000;
    const WORKERS: usize = 256;

    /// Counts its messages.
    struct Counter(Arc<Vec<AtomicUsize>>);

    impl Actor for Counter {
        type Message = String;
        type Reply = ();
        type Error = ();

        async fn handle(&mut self, _: String, cx: &mut Context<Self>) -> Result<(), ()> {
            self.0[cx.slot()].fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    let counts: Arc<Vec<_>> = Arc::new((0..WORKERS).map(|_| AtomicUsize::new(0)).collect());
    let counters = counts.clone();
    let pool = Pool::new(move |_slot| Counter(counters.clone())).workers(WORKERS).seed(1);
    let pool = pool.quick_factory().sticky_by(|id: &String| id.clone()).spawn().await.unwrap();
    for number in 1..=IDS {
        pool.send(format!("order-{number}")).await.unwrap();
    }
    pool.stop(Stop::within(SOON)).await;
    let expected = IDS as f64 / WORKERS as f64;
    let off = |count: &AtomicUsize| (count.load(Ordering::Relaxed) as f64 - expected).powi(2);
    let chi_squared: f64 = counts.iter().map(off).sum::<f64>() / expected;
    let each = chi_squared / (WORKERS - 1) as f64;
    assert_eq!(counts.iter().map(|count| count.load(Ordering::Relaxed)).sum::<usize>(), IDS);
    assert!(each < 1.3, "chi-squared per degree of freedom is {each}");
}

#[tokio::test(start_paused = true)]
async fn t04_keys_of_one_worker_wait_for_one_another() {
    let desk = Desk::new();
    let pool = desk.pool(2).spawn().await.unwrap();
    let homes = homes(&pool, 50).await;
    let (one, other) = (keys_of(&homes, 0), keys_of(&homes, 1));
    pool.send(sleep(one[0], 1, 10_000)).await.unwrap();
    let started = tokio::time::Instant::now();
    pool.call(job(other[0], 2)).await.unwrap();
    assert!(started.elapsed() < A_MOMENT, "one of another worker does not");
    pool.call(job(one[1], 3)).await.unwrap();
    assert!(started.elapsed() >= Duration::from_secs(10), "although the other worker is idle");
}

#[tokio::test(start_paused = true)]
async fn t01_a_sender_waits_for_room_at_the_worker_that_has_the_key() {
    let desk = Desk::new();
    let pool = desk.pool(2).mailbox(2).spawn().await.unwrap();
    let homes = homes(&pool, 50).await;
    let (one, other) = (keys_of(&homes, 0)[0], keys_of(&homes, 1)[0]);
    pool.send(sleep(one, 1, 10_000)).await.unwrap();
    tokio::time::sleep(A_MOMENT).await;
    pool.send(job(one, 2)).await.unwrap();
    pool.send(job(one, 3)).await.unwrap();
    let refused = pool.try_send(job(one, 4)).unwrap_err();
    assert_eq!(refused.into_message().unwrap().number, 4);
    assert_eq!(pool.call(job(other, 5)).await.unwrap(), 1, "the other one has room");
    let waits = tokio::time::timeout(Duration::from_secs(1), pool.send(job(one, 6))).await;
    assert!(waits.is_err());
    pool.send(job(one, 7)).await.unwrap();
    tokio::time::sleep(SOON).await;
    assert_eq!(desk.numbers_of(one)[1..], [1, 2, 3, 7]);
    let stats = pool.stats();
    assert!(stats.ledger_holds() && stats.queued == 0);
}

#[tokio::test(start_paused = true)]
async fn t02_who_waits_for_room_at_a_worker_that_leaves_is_served_by_the_next() {
    let desk = Desk::new();
    let pool = desk.pool(2).mailbox(1).capacity(10).spawn().await.unwrap();
    let homes = homes(&pool, 50).await;
    let key = keys_of(&homes, 0)[0];
    desk.log.lock().unwrap().clear();
    pool.send(sleep(key, 1, 1_000)).await.unwrap();
    tokio::time::sleep(A_MOMENT).await;
    pool.send(job(key, 2)).await.unwrap();
    let (address, change) = (pool.address(), async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        pool.admin().remove_worker(0).unwrap().done(SOON).await
    });
    let (sent, _) = tokio::join!(address.send(job(key, 3)), change);
    sent.unwrap();
    tokio::time::sleep(SOON).await;
    assert_eq!(desk.numbers(), [1, 2, 3]);
    assert_room(&pool, 10);
}

#[tokio::test(start_paused = true)]
async fn t01_overflow_is_at_the_worker_that_has_the_key() {
    for (overflow, expected) in
        [(Overflow::Reject, vec![1, 2, 3]), (Overflow::DropOldest, vec![1, 3, 4])]
    {
        let desk = Desk::new();
        let pool = desk.pool(2).mailbox(2).overflow(overflow).spawn().await.unwrap();
        let homes = homes(&pool, 50).await;
        let key = keys_of(&homes, 0)[0];
        desk.log.lock().unwrap().clear();
        pool.send(sleep(key, 1, 10_000)).await.unwrap();
        tokio::time::sleep(A_MOMENT).await;
        pool.send(job(key, 2)).await.unwrap();
        pool.send(job(key, 3)).await.unwrap();
        let _ = pool.send(job(key, 4)).await;
        tokio::time::sleep(SOON).await;
        assert_eq!(desk.numbers(), expected);
        assert!(pool.stats().ledger_holds());
    }
}

#[tokio::test(start_paused = true)]
async fn t01_a_call_of_a_worker_that_would_be_its_own_is_refused() {
    let desk = Desk::new();
    let pool = desk.pool(2).spawn().await.unwrap();
    *desk.home.lock().unwrap() = Some(pool.address());
    pool.call(Job { key: 1, number: 1, deed: Deed::CallAgain }).await.unwrap();
    desk.home.lock().unwrap().take();
}

#[tokio::test(start_paused = true)]
async fn t01_a_key_function_that_panics_has_sent_nothing() {
    let desk = Desk::new();
    let again = desk.clone();
    let pool = Pool::new(move |_slot| again.clone()).workers(2).capacity(3);
    let pool = pool.sticky_by(|job: &Job| {
        assert!(job.key > 0, "on purpose");
        job.key
    });
    let pool = pool.spawn().await.unwrap();
    for _ in 0..10 {
        assert!(catch_unwind(AssertUnwindSafe(|| pool.try_send(job(0, 1)))).is_err());
        let permit = pool.try_reserve().unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| permit.send(job(0, 1)))).is_err());
    }
    assert_eq!((pool.stats().accepted, pool.call(job(1, 1)).await.is_ok()), (0, true));
    let permits: Vec<_> = (0..3).map(|_| pool.try_reserve()).collect();
    assert!(permits.into_iter().all(|permit| permit.is_ok()));
}

#[tokio::test(start_paused = true)]
async fn t01_a_sticky_pool_adopts_nobody_and_its_table_has_bounds() {
    let desk = Desk::new();
    let (pool, other) = (desk.pool(2).spawn().await.unwrap(), desk.pool(2).spawn().await.unwrap());
    assert_eq!(pool.admin().adopt(other.address()).err(), Some(AdminError::Ordered));
    for slots in [0, 3, 4_097, 1, 1 << 21] {
        let refused = desk.pool(2).sticky_table(slots).spawn().await.err();
        assert!(matches!(refused, Some(SpawnError::OutOfRange { value, .. }) if value == slots));
    }
    let small = desk.pool(2).sticky_table(2).spawn().await.unwrap();
    small.admin().resize(5).unwrap().done(SOON).await;
    let homes = homes(&small, 50).await;
    assert!(homes.values().all(|slot| *slot < 2), "there is nothing for the others");
    small.admin().remove_worker(0).unwrap().done(SOON).await;
    assert!(self::homes(&small, 50).await.values().any(|slot| *slot > 1));
    assert!(
        desk.pool(10_000).quick_factory().supervised().is_ok(),
        "the table grows with the pool"
    );
}

#[tokio::test(start_paused = true)]
async fn t02_messages_of_the_last_worker_that_is_disabled_are_dead_letters() {
    let (desk, letters) = (Desk::new(), Arc::new(AtomicUsize::new(0)));
    let count = letters.clone();
    let pool = desk.pool(1).restarts(Restarts { max: 0, ..Restarts::default() });
    let pool = pool.on_dead_letter(move |_: DeadLetter<Job, &'static str>| {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let pool = pool.spawn().await.unwrap();
    pool.send(Job { key: 1, number: 1, deed: Deed::Panic }).await.unwrap();
    for number in 2..10 {
        pool.send(job(u64::from(number), number)).await.unwrap();
    }
    tokio::time::sleep(SOON).await;
    assert_eq!(letters.load(Ordering::SeqCst), 9);
    assert!(matches!(
        pool.call(job(1, 1)).await,
        Err(CallError::NotAccepted(SendError::NoWorkers(_)))
    ));
    pool.admin().enable(0).unwrap().done(SOON).await;
    assert_eq!(pool.call(job(1, 1)).await.unwrap(), 0);
    assert!(pool.stats().ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn t02_who_waits_for_room_at_a_wedged_worker_follows_its_key() {
    let desk = Desk::new();
    let pool = desk.pool(1).mailbox(2).capacity(20).spawn().await.unwrap();
    // The keys that a second worker will get.
    let change = pool.admin().add(1).unwrap();
    change.done(SOON).await;
    let homes = homes(&pool, 50).await;
    let (stays, goes) = (keys_of(&homes, 0)[0], keys_of(&homes, 1)[0]);
    pool.admin().remove_worker(1).unwrap().done(SOON).await;
    pool.send(sleep(stays, 1, 1_000_000)).await.unwrap();
    tokio::time::sleep(A_MOMENT).await;
    pool.send(job(stays, 2)).await.unwrap();
    pool.send(job(stays, 3)).await.unwrap();
    let (address, started) = (pool.address(), tokio::time::Instant::now());
    let waits = tokio::spawn(async move { address.call(job(goes, 4)).await });
    tokio::time::sleep(A_MOMENT).await;
    assert!(!waits.is_finished());
    pool.admin().add(1).unwrap().done(SOON).await;
    assert_eq!(waits.await.unwrap().unwrap(), 1);
    assert!(started.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn t02_a_key_that_moves_while_its_sender_waits_for_the_pool_leaves_no_place_behind() {
    let desk = Desk::new();
    let pool = desk.pool(2).mailbox(4).capacity(4).spawn().await.unwrap();
    let homes = homes(&pool, 50).await;
    let (goes, other) = (keys_of(&homes, 1)[0], keys_of(&homes, 0)[0]);
    pool.admin().remove_worker(1).unwrap().done(SOON).await;
    pool.send(sleep(other, 1, 1_000)).await.unwrap();
    tokio::time::sleep(A_MOMENT).await;
    // The pool is full, and the mailbox of its worker is not.
    let permits: Vec<_> = (0..4).map(|_| pool.try_reserve().unwrap()).collect();
    let address = pool.address();
    let waits = tokio::spawn(async move { address.call(job(goes, 2)).await });
    tokio::time::sleep(A_MOMENT).await;
    pool.admin().add(1).unwrap().done(SOON).await;
    drop(permits);
    assert_eq!(waits.await.unwrap().unwrap(), 1);
    tokio::time::sleep(SOON).await;
    for worker in pool.admin().workers() {
        let places: Vec<_> = (0..4).map(|_| worker.try_reserve()).collect();
        assert!(places.iter().all(Result::is_ok), "{} has fewer places", worker.slot());
    }
}

#[tokio::test(start_paused = true)]
async fn t01_a_pool_may_require_a_key() {
    let desk = Desk::new();
    let pool = Pool::new(move |_slot| desk.clone()).workers(2);
    let pool = pool.sticky_by_opt(|job: &Job| (job.key > 0).then_some(job.key)).key_required();
    let pool = pool.spawn().await.unwrap();
    assert!(matches!(
        pool.call(job(0, 1)).await,
        Err(CallError::NotAccepted(SendError::KeyRequired(_)))
    ));
    assert!(pool.call(job(1, 1)).await.is_ok());
}

/// Senders on several threads, each with its own keys, while the size changes all the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn t02_order_holds_while_threads_send_and_the_size_changes() {
    const SENDERS: u64 = 4;
    const EACH: u32 = 3_000;
    let desk = Desk::new();
    let pool = desk.pool(3).mailbox(64).hold_when_empty().sticky_table(64).spawn().await.unwrap();
    let senders = (0..SENDERS).map(|sender| {
        let address = pool.address();
        tokio::spawn(async move {
            for number in 0..EACH {
                let key = sender * 8 + u64::from(number % 8);
                address.send(job(key, number)).await.unwrap();
            }
        })
    });
    let senders: Vec<_> = senders.collect();
    let mut size = 3;
    while senders.iter().any(|sender| !sender.is_finished()) {
        size = (size * 5 + 1) % 7;
        pool.admin().resize(size).unwrap().done(Duration::from_secs(10)).await;
        tokio::task::yield_now().await;
    }
    pool.admin().resize(2).unwrap().done(Duration::from_secs(10)).await;
    let report = pool.stop(Stop::within(Duration::from_secs(60))).await;
    assert_eq!(report.stats.handled, SENDERS * u64::from(EACH), "{:?}", report.stats);
    for key in 0..SENDERS * 8 {
        let numbers = desk.numbers_of(key);
        assert!(numbers.is_sorted(), "key {key}: {numbers:?}");
    }
}
