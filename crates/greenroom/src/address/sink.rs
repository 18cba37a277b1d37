//! A pool as a [`futures::Sink`](futures_sink::Sink).

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_sink::Sink;

use crate::{
    SendError,
    address::{Address, readiness::Readiness},
};

/// A pool for streams to flow into, with back-pressure: the stream waits while the pool is full.
///
/// A message counts as flushed once it is *accepted*, not handled: flushing and closing return at
/// once. Closing returns an unused permit and leaves the pool running; stop the pool to wait until
/// messages are handled.
///
/// It is a separate type for the reason that [`PoolService`](crate::service::PoolService) gives.
/// All messages of one sink form one line; a clone is another sender and starts without a permit.
///
/// ```
/// # use greenroom::prelude::*;
/// use futures_util::{StreamExt, stream};
///
/// # struct Print; impl Actor for Print { type Message = u32; type Reply = (); type Error = ();
/// # async fn handle(&mut self, _: u32, _: &mut Context<Self>) -> Result<(), ()> { Ok(()) } }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::new(|_slot| Print).workers(1).capacity(10).spawn().await?;
/// stream::iter(0..1_000).map(Ok).forward(pool.sink()).await?;
/// assert_eq!(pool.stats().accepted, 1_000);
/// # Ok(()) }
/// ```
pub struct PoolSink<M, R, E> {
    address: Address<M, R, E>,
    readiness: Readiness<M, R, E>,
    /// A message that the pool had room for, but not its key: it waits there.
    behind_key: Option<SinkFuture<M>>,
}

type SinkFuture<M> = Pin<Box<dyn Future<Output = Result<(), SinkError<M>>> + Send>>;

impl<M, R, E> Address<M, R, E> {
    /// This pool as a sink. The sink is another sender, and counts as an address.
    pub fn sink(&self) -> PoolSink<M, R, E> {
        PoolSink { address: self.clone(), readiness: Readiness::new(), behind_key: None }
    }
}

impl<M, R, E> PoolSink<M, R, E> {
    /// Ready once nothing waits behind its key.
    fn poll_line(&mut self, task: &mut Context<'_>) -> Poll<Result<(), SinkError<M>>> {
        let Some(waiting) = &mut self.behind_key else { return Poll::Ready(Ok(())) };
        let queued = ready!(waiting.as_mut().poll(task));
        self.behind_key = None;
        Poll::Ready(queued)
    }
}

impl<M, R, E> Clone for PoolSink<M, R, E> {
    fn clone(&self) -> Self {
        self.address.sink()
    }
}

impl<M: Send + 'static, R: Send + 'static, E: Send + 'static> Sink<M> for PoolSink<M, R, E> {
    type Error = SinkError<M>;

    /// Ready once a permit is held, which the next message uses.
    fn poll_ready(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Result<(), Self::Error>> {
        ready!(self.poll_line(task))?;
        let Self { address, readiness, .. } = &mut *self;
        readiness.poll(address, task).map_err(|why| SendError::new(None, why))
    }

    /// Queues the message.
    ///
    /// # Panics
    /// If the sink is not ready; and if the key function of the pool panics: nothing has been
    /// accepted then.
    #[track_caller]
    #[expect(clippy::expect_used, reason = "a documented panic: the contract asks for poll_ready")]
    fn start_send(mut self: Pin<&mut Self>, message: M) -> Result<(), Self::Error> {
        let permit = self.readiness.take().expect("poll_ready has not been ready before this send");
        match permit.send(message) {
            Err(SendError::KeyFull(message)) => {
                let address = self.address.same_sender();
                self.behind_key =
                    Some(Box::pin(async move { address.send(message).await.map_err(sink_error) }));
                Ok(())
            }
            sent => sent.map_err(sink_error),
        }
    }

    /// Returns at once, if nothing waits behind its key: every message sent has been accepted.
    fn poll_flush(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Result<(), Self::Error>> {
        self.poll_line(task)
    }

    /// Like flushing; a held permit goes to the next waiting sender.
    fn poll_close(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Result<(), Self::Error>> {
        ready!(self.poll_line(task))?;
        drop(self.readiness.take());
        Poll::Ready(Ok(()))
    }
}

impl_debug!([M, R, E] PoolSink<M, R, E>, |this| address: this.address);

/// Why a sink did not accept a message; with the message, if there was one.
pub type SinkError<M> = SendError<Option<M>>;

fn sink_error<M>(error: SendError<M>) -> SinkError<M> {
    let why = error.without_message();
    SendError::new(error.into_message(), why)
}
