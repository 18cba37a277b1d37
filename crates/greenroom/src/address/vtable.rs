//! How an address reaches its pool.

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::{Arc, Weak},
    task::Waker,
};

use greenroom_queue::{
    permits::{Closed, Refused},
    places::FirstMessage,
    urgency::Urgency,
};

use crate::{
    AnyAddress, NotAccepted,
    address::parcels::mark_own_call,
    any_address::Erased,
    pool::{
        handoff::{
            own_call::OwnCall,
            reentrancy::{ReentrancyGuard, Reentrant},
            wait::HandoffWait,
        },
        outgoing::{LendOutgoing, Outgoing},
    },
};

pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The object-safe side of a pool that addresses see; it hides the types of the
/// actor and of the key.
pub(crate) trait SenderVtable<M, R, E>: Erased {
    /// Like `try_push`, for a message without extra parts.
    fn try_send(
        &self,
        message: &mut Option<M>,
        sender: u32,
        urgency: Urgency,
    ) -> Result<(), Refused> {
        message.lent(&mut |payload| self.try_push(payload, sender, urgency))
    }
    /// Takes a permit and queues the message, or leaves it in its place and returns the reason.
    /// Runs the key function first.
    fn try_push(
        &self,
        payload: &mut Outgoing<M, R, E>,
        sender: u32,
        urgency: Urgency,
    ) -> Result<(), Refused>;
    /// Hands it to an idle worker, if possible; otherwise leaves it in its place, to be queued.
    fn serve(
        &self,
        _message: &mut Option<M>,
        _sender: u32,
        _caller: &Waker,
    ) -> Option<HandoffWait<'_, M, R, E>> {
        None
    }
    /// Queues a normal message that has a permit, or gives the permit back and leaves the
    /// message in its place.
    fn push_permitted(
        &self,
        payload: &mut Outgoing<M, R, E>,
        sender: u32,
    ) -> Result<(), NotAccepted>;
    /// Queues messages from the front, as many as there is room for, and returns how many.
    fn try_push_many(
        &self,
        messages: &mut VecDeque<M>,
        sender: u32,
        urgency: Urgency,
    ) -> Result<usize, Refused>;
    /// Queues a message as soon as there is room for it.
    fn push_waiting<'a>(
        &'a self,
        payload: &'a mut Outgoing<M, R, E>,
        sender: u32,
    ) -> BoxFuture<'a, Result<(), NotAccepted>>;
    /// Waits for a permit.
    fn permit(&self) -> BoxFuture<'_, Result<(), Closed>>;
    fn try_permit(&self) -> Result<(), Refused>;
    fn give_permit(&self);
    /// The reason why a closed pool accepts nothing.
    fn why_closed(&self) -> NotAccepted;
    fn count_rejected(&self);
    /// The place of a sender that is about to begin.
    fn next_place(&self, beginning: FirstMessage) -> u32;
    fn handle_made(&self);
    /// The same, without keeping anything alive.
    fn downgrade(self: Arc<Self>) -> WeakSenderVtable<M, R, E>;
    /// The last handle drains and stops the pool.
    fn handle_dropped(self: Arc<Self>);
    /// A caller is about to wait for a reply. Refused if it would wait for itself.
    fn enter_call(&self, payload: &Outgoing<M, R, E>)
    -> Result<Option<ReentrancyGuard>, Reentrant>;
    /// The same, and notes it in the message.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn enter(&self, payload: &mut Outgoing<M, R, E>) -> Result<Option<ReentrancyGuard>, Reentrant> {
        let inside = self.enter_call(payload)?;
        if inside.is_some() {
            mark_own_call(payload);
        }
        Ok(inside)
    }
    /// Enters and queues a call. Returns the guard of a caller inside the pool. A refused call
    /// stays in its place.
    fn push_call(
        &self,
        payload: &mut Outgoing<M, R, E>,
        sender: u32,
    ) -> Result<Option<ReentrancyGuard>, NotSent> {
        let inside = self.enter(payload)?;
        match self.try_push(payload, sender, Urgency::Now) {
            Ok(()) => Ok(inside),
            Err(refused) => Err(NotSent::Refused(refused, inside)),
        }
    }
    /// Like `enter_call`, before it is known which task will wait: for a worker of the pool, if one
    /// is polled here.
    fn own_call(self: Arc<Self>, payload: &Outgoing<M, R, E>) -> Option<OwnCall>;
    /// Calls `show` for the workers that handle messages now, each once, in the order of their
    /// slots.
    #[cfg(feature = "gather")]
    fn show_live(self: Arc<Self>, show: &mut ShowWorker<'_, M, R, E>);
}

