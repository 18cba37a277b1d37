//! Calls at the handoff slot of an idle worker, and other events in that time.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::{Pin, pin},
    sync::{Arc, OnceLock},
    task::{Poll, Waker},
    time::Duration,
};

use greenroom_queue::urgency::Urgency;

use super::{Core, InPlaceOutcome, Served};
use crate::{
    Actor, CallError, Context, ExitReason, Pool, Restarts, WeakAddress,
    pool::membership::slot_state::LEAVE, reply::Reply,
};

/// Messages that are not just answered.
const SLEEPS: u64 = 1;
const PANICS: u64 = 2;
const ENDS: u64 = 3;
/// Another message is sent to the pool before.
const SENDS: u64 = 4;

type Own = Arc<OnceLock<WeakAddress<u64, u64, ()>>>;

struct Echo(Own);

impl Actor for Echo {
    type Message = u64;
    type Reply = u64;
    type Error = ();

    async fn handle(&mut self, number: u64, cx: &mut Context<Self>) -> Result<u64, ()> {
        match number {
            SLEEPS => tokio::time::sleep(Duration::from_millis(1)).await,
            PANICS => panic!("asked for"),
            ENDS => cx.exit(ExitReason::failed("asked for")),
            SENDS => {
                let own = self.0.get().and_then(WeakAddress::upgrade).unwrap();
                own.try_send(7).unwrap();
            }
            _ => {}
        }
        Ok(number)
    }
}

type Echoes = Arc<Core<Echo, Infallible>>;

/// A pool whose only worker has parked.
async fn idle(capacity: usize) -> (Pool<Echo>, Echoes) {
    several_idle(1, capacity).await
}

async fn several_idle(workers: usize, capacity: usize) -> (Pool<Echo>, Echoes) {
    let own = Own::default();
    let of_workers = own.clone();
    let builder = Pool::new(move |_| Echo(of_workers.clone())).workers(workers).capacity(capacity);
    let builder = builder.restarts(Restarts { max: 1_000, ..Restarts::default() });
    let core = builder.calls_in_place().quick_handlers(true).spawn_core().await.unwrap();
    let pool = Pool::spawned(core.clone());
    assert!(own.set(pool.address().downgrade()).is_ok());
    until_idle(&core, workers).await;
    (pool, core)
}

