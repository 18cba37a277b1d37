//! The metadata of a delivery: what its sender set, and when it was queued (A02).

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use greenroom::{
    Actor, Address, Answer, Backoff, CallError, Class, Context, DeadLetterReason, Delivery,
    Envelope, Pool,
    policy::{About, Choice, Crew, Policy},
};
use tokio::time::Instant;

use crate::sending::settle::settle;

use super::scribe::{Carried, Deed, Note, SECOND, Scribe, finish, normal, open, scribes};

#[tokio::test(start_paused = true)]
async fn a02_what_a_sender_says_arrives_also_with_a_further_attempt() {
    for keyed in [false, true] {
        let (pool, scribe) = scribes(1);
        let pool = pool.name("scribes");
        let pool = open(pool, keyed).await;
        let envelope = Envelope::urgent()
            .sender(pool.address().erase())
            .deadline(Duration::from_secs(10))
            .trace("00-abc-def-01");
        assert_eq!(pool.call_with((1, 7, Deed::FailOnce), envelope).await, Ok(7));
        assert_eq!(pool.call((1, 8, Deed::Return)).await, Ok(8));
        pool.send((1, 9, Deed::Return)).await.unwrap();
        settle().await;
        let carried = scribe.0.lock().unwrap().carried.clone();
        let first = Carried {
            class: Class::Urgent,
            sender: Some("scribes".to_owned()),
            left: Some(Duration::from_secs(10)),
            trace: Some("00-abc-def-01".to_owned()),
            attempt: 1,
            is_call: true,
        };
        assert_eq!(carried[0], first);
        let left = carried[1].left.unwrap();
        assert!(left < Duration::from_secs(10) && left > Duration::from_secs(9), "{left:?}");
        assert_eq!(carried[1], Carried { attempt: 2, left: Some(left), ..first.clone() });
        let plain = Carried {
            class: Class::Normal,
            sender: None,
            left: None,
            trace: None,
            attempt: 1,
            is_call: true,
        };
        assert_eq!(carried[2], plain);
        assert_eq!(carried[3], Carried { is_call: false, ..plain });
    }
}

#[tokio::test(start_paused = true)]
async fn a02_a_message_is_not_started_after_its_deadline_not_even_for_a_further_attempt() {
    let (pool, scribe) = scribes(1);
    let dead = Arc::new(Mutex::new(Vec::new()));
    let seen = dead.clone();
    let pool = pool.on_dead_letter(move |letter| {
        seen.lock().unwrap().push((letter.message.unwrap().1, letter.reason, letter.attempts));
    });
    let pool = pool.spawn().await.unwrap();
    let soon = || Envelope::new().deadline(Duration::from_millis(20));
    let failing = pool.call_with((0, 1, Deed::FailOnce), soon());
    assert_eq!(failing.await, Err(CallError::Expired));
    normal(&pool, 0, 0, Deed::Sleep(20));
    settle().await;
    let (late, early) = tokio::join!(
        pool.call_with((0, 2, Deed::Return), Envelope::new().deadline(Duration::from_millis(19))),
        pool.call_with((0, 3, Deed::Return), Envelope::new().deadline(Duration::from_millis(21))),
    );
    assert_eq!((late, early), (Err(CallError::Expired), Ok(3)));
    assert_eq!(scribe.order(), [1, 0, 3]);
    let expired = DeadLetterReason::Expired;
    assert_eq!(*dead.lock().unwrap(), [(1, expired, 1), (2, expired, 0)]);
    let stats = pool.stats();
    assert!(stats.ledger_holds() && stats.waiting == 0, "{stats:?}");
}

/// Sends this many messages at once, and more a millisecond later, after the worker has begun to
/// sleep for a second.
async fn queue_behind_a_sleeper(pool: &Pool<Scribe>) -> Instant {
    normal(pool, 0, 0, Deed::Sleep(1_000));
    settle().await;
    let sent = Instant::now();
    normal(pool, 1, 1, Deed::Return);
    pool.try_send_with((2, 2, Deed::Return), Envelope::new().trace("t")).unwrap();
    pool.try_send_many(&mut [(3, 3, Deed::Return)].into()).unwrap();
    let mine = pool.admin().workers()[0].clone();
    mine.try_send((4, 4, Deed::Return)).unwrap();
    sent
}

