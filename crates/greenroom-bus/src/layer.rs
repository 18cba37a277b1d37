//! Layers: code around every attempt, independent of the handler.
//!
//! A time limit, a rate limit, a check, a count, a span: if each handler has to include them, one
//! of them will be forgotten. A layer is written once and put around any handler. (Other frameworks
//! call it middleware.) Layers are [`tower`]'s, so existing ones can be used; they take a
//! [`Request`] and return [`Outputs`](crate::handler::Outputs).
//!
//! ```text
//! pool: attempts, retries, settlement          (outermost of all: no layer can lose an event)
//!   └▶ Traced ──▶ TimeoutLayer ──▶ CircuitBreaker ──▶ the handler of the worker
//!      the first added                the last added
//! ```
//!
//! | layer | what it does |
//! |---|---|
//! | [`TimeoutLayer`] (tower's) | an attempt that takes longer fails as [timed out](crate::handler::FailureKind::Timeout), and its handler is dropped at its await |
//! | [`RateLimitLayer`] (tower's) | so many attempts in a time, over all workers |
//! | [`CircuitBreaker`] | after so many failures in a row attempts wait, and one at a time tries |
//! | [`Deduplication`] | an event that was settled within a window is not handled again |
//! | `Validation` (feature `json-schema`) | data that does not fit its JSON Schema rejects the event |
//! | [`Correlation`] | an event without a correlation id begins a flow |
//! | [`Traced`] | a span for each attempt |
//! | [`Metrics`] | counts and times |
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//! use greenroom_bus::{
//!     engine::HandlerConfig,
//!     handler::pass::PassFactory,
//!     layer::{
//!         CircuitBreaker, Deduplication, Layers, Metrics, RateLimitLayer, TimeoutLayer, Traced,
//!     },
//! };
//!
//! let metrics = Metrics::default();
//! let layers = Layers::new()
//!     .layer(Traced)                                                     // the outermost
//!     .layer(metrics.clone())
//!     .layer(Deduplication::within(Duration::from_secs(600)))
//!     .layer(TimeoutLayer::new(Duration::from_secs(5)))
//!     .layer(CircuitBreaker::new(5, Duration::from_secs(10)))
//!     .layer(RateLimitLayer::new(50, Duration::from_secs(1)));           // next to the handler
//! let handlers = layers.around(Arc::new(PassFactory));
//! let handler = HandlerConfig::new(vec!["price.*".parse()?], handlers);
//! # drop(handler);
//! # assert_eq!(metrics.snapshot().handled, 0);
//! # Ok::<(), greenroom_bus::pattern::PatternError>(())
//! ```
//!
//! # What a layer is and is not
//! * A handler has one stack of layers, shared by its workers: a rate limit applies to all of them
//!   together. One worker at a time waits for readiness, first come, first served; attempts then
//!   run concurrently.
//! * Each attempt goes through the layers, retries included. **Retry is not a layer**: it would
//!   block the worker. A layer fails with a [`Failure`](crate::handler::Failure) to decide the
//!   consequence; any other error is retried, [`Elapsed`](tower::timeout::error::Elapsed) is a
//!   timeout, and [`Overloaded`](tower::load_shed::error::Overloaded) gives the event back
//!   unstarted.
//! * If a layer answers in place of the handler (a duplicate, data that does not match its schema),
//!   the answer says nothing about the handler: it neither ends an outage nor hides one. A layer
//!   that fails so that the event is retried counts as a failed attempt: the service that it needs
//!   may be down.
//! * A layer that never answers holds its worker until a limit outside of it, or the deadline of a
//!   stop, drops it: the event is then refused, and delivered again. A layer that is never ready
//!   also holds the other workers of its handler.
//! * A layer that panics ends its worker, like a handler that panics: the event counts as poison,
//!   the worker is restarted, and the stack is rebuilt. State that clones of a layer share (a
//!   breaker, a window) is kept.
//! * The events of a [batch](crate::handler::Handler::handle_all) go through the layers one by one;
//!   those that reach the handler at the same time are handled together.
//!
//! # Price
//! A lock and three allocations for each attempt, one or two more for each layer. A handler
//! without layers pays nothing.

mod around;
mod batch;
mod circuit_breaker;
mod correlation;
mod deduplication;
mod failures;
mod innermost;
mod layered;
mod layers;
mod meeting;
mod metrics;
mod passage;
mod request;
mod service;
mod stack;
mod traced;
#[cfg(feature = "json-schema")]
mod validation;
mod way;

pub use tower::{BoxError, Layer, Service, limit::RateLimitLayer, timeout::TimeoutLayer};

#[cfg(feature = "json-schema")]
pub use self::validation::{SchemaError, Validation};
pub use self::{
    around::{Around, Surrounded},
    circuit_breaker::{CircuitBreaker, CircuitState},
    correlation::Correlation,
    deduplication::Deduplication,
    layers::Layers,
    metrics::{Metrics, MetricsSnapshot},
    request::Request,
    service::LayersService,
    traced::{Traced, TracedService},
};

#[cfg(test)]
mod tests;
