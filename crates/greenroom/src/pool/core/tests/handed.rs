//! Calls that are handed to a worker which is woken for them, with other events before the worker
//! comes and while the callers wait.

use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{Arc, atomic::Ordering},
    task::{Context as Task, Poll, Waker},
    time::{Duration, Instant},
};

use greenroom_queue::{handoff::HandedOutcome, urgency::Urgency, watchdog::Watched};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::{
    Actor, Answer, CallError, Class, Context, DeadLetterReason, Delivery, Envelope, Overflow, Pool,
    PoolBuilder, ReplyPort, Restarts, Stop,
    address::vtable::SenderVtable,
    pool::{
        core::{
            Core,
            push::take_and_push,
            serve::{handed, handoff_slot, take_back_handed, take_back_what_is_left},
            shut::count_accepted,
        },
        frame::{AnyCore, gate::close},
        handoff::wait::HandoffWait,
        membership::slot_state::{KILLED, LEAVE},
        worker::in_flight::InFlight,
    },
    step_aside,
};

/// Messages that get more than a plain reply.
const SLEEPS: u64 = 1;
const PANICS: u64 = 2;
const FAILS: u64 = 3;
/// Another task answers after the port was left for it.
const LATER: u64 = 4;

/// The handled messages, in order, and the ports that were left.
#[derive(Default)]
struct Seen {
    handled: Vec<u64>,
    ports: Vec<ReplyPort<u64, ()>>,
}

struct Clerk(Arc<Mutex<Seen>>);

impl Actor for Clerk {
    type Message = u64;
    type Reply = u64;
    type Error = ();

    async fn handle(&mut self, _: u64, _: &mut Context<Self>) -> Result<u64, ()> {
        unreachable!("it receives deliveries")
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<u64, u64, ()>,
        _: &mut Context<Self>,
    ) -> Result<Answer<u64>, ()> {
        let number = delivery.take();
        self.0.lock().handled.push(number);
        match number {
            SLEEPS => tokio::time::sleep(Duration::from_millis(1)).await,
            PANICS => panic!("asked for"),
            FAILS => return Err(()),
            LATER => {
                self.0.lock().ports.extend(delivery.take_reply_port());
                return Ok(Answer::Deferred);
            }
            _ => {}
        }
        Ok(Answer::Reply(number))
    }
}

type Clerks = Arc<Core<Clerk, Infallible>>;

struct Office {
    pool: Pool<Clerk>,
    core: Clerks,
    seen: Arc<Mutex<Seen>>,
}

impl Office {
    async fn open(workers: usize, capacity: usize) -> Self {
        Self::with(workers, |pool| pool.capacity(capacity)).await
    }

    /// An office whose workers have all parked.
    async fn with(
        workers: usize,
        set_up: impl FnOnce(PoolBuilder<Clerk>) -> PoolBuilder<Clerk>,
    ) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let of_workers = seen.clone();
        let builder = Pool::new(move |_| Clerk(of_workers.clone())).workers(workers);
        let builder = builder.restarts(Restarts { max: 1_000, ..Restarts::default() });
        let core = set_up(builder).spawn_core().await.unwrap();
        core.frame.clock.unaided.store(true, Ordering::Relaxed);
        let office = Self { pool: Pool::spawned(core.clone()), core, seen };
        office.until_idle(workers).await;
        office
    }

    async fn until_idle(&self, workers: usize) {
        let mut patience = 0..10_000;
        while (self.core.queue.wake.idle(), self.core.queue.wake.awake()) != (workers, 0) {
            assert!(patience.next().is_some(), "somebody is awake still");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Hands this message to a worker, which comes when others have their turn.
    fn hand(&self, number: u64) -> HandoffWait<'_, u64, u64, ()> {
        self.core.serve(&mut Some(number), 0, Waker::noop()).expect("it is handed")
    }

    fn is_refused(&self, number: u64) -> bool {
        let mut message = Some(number);
        self.core.serve(&mut message, 0, Waker::noop()).is_none() && message == Some(number)
    }

    fn handled(&self) -> Vec<u64> {
        self.seen.lock().handled.clone()
    }

    fn assert_settled(&self) {
        let stats = self.pool.stats();
        assert!(stats.ledger_holds() && stats.is_settled(), "{stats:?}");
    }
}

