//! The end of an engine, however it comes: by its report, or because it or its run was dropped.

use std::sync::Arc;

use crate::engine::shared::Shared;

/// Lets nobody wait for an input that nobody will read, or for an output that nobody will
/// end, once it is dropped.
pub(crate) struct Ending(pub(crate) Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.inputs.close();
        self.0.inputs.let_go();
        self.0.egress.outputs.close();
        drop(self.0.egress.outputs.departures());
    }
}
