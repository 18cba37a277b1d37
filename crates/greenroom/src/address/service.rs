//! A pool as a [`tower::Service`](tower_service::Service).

use std::task::{Context, Poll};

use tower_service::Service;

use crate::{
    CallError, SendError,
    address::{Address, calling::Calling, permit::Permit, readiness::Readiness},
};

pub use crate::address::sink::{PoolSink, SinkError};

/// A pool for tower's layers and for servers built on them: a request is a message, the
/// response is its reply.
///
/// ```text
/// poll_ready ──▶ waits for room ──▶ holds a permit ──call──▶ queued ──▶ handled ──▶ response
///                     │                   │
///                     └── drop: the room goes to the next waiting sender
/// ```
///
/// It is a separate type, not [`Address`] itself: a ready service holds a permit, and an address is
/// shared by reference and has no place for one.
///
/// A clone starts without a permit and is another sender. A service that was not ready keeps its
/// place in line as long as it is kept, and is granted room even if it is not polled; drop services
/// that you do not use. With tower's load-shed layer around it, a full pool answers `Overloaded` at
/// once. Such layers require a standard error, which [`CallError`] is if the actor's error is one;
/// a text, for instance, becomes one through tower's `map_err`.
///
/// ```
/// # use greenroom::prelude::*;
/// use tower::{Service, ServiceBuilder, ServiceExt, load_shed::error::Overloaded};
///
/// # struct Slow; impl Actor for Slow { type Message = u32; type Reply = u32; type Error = std::convert::Infallible;
/// # async fn handle(&mut self, _: u32, _: &mut Context<Self>) -> Result<u32, Self::Error> { std::future::pending().await } }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::new(|_slot| Slow).workers(1).capacity(1).spawn().await?;
/// let held = pool.reserve().await?;
/// let service = ServiceBuilder::new().load_shed().service(pool.service());
/// assert!(service.oneshot(1).await.is_err_and(|error| error.is::<Overloaded>()));
/// # drop(held);
/// # Ok(()) }
/// ```
pub struct PoolService<M, R, E> {
    address: Address<M, R, E>,
    readiness: Readiness<M, R, E>,
}

impl<M, R, E> Address<M, R, E> {
    /// This pool as a service. The service is another sender, and counts as an address.
    pub fn service(&self) -> PoolService<M, R, E> {
        PoolService { address: self.clone(), readiness: Readiness::new() }
    }
}

impl<M, R, E> Clone for PoolService<M, R, E> {
    fn clone(&self) -> Self {
        self.address.service()
    }
}

impl<M: 'static, R: 'static, E: 'static> Service<M> for PoolService<M, R, E> {
    type Response = R;
    type Error = CallError<E>;
    type Future = Calling<R, E>;

    /// Ready once a permit is held, which the next call uses.
    ///
    /// # Errors
    /// [`CallError::NotAccepted`], if the pool accepts no more messages. An earlier permit is not
    /// checked again: the call then fails.
    fn poll_ready(&mut self, task: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        let ready = self.readiness.poll(&self.address, task);
        ready.map_err(|why| CallError::NotAccepted(SendError::new((), why)))
    }

    /// Queues the message before it returns; the future waits for the reply, and is as cancel-safe
    /// as [`Address::call`].
    ///
    /// # Panics
    /// If the service is not ready; and if the key function of the pool panics: nothing has been
    /// accepted then.
    #[track_caller]
    #[expect(
        clippy::expect_used,
        reason = "a documented panic: tower's contract asks for poll_ready"
    )]
    fn call(&mut self, message: M) -> Calling<R, E> {
        let permit: Option<Permit<M, R, E>> = self.readiness.take();
        let permit = permit.expect("poll_ready has not been ready before this call");
        permit.call(message).without_message()
    }
}

impl_debug!([M, R, E] PoolService<M, R, E>, |this| address: this.address);
