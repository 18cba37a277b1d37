//! An address that does not keep its pool alive.
//!
//! A pool drains and stops when its last [`Address`] is dropped. An occasional sender (a
//! subscription, a registry, a timer) must not keep the pool running forever: it holds a weak
//! address, and upgrades it for the moment of the send.

use crate::{
    AnyAddress,
    address::{Address, vtable::WeakSenderVtable},
};

/// An address that does not keep its pool alive. Cheap to clone.
///
/// ```
/// # use greenroom::prelude::*;
/// # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = u8; type Error = ();
/// # async fn handle(&mut self, page: u8, _: &mut Context<Self>) -> Result<u8, ()> { Ok(page) } }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::new(|_slot| Clerk).spawn().await?;
/// let weak = pool.downgrade();
/// assert!(weak.upgrade().is_some());
/// drop(pool); // the last address: the pool drains and stops
/// assert!(weak.upgrade().is_none());
/// # Ok(()) }
/// ```
pub struct WeakAddress<M, R, E> {
    vtable: WeakSenderVtable<M, R, E>,
    /// That of the original address: messages through either are queued together, in order.
    place: u32,
}

impl<M, R, E> Address<M, R, E> {
    /// The same address, without keeping the pool alive.
    pub fn downgrade(&self) -> WeakAddress<M, R, E> {
        WeakAddress { vtable: self.vtable.clone().downgrade(), place: self.place() }
    }
}

impl<M, R, E> WeakAddress<M, R, E> {
    /// The address, while others hold one. Not a new sender: messages sent through it queue in
    /// order with those sent through the address that this one was made from, and through
    /// every other upgrade.
    ///
    /// `None` once the last address of the pool has been dropped. A pool that was stopped
    /// explicitly has an address as long as one is held; sends to it are refused.
    pub fn upgrade(&self) -> Option<Address<M, R, E>> {
        let vtable = self.vtable.upgrade()?;
        vtable.try_handle_made().then(|| Address::at(vtable, self.place))
    }

    /// True while the pool accepts messages. It may end right afterwards.
    pub fn is_alive(&self) -> bool {
        self.vtable.upgrade().is_some_and(|vtable| !vtable.is_closed())
    }
}

impl<M: 'static, R: 'static, E: 'static> WeakAddress<M, R, E> {
    /// The address without its types.
    pub fn erase(&self) -> AnyAddress {
        match &self.vtable {
            WeakSenderVtable::Worker(worker) => worker.any(),
            WeakSenderVtable::Pool(vtable) => match vtable.upgrade() {
                Some(there) => there.any(),
                None => AnyAddress::gone(vtable.clone()),
            },
        }
    }
}

impl_clone!([M, R, E] WeakAddress<M, R, E>: vtable, place);

impl_debug!([M, R, E] WeakAddress<M, R, E>, |this| place: this.place);
