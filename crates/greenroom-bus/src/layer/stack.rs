//! The layers around one handler, shared by its workers.

use tokio::sync::{Mutex, MutexGuard};
use tower::{Service, ServiceExt};

use super::{BoxError, request::Request, service::LayersService};
use crate::handler::Outputs;

pub(super) struct Stack {
    build: Box<dyn Fn() -> LayersService + Send + Sync>,
    /// Built on demand: at first, and again after it has panicked or reported that it cannot be
    /// used any more. Held by one worker at a time until it is ready and called, so that the worker
    /// that got readiness is the one that uses it.
    service: Mutex<Option<LayersService>>,
}

/// The service while it is asked for readiness and called.
struct BorrowedService<'a> {
    place: MutexGuard<'a, Option<LayersService>>,
}

impl Stack {
    pub(super) fn new(build: impl Fn() -> LayersService + Send + Sync + 'static) -> Self {
        Self { build: Box::new(build), service: Mutex::new(None) }
    }

    /// Sends a request through the layers.
    ///
    /// # Cancel safety
    /// Dropping the future drops the attempt, in whichever layer it is.
    pub(super) async fn call(&self, request: Request) -> Result<Outputs, BoxError> {
        let answer = {
            let mut lease = BorrowedService { place: self.service.lock().await };
            let service = lease.place.get_or_insert_with(|| (self.build)());
            if let Err(error) = service.ready().await {
                // A service that fails so will never be ready again.
                *lease.place = None;
                return Err(error);
            }
            service.call(request)
        };
        answer.await
    }
}

/// After a panic, the state of the layers is unknown.
impl Drop for BorrowedService<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            *self.place = None;
        }
    }
}
