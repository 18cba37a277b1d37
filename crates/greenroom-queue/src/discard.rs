//! Dropping what belongs to users: keys, messages, actors, what a panic carries.
//!
//! Their `Drop` is user code. It runs under no lock, and its panic must not lose a message that
//! happens to be on its way, nor end the worker that drops it.

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

/// Apart, so that it is compiled once.
#[cold]
fn drop_panicked(dropped: &str, panic: Box<dyn Any + Send>) {
    tracing::error!(dropped, "a `Drop` panicked");
    // Dropping what a panic carries may panic again; this once, it is leaked.
    std::mem::forget(panic);
}
