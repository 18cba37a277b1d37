//! Threads of a pool's own, for handlers that compute or block.
//!
//! A handler that computes for a second holds a thread of the runtime for a second, and everything
//! else on that runtime shares the other threads. A pool with its own threads works only there; its
//! senders and callers stay on theirs.
//!
//! The price: the threads, and a hop between them and the callers for each reply. Timers and
//! sockets of its handlers are on these threads too.

use std::io;

use tokio::runtime::{Builder, Handle, Runtime};

/// A runtime that belongs to one pool, and goes with it.
pub(crate) struct Threads(Option<Runtime>);

impl Threads {
    pub(crate) fn start(pool: &str, threads: usize) -> io::Result<Self> {
        let mut builder = Builder::new_multi_thread();
        // tokio panics on a name with a NUL, which no thread can have.
        builder.worker_threads(threads).thread_name(pool.replace('\0', "")).enable_all();
        builder.build().map(|runtime| Self(Some(runtime)))
    }

    /// The runtime of the pool's tasks.
    pub(crate) fn handle(&self) -> Option<Handle> {
        self.0.as_ref().map(|runtime| runtime.handle().clone())
    }
}

impl Drop for Threads {
    /// The pool may be dropped by one of these very threads, which cannot wait for themselves.
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