/// Until so many workers are idle and none is awake.
async fn until_idle(core: &Echoes, workers: usize) {
    let mut patience = 0..10_000;
    while (core.queue.wake.idle(), core.queue.wake.awake()) != (workers, 0) {
        assert!(
            patience.next().is_some(),
            "{} lie, {} are awake",
            core.queue.wake.idle(),
            core.queue.wake.awake()
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn serve(core: &Echoes) -> Result<u64, u64> {
    let mut message = Some(7);
    match core.serve(&mut message, 0, Waker::noop()) {
        Some(Served::Reply(reply)) => Ok(reply),
        Some(_) => panic!("it replies at once"),
        None => Err(message.expect("it is left")),
    }
}

/// Accepted so far, and permits in use.
fn counts(core: &Echoes) -> (u64, usize) {
    (core.accepted(), core.queue.permits.in_use(core.as_ref()))
}

#[tokio::test]
async fn an_idle_worker_serves_a_call_and_parks_again() {
    let (pool, core) = idle(10).await;
    let credit = |core: &Echoes| core.queue.shards[0].inbox.lock().credit as usize;
    for calls in 1..=5 {
        assert_eq!(serve(&core), Ok(7));
        assert_eq!(core.queue.wake.idle(), 1);
        assert_eq!(
            counts(&core),
            (calls, credit(&core)),
            "what is not unused credit is given back"
        );
    }
    assert!(pool.stats().ledger_holds());
}

#[tokio::test]
async fn what_waits_is_not_overtaken() {
    let (_pool, core) = idle(10).await;
    core.take_and_push(&mut Some(1), (None, 0), 0, Urgency::Now).unwrap();
    assert_eq!(serve(&core), Err(7));
    assert_eq!(core.accepted(), 1);
}

#[tokio::test]
async fn a_worker_that_starts_nothing_more_gives_the_message_back() {
    let (_pool, core) = idle(1).await;
    core.membership.slots.at(0).order(LEAVE);
    assert_eq!(serve(&core), Err(7));
    assert_eq!(core.accepted(), 0);
    let unused = core.queue.shards[0].inbox.lock().credit as usize;
    assert_eq!(core.queue.permits.in_use(core.as_ref()), unused, "the permit is there again");
}

#[tokio::test]
async fn without_room_nothing_is_served() {
    let (_pool, core) = idle(1).await;
    core.queue.permits.try_take(1, core.as_ref()).unwrap();
    assert_eq!(serve(&core), Err(7));
    core.queue.permits.give(1, core.as_ref());
    let queued = core.take_and_push(&mut Some(1), (None, 0), 0, Urgency::Now);
    assert_eq!(queued, Ok(()), "who queues it looks further");
}

#[tokio::test]
async fn a_pool_that_is_closed_serves_nobody() {
    let (_pool, core) = idle(10).await;
    core.close();
    assert_eq!(serve(&core), Err(7));
    assert_eq!(core.accepted(), 0);
}

async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await
}

/// Serves a message whose reply is to come.
fn serve_later(core: &Echoes, number: u64) -> Reply<u64, ()> {
    match core.serve(&mut Some(number), 0, Waker::noop()) {
        Some(Served::Later(reply)) => reply,
        Some(_) => panic!("it replies later"),
        None => panic!("it is served"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_suspends_while_it_serves_is_not_idle_and_others_serve() {
    let (pool, core) = several_idle(2, 10).await;
    let slept = serve_later(&core, SLEEPS);
    assert_eq!((core.queue.wake.idle(), core.queue.wake.awake()), (1, 0));
    assert_eq!(serve(&core), Ok(7), "by the other");
    let slept_too = serve_later(&core, SLEEPS);
    assert_eq!((core.queue.wake.idle(), core.queue.wake.awake()), (0, 0));
    assert_eq!(serve(&core), Err(7), "there is nobody");
    for reply in [slept, slept_too] {
        assert_eq!(reply.await.unwrap(), Ok(SLEEPS));
    }
    until_idle(&core, 2).await;
    assert_eq!(serve(&core), Ok(7));
    assert!(pool.stats().ledger_holds() && pool.stats().is_settled());
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_ends_while_it_serves_leaves_no_trace_in_the_list() {
    let (pool, core) = idle(10).await;
    for turn in 1..=3 {
        let panicked = serve_later(&core, PANICS).await.unwrap();
        assert_eq!(panicked, Err(CallError::Panicked("asked for".into())));
        until_idle(&core, 1).await;
        assert!(matches!(core.serve(&mut Some(ENDS), 0, Waker::noop()), Some(Served::Reply(ENDS))));
        until_idle(&core, 1).await;
        assert_eq!(serve(&core), Ok(7));
        assert_eq!(pool.stats().restarts, 2 * turn);
    }
    assert!(pool.stats().ledger_holds() && pool.stats().is_settled());
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_wanted_while_it_serves_comes_when_it_has() {
    let (pool, core) = idle(10).await;
    core.clock.unaided.store(true, super::Ordering::Relaxed);
    assert!(matches!(core.serve(&mut Some(SENDS), 0, Waker::noop()), Some(Served::Reply(SENDS))));
    assert_eq!(pool.stats().handled, 1, "what it sent is not handled in its caller's turn");
    until_idle(&core, 1).await;
    assert_eq!(pool.stats().handled, 2);
    assert_eq!(serve(&core), Ok(7));
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_room_has_it_once_the_handler_that_is_served_suspends() {
    let (pool, core) = idle(1).await;
    let stamp = core.admit_handoff(0).unwrap();
    let mut waits = pin!(pool.send(7));
    assert!(
        poll_once(waits.as_mut()).await.is_pending(),
        "the message that is served has the room"
    );
    let (lent, handoff_slot) = core.lend_idle().unwrap();
    assert!(handoff_slot.put(&mut Some(SLEEPS), stamp));
    assert!(matches!(core.run_in_place(lent, || handoff_slot.leave()), InPlaceOutcome::Later(_)));
    assert!(poll_once(waits.as_mut()).await.is_ready(), "it has been started");
}
