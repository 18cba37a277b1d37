//! Routes that can be listed, so that a test can compare them with the API's description.

use std::sync::Arc;

use axum::{
    Router,
    handler::Handler,
    http::Method,
    routing::{self, MethodRouter},
};

use super::Daemon;

/// Paths, and their handlers.
#[derive(Default)]
pub(super) struct Routes {
    router: Router<Arc<Daemon>>,
    told: Vec<(Method, &'static str)>,
}

/// The handler of a method.
pub(super) type Answerer = (Method, MethodRouter<Arc<Daemon>>);

pub(super) fn get<T: 'static>(handler: impl Handler<T, Arc<Daemon>>) -> Answerer {
    (Method::GET, routing::get(handler))
}

pub(super) fn post<T: 'static>(handler: impl Handler<T, Arc<Daemon>>) -> Answerer {
    (Method::POST, routing::post(handler))
}

impl Routes {
    pub(super) fn route(mut self, path: &'static str, (method, answerer): Answerer) -> Self {
        self.told.push((method, path));
        Self { router: self.router.route(path, answerer), told: self.told }
    }

    pub(super) fn router(self) -> Router<Arc<Daemon>> {
        self.router
    }

    /// Each method and path.
    #[cfg(test)]
    pub(super) fn told(&self) -> &[(Method, &'static str)] {
        &self.told
    }
}
