//! Callers at the handoff slot of a worker that they have woken: each has the reply to its own
//! message, and neither a wake-up nor what was announced meanwhile is lost.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Poll, Waker},
};

use greenroom_queue::{
    handoff::{Caller, HandedOutcome, HandedOutcomeOf, HandoffSlot, Retracted},
    stamp::Stamp,
    wake::{WakeReason, own_waker},
};

use super::wakes::{Pool, step_aside};
use crate::{
    checker::{Effort, JoinHandle, block_on, check, spawn},
    pool::{
        handoff::pool_exchange::PoolExchange,
        membership::slot_state::{KILLED, SlotState},
    },
};

/// What a runtime polls.
pub(super) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Numbers both ways.
type Numbers = PoolExchange<u32, u32, ()>;

/// What a message is answered with.
fn answer(message: u32) -> u32 {
    message + 100
}

/// The only worker of a pool: claims what is announced, and handles what it is handed.
struct Clerk {
    pool: Arc<Pool>,
    slot_state: Arc<SlotState>,
    handoff_slot: Arc<HandoffSlot<Numbers>>,
    /// Its handlers do, once.
    suspends: bool,
    awake: bool,
}

impl Clerk {
    fn is_over(&self) -> bool {
        self.pool.is_over() || self.slot_state.has(KILLED)
    }

    async fn work(mut self) {
        while !self.is_over() {
            while !self.is_over() && self.pool.claim_one() {
                step_aside().await;
            }
            if !self.is_over() {
                self.idle().await;
            }
        }
    }

    /// The steps of the product's `idle`.
    async fn idle(&mut self) {
        self.awake = false;
        let park_token = self.pool.park(0, Some(own_waker().await));
        if self.slot_state.has_orders() {
            self.pool.wake.call(0, &self.pool.watchdog);
        }
        let wake_reason = self.pool.woken(0, park_token).await;
        self.awake = true;
        if wake_reason == WakeReason::Handed {
            self.serve_handed().await;
        }
    }

    /// What it was handed is handled, unless something else comes first.
    async fn serve_handed(&self) {
        if self.is_over() {
            return handled_by_another(self.handoff_slot.retract(Stamp::default));
        }
        let mut given = None;
        let caller = self.handoff_slot.take_handed(&mut given, &mut Stamp::default());
        if self.suspends {
            self.pool.wake.leave(&self.pool.watchdog);
            step_aside().await;
            self.pool.wake.enter(&self.pool.watchdog);
        }
        let message = given.unwrap_or_default();
        match caller {
            None => {}
            Some(Caller::Gone(port)) => drop(port),
            // The reply may be unwanted by now.
            Some(Caller::Waits) => {
                let _ = self.handoff_slot.answer(answer(message));
            }
        }
    }
}

/// What was taken back lies in a queue, and is handled.
fn handled_by_another(retracted: Option<Retracted<Numbers>>) {
    if let Some((message, _, port)) = retracted {
        let _ = port.reply(answer(message));
    }
}

impl Drop for Clerk {
    fn drop(&mut self) {
        if self.awake {
            return self.pool.wake.leave(&self.pool.watchdog);
        }
        self.pool.wake.forget(0, &self.pool.watchdog);
        handled_by_another(self.handoff_slot.retract(Stamp::default));
    }
}

pub(super) struct Counter {
    pub(super) pool: Arc<Pool>,
    pub(super) slot_state: Arc<SlotState>,
    handoff_slot: Arc<HandoffSlot<Numbers>>,
}

impl Counter {
    /// With a worker that is awake before anything else happens. It ends when what is announced once has been claimed.
    fn open(suspends: bool) -> (Arc<Self>, JoinHandle<()>) {
        let (counter, task) = Self::with(suspends, 1);
        (counter, spawn(move || block_on(task)))
    }

    /// With so many workers, of which one is at the counter.
    pub(super) fn with(suspends: bool, workers: usize) -> (Arc<Self>, Task) {
        let (pool, slot_state) = (Pool::new(workers, 1, 1), Arc::new(SlotState::default()));
        let handoff_slot = Arc::new(HandoffSlot::new());
        pool.wake.enter(&pool.watchdog);
        let (of_clerk, at) = (slot_state.clone(), handoff_slot.clone());
        let clerk = Clerk {
            pool: pool.clone(),
            slot_state: of_clerk,
            handoff_slot: at,
            suspends,
            awake: true,
        };
        (Arc::new(Self { pool, slot_state, handoff_slot }), Box::pin(clerk.work()))
    }

