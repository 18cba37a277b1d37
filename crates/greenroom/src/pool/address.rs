//! What senders hold.

use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    hash::Hash,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::{
    core::Core,
    entry::Entry,
    erased::Erased,
    permits::{Closed, Refused},
    stop::{self, Stop},
};
use crate::{
    Actor, CallError, NotAccepted, ReplyPort, SendError, TrySendError, delivery::Extra, reply,
};

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A message that was not accepted.
pub(crate) struct Unaccepted<M, R, E> {
    message: M,
    port: Option<ReplyPort<R, E>>,
    why: NotAccepted,
}

type Pushed<M, R, E> = Result<(), Unaccepted<M, R, E>>;

/// The object-safe side of a pool that addresses see; it hides the types of the actor and of the key.
pub(crate) trait Door<M, R, E>: Erased {
    /// Takes a permit and queues the message, or says why not. Runs the key function first.
    fn try_push(&self, message: M, port: Option<ReplyPort<R, E>>, sender: u32) -> Pushed<M, R, E>;
    /// Queues a message for which a permit has been taken; gives the permit back where it does not.
    fn push_permitted(
        &self,
        message: M,
        port: Option<ReplyPort<R, E>>,
        sender: u32,
    ) -> Pushed<M, R, E>;
    /// Queues messages from the front, as many as there is room for, and says how many.
    fn try_push_many(&self, messages: &mut VecDeque<M>, sender: u32) -> Result<usize, NotAccepted>;
    /// Waits for a permit.
    fn permit(&self) -> BoxFuture<'_, Result<(), Closed>>;
    fn try_permit(&self) -> Result<(), Refused>;
    fn give_permit(&self);
    /// Why a pool that accepts nothing any more does not.
    fn why_closed(&self) -> NotAccepted;
    fn count_rejected(&self);
    fn next_sender(&self) -> u32;
    fn handle_made(&self);
    /// The last handle drains and stops the pool.
    fn handle_dropped(self: Arc<Self>);
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    fn queue(
        &self,
        message: A::Message,
        port: Option<ReplyPort<A::Reply, A::Error>>,
        sender: u32,
        (key, hash): (Option<K>, u32),
    ) -> Pushed<A::Message, A::Reply, A::Error> {
        let extra = port.map(|port| Extra::new(Some(port)));
        self.push(Entry { message, extra, key, hash }, sender).map_err(|entry| {
            self.permits.give();
            let port = entry.extra.and_then(|extra| extra.port);
            Unaccepted { message: entry.message, port, why: self.why_closed() }
        })
    }
}

/// Several messages on their way into the queues: whatever happens, permits that were not used go back, and shards that
/// were filled are announced, all at once.
struct Many<'a, A: Actor, K: Hash + Eq + Send + Sync + 'static> {
    core: &'a Core<A, K>,
    permits: usize,
    filled: u64,
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Drop for Many<'_, A, K> {
    fn drop(&mut self) {
        (0..self.permits).for_each(|_| self.core.permits.give());
        if self.filled != 0 {
            self.core.wake.mark_all(self.filled);
            self.core.wake.one(&self.core.clock.bell);
        }
    }
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Many<'_, A, K> {
    fn push(&mut self, message: A::Message, sender: u32) -> Result<(), A::Message> {
        let (key, hash) = self.core.key(&message);
        let entry = Entry { message, extra: None, key, hash };
        let filled = self.core.push_quietly(entry, sender).map_err(|entry| entry.message)?;
        self.permits -= 1;
        self.filled |= filled.map_or(0, |index| 1 << index);
        Ok(())
    }
}

/// Gives a permit back unless it was used, also when the key function panics.
struct Granted<'a>(Option<&'a super::permits::Permits>);

