//! What waits behind one key, and what an operator sees of it and decides (keyed-pools.md, K07 to K11).

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use greenroom::{
    Actor, Backoff, CallError, Context, DeadLetterReason, Envelope, Event, FailureTable, Finally,
    KeyState, NotAccepted, Notices, Overflow, Pool, PoolBuilder, Restarts, Row, SpawnError, Stop,
    TrySendError, notices::Kind,
};
use tokio::sync::Semaphore;

/// What a message has its handler do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Nothing,
    /// Waits until the gate is opened.
    Wait,
    Fail,
    Panic,
    /// Fails until it was attempted so often.
    FailUntil(u32),
}
use Wish::{Fail, FailUntil, Nothing, Panic, Wait};

type Job = (u64, u32, Wish);

/// Keys and numbers of messages.
#[derive(Default)]
struct Log(Mutex<Vec<(u64, u32)>>);

impl Log {
    fn all(&self) -> MutexGuard<'_, Vec<(u64, u32)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does what is wished, and notes what was handled.
#[derive(Clone)]
struct Clerk {
    gate: Arc<Semaphore>,
    handled: Arc<Log>,
    attempts: Arc<Log>,
}

impl Clerk {
    fn new() -> Self {
        Self {
            gate: Arc::new(Semaphore::new(0)),
            handled: Arc::default(),
            attempts: Arc::default(),
        }
    }

    fn handled(&self) -> Vec<(u64, u32)> {
        self.handled.all().clone()
    }

    fn attempts_of(&self, key: u64, number: u32) -> u32 {
        let attempts = self.attempts.all();
        attempts.iter().filter(|attempt| **attempt == (key, number)).count() as u32
    }

    fn pool(&self) -> PoolBuilder<Self> {
        let each = self.clone();
        Pool::new(move |_| each.clone()).workers(4).capacity(100)
    }
}

impl Actor for Clerk {
    type Message = Job;
    type Reply = u32;
    type Error = String;

