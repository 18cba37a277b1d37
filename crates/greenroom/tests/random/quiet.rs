//! Panics that print nothing: random programs panic on purpose, thousands of times.
//!
//! A process has one panic hook, and the tests of a binary run side by side. So the hook is set
//! once, stays, and skips only the panics of threads that have asked for it: a test that fails next
//! to a random program is still reported.

use std::{cell::Cell, panic, sync::Once};

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// Makes this thread loud again when it is dropped.
struct Loud;

impl Drop for Loud {
    fn drop(&mut self) {
        QUIET.set(false);
    }
}

/// From now on, panics of this thread print nothing.
pub(crate) fn on_this_thread() {
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                before(panic);
            }
        }));
    });
    QUIET.set(true);
}

/// While this runs, panics of this thread print nothing.
pub(crate) fn during<T>(run: impl FnOnce() -> T) -> T {
    let _loud_after = Loud;
    on_this_thread();
    run()
}