impl Drop for Granted<'_> {
    fn drop(&mut self) {
        if let Some(permits) = self.0 {
            permits.give();
        }
    }
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Door<A::Message, A::Reply, A::Error>
    for Core<A, K>
{
    fn try_push(
        &self,
        message: A::Message,
        port: Option<ReplyPort<A::Reply, A::Error>>,
        sender: u32,
    ) -> Pushed<A::Message, A::Reply, A::Error> {
        let key = self.key(&message);
        match self.permits.try_take() {
            Ok(()) => self.queue(message, port, sender, key),
            Err(Refused::Full) => Err(Unaccepted { message, port, why: NotAccepted::Full }),
            Err(Refused::Closed) => Err(Unaccepted { message, port, why: self.why_closed() }),
        }
    }

    fn push_permitted(
        &self,
        message: A::Message,
        port: Option<ReplyPort<A::Reply, A::Error>>,
        sender: u32,
    ) -> Pushed<A::Message, A::Reply, A::Error> {
        let mut granted = Granted(Some(&self.permits));
        let key = self.key(&message);
        granted.0 = None;
        self.queue(message, port, sender, key)
    }

    fn try_push_many(
        &self,
        messages: &mut VecDeque<A::Message>,
        sender: u32,
    ) -> Result<usize, NotAccepted> {
        let permits = match self.permits.try_take_up_to(messages.len()) {
            Ok(permits) => permits,
            Err(Refused::Full) => return Err(NotAccepted::Full),
            Err(Refused::Closed) => return Err(self.why_closed()),
        };
        let mut many = Many { core: self, permits, filled: 0 };
        for sent in 0..permits {
            let Some(message) = messages.pop_front() else { return Ok(sent) };
            if let Err(message) = many.push(message, sender) {
                messages.push_front(message);
                return if sent == 0 { Err(self.why_closed()) } else { Ok(sent) };
            }
        }
        Ok(permits)
    }

    fn permit(&self) -> BoxFuture<'_, Result<(), Closed>> {
        Box::pin(self.permits.take())
    }

    fn try_permit(&self) -> Result<(), Refused> {
        self.permits.try_take()
    }

    fn give_permit(&self) {
        self.permits.give();
    }

    fn why_closed(&self) -> NotAccepted {
        match self.live.load(Ordering::SeqCst) {
            0 => NotAccepted::NoWorkers,
            _ => NotAccepted::Stopped,
        }
    }

    fn count_rejected(&self) {
        self.tally.rejected.fetch_add(1, Ordering::Relaxed);
    }

    fn next_sender(&self) -> u32 {
        self.next_sender.fetch_add(1, Ordering::Relaxed)
    }

    fn handle_made(&self) {
        self.handles.fetch_add(1, Ordering::Relaxed);
    }

    fn handle_dropped(self: Arc<Self>) {
        if self.handles.fetch_sub(1, Ordering::AcqRel) > 1 || self.ended.load(Ordering::SeqCst) {
            return;
        }
        self.close();
        let runtime = self.runtime.clone();
        runtime.spawn(stop::stop(self, Stop::within(Duration::MAX)));
    }
}

/// The address of a pool: cheap to clone, to be held by senders. The pool drains and stops when the last one is
/// dropped.
///
/// Without keys, messages of one address are queued together, in order; a clone is another sender.
pub struct Address<M, R, E> {
    pub(super) door: Arc<dyn Door<M, R, E>>,
    pub(super) sender: u32,
}

impl<M, R, E> Clone for Address<M, R, E> {
    fn clone(&self) -> Self {
        Self::new(self.door.clone())
    }
}

impl<M, R, E> Drop for Address<M, R, E> {
    fn drop(&mut self) {
        self.door.clone().handle_dropped();
    }
}

impl<M, R, E> fmt::Debug for Address<M, R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Address").field("sender", &self.sender).finish_non_exhaustive()
    }
}

impl<M, R, E> Address<M, R, E> {
    pub(crate) fn new(door: Arc<dyn Door<M, R, E>>) -> Self {
        door.handle_made();
        let sender = door.next_sender();
        Self { door, sender }
    }

    /// Queues a message without waiting.
    ///
    /// # Errors
    /// The message, with the reason, when it was not accepted.
    ///
    /// # Panics
    /// When the key function of the pool panics; nothing has been accepted then.
    pub fn try_send(&self, message: M) -> Result<(), TrySendError<M>> {
        self.door.try_push(message, None, self.sender).map_err(|unaccepted| {
            self.door.count_rejected();
            let message = unaccepted.message;
            match unaccepted.why {
                NotAccepted::Full => TrySendError::Full(message),
                NotAccepted::Stopped => TrySendError::Stopped(message),
                NotAccepted::NoWorkers => TrySendError::NoWorkers(message),
            }
        })
    }

    /// Queues messages from the front without waiting, as many as there is room for, and leaves the rest. Returns how many
    /// were queued. Cheaper than one by one: permits are taken and workers are woken once for all of them.
    ///
    /// # Errors
    /// Why not even one was accepted. Nothing was taken out then.
    ///
    /// # Panics
    /// When the key function of the pool panics; the message that it was asked about is lost, those before it are queued.
    pub fn try_send_many(&self, messages: &mut VecDeque<M>) -> Result<usize, NotAccepted> {
        if messages.is_empty() {
            return Ok(0);
        }
        self.door.try_push_many(messages, self.sender).inspect_err(|_| self.door.count_rejected())
    }

