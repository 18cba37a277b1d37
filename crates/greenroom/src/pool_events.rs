//! Pool events: everything that operators need to know about pools, in one stream.
//!
//! A failure at night rarely has one symptom. A worker is restarted, its slot disabled, a mailbox
//! fills, messages are dropped: reported by four mechanisms, they lose their order. So every pool
//! reports to one hub:
//!
//! ```text
//!                       ┌─▶ counters, one for each kind
//! pools ──emit──▶ hub ──┼─▶ `tracing`, at a fitting level
//!                       └─▶ receivers: a buffer each    full: the oldest is missed and counted
//! ```
//!
//! A [`PoolEventRecord`] contains the pool, the time and the event, a [`PoolEvent`] to match on. A
//! receiver that is too slow learns how many it has missed ([`Event::Lagged`]); it blocks no other.
//!
//! There is one hub for the process, [`PoolEvents::global`]; a pool can have [its
//! own](PoolEvents::new), or [none](PoolEvents::off).
//!
//! # Price
//! An atomic addition and a check for listeners. With receivers: the time of day, an allocation,
//! and a short lock for each receiver. With a `tracing` subscriber: the subscriber's own cost.
//! Switched off: one branch.
//!
//! No message costs anything here, except dead letters. Drops by overflow may be as frequent as
//! messages, so they are reported once a second with their number; so is a mailbox that fills and
//! drains all the time.

use std::sync::{Arc, LazyLock};

mod counts;
pub(crate) mod drop_log;
mod event;
pub(crate) mod full_log;
mod hub;
mod log;
mod receiver;

pub use self::{
    counts::PoolEventCounts,
    event::{Holding, Kind, LimitChangeReason, PoolEvent, PoolEventRecord, ResizeReason},
    receiver::PoolEventReceiver,
};
use self::{
    hub::{EventHub, contained},
    log::log,
};
pub use crate::event::Event;
use greenroom_queue::discard::discard;

/// Notices that the process-wide hub keeps for a slow receiver. About the restarts of a hundred
/// workers, several times over.
const GLOBAL_CAPACITY: usize = 1024;

/// The hub that pools report their events to and operators listen at. A clone is the same hub.
///
/// ```
/// # use std::sync::Arc;
/// use greenroom::{PoolEvent, PoolEvents, pool_events::Event};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let notices = PoolEvents::new(100);
/// let mut receiver = notices.subscribe();
///
/// // What a pool does by itself; others, such as a source of events, tell what happens to them alike.
/// let pool: Arc<str> = "images".into();
/// notices.emit(&pool, PoolEvent::WorkerDisabled { slot: 3 });
///
/// if let Some(Event::Item(notice)) = receiver.recv().await {
///     assert_eq!(&*notice.pool, "images");
///     assert!(matches!(notice.what, PoolEvent::WorkerDisabled { slot: 3 }));
/// }
/// # }
/// ```
#[derive(Clone)]
pub struct PoolEvents {
    /// `None` if it is switched off.
    hub: Option<Arc<EventHub>>,
}

impl PoolEvents {
    /// The hub of the process.
    pub fn global() -> Self {
        static GLOBAL: LazyLock<PoolEvents> = LazyLock::new(|| PoolEvents::new(GLOBAL_CAPACITY));
        GLOBAL.clone()
    }

    /// A separate hub. Each receiver may be this many notices behind before it misses the oldest; a
    /// notice takes some hundred bytes while it is kept, so a thousand is little.
    pub fn new(capacity: usize) -> Self {
        Self { hub: Some(Arc::new(EventHub::new(capacity))) }
    }

    /// Nothing is sent, counted or logged.
    pub fn off() -> Self {
        Self { hub: None }
    }

    /// False when it is switched off.
    pub fn is_on(&self) -> bool {
        self.hub.is_some()
    }

    /// Counts, logs and sends a notice of this pool. Never waits.
    ///
    /// Foreign code that it runs (loggers, wakers, the `Drop` of an error) may panic;
    /// the panic ends here.
    pub fn emit(&self, pool: &Arc<str>, what: PoolEvent) {
        if self.is_on() {
            contained(|| log(pool, &what));
        }
        self.emit_unlogged(pool, what);
    }

    /// Like `emit`, for an event that is logged elsewhere.
    pub(crate) fn emit_unlogged(&self, pool: &Arc<str>, what: PoolEvent) {
        match &self.hub {
            Some(hub) => hub.emit(pool, what),
            None => discard(what),
        }
    }

    /// Receives the events from now on. If the hub is switched off, the
    /// receiver's stream has ended.
    pub fn subscribe(&self) -> PoolEventReceiver {
        PoolEventReceiver::new(self.hub.as_ref())
    }

    /// The number of notices of each kind.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use greenroom::{PoolEvent, PoolEvents, pool_events::Kind};
    ///
    /// let notices = PoolEvents::new(100);
    /// notices.emit(&Arc::from("images"), PoolEvent::MailboxFull);
    /// assert_eq!(notices.counts().of(Kind::MailboxFull), 1);
    /// ```
    pub fn counts(&self) -> PoolEventCounts {
        self.hub.as_ref().map(|hub| hub.counts()).unwrap_or_default()
    }
}

impl Default for PoolEvents {
    /// The hub of the process.
    fn default() -> Self {
        Self::global()
    }
}

impl_debug!([] PoolEvents, |this| counts: this.hub.as_ref().map(|hub| hub.counts()));
