//! Catching panics of user code.

use std::{
    any::Any,
    future::Future,
    ops::DerefMut,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll},
};

use crate::pool::handoff::reentrancy::AtWork;

/// Catches panics around a whole future, once per life of a worker and not once per message. Notes
/// the owner of the future while it is polled.
pub(crate) struct CatchUnwind<P>(pub(super) Pin<P>, pub(super) Option<(usize, usize)>);

impl<P: DerefMut<Target: Future> + Unpin> Future for CatchUnwind<P> {
    type Output = Result<<P::Target as Future>::Output, Box<dyn Any + Send>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let _at_work = self.1.map(|(pool, slot)| AtWork::begin(pool, slot));
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}
