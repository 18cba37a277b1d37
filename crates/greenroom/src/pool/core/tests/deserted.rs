//! The last worker of a pool goes, and another joins between two of the steps.

use std::{
    convert::Infallible,
    pin::pin,
    sync::{Arc, Weak, atomic::Ordering},
    task::{Context as TaskContext, Wake, Waker},
    time::Duration,
};

use greenroom_queue::deque::Deque;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::without_tasks::{Handlers, Handles, without_tasks};
use crate::{
    Address, CallError, ExitReason, Pool, SendError,
    policy::{About, Choice, Crew, Policy},
    pool::{
        core::{
            Core, dispatch::hold_back, drain::dead_letter_queued, mail::re_home, park::park,
            pushes::ask_again, serve::take_handed,
        },
        frame::{
            AnyCore,
            gate::{close, dead_letter_if_ruined},
            members::{disable, enable},
            rest::rests,
            supervised::{close_down, tell_to_rest},
        },
        outgoing::Outgoing,
        worker::in_flight::Source,
    },
    step_aside,
};

/// A pool for one message, whose only worker has no task any more.
async fn lifeless() -> (Pool<Handles>, Handlers) {
    let core = without_tasks(Pool::new(|_| Handles).workers(1).capacity(1)).await;
    (Pool::spawned(core.clone()), core)
}

/// Enables the worker again at the moment when a sender learns that there is none.
struct Enables(Handlers);

impl Wake for Enables {
    fn wake(self: Arc<Self>) {
        enable(&self.0.erased(), 0, &mpsc::unbounded_channel().0).unwrap();
    }
}

/// The messages became dead letters, and so did later ones, each at its next move.
#[tokio::test]
async fn a_worker_that_joins_before_the_queue_is_dead_lettered_has_its_messages() {
    let (pool, core) = lifeless().await;
    let address: Address<u64, u64, ()> = pool.address();
    let mut call = pin!(address.call(1));
    assert!(call.as_mut().poll(&mut TaskContext::from_waker(Waker::noop())).is_pending());
    let waker = Waker::from(Arc::new(Enables(core.clone())));
    let mut refused = pin!(address.send(2));
    assert!(refused.as_mut().poll(&mut TaskContext::from_waker(&waker)).is_pending());
    assert!(disable(&core.erased(), 0, &ExitReason::Normal));
    assert_eq!(core.frame.membership.live.load(Ordering::SeqCst), 1, "it was enabled in between");
    assert!(!core.frame.lifecycle.ruined.load(Ordering::SeqCst));
    assert!(matches!(refused.await, Err(SendError::NoWorkers(2))));
    assert_eq!(call.await, Ok(1));
    re_home(&core, take_handed(&core, usize::MAX));
    dead_letter_if_ruined(&*core);
    assert_eq!(address.call(3).await, Ok(3));
    assert!(pool.stats().dead_lettered == 0 && pool.stats().ledger_holds());
}

/// The same in a pool that is stopped right afterwards: its gate is shut again, but not for lack of
/// workers.
#[tokio::test]
async fn a_worker_that_joins_before_a_stop_has_its_messages() {
    let (pool, core) = lifeless().await;
    let address: Address<u64, u64, ()> = pool.address();
    let mut call = pin!(address.call(1));
    assert!(call.as_mut().poll(&mut TaskContext::from_waker(Waker::noop())).is_pending());
    close(&*core);
    dead_letter_queued(&core);
    assert_eq!(core.depth(), 1, "a worker is there");
    core.frame.membership.live.store(0, Ordering::SeqCst);
    dead_letter_queued(&core);
    assert_eq!((core.depth(), pool.stats().dead_lettered), (0, 1));
}

/// The message was held for a worker in a pool without any, and its caller waited.
#[tokio::test]
async fn a_message_that_is_to_be_held_as_the_last_worker_goes_is_refused() {
    let (pool, core) = lifeless().await;
    core.queue.permits.try_take(1, &*core).unwrap();
    let seen = core.frame.membership.member_changes.load(Ordering::SeqCst);
    assert!(disable(&core.erased(), 0, &ExitReason::Normal));
    let mut payload = Outgoing::new(1, None);
    assert!(hold_back(&core, &mut payload, seen).is_err());
    assert_eq!((payload.message, pool.depth()), (Some(1), 0));
}

/// Holds every message. Once it knows the pool, it disables the only worker when it is asked.
#[derive(Clone, Default)]
struct Disables(Arc<Mutex<Weak<Core<Handles, Infallible>>>>);

impl Policy<u64> for Disables {
    fn choose(&self, _: &u64, _: &About<'_>, _: &Crew<'_>) -> Choice {
        if let Some(core) = std::mem::take(&mut *self.0.lock()).upgrade() {
            assert!(disable(&core.erased(), 0, &ExitReason::Normal));
        }
        Choice::Hold
    }
}

/// The message was held again in a pool without workers, and its caller waited.
#[tokio::test]
async fn a_held_message_that_the_policy_is_asked_about_as_the_last_worker_goes_is_a_dead_letter() {
    let policy = Disables::default();
    let pool = Pool::new(|_| Handles).workers(1).dispatch(policy.clone());
    let core = pool.spawn_core().await.unwrap();
    let pool = Pool::spawned(core.clone());
    while pool.stats().idle < 1 {
        step_aside().await;
    }
    let mut call = pin!(pool.call(1));
    assert!(call.as_mut().poll(&mut TaskContext::from_waker(Waker::noop())).is_pending());
    assert_eq!(pool.depth(), 1);
    *policy.0.lock() = Arc::downgrade(&core);
    ask_again(&core);
    assert_eq!(pool.depth(), 0, "it waits for a worker that nobody starts");
    assert_eq!(call.await, Err(CallError::NoWorkers));
    assert!(pool.stats().ledger_holds());
}

/// The message waited for its retry in the mailbox of a resting slot, and its caller with it.
#[tokio::test]
async fn a_retry_of_the_last_worker_of_a_sticky_pool_is_a_dead_letter_once_that_rests() {
    let pool = Pool::new(|_| Handles).workers(1).sticky_by(|number: &u64| *number);
    let core = without_tasks(pool).await;
    let pool = Pool::spawned(core.clone());
    let mut call = pin!(pool.call(1));
    assert!(call.as_mut().poll(&mut TaskContext::from_waker(Waker::noop())).is_pending());
    let mut entry = core.mailbox(0).pop(false).unwrap();
    tell_to_rest(&*core, 0);
    close_down(&*core);
    entry.extra.as_mut().unwrap().next.parked = true;
    park(&core, 0, Source::Mailbox, Deque::only(entry), Duration::ZERO);
    assert_eq!(core.mailbox(0).waiting(), 1, "before later ones of its key");
    rests(&core.erased(), 0);
    assert_eq!(call.await, Err(CallError::NoWorkers));
    assert!(pool.stats().waiting == 0 && pool.stats().ledger_holds());
}

/// The stop waited until its deadline for a worker that was stuck and had been given up.
#[tokio::test]
async fn a13_a_stop_that_waits_is_told_when_its_pool_is_closed_down() {
    let (_pool, core) = lifeless().await;
    close(&*core);
    let mut told = pin!(core.frame.lifecycle.next_progress());
    let mut task = TaskContext::from_waker(Waker::noop());
    assert!(told.as_mut().poll(&mut task).is_pending());
    tell_to_rest(&*core, 0);
    close_down(&*core);
    assert_eq!(core.frame.membership.live.load(Ordering::SeqCst), 0);
    assert!(told.as_mut().poll(&mut task).is_ready());
}
