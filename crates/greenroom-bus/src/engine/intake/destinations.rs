//! Where events go: to a handler or, where none is for them, to what the configuration says.

use crate::{engine::config::NoHandler, router::Router};

/// The router of an engine, with what it leaves open.
pub(crate) struct Destinations {
    pub(crate) router: Router,
    /// What becomes of an event that no handler is named for.
    pub(crate) no_handler: NoHandler,
    /// What becomes of an event that every matcher refuses.
    pub(crate) handler_rejected: NoHandler,
}