    async fn handle(&mut self, job: Job, _cx: &mut Context<Self>) -> Result<u32, String> {
        let (key, number, wish) = job;
        self.attempts.all().push((key, number));
        match wish {
            Nothing => {}
            Wait => self.gate.acquire().await.map_err(|closed| closed.to_string())?.forget(),
            Fail => return Err(format!("no {number}")),
            Panic => panic!("boom {number}"),
            FailUntil(attempt) if self.attempts_of(key, number) < attempt => {
                return Err(format!("not yet {number}"));
            }
            FailUntil(_) => {}
        }
        self.handled.all().push((key, number));
        Ok(number)
    }
}

const PATIENCE: Stop = Stop::within(Duration::from_secs(60));

/// Lets everybody do what there is to do at this moment.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

fn parking(clerk: &Clerk) -> PoolBuilder<Clerk, u64> {
    clerk.pool().ordered_by(|job: &Job| job.0).on_final_failure(Finally::ParkKey)
}

#[tokio::test(start_paused = true)]
async fn k08_a_message_that_fails_for_good_parks_its_key_and_no_other() {
    let clerk = Clerk::new();
    let pool = parking(&clerk).spawn().await.unwrap();
    pool.send((1, 0, Fail)).await.unwrap();
    pool.send((1, 1, Nothing)).await.unwrap();
    pool.send((2, 0, Nothing)).await.unwrap();
    settle().await;
    assert_eq!(clerk.handled(), [(2, 0)]);
    let keys = pool.keys::<u64>().unwrap();
    let parked = keys.parked();
    assert_eq!((parked.len(), *parked[0].key, parked[0].waiting), (1, 1, 1));
    assert_eq!(parked[0].reason, DeadLetterReason::Failed);
    let stats = pool.stats();
    assert_eq!((stats.waiting, stats.queued, stats.dead_lettered), (1, 1, 0));
    assert!(stats.ledger_holds(), "{stats:?}");
    assert!(keys.release(&1));
    settle().await;
    assert_eq!(clerk.handled(), [(2, 0), (1, 1)]);
    let letters = pool.dead_letters();
    let letter = letters.remove(letters.list(None, 1)[0].id).unwrap();
    assert_eq!((letter.message, letter.reason), (Some((1, 0, Fail)), DeadLetterReason::Failed));
    assert_eq!((letter.error.as_deref(), letter.attempts), (Some("no 0"), 1));
    assert!(!keys.release(&1), "it is not parked any more");
    assert!(pool.stop(PATIENCE).await.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k08_a_parked_key_is_replayed_in_its_order() {
    let clerk = Clerk::new();
    let pool = parking(&clerk).spawn().await.unwrap();
    pool.send((1, 0, FailUntil(2))).await.unwrap();
    for number in 1..4 {
        pool.send((1, number, Nothing)).await.unwrap();
    }
    settle().await;
    assert!(clerk.handled().is_empty());
    assert!(pool.keys::<u64>().unwrap().replay(&1));
    settle().await;
    assert_eq!(clerk.handled(), [(1, 0), (1, 1), (1, 2), (1, 3)]);
    assert_eq!(pool.keys::<u64>().unwrap().counts().parked, 0);
    let stats = pool.stop(PATIENCE).await.stats;
    assert_eq!((stats.handled, stats.accepted), (4, 4));
}

#[tokio::test(start_paused = true)]
async fn k08_the_line_of_a_parked_key_can_be_taken_out() {
    let clerk = Clerk::new();
    let pool = parking(&clerk).spawn().await.unwrap();
    for number in 0..3 {
        pool.send((1, number, Fail)).await.unwrap();
    }
    settle().await;
    let keys = pool.keys::<u64>().unwrap();
    let line = keys.remove(&1).unwrap();
    assert_eq!(line, [(1, 0, Fail), (1, 1, Fail), (1, 2, Fail)]);
    assert_eq!(keys.remove(&1), None);
    pool.send((1, 3, Nothing)).await.unwrap();
    settle().await;
    assert_eq!(clerk.handled(), [(1, 3)]);
    let stats = pool.stop(PATIENCE).await.stats;
    assert_eq!((stats.returned, stats.handled), (3, 1));
    assert!(stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k08_a_removed_line_gives_its_room_back() {
    let clerk = Clerk::new();
    let pool = parking(&clerk).capacity(3).max_per_key(3).spawn().await.unwrap();
    pool.send((1, 0, Fail)).await.unwrap();
    settle().await;
    pool.send((1, 1, Nothing)).await.unwrap();
    pool.send((1, 2, Nothing)).await.unwrap();
    settle().await;
    assert!(matches!(pool.try_send((2, 0, Nothing)), Err(TrySendError::Full(_))));
    let waiting = tokio::spawn({
        let address = pool.address();
        async move { address.send((2, 1, Nothing)).await }
    });
    settle().await;
    assert_eq!(pool.keys::<u64>().unwrap().remove(&1).unwrap().len(), 3);
    waiting.await.unwrap().unwrap();
    settle().await;
    assert_eq!(clerk.handled(), [(2, 1)]);
}

#[tokio::test(start_paused = true)]
async fn k08_h04_callers_of_a_parked_key_are_told_at_once() {
    let clerk = Clerk::new();
    let pool = Arc::new(parking(&clerk).spawn().await.unwrap());
    let call = |number, wish| {
        let pool = pool.clone();
        tokio::spawn(async move { pool.call((1, number, wish)).await })
    };
    // One that fails, and one in line behind it.
    let (failing, behind) = (call(0, Fail), call(1, Nothing));
    assert_eq!(failing.await.unwrap(), Err(CallError::Parked));
    assert_eq!(behind.await.unwrap(), Err(CallError::Parked));
    // One that comes later.
    assert_eq!(pool.call((1, 2, Nothing)).await, Err(CallError::Parked));
    assert!(pool.keys::<u64>().unwrap().release(&1));
    settle().await;
    assert_eq!(clerk.handled(), [(1, 1), (1, 2)], "they had stayed in line");
    assert!(pool.stop(PATIENCE).await.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k08_so_many_wait_behind_a_parked_key_and_then_new_ones_are_refused() {
    let clerk = Clerk::new();
    let pool = parking(&clerk).max_parked(5).spawn().await.unwrap();
    pool.send((1, 0, Fail)).await.unwrap();
    settle().await;
    for number in 1..=5 {
        pool.try_send((1, number, Nothing)).unwrap();
    }
    let refused = pool.try_send((1, 6, Nothing));
    assert!(matches!(refused, Err(TrySendError::Parked((1, 6, Nothing)))));
    let refused = pool.send((1, 6, Nothing)).await.unwrap_err();
    assert_eq!(refused.without_message(), NotAccepted::Parked);
    assert_eq!(pool.call((1, 6, Nothing)).await, Err(CallError::Parked));
    pool.try_send((2, 0, Nothing)).unwrap();
    settle().await;
    assert!(pool.keys::<u64>().unwrap().release(&1));
    settle().await;
    let expected: Vec<_> = std::iter::once((2, 0)).chain((1..=5).map(|n| (1, n))).collect();
    assert_eq!(clerk.handled(), expected);
    pool.try_send((1, 7, Nothing)).unwrap();
    let stats = pool.stop(PATIENCE).await.stats;
    assert_eq!((stats.handled, stats.rejected), (7, 3));
}

#[tokio::test(start_paused = true)]
async fn k08_a_thousand_wait_behind_a_parked_key_unless_said_otherwise() {
    let clerk = Clerk::new();
    let pool = parking(&clerk).capacity(100_000).spawn().await.unwrap();
    pool.send((1, 0, Fail)).await.unwrap();
    settle().await;
    let accepted = (0..2_000).filter(|n| pool.try_send((1, *n, Nothing)).is_ok()).count();
    assert_eq!(accepted, 1_000);
}

#[tokio::test(start_paused = true)]
async fn k08_panics_timeouts_and_poison_park_the_key_too() {
    for (limit, poison, reason) in [
        (None, 9, DeadLetterReason::Panicked),
        (None, 1, DeadLetterReason::Poisoned),
        (Some(Duration::from_secs(1)), 9, DeadLetterReason::TimedOut),
    ] {
        let clerk = Clerk::new();
        let wish = if limit.is_some() { Wait } else { Panic };
        let pool = parking(&clerk).poison_limit(poison);
        let pool = match limit {
            Some(limit) => pool.time_limit(limit).spawn().await.unwrap(),
            None => pool.spawn().await.unwrap(),
        };
        pool.send((1, 0, wish)).await.unwrap();
        pool.send((1, 1, Nothing)).await.unwrap();
        tokio::time::sleep(Duration::from_secs(3)).await;
        let keys = pool.keys::<u64>().unwrap();
        assert_eq!(keys.parked()[0].reason, reason);
        assert!(clerk.handled().is_empty());
        assert!(keys.release(&1));
        settle().await;
        assert_eq!(clerk.handled(), [(1, 1)]);
        assert!(pool.stop(PATIENCE).await.stats.ledger_holds());
    }
}

#[tokio::test(start_paused = true)]
async fn k08_retries_come_before_parking_and_are_counted_anew_after_a_replay() {
    let clerk = Clerk::new();
    let backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(1));
    let each = clerk.pool().retry(3, backoff).ordered_by(|job: &Job| job.0);
    let pool = each.on_final_failure(Finally::ParkKey).spawn().await.unwrap();
    pool.send((1, 0, Fail)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(clerk.attempts_of(1, 0), 3);
    let keys = pool.keys::<u64>().unwrap();
    assert_eq!(keys.counts().parked, 1);
    assert!(keys.replay(&1));
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!((clerk.attempts_of(1, 0), keys.counts().parked), (6, 1));
    // A stop does not wait for an operator.
    let began = tokio::time::Instant::now();
    let report = pool.stop(PATIENCE).await;
    assert!(began.elapsed() < Duration::from_secs(1));
    assert_eq!(report.left_over, [(1, 0, Fail)]);
    assert!(report.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k08_a_policy_may_park_and_stop_too() {
    let clerk = Clerk::new();
    let table = FailureTable {
        error: Row::Once(Finally::ParkKey),
        panic: Row::Once(Finally::StopPool),
        ..FailureTable::default()
    };
    let pool = clerk.pool().ordered_by(|job: &Job| job.0).failure_policy(table);
    let pool = pool.spawn().await.unwrap();
    // Without a copy nothing is left of the message: it is a dead letter, and its key waits all the same.
    pool.send((1, 0, Fail)).await.unwrap();
    pool.send((1, 1, Nothing)).await.unwrap();
    settle().await;
    assert_eq!((pool.stats().dead_lettered, pool.stats().queued), (1, 1));
    assert!(pool.keys::<u64>().unwrap().release(&1));
    settle().await;
    assert_eq!(clerk.handled(), [(1, 1)]);
    pool.send((2, 0, Panic)).await.unwrap();
    pool.erase().ended().await;
    let report = pool.stop(PATIENCE).await;
    assert_eq!(report.stats.dead_letters.of(DeadLetterReason::Panicked), 1);
    assert!(report.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k08_stop_pool_ends_it_and_gives_back_what_is_queued() {
    let clerk = Clerk::new();
    let pool = clerk.pool().workers(1).ordered_by(|job: &Job| job.0);
    let pool = pool.on_final_failure(Finally::StopPool).spawn().await.unwrap();
    pool.send((1, 0, Fail)).await.unwrap();
    for key in 2..5 {
        pool.send((key, 0, Nothing)).await.unwrap();
    }
    pool.erase().ended().await;
    let report = pool.stop(PATIENCE).await;
    assert_eq!(report.stats.dead_lettered, 1);
    assert_eq!(report.left_over.len() + clerk.handled().len(), 3);
    assert!(pool.send((9, 0, Nothing)).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn k08_it_is_told_when_a_key_is_parked_and_when_it_goes_on() {
    let clerk = Clerk::new();
    let notices = Notices::new(100);
    let mut told = notices.subscribe();
    let pool = parking(&clerk).notices(notices).spawn().await.unwrap();
    pool.send((1, 0, Fail)).await.unwrap();
    settle().await;
    assert!(pool.keys::<u64>().unwrap().release(&1));
    settle().await;
    let mut of_keys = Vec::new();
    while let Some(event) = told.try_recv() {
        if let Event::Item(notice) = event {
            of_keys.push(notice.what.kind());
        }
    }
    of_keys.retain(|kind| matches!(kind, Kind::KeyParked | Kind::KeyReleased));
    assert_eq!(of_keys, [Kind::KeyParked, Kind::KeyReleased]);
}

#[tokio::test(start_paused = true)]
async fn k08_a_key_is_parked_also_where_its_message_is_gone_whichever_is_measured() {
    for before in 0..20_u32 {
        let clerk = Clerk::new();
        let table = FailureTable { error: Row::Once(Finally::ParkKey), ..FailureTable::default() };
        let pool = clerk.pool().workers(1).ordered_by(|job: &Job| job.0).failure_policy(table);
        let pool = pool.quick_handlers(false).spawn().await.unwrap();
        for number in 0..before {
            pool.send((100 + u64::from(number), number, Nothing)).await.unwrap();
            settle().await;
        }
        pool.send((1, 0, Fail)).await.unwrap();
        settle().await;
        assert_eq!(pool.keys::<u64>().unwrap().counts().parked, 1, "after {before}");
        assert_eq!(pool.call((2, 7, Nothing)).await, Ok(7));
        pool.stop(Stop::Now).await;
    }
}

#[tokio::test(start_paused = true)]
async fn k08_a_key_is_not_parked_any_more_when_the_last_slot_was_disabled() {
    let clerk = Clerk::new();
    let none = greenroom::Restarts { max: 0, ..Default::default() };
    let pool = clerk.pool().workers(1).restarts(none).ordered_by(|job: &Job| job.0);
    let table = FailureTable { error: Row::Once(Finally::ParkKey), ..FailureTable::default() };
    let pool = pool.retry_with(Clone::clone, table).spawn().await.unwrap();
    pool.send((7, 0, Fail)).await.unwrap();
    settle().await;
    pool.send((8, 0, Panic)).await.unwrap();
    settle().await;
    assert_eq!(pool.stats().dead_letters.of(DeadLetterReason::NoWorkers), 1);
    drop(pool.manage().enable(0).unwrap());
    settle().await;
    assert_eq!(pool.keys::<u64>().unwrap().counts().parked, 0);
    assert_eq!(pool.call((7, 1, Nothing)).await, Ok(1));
    assert!(pool.stats().ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k10_a_parked_key_does_not_fill_the_pool_either() {
    let clerk = Clerk::new();
    let pool = parking(&clerk).spawn().await.unwrap();
    pool.send((1, 0, Fail)).await.unwrap();
    settle().await;
    let behind = (0..500).filter(|n| pool.try_send((1, *n, Nothing)).is_ok()).count();
    assert_eq!(behind, 25);
    pool.try_send((2, 0, Nothing)).unwrap();
}

#[tokio::test(start_paused = true)]
async fn k10_p07_with_drop_oldest_a_full_key_makes_its_own_room_in_a_full_pool() {
    let clerk = Clerk::new();
    let pool = clerk.pool().workers(1).capacity(4).overflow(Overflow::DropOldest);
    let pool = pool.max_per_key_of(2).spawn().await.unwrap();
    pool.send((9, 0, Wait)).await.unwrap();
    settle().await;
    for (key, number) in [(3, 0), (1, 1), (1, 2), (4, 0)] {
        pool.try_send((key, number, Nothing)).unwrap();
    }
    pool.try_send((1, 3, Nothing)).unwrap();
    let dead: Vec<_> = pool.dead_letters().remove_all().into_iter().map(|l| l.message).collect();
    assert_eq!(dead, [Some((1, 1, Nothing))]);
}

#[tokio::test(start_paused = true)]
async fn k10_h07_a_key_at_its_bound_is_no_full_pool() {
    let clerk = Clerk::new();
    let notices = Notices::new(100);
    let mut told = notices.subscribe();
    let pool = clerk.pool().max_per_key_of(2).notices(notices).spawn().await.unwrap();
    pool.send((1, 0, Wait)).await.unwrap();
    settle().await;
    let mut many: std::collections::VecDeque<Job> = (1..6).map(|n| (1, n, Nothing)).collect();
    assert_eq!(pool.try_send_many(&mut many), Ok(2));
    assert_eq!(pool.try_send_many(&mut many), Err(NotAccepted::KeyFull));
    while let Some(event) = told.try_recv() {
        let full = matches!(&event, Event::Item(notice) if notice.what.kind() == Kind::MailboxFull);
        assert!(!full);
    }
}

#[tokio::test(start_paused = true)]
async fn k10_the_bound_of_a_key_follows_the_capacity() {
    let clerk = Clerk::new();
    let each = clerk.clone();
    let pool = Pool::new(move |_| each.clone()).workers(1).mailbox(8);
    let pool = pool.ordered_by(|job: &Job| job.0).spawn().await.unwrap();
    let accepted = || (0..100).filter(|n| pool.try_send((1, *n, Nothing)).is_ok()).count();
    assert_eq!(accepted(), 2);
    settle().await;
    drop(pool.manage().resize(4).unwrap());
    settle().await;
    assert_eq!(accepted(), 8);
    settle().await;
    pool.manage().set_capacity(4).unwrap();
    assert_eq!(accepted(), 1);
    settle().await;
    assert!(pool.stop(PATIENCE).await.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k10_a18_timers_skip_or_wait_behind_a_key_at_its_bound() {
    let clerk = Clerk::new();
    let pool = clerk.pool().max_per_key_of(1).spawn().await.unwrap();
    pool.send((1, 0, Wait)).await.unwrap();
    settle().await;
    pool.send((1, 1, Nothing)).await.unwrap();
    let second = Duration::from_secs(1);
    let every = pool.send_every(second, (1, 50, Nothing));
    let once = pool.send_after(second, (1, 99, Nothing));
    tokio::time::sleep(5 * second + second / 2).await;
    assert!(clerk.handled().is_empty());
    clerk.gate.add_permits(1);
    tokio::time::sleep(3 * second).await;
    let numbers: Vec<_> = clerk.handled().iter().map(|(_, number)| *number).collect();
    assert_eq!(numbers[..3], [0, 1, 99], "the one-shot has waited in line");
    assert_eq!(numbers.iter().filter(|number| **number == 50).count(), 3, "{numbers:?}");
    drop((every, once));
}

#[tokio::test(start_paused = true)]
async fn k10_p29_a_sink_waits_behind_a_key_at_its_bound() {
    use futures_util::{SinkExt, StreamExt, stream};
    let clerk = Clerk::new();
    let pool = clerk.pool().max_per_key_of(2).spawn().await.unwrap();
    pool.send((1, 0, Wait)).await.unwrap();
    settle().await;
    let mut sink = pool.sink();
    let feeding = tokio::spawn(async move {
        let jobs = stream::iter((1..=20).map(|n| Ok((1, n, Nothing))));
        jobs.forward(&mut sink).await.map_err(|error| error.to_string())?;
        sink.close().await.map_err(|error| error.to_string())
    });
    settle().await;
    assert!(!feeding.is_finished());
    clerk.gate.add_permits(1);
    feeding.await.unwrap().unwrap();
    settle().await;
    assert_eq!(clerk.handled(), (0..=20).map(|n| (1, n)).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn k09_without_a_key_there_is_no_order_or_no_message() {
    let clerk = Clerk::new();
    let pool = || clerk.pool().ordered_by_opt(|job: &Job| (job.0 > 0).then_some(job.0));
    let open = pool().spawn().await.unwrap();
    assert_eq!(open.call((0, 7, Nothing)).await, Ok(7));
    let strict = pool().key_required().spawn().await.unwrap();
    let refused = strict.send((0, 8, Nothing)).await.unwrap_err();
    assert_eq!(refused.without_message(), NotAccepted::KeyRequired);
    assert_eq!(refused.into_message(), Some((0, 8, Nothing)));
    assert!(matches!(strict.try_send((0, 8, Nothing)), Err(TrySendError::KeyRequired(_))));
    assert_eq!(strict.call((0, 8, Nothing)).await, Err(CallError::KeyRequired));
    let permit = strict.reserve().await.unwrap();
    assert_eq!(
        permit.send((0, 8, Nothing)).unwrap_err().without_message(),
        NotAccepted::KeyRequired
    );
    let mut many = [(0, 8, Nothing)].into();
    assert_eq!(strict.send_many(&mut many).await, Err(NotAccepted::KeyRequired));
    assert_eq!((many.len(), strict.stats().accepted), (1, 0));
    assert_eq!(strict.call((1, 9, Nothing)).await, Ok(9));
    assert_eq!(strict.stats().capacity, 100);
    // Every permit is back.
    let all = (0..200).take_while(|n| strict.try_send((n % 50 + 1, 0, Wait)).is_ok()).count();
    assert!(all >= 100, "{all}");
    strict.stop(Stop::within(Duration::ZERO)).await;
}

#[tokio::test(start_paused = true)]
async fn k10_one_key_cannot_fill_the_pool() {
    let clerk = Clerk::new();
    let pool = clerk.pool().ordered_by(|job: &Job| job.0).spawn().await.unwrap();
    pool.send((1, 0, Wait)).await.unwrap();
    settle().await;
    let mut accepted = 0;
    let refused = loop {
        match pool.try_send((1, accepted + 1, Nothing)) {
            Ok(()) => accepted += 1,
            Err(refused) => break refused,
        }
    };
    assert_eq!(accepted, 25, "a quarter of the capacity");
    assert!(matches!(refused, TrySendError::KeyFull((1, 26, Nothing))));
    let others = (2..200).take_while(|key| pool.try_send((*key, 0, Wait)).is_ok()).count();
    assert!(others >= 75, "{others}");
    clerk.gate.add_permits(1_000);
    settle().await;
    pool.try_send((1, 26, Nothing)).unwrap();
    let stats = pool.stop(PATIENCE).await.stats;
    assert_eq!(stats.handled, 27 + others as u64);
    let of_key: Vec<_> = clerk.handled().into_iter().filter(|(key, _)| *key == 1).collect();
    assert_eq!(of_key, (0..=26).map(|n| (1, n)).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn k10_the_bound_holds_before_anybody_has_looked_at_the_queue() {
    for (capacity, bound) in [(100, None), (8, Some(3)), (1_000, Some(1)), (1, None)] {
        let clerk = Clerk::new();
        let pool = clerk.pool().capacity(capacity).ordered_by(|job: &Job| job.0);
        let pool = match bound {
            Some(bound) => pool.max_per_key(bound).spawn().await.unwrap(),
            None => pool.spawn().await.unwrap(),
        };
        let expected = bound.unwrap_or(capacity.div_ceil(4));
        // No worker has a turn meanwhile.
        let accepted = (0..2_000).filter(|n| pool.try_send((1, *n, Nothing)).is_ok()).count();
        assert_eq!(accepted, expected, "capacity {capacity}");
        settle().await;
        assert_eq!(clerk.handled().len(), expected);
        let again = (0..2_000).filter(|n| pool.try_send((1, *n, Nothing)).is_ok()).count();
        assert_eq!(again, expected);
        assert!(pool.stop(PATIENCE).await.stats.ledger_holds());
    }
}

#[tokio::test(start_paused = true)]
async fn k10_room_that_was_reserved_before_does_not_get_past_the_bound() {
    let clerk = Clerk::new();
    let pool = clerk.pool().capacity(4_096).max_per_key_of(4).spawn().await.unwrap();
    pool.try_send((1, 0, Nothing)).unwrap();
    for number in 1..4 {
        pool.try_reserve().unwrap().send((1, number, Nothing)).unwrap();
    }
    let refused = pool.try_send((1, 4, Nothing)).unwrap_err();
    assert!(matches!(refused, TrySendError::KeyFull((1, 4, Nothing))), "{refused:?}");
    assert!(pool.stop(PATIENCE).await.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k10_senders_wait_behind_their_key_in_turn_and_others_do_not() {
    let clerk = Clerk::new();
    let pool = clerk.pool().max_per_key_of(2).spawn().await.unwrap();
    pool.send((1, 0, Wait)).await.unwrap();
    settle().await;
    pool.send((1, 1, Wait)).await.unwrap();
    pool.send((1, 2, Wait)).await.unwrap();
    let mut waiting = Vec::new();
    for number in 3..8 {
        let address = pool.address();
        waiting.push(tokio::spawn(async move { address.send((1, number, Wait)).await.is_ok() }));
        settle().await;
    }
    pool.send((2, 0, Nothing)).await.unwrap();
    settle().await;
    assert_eq!(clerk.handled(), [(2, 0)], "another key has room and a worker");
    assert_eq!(pool.stats().accepted, 4);
    // One that waits goes away: the others move up.
    waiting.remove(1).abort();
    settle().await;
    for _ in 0..7 {
        clerk.gate.add_permits(1);
        settle().await;
    }
    for waiting in waiting {
        assert!(waiting.await.unwrap());
    }
    let of_key: Vec<_> = clerk.handled().into_iter().filter(|(key, _)| *key == 1).collect();
    assert_eq!(of_key.iter().map(|(_, number)| *number).collect::<Vec<_>>(), [0, 1, 2, 3, 5, 6, 7]);
    assert!(pool.stop(PATIENCE).await.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k10_urgent_messages_count_behind_their_key_as_well() {
    let clerk = Clerk::new();
    let pool = clerk.pool().max_per_key_of(1).spawn().await.unwrap();
    pool.send((1, 0, Wait)).await.unwrap();
    settle().await;
    pool.send_with((1, 1, Wait), greenroom::Envelope::urgent()).await.unwrap();
    settle().await;
    for number in 2..5 {
        assert!(matches!(pool.try_send((1, number, Nothing)), Err(TrySendError::KeyFull(_))));
    }
    pool.stop(Stop::within(Duration::ZERO)).await;
}

#[tokio::test(start_paused = true)]
async fn k10_who_waits_behind_a_key_hears_of_the_end() {
    let clerk = Clerk::new();
    let pool = clerk.pool().max_per_key_of(1).spawn().await.unwrap();
    pool.send((1, 0, Wait)).await.unwrap();
    settle().await;
    pool.send((1, 1, Nothing)).await.unwrap();
    let address = pool.address();
    let waiting = tokio::spawn(async move { address.send((1, 2, Nothing)).await });
    settle().await;
    assert!(!waiting.is_finished());
    pool.stop(Stop::within(Duration::ZERO)).await;
    let refused = waiting.await.unwrap().unwrap_err();
    assert_eq!(refused.without_message(), NotAccepted::Stopped);
    assert_eq!(refused.into_message(), Some((1, 2, Nothing)));
}

#[tokio::test(start_paused = true)]
async fn k10_p07_a_key_at_its_bound_follows_the_overflow_policy() {
    let clerk = Clerk::new();
    let other = clerk.pool().spawn().await.unwrap();
    for (overflow, told, dead) in [
        (Overflow::Reject, Some(NotAccepted::KeyFull), 0),
        (Overflow::DropNewest, Some(NotAccepted::Dropped), 0),
        (Overflow::DropOldest, None, 1),
        (Overflow::Fallback(other.address()), None, 0),
    ] {
        let clerk = Clerk::new();
        let name = format!("{overflow:?}");
        let pool = clerk.pool().max_per_key_of(2).overflow(overflow).spawn().await.unwrap();
        pool.send((1, 0, Wait)).await.unwrap();
        settle().await;
        pool.send((1, 1, Nothing)).await.unwrap();
        pool.send((1, 2, Nothing)).await.unwrap();
        let sent = pool.send((1, 3, Nothing)).await;
        assert_eq!(sent.as_ref().err().map(|error| error.without_message()), told, "{name}");
        assert_eq!(pool.stats().dead_lettered, dead, "{name}");
        clerk.gate.add_permits(1);
        settle().await;
        let expected = if dead == 1 { [(1, 0), (1, 2), (1, 3)] } else { [(1, 0), (1, 1), (1, 2)] };
        assert_eq!(clerk.handled(), expected, "{name}");
        assert!(pool.stop(PATIENCE).await.stats.ledger_holds(), "{name}");
    }
    assert_eq!(other.stats().handled, 1);
}

#[tokio::test]
async fn k10_a_bound_of_nothing_is_refused() {
    let clerk = Clerk::new();
    let none = clerk.pool().max_per_key_of(0).spawn().await.unwrap_err();
    assert!(matches!(none, SpawnError::OutOfRange { setting: "max per key", .. }), "{none}");
}

/// Both in one: by key, so many of each.
trait PerKey {
    fn max_per_key_of(self, messages: usize) -> PoolBuilder<Clerk, u64>;
}

impl PerKey for PoolBuilder<Clerk> {
    fn max_per_key_of(self, messages: usize) -> PoolBuilder<Clerk, u64> {
        self.ordered_by(|job: &Job| job.0).max_per_key(messages)
    }
}

#[tokio::test(start_paused = true)]
async fn k11_a_pool_tells_where_a_key_stands_and_why() {
    let clerk = Clerk::new();
    let backoff = Backoff::new(Duration::from_secs(10), Duration::from_secs(10));
    let row = Row::Retry { attempts: 2, backoff, finally: Finally::ParkKey };
    let pool = clerk.pool().retry_with(Clone::clone, FailureTable::all(row));
    let pool = pool.ordered_by(|job: &Job| job.0).spawn().await.unwrap();
    let keys = pool.keys::<u64>().unwrap();
    let why = |key: u64| keys.why(&key, |error| error.clone());
    for (key, wish) in [(1, Wait), (2, Fail), (3, Nothing)] {
        for number in 0..3 {
            pool.send((key, number, wish)).await.unwrap();
        }
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let one = why(1).unwrap();
    assert!(
        matches!(one.state, KeyState::Running { since, .. } if since >= Duration::from_secs(1)),
        "{one}"
    );
    assert_eq!((one.waiting, one.attempt, one.last_error), (2, 1, None));
    let two = why(2).unwrap();
    let KeyState::Retrying { next, .. } = two.state else { panic!("{two}") };
    assert!((2..=8).contains(&next.as_secs()), "{next:?}");
    assert_eq!((two.waiting, two.attempt, two.last_error.as_deref()), (2, 1, Some("no 0")));
    assert!(two.to_string().starts_with("2 waiting; attempt 1 failed, next in "), "{two}");
    assert_eq!(why(3), None, "it is done with");
    let counts = keys.counts();
    assert_eq!((counts.running, counts.retrying, counts.parked, counts.waiting), (1, 1, 0, 4));
    tokio::time::sleep(Duration::from_secs(10)).await;
    let two = why(2).unwrap();
    let KeyState::Parked { since, reason, .. } = two.state else { panic!("{two}") };
    assert_eq!(reason, DeadLetterReason::Failed);
    assert!(since < Duration::from_secs(9));
    assert_eq!((two.attempt, two.last_error.as_deref()), (2, Some("no 0")));
    assert!(two.oldest.unwrap() >= Duration::from_secs(11));
    assert_eq!((keys.counts().parked, keys.counts().retrying), (1, 0));
    let line = keys.longest_line().unwrap();
    assert_eq!((line.key.is_some(), line.messages), (true, 2));
    pool.stop(Stop::within(Duration::ZERO)).await;
}

#[tokio::test(start_paused = true)]
async fn k11_a_further_attempt_in_hand_says_which_it_is() {
    let clerk = Clerk::new();
    let pool = clerk.pool().retry(3, Backoff::new(Duration::from_secs(1), Duration::from_secs(1)));
    let slow = |job: &Job| job.0;
    let pool = pool.ordered_by(slow).time_limit(Duration::from_secs(5)).spawn().await.unwrap();
    pool.send((1, 0, Wait)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(7)).await;
    let why = pool.keys::<u64>().unwrap().why(&1, |error| error.clone()).unwrap();
    assert!(matches!(why.state, KeyState::Running { .. }), "{why}");
    assert_eq!(why.attempt, 2);
    pool.stop(Stop::within(Duration::ZERO)).await;
}

#[tokio::test(start_paused = true)]
async fn k11_a_key_that_only_lies_in_the_queue_is_seen_too() {
    let clerk = Clerk::new();
    let pool = clerk.pool().workers(1).ordered_by(|job: &Job| job.0).spawn().await.unwrap();
    pool.send((1, 0, Wait)).await.unwrap();
    settle().await;
    for number in 0..5 {
        pool.send((2, number, Nothing)).await.unwrap();
    }
    settle().await;
    let keys = pool.keys::<u64>().unwrap();
    let why = keys.why(&2, |error| error.clone()).unwrap();
    assert_eq!((why.state, why.waiting, why.attempt), (KeyState::Queued, 5, 0));
    assert_eq!(keys.longest_line().unwrap().messages, 5);
    pool.stop(Stop::within(Duration::ZERO)).await;
}

#[tokio::test(start_paused = true)]
async fn k11_the_hottest_keys_by_count_and_by_time() {
    let clerk = Clerk::new();
    let pool = clerk.pool().capacity(10_000).ordered_by(|job: &Job| job.0).quick_handlers(false);
    let pool = pool.spawn().await.unwrap();
    for number in 0..6_000 {
        // A third of key 1, the rest of others.
        let key = if number % 3 == 0 { 1 } else { 100 + u64::from(number) };
        pool.send((key, number, Nothing)).await.unwrap();
    }
    settle().await;
    let keys = pool.keys::<u64>().unwrap();
    let hot = keys.hottest_by_count(3);
    assert_eq!(*hot[0].key, 1);
    assert!((1_500..=2_500).contains(&hot[0].amount), "{hot:?}");
    pool.send((7, 0, Wait)).await.unwrap();
    for number in 1..=16 {
        pool.send((7, number, Wait)).await.unwrap();
    }
    for _ in 0..17 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        clerk.gate.add_permits(1);
    }
    settle().await;
    let hot = keys.hottest_by_time(1);
    assert_eq!(*hot[0].key, 7);
    assert!(hot[0].amount >= Duration::from_secs(4), "{hot:?}");
}

#[tokio::test]
async fn k11_keys_of_another_type_are_refused_with_both_names() {
    let clerk = Clerk::new();
    let pool = clerk.pool().ordered_by(|job: &Job| job.0).spawn().await.unwrap();
    let wrong = pool.keys::<String>().unwrap_err();
    assert_eq!((wrong.asked, wrong.is), ("alloc::string::String", Some("u64")));
    let plain = clerk.pool().spawn().await.unwrap();
    let none = plain.keys::<u64>().unwrap_err();
    assert_eq!(none.to_string(), "the pool has no keys, not keys of type u64");
}

#[tokio::test(start_paused = true)]
async fn k10_permits_taken_before_do_not_get_past_the_bound() {
    let clerk = Clerk::new();
    let pool = clerk.pool().capacity(100_000).max_per_key_of(3).spawn().await.unwrap();
    for permits in 1..6 {
        let key = permits as u64;
        let taken: Vec<_> = (0..permits).map(|_| pool.try_reserve().unwrap()).collect();
        pool.try_send((key, 0, Nothing)).unwrap();
        taken.into_iter().for_each(|permit| drop(permit.send((key, 1, Nothing))));
        let rest = (0..20).filter(|_| pool.try_send((key, 2, Nothing)).is_ok()).count();
        assert_eq!(1 + rest + permits.min(2), 3, "{permits} permits");
        settle().await;
    }
}

#[tokio::test(start_paused = true)]
async fn k10_urgent_messages_count_where_they_wait_in_line() {
    let clerk = Clerk::new();
    let pool = clerk.pool().capacity(100_000).max_per_key_of(4).spawn().await.unwrap();
    pool.send((1, 0, Wait)).await.unwrap();
    settle().await;
    let mut accepted = 0;
    for number in 1..20 {
        let urgent = Envelope::urgent();
        accepted += usize::from(pool.try_send_with((1, number, Nothing), urgent).is_ok());
        settle().await;
    }
    assert_eq!(accepted, 4);
    pool.stop(Stop::within(Duration::ZERO)).await;
}

#[tokio::test(start_paused = true)]
async fn k08_p19_a_parked_key_goes_with_the_last_worker() {
    let clerk = Clerk::new();
    let none = Restarts { max: 0, ..Restarts::default() };
    let pool = parking(&clerk).workers(1).restarts(none).max_parked(1).spawn().await.unwrap();
    pool.send((1, 0, Panic)).await.unwrap();
    settle().await;
    assert_eq!(pool.stats().dead_lettered, 1);
    pool.manage().enable(0).unwrap().done(Duration::from_secs(1)).await;
    assert_eq!(pool.keys::<u64>().unwrap().counts().parked, 0);
    assert_eq!(pool.call((1, 1, Nothing)).await, Ok(1), "nothing is parked any more");
    pool.send((1, 2, Nothing)).await.unwrap();
    assert!(pool.stop(PATIENCE).await.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k08_k11_a_key_is_parked_also_where_its_message_is_gone_and_was_measured() {
    let clerk = Clerk::new();
    let table = FailureTable { error: Row::Once(Finally::ParkKey), ..FailureTable::default() };
    let pool = clerk.pool().ordered_by(|job: &Job| job.0).failure_policy(table);
    let pool = pool.quick_handlers(false).spawn().await.unwrap();
    for key in 0..40 {
        pool.send((key, 0, Fail)).await.unwrap();
        pool.send((key, 1, Nothing)).await.unwrap();
        settle().await;
    }
    let keys = pool.keys::<u64>().unwrap();
    assert_eq!((keys.parked().len(), pool.stats().restarts), (40, 0));
    assert!((0..40).all(|key| keys.release(&key)));
    settle().await;
    assert_eq!(clerk.handled().len(), 40);
    assert!(pool.stop(PATIENCE).await.stats.ledger_holds());
}
