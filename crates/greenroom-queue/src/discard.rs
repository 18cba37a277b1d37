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
    if std::mem::needs_drop::<T>() {
        drop_now(&mut Some(value));
    }
}

/// A value that can be dropped by code that does not know its type.
trait Discarded {
    fn drop_now(&mut self);

    fn type_name(&self) -> &'static str;
}

impl<T> Discarded for Option<T> {
    fn drop_now(&mut self) {
        *self = None;
    }

    fn type_name(&self) -> &'static str {
        type_name::<T>()
    }
}

fn drop_now(value: &mut dyn Discarded) {
    if let Some(panic) = panic_of(&mut || value.drop_now()) {
        drop_panicked(value.type_name(), panic);
    }
}

/// Does what wakes tasks. A panic of their wakers ends here, and is logged.
#[inline]
pub fn wake_tasks(wake: impl FnOnce()) {
    let mut wake = Some(wake);
    if let Some(panic) = panic_of(&mut || {
        if let Some(wake) = wake.take() {
            wake()
        }
    }) {
        waker_panicked(panic);
    }
}

/// Runs user code. What it panicked with, if it did. Compiled once, whatever it runs.
pub fn panic_of(run: &mut dyn FnMut()) -> Option<Box<dyn Any + Send>> {
    user_code_follows();
    catch_unwind(AssertUnwindSafe(run)).err()
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
