//! Dropping what belongs to users (keys, messages, actors, what a panic carries), and waking their
//! tasks.
//!
//! `Drop` and wakers are user code. They run under no lock, and their panic must not lose a message
//! that happens to be on its way, nor end the worker that meets it.

use std::{
    any::{Any, type_name},
    panic::{AssertUnwindSafe, catch_unwind},
};

use crate::lock::user_code_follows;

/// Drops a value. A panic of its `Drop` ends here, and is logged.
pub fn discard<T>(value: T) {
    if !std::mem::needs_drop::<T>() {
        return;
    }
    user_code_follows();
    let dropped = catch_unwind(AssertUnwindSafe(move || drop(value)));
    if let Err(panic) = dropped {
        drop_panicked(type_name::<T>(), panic);
    }
}

/// Does what wakes tasks. A panic of their wakers ends here, and is logged.
#[inline]
pub fn wake_tasks(wake: impl FnOnce()) {
    user_code_follows();
    if let Err(panic) = catch_unwind(AssertUnwindSafe(wake)) {
        waker_panicked(panic);
    }
}

#[cold]
fn waker_panicked(panic: Box<dyn Any + Send>) {
    tracing::error!("a waker panicked: its task may not go on");
    // As in `drop_panicked`.
    std::mem::forget(panic);
}

/// Apart, so that it is compiled once.
#[cold]
fn drop_panicked(dropped: &str, panic: Box<dyn Any + Send>) {
    tracing::error!(dropped, "a `Drop` panicked");
    // Dropping what a panic carries may panic again; this once, it is leaked.
    std::mem::forget(panic);
}
