//! The actor: state that handles one message at a time.

use std::{
    future::Future,
    pin::Pin,
    task::{self, Poll},
};

use pin_project_lite::pin_project;

use crate::{AnyAddress, Context, Delivery, ExitReason, OnExit};

/// State that handles one message at a time.
///
/// One method serves sends and calls: the reply of a send is dropped. The simple case is
/// [`handle`](Self::handle), which owns the message. An actor that wants to keep the message in
/// place (to look only, to answer later) implements [`receive`](Self::receive) instead.
///
/// ```
/// use greenroom::prelude::*;
///
/// struct Counter(u64);
///
/// impl Actor for Counter {
///     type Message = u64;
///     type Reply = u64;
///     type Error = std::convert::Infallible;
///
///     async fn handle(&mut self, add: u64, _cx: &mut Context<Self>) -> Result<u64, Self::Error> {
///         self.0 += add;
///         Ok(self.0)
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let counter = Pool::new(|_slot| Counter(0)).workers(1).spawn().await?;
/// counter.send(2).await?;
/// assert_eq!(counter.call(3).await?, 5);
/// # Ok(()) }
/// ```
pub trait Actor: Sized + Send + 'static {
    /// The type of its messages.
    type Message: Send + 'static;
    /// The reply to a call.
    type Reply: Send + 'static;
    /// The error of a handler. It is a result, not a crash: the worker continues.
    type Error: Send + 'static;

    /// Whether [`receive`](Self::receive) leaves the message in its delivery for as long as the
    /// handler may fail. Retries, parked keys and replays then work for messages of any type, and
    /// nothing is copied.
    ///
    /// Otherwise the handler owns the message, and these need a copy of it: see
    /// [`PoolBuilder::retry`](crate::PoolBuilder::retry) and
    /// [`keep_copies`](crate::PoolBuilder::keep_copies). A pool that is asked for one of them and
    /// has neither is refused by [`spawn`](crate::PoolBuilder::spawn). If an attempt takes the
    /// message out anyway and then fails, the dead letter has no message.
    ///
    /// ```
    /// # use greenroom::{FailureTable, FinalAction, Rule, Backoff, prelude::*};
    /// # use std::time::Duration;
    /// /// Cannot be copied.
    /// struct Parcel(u32);
    ///
    /// struct Post;
    ///
    /// impl Actor for Post {
    ///     type Message = Parcel;
    ///     type Reply = u32;
    ///     type Error = &'static str;
    ///
    ///     const KEEPS_MESSAGE: bool = true;
    ///
    ///     async fn receive(
    ///         &mut self,
    ///         delivery: &mut Delivery<Parcel, u32, Self::Error>,
    ///         _cx: &mut Context<Self>,
    ///     ) -> Result<Answer<u32>, Self::Error> {
    ///         let attempt = delivery.attempt();
    ///         let parcel = delivery.message().ok_or("no parcel")?;
    ///         if attempt == 1 { Err("nobody was at home") } else { Ok(Answer::Reply(parcel.0)) }
    ///     }
    ///
    ///     async fn handle(
    ///         &mut self,
    ///         parcel: Parcel,
    ///         _cx: &mut Context<Self>,
    ///     ) -> Result<u32, Self::Error> {
    ///         Ok(parcel.0)
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
    /// let again = Rule::Retry { attempts: 3, backoff, finally: FinalAction::DeadLetter };
    /// let post = Pool::new(|_slot| Post).failure_policy(FailureTable::all(again)).spawn().await?;
    /// assert_eq!(post.call(Parcel(7)).await, Ok(7));
    /// # Ok(()) }
    /// ```
    ///
    /// The default `receive` takes the message out. So an actor that says `true` and has no
    /// `receive` of its own does not compile:
    ///
    /// ```compile_fail
    /// # use greenroom::prelude::*;
    /// struct Post;
    ///
    /// impl Actor for Post {
    ///     type Message = u32;
    ///     type Reply = ();
    ///     type Error = ();
    ///
    ///     const KEEPS_MESSAGE: bool = true;
    ///
    ///     async fn handle(&mut self, _: u32, _cx: &mut Context<Self>) -> Result<(), ()> {
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let post = Pool::new(|_slot| Post).spawn().await;
    /// # }
    /// ```
    const KEEPS_MESSAGE: bool = false;

    /// Handles one message.
    ///
    /// # Errors
    /// An error for the failure policy of the pool to decide about; by default a caller gets it,
    /// and a send becomes a dead letter.
    fn handle(
        &mut self,
        message: Self::Message,
        cx: &mut Context<Self>,
    ) -> impl Future<Output = Result<Self::Reply, Self::Error>> + Send;

    /// Handles one delivery. The runtime keeps the delivery until it is settled. A message that the
    /// handler leaves in it before an error or a panic is available for a retry or for the dead
    /// letters; an actor that always leaves it says so with [`KEEPS_MESSAGE`](Self::KEEPS_MESSAGE).
    ///
    /// # Errors
    /// Those of [`handle`](Self::handle).
    fn receive(
        &mut self,
        delivery: &mut Delivery<Self::Message, Self::Reply, Self::Error>,
        cx: &mut Context<Self>,
    ) -> impl Future<Output = Result<Answer<Self::Reply>, Self::Error>> + Send {
        const {
            assert!(
                !Self::KEEPS_MESSAGE,
                "`KEEPS_MESSAGE` is true, but this actor has no `receive` of its own, and the default takes the message"
            );
        }
        Replying { handler: self.handle(delivery.take(), cx) }
    }

    /// Called once before the first message, and again after each restart. May be slow: no other
    /// worker waits for it.
    ///
    /// # Errors
    /// The start failed; the pool tries again with backoff, or fails to spawn when
    /// no worker could start.
    fn started(
        &mut self,
        cx: &mut Context<Self>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        let _ = cx;
        std::future::ready(Ok(()))
    }

    /// Called before an actor that has ended abnormally is dropped and built again. State that the
    /// handler left half changed is still there.
    fn restarting(&mut self, reason: &ExitReason) -> impl Future<Output = ()> + Send {
        let _ = reason;
        std::future::ready(())
    }

    /// Called when a linked actor has ended (`who`), or when an exit signal arrives (`None`).
    /// Returns whether this actor ends too. By default it ends on an abnormal exit and on every
    /// signal. A signal with [`ExitReason::Killed`] does not ask.
    fn exited(
        &mut self,
        who: Option<&AnyAddress>,
        reason: &ExitReason,
        cx: &mut Context<Self>,
    ) -> impl Future<Output = OnExit> + Send {
        let _ = cx;
        let stop = who.is_none() || reason.is_abnormal();
        std::future::ready(if stop { OnExit::Stop } else { OnExit::GoOn })
    }

    /// Called once for each actor that it monitors and that has ended.
    fn down(
        &mut self,
        who: &AnyAddress,
        reason: &ExitReason,
        cx: &mut Context<Self>,
    ) -> impl Future<Output = ()> + Send {
        let _ = (who, reason, cx);
        std::future::ready(())
    }

    /// Called once when the worker ends for good: the pool has stopped, the worker has
    /// left, or it is not restarted. Not called if the worker was dropped: by a kill, or at
    /// the deadline of a stop.
    fn stopped(&mut self, reason: &ExitReason) -> impl Future<Output = ()> + Send {
        let _ = reason;
        std::future::ready(())
    }
}

/// How a delivery was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<R> {
    /// With this reply.
    Reply(R),
    /// The reply port was taken out of the delivery and is answered from elsewhere, or later.
    Deferred,
}

pin_project! {
    /// A handler whose reply answers the delivery. Written by hand: an async block would keep its
    /// own state in addition to the handler's, and move the message once more.
    struct Replying<F> {
        #[pin]
        handler: F,
    }
}

impl<R, E, F: Future<Output = Result<R, E>>> Future for Replying<F> {
    type Output = Result<Answer<R>, E>;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn poll(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        self.project().handler.poll(cx).map_ok(Answer::Reply)
    }
}
