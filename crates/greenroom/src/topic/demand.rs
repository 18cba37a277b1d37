//! Telling the producer whether there are subscribers.

use std::panic::{AssertUnwindSafe, catch_unwind};

use greenroom_queue::discard::discard;
use greenroom_queue::lock::Mutex;
use tokio::sync::watch;

/// What a producer is told, in turns, `Start` first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// The first subscriber has come.
    Start,
    /// The last subscriber has gone.
    Stop,
}

impl Notice {
    pub(super) fn of(wanted: bool) -> Self {
        if wanted { Self::Start } else { Self::Stop }
    }
}

type Hook = Box<dyn Fn(Notice) + Send + Sync>;

/// Tells of changes between "no subscriber" and "some subscribers", one after the other.
///
/// Every change of the subscribers ends in a call here. A thread that is telling looks again
/// when it is done. So no change is lost, two are never told at once or out of order, and
/// nothing is told under a lock.
pub(super) struct Demand {
    progress: Mutex<Progress>,
    wanted: watch::Sender<bool>,
    hook: Option<Hook>,
}

#[derive(Default)]
struct Progress {
    /// The last value told.
    told: bool,
    /// A thread is telling.
    telling: bool,
}

impl Default for Demand {
    fn default() -> Self {
        Self { progress: Mutex::default(), wanted: watch::Sender::new(false), hook: None }
    }
}

impl Demand {
    pub(super) fn hook(&mut self, hook: impl Fn(Notice) + Send + Sync + 'static) {
        self.hook = Some(Box::new(hook));
    }

    pub(super) fn watch(&self) -> watch::Receiver<bool> {
        self.wanted.subscribe()
    }

    /// Tells of changes. `wanted` looks at the subscribers, under the lock of this.
    pub(super) fn update(&self, wanted: impl Fn() -> bool) {
        while let Some(now) = self.change(&wanted) {
            self.tell(now);
            self.progress.lock().telling = false;
        }
    }

    fn change(&self, wanted: impl Fn() -> bool) -> Option<bool> {
        let mut progress = self.progress.lock();
        let now = wanted();
        if progress.telling || progress.told == now {
            return None;
        }
        *progress = Progress { told: now, telling: true };
        Some(now)
    }

    fn tell(&self, wanted: bool) {
        self.wanted.send_replace(wanted);
        let Some(hook) = &self.hook else { return };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| hook(Notice::of(wanted)))) {
            discard(panic);
            tracing::error!("the hook of a topic panicked; the notice is lost to it");
        }
    }
}