async fn told(waits: HandoffWait<'_, u64, u64, ()>) -> Result<u64, CallError<()>> {
    let told = poll_fn(|cx| waits.poll(cx)).await;
    waits.leave();
    match told {
        HandedOutcome::Response(reply) => Ok(reply),
        HandedOutcome::Later(reply) => reply.await.unwrap_or(Err(CallError::Dropped)),
    }
}

async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await
}

#[tokio::test]
async fn a_worker_is_woken_for_what_it_was_handed_and_parks_again() {
    let office = Office::open(1, 10).await;
    for calls in 1..=5 {
        let waits = office.hand(7);
        assert_eq!((office.core.queue.wake.idle(), office.core.queue.wake.awake()), (0, 1));
        assert!(!office.core.queue.shards[0].inbox.lock().scheduled, "nothing is queued");
        assert_eq!((office.pool.depth(), count_accepted(&office.core)), (1, calls));
        assert_eq!(told(waits).await, Ok(7));
        assert_eq!((office.core.queue.wake.idle(), office.core.queue.wake.awake()), (1, 0));
        assert_eq!((office.pool.depth(), office.pool.stats().handled), (0, calls));
    }
    office.assert_settled();
}

/// Now and then a call goes through the queue. That does not make its worker search there for the
/// next one.
#[tokio::test]
async fn who_calls_on_hands_over_one_message_after_the_other() {
    let office = Office::open(1, 1_000).await;
    for number in 10..650 {
        assert_eq!(office.pool.call(number).await, Ok(number));
    }
    let came = take_back_what_is_left(&office.core);
    assert!((600..=640).contains(&came), "{came} of 640 calls were handed over");
    office.assert_settled();
}

/// The order of one sender, in a pool with a single worker.
#[tokio::test]
async fn what_is_sent_later_does_not_overtake() {
    let office = Office::open(1, 10).await;
    let address = office.pool.address();
    let mut call = pin!(address.call(10));
    assert!(poll_once(call.as_mut()).await.is_pending());
    assert_eq!(handed(&office.core), 1);
    address.send(11).await.unwrap();
    let (late, last) = tokio::join!(address.call(12), call);
    assert_eq!((late, last, office.handled()), (Ok(12), Ok(10), vec![10, 11, 12]));
}

/// Like a worker that is killed while it steps aside for another one, which it has woken as it
/// parked.
#[tokio::test]
async fn a_worker_that_ends_between_its_wake_up_and_its_message_leaves_it_to_others() {
    let office = Office::open(1, 10).await;
    let waits = office.hand(7);
    let mut killed = InFlight::new(office.core.clone(), 0);
    killed.worker.wake_up();
    drop(killed);
    assert_eq!((handed(&office.core), office.pool.depth()), (0, 1), "it is queued");
    assert_eq!(told(waits).await, Ok(7));
    office.until_idle(1).await;
    office.assert_settled();
}

#[tokio::test]
async fn an_urgent_message_comes_first() {
    let office = Office::open(1, 10).await;
    let waits = office.hand(10);
    let urgent = Envelope::new().class(Class::Urgent);
    office.pool.address().try_send_with(11, urgent).unwrap();
    assert_eq!((told(waits).await, office.handled()), (Ok(10), vec![11, 10]));
    office.assert_settled();
}

#[tokio::test]
async fn nothing_is_handed_past_what_waits_to_a_full_pool_or_a_closed_one() {
    let office = Office::open(2, 1).await;
    let waits = office.hand(7);
    assert!(office.is_refused(7), "there is no room");
    assert_eq!(told(waits).await, Ok(7));
    take_and_push(&office.core, &mut Some(8), (None, 0), 0, Urgency::Now).unwrap();
    assert!(office.is_refused(7), "something waits");
    office.until_idle(2).await;
    close(&*office.core);
    assert!(office.is_refused(7), "it is closed");
    assert_eq!((count_accepted(&office.core), office.handled()), (2, vec![7, 8]));
}

