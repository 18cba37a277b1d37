//! Drops user values (keys, messages, actors, panic payloads) and wakes user tasks.
//!
//! `Drop` and wakers are user code. They run under no lock. A panic there must neither lose a
//! message that happens to be in transit nor end the worker that runs the code.

use std::{
    any::{Any, type_name},
    panic::{AssertUnwindSafe, catch_unwind},
};

use crate::lock::user_code_follows;

/// Drops a value. A panic in its `Drop` is caught and logged.
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

/// Runs a function that wakes tasks. A panic in a waker is caught and logged.
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

/// Runs user code and returns its panic payload, if it panicked. It is compiled only once, because
/// the argument is a trait object.
pub fn panic_of(run: &mut dyn FnMut()) -> Option<Box<dyn Any + Send>> {
    user_code_follows();
    catch_unwind(AssertUnwindSafe(run)).err()
}

#[cold]
fn waker_panicked(panic: Box<dyn Any + Send>) {
    tracing::error!("a waker panicked: its task may not go on");
    // Leaked, as in `drop_panicked`.
    std::mem::forget(panic);
}

/// A separate function, so that it is compiled once.
#[cold]
fn drop_panicked(dropped: &str, panic: Box<dyn Any + Send>) {
    tracing::error!(dropped, "a `Drop` panicked");
    // Dropping a panic payload may panic again, so this one is leaked.
    std::mem::forget(panic);
}
