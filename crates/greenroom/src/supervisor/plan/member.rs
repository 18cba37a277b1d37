//! A child, as the plan knows it.

use std::sync::Arc;

use crate::supervisor::{child::ChildId, spec::ChildSpec};

/// A child for the plan.
pub(crate) struct PlannedChild {
    pub(crate) id: ChildId,
    pub(crate) name: Arc<str>,
    pub(crate) spec: ChildSpec,
    /// Whether it was added to a running supervisor, which forgets it when it has ended.
    pub(crate) added: bool,
}

impl PlannedChild {
    pub(crate) fn new(id: ChildId, spec: ChildSpec, added: bool) -> Self {
        Self { id, name: spec.child.name(), spec, added }
    }
}
