//! A list of layers, ready to be put around handlers.

use std::{fmt, sync::Arc};

use tower::{Layer, Service, ServiceExt, util::BoxService};

use super::{
    BoxError, innermost::Innermost, layered::LayeredFactory, request::Request,
    service::LayersService, stack::Stack,
};
use crate::handler::{HandlerFactory, Outputs};

type Wrap = dyn Fn(LayersService) -> LayersService + Send + Sync;

/// Layers in the order in which they are added, the first outermost. Cheap to clone.
///
/// State inside a layer (tower's rate limit) is separate for each handler; state that its clones
/// share (a [`CircuitBreaker`](super::CircuitBreaker), [`Metrics`](super::Metrics)) is shared by
/// all handlers that it is put around.
#[derive(Clone, Default)]
pub struct Layers {
    wraps: Vec<Arc<Wrap>>,
}

impl Layers {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a layer inside the existing ones. A [`tower::ServiceBuilder`] is a layer as well, and
    /// costs one box for all of its layers.
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<LayersService> + Send + Sync + 'static,
        L::Service: Service<Request, Response = Outputs> + Send + 'static,
        <L::Service as Service<Request>>::Error: Into<BoxError>,
        <L::Service as Service<Request>>::Future: Send,
    {
        let wrap = move |inner| {
            let service = layer.layer(inner).map_err(Into::into);
            LayersService(BoxService::new(service))
        };
        self.wraps.push(Arc::new(wrap));
        self
    }

    /// Adds these layers inside the existing ones.
    pub fn and(mut self, inside: &Self) -> Self {
        self.wraps.extend(inside.wraps.iter().cloned());
        self
    }

    /// True if there are no layers.
    pub fn is_empty(&self) -> bool {
        self.wraps.is_empty()
    }

    /// Handlers of this factory, in these layers.
    pub fn around(&self, factory: Arc<dyn HandlerFactory>) -> Arc<dyn HandlerFactory> {
        if self.is_empty() {
            return factory;
        }
        let layers = self.clone();
        Arc::new(LayeredFactory::new(factory, Stack::new(move || layers.service())))
    }

    fn service(&self) -> LayersService {
        let innermost = LayersService(BoxService::new(Innermost));
        self.wraps.iter().rev().fold(innermost, |inner, wrap| wrap(inner))
    }
}

impl fmt::Debug for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} layers", self.wraps.len())
    }
}
