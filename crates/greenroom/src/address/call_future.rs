//! The future of a call.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use greenroom_queue::handoff::HandedOutcome;

use crate::{
    CallError, Class, ReplyPort,
    address::{parcels::refusal_of, vtable::NotSent},
    delivery::Extra,
    pool::{
        Address,
        handoff::{reentrancy::ReentrancyGuard, wait::HandoffWait},
        outgoing::Outgoing,
    },
    reply::{self, Reply},
};

/// The future of [`Address::call`]: resolves once the message has its outcome.
///
/// Written by hand, so that a poll for the reply looks at nothing else. Waiting for room is
/// rare, and is in a box.
#[must_use = "nothing is sent before the future is polled"]
pub struct Call<'a, M, R, E> {
    address: &'a Address<M, R, E>,
    state: State<'a, M, R, E>,
}

enum State<'a, M, R, E> {
    /// To be sent.
    Message(M),
    QueuedCall(QueuedCall<R, E>),
    /// A worker has been woken for it.
    Handed(HandoffWait<'a, M, R, E>),
    /// Waits for room, and then for the reply.
    Waits(Waits<'a, M, R, E>),
    Done,
}

type Waits<'a, M, R, E> = Pin<Box<dyn Future<Output = Result<R, CallError<E, M>>> + Send + 'a>>;

/// A queued call. Its fields drop in this order, so that the reentrancy guard
/// outlives the receiver.
pub(super) struct QueuedCall<R, E> {
    pub(super) reply: Reply<R, E>,
    /// The caller is a worker of the pool.
    pub(super) _inside: Option<ReentrancyGuard>,
}

impl<R, E> QueuedCall<R, E> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<R, CallError<E>>> {
        Pin::new(&mut self.reply).poll(cx).map(|reply| reply.unwrap_or(Err(CallError::Dropped)))
    }

    /// The reply, once it is there.
    pub(super) async fn reply(mut self) -> Result<R, CallError<E>> {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }
}

/// Nothing in it is pinned but the box.
impl<M, R, E> Unpin for Call<'_, M, R, E> {}

impl<'a, M: Send, R: Send, E: Send> Call<'a, M, R, E> {
    #[inline]
    pub(super) fn new(address: &'a Address<M, R, E>, message: M) -> Self {
        Self { address, state: State::Message(message) }
    }

    #[inline]
    fn start(&mut self, message: M, cx: &mut Context<'_>) -> Poll<Result<R, CallError<E, M>>> {
        let address = self.address;
        let mut message = Some(message);
        match address.vtable.serve(&mut message, address.place_of_call(), cx.waker()) {
            Some(waits) => {
                self.goes_on(State::Handed(waits));
                Poll::Pending
            }
            None => {
                let (port, reply) = reply::channel();
                self.queue(message, port, reply, cx)
            }
        }
    }

    /// Queues a call that cannot be handed to a worker.
    #[inline(never)]
    fn queue(
        &mut self,
        message: Option<M>,
        port: ReplyPort<R, E>,
        reply: Reply<R, E>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<R, CallError<E, M>>> {
        let address = self.address;
        let mut payload =
            Outgoing { message, extra: Some(Extra::new(Some(port))), class: Class::Normal };
        match address.vtable.push_call(&mut payload, address.place_of_call()) {
            Ok(inside) => self.wait_for(QueuedCall { reply, _inside: inside }, cx),
            Err(why) => self.refused(why, payload, reply, cx),
        }
    }

    /// The outcome of a message that was handed to a worker.
    #[inline]
    fn was_handed(
        &mut self,
        told: HandedOutcome<R, Reply<R, E>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<R, CallError<E, M>>> {
        if let State::Handed(waits) = std::mem::replace(&mut self.state, State::Done) {
            waits.leave();
        }
        match told {
            HandedOutcome::Response(reply) => Poll::Ready(Ok(reply)),
            HandedOutcome::Later(reply) => self.wait_for(QueuedCall { reply, _inside: None }, cx),
        }
    }

    fn wait_for(
        &mut self,
        mut sent: QueuedCall<R, E>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<R, CallError<E, M>>> {
        let polled = sent.poll(cx);
        if polled.is_pending() {
            self.goes_on(State::QueuedCall(sent));
        }
        polled.map_err(CallError::after_acceptance)
    }

    /// Sets the state of a call that has none at the moment, so there is no old state to drop.
    #[inline]
    fn goes_on(&mut self, state: State<'a, M, R, E>) {
        let before = std::mem::replace(&mut self.state, state);
        debug_assert!(matches!(before, State::Done), "it was taken out");
        std::mem::forget(before);
    }

    #[cold]
    fn refused(
        &mut self,
        why: NotSent,
        mut payload: Outgoing<M, R, E>,
        reply: Reply<R, E>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<R, CallError<E, M>>> {
        let address = self.address;
        let mut waits: Waits<'a, M, R, E> = Box::pin(async move {
            let inside = address.wait_and_push_call(&mut payload, why).await?;
            let reply = QueuedCall { reply, _inside: inside }.reply().await;
            reply.map_err(CallError::after_acceptance)
        });
        let polled = waits.as_mut().poll(cx);
        if polled.is_pending() {
            self.state = State::Waits(waits);
        }
        polled
    }
}

impl<M, R, E> Address<M, R, E> {
    /// Queues a call that was not queued at once, as soon as there is room for it.
    pub(super) async fn wait_and_push_call<F>(
        &self,
        payload: &mut Outgoing<M, R, E>,
        why: NotSent,
    ) -> Result<Option<ReentrancyGuard>, CallError<F, M>> {
        let NotSent::Refused(refused, inside) = why else {
            self.vtable.count_rejected();
            return Err(CallError::WouldDeadlock(payload.message.take()));
        };
        match Box::pin(self.wait_and_push(payload, refused)).await {
            Ok(()) => Ok(inside),
            Err(why) => {
                self.vtable.count_rejected();
                Err(refusal_of(payload, why))
            }
        }
    }
}

impl<M: Send, R: Send, E: Send> Future for Call<'_, M, R, E> {
    type Output = Result<R, CallError<E, M>>;

    // Always inlined: the caller looks at the outcome in place, and the rest is in
    // functions of their own.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let reply = match &mut this.state {
            State::Handed(waits) => {
                let told = ready!(waits.poll(cx));
                return this.was_handed(told, cx);
            }
            State::QueuedCall(sent) => {
                let reply = ready!(sent.poll(cx));
                if let State::QueuedCall(sent) = std::mem::replace(&mut this.state, State::Done) {
                    drop(sent);
                }
                return Poll::Ready(reply.map_err(CallError::after_acceptance));
            }
            State::Waits(waits) => ready!(waits.as_mut().poll(cx)),
            State::Message(_) | State::Done => {
                return match std::mem::replace(&mut this.state, State::Done) {
                    State::Message(message) => this.start(message, cx),
                    _ => panic!("a call is polled again although it is done"),
                };
            }
        };
        this.state = State::Done;
        Poll::Ready(reply)
    }
}

