//! Dead letters that are under way once more: how many, and how each ends.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

use crate::{
    dead_letter::replay::{ReplayEnd, Replayed, Replays},
    engine::lifecycle::phase::Phase,
    event::Event,
    settlement::{Refusal, Settled},
    wait::wait_until,
};

/// Letters that are under way at a time, apart from those that are taken at once: behind a parked
/// key they may stay for long.
const UNDER_WAY: usize = 1_000;

/// And bytes of them.
const BYTES_UNDER_WAY: usize = 64 << 20;

/// The replays of one engine.
pub(crate) struct Replaying {
    pub(crate) store: Arc<dyn Replays>,
    phase: watch::Receiver<Phase>,
    /// Letters that were taken and have not ended.
    count: AtomicUsize,
    bytes: AtomicUsize,
    /// Told when one of them has.
    freed: Notify,
    /// Intakes that have nothing but replays to wait for.
    lingering: AtomicUsize,
    /// No letter waits for its turn.
    is_idle: AtomicBool,
    /// Told when that has changed, or an intake has nothing but replays to wait for.
    changed: Notify,
    /// Since when the store could give none, and why.
    failing: Mutex<Option<(Instant, String)>>,
    /// Nothing more is taken.
    closed: watch::Sender<bool>,
}

impl Replaying {
    pub(crate) fn new(store: Arc<dyn Replays>, phase: watch::Receiver<Phase>) -> Self {
        Self {
            store,
            phase,
            count: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            freed: Notify::new(),
            lingering: AtomicUsize::new(0),
            is_idle: AtomicBool::new(false),
            changed: Notify::new(),
            failing: Mutex::new(None),
            closed: watch::Sender::new(false),
        }
    }

    /// No letter waits for its turn.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_idle.load(Ordering::Acquire)
    }

    /// Waits until that may have changed, or an intake has nothing but replays to wait for.
    ///
    /// # Cancel safety
    /// A dropped future has done nothing.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// An intake has nothing but replays to wait for, until this is dropped.
    pub(crate) fn linger(&self) -> Lingering<'_> {
        self.lingering.fetch_add(1, Ordering::AcqRel);
        self.changed.notify_one();
        Lingering(self)
    }

    /// How many intakes have nothing else to wait for.
    pub(crate) fn lingering(&self) -> usize {
        self.lingering.load(Ordering::Acquire)
    }

    pub(crate) fn set_idle(&self, is_idle: bool) {
        self.is_idle.store(is_idle, Ordering::Release);
        self.changed.notify_one();
    }

    /// The store could not give any. True if that is a change.
    pub(crate) fn fails(&self, error: String) -> bool {
        let mut failing = self.failing.lock();
        let since = failing.as_ref().map(|(since, _)| *since);
        *failing = Some((since.unwrap_or_else(Instant::now), error));
        since.is_none()
    }

    pub(crate) fn works(&self) {
        self.failing.lock().take();
    }

    /// Since when the store could give none, and why.
    pub(crate) fn failing(&self) -> Option<(Instant, String)> {
        self.failing.lock().clone()
    }

    /// Takes nothing more.
    pub(crate) fn close(&self) {
        self.closed.send_replace(true);
    }

    pub(crate) fn is_closed(&self) -> bool {
        *self.closed.borrow()
    }

    /// Waits until nothing more is taken.
    ///
    /// # Cancel safety
    /// A dropped future has done nothing.
    pub(crate) async fn closed(&self) {
        // The sender is in here.
        let _ = self.closed.subscribe().wait_for(|closed| *closed).await;
    }

    /// True while letters may be taken and routed.
    fn goes_on(&self) -> bool {
        *self.phase.borrow() == Phase::Run && !self.is_closed()
    }

    fn has_room(&self) -> bool {
        self.count.load(Ordering::Acquire) < UNDER_WAY
            && self.bytes.load(Ordering::Acquire) < BYTES_UNDER_WAY
    }

    pub(crate) async fn room(&self) {
        wait_until(&self.freed, || self.has_room().then_some(())).await;
    }

    /// Waits for this, or until nothing more is taken: then false.
    pub(crate) async fn unless_over(&self, wait: impl Future<Output = ()>) -> bool {
        let mut phase = self.phase.clone();
        tokio::select! {
            biased;
            () = self.closed() => false,
            _ = phase.wait_for(|phase| *phase != Phase::Run) => false,
            () = wait => self.goes_on(),
        }
    }
}

