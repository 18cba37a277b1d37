//! The handles of senders.

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use greenroom_queue::{
    permits::Refused,
    places::{FirstMessage, NOWHERE},
    urgency::Urgency,
};

use crate::{
    AnyAddress, Class, NotAccepted, SendError, TrySendError,
    address::{
        parcels::refused,
        vtable::{LentPayload, SenderVtable},
    },
    any_address::Erased,
    pool::{not_accepted::not_accepted, outgoing::Outgoing},
};

mod blocking;
mod call;
mod call_future;
mod calling;
mod parcels;
mod permit;
#[cfg(feature = "tower")]
mod readiness;
mod recipient;
mod send;
#[cfg(feature = "tower")]
pub mod service;
#[cfg(feature = "tower")]
mod sink;
mod timers;
pub(crate) mod vtable;
mod weak;

pub use call_future::Call;
pub use calling::Calling;
pub use permit::Permit;
pub use recipient::Recipient;
pub use send::Sending;
pub use weak::WeakAddress;

/// The address of a pool: cheap to clone, to be held by senders. The pool drains and stops when the
/// last one is dropped.
///
/// Without keys, messages of one address are queued together, in order; a clone is another sender.
pub struct Address<M, R, E> {
    pub(crate) vtable: Arc<dyn SenderVtable<M, R, E>>,
    /// The place where its messages are queued; [`NOWHERE`] until it has sent one.
    place: AtomicU32,
}

impl<M, R, E> Clone for Address<M, R, E> {
    fn clone(&self) -> Self {
        Self::new(self.vtable.clone())
    }
}

impl<M, R, E> Drop for Address<M, R, E> {
    fn drop(&mut self) {
        self.vtable.clone().handle_dropped();
    }
}

impl<M, R, E> fmt::Debug for Address<M, R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.place.load(Ordering::Relaxed);
        let place = (place != NOWHERE).then_some(place);
        f.debug_struct("Address").field("place", &place).finish_non_exhaustive()
    }
}

impl<M, R, E> Address<M, R, E> {
    pub(crate) fn new(vtable: Arc<dyn SenderVtable<M, R, E>>) -> Self {
        vtable.handle_made();
        Self::at(vtable, NOWHERE)
    }

    /// Another sender, unless the last address has been dropped.
    pub(crate) fn of_living(vtable: Arc<dyn SenderVtable<M, R, E>>) -> Option<Self> {
        vtable.try_handle_made().then(|| Self::at(vtable, NOWHERE))
    }

    /// For a handle that is counted: of the sender with this place.
    pub(super) fn at(vtable: Arc<dyn SenderVtable<M, R, E>>, place: u32) -> Self {
        Self { vtable, place: AtomicU32::new(place) }
    }

