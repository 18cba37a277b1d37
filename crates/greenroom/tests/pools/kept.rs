//! Failure policies need the message: it is kept, or the pool is not started (P00).

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use greenroom::{
    Actor, Answer, Backoff, Context, Delivery, FailureAction, FailureTable, FinalAction, Pool,
    PoolBuilder, PoolEvents, Rule, SpawnError, dead_letters::NotReplayed, failure::FailedAttempt,
    layer::around,
};

use super::layers::{Log, noted};

const SECOND: Duration = Duration::from_secs(1);
const BACKOFF: Backoff = Backoff::new(SECOND, SECOND);
const AGAIN: Rule = Rule::Retry { attempts: 3, backoff: BACKOFF, finally: FinalAction::DeadLetter };
const PARK: FailureTable = FailureTable { error: Rule::Once(FinalAction::ParkKey), ..ONCE };
const ONCE: FailureTable = FailureTable::all(Rule::Once(FinalAction::DeadLetter));

/// Counts its copies.
#[derive(Debug, Default)]
struct Page(u32, Arc<AtomicU32>);

impl Clone for Page {
    fn clone(&self) -> Self {
        self.1.fetch_add(1, Ordering::Relaxed);
        Self(self.0, self.1.clone())
    }
}

/// Owns its messages, and fails with all of them below 10.
struct Owner;

impl Actor for Owner {
    type Message = Page;
    type Reply = u32;
    type Error = &'static str;

    async fn handle(&mut self, page: Page, _: &mut Context<Self>) -> Result<u32, &'static str> {
        if page.0 < 10 { Err("no paper") } else { Ok(page.0) }
    }
}

/// Leaves its messages in place, and fails as often as they say. They are not `Clone`.
struct Reader;

struct Letter(u64, u32);

impl Actor for Reader {
    type Message = Letter;
    type Reply = u32;
    type Error = &'static str;

    const KEEPS_MESSAGE: bool = true;

    async fn receive(
        &mut self,
        delivery: &mut Delivery<Letter, u32, &'static str>,
        _: &mut Context<Self>,
    ) -> Result<Answer<u32>, &'static str> {
        let letter = delivery.message_mut().unwrap();
        if letter.1 > 0 {
            letter.1 -= 1;
            return Err("not yet");
        }
        Ok(Answer::Reply(delivery.attempt()))
    }

    async fn handle(&mut self, _: Letter, _: &mut Context<Self>) -> Result<u32, &'static str> {
        unreachable!("it only looks")
    }
}

fn owners() -> PoolBuilder<Owner> {
    Pool::new(|_| Owner).workers(1).pool_events(PoolEvents::off())
}

fn readers() -> PoolBuilder<Reader> {
    Pool::new(|_| Reader).workers(1).pool_events(PoolEvents::off())
}