/// An intake that has nothing but replays to wait for.
pub(crate) struct Lingering<'a>(&'a Replaying);

impl Drop for Lingering<'_> {
    fn drop(&mut self) {
        self.0.lingering.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A letter that is to be routed again.
pub(crate) struct Again {
    pub(crate) event: Event,
    pub(crate) to: Option<usize>,
    pub(crate) under_way: UnderReplay,
}

/// Letters for one input, which its intake takes.
pub(crate) struct ReplayQueue {
    /// `None` once no task takes letters any more.
    queue: Mutex<Option<VecDeque<Again>>>,
    came: Notify,
}

impl Default for ReplayQueue {
    fn default() -> Self {
        Self { queue: Mutex::new(Some(VecDeque::new())), came: Notify::new() }
    }
}

impl ReplayQueue {
    pub(crate) fn put(&self, again: Again) {
        let mut queue = self.queue.lock();
        match queue.as_mut() {
            Some(open) => open.push_back(again),
            None => {
                drop(queue);
                // By the end of the run it stays marked.
                if again.under_way.replaying.goes_on() {
                    let why = "its input has ended in this run: it can be replayed in the next one";
                    again.under_way.refuse(why.to_owned());
                }
                return;
            }
        }
        drop(queue);
        self.came.notify_one();
    }

    /// Waits until there is something.
    ///
    /// # Cancel safety
    /// A dropped future has taken nothing.
    pub(crate) async fn came(&self) {
        while self.queue.lock().as_ref().is_none_or(VecDeque::is_empty) {
            self.came.notified().await;
        }
    }

    pub(crate) fn take(&self) -> VecDeque<Again> {
        self.queue.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// No task takes letters any more: queued ones are given back.
    pub(crate) fn close(&self) {
        let left = self.queue.lock().take();
        // Tells the store: outside the lock.
        drop(left);
    }
}

/// A letter that was taken from its store. Dropped, it is given back.
pub(crate) struct UnderReplay {
    replaying: Arc<Replaying>,
    replayed: Replayed,
    bytes: usize,
    /// How it ends.
    how: ReplayEnd,
}

impl UnderReplay {
    pub(crate) fn new(replaying: &Arc<Replaying>, replayed: Replayed, bytes: usize) -> Self {
        replaying.count.fetch_add(1, Ordering::AcqRel);
        replaying.bytes.fetch_add(bytes, Ordering::AcqRel);
        Self { replaying: replaying.clone(), replayed, bytes, how: ReplayEnd::GivenBack }
    }

    pub(crate) fn refuse(mut self, why: String) {
        let letter = self.replayed.letter;
        tracing::warn!(letter, why, "a dead letter is not replayed");
        self.how = ReplayEnd::Refused(why);
    }

    pub(crate) fn ends(mut self, how: Settled) {
        match how {
            Settled::Acknowledged(_) => self.how = ReplayEnd::Settled,
            // Letters that a run leaves are taken up by the next one.
            Settled::Refused(Refusal::GivenBack) => {}
            Settled::Refused(_) if !self.replaying.goes_on() => {}
            Settled::Refused(why) => self.refuse(format!(
                "its event was refused ({why}): its key may be parked with as much as may wait, or its pool full"
            )),
        }
    }
}

impl Drop for UnderReplay {
    fn drop(&mut self) {
        let how = std::mem::replace(&mut self.how, ReplayEnd::GivenBack);
        self.replaying.store.ended(self.replayed, how);
        self.replaying.count.fetch_sub(1, Ordering::AcqRel);
        self.replaying.bytes.fetch_sub(self.bytes, Ordering::AcqRel);
        self.replaying.freed.notify_one();
    }
}
