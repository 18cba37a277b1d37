//! What outlives a run of a supervisor.

use super::{child::ChildId, spec::ChildSpec};

/// A child, and its state for the next run.
pub(crate) struct KeptChild {
    pub(crate) id: ChildId,
    /// It was added to a running supervisor.
    pub(crate) added: bool,
    pub(crate) spec: ChildSpec,
}
