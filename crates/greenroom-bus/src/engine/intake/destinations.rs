//! Where events go: to a handler or, if none matches, to the configured destination.

use crate::{
    engine::config::NoHandler,
    router::{Router, Routes},
};

/// The router of an engine, and its rules for events that no handler takes.
pub(crate) struct Destinations {
    /// As it was when the engine was built.
    pub(crate) router: Router,
    /// Its table: asked for each event.
    pub(crate) routes: Routes,
    /// The rule for an event whose type has no handler.
    pub(crate) no_handler: NoHandler,
    /// The rule for an event that every matcher refuses.
    pub(crate) handler_rejected: NoHandler,
}
