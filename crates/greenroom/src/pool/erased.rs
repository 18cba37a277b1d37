//! Queries and orders to a pool whose messages are not known.

use std::{
    any::Any,
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::runtime::Handle;

use super::{
    core::{Core, signals::take_signal},
    frame::{self, gate::close},
    handoff::reentrancy::{ReentrancyGuard, Reentrant},
    shares::Share,
    stop::{Stop, StopSummary, run::see_to_its_end},
    worker_sender::WorkerSender,
};
use crate::{
    Actor, AnyAddress,
    address::vtable::SenderVtable,
    any_address::Erased,
    inspect::{TooManyKeys, Value},
    life::Signal,
    pool::pool_payload::Key,
};

impl<A: Actor, K: Key> Erased for Core<A, K> {
    fn name(&self) -> Arc<str> {
        self.frame.config.name.clone()
    }

    fn enter_any_call(&self) -> Result<Option<ReentrancyGuard>, Reentrant> {
        // One count, compared once: a worker that joins or leaves in the meantime could as well
        // have come later.
        let live = self.frame.membership.live.load(Ordering::Relaxed);
        self.handoff.calls.enter(self.identity(), live)
    }

    fn any(self: Arc<Self>) -> AnyAddress {
        let (life, name) = (self.frame.lifecycle.life.clone(), self.frame.config.name.clone());
        let vtable: Arc<dyn Erased> = self;
        AnyAddress::new(Arc::downgrade(&vtable), None, life, name)
    }

    fn sender(self: Arc<Self>) -> Box<dyn Any> {
        let sender: Arc<dyn SenderVtable<A::Message, A::Reply, A::Error>> = self;
        Box::new(sender)
    }

    fn hold_share(&self, share: &Share, during: Duration) -> bool {
        frame::shares::hold(self, share, during)
    }

    fn any_worker(self: Arc<Self>, slot: usize) -> AnyAddress {
        if self.frame.config.handling.single {
            return self.any();
        }
        let mailbox = self.mailbox(slot);
        if let Some(reason) = self.frame.lifecycle.life.ended() {
            self.end_of_worker(&mailbox, &reason);
        }
        let life = mailbox.life().clone();
        let name = Arc::from(self.frame.worker_name(slot));
        let vtable: Arc<dyn Erased> = self;
        AnyAddress::new(Arc::downgrade(&vtable), Some(slot), life, name)
    }

    fn worker(self: Arc<Self>, slot: usize, life: u64) -> Option<Arc<dyn Erased>> {
        let mailbox = self.mailbox_if_any(slot).filter(|mailbox| mailbox.life().id() == life)?;
        Some(Arc::new(WorkerSender::new(self, mailbox)))
    }

    fn publish(&self, slot: usize, key: &str, value: Value) -> Result<(), TooManyKeys> {
        self.frame.membership.slots.at(slot).published.publish(key, value)
    }

    fn signal(self: Arc<Self>, signal: Signal<AnyAddress>) {
        take_signal(&self, signal);
    }

    fn is_closed(&self) -> bool {
        // Pairs with the store in `close`. A caller that misses it is refused by a shard or a
        // mailbox.
        self.frame.lifecycle.closing.load(Ordering::SeqCst)
    }

    fn contains(&self, identity: usize) -> bool {
        for slot_state in self.frame.membership.slots.iter() {
            let details = slot_state.details.lock();
            let other = details.adopted.as_ref().map(|adopted| adopted.other.clone());
            drop(details);
            let other = other.and_then(|other| other.living());
            if other.is_some_and(|other| other.contains(identity)) {
                return true;
            }
        }
        identity == self.identity()
    }

    fn is_over(&self) -> bool {
        // Pairs with the `fetch_sub` in `one_less` and `lay_off`. If it is missed, the next check
        // sees it.
        let nobody_left =
            self.is_closed() && self.frame.membership.live.load(Ordering::SeqCst) == 0;
        // Pairs with the exchange in the drop of `TaskGuard`. If it is missed, the next check sees
        // it.
        nobody_left || self.frame.lifecycle.running.load(Ordering::SeqCst) == 0
    }

    fn stop_behind(self: Arc<Self>, how: Stop) {
        close(&*self);
        let runtime = self.frame.env.runtime.clone();
        runtime.spawn(self.stop_unknown(how));
    }

    fn try_handle_made(&self) -> bool {
        let one_more = |handles: usize| (handles > 0).then_some(handles + 1);
        let handles = &self.frame.lifecycle.handles;
        handles.fetch_update(Ordering::AcqRel, Ordering::Relaxed, one_more).is_ok()
    }

    fn runtime(&self) -> &Handle {
        &self.frame.env.runtime
    }

    fn stop_unknown(
        self: Arc<Self>,
        how: Stop,
    ) -> Pin<Box<dyn Future<Output = StopSummary> + Send>> {
        let pool = self.erased();
        Box::pin(async move {
            let wedged = see_to_its_end(&pool, how).await.unwrap_or_default();
            StopSummary { left_over: self.left_over.len(), wedged }
        })
    }
}