#[tokio::test(start_paused = true)]
async fn a02_a_handler_learns_when_its_message_was_queued() {
    for keyed in [false, true] {
        let (pool, scribe) = scribes(1);
        let pool = open(pool, keyed).await;
        // The pool's clock started earlier.
        tokio::time::sleep(3 * SECOND).await;
        let sent = queue_behind_a_sleeper(&pool).await;
        assert_eq!(pool.call((5, 5, Deed::Return)).await, Ok(5));
        settle().await;
        let order = scribe.order();
        let queued = scribe.0.lock().unwrap().queued.clone();
        let waited = SECOND - Duration::from_millis(1);
        for number in 1..=4 {
            let place = order.iter().position(|n| *n == number).unwrap();
            let (at, ago) = queued[place];
            assert_eq!((at, ago), (sent, waited), "{number} of {order:?}, keyed: {keyed}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a02_a_further_attempt_and_a_change_of_workers_leave_the_time_as_it_was() {
    let (pool, scribe) = scribes(1);
    let pool = pool.spawn().await.unwrap();
    tokio::time::sleep(SECOND).await;
    let sent = Instant::now();
    normal(&pool, 0, 0, Deed::FailTwice);
    tokio::time::sleep(10 * SECOND).await;
    assert_eq!(scribe.order(), [0, 0, 0]);
    let queued = std::mem::take(&mut scribe.0.lock().unwrap().queued);
    assert!(queued.iter().all(|(at, ago)| *at == sent && sent + *ago <= Instant::now()));
    assert!(queued[2].1 > 2 * Duration::from_millis(50), "{queued:?}");

    let worker = pool.admin().workers()[0].clone();
    pool.admin().add(1).unwrap().done(SECOND).await;
    worker.try_send((0, 1, Deed::Sleep(1_000))).unwrap();
    settle().await;
    let sent = Instant::now();
    worker.try_send((0, 2, Deed::Return)).unwrap();
    let gone = pool.admin().remove_worker(worker.slot()).unwrap();
    gone.done(10 * SECOND).await;
    finish(&pool).await;
    assert_eq!(scribe.0.lock().unwrap().queued[1].0, sent, "it went to the other");
}

/// Chooses no worker until there are two.
struct NeedsTwo;

impl Policy<Note> for NeedsTwo {
    fn choose(&self, _: &Note, _: &About<'_>, crew: &Crew<'_>) -> Choice {
        if crew.len() < 2 { Choice::Hold } else { Choice::At(1) }
    }
}

#[tokio::test(start_paused = true)]
async fn a02_a_message_that_a_policy_has_held_back_was_queued_when_it_was_accepted() {
    let (pool, scribe) = scribes(1);
    let pool = pool.dispatch(NeedsTwo).spawn().await.unwrap();
    tokio::time::sleep(SECOND).await;
    let sent = Instant::now();
    normal(&pool, 0, 1, Deed::Return);
    tokio::time::sleep(5 * SECOND).await;
    pool.admin().add(1).unwrap().done(SECOND).await;
    finish(&pool).await;
    assert_eq!(scribe.0.lock().unwrap().queued, [(sent, 5 * SECOND)]);
}

/// Hands each delivery on.
struct Clerk(Address<Note, u32, ()>);

impl Actor for Clerk {
    type Message = Note;
    type Reply = u32;
    type Error = ();

    async fn handle(&mut self, _: Note, _: &mut Context<Self>) -> Result<u32, ()> {
        unreachable!("receive does it")
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<Note, u32, ()>,
        _cx: &mut Context<Self>,
    ) -> Result<Answer<u32>, ()> {
        if delivery.attempt() == 1 {
            return Err(());
        }
        let before = delivery.queued_at();
        let closed = Pool::new(|_| Scribe::default()).workers(0).spawn().await.unwrap();
        assert!(delivery.forward(&closed).await.is_err());
        assert_eq!(delivery.queued_at(), before, "it was not forwarded");
        delivery.forward(&self.0).await.map_err(drop)?;
        Ok(Answer::Deferred)
    }
}

#[tokio::test(start_paused = true)]
async fn a02_a07_a_forwarded_message_was_queued_when_the_other_pool_accepted_it() {
    let (pool, scribe) = scribes(1);
    let last = pool.spawn().await.unwrap();
    let to = last.address();
    let first = Pool::new(move |_| Clerk(to.clone())).workers(1);
    let first = first.retry(3, Backoff::new(SECOND, SECOND)).seed(1).spawn().await.unwrap();
    let sent = Instant::now();
    first.send((0, 1, Deed::Return)).await.unwrap();
    tokio::time::sleep(10 * SECOND).await;
    let (at, ago) = scribe.0.lock().unwrap().queued[0];
    assert!(at > sent && ago.is_zero(), "{:?}, {ago:?}", at - sent);
}
