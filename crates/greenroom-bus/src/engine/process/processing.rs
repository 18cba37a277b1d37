//! Shared by the workers of all pools.

use std::sync::Arc;

use super::{
    entries::{HandlerEntry, PoolSettings},
    failures::Failures,
    fair_share::FairShare,
    key_audit::KeyAudit,
    parked::Parked,
};
use crate::trace::Recorder;

/// The handlers and pools of an engine, and the state that they share.
pub(crate) struct Processing {
    /// Each at its place.
    pub(crate) handlers: Vec<HandlerEntry>,
    /// Each at its place.
    pub(crate) pools: Vec<PoolSettings>,
    /// How pools share the threads, if one has a weight.
    pub(crate) fair_share: Option<FairShare>,
    /// Receives failed attempts.
    pub(crate) failures: Failures,
    pub(crate) parked: Parked,
    /// The receiver of spans, if there is one.
    pub(crate) recorder: Option<Arc<dyn Recorder>>,
    /// The audit of keys, if there is one.
    pub(crate) audit: Option<KeyAudit>,
}
