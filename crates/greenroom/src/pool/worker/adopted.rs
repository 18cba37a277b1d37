//! A worker that is an adopted actor or pool.
//!
//! Its slot has a forwarder that hands each delivery on, whole, as soon as there is room at the
//! other end. In the ledger of the pool the message counts as handled, and in the other's as
//! accepted.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{Arc, atomic::Ordering},
    task::Poll,
};

use super::{CatchUnwind, context, work};
use super::{
    exit_guard::{ExitGuard, Gone},
    in_flight::{
        InFlight,
        refused::{note_refusal, put_back},
    },
    panicked::settle_panicked,
    succession::End,
};
use crate::{
    Actor, Address, Answer, Context, Delivery, ExitReason, NotAccepted,
    pool::{
        admin::change::{Outcomes, SlotOutcome},
        core::Core,
        frame::members::{drop_out, has_started, notify_started},
        membership::slot_state::REST,
        pool_payload::Key,
    },
};

/// Hands every message on.
struct Forwarder<M, R, E> {
    to: Address<M, R, E>,
    /// The number of its task in its slot.
    task: u64,
}

impl<M: Send + 'static, R: Send + 'static, E: Send + 'static> Actor for Forwarder<M, R, E> {
    type Message = M;
    type Reply = R;
    type Error = E;

    /// Not called: deliveries are handed on whole.
    async fn handle(&mut self, message: M, _cx: &mut Context<Self>) -> Result<R, E> {
        drop(message);
        std::future::pending().await
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<M, R, E>,
        cx: &mut Context<Self>,
    ) -> Result<Answer<R>, E> {
        if let Err(why) = delivery.hand_on(&self.to).await {
            if why == NotAccepted::Stopped {
                cx.exit(ExitReason::Normal);
            }
            note_refusal(delivery, (cx.slot(), self.task), why);
        }
        Ok(Answer::Deferred)
    }
}

/// Hands messages on from this slot until the other end has stopped, or the slot is to be left.
pub(crate) fn run<A: Actor, K: Key>(
    core: Arc<Core<A, K>>,
    slot: usize,
    to: Address<A::Message, A::Reply, A::Error>,
    outcomes: Outcomes,
) -> impl Future<Output = ()> + Send {
    let exit_guard = ExitGuard::new(&core.erased(), slot, true);
    begin(core, exit_guard, to, outcomes)
}

async fn begin<A: Actor, K: Key>(
    core: Arc<Core<A, K>>,
    mut exit_guard: ExitGuard,
    to: Address<A::Message, A::Reply, A::Error>,
    outcomes: Outcomes,
) {
    let slot = exit_guard.slot;
    notify_started(&*core, slot);
    has_started(&*core, slot);
    let _ = outcomes.send(SlotOutcome::Started(slot));
    let other = to.erase();
    let _resting = Resting { core: core.clone(), slot, to: Some(to.clone()) };
    let (mut work, mut gone) = (pin!(hand_on(&core, slot, to)), pin!(other.ended()));
    let is_over = poll_fn(|task| match work.as_mut().poll(task) {
        Poll::Ready(reason) => Poll::Ready(Some(reason)),
        Poll::Pending => gone.as_mut().poll(task).map(|_| None),
    });
    let reason = match is_over.await {
        Some(reason) => reason,
        None => {
            // At once, and not when a message finds it gone. Its message in hand goes elsewhere
            // first.
            drop_out(&core.erased(), slot, &outcomes);
            work.await
        }
    };
    exit_guard.note(Gone::Over(reason));
    if !core.frame.membership.slots.at(slot).has(REST) {
        // An adopted worker whose other end has gone is no longer a member.
        drop_out(&core.erased(), slot, &outcomes);
    }
}

/// Keeps the address of an adopted worker that is told to rest, however its task ends: its slot
/// hands messages on again once it is woken.
struct Resting<A: Actor, K: Key> {
    core: Arc<Core<A, K>>,
    slot: usize,
    to: Option<Address<A::Message, A::Reply, A::Error>>,
}

impl<A: Actor, K: Key> Drop for Resting<A, K> {
    fn drop(&mut self) {
        let (slot, slot_state) = (self.slot, self.core.frame.membership.slots.at(self.slot));
        let mut details = slot_state.details.lock();
        // Pairs with the store in `end`, before adopted members are taken out under this lock: they
        // are taken out, or the end is seen here. Otherwise an ended pool would keep an address.
        let goes_on = !self.core.frame.lifecycle.ended.load(Ordering::SeqCst);
        if goes_on
            && slot_state.has(REST)
            && let Some(adopted) = &mut details.adopted
            && let Some(to) = self.to.take()
        {
            let core = Arc::downgrade(&self.core);
            adopted.again = Some(Box::new(move |outcomes| {
                if let Some(core) = core.upgrade() {
                    core.frame.spawn_worker(slot, Box::pin(run(core.clone(), slot, to, outcomes)));
                }
            }));
        }
    }
}

/// Returns the reason for which it ended.
async fn hand_on<A: Actor, K: Key>(
    core: &Arc<Core<A, K>>,
    slot: usize,
    to: Address<A::Message, A::Reply, A::Error>,
) -> ExitReason {
    // The number of this task: no other is started here before this one has ended.
    let task = core.frame.membership.slots.at(slot).tasks.load(Ordering::Relaxed);
    let mut forwarder = Forwarder { to, task };
    let mut cx = context(core, slot);
    let mut in_flight = InFlight::new(core.clone(), slot);
    in_flight.rare.put_back = Some(put_back);
    let own = Some((core.identity(), slot));
    loop {
        in_flight.worker.wake_up();
        match CatchUnwind(Box::pin(work(&mut in_flight, &mut forwarder, &mut cx)), own).await {
            Ok(End::Over | End::Exit(_)) => {
                in_flight.worker.give_up_place();
                in_flight.worker.rest();
                return ExitReason::Normal;
            }
            Ok(End::Killed) => return ExitReason::Killed,
            // A key function or a policy of the other end panicked: the failure table has decided
            // about the message.
            Err(panic) => drop(settle_panicked(&mut in_flight, &cx.name(), panic)),
        }
    }
}
