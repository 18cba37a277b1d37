//! A single worker of a pool, addressed directly.

use std::{
    any::Any,
    collections::VecDeque,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{Arc, Weak},
};

use greenroom_queue::{
    permits::{Closed, Refused},
    places::FirstMessage,
    urgency::Urgency,
};
use tokio::{runtime::Handle, sync::mpsc};

use crate::pool::{
    core::{Core, dispatch::try_push_to, evict::overflow_at, mail::push_to, room::MailboxPlace},
    frame::{AnyCore, identity, members::dismiss_one, notify::found_worker_full},
    handoff::{
        own_call::OwnCall,
        reentrancy::{ReentrancyGuard, Reentrant, slot_at_work},
    },
    membership::mailbox::Mailbox,
    outgoing::{Outgoing, OutgoingOf},
    stop::{Stop, StopSummary},
};
use crate::{
    Actor, AnyAddress, NotAccepted,
    address::vtable::{BoxFuture, SenderVtable, WeakSenderVtable, WeakWorker, push_one_by_one},
    any_address::Erased,
    inspect::{TooManyKeys, Value, WorkerStatus},
    life::Signal,
    pool::pool_payload::Key,
};

/// The way to one worker.
pub(crate) struct WorkerSender<A: Actor, K> {
    pub(crate) core: Arc<Core<A, K>>,
    pub(crate) mailbox: Arc<Mailbox<A, K>>,
    /// A message that finds no room here is treated like one that finds none in the pool. Otherwise
    /// it waits for this worker.
    pub(crate) overflows: bool,
}

impl<A: Actor, K: Key> WorkerSender<A, K> {
    pub(crate) fn new(core: Arc<Core<A, K>>, mailbox: Arc<Mailbox<A, K>>) -> Self {
        Self { core, mailbox, overflows: false }
    }

    async fn reserve(&self) -> Result<(), Closed> {
        self.mailbox.reserve().await?;
        let place = MailboxPlace(Some(&self.mailbox));
        self.core.await_permit().await?;
        place.used();
        Ok(())
    }

    fn try_reserve(&self) -> Result<(), Refused> {
        self.mailbox.try_reserve()?;
        let place = MailboxPlace(Some(&self.mailbox));
        self.core.queue.permits.try_take(1, &*self.core)?;
        place.used();
        Ok(())
    }

    fn give_both(&self) {
        self.mailbox.give_back();
        self.core.queue.permits.give(1, &*self.core);
    }
}

impl<A: Actor, K: Key> SenderVtable<A::Message, A::Reply, A::Error> for WorkerSender<A, K> {
    fn try_push(
        &self,
        payload: &mut OutgoingOf<A>,
        _sender: u32,
        _urgency: Urgency,
    ) -> Result<(), Refused> {
        match try_push_to(&self.core, &self.mailbox, payload) {
            Err(Refused::Full) if self.overflows => overflow_at(&self.core, &self.mailbox, payload),
            Err(Refused::Full) => {
                found_worker_full(&*self.core);
                Err(Refused::Full)
            }
            pushed => pushed,
        }
    }

    fn push_permitted(&self, payload: &mut OutgoingOf<A>, _sender: u32) -> Result<(), NotAccepted> {
        push_to(&self.core, &self.mailbox, payload).map_err(|Closed| {
            self.give_both();
            self.why_closed()
        })
    }

    fn push_waiting<'a>(
        &'a self,
        payload: &'a mut Outgoing<A::Message, A::Reply, A::Error>,
        sender: u32,
    ) -> BoxFuture<'a, Result<(), NotAccepted>> {
        Box::pin(async move {
            self.reserve().await.map_err(|Closed| self.why_closed())?;
            self.push_permitted(payload, sender)
        })
    }

    fn try_push_many(
        &self,
        messages: &mut VecDeque<A::Message>,
        sender: u32,
        urgency: Urgency,
    ) -> Result<usize, Refused> {
        push_one_by_one(messages, &|one| self.try_push(one, sender, urgency))
    }

    fn permit(&self) -> BoxFuture<'_, Result<(), Closed>> {
        Box::pin(async move {
            let mut reserved = pin!(self.reserve());
            poll_fn(|task| {
                let polled = reserved.as_mut().poll(task);
                if polled.is_pending() {
                    found_worker_full(&*self.core);
                }
                polled
            })
            .await
        })
    }

    fn try_permit(&self) -> Result<(), Refused> {
        self.try_reserve().inspect_err(|refused| {
            if *refused == Refused::Full {
                found_worker_full(&*self.core);
            }
        })
    }

    fn give_permit(&self) {
        self.give_both();
    }

    fn why_closed(&self) -> NotAccepted {
        self.core.why_closed()
    }

    fn count_rejected(&self) {
        self.core.count_rejected();
    }

    fn next_place(&self, beginning: FirstMessage) -> u32 {
        self.core.next_place(beginning)
    }

    fn handle_made(&self) {
        self.core.handle_made();
    }

    fn downgrade(self: Arc<Self>) -> WeakSenderVtable<A::Message, A::Reply, A::Error> {
        WeakSenderVtable::Worker(Arc::new(WeakWorkerSender {
            core: Arc::downgrade(&self.core),
            mailbox: self.mailbox.clone(),
            overflows: self.overflows,
            name: self.name(),
        }))
    }

    fn handle_dropped(self: Arc<Self>) {
        self.core.clone().handle_dropped();
    }

    fn enter_call(
        &self,
        _payload: &Outgoing<A::Message, A::Reply, A::Error>,
    ) -> Result<Option<ReentrancyGuard>, Reentrant> {
        self.enter_any_call()
    }

    #[cfg(feature = "gather")]
    fn show_live(
        self: Arc<Self>,
        show: &mut crate::address::vtable::ShowWorker<'_, A::Message, A::Reply, A::Error>,
    ) {
        self.core.clone().show_live(show);
    }

    fn own_call(self: Arc<Self>, _payload: &OutgoingOf<A>) -> Option<OwnCall> {
        OwnCall::of(self.clone(), self.core.identity(), |slot| slot == self.mailbox.slot)
    }
}

