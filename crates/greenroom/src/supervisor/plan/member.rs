//! A child, as the plan is told of it.

use std::sync::Arc;

use crate::supervisor::{child::ChildId, spec::ChildSpec};

/// A child that the plan is told of.
pub(crate) struct PlannedChild {
    pub(crate) id: ChildId,
    pub(crate) name: Arc<str>,
    pub(crate) spec: ChildSpec,
    /// It was added to a running supervisor, which forgets it when it has ended.
    pub(crate) added: bool,
}

impl PlannedChild {
    pub(crate) fn new(id: ChildId, spec: ChildSpec, added: bool) -> Self {
        Self { id, name: spec.child.name(), spec, added }
    }
}