    /// The queue for messages of this sender, if the next one is a send.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn place(&self) -> u32 {
        match self.place.load(Ordering::Relaxed) {
            NOWHERE => self.take_place(FirstMessage::Sends),
            place => place,
        }
    }

    /// The queue for messages of this sender, if the next one is a call.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn place_of_call(&self) -> u32 {
        match self.place.load(Ordering::Relaxed) {
            NOWHERE => self.take_place(FirstMessage::Calls),
            place => place,
        }
    }

    /// If several threads send at once, the first decides for all: a thread that knows of one
    /// message through this address finds the place where it went.
    #[cold]
    #[inline(never)]
    fn take_place(&self, beginning: FirstMessage) -> u32 {
        let place = self.vtable.next_place(beginning);
        let taken =
            self.place.compare_exchange(NOWHERE, place, Ordering::Relaxed, Ordering::Relaxed);
        taken.map_or_else(|other| other, |_| place)
    }

    /// Queues a message without waiting.
    ///
    /// # Errors
    /// The message, with the reason, when it was not accepted.
    ///
    /// # Panics
    /// If the key function of the pool panics; nothing has been accepted then.
    pub fn try_send(&self, message: M) -> Result<(), TrySendError<M>> {
        let mut message = Some(message);
        match self.vtable.try_send(&mut message, self.place(), Urgency::Now) {
            Ok(()) => Ok(()),
            Err(refused) => {
                let payload = Outgoing { message, extra: None, class: Class::Normal };
                Err(self.refuse(payload, self.why(refused)))
            }
        }
    }

    /// Queues messages from the front without waiting, as many as there is room for, and leaves the
    /// rest. Returns how many were queued. Cheaper than one by one: permits are taken and workers
    /// are woken once for all of them. Without keys, a deque of 16 to 256 messages with little
    /// spare capacity is taken as it is. An emptied one of that kind is left in its place, whose
    /// capacity may differ.
    ///
    /// # Errors
    /// Why not even one was accepted. Nothing was taken out then.
    ///
    /// # Panics
    /// If the key function of the pool panics. The messages before the one that it was asked about
    /// are queued; the others are left.
    pub fn try_send_many(&self, messages: &mut VecDeque<M>) -> Result<usize, NotAccepted> {
        if messages.is_empty() {
            return Ok(0);
        }
        self.vtable.try_push_many(messages, self.place(), Urgency::Now).map_err(|refused| {
            self.vtable.count_rejected();
            self.why(refused)
        })
    }

    /// Queues all of these messages, waiting for room as often as it is needed.
    /// Cheaper than one by one.
    ///
    /// # Errors
    /// If the pool has stopped or has no workers left, or refuses the first message that is left,
    /// for good ([`NotAccepted::KeyRequired`]) or for now ([`NotAccepted::Parked`]). Queued
    /// messages have been taken out; the rest is left.
    ///
    /// # Panics
    /// Those of [`try_send_many`](Self::try_send_many).
    ///
    /// # Cancel safety
    /// Each message is either queued, and taken out, or still there.
    pub async fn send_many(&self, messages: &mut VecDeque<M>) -> Result<(), NotAccepted> {
        let mut urgency = Urgency::CanStepAside;
        while !messages.is_empty() {
            let pushed = self.vtable.try_push_many(messages, self.place(), urgency);
            urgency = Urgency::CanStepAside;
            match pushed {
                Ok(_) => {}
                Err(Refused::NotNow) => {
                    urgency = Urgency::Now;
                    crate::step_aside().await;
                }
                Err(Refused::Full | Refused::KeyFull) => self.wait_and_push_first(messages).await?,
                Err(refused) => {
                    self.vtable.count_rejected();
                    return Err(self.why(refused));
                }
            }
        }
        Ok(())
    }

    async fn wait_and_push_first(&self, messages: &mut VecDeque<M>) -> Result<(), NotAccepted> {
        let Some(mut lent) = LentPayload::first_of(messages) else { return Ok(()) };
        let pushed = self.vtable.push_waiting(&mut lent.payload, self.place()).await;
        pushed.inspect_err(|_| self.vtable.count_rejected())
    }

    #[cold]
    pub(super) fn refuse(&self, payload: Outgoing<M, R, E>, why: NotAccepted) -> SendError<M> {
        self.vtable.count_rejected();
        refused(payload.message, why)
    }

    pub(crate) fn why(&self, refused: Refused) -> NotAccepted {
        not_accepted(refused, || self.vtable.why_closed())
    }

    /// Lets others run, or waits for room, whichever was asked for, and queues the message.
    pub(crate) async fn wait_and_push(
        &self,
        payload: &mut Outgoing<M, R, E>,
        mut refused: Refused,
    ) -> Result<(), NotAccepted> {
        if refused == Refused::NotNow {
            crate::step_aside().await;
            match self.vtable.try_push(payload, self.place(), Urgency::Now) {
                Ok(()) => return Ok(()),
                Err(again) => refused = again,
            }
        }
        match refused {
            Refused::Full | Refused::KeyFull => {
                self.vtable.push_waiting(payload, self.place()).await
            }
            refused => Err(self.why(refused)),
        }
    }
}

impl<M, R, E> Address<M, R, E> {
    /// The runtime that the pool was spawned on.
    pub(crate) fn runtime(&self) -> &tokio::runtime::Handle {
        self.vtable.runtime()
    }

    /// The pool without its types, independent of this address.
    pub(crate) fn vtable(&self) -> Arc<dyn Erased>
    where
        M: 'static,
        R: 'static,
        E: 'static,
    {
        self.vtable.clone()
    }
}

impl<M: 'static, R: 'static, E: 'static> Address<M, R, E> {
    /// The address without its types. It does not keep the pool alive.
    pub fn erase(&self) -> AnyAddress {
        self.vtable().any()
    }
}
