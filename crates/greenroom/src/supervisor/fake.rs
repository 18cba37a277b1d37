//! A child that follows a script, and logs its orders.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::sleep;

use super::{
    child::{Child, ChildFuture, ExitReporter},
    spec::ChildSpec,
};
use crate::{ExitReason, Stop, pool::StopSummary};

/// The orders of several children, in sequence.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn write(&self, entry: String) {
        self.0.lock().push(entry);
    }

    /// Its contents, which are then forgotten.
    pub(super) fn take(&self) -> String {
        std::mem::take(&mut *self.0.lock()).join(", ")
    }
}

/// The behaviour of the fake.
#[derive(Clone)]
pub(super) enum Act {
    Takes(Duration),
    Hangs,
    /// Keeps its thread until this is sent to or dropped.
    Blocks(Arc<Mutex<std::sync::mpsc::Receiver<()>>>),
    Panics,
    /// A start, which fails.
    Fails,
    /// A start, which succeeds when the child has already ended again.
    Dies,
}

pub(super) struct Fake {
    name: Arc<str>,
    log: Log,
    /// The next acts for "start", "suspend", "disable" and "stop". Without an entry, they succeed
    /// at once.
    script: Mutex<HashMap<&'static str, VecDeque<Act>>>,
    exits: Mutex<Option<ExitReporter>>,
    /// How it was stopped or suspended.
    hows: Mutex<Vec<Stop>>,
    /// Represents the queue.
    pub(super) queued: AtomicUsize,
    /// Orders in progress.
    under_way: AtomicUsize,
}

impl Fake {
    pub(super) fn new(name: &str, log: &Log) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            log: log.clone(),
            script: Mutex::default(),
            exits: Mutex::default(),
            hows: Mutex::default(),
            queued: AtomicUsize::new(0),
            under_way: AtomicUsize::new(0),
        })
    }

    /// Some fakes, named a, b, c, ..., with an empty log.
    pub(super) fn some<const N: usize>() -> (Log, [Arc<Self>; N]) {
        let log = Log::default();
        let names = ["a", "b", "c", "d", "e"];
        let fakes = std::array::from_fn(|at| Self::new(names[at], &log));
        (log, fakes)
    }

    /// Sets the act for the next order of this kind.
    pub(super) fn next(&self, what: &'static str, act: Act) {
        self.script.lock().entry(what).or_default().push_back(act);
    }

    /// Ends by itself.
    pub(super) fn exits(&self, reason: ExitReason) {
        self.exits.lock().take().expect("it is up")(reason);
    }

    pub(super) fn panics(&self) {
        self.exits(ExitReason::Panicked { message: "boom".to_owned(), location: None });
    }

    /// Ends by itself, if it is up.
    pub(super) fn may_panic(&self) {
        let reason = ExitReason::Panicked { message: "boom".to_owned(), location: None };
        let exits = self.exits.lock().take();
        exits.into_iter().for_each(|exits| exits(reason.clone()));
    }

    pub(super) fn hows(&self) -> Vec<Stop> {
        std::mem::take(&mut *self.hows.lock())
    }

    fn begins(&self, what: &'static str) -> (Option<Act>, UnderWay<'_>) {
        self.log.write(format!("{what} {}", self.name));
        if self.under_way.fetch_add(1, Ordering::SeqCst) > 0 {
            self.log.write("two orders at once".to_owned());
        }
        let act = self.script.lock().get_mut(what).and_then(VecDeque::pop_front);
        (act, UnderWay { fake: self, what, done: false })
    }

    async fn acts(&self, what: &'static str, within: Duration) -> Option<Act> {
        let (act, mut under_way) = self.begins(what);
        tokio::task::yield_now().await;
        match &act {
            Some(Act::Takes(time)) => {
                sleep((*time).min(within)).await;
                self.log.write(format!("{} done", self.name));
            }
            Some(Act::Hangs) => std::future::pending().await,
            Some(Act::Blocks(until)) => {
                self.log.write(format!("{} blocks", self.name));
                let _ = until.lock().recv();
            }
            Some(Act::Panics) => {
                under_way.done = true;
                panic!("{what} of {}", self.name);
            }
            _ => {}
        }
        under_way.done = true;
        act
    }
}

struct UnderWay<'a> {
    fake: &'a Fake,
    what: &'static str,
    done: bool,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.fake.under_way.fetch_sub(1, Ordering::SeqCst);
        if !self.done {
            self.fake.log.write(format!("{} of {} dropped", self.what, self.fake.name));
        }
    }
}

impl Child for Fake {
    fn name(&self) -> Arc<str> {
        self.name.clone()
    }

    fn start(self: Arc<Self>, exits: ExitReporter) -> ChildFuture<Result<(), String>> {
        Box::pin(async move {
            *self.exits.lock() = Some(exits);
            match self.acts("start", Duration::MAX).await {
                Some(Act::Fails) => return Err("not today".to_owned()),
                Some(Act::Dies) => self.panics(),
                _ => {}
            }
            Ok(())
        })
    }

    fn suspend(self: Arc<Self>, patience: Duration) -> ChildFuture<()> {
        Box::pin(async move {
            self.hows.lock().push(Stop::within(patience));
            self.acts("suspend", patience).await;
        })
    }

    fn disable(self: Arc<Self>, patience: Duration) -> ChildFuture<()> {
        Box::pin(async move {
            self.acts("disable", patience).await;
        })
    }

    fn stop(self: Arc<Self>, how: Stop) -> ChildFuture<StopSummary> {
        Box::pin(async move {
            self.hows.lock().push(how);
            let within = match how {
                Stop::Graceful { within } => within,
                Stop::Now => Duration::MAX,
            };
            self.acts("stop", within).await;
            StopSummary { left_over: self.queued.swap(0, Ordering::SeqCst), wedged: Vec::new() }
        })
    }
}

impl From<Arc<Fake>> for ChildSpec {
    fn from(fake: Arc<Fake>) -> Self {
        Self::plain(fake)
    }
}
