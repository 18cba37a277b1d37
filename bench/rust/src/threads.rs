//! A thread for each task, as one uses channels without a runtime. The kernel shares out the cores.

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

use crate::{Failure, stage::Stage};

pub struct Threads;

impl Stage for Threads {
    fn new() -> Result<Self, Failure> {
        Ok(Self)
    }

    fn spawn(&self, _place: usize, task: impl Future<Output = ()> + Send + 'static) {
        thread::spawn(move || block_on(task));
    }

    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        block_on(future)
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// What is awaited on a thread blocks it, and so the future is ready at once unless its
/// handler is stuck for good.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}
