//! The inner service of a layer.

use std::{
    fmt,
    task::{Context, Poll},
};

use tower::{Service, util::BoxService};

use super::{BoxError, request::Request};
use crate::{BoxFuture, handler::Outputs};

/// The inner service of a layer: the next layer, or the handler.
pub struct LayersService(pub(super) BoxService<Request, Outputs, BoxError>);

impl Service<Request> for LayersService {
    type Response = Outputs;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Outputs, BoxError>>;

    fn poll_ready(&mut self, task: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(task)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        self.0.call(request)
    }
}

impl fmt::Debug for LayersService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayersService").finish_non_exhaustive()
    }
}
