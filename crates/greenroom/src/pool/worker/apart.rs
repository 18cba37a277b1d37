//! A future that is polled by a separate function.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// Keeps the code that it polls out of the code around it: a loop that runs for each message would
/// share its registers with all the rare cases, and was measured to be a twentieth slower
/// (`bench/NOTES.md`).
pub(super) struct Apart<'a, F>(pub(super) Pin<&'a mut F>);

impl<F: Future> Future for Apart<'_, F> {
    type Output = F::Output;

    #[inline(never)]
    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<F::Output> {
        self.0.as_mut().poll(task)
    }
}