    /// The steps of the product's `hand`. True where the worker was woken for it.
    async fn hand(&self, message: u32) -> bool {
        let mut waiter: Option<Waker> = Some(poll_fn(|cx| Poll::Ready(cx.waker().clone())).await);
        let mut message = Some(message);
        self.pool.wake.may_hand()
            && self.pool.wake.hand(&self.pool.watchdog, &mut |worker| {
                worker == 0 && self.handoff_slot.hand(&mut message, Stamp::default(), &mut waiter)
            })
    }

    /// Hands this over, and waits for what comes of it, which is compared when all is over.
    pub(super) async fn hand_and_wait(&self, message: u32) -> Option<HandedOutcomeOf<Numbers>> {
        match self.hand(message).await {
            true => Some(poll_fn(|cx| self.handoff_slot.poll(cx)).await),
            false => None,
        }
    }

    fn hander(self: &Arc<Self>, message: u32) -> JoinHandle<Option<HandedOutcomeOf<Numbers>>> {
        let counter = self.clone();
        spawn(move || block_on(counter.hand_and_wait(message)))
    }

    /// All has gone through, and it can be used again.
    pub(super) fn assert_shut(&self) {
        let handed = self.handoff_slot.hand(&mut Some(9), Stamp::default(), &mut None);
        assert!(handed, "somebody is there");
    }

    /// Something is to be claimed.
    pub(super) fn announce(&self) {
        self.pool.wake.mark(0);
        self.pool.wake.one(&self.pool.watchdog);
    }
}

pub(super) fn compare_told(message: u32, told: Option<HandedOutcomeOf<Numbers>>) {
    match told {
        None => {}
        Some(HandedOutcome::Response(reply)) => assert_eq!(reply, answer(message)),
        Some(HandedOutcome::Later(reply)) => assert_eq!(reply.given(), Some(answer(message))),
    }
}

fn poll_once_and_drop(mut task: Task) {
    let _ = block_on(poll_fn(|cx| Poll::Ready(task.as_mut().poll(cx))));
    drop(task);
}

fn hand_over(suspends: bool, callers: u32) {
    let (counter, worker) = Counter::open(suspends);
    let others: Vec<_> = (1..callers).map(|message| counter.hander(message)).collect();
    let own = block_on(counter.hand_and_wait(0));
    counter.announce();
    let told: Vec<_> =
        others.into_iter().map(|caller| caller.join().expect("it did not panic")).collect();
    counter.pool.finish([worker]);
    let told = std::iter::once(own).chain(told);
    (0..).zip(told).for_each(|(message, told)| compare_told(message, told));
    counter.assert_shut();
}

/// It is woken for what it was handed, and its caller for the reply.
pub fn a_message_that_is_handed_to_a_worker_that_parks() {
    check(Effort::Changes(3), || hand_over(false, 1));
}

/// One after the other, or the second finds the first there still.
pub fn two_callers_that_hand_over() {
    check(Effort::Changes(2), || hand_over(false, 2));
}

/// The handler suspends and goes on, and what is announced meanwhile is not lost.
pub fn a_message_that_is_handed_to_a_handler_that_suspends() {
    check(Effort::Changes(2), || hand_over(true, 1));
}

/// The worker is dropped before it comes: what it was handed goes to others, and the wake-up to another.
pub fn a_message_that_is_handed_to_a_worker_that_is_dropped() {
    check(Effort::Changes(3), || {
        let (counter, task) = Counter::with(false, 2);
        let other = counter.pool.asleep(1);
        let dropped = spawn(move || poll_once_and_drop(task));
        let told = block_on(counter.hand_and_wait(0));
        counter.announce();
        counter.pool.finish([other, dropped]);
        compare_told(0, told);
        counter.assert_shut();
    });
}

/// What it has handed over is abandoned, or the reply unwanted, wherever the worker is with it.
pub fn a_caller_that_gives_up_what_it_has_handed() {
    check(Effort::Changes(3), || {
        let (counter, worker) = Counter::open(false);
        if block_on(counter.hand(0)) {
            counter.handoff_slot.give_up();
        }
        counter.announce();
        counter.pool.finish([worker]);
        counter.assert_shut();
    });
}

/// Whoever is first, the worker or the watchdog, has the message.
pub fn a_watchdog_that_takes_back_what_was_handed() {
    check(Effort::Changes(3), || {
        let (counter, worker) = Counter::open(false);
        let watch = spawn({
            let counter = counter.clone();
            move || {
                handled_by_another(
                    counter.handoff_slot.retract_what_is_left(true, Stamp::default).1,
                );
                handled_by_another(
                    counter.handoff_slot.retract_what_is_left(true, Stamp::default).1,
                );
            }
        });
        let told = block_on(counter.hand_and_wait(0));
        counter.announce();
        watch.join().expect("it did not panic");
        counter.pool.finish([worker]);
        compare_told(0, told);
        counter.assert_shut();
    });
}