    /// Queues a message, waiting for room. Waiting senders are served first come, first served.
    ///
    /// # Errors
    /// The message, when the pool has stopped or has no workers left.
    ///
    /// # Cancel safety
    /// A dropped future has either queued the message or done nothing; the message is dropped with it in that case. To
    /// keep it, use [`reserve`](Self::reserve).
    pub async fn send(&self, message: M) -> Result<(), SendError<M>> {
        self.push(message, None).await.map_err(|unaccepted| {
            self.door.count_rejected();
            match unaccepted.why {
                NotAccepted::NoWorkers => SendError::NoWorkers(unaccepted.message),
                NotAccepted::Stopped | NotAccepted::Full => SendError::Stopped(unaccepted.message),
            }
        })
    }

    /// Sends a message and waits for its reply. There is no timeout: a call ends when the message has its outcome.
    ///
    /// # Errors
    /// How the message ended without a reply.
    ///
    /// # Cancel safety
    /// Dropping the future abandons the call: a message that has not been started is skipped when its turn comes.
    pub async fn call(&self, message: M) -> Result<R, CallError<E>> {
        let (port, reply) = reply::channel();
        if let Err(unaccepted) = self.push(message, Some(port)).await {
            self.door.count_rejected();
            return Err(match unaccepted.why {
                NotAccepted::NoWorkers => CallError::NoWorkers,
                NotAccepted::Stopped | NotAccepted::Full => CallError::Stopped,
            });
        }
        reply.await.unwrap_or(Err(CallError::Dropped))
    }

    async fn push(&self, message: M, port: Option<ReplyPort<R, E>>) -> Pushed<M, R, E> {
        let Unaccepted { message, port, .. } = match self.door.try_push(message, port, self.sender)
        {
            Err(unaccepted) if unaccepted.why == NotAccepted::Full => unaccepted,
            other => return other,
        };
        match self.door.permit().await {
            Ok(()) => self.door.push_permitted(message, port, self.sender),
            Err(Closed) => Err(Unaccepted { message, port, why: self.door.why_closed() }),
        }
    }

    /// Waits for room for one message and keeps it until the permit is used or dropped.
    ///
    /// # Errors
    /// When the pool has stopped or has no workers left.
    ///
    /// # Cancel safety
    /// A dropped future has reserved nothing.
    pub async fn reserve(&self) -> Result<Permit<'_, M, R, E>, NotAccepted> {
        match self.door.permit().await {
            Ok(()) => Ok(Permit { address: self, used: false }),
            Err(Closed) => Err(self.door.why_closed()),
        }
    }

    /// Room for one message, when there is some now.
    ///
    /// # Errors
    /// Why there is none.
    pub fn try_reserve(&self) -> Result<Permit<'_, M, R, E>, NotAccepted> {
        match self.door.try_permit() {
            Ok(()) => Ok(Permit { address: self, used: false }),
            Err(Refused::Full) => Err(NotAccepted::Full),
            Err(Refused::Closed) => Err(self.door.why_closed()),
        }
    }
}

/// Room for one message. Dropped unused, it goes to the next who waits.
#[derive(Debug)]
#[must_use = "a permit that is dropped gives its room to the next sender"]
pub struct Permit<'a, M, R, E> {
    address: &'a Address<M, R, E>,
    used: bool,
}

impl<M, R, E> Permit<'_, M, R, E> {
    /// Queues a message in the reserved room.
    ///
    /// # Errors
    /// The message, when the pool was stopped after the permit was taken.
    pub fn send(mut self, message: M) -> Result<(), SendError<M>> {
        self.used = true;
        self.address.door.push_permitted(message, None, self.address.sender).map_err(|unaccepted| {
            self.address.door.count_rejected();
            match unaccepted.why {
                NotAccepted::NoWorkers => SendError::NoWorkers(unaccepted.message),
                NotAccepted::Stopped | NotAccepted::Full => SendError::Stopped(unaccepted.message),
            }
        })
    }
}

impl<M, R, E> Drop for Permit<'_, M, R, E> {
    fn drop(&mut self) {
        if !self.used {
            self.address.door.give_permit();
        }
    }
}
