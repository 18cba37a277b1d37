//! Messages of one key that are handled together (keyed-pools.md, K12).

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use greenroom::{
    Actor, Backoff, CallError, Context, DeadLetterReason, FailureAction, FinalAction, Pool,
    PoolBuilder, Stop,
    batch::{Batch, Batched, Batches},
    limits::Rate,
};
use tokio::sync::Semaphore;

use crate::keys::clerk::settle;

/// The outcome of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Well,
    /// Its result is an error, this often.
    Fails(u32),
    /// The handler fails for all of them.
    FailsAll,
    Panics,
    Hangs,
    /// There is no result for this message and those behind it.
    Missing,
}
use Wish::{Fails, FailsAll, Hangs, Missing, Panics, Well};

type Row = (u64, u32, Wish);

/// The key of a batch, and the numbers in it.
type Begun = (u64, Vec<u32>);

#[derive(Clone)]
struct Writer {
    gate: Arc<Semaphore>,
    begun: Arc<Mutex<Vec<Begun>>>,
}

impl Writer {
    fn new() -> Self {
        Self { gate: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)), begun: Arc::default() }
    }

    /// Each handler waits for a permit.
    fn gated() -> Self {
        Self { gate: Arc::new(Semaphore::new(0)), begun: Arc::default() }
    }

    fn batches(&self) -> MutexGuard<'_, Vec<Begun>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begun(&self) -> Vec<Begun> {
        self.batches().clone()
    }

    fn attempts(&self, number: u32) -> u32 {
        let begun = self.batches();
        begun.iter().flat_map(|(_, numbers)| numbers).filter(|n| **n == number).count() as u32
    }

    fn pool(&self, batches: Batches) -> PoolBuilder<Batched<Self>> {
        let each = self.clone();
        Pool::batched(move |_| each.clone(), batches).workers(2).capacity(400)
    }
}

impl Actor for Writer {
    type Message = Batch<Row>;
    type Reply = Vec<Result<u32, String>>;
    type Error = String;

    async fn handle(
        &mut self,
        rows: Batch<Row>,
        _cx: &mut Context<Self>,
    ) -> Result<Self::Reply, String> {
        let key = rows[0].0;
        assert!(rows.iter().all(|row| row.0 == key || row.0 >= 100), "{rows:?}");
        self.batches().push((key, rows.iter().map(|row| row.1).collect()));
        self.gate.acquire().await.map_err(|closed| closed.to_string())?.forget();
        let mut results = Vec::new();
        for (_, number, wish) in rows {
            match wish {
                Well => results.push(Ok(number)),
                Fails(times) if self.attempts(number) <= times => {
                    results.push(Err(format!("no {number}")));
                }
                Fails(_) => results.push(Ok(number)),
                FailsAll => return Err("all of it".to_owned()),
                Panics => panic!("boom"),
                Hangs => std::future::pending().await,
                Missing => return Ok(results),
            }
        }
        Ok(results)
    }
}

const PATIENCE: Stop = Stop::within(Duration::from_secs(60));
const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn k12_t02_in_a_sticky_pool_a_batch_is_one_message_and_its_retry_keeps_the_order() {
    let writer = Writer::new();
    let pool = writer.pool(Batches::of(10)).sticky_by(by_key);
    let pool = pool.retry(3, Backoff::new(SECOND, SECOND)).spawn().await.unwrap();
    for (number, wish) in [(1, Well), (2, Fails(1)), (3, Well)] {
        pool.send((7, number, wish)).await.unwrap();
    }
    pool.stop(PATIENCE).await;
    assert_eq!(writer.begun(), [(7, vec![1]), (7, vec![2]), (7, vec![2]), (7, vec![3])]);
}

fn by_key(row: &Row) -> u64 {
    row.0
}

