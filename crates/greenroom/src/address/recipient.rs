//! An address that is only typed by its message.

use std::{future::Future, pin::Pin, sync::Arc};

use crate::{Address, AnyAddress, SendError, TrySendError};

type BoxedSend<'a, M> = Pin<Box<dyn Future<Output = Result<(), SendError<M>>> + Send + 'a>>;

/// Accepts an `M`, whatever its reply and error types. Object-safe.
trait Takes<M>: Send + Sync {
    fn try_send(&self, message: M) -> Result<(), TrySendError<M>>;
    fn send(&self, message: M) -> BoxedSend<'_, M>;
    fn erase(&self) -> AnyAddress;
}

impl<M, R, E> Takes<M> for Address<M, R, E>
where
    M: Send + 'static,
    R: Send + 'static,
    E: Send + 'static,
{
    fn try_send(&self, message: M) -> Result<(), TrySendError<M>> {
        Address::try_send(self, message)
    }

    fn send(&self, message: M) -> BoxedSend<'_, M> {
        Box::pin(Address::send(self, message))
    }

    fn erase(&self) -> AnyAddress {
        Address::erase(self)
    }
}

/// An address of an actor or pool that handles `M`, whatever its reply and error types: for senders
/// that expect no reply, and for receivers of many kinds. It keeps the pool alive, like an address.
///
/// A clone is cheap and is the same sender: messages sent through either are
/// queued together, in order.
///
/// ```
/// # use greenroom::{prelude::*, Recipient};
/// # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = u8; type Error = ();
/// # async fn handle(&mut self, page: u8, _: &mut Context<Self>) -> Result<u8, ()> { Ok(page) } }
/// # struct Audit; impl Actor for Audit { type Message = u8; type Reply = (); type Error = String;
/// # async fn handle(&mut self, _: u8, _: &mut Context<Self>) -> Result<(), String> { Ok(()) } }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (clerks, audit) = (Pool::new(|_| Clerk).spawn().await?, Pool::new(|_| Audit).spawn().await?);
/// let all: [Recipient<u8>; 2] = [clerks.address().into(), audit.address().into()];
/// for one in &all {
///     one.send(7).await?;
/// }
/// # Ok(()) }
/// ```
pub struct Recipient<M> {
    address: Arc<dyn Takes<M>>,
}

impl<M> Recipient<M> {
    /// Like [`Address::try_send`].
    ///
    /// # Errors
    /// The message, with the reason, if it was not accepted.
    pub fn try_send(&self, message: M) -> Result<(), TrySendError<M>> {
        self.address.try_send(message)
    }

    /// Like [`Address::send`], at the price of one more allocation.
    ///
    /// # Errors
    /// The message, if the pool has stopped or has no workers left.
    ///
    /// # Cancel safety
    /// A dropped future has either queued the message or done nothing; the message is dropped
    /// with it in that case.
    pub async fn send(&self, message: M) -> Result<(), SendError<M>> {
        self.address.send(message).await
    }

    /// The address without its types. It does not keep the pool alive.
    pub fn erase(&self) -> AnyAddress {
        self.address.erase()
    }
}

impl<M, R, E> From<Address<M, R, E>> for Recipient<M>
where
    M: Send + 'static,
    R: Send + 'static,
    E: Send + 'static,
{
    fn from(address: Address<M, R, E>) -> Self {
        Self { address: Arc::new(address) }
    }
}

impl_clone!([M] Recipient<M>: address);

impl_debug!([M] Recipient<M>, |this| to: this.address.erase());