/// Like `WorkerSender`, but does not keep the pool alive.
struct WeakWorkerSender<A: Actor, K> {
    core: Weak<Core<A, K>>,
    mailbox: Arc<Mailbox<A, K>>,
    overflows: bool,
    name: Arc<str>,
}

impl<A: Actor, K: Key> WeakWorker<A::Message, A::Reply, A::Error> for WeakWorkerSender<A, K> {
    fn upgrade(&self) -> Option<Arc<dyn SenderVtable<A::Message, A::Reply, A::Error>>> {
        let (mailbox, overflows) = (self.mailbox.clone(), self.overflows);
        Some(Arc::new(WorkerSender { core: self.core.upgrade()?, mailbox, overflows }))
    }

    fn any(&self) -> AnyAddress {
        let (life, name) = (self.mailbox.life().clone(), self.name.clone());
        AnyAddress::new(self.core.clone(), Some(self.mailbox.slot), life, name)
    }
}

impl<A: Actor, K: Key> Erased for WorkerSender<A, K> {
    fn name(&self) -> Arc<str> {
        Arc::from(self.core.frame.worker_name(self.mailbox.slot))
    }

    fn enter_any_call(&self) -> Result<Option<ReentrancyGuard>, Reentrant> {
        self.core.handoff.calls.enter_worker(self.core.identity(), self.mailbox.slot)
    }

    fn any(self: Arc<Self>) -> AnyAddress {
        let (slot, life, name) = (self.mailbox.slot, self.mailbox.life().clone(), self.name());
        let vtable: Arc<dyn Erased> = self.core.clone();
        AnyAddress::new(Arc::downgrade(&vtable), Some(slot), life, name)
    }

    fn sender(self: Arc<Self>) -> Box<dyn Any> {
        self.core.clone().sender()
    }

    fn any_worker(self: Arc<Self>, _slot: usize) -> AnyAddress {
        self.any()
    }

    fn worker(self: Arc<Self>, _slot: usize, _life: u64) -> Option<Arc<dyn Erased>> {
        Some(self)
    }

    fn publish(&self, slot: usize, key: &str, value: Value) -> Result<(), TooManyKeys> {
        self.core.publish(slot, key, value)
    }

    fn signal(self: Arc<Self>, signal: Signal<AnyAddress>) {
        self.core.signal_worker(&self.mailbox, signal);
    }

    fn is_closed(&self) -> bool {
        self.mailbox.is_closed()
    }

    fn contains(&self, identity: usize) -> bool {
        self.core.contains(identity)
    }

    fn worker_status(&self) -> Option<WorkerStatus> {
        let status = self.core.frame.membership.slots.at(self.mailbox.slot).status();
        // Checked after the status: a slot that was taken again since had been left before.
        (!self.mailbox.has_left()).then(|| status.as_public())?
    }

    fn is_over(&self) -> bool {
        self.mailbox.has_left() || self.core.is_over()
    }

    fn stop_behind(self: Arc<Self>, how: Stop) {
        let runtime = self.core.frame.env.runtime.clone();
        runtime.spawn(self.stop_unknown(how));
    }

    fn try_handle_made(&self) -> bool {
        self.core.try_handle_made()
    }

    fn runtime(&self) -> &Handle {
        self.core.runtime()
    }

    /// Tells the worker to leave its pool. It does not wait for itself.
    fn stop_unknown(
        self: Arc<Self>,
        _how: Stop,
    ) -> Pin<Box<dyn Future<Output = StopSummary> + Send>> {
        let (pool, slot) = (self.core.erased(), self.mailbox.slot);
        Box::pin(leave(self, pool, slot))
    }
}

/// Tells the worker to leave its pool, if it has not gone.
async fn leave(worker: Arc<dyn Erased>, pool: Arc<dyn AnyCore>, slot: usize) -> StopSummary {
    let (outcomes, mut told) = mpsc::unbounded_channel();
    if !worker.is_closed() && dismiss_one(&pool, slot, &outcomes).is_ok() {
        drop(outcomes);
        if slot_at_work(identity(&*pool)) != Some(slot) {
            let _ = told.recv().await;
        }
    }
    StopSummary { left_over: 0, wedged: Vec::new() }
}
