//! A bell that has a pool watched, and costs a load while it is.

use std::sync::{Arc, OnceLock, Weak};

use super::watch::{self, Watched};
use crate::sync::{AtomicBool, Handle, Ordering, fence};

pub(crate) struct Bell {
    /// True while the watch looks at the pool, and for a pool that needs none.
    watched: AtomicBool,
    pool: OnceLock<Weak<dyn Watched>>,
    /// An empty task is on its way into the runtime.
    nudging: Arc<AtomicBool>,
}

impl Bell {
    /// The bell of a pool that is never watched: on one thread, no other worker could take over
    /// what a handler holds up.
    pub(crate) fn silent() -> Self {
        Self { watched: AtomicBool::new(true), pool: OnceLock::new(), nudging: Arc::default() }
    }

    /// From now on this pool is watched when the bell rings. Its workers may have begun before, and
    /// have rung in vain: so it is looked for a reason as when the watch turns away.
    pub(crate) fn connect(&self, pool: &Arc<dyn Watched>) {
        if self.pool.set(Arc::downgrade(pool)).is_ok() {
            self.turn_away();
            if pool.is_busy() {
                self.ring();
            }
        }
    }

    /// True while the watch looks at the pool, and for a pool that needs none.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Relaxed)
    }

    /// Has the pool watched. Call it after raising the count of awake workers. The raise is
    /// followed by this load, and the watch's write of `watched` by its look at the count, all
    /// sequentially consistent: one of the two sees the other.
    #[inline]
    pub(crate) fn ring(&self) {
        // Pairs with the store in `turn_away`. The caller has raised `awake`, or `starved` of the
        // permits, before: it sees that the watch is gone, or the watch sees the reason to stay.
        // Otherwise no watch takes a token from a handler that computes.
        if !self.watched.load(Ordering::SeqCst) {
            self.have_watched();
        }
    }

    #[cold]
    fn have_watched(&self) {
        if self.watched.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Some(pool) = self.pool.get() {
            watch::over(pool.clone());
        }
    }

    /// Gives the runtime an empty task, so that one of its idle threads looks up. The thread that
    /// last waited for timers and sockets may be the one that computes, and no other thread takes
    /// its place before it is given a task.
    pub(crate) fn nudge(&self, runtime: &Handle) {
        if !self.nudging.swap(true, Ordering::AcqRel) {
            let nudging = self.nudging.clone();
            runtime.spawn(async move { nudging.store(false, Ordering::Release) });
        }
    }

    /// The watch turns away: from now on the bell must be rung. The watch looks once more for a
    /// reason to stay, and if there is one calls [`stay`](Self::stay).
    pub(crate) fn turn_away(&self) {
        // Pairs with the load in `ring`, through the fence below.
        self.watched.store(false, Ordering::SeqCst);
        // Pairs with the raise of `awake` or `starved` before `ring`: the watch sees it in
        // `Watched::is_busy`, or `ring` sees that the watch is gone. Otherwise a busy pool
        // stays unwatched.
        fence(Ordering::SeqCst);
    }

    /// True when the watch stays: no ring has called it again since.
    pub(crate) fn stay(&self) -> bool {
        !self.watched.swap(true, Ordering::AcqRel)
    }
}