#[tokio::test(start_paused = true)]
async fn k12_what_waits_of_a_key_is_handled_together_in_order() {
    let writer = Writer::new();
    let pool =
        writer.pool(Batches::of(4)).ordered_by(by_key).max_per_key(100).spawn().await.unwrap();
    for number in 0..10 {
        pool.send((1, number, Well)).await.unwrap();
        pool.send((2, 100 + number, Well)).await.unwrap();
    }
    settle().await;
    let begun = writer.begun();
    assert!(begun.iter().all(|(_, numbers)| numbers.len() <= 4), "{begun:?}");
    for key in [1, 2] {
        let of_key: Vec<_> = begun.iter().filter(|(of, _)| *of == key).collect();
        assert_eq!(of_key.len(), 3, "{begun:?}");
        let numbers: Vec<_> = of_key.iter().flat_map(|(_, numbers)| numbers.clone()).collect();
        let first = if key == 1 { 0 } else { 100 };
        assert_eq!(numbers, (first..first + 10).collect::<Vec<_>>());
    }
    let stats = pool.stop(PATIENCE).await.stats;
    assert_eq!((stats.handled, stats.dispatched), (20, 20));
    assert!(stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k12_each_message_of_a_batch_has_its_own_result() {
    let writer = Writer::new();
    let pool = Arc::new(writer.pool(Batches::of(10)).ordered_by(by_key).spawn().await.unwrap());
    let calls: Vec<_> = [Well, Fails(9), Well, Missing, Well]
        .into_iter()
        .enumerate()
        .map(|(number, wish)| {
            let pool = pool.clone();
            tokio::spawn(async move { pool.call((1, number as u32, wish)).await })
        })
        .collect();
    let mut ends = Vec::new();
    for call in calls {
        ends.push(call.await.unwrap());
    }
    assert_eq!(writer.begun(), [(1, vec![0, 1, 2, 3, 4])]);
    let failed = Err(CallError::Failed("no 1".to_owned()));
    assert_eq!(ends, [Ok(0), failed, Ok(2), Err(CallError::Dropped), Err(CallError::Dropped)]);
    let stats = pool.stats();
    assert_eq!((stats.handled, stats.failed, stats.dead_lettered), (2, 1, 2));
    assert!(stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k12_only_what_failed_is_retried_and_its_key_waits() {
    let writer = Writer::new();
    let pool = writer.pool(Batches::of(10)).retry(3, Backoff::new(SECOND, SECOND));
    let pool = pool.ordered_by(by_key).spawn().await.unwrap();
    for (number, wish) in [(0, Well), (1, Fails(1)), (2, Well), (3, Fails(2)), (4, Well)] {
        pool.send((1, number, wish)).await.unwrap();
    }
    settle().await;
    for number in 5..7 {
        pool.send((1, number, Well)).await.unwrap();
    }
    settle().await;
    assert_eq!(writer.begun(), [(1, vec![0, 1, 2, 3, 4])], "later ones wait behind the retry");
    let stats = pool.stats();
    assert_eq!((stats.waiting, stats.queued, stats.handled), (2, 2, 3));
    assert!(stats.ledger_holds(), "{stats:?}");
    tokio::time::sleep(10 * SECOND).await;
    let begun = writer.begun();
    assert_eq!(begun[1], (1, vec![1, 3, 5, 6]), "in their order, before what came later");
    assert_eq!(begun[2], (1, vec![3]));
    let stats = pool.stop(PATIENCE).await.stats;
    assert_eq!((stats.handled, stats.retries), (7, 3));
    assert!(stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k12_an_error_of_the_handler_is_one_of_each_message() {
    let writer = Writer::new();
    let pool = writer.pool(Batches::of(10)).ordered_by(by_key).spawn().await.unwrap();
    for (number, wish) in [(0, Well), (1, FailsAll), (2, Well)] {
        pool.send((1, number, wish)).await.unwrap();
    }
    settle().await;
    let letters = pool.dead_letters();
    let letters: Vec<_> = letters
        .remove_all()
        .into_iter()
        .map(|l| (l.message.unwrap().1, l.error.unwrap()))
        .collect();
    assert_eq!(letters, [0, 1, 2].map(|number| (number, "all of it".to_owned())));
    assert!(pool.stop(PATIENCE).await.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k12_after_a_panic_or_a_timeout_each_is_attempted_alone() {
    for (wish, reason) in
        [(Panics, DeadLetterReason::Panicked), (Hangs, DeadLetterReason::TimedOut)]
    {
        let writer = Writer::new();
        let pool = writer.pool(Batches::of(10)).ordered_by(by_key).time_limit(SECOND);
        let pool = pool.spawn().await.unwrap();
        for number in 0..4 {
            pool.send((1, number, if number == 2 { wish } else { Well })).await.unwrap();
        }
        tokio::time::sleep(30 * SECOND).await;
        let begun = writer.begun();
        assert_eq!(begun[0], (1, vec![0, 1, 2, 3]));
        assert_eq!(begun[1..], [0, 1, 2, 3].map(|number| (1, vec![number])), "{wish:?}");
        let letters = pool.dead_letters().remove_all();
        assert_eq!((letters.len(), letters[0].reason), (1, reason));
        assert_eq!(letters[0].message, Some((1, 2, wish)));
        let stats = pool.stop(PATIENCE).await.stats;
        assert_eq!(stats.handled, 3);
        assert!(stats.ledger_holds());
    }
}

#[tokio::test(start_paused = true)]
async fn k12_a_batch_that_is_not_full_waits_a_little_for_more() {
    let writer = Writer::new();
    let batches = Batches::of(4).within(10 * SECOND);
    let pool = writer.pool(batches).workers(3).ordered_by(by_key).spawn().await.unwrap();
    let began = tokio::time::Instant::now();
    pool.send((1, 0, Well)).await.unwrap();
    settle().await;
    assert!(writer.begun().is_empty(), "it waits");
    pool.send((2, 50, Well)).await.unwrap();
    for number in 1..4 {
        tokio::time::sleep(SECOND).await;
        pool.send((1, number, Well)).await.unwrap();
    }
    settle().await;
    assert_eq!(writer.begun(), [(1, vec![0, 1, 2, 3])], "full before its time");
    assert!(began.elapsed() < 4 * SECOND);
    tokio::time::sleep(10 * SECOND).await;
    assert_eq!(writer.begun()[1], (2, vec![50]), "in its time, though it is not full");
    let stats = pool.stop(PATIENCE).await.stats;
    assert_eq!(stats.handled, 5);
    assert!(stats.ledger_holds());
}

/// The number is the size.
fn size((_, number, _): &Row) -> usize {
    assert_ne!(*number, 13, "a size that cannot be told");
    *number as usize
}

#[tokio::test(start_paused = true)]
async fn k12_a_batch_is_full_with_so_many_bytes_too() {
    for keyed in [true, false] {
        let writer = Writer::gated();
        let pool = writer.pool(Batches::of(5)).workers(1).batch_bytes(100, size);
        let address = match keyed {
            true => pool.ordered_by(by_key).max_per_key(100).spawn().await.unwrap().address(),
            false => pool.spawn().await.unwrap().address(),
        };
        let numbers = [120, 30, 30, 30, 30, 1, 2, 3, 4, 5, 6, 100];
        for number in numbers {
            address.send((1, number, Well)).await.unwrap();
        }
        writer.gate.add_permits(100);
        settle().await;
        let batches: Vec<Vec<u32>> =
            writer.begun().into_iter().map(|(_, numbers)| numbers).collect();
        let expected: [&[u32]; 4] = [&[120], &[30, 30, 30, 30], &[1, 2, 3, 4, 5], &[6, 100]];
        assert_eq!(batches, expected, "keyed: {keyed}");
    }
}

#[tokio::test(start_paused = true)]
async fn k12_a_batch_that_waits_goes_soon_after_it_has_its_bytes() {
    let writer = Writer::new();
    let batches = Batches::of(50).within(8 * SECOND);
    let pool = writer.pool(batches).ordered_by(by_key).batch_bytes(100, size).spawn();
    let pool = pool.await.unwrap();
    for number in [60, 61] {
        pool.send((1, number, Well)).await.unwrap();
        settle().await;
    }
    assert!(writer.begun().is_empty(), "it waits");
    tokio::time::sleep(2 * SECOND).await;
    settle().await;
    assert_eq!(writer.begun(), [(1, vec![60, 61])], "a quarter of its time later");
    assert_eq!(pool.stop(PATIENCE).await.stats.handled, 2);
}

#[tokio::test(start_paused = true)]
async fn k12_p26_a_size_that_panics_ends_the_batch_and_loses_nothing() {
    let writer = Writer::gated();
    let pool = writer.pool(Batches::of(50)).workers(1).ordered_by(by_key).batch_bytes(100, size);
    let pool = pool.max_per_key(100).spawn().await.unwrap();
    for number in [120, 1, 13, 2, 3] {
        pool.send((1, number, Well)).await.unwrap();
    }
    writer.gate.add_permits(100);
    settle().await;
    let begun = writer.begun();
    assert_eq!(begun, [(1, vec![120]), (1, vec![1, 13]), (1, vec![2, 3])]);
    let stats = pool.stop(PATIENCE).await.stats;
    assert_eq!((stats.handled, stats.restarts), (5, 0));
    assert!(stats.ledger_holds());
}

#[tokio::test]
async fn k12_batches_of_no_bytes_are_refused() {
    let pool = Writer::new().pool(Batches::of(5)).batch_bytes(0, size).spawn().await;
    let error = pool.unwrap_err().to_string();
    assert!(error.contains("batch bytes"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn k12_who_waits_for_more_looks_for_it_where_nobody_else_does() {
    let writer = Writer::new();
    let batches = Batches::of(4).within(8 * SECOND);
    let pool = writer.pool(batches).workers(1).ordered_by(by_key).spawn().await.unwrap();
    for number in 0..4 {
        pool.send((1, number, Well)).await.unwrap();
        settle().await;
    }
    pool.send((2, 50, Well)).await.unwrap();
    assert!(writer.begun().is_empty(), "it waits, and there is no other worker");
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!(writer.begun(), [(1, vec![0, 1, 2, 3])], "it has looked");
    tokio::time::sleep(9 * SECOND).await;
    assert_eq!(writer.begun()[1], (2, vec![50]));
    assert!(pool.stop(PATIENCE).await.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k12_a_batch_in_hand_is_counted_whole_and_given_back_whole() {
    let writer = Writer::gated();
    let pool = writer.pool(Batches::of(10)).ordered_by(by_key).spawn().await.unwrap();
    for number in 0..5 {
        pool.send((1, number, Well)).await.unwrap();
    }
    settle().await;
    let stats = pool.stats();
    assert_eq!((stats.in_hand, stats.busy, stats.queued), (5, 1, 0));
    assert!(stats.ledger_holds(), "{stats:?}");
    let report = pool.stop(Stop::within(Duration::ZERO)).await;
    let mut left: Vec<_> = report.left_over.iter().map(|row| row.1).collect();
    left.sort_unstable();
    assert_eq!(left, [0, 1, 2, 3, 4]);
    assert_eq!((report.stats.returned, report.stats.in_hand), (5, 0));
    assert!(report.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k12_k08_a_failed_message_of_a_batch_parks_its_key() {
    let writer = Writer::new();
    let pool = writer.pool(Batches::of(10)).ordered_by(by_key);
    let pool = pool.on_final_failure(FinalAction::ParkKey).spawn().await.unwrap();
    for (number, wish) in [(0, Well), (1, Fails(1)), (2, Fails(1)), (3, Well)] {
        pool.send((1, number, wish)).await.unwrap();
    }
    settle().await;
    pool.send((1, 4, Well)).await.unwrap();
    settle().await;
    let keys = pool.keys::<u64>().unwrap();
    assert_eq!(keys.parked().len(), 1);
    assert_eq!(pool.stats().handled, 2);
    assert!(keys.replay(&1));
    settle().await;
    assert_eq!(writer.begun()[1], (1, vec![1, 2, 4]));
    let stats = pool.stop(PATIENCE).await.stats;
    assert_eq!(stats.handled, 5);
    assert!(stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k12_without_keys_a_batch_takes_what_there_is() {
    let writer = Writer::new();
    let pool = writer.pool(Batches::of(3)).workers(1).spawn().await.unwrap();
    for number in 0..7 {
        pool.send((100 + u64::from(number), number, Well)).await.unwrap();
    }
    settle().await;
    let sizes: Vec<_> = writer.begun().iter().map(|(_, numbers)| numbers.len()).collect();
    assert_eq!(sizes, [3, 3, 1]);
    assert!(pool.stop(PATIENCE).await.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k12_a_message_whose_caller_has_gone_is_no_part_of_a_batch() {
    let writer = Writer::gated();
    let pool =
        Arc::new(writer.pool(Batches::of(10)).workers(1).ordered_by(by_key).spawn().await.unwrap());
    pool.send((9, 9, Well)).await.unwrap();
    settle().await;
    pool.send((1, 0, Well)).await.unwrap();
    let gone = tokio::spawn({
        let pool = pool.clone();
        async move { pool.call((1, 1, Well)).await }
    });
    settle().await;
    gone.abort();
    settle().await;
    pool.send((1, 2, Well)).await.unwrap();
    writer.gate.add_permits(10);
    settle().await;
    assert_eq!(writer.begun()[1], (1, vec![0, 2]));
    assert_eq!(pool.stats().dead_letters.of(DeadLetterReason::Abandoned), 1);
    assert!(pool.stats().ledger_holds());
}

/// A policy that panics if the error says so.
struct Moody;

impl greenroom::FailurePolicy<String> for Moody {
    fn decide(
        &self,
        attempt: greenroom::failure::FailedAttempt<'_, String>,
        _chance: f64,
    ) -> FailureAction {
        match attempt.cause {
            greenroom::failure::Cause::Error(error) if error == "no 0" => panic!("a policy"),
            greenroom::failure::Cause::Error(error) if error == "no 1" => {
                FailureAction::Retry { after: SECOND, counted: true }
            }
            _ => FailureAction::ParkKey,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn k12_p26_a_policy_that_panics_loses_nothing_of_a_batch() {
    let writer = Writer::new();
    let pool = writer.pool(Batches::of(10)).workers(1).failure_policy(Moody).ordered_by(by_key);
    let pool = pool.spawn().await.unwrap();
    for (number, wish) in [(0, Fails(9)), (1, Fails(1)), (2, Well)] {
        pool.send((1, number, wish)).await.unwrap();
    }
    tokio::time::sleep(5 * SECOND).await;
    let stats = pool.stats();
    assert_eq!((stats.handled, stats.dead_lettered, stats.in_hand), (2, 1, 0), "{stats:?}");
    assert!(pool.stop(PATIENCE).await.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k12_k08_what_failed_for_good_is_released_and_what_did_not_is_not() {
    let writer = Writer::new();
    let pool = writer.pool(Batches::of(10)).workers(1).failure_policy(Moody).ordered_by(by_key);
    let pool = pool.spawn().await.unwrap();
    for (number, wish) in [(1, Fails(1)), (2, Fails(9)), (3, Fails(9))] {
        pool.send((1, number, wish)).await.unwrap();
    }
    settle().await;
    assert!(pool.keys::<u64>().unwrap().release(&1));
    settle().await;
    let dead = pool.dead_letters().remove_all();
    assert_eq!(dead.iter().map(|l| l.message.unwrap().1).collect::<Vec<_>>(), [2, 3]);
    assert_eq!((pool.stats().handled, pool.keys::<u64>().unwrap().counts().parked), (1, 0));
    assert!(pool.stop(PATIENCE).await.stats.ledger_holds());
}

/// Cannot be copied if it is 1.
#[derive(Debug)]
struct Touchy(u32);

impl Clone for Touchy {
    fn clone(&self) -> Self {
        assert!(self.0 != 1, "a copy");
        Self(self.0)
    }
}

struct Counter;

impl Actor for Counter {
    type Message = Batch<Touchy>;
    type Reply = Vec<Result<(), ()>>;
    type Error = ();

    async fn handle(
        &mut self,
        batch: Batch<Touchy>,
        _cx: &mut Context<Self>,
    ) -> Result<Self::Reply, ()> {
        Ok(batch.iter().map(|_| Ok(())).collect())
    }
}

#[tokio::test(start_paused = true)]
async fn k12_p26_a_copy_that_panics_loses_nothing_of_a_batch() {
    let pool = Pool::batched(|_| Counter, Batches::of(10)).workers(1).capacity(100);
    let pool = pool.ordered_by(|_: &Touchy| 1_u64).spawn().await.unwrap();
    for number in [0, 2, 1, 3] {
        pool.try_send(Touchy(number)).unwrap();
    }
    tokio::time::sleep(5 * SECOND).await;
    let stats = pool.stats();
    assert_eq!((stats.handled, stats.dead_lettered, stats.in_hand), (3, 1, 0), "{stats:?}");
    assert!(pool.stop(PATIENCE).await.stats.ledger_holds());
}

/// Takes its time, and notes how many handlers do so at once.
struct Careful(Arc<AtomicU32>, Arc<AtomicU32>);

impl Actor for Careful {
    type Message = Batch<Touchy>;
    type Reply = Vec<Result<(), ()>>;
    type Error = ();

    async fn handle(
        &mut self,
        batch: Batch<Touchy>,
        _cx: &mut Context<Self>,
    ) -> Result<Self::Reply, ()> {
        let Self(at_once, most) = self;
        most.fetch_max(at_once.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(1)).await;
        at_once.fetch_sub(1, Ordering::Relaxed);
        Ok(batch.iter().map(|_| Ok(())).collect())
    }
}

#[tokio::test(start_paused = true)]
async fn k01_k12_a_copy_that_panics_leaves_a_batch_its_key_whichever_is_measured() {
    for before in 0..2 {
        let (at_once, most) = <(Arc<AtomicU32>, Arc<AtomicU32>)>::default();
        let of_actors = most.clone();
        let pool =
            Pool::batched(move |_| Careful(at_once.clone(), of_actors.clone()), Batches::of(10));
        let pool = pool.workers(2).quick_handlers(false).ordered_by(|_: &Touchy| 7_u32);
        let pool = pool.spawn().await.unwrap();
        for _ in 0..before {
            pool.call(Touchy(0)).await.unwrap();
        }
        for _ in 0..20 {
            for number in 0..3 {
                pool.try_send(Touchy(number)).unwrap();
            }
            settle().await;
            pool.call(Touchy(3)).await.unwrap();
        }
        assert_eq!(most.load(Ordering::Relaxed), 1, "one batch of a key at a time");
        let stats = pool.stop(PATIENCE).await.stats;
        assert_eq!((stats.handled, stats.dead_lettered), (60 + before, 20));
    }
}

#[tokio::test(start_paused = true)]
async fn k12_k11_keys_that_are_handled_in_batches_are_among_the_hottest() {
    let writer = Writer::new();
    let pool = writer.pool(Batches::of(4)).workers(1).capacity(1_000).quick_handlers(false);
    let pool = pool.ordered_by(by_key).max_per_key(1_000).spawn().await.unwrap();
    for number in 0..800 {
        pool.try_send((1, number, Well)).unwrap();
    }
    settle().await;
    let hot = pool.keys::<u64>().unwrap().hottest_by_count(1);
    assert!((400..=1_200).contains(&hot[0].amount), "{hot:?}");
}

/// Reads all messages of a batch in place, without copies, and skips every second one.
struct Looker;

impl Actor for Looker {
    type Message = u32;
    type Reply = u32;
    type Error = ();

    async fn handle(&mut self, number: u32, _cx: &mut Context<Self>) -> Result<u32, ()> {
        Ok(number)
    }

    async fn receive(
        &mut self,
        delivery: &mut greenroom::Delivery<u32, u32, ()>,
        _cx: &mut Context<Self>,
    ) -> Result<greenroom::Answer<u32>, ()> {
        let all: Vec<u32> = delivery.messages_mut().map(|number| *number).collect();
        for (companion, number) in delivery.batch_items().iter_mut().zip(&all[1..]) {
            if number.is_multiple_of(2) {
                companion.settle(Ok(number * 10));
            }
        }
        Ok(greenroom::Answer::Reply(delivery.take() * 10 + all.len() as u32))
    }
}

#[tokio::test(start_paused = true)]
async fn k12_what_a_handler_says_nothing_of_is_attempted_again_by_itself() {
    let pool =
        Pool::new(|_| Looker).workers(1).batches(Batches::of(10)).ordered_by(|_: &u32| 1_u64);
    let pool = Arc::new(pool.spawn().await.unwrap());
    let calls: Vec<_> = (0..4_u32)
        .map(|number| {
            let pool = pool.clone();
            tokio::spawn(async move { pool.call(number).await })
        })
        .collect();
    let mut replies = Vec::new();
    for call in calls {
        replies.push(call.await.unwrap().unwrap());
    }
    // The first with three others, then those that were skipped, each alone.
    assert_eq!(replies, [4, 11, 20, 31]);
    assert!(pool.stats().ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k12_k08_what_has_failed_for_good_of_a_batch_is_released_and_nothing_else() {
    for replayed in [false, true] {
        let writer = Writer::new();
        let pool = writer.pool(Batches::of(10)).retry(2, Backoff::new(SECOND, SECOND));
        let pool = pool.ordered_by(by_key).on_final_failure(FinalAction::ParkKey);
        let pool = pool.spawn().await.unwrap();
        pool.send((1, 0, Fails(2))).await.unwrap();
        pool.send((1, 1, Fails(2))).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        pool.send((1, 2, Fails(1))).await.unwrap();
        pool.send((1, 3, Well)).await.unwrap();
        tokio::time::sleep(9 * SECOND).await;
        let keys = pool.keys::<u64>().unwrap();
        assert_eq!(keys.parked().len(), 1);
        assert!(if replayed { keys.replay(&1) } else { keys.release(&1) });
        tokio::time::sleep(9 * SECOND).await;
        assert_eq!((keys.parked().len(), writer.attempts(2)), (0, 2));
        let attempts = if replayed { 3 } else { 2 };
        assert_eq!((writer.attempts(0), writer.attempts(1)), (attempts, attempts));
        let letters = pool.dead_letters().remove_all().into_iter().map(|l| (l.message, l.attempts));
        let expected = [(Some((1, 0, Fails(2))), 2), (Some((1, 1, Fails(2))), 2)];
        assert_eq!(letters.collect::<Vec<_>>(), if replayed { &[][..] } else { &expected });
        assert!(pool.stop(PATIENCE).await.stats.ledger_holds());
    }
}

#[tokio::test(start_paused = true)]
async fn k12_a_batch_takes_from_several_groups_that_were_sent_together() {
    let writer = Writer::gated();
    let pool = writer.pool(Batches::of(50)).workers(1).quick_handlers(true).spawn().await.unwrap();
    pool.send((100, 0, Well)).await.unwrap();
    settle().await;
    for group in 0..3 {
        let numbers = (1..=20).map(|number| 20 * group + number);
        let mut together = numbers.map(|number| (100, number, Well)).collect();
        pool.send_many(&mut together).await.unwrap();
    }
    writer.gate.add_permits(10);
    let report = pool.stop(PATIENCE).await;
    let batches: Vec<Vec<u32>> = writer.begun().into_iter().map(|(_, numbers)| numbers).collect();
    assert_eq!(batches, [vec![0], (1..=50).collect(), (51..=60).collect()]);
    assert!(report.stats.ledger_holds() && report.stats.handled == 61, "{:?}", report.stats);
}

/// It cost a token, as if it had been handled.
#[tokio::test(start_paused = true)]
async fn p24_a_batch_that_is_withdrawn_while_it_is_collected_costs_no_token() {
    let (writer, is_over) = (Writer::new(), Arc::new(AtomicBool::new(false)));
    let asked = is_over.clone();
    let pool = writer.pool(Batches::of(10).within(Duration::from_secs(1)));
    let pool = pool.ordered_by(|row: &Row| row.0).rate(Rate::new(1, Duration::from_secs(3600)));
    let wanted = move |row: &Row| row.1 > 1 || !asked.load(Ordering::SeqCst);
    let pool = pool.starts_if(wanted).spawn().await.unwrap();
    pool.send((1, 1, Well)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    is_over.store(true, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(pool.stats().withdrawn, 1);
    pool.send((1, 2, Well)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(writer.begun(), [(1, vec![2])], "the token is there for it");
}
