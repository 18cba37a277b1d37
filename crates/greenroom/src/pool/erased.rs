//! What can be asked of a pool, and told it, without knowing what it handles.

use std::{
    future::Future,
    hash::Hash,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
};

use tokio::runtime::Handle;

use super::{
    address::Address,
    core::Core,
    occupied::{Inside, Occupied},
    seat_door::SeatDoor,
    stop::{self, Stop},
};
use crate::{
    Actor, AnyAddress,
    inspect::{TooManyKeys, Value, WorkerStatus},
    life::Signal,
};

/// How a pool ended that was stopped by somebody who does not know its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StopSummary {
    /// How many messages were accepted and not handled. They are kept: a stop through the pool itself returns them.
    pub left_over: usize,
    /// Workers whose handler did not let go.
    pub wedged: Vec<String>,
}

/// The object-safe side of a pool that has no type parameters.
pub(crate) trait Erased: Send + Sync {
    fn name(&self) -> Arc<str>;
    /// Somebody is about to wait for a reply. Refused where that would be waiting for itself, whatever the message is.
    fn enter_any_call(&self) -> Result<Option<Inside>, Occupied>;
    /// Which life it is.
    fn life_id(&self) -> u64;
    /// It without its types.
    fn any(self: Arc<Self>) -> AnyAddress;
    /// One of its workers without its types.
    fn any_worker(self: Arc<Self>, slot: usize) -> AnyAddress;
    /// The worker with this life, if it is still in this slot.
    fn worker(self: Arc<Self>, slot: usize, life: u64) -> Option<Arc<dyn Erased>>;
    /// Publishes a value about a worker.
    fn publish(&self, slot: usize, key: &str, value: Value) -> Result<(), TooManyKeys>;
    /// Takes what comes before every message.
    fn signal(self: Arc<Self>, signal: Signal);
    /// True when the pool accepts nothing any more.
    fn is_closed(&self) -> bool;
    /// True for the pool with this identity, and for one that has adopted it.
    fn contains(&self, identity: usize) -> bool;
    /// True while messages are accepted, as far as there is room. A pool without workers may do so again later.
    fn accepts(&self) -> bool;
    /// Whether it runs, as a worker of somebody; `None` of one that has gone.
    fn worker_status(&self) -> Option<WorkerStatus>;
    /// True when nothing of it runs any more, or no worker is left and nothing will be handled.
    fn is_over(&self) -> bool;
    /// Refuses messages from now on, and stops as soon as the runtime gets to it, without waiting.
    fn stop_behind(self: Arc<Self>, how: Stop);
    /// Counts one more address, unless the last one has been dropped: that one drains and stops the pool, which cannot
    /// be taken back. False then.
    fn try_handle_made(&self) -> bool;
    /// Where the pool was spawned.
    fn runtime(&self) -> &Handle;
    fn stop_unknown(
        self: Arc<Self>,
        how: Stop,
    ) -> Pin<Box<dyn Future<Output = StopSummary> + Send>>;
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Erased for Core<A, K> {
    fn name(&self) -> Arc<str> {
        self.settings.name.clone()
    }

    fn enter_any_call(&self) -> Result<Option<Inside>, Occupied> {
        self.calls.enter(self.identity(), self.live.load(Ordering::SeqCst))
    }

    fn life_id(&self) -> u64 {
        self.life.id()
    }

    fn any(self: Arc<Self>) -> AnyAddress {
        let (life, name) = (self.life.clone(), self.settings.name.clone());
        let door: Arc<dyn Erased> = self;
        AnyAddress::new(Arc::downgrade(&door), None, life, name)
    }

    fn any_worker(self: Arc<Self>, slot: usize) -> AnyAddress {
        if self.settings.single {
            return self.any();
        }
        let mailbox = self.mailbox(slot);
        if let Some(reason) = self.life.ended() {
            self.end_of_worker(&mailbox, &reason);
        }
        let life = mailbox.life().clone();
        let name = Arc::from(self.worker_name(slot));
        let door: Arc<dyn Erased> = self;
        AnyAddress::new(Arc::downgrade(&door), Some(slot), life, name)
    }

    fn worker(self: Arc<Self>, slot: usize, life: u64) -> Option<Arc<dyn Erased>> {
        let mailbox = self.mailbox_if_any(slot).filter(|mailbox| mailbox.life().id() == life)?;
        Some(Arc::new(SeatDoor::new(self, mailbox)))
    }

    fn publish(&self, slot: usize, key: &str, value: Value) -> Result<(), TooManyKeys> {
        self.seats.at(slot).published.publish(key, value)
    }

    fn signal(self: Arc<Self>, signal: Signal) {
        self.take_signal(signal);
    }

    fn is_closed(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    fn contains(&self, identity: usize) -> bool {
        self.contains_pool(identity)
    }

    fn accepts(&self) -> bool {
        !self.permits.is_closed()
    }

    fn worker_status(&self) -> Option<WorkerStatus> {
        self.accepts().then_some(WorkerStatus::Live)
    }

    fn is_over(&self) -> bool {
        let nobody_left = self.is_closed() && self.live.load(Ordering::SeqCst) == 0;
        nobody_left || self.running.load(Ordering::SeqCst) == 0
    }

    fn stop_behind(self: Arc<Self>, how: Stop) {
        self.close();
        let runtime = self.runtime.clone();
        runtime.spawn(self.stop_unknown(how));
    }

    fn try_handle_made(&self) -> bool {
        let one_more = |handles: usize| (handles > 0).then_some(handles + 1);
        self.handles.fetch_update(Ordering::AcqRel, Ordering::Relaxed, one_more).is_ok()
    }

    fn runtime(&self) -> &Handle {
        &self.runtime
    }

    fn stop_unknown(
        self: Arc<Self>,
        how: Stop,
    ) -> Pin<Box<dyn Future<Output = StopSummary> + Send>> {
        Box::pin(async move {
            let report = stop::stop(self.clone(), how).await;
            let left_over = report.left_over.len();
            self.left_over.lock().extend(report.left_over);
            StopSummary { left_over, wedged: report.wedged }
        })
    }
}

impl<M, R, E> Address<M, R, E> {
    /// Where the pool was spawned.
    pub(crate) fn runtime(&self) -> &Handle {
        self.door.runtime()
    }
    /// The pool without its types, whatever becomes of the address.
    pub(crate) fn door(&self) -> Arc<dyn Erased>
    where
        M: 'static,
        R: 'static,
        E: 'static,
    {
        self.door.clone()
    }
}
