//! Calls, and sends with metadata.

use std::{collections::VecDeque, future::Future, pin::pin, time::Duration};

use greenroom_queue::{permits::Refused, urgency::Urgency};

use crate::{
    CallError, Envelope, NotAccepted, ReplyPort, SendError, TrySendError,
    address::{
        call_future::{Call, QueuedCall},
        parcels::enveloped,
    },
    pool::{Address, clock::timed, handoff::reentrancy::ReentrancyGuard, outgoing::Outgoing},
    reply,
};

impl<M, R, E> Address<M, R, E> {
    /// Like [`send`](Self::send), with an envelope.
    ///
    /// # Errors
    /// Those of `send`.
    ///
    /// # Cancel safety
    /// That of `send`.
    pub async fn send_with(&self, message: M, envelope: Envelope) -> Result<(), SendError<M>> {
        let mut payload = enveloped(message, envelope.class, envelope.about, None);
        let Err(refused) = self.vtable.try_push(&mut payload, self.place(), Urgency::CanStepAside)
        else {
            return Ok(());
        };
        let waiting = Box::pin(self.wait_and_push(&mut payload, refused));
        let pushed = self.within(envelope.timeout, waiting).await;
        pushed.unwrap_or(Err(NotAccepted::Full)).map_err(|why| self.refuse(payload, why))
    }

    /// Like [`try_send`](Self::try_send), with an envelope.
    ///
    /// # Errors
    /// Those of `try_send`.
    pub fn try_send_with(&self, message: M, envelope: Envelope) -> Result<(), TrySendError<M>> {
        let mut payload = enveloped(message, envelope.class, envelope.about, None);
        match self.vtable.try_push(&mut payload, self.place(), Urgency::Now) {
            Ok(()) => Ok(()),
            Err(refused) => Err(self.refuse(payload, self.why(refused))),
        }
    }

    /// Like [`send`](Self::send), but waits for room at most this long.
    ///
    /// # Errors
    /// Those of `send`; also [`SendError::Full`] with the message, if there was no room in time.
    ///
    /// # Cancel safety
    /// That of `send`.
    pub async fn send_timeout(&self, message: M, limit: Duration) -> Result<(), SendError<M>> {
        self.send_with(message, Envelope::new().timeout(limit)).await
    }

    /// Like [`call`](Self::call), with an envelope.
    ///
    /// # Errors
    /// Those of `call`; also [`CallError::TimedOut`] or [`CallError::Expired`] if the envelope has
    /// limits. If there was no room within its timeout, the message comes back as from
    /// [`send_timeout`](Self::send_timeout).
    ///
    /// # Cancel safety
    /// That of `call`.
    pub async fn call_with(&self, message: M, envelope: Envelope) -> Result<R, CallError<E, M>> {
        let (port, reply) = reply::channel();
        let mut payload = enveloped(message, envelope.class, envelope.about, Some(port));
        let ended = {
            let called = pin!(self.call_payload(&mut payload, reply));
            self.within(envelope.timeout, called).await
        };
        match ended {
            Some(ended) => ended,
            None if payload.message.is_none() => Err(CallError::TimedOut),
            None => Err(CallError::NotAccepted(self.refuse(payload, NotAccepted::Full))),
        }
    }

    /// Like [`call`](Self::call), but gives up after this time.
    ///
    /// # Errors
    /// Those of `call`, and [`CallError::TimedOut`]; the message, if there was no room for it in
    /// time.
    ///
    /// # Cancel safety
    /// That of `call`.
    pub async fn call_timeout(&self, message: M, limit: Duration) -> Result<R, CallError<E, M>> {
        self.call_with(message, Envelope::new().timeout(limit)).await
    }

    /// Queues the message of a caller that waits for its reply.
    async fn queue_call<F>(
        &self,
        payload: &mut Outgoing<M, R, E>,
    ) -> Result<Option<ReentrancyGuard>, CallError<F, M>> {
        match self.vtable.push_call(payload, self.place_of_call()) {
            Ok(inside) => Ok(inside),
            Err(why) => self.wait_and_push_call(payload, why).await,
        }
    }

    async fn call_payload(
        &self,
        payload: &mut Outgoing<M, R, E>,
        reply: reply::Reply<R, E>,
    ) -> Result<R, CallError<E, M>> {
        let inside = self.queue_call(payload).await?;
        let reply = QueuedCall { reply, _inside: inside }.reply().await;
        reply.map_err(CallError::after_acceptance)
    }

