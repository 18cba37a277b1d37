//! Layers made of two functions: one runs before an attempt, one after it.

use std::{
    fmt,
    future::ready,
    task::{Context, Poll},
};

use tower::Service;

use super::{BoxError, Request, request::result};
use crate::{
    BoxFuture,
    handler::{HandlerResult, Outputs},
};

/// The usual form of a layer. A type that implements this becomes a layer by a
/// [`Layer`](super::Layer) whose service is [`Surrounded`], like all layers of this crate that are
/// not tower's:
///
/// ```
/// use greenroom_bus::{
///     handler::{Failure, HandlerResult},
///     layer::{Around, Layer, Layers, Request, Surrounded},
/// };
///
/// /// Rejects what is older than a format that is gone.
/// #[derive(Clone)]
/// struct NoOldOrders;
///
/// impl Around for NoOldOrders {
///     type Pass = ();
///
///     fn before(&self, request: &mut Request) -> Result<(), HandlerResult> {
///         match request.event.ty() {
///             "order.v1" => Err(Err(Failure::reject("orders of version 1 are handled no more"))),
///             _ => Ok(()),
///         }
///     }
/// }
///
/// impl<S> Layer<S> for NoOldOrders {
///     type Service = Surrounded<Self, S>;
///
///     fn layer(&self, inner: S) -> Self::Service {
///         Surrounded::new(self.clone(), inner)
///     }
/// }
///
/// let layers = Layers::new().layer(NoOldOrders);
/// # drop(layers);
/// ```
pub trait Around: Send + 'static {
    /// The value that `before` passes to `after`. Dropped without `after` if the attempt was
    /// dropped: by a layer outside, a stop, or a panic.
    type Pass: Send + 'static;

    /// Before the inside is asked.
    ///
    /// # Errors
    /// The result of the attempt, if the inner service is not to be called: the events of an `Ok`
    /// are passed on.
    fn before(&self, request: &mut Request) -> Result<Self::Pass, HandlerResult>;

    /// After the inside has answered; may change the result.
    fn after(pass: Self::Pass, result: &mut HandlerResult) {
        let _ = (pass, result);
    }
}

/// The service of a layer that is an [`Around`].
#[derive(Clone)]
pub struct Surrounded<A, S> {
    around: A,
    inner: S,
}

impl<A: Around, S> Surrounded<A, S> {
    /// Puts `around` around a service.
    pub fn new(around: A, inner: S) -> Self {
        Self { around, inner }
    }
}

impl<A, S> Service<Request> for Surrounded<A, S>
where
    A: Around,
    S: Service<Request, Response = Outputs>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = Outputs;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Outputs, BoxError>>;

    fn poll_ready(&mut self, task: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(task).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        match self.around.before(&mut request) {
            Err(answer) => Box::pin(ready(answer.map_err(Into::into))),
            Ok(pass) => {
                let inner = self.inner.call(request);
                Box::pin(async move {
                    let mut result = result(inner.await);
                    A::after(pass, &mut result);
                    result.map_err(Into::into)
                })
            }
        }
    }
}

impl<A, S> fmt::Debug for Surrounded<A, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surrounded").finish_non_exhaustive()
    }
}
