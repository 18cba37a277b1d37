//! Two threads of tokio's runtime, on which tasks move freely.

use std::{future::Future, time::Duration};

use tokio::runtime::{self, Builder};

use crate::{
    Failure,
    stage::{Stage, THREADS},
};

/// Tasks that do not end by then are left behind.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

pub struct Runtime(Option<runtime::Runtime>);

impl Runtime {
    fn inner(&self) -> &runtime::Runtime {
        self.0.as_ref().expect("it is taken out only to be dropped")
    }
}

impl Stage for Runtime {
    fn new() -> Result<Self, Failure> {
        Ok(Self(Some(Builder::new_multi_thread().worker_threads(THREADS).enable_time().build()?)))
    }

    fn spawn(&self, _place: usize, task: impl Future<Output = ()> + Send + 'static) {
        self.inner().spawn(task);
    }

    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.inner().block_on(future)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_timeout(ENDS_WITHIN);
        }
    }
}