    /// Makes a message that carries its own reply port, sends it, and waits for the reply: so one
    /// actor can give replies of different types.
    ///
    /// ```
    /// # use greenroom::{ReplyPort, prelude::*};
    /// enum Account {
    ///     Deposit(u64),
    ///     Balance(ReplyPort<u64>),
    ///     Owner(ReplyPort<String>),
    /// }
    ///
    /// struct Ledger(u64);
    ///
    /// impl Actor for Ledger {
    ///     type Message = Account;
    ///     type Reply = ();
    ///     type Error = std::convert::Infallible;
    ///
    ///     async fn handle(&mut self, message: Account, _cx: &mut Context<Self>) -> Result<(), Self::Error> {
    ///         match message {
    ///             Account::Deposit(amount) => self.0 += amount,
    ///             Account::Balance(port) => drop(port.reply(self.0)),
    ///             Account::Owner(port) => drop(port.reply("Ada".to_owned())),
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let account = Pool::new(|_slot| Ledger(0)).workers(1).spawn().await?;
    /// account.send(Account::Deposit(7)).await?;
    /// let balance: u64 = account.ask(Account::Balance).await?;
    /// let owner: String = account.ask(Account::Owner).await?;
    /// assert_eq!((balance, owner.as_str()), (7, "Ada"));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of [`call`](Self::call), but the message, which carries the port, is not given back.
    /// If a message is not answered, its port is dropped with it: [`CallError::Dropped`].
    ///
    /// # Cancel safety
    /// Dropping the future gives up the reply. The message is still handled: only its handler knows
    /// its port.
    pub async fn ask<T, F>(
        &self,
        message: impl FnOnce(ReplyPort<T, F>) -> M,
    ) -> Result<T, CallError<F>> {
        let (port, reply) = reply::channel();
        let mut payload = Outgoing::new(message(port), None);
        let queued = self.queue_call(&mut payload).await;
        let _inside = queued.map_err(CallError::without_message)?;
        drop(payload);
        reply.await.unwrap_or(Err(CallError::Dropped))
    }

    /// Passes this pool a message that was sent to another pool: this one is its fallback. A
    /// refused message stays in its place.
    pub(crate) fn take_over(&self, payload: &mut Outgoing<M, R, E>) -> Result<(), Refused> {
        self.vtable.try_push(payload, self.place(), Urgency::Now).map_err(|refused| match refused {
            Refused::Dropped => Refused::Dropped,
            _ => Refused::Rejected,
        })
    }

    /// Like `take_over`, for as many messages from the front as there is room for.
    pub(crate) fn take_over_many(&self, messages: &mut VecDeque<M>) -> Result<usize, Refused> {
        if messages.is_empty() {
            return Ok(0);
        }
        let taken = self.vtable.try_push_many(messages, self.place(), Urgency::Now);
        taken.map_err(|_| Refused::Rejected)
    }
}

impl<M: Send, R: Send, E: Send> Address<M, R, E> {
    /// Sends a message and waits for its reply. There is no timeout: a call ends when the message
    /// has its outcome. Handlers of two pools that call each other may wait in a circle, forever:
    /// limit the calls that handlers make ([`call_timeout`](Self::call_timeout); see [Calls in a
    /// circle](crate::pool#calls-in-a-circle)).
    ///
    /// # Errors
    /// How the message ended without a reply; the message, if it was not accepted.
    /// [`CallError::WouldDeadlock`] if the caller is a handler of this very pool and no other
    /// worker is left to answer, or a policy chooses the caller itself, or the caller has the key
    /// of the message in hand.
    ///
    /// # Cancel safety
    /// Dropping the future abandons the call: a message that has not been started is skipped
    /// when its turn comes.
    #[inline]
    pub fn call(&self, message: M) -> Call<'_, M, R, E> {
        Call::new(self, message)
    }
}

impl<M, R, E> Address<M, R, E> {
    /// Waits for the future, up to the limit if there is one.
    async fn within<F: Future>(&self, limit: Option<Duration>, future: F) -> Option<F::Output> {
        match limit {
            Some(limit) => timed::within(self.runtime(), limit, future).await.ok(),
            None => Some(future.await),
        }
    }
}
