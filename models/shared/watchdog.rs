//! What the product's core and its handle on the watchdog know of that. Who plays it looks when the
//! model says so.

use std::{cell::Cell, sync::Weak, time::Duration};

pub(crate) const TICK: Duration = Duration::from_millis(2);

/// A pool, as the watchdog sees it.
pub(crate) trait Watched: Send + Sync {
    fn set_clock(&self);
    fn tick(&self, before: u64) -> u64;
    fn is_busy(&self) -> bool;
    fn is_unhurried(&self) -> bool;
    fn turn_away(&self);
    fn stay(&self) -> bool;
}

thread_local! {
    /// All threads of a model run on one of the operating system.
    static CALLED: Cell<u32> = const { Cell::new(0) };
}

/// The watchdog is called.
pub(crate) fn over(_pool: Weak<dyn Watched>) {
    CALLED.set(CALLED.get() + 1);
}

/// How often the watchdog has been called since this was asked last.
pub(crate) fn calls() -> u32 {
    CALLED.take()
}
