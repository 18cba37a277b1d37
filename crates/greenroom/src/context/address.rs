//! A worker's own address.

use std::sync::Arc;

use super::Context;
use crate::{Actor, Address, address::vtable::SenderVtable};

/// The address of an actor of this type, or of a pool of them.
///
/// ```
/// # use greenroom::{AddressOf, prelude::*};
/// # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = u8; type Error = ();
/// # async fn handle(&mut self, page: u8, _: &mut Context<Self>) -> Result<u8, ()> { Ok(page) } }
/// /// Has its pages looked at by clerks.
/// struct Desk {
///     clerks: AddressOf<Clerk>,
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clerks = Pool::new(|_slot| Clerk).spawn().await?;
/// let desk = Desk { clerks: clerks.address() };
/// assert_eq!(desk.clerks.call(7).await, Ok(7));
/// # Ok(()) }
/// ```
pub type AddressOf<A> = Address<<A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error>;

impl<A: Actor> Context<A> {
    /// The actor's own address: that of its pool, whose messages any of its workers may handle; for
    /// an actor that stands alone, its own. Each call returns another sender.
    ///
    /// `None` once the last address of the pool has been dropped: the pool drains then, and takes
    /// no more messages. Also `None` for the actor of a [batched](crate::Pool::batched) pool, which
    /// handles batches while its pool takes single messages.
    ///
    /// Like any address, it keeps the pool running. An actor that keeps its own address, or passes
    /// it to a task, should keep a weak one ([`downgrade`](Address::downgrade)); otherwise its pool
    /// ends only when it is stopped.
    ///
    /// ```
    /// # use greenroom::prelude::*;
    /// # use std::time::Duration;
    /// /// Counts down, one step a second.
    /// struct Countdown(tokio::sync::mpsc::UnboundedSender<u32>);
    ///
    /// impl Actor for Countdown {
    ///     type Message = u32;
    ///     type Reply = ();
    ///     type Error = std::convert::Infallible;
    ///
    ///     async fn handle(
    ///         &mut self,
    ///         left: u32,
    ///         cx: &mut Context<Self>,
    ///     ) -> Result<(), Self::Error> {
    ///         let _ = self.0.send(left);
    ///         if let (Some(me), Some(next)) = (cx.address(), left.checked_sub(1)) {
    ///             let weak = me.downgrade();
    ///             tokio::spawn(async move {
    ///                 tokio::time::sleep(Duration::from_secs(1)).await;
    ///                 if let Some(me) = weak.upgrade() {
    ///                     let _ = me.send(next).await;
    ///                 }
    ///             });
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (seen, mut steps) = tokio::sync::mpsc::unbounded_channel();
    /// let countdown = Pool::one(Countdown(seen)).spawn().await?;
    /// countdown.send(2).await?;
    /// let seen = [steps.recv().await, steps.recv().await, steps.recv().await];
    /// assert_eq!(seen, [Some(2), Some(1), Some(0)]);
    /// # Ok(()) }
    /// ```
    pub fn address(&self) -> Option<AddressOf<A>> {
        let sender = self.place.home.upgrade()?.sender();
        let sender = sender.downcast::<Arc<dyn SenderVtable<A::Message, A::Reply, A::Error>>>();
        Address::of_living(*sender.ok()?)
    }
}
