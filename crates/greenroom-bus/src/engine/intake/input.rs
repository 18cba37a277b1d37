//! One input: what it is called, what it has under way, and how it ends.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::budget::{Budget, InputConfig};
use crate::{engine::account::report::InputReport, source::SourceError};

/// Above 1,000,000 millionths: how much of the input has been read is not known.
const UNKNOWN: u64 = u64::MAX >> 16;

/// One input, for as long as the engine lives.
pub(crate) struct Input {
    pub(crate) name: Arc<str>,
    /// What it reads.
    pub(crate) label: Arc<str>,
    /// Whether somebody gave it a source: it is neither the way back nor the callers of a router.
    pub(crate) has_source: bool,
    /// Its source may give more.
    is_read: AtomicBool,
    pub(crate) stop: InputStop,
    /// The part of it that has been read, in millionths; above that where it is not known.
    pub(crate) read: AtomicU64,
    pub(crate) taken: AtomicU64,
    /// What it may have under way.
    pub(crate) budget: Budget,
    /// Its intake, and batches of which an event is not settled.
    under_way: AtomicUsize,
    /// It keeps its positions, and the last ones are not stored yet.
    keeping: AtomicBool,
    /// Told when nothing of it is under way any more, and when its last positions are stored.
    done: Notify,
    pub(crate) fate: Mutex<Fate>,
}

#[derive(Debug, Default)]
pub(crate) struct Fate {
    pub(crate) removed: bool,
    /// What its source ended with.
    pub(crate) error: Option<String>,
}

/// Counts an input as one that may still give events, until it is dropped: also by a panic of its source.
pub(crate) struct Reading {
    pub(crate) input: Arc<Input>,
    pub(crate) all: Arc<AtomicUsize>,
}

impl Drop for Reading {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.input.fate.lock().error.get_or_insert_with(|| "its source panicked".to_owned());
        }
        self.input.is_read.store(false, Ordering::Release);
        self.all.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Something of an input that is not done: reading it, or a batch of its events. One for each batch, not for each event.
pub(crate) struct UnderWay(Arc<Input>);

impl UnderWay {
    pub(crate) fn of(input: &Arc<Input>) -> Self {
        input.under_way.fetch_add(1, Ordering::AcqRel);
        Self(input.clone())
    }

    pub(crate) fn input(&self) -> &Arc<Input> {
        &self.0
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if self.0.under_way.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.done.notify_waiters();
        }
    }
}

impl Input {
    pub(crate) fn new(
        name: String,
        label: Arc<str>,
        has_source: bool,
        config: &InputConfig,
    ) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            label,
            has_source,
            is_read: AtomicBool::new(has_source),
            stop: InputStop::default(),
            read: AtomicU64::new(UNKNOWN),
            taken: AtomicU64::new(0),
            budget: Budget::new(config),
            under_way: AtomicUsize::new(0),
            keeping: AtomicBool::new(false),
            done: Notify::new(),
            fate: Mutex::default(),
        })
    }

    /// Its source has ended.
    pub(crate) fn ended(&self, how: &Result<(), SourceError>) {
        if let Err(error) = how {
            self.fate.lock().error = Some(error.to_string());
        }
    }

    pub(crate) fn is_removed(&self) -> bool {
        self.fate.lock().removed
    }

    /// True while its source may give more.
    pub(crate) fn is_read(&self) -> bool {
        self.is_read.load(Ordering::Acquire)
    }

    fn is_done(&self) -> bool {
        self.under_way.load(Ordering::Acquire) == 0
    }

    /// Waits until it is not read any more, and all that it gave is settled.
    ///
    /// # Cancel safety
    /// A dropped future has done nothing.
    pub(crate) async fn done(&self) {
        self.until(Self::is_done).await;
    }

    /// As [`done`](Self::done), and until its last positions are stored, where it keeps any.
    ///
    /// # Cancel safety
    /// A dropped future has done nothing.
    pub(crate) async fn gone(&self) {
        self.until(Self::is_gone).await;
    }

    async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            let mut done = std::pin::pin!(self.done.notified());
            done.as_mut().enable();
            if !is_so(self) {
                done.await;
            }
        }
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.is_done() && !self.is_keeping()
    }

    /// Its positions are stored from here on.
    pub(crate) fn keeps_positions(&self) {
        self.keeping.store(true, Ordering::Release);
    }

    pub(crate) fn is_keeping(&self) -> bool {
        self.keeping.load(Ordering::Acquire)
    }

    /// What the configuration calls it.
    pub(crate) fn name(&self) -> Arc<str> {
        self.name.clone()
    }

    /// All that it gave was settled before, and its source has stored that.
    pub(crate) fn positions_are_stored(&self) {
        self.keeping.store(false, Ordering::Release);
        self.done.notify_waiters();
    }

    pub(crate) fn report(&self) -> InputReport {
        let fate = self.fate.lock();
        InputReport {
            name: self.name.to_string(),
            source: self.label.to_string(),
            taken: self.taken.load(Ordering::Acquire),
            removed: fate.removed,
            error: fate.error.clone(),
        }
    }
}

/// Tells an input to stop, and why.
#[derive(Debug, Default)]
pub(crate) struct InputStop {
    why: Mutex<Option<WhyStop>>,
    told: Notify,
}

/// Why an input is to stop.
#[derive(Debug, Clone)]
pub(crate) enum WhyStop {
    /// A handler says that nothing more of it can be handled.
    Fatal(String),
    /// It was removed.
    Removed,
}

impl InputStop {
    /// The first who says so is heard.
    pub(crate) fn stop(&self, why: impl FnOnce() -> String) {
        self.why.lock().get_or_insert_with(|| WhyStop::Fatal(why()));
        self.told.notify_one();
    }

    /// As [`stop`](Self::stop), where nothing is wrong.
    pub(crate) fn remove(&self) {
        self.why.lock().get_or_insert(WhyStop::Removed);
        self.told.notify_one();
    }

    /// Waits until it is to stop.
    ///
    /// # Cancel safety
    /// A dropped future has done nothing.
    pub(crate) async fn told(&self) -> WhyStop {
        loop {
            if let Some(why) = self.why.lock().clone() {
                return why;
            }
            self.told.notified().await;
        }
    }
}