#[tokio::test]
async fn whatever_becomes_of_it_its_caller_hears() {
    let office = Office::open(1, 10).await;
    assert_eq!(told(office.hand(FAILS)).await, Err(CallError::Failed(())));
    office.until_idle(1).await;
    let panicked = told(office.hand(PANICS)).await;
    assert_eq!(panicked, Err(CallError::Panicked("asked for".into())));
    office.until_idle(1).await;
    assert_eq!(told(office.hand(SLEEPS)).await, Ok(SLEEPS));
    office.until_idle(1).await;
    let waits = office.hand(LATER);
    step_aside().await;
    let port = office.seen.lock().ports.pop().unwrap();
    assert_eq!(office.pool.call(7).await, Ok(7), "its worker is free meanwhile");
    assert_eq!(port.reply(40), Ok(()));
    assert_eq!(told(waits).await, Ok(40));
    office.assert_settled();
}

/// Until the first reply has been collected, there is no room for another: the call is queued.
#[tokio::test]
async fn a_reply_that_nobody_collects_keeps_nobody_else_from_calling() {
    let office = Office::open(1, 10).await;
    let waits = office.hand(7);
    office.until_idle(1).await;
    assert!(office.is_refused(8));
    assert_eq!(office.core.queue.wake.awake(), 0);
    assert_eq!(office.pool.call(8).await, Ok(8));
    assert_eq!(told(waits).await, Ok(7));
    assert_eq!(told(office.hand(9)).await, Ok(9));
    office.assert_settled();
    // Another worker may have room for one.
    let office = Office::open(2, 10).await;
    let waits = office.hand(7);
    office.until_idle(2).await;
    assert_eq!(told(office.hand(8)).await, Ok(8));
    assert_eq!(told(waits).await, Ok(7));
    office.assert_settled();
}

