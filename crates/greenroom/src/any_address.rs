//! An address without its types: for lists of actors that handle different things.

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::{Arc, Weak},
};

use crate::{
    Address, Stop,
    pool::{StopSummary, erased::Erased},
};

/// What can be had of an actor or a pool without knowing what it handles: which it is, its name, whether it lives, and
/// its end. It does not keep the pool alive.
///
/// Two of them are equal when they are of the same pool.
///
/// ```
/// # use greenroom::prelude::*;
/// # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = u8; type Error = ();
/// # async fn handle(&mut self, page: u8, _: &mut Context<Self>) -> Result<u8, ()> { Ok(page) } }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::new(|_slot| Clerk).name("clerks").spawn().await?;
/// let any = pool.erase();
/// assert_eq!(any, pool.address().erase());
/// assert!(any.is_alive());
/// any.stop(Stop::Now).await;
/// assert!(!any.is_alive());
/// assert_eq!(any.name(), "clerks");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct AnyAddress {
    door: Weak<dyn Erased>,
    /// Kept here too, so that one who is gone can be named.
    name: Option<Arc<str>>,
}

impl AnyAddress {
    pub(crate) fn new(door: Weak<dyn Erased>) -> Self {
        let name = door.upgrade().map(|door| door.name());
        Self { door, name }
    }

    /// The name of the pool, also when it is gone; empty where it was gone already when this was made of a weak address.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// True while it accepts messages. It may end right afterwards.
    pub fn is_alive(&self) -> bool {
        self.living().is_some_and(|door| !door.is_closed())
    }

    /// Stops it, as [`Pool::stop`](crate::Pool::stop) does. What was left over is counted here and kept for who stops
    /// the pool through its own handle. `None` when nothing of it is left.
    ///
    /// # Cancel safety
    /// A dropped future has closed the pool once it was polled; call again to see it end.
    pub async fn stop(&self, how: Stop) -> Option<StopSummary> {
        let door = self.door.upgrade()?;
        Some(door.stop_unknown(how).await)
    }

    /// For callers that hold a lock: the last one to drop the pool's core runs user code, so it must be dropped after
    /// the lock.
    pub(crate) fn living(&self) -> Option<Arc<dyn Erased>> {
        self.door.upgrade()
    }

    /// Where the pool lies. Nothing else comes to lie there as long as an address, weak or not, is held.
    fn place(&self) -> *const () {
        self.door.as_ptr().cast()
    }
}

impl<M: 'static, R: 'static, E: 'static> Address<M, R, E> {
    /// The address without its types. It does not keep the pool alive.
    pub fn erase(&self) -> AnyAddress {
        self.downgrade().erase()
    }
}

impl PartialEq for AnyAddress {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for AnyAddress {}

impl Hash for AnyAddress {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.place().hash(state);
    }
}

impl fmt::Debug for AnyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyAddress").field("name", &self.name()).finish_non_exhaustive()
    }
}
