//! Where events go: to a handler or, where none is for them, to what the configuration says.

use crate::{
    engine::config::NoHandler,
    router::{Router, Routes},
};

/// The router of an engine, with what it leaves open.
pub(crate) struct Destinations {
    /// As it was when the engine was built.
    pub(crate) router: Router,
    /// Its table: asked for each event.
    pub(crate) routes: Routes,
    /// What becomes of an event that no handler is named for.
    pub(crate) no_handler: NoHandler,
    /// What becomes of an event that every matcher refuses.
    pub(crate) handler_rejected: NoHandler,
}