#[tokio::test]
async fn a_call_that_is_given_up_before_its_worker_comes_is_not_handled() {
    let office = Office::open(1, 10).await;
    drop(office.hand(7));
    assert_eq!(office.pool.depth(), 1);
    office.until_idle(1).await;
    let stats = office.pool.stats();
    assert_eq!(office.handled(), [0_u64; 0]);
    assert_eq!(stats.dead_letters.of(DeadLetterReason::Abandoned), 1);
    assert_eq!(told(office.hand(8)).await, Ok(8));
    office.assert_settled();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_while_it_is_handled_is_handled_to_its_end() {
    let office = Office::open(1, 10).await;
    let waits = office.hand(SLEEPS);
    step_aside().await;
    assert_eq!(office.handled(), [SLEEPS]);
    drop(waits);
    office.until_idle(1).await;
    assert_eq!(office.pool.stats().handled, 1);
    assert_eq!(told(office.hand(8)).await, Ok(8));
    // The same if there is a reply that is not collected.
    let waits = office.hand(9);
    office.until_idle(1).await;
    drop(waits);
    assert_eq!(told(office.hand(10)).await, Ok(10));
    office.assert_settled();
}

#[tokio::test]
async fn what_a_worker_was_handed_that_is_to_leave_goes_to_another() {
    let office = Office::open(2, 10).await;
    let waits = office.hand(7);
    let handed_to = (0..2).find(|slot| handoff_slot(&office.core, *slot).has_handed());
    office.core.frame.membership.slots.at(handed_to.unwrap()).order(LEAVE);
    assert_eq!((told(waits).await, office.handled()), (Ok(7), vec![7]));
    assert!(office.pool.stats().ledger_holds());
}

#[tokio::test]
async fn what_a_worker_was_handed_that_is_killed_goes_to_the_next() {
    let office = Office::open(1, 10).await;
    for number in 10..15 {
        let waits = office.hand(number);
        office.core.frame.membership.slots.at(0).order(KILLED);
        office.core.frame.membership.abort(&[0]);
        assert_eq!(told(waits).await, Ok(number));
        office.until_idle(1).await;
    }
    assert_eq!(office.handled(), [10, 11, 12, 13, 14]);
    office.assert_settled();
}

#[tokio::test]
async fn a_pool_that_stops_at_once_gives_back_what_its_worker_has_not_taken() {
    let office = Office::open(1, 10).await;
    let address = office.pool.address();
    let mut call = pin!(address.call(7));
    assert!(poll_once(call.as_mut()).await.is_pending());
    assert_eq!(handed(&office.core), 1);
    let stopped = office.pool.stop(Stop::Now).await;
    assert_eq!((stopped.left_over, office.seen.lock().handled.len()), (vec![7], 0));
    assert_eq!(call.await, Err(CallError::Stopped));
}

#[tokio::test]
async fn a_pool_that_drains_waits_for_what_was_handed() {
    let office = Office::open(1, 10).await;
    let address = office.pool.address();
    let mut call = pin!(address.call(7));
    assert!(poll_once(call.as_mut()).await.is_pending());
    let (stopped, reply) = tokio::join!(office.pool.stop(Stop::within(Duration::MAX)), call);
    assert_eq!((stopped.left_over.len(), reply), (0, Ok(7)));
}

/// The worker that took it back was late: the queues are not checked any more.
#[tokio::test]
async fn what_is_taken_back_when_all_is_over_has_its_outcome() {
    for ruined in [false, true] {
        let office = Office::open(1, 10).await;
        let waits = office.hand(7);
        close(&*office.core);
        let (over, outcome) = match ruined {
            true => (&office.core.frame.lifecycle.ruined, Err(CallError::NoWorkers)),
            false => (&office.core.frame.lifecycle.ended, Err(CallError::Stopped)),
        };
        over.store(true, Ordering::SeqCst);
        let live = office.core.frame.membership.live.swap(usize::from(!ruined), Ordering::SeqCst);
        assert_eq!(live, 1);
        take_back_handed(&office.core, 0);
        assert_eq!((told(waits).await, office.handled()), (outcome, vec![]));
        assert_eq!(office.pool.depth(), 0);
        assert!(office.pool.stats().ledger_holds());
    }
}

/// Later messages would overtake it, and no other worker could take it.
#[tokio::test]
async fn the_watchdog_leaves_the_only_worker_what_it_was_handed() {
    let looks = |core: &Clerks| {
        core.frame.clock.unaided.store(false, Ordering::Relaxed);
        (0..3).fold(0, |taken, _| core.tick(taken))
    };
    for workers in [1, 2] {
        let office = Office::open(workers, 10).await;
        let waits = office.hand(7);
        looks(&office.core);
        assert_eq!(handed(&office.core), 2 - workers);
        assert_eq!(told(waits).await, Ok(7));
        assert_eq!(looks(&office.core), 1, "a message that somebody has come for");
    }
}

#[tokio::test]
async fn what_was_handed_is_the_oldest_and_the_first_to_be_evicted() {
    let office = Office::with(1, |pool| pool.capacity(1).overflow(Overflow::DropOldest)).await;
    let waits = office.hand(7);
    assert!(office.core.oldest().is_some());
    office.pool.address().try_send(8).unwrap();
    assert_eq!((told(waits).await, handed(&office.core)), (Err(CallError::Evicted), 0));
    office.until_idle(1).await;
    assert_eq!((office.handled(), office.core.oldest()), (vec![8], None));
    office.assert_settled();
}

/// The worker wakes the task that polled last.
#[tokio::test]
async fn a_call_that_comes_to_another_task_wakes_that_one() {
    let office = Office::open(1, 10).await;
    let waits = office.hand(SLEEPS);
    let mut never = Task::from_waker(Waker::noop());
    assert!(waits.poll(&mut never).is_pending());
    step_aside().await;
    assert!(waits.poll(&mut never).is_pending());
    let late = tokio::time::timeout(Duration::from_secs(20), told(waits));
    assert_eq!(late.await, Ok(Ok(SLEEPS)));
}

/// Its worker is queued behind it, and no other thread looks there.
#[test]
fn a_caller_that_computes_on_does_not_hold_what_it_has_handed() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.unwrap();
    let (over, handled) = oneshot::channel();
    runtime.spawn(async move {
        let office = Office::open(2, 10).await;
        office.core.frame.clock.unaided.store(false, Ordering::Relaxed);
        let waits = office.hand(7);
        let since = Instant::now();
        while office.handled().is_empty() && since.elapsed() < Duration::from_secs(20) {
            std::hint::spin_loop();
        }
        let handled = office.handled();
        assert_eq!(told(waits).await, Ok(7));
        office.assert_settled();
        let _ = over.send(handled);
    });
    assert_eq!(runtime.block_on(handled), Ok(vec![7]));
}
