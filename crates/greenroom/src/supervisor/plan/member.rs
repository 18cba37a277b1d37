//! A child, as the plan is told of it.

use std::sync::Arc;

use crate::supervisor::{child::ChildId, spec::Rules};

/// A child that the plan is told of.
pub(crate) struct PlannedChild {
    pub(crate) id: ChildId,
    pub(crate) name: Arc<str>,
    pub(crate) rules: Rules,
    /// It was added to a running supervisor, which forgets it when it has ended.
    pub(crate) added: bool,
}
