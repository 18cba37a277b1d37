//! The router: named pools, named handlers, and which handler an event goes to.
//!
//! ```text
//!            the type exactly ──▶ the most specific pattern ──▶ its matcher takes it? ──▶ that handler
//! event ──▶                              ▲                          │ no
//!                                        └── the next one ◀─────────┘        none left: `Rejected`
//!       └──▶ every handler marked `fan_out` that takes it, as well
//! ```
//!
//! An event goes to one handler: the most specific one that takes it. Handlers marked
//! [`fan_out`](HandlerConfig::fan_out) get it in addition, each with an outcome of its own; the
//! event is settled when all of them are done.
//!
//! A handler may take only some events of its types: a [`Matcher`] checks attributes, extensions
//! and members of the data ([`Condition`]). Data is parsed only if a condition refers to it, and
//! once for all handlers of an event; a handler's result is parsed once more for all outputs. An
//! event that no condition applies to pays one test, when the table is looked up.
//!
//! An [`Engine`](crate::engine::Engine) contains a router. On its own, a router returns
//! [where](Router::route) an event goes, and once [started](Router::start) it handles the events
//! [passed to it](RunningRouter::handle).

mod condition;
mod config;
mod error;
mod inspected;
mod interest;
mod literal;
mod matcher;
mod named;
mod routes;

pub use {
    condition::Condition,
    config::{AckWhen, Concurrency, DEFAULT_POOL, HandlerConfig, OnFull, PoolConfig, Retry},
    error::RouterError,
    interest::{Interest, Interests, MatcherPanicked},
    literal::Literal,
    matcher::{EmptyGlob, Glob, Matcher, Mismatch},
    named::Router,
    routes::{Choice, Considered, Route},
};
pub(crate) use {named::Named, routes::Routes};

// A running router needs the engine's pools, so it is made there. This module does not depend on
// it.
pub use crate::engine::{
    lifecycle::standalone::{Dispatched, NotDispatched, RunningRouter},
    process::produced::HandlerFailure,
};
