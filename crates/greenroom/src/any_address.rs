//! An address without its types: for lists of actors that handle different things.

use std::{
    any::Any,
    future::Future,
    hash::{Hash, Hasher},
    pin::Pin,
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::runtime::Handle;

use crate::{
    ExitReason, Stop,
    inspect::{TooManyKeys, Value, WorkerStatus},
    life::{self, Alive, Life, Signal, Tie},
    pool::{
        StopSummary,
        handoff::reentrancy::{ReentrancyGuard, Reentrant},
        shares::Share,
    },
};

/// The object-safe side of a pool that has no type parameters.
pub(crate) trait Erased: Send + Sync {
    fn name(&self) -> Arc<str>;
    /// A caller is about to wait for a reply. Refused if it would wait for itself,
    /// whatever the message is.
    fn enter_any_call(&self) -> Result<Option<ReentrancyGuard>, Reentrant>;
    /// It without its types.
    fn any(self: Arc<Self>) -> AnyAddress;
    /// The shared part of the pool's addresses: an `Arc<dyn SenderVtable<M, R, E>>`.
    fn sender(self: Arc<Self>) -> Box<dyn Any>;
    /// One of its workers without its types.
    fn any_worker(self: Arc<Self>, slot: usize) -> AnyAddress;
    /// The worker with this life, if it is still in this slot.
    fn worker(self: Arc<Self>, slot: usize, life: u64) -> Option<Arc<dyn Erased>>;
    /// Publishes a value about a worker.
    fn publish(&self, slot: usize, key: &str, value: Value) -> Result<(), TooManyKeys>;
    /// Takes a signal, which comes before every message.
    fn signal(self: Arc<Self>, signal: Signal<AnyAddress>);
    /// True when the pool accepts nothing any more.
    fn is_closed(&self) -> bool;
    /// True for the pool with this identity, and for a pool that has adopted it.
    fn contains(&self, identity: usize) -> bool;
    /// Whether it runs, if it is a worker of a pool; `None` once it has gone.
    fn worker_status(&self) -> Option<WorkerStatus> {
        None
    }
    /// True when nothing of it runs any more, or no worker is left and nothing will be handled.
    fn is_over(&self) -> bool;
    /// Refuses messages from now on, and stops in the background as soon as the runtime polls it.
    fn stop_behind(self: Arc<Self>, how: Stop);
    /// Counts one more address, unless the last one has been dropped: that one drains and stops the
    /// pool, which cannot be taken back. False then.
    fn try_handle_made(&self) -> bool;
    /// Starts nothing of this share for this long. Returns false if the pool has no such share.
    fn hold_share(&self, _share: &Share, _during: Duration) -> bool {
        false
    }
    /// The runtime that the pool was spawned on.
    fn runtime(&self) -> &Handle;
    fn stop_unknown(
        self: Arc<Self>,
        how: Stop,
    ) -> Pin<Box<dyn Future<Output = StopSummary> + Send>>;
}

/// The type-independent view of an actor, a pool or a worker of a pool: its identity, its name,
/// whether it lives, and its end. It does not keep the pool alive.
///
/// Two of them are equal when they are of the same actor, pool or worker.
///
/// ```
/// # use greenroom::{ExitReason, prelude::*};
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
/// assert!(matches!(any.ended().await, ExitReason::Shutdown));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct AnyAddress {
    vtable: Weak<dyn Erased>,
    /// The slot, if it is a worker of a pool.
    slot: Option<usize>,
    /// Its identity, which outlives it.
    life: Arc<Life<Self>>,
    /// Kept here too, so that an actor that has gone can be named.
    name: Arc<str>,
}

impl AnyAddress {
    pub(crate) fn new(
        vtable: Weak<dyn Erased>,
        slot: Option<usize>,
        life: Arc<Life<Self>>,
        name: Arc<str>,
    ) -> Self {
        Self { vtable, slot, life, name }
    }

    /// The address of an actor that has gone entirely.
    pub(crate) fn gone(vtable: Weak<dyn Erased>) -> Self {
        Self::new(vtable, None, Arc::new(Life::over()), Arc::from(""))
    }

    /// The name, also after it has gone; empty if it had already gone when this was made
    /// from a weak address.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True while it accepts messages. It may end right afterwards.
    pub fn is_alive(&self) -> bool {
        self.living().is_some_and(|vtable| !vtable.is_closed())
    }

    /// How it has ended, if it has.
    pub fn exit_reason(&self) -> Option<ExitReason> {
        self.life.ended()
    }

    /// Waits for its end. Restarts are not its end.
    ///
    /// # Cancel safety
    /// Nothing is lost with a dropped future; call again.
    pub async fn ended(&self) -> ExitReason {
        self.life.end_of().await
    }

    /// Sends an exit signal. A pool stops with all its workers, whatever the reason, after the
    /// messages in hand. An actor, or a worker of a pool, is asked first
    /// ([`Actor::exited`](crate::Actor::exited)), unless the reason is [`ExitReason::Killed`]: that
    /// one cannot be trapped, and drops a handler at its next await. The message in hand then
    /// follows the failure table ([`Cause::Kill`](crate::failure::Cause::Kill)).
    pub fn exit(&self, reason: ExitReason) {
        self.signal(Signal::Exit { from: None, reason });
    }

    /// Links the two: when one of them ends abnormally, the other is notified and stops,
    /// unless it traps the exit.
    pub fn link(&self, other: &Self) {
        life::tie(self, other, Tie::Link);
    }

    /// Removes the link, if there is one.
    pub fn unlink(&self, other: &Self) {
        life::untie(self, other, Tie::Link);
    }

    /// Stops it, as [`Pool::stop`](crate::Pool::stop) does; a worker of a pool leaves it. Leftover
    /// messages are counted here, and kept for a stop through the pool's own handle. `None` if
    /// nothing of it is left.
    ///
    /// # Cancel safety
    /// A dropped future has closed the pool once it was polled; call again to see it end.
    pub async fn stop(&self, how: Stop) -> Option<StopSummary> {
        let vtable = self.living()?;
        Some(vtable.stop_unknown(how).await)
    }

    /// For callers that hold a lock: the last one to drop the pool's core runs user code, so it
    /// must be dropped after the lock.
    pub(crate) fn living(&self) -> Option<Arc<dyn Erased>> {
        let vtable = self.vtable.upgrade()?;
        match self.slot {
            Some(slot) => vtable.worker(slot, self.life.id()),
            None => Some(vtable),
        }
    }
}

impl Alive for AnyAddress {
    fn life(&self) -> &Arc<Life<Self>> {
        &self.life
    }

    fn signal(&self, signal: Signal<Self>) {
        if let Some(vtable) = self.living() {
            vtable.signal(signal);
        }
    }
}

impl PartialEq for AnyAddress {
    fn eq(&self, other: &Self) -> bool {
        self.life.id() == other.life.id()
    }
}

impl Eq for AnyAddress {}

impl Hash for AnyAddress {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.life.id().hash(state);
    }
}

impl_debug!([] AnyAddress, |this| name: this.name());