impl<M, R, E> fmt::Debug for Call<'_, M, R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Message(_) => "not sent",
            State::Waits(_) => "waits for room",
            State::QueuedCall(_) | State::Handed(_) => "waits for its reply",
            State::Done => "done",
        };
        f.debug_struct("Call").field("state", &state).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use crate::{Actor, Context as Life, Pool, SendError, address::call_future::*};

    struct Slow;

    impl Actor for Slow {
        type Message = bool;
        type Reply = bool;
        type Error = ();

        async fn handle(&mut self, at_once: bool, _: &mut Life<Self>) -> Result<bool, ()> {
            if !at_once {
                tokio::task::yield_now().await;
            }
            Ok(at_once)
        }
    }

    async fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
        poll_fn(|cx| Poll::Ready(Pin::new(&mut *future).poll(cx))).await
    }

    #[tokio::test]
    async fn a_call_sends_when_it_is_first_polled_and_says_how_far_it_is() {
        let pool = Pool::new(|_| Slow).workers(1).capacity(1).spawn().await.unwrap();
        let address = pool.address();
        let (mut first, mut second) = (address.call(false), address.call(true));
        assert_eq!(
            (format!("{first:?}"), pool.stats().accepted),
            ("Call { state: \"not sent\", .. }".into(), 0)
        );
        assert!(poll_once(&mut first).await.is_pending());
        assert_eq!(
            (format!("{first:?}"), pool.stats().accepted),
            ("Call { state: \"waits for its reply\", .. }".into(), 1)
        );
        assert!(poll_once(&mut second).await.is_pending());
        assert_eq!(
            (format!("{second:?}"), pool.stats().accepted),
            ("Call { state: \"waits for room\", .. }".into(), 1)
        );
        assert_eq!((&mut second).await, Ok(true));
        assert_eq!((&mut first).await, Ok(false));
        assert_eq!(
            (format!("{first:?}"), format!("{second:?}")),
            ("Call { state: \"done\", .. }".into(), "Call { state: \"done\", .. }".into())
        );
        assert!(pool.stats().ledger_holds());
    }

    #[tokio::test]
    #[should_panic(expected = "although it is done")]
    async fn a_call_that_is_done_is_not_polled_again() {
        let pool = Pool::new(|_| Slow).workers(1).spawn().await.unwrap();
        let address = pool.address();
        let mut call = address.call(true);
        assert_eq!((&mut call).await, Ok(true));
        let _ = poll_once(&mut call).await;
    }

    #[tokio::test]
    async fn a_call_that_waits_for_room_ends_with_its_pool() {
        let pool = Pool::new(|_| Slow).workers(1).capacity(1).spawn().await.unwrap();
        let (address, held) = (pool.address(), pool.address());
        let _room = held.try_reserve().unwrap();
        let mut call = address.call(true);
        assert!(poll_once(&mut call).await.is_pending());
        let (ended, _) = tokio::join!(call, pool.stop(crate::Stop::Now));
        assert_eq!(ended, Err(SendError::Stopped(true).into()));
    }
}
