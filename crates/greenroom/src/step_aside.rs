//! A yield that leaves the task where other threads can take it.

use std::{
    future::{Future, poll_fn},
    task::Poll,
};

/// Lets other tasks have a turn: wakes itself and waits once.
///
/// tokio's own `yield_now` keeps the task aside until its thread has run out of other work; if that
/// work computes or blocks, no other thread can take the task over. This yield puts the task at the
/// end of the thread's queue, from which idle threads steal, and wakes one of them.
///
/// # Cancel safety
/// Nothing is lost with a dropped future.
pub fn step_aside() -> impl Future<Output = ()> + Send {
    let mut stepped = false;
    poll_fn(move |task| {
        if std::mem::replace(&mut stepped, true) {
            return Poll::Ready(());
        }
        task.waker().wake_by_ref();
        Poll::Pending
    })
}

/// Lets other threads have the task that this thread has woken last, if it belongs to this runtime.
/// Only this thread looks where that task is; an empty one takes its place, so it goes to the end
/// of the thread's queue. For a caller that cannot step aside and may compute for long. It costs a
/// task: too much for each message.
pub(crate) fn push_aside(runtime: &tokio::runtime::Handle) {
    drop(runtime.spawn(async {}));
}