/// Waits until everything has failed as often as it will.
async fn settle() {
    tokio::time::sleep(100 * SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn p00_p18_a_policy_that_retries_without_messages_is_refused_and_says_what_to_do() {
    let again = FailureTable { error: AGAIN, ..FailureTable::default() };
    let refused = owners().name("owners").failure_policy(again).spawn().await.unwrap_err();
    assert!(matches!(&refused, SpawnError::NoCopies { pool } if pool == "owners"), "{refused}");
    for way in ["keep_copies", "retry_with", "KEEPS_MESSAGE"] {
        assert!(refused.to_string().contains(way), "{refused}");
    }
    let asks = |_: FailedAttempt<'_, &'static str>, _: f64| FailureAction::DeadLetter;
    let refused = owners().failure_policy(asks).spawn().await;
    assert!(matches!(refused, Err(SpawnError::NoCopies { .. })), "a closure may ask for anything");
    let refused = owners().failure_policy(again).supervised();
    assert!(matches!(refused, Err(SpawnError::NoCopies { .. })));
    let layered = Pool::new(around(|_| Owner, noted("layer", &Log::default())));
    let layered = layered.failure_policy(again).spawn().await;
    assert!(matches!(layered, Err(SpawnError::NoCopies { .. })));
}

#[tokio::test(start_paused = true)]
async fn p00_k08_parking_without_messages_or_without_keys_is_refused() {
    let owner = |page: &Page| page.0;
    for ordered in [
        owners().ordered_by(owner).failure_policy(PARK),
        owners().ordered_by(owner).finally(FinalAction::ParkKey),
    ] {
        assert!(matches!(ordered.spawn().await, Err(SpawnError::NoCopies { .. })));
    }
    for keyless in [
        owners().on_final_failure(FinalAction::ParkKey),
        owners().keep_copies().failure_policy(PARK),
        owners().on_final_failure(FinalAction::ParkKey).sticky_by(owner),
    ] {
        let refused = keyless.spawn().await.unwrap_err();
        assert!(matches!(refused, SpawnError::NoKeys { .. }), "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn p00_p18_what_was_asked_for_works_with_a_copy() {
    let again = FailureTable { error: AGAIN, ..FailureTable::default() };
    for pool in [
        owners().failure_policy(again).keep_copies(),
        owners().keep_copies().failure_policy(again),
        owners().retry(3, BACKOFF),
        owners().retry_with(Page::clone, again),
    ] {
        let pool = pool.spawn().await.unwrap();
        pool.send(Page(1, Arc::default())).await.unwrap();
        settle().await;
        let letters = pool.dead_letters();
        assert_eq!((letters.len(), pool.stats().retries), (1, 2));
        assert_eq!(letters.inspect(1, |letter| letter.message.as_ref().unwrap().0), Ok(1));
        assert_eq!(letters.replay(1), Ok(()));
    }
    let pool = owners().ordered_by(|page: &Page| page.0).on_final_failure(FinalAction::ParkKey);
    let pool = pool.spawn().await.unwrap();
    pool.send(Page(1, Arc::default())).await.unwrap();
    settle().await;
    assert_eq!((pool.stats().parked, pool.stats().dead_lettered), (1, 0));
    assert!(pool.keys::<u32>().unwrap().replay(&1));
}

#[tokio::test(start_paused = true)]
async fn p00_p18_an_actor_that_keeps_its_messages_retries_parks_and_replays_what_is_not_clone() {
    let again = FailureTable { error: AGAIN, ..FailureTable::default() };
    let pool = readers().failure_policy(again).spawn().await.unwrap();
    assert_eq!(pool.call(Letter(1, 2)).await, Ok(3));
    pool.send(Letter(2, 3)).await.unwrap();
    settle().await;
    assert_eq!(pool.dead_letters().replay_all().replayed, 1);
    settle().await;
    assert!(pool.dead_letters().is_empty());

    let layered = Pool::new(around(|_| Reader, noted("layer", &Log::default())));
    let layered = layered.workers(1).failure_policy(again);
    assert_eq!(layered.spawn().await.unwrap().call(Letter(1, 2)).await, Ok(3));

    let parking = readers().ordered_by(|letter: &Letter| letter.0).finally(FinalAction::ParkKey);
    let pool = parking.spawn().await.unwrap();
    pool.send(Letter(7, 1)).await.unwrap();
    settle().await;
    assert_eq!(pool.stats().parked, 1);
    assert!(pool.keys::<u64>().unwrap().replay(&7));
    settle().await;
    assert_eq!((pool.stats().handled, pool.stats().dead_lettered), (1, 0));
}

/// Like [`Owner`], but leaves its messages in place.
struct Looker;

impl Actor for Looker {
    type Message = Page;
    type Reply = u32;
    type Error = &'static str;

    const KEEPS_MESSAGE: bool = true;

    async fn receive(
        &mut self,
        delivery: &mut Delivery<Page, u32, &'static str>,
        _: &mut Context<Self>,
    ) -> Result<Answer<u32>, &'static str> {
        let number = delivery.message().unwrap().0;
        if number < 10 { Err("no paper") } else { Ok(Answer::Reply(number)) }
    }

    async fn handle(&mut self, _: Page, _: &mut Context<Self>) -> Result<u32, &'static str> {
        unreachable!("it only looks")
    }
}

async fn copies<A: Actor<Message = Page, Reply = u32>>(pool: PoolBuilder<A>) -> u32 {
    let copied = Arc::new(AtomicU32::new(0));
    let pool = pool.spawn().await.unwrap();
    let _ = pool.call(Page(10, copied.clone())).await;
    pool.send(Page(1, copied.clone())).await.unwrap();
    settle().await;
    copied.load(Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn p00_nothing_is_copied_unless_it_is_asked_for_and_needed() {
    assert_eq!(copies(owners()).await, 0);
    assert_eq!(copies(owners().failure_policy(ONCE).dead_letters(9)).await, 0);
    assert_eq!(copies(owners().keep_copies()).await, 2, "one each");
    assert_eq!(copies(owners().retry(2, BACKOFF)).await, 3, "one for each attempt");
    let lookers = || Pool::new(|_| Looker).workers(1).pool_events(PoolEvents::off());
    assert_eq!(copies(lookers().retry(2, BACKOFF).keep_copies()).await, 0);
}

#[tokio::test(start_paused = true)]
async fn p00_x03_a_letter_without_its_message_says_so() {
    let pool = owners().spawn().await.unwrap();
    pool.send(Page::default()).await.unwrap();
    settle().await;
    let letters = pool.dead_letters();
    assert!(!letters.list(None, 1)[0].has_message);
    let why = letters.replay(1).unwrap_err();
    assert_eq!(why, NotReplayed::NoMessage);
    assert!(why.to_string().contains("keep_copies"), "{why}");
}