/// A function that is called for one worker after the other, with the slot and the vtable of each.
pub(crate) type ShowWorker<'a, M, R, E> = dyn FnMut(usize, Arc<dyn SenderVtable<M, R, E>>) + 'a;

/// A vtable that does not keep its pool alive.
pub(crate) enum WeakSenderVtable<M, R, E> {
    Pool(Weak<dyn SenderVtable<M, R, E>>),
    /// A worker's own exists only as long as it is held, so it is made again.
    Worker(Arc<dyn WeakWorker<M, R, E>>),
}

/// The way to one worker, as long as there is its pool.
pub(crate) trait WeakWorker<M, R, E>: Send + Sync {
    fn upgrade(&self) -> Option<Arc<dyn SenderVtable<M, R, E>>>;
    /// The address without its types, even if nothing is left of its pool.
    fn any(&self) -> AnyAddress;
}

impl<M, R, E> Clone for WeakSenderVtable<M, R, E> {
    fn clone(&self) -> Self {
        match self {
            Self::Pool(vtable) => Self::Pool(vtable.clone()),
            Self::Worker(worker) => Self::Worker(worker.clone()),
        }
    }
}

impl<M, R, E> WeakSenderVtable<M, R, E> {
    pub(crate) fn upgrade(&self) -> Option<Arc<dyn SenderVtable<M, R, E>>> {
        match self {
            Self::Pool(vtable) => vtable.upgrade(),
            Self::Worker(worker) => worker.upgrade(),
        }
    }
}

/// Queues a message, or leaves it in its place.
type PushOne<'a, M, R, E> = dyn Fn(&mut Outgoing<M, R, E>) -> Result<(), Refused> + 'a;

/// Queues messages from the front, each by itself, until one is refused.
pub(crate) fn push_one_by_one<M, R, E>(
    messages: &mut VecDeque<M>,
    push: &PushOne<'_, M, R, E>,
) -> Result<usize, Refused> {
    let mut sent = 0;
    while let Some(mut lent) = LentPayload::first_of(messages) {
        match push(&mut lent.payload) {
            Ok(()) => sent += 1,
            Err(refused) if sent == 0 => return Err(refused),
            Err(_) => break,
        }
    }
    Ok(sent)
}

/// The first message of several, on its way into a queue. It goes back to the others unless it was
/// accepted, also when the key function panics.
pub(crate) struct LentPayload<'a, M, R, E> {
    messages: &'a mut VecDeque<M>,
    pub(crate) payload: Outgoing<M, R, E>,
}

impl<'a, M, R, E> LentPayload<'a, M, R, E> {
    pub(crate) fn first_of(messages: &'a mut VecDeque<M>) -> Option<Self> {
        let payload = Outgoing::new(messages.pop_front()?, None);
        Some(Self { messages, payload })
    }
}

impl<M, R, E> Drop for LentPayload<'_, M, R, E> {
    fn drop(&mut self) {
        if let Some(message) = self.payload.message.take() {
            self.messages.push_front(message);
        }
    }
}

/// Why a call is not queued.
pub(crate) enum NotSent {
    /// A caller that waited for it would wait for itself.
    WouldDeadlock,
    /// Not now, or never.
    Refused(Refused, Option<ReentrancyGuard>),
}

impl From<Reentrant> for NotSent {
    fn from(_: Reentrant) -> Self {
        Self::WouldDeadlock
    }
}
