//! The outcomes of messages for which there is no room.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use greenroom::{
    Backoff, CallError, DeadLetter, DeadLetterReason, Envelope, FailureTable, FinalAction,
    NotAccepted, Overflow, PoolBuilder, Rule, SendError,
    policy::{About, Choice, Crew, Policy, RoundRobin},
    prelude::*,
};

const SOON: Duration = Duration::from_secs(60);
const A_MOMENT: Duration = Duration::from_millis(1);

/// A number, and how long its handler sleeps.
type Message = (u64, u64);
type Letters = Arc<Mutex<Vec<(u64, DeadLetterReason)>>>;

struct Desk;

impl Actor for Desk {
    type Message = Message;
    type Reply = u64;
    type Error = ();

    async fn handle(&mut self, (number, ms): Message, _: &mut Context<Self>) -> Result<u64, ()> {
        if ms > 0 {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        Ok(number)
    }
}

fn desk(capacity: usize, overflow: Overflow<Message, u64, ()>) -> (PoolBuilder<Desk>, Letters) {
    let letters = Letters::default();
    let dead = letters.clone();
    let builder = Pool::new(|_| Desk).workers(1).capacity(capacity).overflow(overflow);
    let builder = builder.on_dead_letter(move |letter: DeadLetter<Message, ()>| {
        dead.lock().unwrap().push((letter.message.unwrap().0, letter.reason));
    });
    (builder, letters)
}

/// One message in hand for ten seconds, and none waiting.
async fn busy(builder: PoolBuilder<Desk>) -> Pool<Desk> {
    let pool = builder.spawn().await.unwrap();
    pool.send((0, 10_000)).await.unwrap();
    tokio::time::sleep(A_MOMENT).await;
    assert_eq!(pool.stats().in_hand, 1);
    pool
}

fn evicted(letters: &Letters) -> Vec<u64> {
    let letters = letters.lock().unwrap();
    assert!(letters.iter().all(|(_, reason)| *reason == DeadLetterReason::Evicted));
    letters.iter().map(|(number, _)| *number).collect()
}

fn call(
    pool: &Pool<Desk>,
    number: u64,
) -> tokio::task::JoinHandle<Result<u64, CallError<(), Message>>> {
    let address = pool.address();
    tokio::spawn(async move { address.call((number, 0)).await })
}

fn numbered(numbers: std::ops::Range<u64>) -> VecDeque<Message> {
    numbers.map(|number| (number, 0)).collect()
}

#[tokio::test(start_paused = true)]
async fn p07_wait_lets_send_and_call_wait_and_gives_try_send_its_message_back() {
    let pool = busy(desk(2, Overflow::Wait).0).await;
    assert_eq!(pool.send_many(&mut numbered(1..3)).await, Ok(()));
    assert_eq!(pool.try_send((3, 0)).unwrap_err().into_message(), Some((3, 0)));
    assert_eq!(pool.try_send_many(&mut numbered(3..5)), Err(NotAccepted::Full));
    let called = call(&pool, 4);
    assert!(tokio::time::timeout(A_MOMENT, pool.send((5, 0))).await.is_err());
    assert_eq!(pool.stats().queued, 2);
    pool.send_many(&mut numbered(6..20)).await.unwrap();
    assert_eq!(called.await.unwrap(), Ok(4));
    pool.stop(Stop::within(SOON)).await;
    assert_eq!((pool.stats().accepted, pool.stats().handled, pool.stats().rejected), (18, 18, 2));
}

#[tokio::test(start_paused = true)]
async fn p07_reject_gives_everybody_their_message_back_at_once() {
    for dispatched in [false, true] {
        let (builder, _) = desk(2, Overflow::Reject);
        let builder = if dispatched { builder.dispatch(RoundRobin::new()) } else { builder };
        let pool = busy(builder).await;
        let mut many = numbered(1..5);
        assert_eq!(pool.send_many(&mut many).await, Err(NotAccepted::Full));
        assert_eq!(many, numbered(3..5), "what was queued is taken out, the rest is left");
        assert_eq!(pool.send((3, 0)).await.unwrap_err().into_message(), Some((3, 0)));
        assert_eq!(pool.try_send((3, 0)).unwrap_err().into_message(), Some((3, 0)));
        assert_eq!(pool.call((3, 0)).await, Err(SendError::Full((3, 0)).into()));
        let timeout = pool.send_timeout((3, 0), SOON).await.unwrap_err();
        assert_eq!(timeout.without_message(), NotAccepted::Full);
        let stats = pool.stats();
        assert_eq!((stats.accepted, stats.rejected, stats.queued), (3, 5, 2));
        assert!(stats.ledger_holds());
    }
}

#[tokio::test(start_paused = true)]
async fn p07_drop_newest_drops_what_arrives_and_leaves_what_is_with_its_sender() {
    for dispatched in [false, true] {
        let (builder, letters) = desk(2, Overflow::DropNewest);
        let builder = if dispatched { builder.dispatch(RoundRobin::new()) } else { builder };
        let pool = busy(builder).await;
        let mut many = numbered(1..5);
        assert_eq!(pool.try_send_many(&mut many), Ok(2));
        assert_eq!(pool.try_send_many(&mut many), Err(NotAccepted::Full));
        assert_eq!(pool.send_many(&mut many).await, Err(NotAccepted::Full));
        assert_eq!(many, numbered(3..5), "nothing vanishes from a buffer");
        assert_eq!(pool.send((3, 0)).await.unwrap_err().without_message(), NotAccepted::Dropped);
        assert_eq!(pool.try_send((3, 0)).unwrap_err().into_message(), None);
        assert_eq!(pool.call((3, 0)).await, Err(SendError::Dropped.into()));
        let stats = pool.stats();
        assert_eq!((stats.accepted, stats.rejected, stats.dropped), (3, 5, 0));
        assert!(stats.ledger_holds() && evicted(&letters).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn p07_drop_oldest_lets_the_new_one_in_and_the_oldest_call_gets_evicted() {
    let (builder, letters) = desk(3, Overflow::DropOldest);
    let pool = busy(builder).await;
    let first = call(&pool, 1);
    tokio::time::sleep(A_MOMENT).await;
    pool.send((2, 0)).await.unwrap();
    pool.try_send((3, 0)).unwrap();
    pool.try_send((4, 0)).unwrap();
    assert_eq!(first.await.unwrap(), Err(CallError::Evicted));
    pool.send((5, 0)).await.unwrap();
    assert_eq!(pool.stats().queued, 3);
    let last = call(&pool, 6);
    tokio::time::sleep(A_MOMENT).await;
    assert_eq!(evicted(&letters), [1, 2, 3]);
    assert_eq!(pool.stats().queued, 3, "the bound holds");
    assert_eq!(last.await.unwrap(), Ok(6));
    let mut many = numbered(10..20);
    pool.send((9, 10_000)).await.unwrap();
    tokio::time::sleep(A_MOMENT).await;
    assert_eq!((pool.send_many(&mut many).await, many.len()), (Ok(()), 0));
    assert_eq!(evicted(&letters)[3..], [10, 11, 12, 13, 14, 15, 16]);
    let report = pool.stop(Stop::within(SOON)).await;
    assert_eq!((report.stats.rejected, report.stats.dead_lettered), (0, 10));
    assert!(report.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn p07_where_only_permits_are_held_nobody_can_make_room() {
    let (builder, letters) = desk(2, Overflow::DropOldest);
    let pool = busy(builder).await;
    let permits = [pool.try_reserve().unwrap(), pool.try_reserve().unwrap()];
    assert_eq!(pool.send((1, 0)).await.unwrap_err().into_message(), Some((1, 0)));
    assert_eq!(pool.call((1, 0)).await, Err(SendError::Full((1, 0)).into()));
    assert_eq!((pool.stats().rejected, evicted(&letters).len()), (2, 0));
    permits.into_iter().for_each(|permit| permit.send((2, 0)).unwrap());
    assert_eq!(pool.stats().queued, 2);
}

#[tokio::test(start_paused = true)]
async fn p07_urgent_messages_make_room_only_where_nothing_else_waits() {
    let (builder, letters) = desk(2, Overflow::DropOldest);
    let pool = busy(builder).await;
    pool.send_with((1, 0), Envelope::urgent()).await.unwrap();
    pool.send((2, 0)).await.unwrap();
    pool.send_with((3, 0), Envelope::urgent()).await.unwrap();
    assert_eq!(evicted(&letters), [2]);
    pool.send((4, 0)).await.unwrap();
    assert_eq!(evicted(&letters), [2, 1], "the oldest, as nothing else is there");
    assert!(pool.stats().ledger_holds());
}

/// Every second message of a key sleeps, so that there are lanes.
#[tokio::test(start_paused = true)]
async fn p07_lanes_of_a_keyed_pool_make_room_and_their_keys_go_on() {
    let (builder, letters) = desk(4, Overflow::DropOldest);
    let pool = builder.workers(2).ordered_by(|message: &Message| message.0 % 2).max_per_key(4);
    let pool = pool.spawn().await.unwrap();
    pool.send((0, 1_000)).await.unwrap();
    pool.send((1, 1_000)).await.unwrap();
    tokio::time::sleep(A_MOMENT).await;
    for number in 2..30 {
        // Workers that are idle put messages of busy keys into their lanes.
        pool.try_send((number, u64::from(number % 3 == 0))).unwrap();
        tokio::task::yield_now().await;
        assert!(pool.stats().queued <= 4);
    }
    assert_eq!(evicted(&letters).len(), 24);
    tokio::time::sleep(SOON).await;
    let stats = pool.stats();
    assert_eq!((stats.handled, stats.queued, stats.ledger_holds()), (6, 0, true));
    for number in 0..4 {
        let answer = tokio::time::timeout(SOON, pool.call((number, 0))).await;
        assert_eq!(answer, Ok(Ok(number)), "no key is blocked");
    }
}

/// A key that has used up its quota yields in a lane that no worker runs. Messages that wait there
/// can be evicted, to the last one.
#[tokio::test(start_paused = true)]
async fn p07_a_lane_that_is_emptied_while_nobody_runs_it_is_closed() {
    let (builder, letters) = desk(100, Overflow::DropOldest);
    // One worker; a key function that separates one key from all others.
    let pool = builder.ordered_by(|message: &Message| message.0.min(1));
    let pool = pool.spawn().await.unwrap();
    // Seventeen of key 1, then one of key 0 that sleeps: in that time the seventeenth waits in a
    // ready lane.
    for number in 1..18 {
        pool.try_send((number, 0)).unwrap();
    }
    pool.try_send((0, 1_000)).unwrap();
    tokio::time::sleep(A_MOMENT).await;
    assert_eq!((pool.stats().queued, pool.stats().in_hand), (1, 1));
    let permits: Vec<_> = (0..99).map(|_| pool.try_reserve().unwrap()).collect();
    pool.try_send((0, 0)).unwrap();
    assert_eq!(evicted(&letters), [17]);
    drop(permits);
    tokio::time::sleep(SOON).await;
    for number in [1, 0, 1] {
        let answer = tokio::time::timeout(SOON, pool.call((number, 0))).await;
        assert_eq!(answer, Ok(Ok(number)), "no key is blocked");
    }
    assert!(pool.stats().ledger_holds());
}

/// Fails its first attempt.
struct Stubborn(Arc<Mutex<Vec<u64>>>);

impl Actor for Stubborn {
    type Message = Message;
    type Reply = u64;
    type Error = ();

    async fn handle(&mut self, (number, ms): Message, _: &mut Context<Self>) -> Result<u64, ()> {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        let mut seen = self.0.lock().unwrap();
        if ms == 0 && !seen.contains(&number) {
            seen.push(number);
            return Err(());
        }
        Ok(number)
    }
}

#[tokio::test(start_paused = true)]
async fn p07_what_waits_for_another_attempt_makes_no_room_and_the_ledger_holds() {
    for direct in [false, true] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let of_workers = seen.clone();
        let backoff = Backoff::new(Duration::from_millis(10), Duration::from_millis(10));
        let row = Rule::Retry { attempts: 3, backoff, finally: FinalAction::DeadLetter };
        let pool = Pool::new(move |_| Stubborn(of_workers.clone())).workers(1).capacity(2);
        let pool = pool.overflow(Overflow::DropOldest);
        let pool = pool.retry_with(Message::clone, FailureTable::all(row));
        let pool = pool.spawn().await.unwrap();
        let worker = &pool.admin().workers()[0];
        // It fails, waits, and is back in the queue behind one that takes long.
        let retried = match direct {
            true => worker.address().clone(),
            false => pool.address(),
        };
        let retried = tokio::spawn(async move { retried.call((7, 0)).await });
        tokio::time::sleep(A_MOMENT).await;
        pool.send((1, 1_000)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!((pool.stats().waiting, pool.stats().in_hand), (1, 1));
        for number in 2..9 {
            let _ = pool.try_send((number, 1));
            assert!(pool.stats().ledger_holds(), "{:?}", pool.stats());
        }
        assert_eq!(retried.await.unwrap(), Ok(7));
        tokio::time::sleep(SOON).await;
        let stats = pool.stats();
        assert!(stats.ledger_holds() && stats.waiting == 0 && stats.queued == 0, "{stats:?}");
    }
}

/// The first worker for even numbers, the second for odd ones.
struct Parity;

impl Policy<Message> for Parity {
    fn choose(&self, message: &Message, _: &About<'_>, _: &Crew<'_>) -> Choice {
        match message.0 {
            13 => panic!("on purpose"),
            14 => Choice::Refuse,
            number => Choice::At((number % 2) as usize),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn p07_the_worker_that_is_chosen_makes_room_and_no_other() {
    let (builder, letters) = desk(100, Overflow::DropOldest);
    let pool = builder.workers(2).mailbox(2).dispatch(Parity).spawn().await.unwrap();
    pool.send((0, 1_000)).await.unwrap();
    pool.send((1, 1_000)).await.unwrap();
    tokio::time::sleep(A_MOMENT).await;
    for number in [3, 5, 2, 4, 6, 8] {
        pool.send((number, 0)).await.unwrap();
    }
    assert_eq!(evicted(&letters), [2, 4], "the other one keeps what it has");
    let refused = pool.send((14, 0)).await.unwrap_err();
    assert_eq!(refused.without_message(), NotAccepted::Refused);
    let address = pool.address();
    assert!(tokio::spawn(async move { address.send((13, 0)).await }).await.is_err());
    assert_eq!(evicted(&letters).len(), 2, "nobody makes room for a message that does not come");
    assert!(pool.stats().ledger_holds());
    let permits: Vec<_> = (0..96).map(|_| pool.try_reserve()).collect();
    assert!(permits.iter().all(Result::is_ok), "a permit was lost");
    assert_eq!(pool.try_reserve().err(), Some(NotAccepted::Full), "one came from nowhere");
    // Now the pool is full, but no mailbox is full once one has been emptied.
    tokio::time::sleep(SOON).await;
    assert_eq!(pool.stats().handled, 6);
    drop(permits);
}

#[tokio::test(start_paused = true)]
async fn p07_a_full_pool_takes_from_the_fullest_mailbox_and_who_waits_there_is_served() {
    let (builder, letters) = desk(2, Overflow::DropOldest);
    let pool = busy(builder.mailbox(1).workers(1)).await;
    let worker = pool.admin().workers().remove(0);
    worker.send((1, 0)).await.unwrap();
    pool.send((2, 0)).await.unwrap();
    // It waits for the worker's only place.
    let waiting = worker.address().clone();
    let waiting = tokio::spawn(async move { waiting.send((3, 0)).await });
    tokio::time::sleep(A_MOMENT).await;
    pool.send((4, 0)).await.unwrap();
    pool.send((5, 0)).await.unwrap();
    tokio::time::sleep(A_MOMENT).await;
    assert!(pool.stats().queued <= 2);
    let sent = tokio::time::timeout(SOON, waiting).await;
    assert!(sent.unwrap().unwrap().is_ok());
    pool.stop(Stop::within(SOON)).await;
    assert!(pool.stats().ledger_holds());
    assert_eq!(evicted(&letters)[0], 2, "the pool's own queue comes first");
}

#[tokio::test(start_paused = true)]
async fn p07_an_emptied_mailbox_lets_the_next_one_in_at_once() {
    let (builder, letters) = desk(1, Overflow::DropOldest);
    let pool = busy(builder.mailbox(1).workers(1)).await;
    let worker = pool.admin().workers().remove(0);
    worker.send((1, 0)).await.unwrap();
    let waiting = worker.address().clone();
    let mut waiting = std::pin::pin!(waiting.reserve());
    assert!(tokio::time::timeout(A_MOMENT, &mut waiting).await.is_err());
    pool.send((2, 0)).await.unwrap();
    assert_eq!(evicted(&letters), [1]);
    assert_eq!(pool.stats().queued, 1);
    let permit = tokio::time::timeout(SOON, waiting).await.unwrap().unwrap();
    permit.send((3, 0)).unwrap();
}

#[tokio::test(start_paused = true)]
async fn p07_a_fallback_takes_what_there_is_no_room_for_and_answers_its_calls() {
    for dispatched in [false, true] {
        let (second, _) = desk(2, Overflow::Wait);
        let second = second.spawn().await.unwrap();
        let (first, _) = desk(1, Overflow::Fallback(second.address()));
        let first = if dispatched { first.dispatch(RoundRobin::new()) } else { first };
        let first = busy(first).await;
        first.send((1, 0)).await.unwrap();
        assert_eq!(first.call((2, 0)).await, Ok(2), "it did not wait for the busy one");
        second.send((9, 5_000)).await.unwrap();
        tokio::time::sleep(A_MOMENT).await;
        let mut many = numbered(3..7);
        assert_eq!(first.try_send_many(&mut many), Ok(2));
        assert_eq!(many, numbered(5..7));
        // Both are full: it goes back, and no sender waits.
        assert_eq!(first.send((5, 0)).await.unwrap_err().into_message(), Some((5, 0)));
        assert_eq!(first.call((5, 0)).await, Err(SendError::Full((5, 0)).into()));
        assert_eq!(first.send_many(&mut many).await, Err(NotAccepted::Full));
        let (one, two) = (first.stats(), second.stats());
        assert_eq!((one.accepted, one.rejected), (2, 3));
        assert_eq!((two.accepted, two.rejected), (4, 0));
        assert!(one.ledger_holds() && two.ledger_holds());
    }
}

#[tokio::test(start_paused = true)]
async fn p07_a_fallback_may_have_a_fallback_and_keeps_its_pool_running() {
    let (third, letters) = desk(1, Overflow::DropOldest);
    let third = busy(third).await;
    let (second, _) = desk(1, Overflow::Fallback(third.address()));
    let second = busy(second).await;
    let (first, _) = desk(1, Overflow::Fallback(second.address()));
    let first = busy(first).await;
    drop(second);
    for number in 1..6 {
        first.send((number, 0)).await.unwrap();
    }
    assert_eq!(evicted(&letters), [3, 4]);
    assert_eq!((first.stats().queued, third.stats().queued), (1, 1));
    third.stop(Stop::Now).await;
    let refused = first.send((6, 0)).await.unwrap_err();
    assert_eq!(refused.without_message(), NotAccepted::Full);
    assert_eq!(refused.into_message(), Some((6, 0)));
}

#[tokio::test(start_paused = true)]
async fn p07_what_a_fallback_drops_is_dropped_and_what_is_in_a_buffer_stays() {
    let (second, _) = desk(1, Overflow::DropNewest);
    let second = busy(second).await;
    let (first, _) = desk(1, Overflow::Fallback(second.address()));
    let first = busy(first).await;
    let mut many = numbered(1..5);
    assert_eq!(first.send_many(&mut many).await, Err(NotAccepted::Full));
    assert_eq!(many, numbered(3..5));
    assert_eq!(first.send((3, 0)).await.unwrap_err().without_message(), NotAccepted::Dropped);
    assert_eq!(first.call((3, 0)).await, Err(SendError::Dropped.into()));
    assert_eq!((first.stats().accepted, first.stats().rejected), (2, 3));
}

#[tokio::test(start_paused = true)]
async fn p07_a_message_to_one_worker_waits_for_it_whatever_the_pool_does_when_it_is_full() {
    let (builder, letters) = desk(10, Overflow::DropNewest);
    let pool = busy(builder.mailbox(1)).await;
    let worker = pool.admin().workers().remove(0);
    worker.send((1, 0)).await.unwrap();
    assert_eq!(worker.try_send((2, 0)).unwrap_err().into_message(), Some((2, 0)));
    assert!(tokio::time::timeout(A_MOMENT, worker.send((3, 0))).await.is_err());
    assert!(tokio::time::timeout(SOON, worker.send((4, 0))).await.unwrap().is_ok());
    assert!(evicted(&letters).is_empty());
}

/// A copy for each.
struct Everybody;

impl Policy<Message> for Everybody {
    fn choose(&self, _: &Message, _: &About<'_>, crew: &Crew<'_>) -> Choice {
        Choice::Several(crew.iter().map(|member| member.slot).collect())
    }
}

/// Two workers with a message in hand for ten seconds.
async fn two_busy(builder: PoolBuilder<Desk>) -> Pool<Desk> {
    let pool = builder.workers(2).spawn().await.unwrap();
    for worker in pool.admin().workers() {
        worker.send((0, 10_000)).await.unwrap();
    }
    tokio::time::sleep(A_MOMENT).await;
    assert_eq!(pool.stats().in_hand, 2);
    pool
}

/// Stops a pool that has handled this many messages, and has this capacity.
async fn finish(pool: &Pool<Desk>, handled: u64, capacity: usize) {
    tokio::time::sleep(SOON).await;
    let permits: Vec<_> = (0..capacity).map_while(|_| pool.try_reserve().ok()).collect();
    assert_eq!(permits.len(), capacity, "a permit was lost");
    assert_eq!(pool.try_reserve().err(), Some(NotAccepted::Full), "one came from nowhere");
    drop(permits);
    let stats = pool.stop(Stop::within(SOON)).await.stats;
    assert!(stats.ledger_holds() && stats.handled == handled, "{stats:?}");
}

#[tokio::test(start_paused = true)]
async fn p07_p10_each_worker_that_is_full_makes_room_for_its_copy() {
    let (builder, letters) = desk(20, Overflow::DropOldest);
    let pool = two_busy(builder.mailbox(2).dispatch_copies(Everybody)).await;
    let first = pool.admin().workers()[0].clone();
    first.send((1, 0)).await.unwrap();
    pool.send((2, 0)).await.unwrap();
    assert!(evicted(&letters).is_empty(), "both had room");
    let called = call(&pool, 3);
    tokio::time::sleep(A_MOMENT).await;
    assert_eq!((evicted(&letters), pool.stats().queued), (vec![1], 4));
    pool.try_send((4, 0)).unwrap();
    assert_eq!((evicted(&letters), pool.stats().queued), (vec![1, 2, 2], 4));
    pool.try_send((5, 0)).unwrap();
    assert_eq!(evicted(&letters), [1, 2, 2, 3, 3]);
    assert_eq!(called.await.unwrap(), Err(CallError::Evicted));
    finish(&pool, 2 + 4, 20).await;
}

#[tokio::test(start_paused = true)]
async fn p07_p10_a_full_pool_makes_room_for_each_copy_or_for_none() {
    let (builder, letters) = desk(3, Overflow::DropOldest);
    let pool = two_busy(builder.mailbox(5).dispatch_copies(Everybody)).await;
    let first = pool.admin().workers()[0].clone();
    for number in 1..=3 {
        first.send((number, 0)).await.unwrap();
    }
    pool.send((4, 0)).await.unwrap();
    assert_eq!((evicted(&letters), pool.stats().queued), (vec![1, 2], 3));
    finish(&pool, 2 + 3, 3).await;

    let (builder, letters) = desk(3, Overflow::DropOldest);
    let pool = two_busy(builder.mailbox(5).dispatch_copies(Everybody)).await;
    let held = [pool.try_reserve().unwrap(), pool.try_reserve().unwrap()];
    let refused = pool.send((1, 0)).await.unwrap_err();
    assert_eq!(refused.without_message(), NotAccepted::Full, "nothing makes room for the second");
    assert_eq!((evicted(&letters), pool.stats().queued), (vec![], 0));
    drop(held);
    finish(&pool, 2, 3).await;
}

#[tokio::test(start_paused = true)]
async fn p07_p10_under_broadcast_the_oldest_of_a_full_worker_makes_room() {
    for dispatched in [false, true] {
        let (builder, letters) = desk(20, Overflow::DropOldest);
        let builder = if dispatched { builder.dispatch(RoundRobin::new()) } else { builder };
        let pool = two_busy(builder.mailbox(1)).await;
        let all = pool.broadcast();
        pool.admin().workers()[1].send((1, 0)).await.unwrap();
        assert!(all.try_send((2, 0)).unwrap().is_complete());
        assert_eq!(evicted(&letters), [1]);
        let replies = all.call((3, 0));
        let replies = tokio::join!(replies.all(), async {
            tokio::time::sleep(A_MOMENT).await;
            assert!(all.send((4, 0)).await.unwrap().is_complete());
        });
        let gone = replies.0.unwrap();
        assert_eq!(
            gone.errors().map(|(_, error)| error).collect::<Vec<_>>(),
            [&CallError::Evicted; 2]
        );
        assert_eq!(evicted(&letters), [1, 2, 2, 3, 3]);
        let none: Vec<usize> = Vec::new();
        let refused = all.send((5, 0)).await.unwrap();
        assert_eq!(refused.refused().map(|(slot, _)| slot).collect::<Vec<_>>(), none);
        finish(&pool, 2 + 2, 20).await;
    }
}

#[tokio::test(start_paused = true)]
async fn p07_p10_under_broadcast_a_full_worker_does_with_its_copy_as_the_pool_does() {
    let (spare, _) = desk(100, Overflow::Wait);
    let spare = spare.spawn().await.unwrap();
    for (overflow, refused) in [
        (Overflow::Reject, Some(NotAccepted::Full)),
        (Overflow::DropNewest, Some(NotAccepted::Dropped)),
        (Overflow::Fallback(spare.address()), None),
    ] {
        let (builder, _) = desk(20, overflow);
        let pool = two_busy(builder.mailbox(1)).await;
        let all = pool.broadcast();
        pool.admin().workers()[1].send((1, 0)).await.unwrap();
        let sent = tokio::time::timeout(A_MOMENT, all.send((2, 0))).await.unwrap().unwrap();
        let expected: Vec<_> = refused.into_iter().map(|why| (1, why)).collect();
        assert_eq!(sent.refused().collect::<Vec<_>>(), expected);
        finish(&pool, 2 + 2, 20).await;
    }
    assert_eq!(spare.stats().handled, 1);
    let (builder, _) = desk(20, Overflow::Wait);
    let pool = two_busy(builder.mailbox(1)).await;
    let all = pool.broadcast();
    pool.admin().workers()[1].send((1, 0)).await.unwrap();
    assert!(tokio::time::timeout(A_MOMENT, all.send((2, 0))).await.is_err());
    assert!(tokio::time::timeout(SOON, all.send((3, 0))).await.unwrap().unwrap().is_complete());
}
