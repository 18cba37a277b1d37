//! How a pool calls the watchdog: one load while the pool is watched.

use std::sync::{Arc, OnceLock, Weak};

use super::watchdog::{self, Watched};
use crate::sync::{AtomicBool, Handle, Ordering, fence};

/// A pool's way to call the watchdog.
pub struct WatchdogHandle {
    /// True while the watchdog looks at the pool, and for a pool that needs none.
    watched: AtomicBool,
    pool: OnceLock<Weak<dyn Watched>>,
    /// True while an empty task is on its way into the runtime.
    nudging: Arc<AtomicBool>,
}

impl WatchdogHandle {
    /// The handle of a pool that is never watched: on one thread, no other worker could take over
    /// the work that a handler holds up.
    pub fn none() -> Self {
        Self { watched: AtomicBool::new(true), pool: OnceLock::new(), nudging: Arc::default() }
    }

    /// From now on this pool is watched when it calls the watchdog. Its workers may have started
    /// before and called in vain, so this checks for a reason to watch, as when the watchdog turns
    /// away.
    pub fn connect(&self, pool: &Arc<dyn Watched>) {
        if self.pool.set(Arc::downgrade(pool)).is_ok() {
            self.turn_away();
            if pool.is_busy() {
                self.call();
            }
        }
    }

    /// True while the watchdog looks at the pool, and for a pool that needs none.
    #[inline]
    pub fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Relaxed)
    }

    /// Has the pool watched. Call it after raising the count of awake workers. The raise is
    /// followed by this load, and the watchdog's write of `watched` by its read of the count, all
    /// sequentially consistent: one of the two sees the other.
    #[inline]
    pub fn call(&self) {
        // Pairs with the store in `turn_away`. The caller has raised `awake`, or `starved` of the
        // permits, before: it sees that the watchdog is gone, or the watchdog sees the reason to
        // stay. Otherwise nothing would take a token from a handler that computes.
        if !self.watched.load(Ordering::SeqCst) {
            self.start_watching();
        }
    }

    #[cold]
    fn start_watching(&self) {
        if self.watched.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Some(pool) = self.pool.get() {
            watchdog::over(pool.clone());
        }
    }

    /// Gives the runtime an empty task, so that one of its idle threads wakes up. The thread that
    /// last waited for timers and sockets may be the one that computes, and no other thread takes
    /// over its role until it is given a task.
    pub fn nudge(&self, runtime: &Handle) {
        if !self.nudging.swap(true, Ordering::AcqRel) {
            let nudging = self.nudging.clone();
            runtime.spawn(async move { nudging.store(false, Ordering::Release) });
        }
    }

    /// The watchdog stops watching: from now on it must be called. It checks once more for a reason
    /// to stay, and if there is one it calls [`stay`](Self::stay).
    pub fn turn_away(&self) {
        // Pairs with the load in `call`, through the fence below.
        self.watched.store(false, Ordering::SeqCst);
        // Pairs with the raise of `awake` or `starved` before `call`: the watchdog sees it in
        // `Watched::is_busy`, or `call` sees that the watchdog is gone. Otherwise a busy pool would
        // stay unwatched.
        fence(Ordering::SeqCst);
    }

    /// Returns true if the watchdog keeps watching: it has not been called again since.
    pub fn stay(&self) -> bool {
        !self.watched.swap(true, Ordering::AcqRel)
    }
}
