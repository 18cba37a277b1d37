//! The end of an engine, however it comes: by its report, or because it or its run was dropped.

use std::sync::Arc;

use crate::engine::shared::Shared;

/// When dropped, it releases everyone that waits for an input that will not be read, or for an
/// output that will not be ended.
pub(crate) struct Ending(pub(crate) Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.inputs.close();
        self.0.inputs.let_go();
        self.0.egress.outputs.close();
        drop(self.0.egress.outputs.departures());
    }
}
