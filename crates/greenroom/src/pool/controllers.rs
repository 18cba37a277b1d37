//! Who decides for a pool: its advisor, its coordinator, its supervisor.

use std::sync::{OnceLock, atomic::AtomicBool};

use parking_lot::Mutex;

use super::{advisor::advising::Advising, coordinator::Coordination, restart::Escalation};
use crate::Actor;

/// Who decides for a pool: its advisor, its coordinator, its supervisor.
pub(crate) struct Controllers<A: Actor> {
    /// What was advised last, and by which advisor, where the pool is advised.
    pub(crate) advising: Mutex<Advising>,
    /// Set before the first worker starts, where the pool has a coordinator.
    pub(crate) coordination: OnceLock<Coordination<A>>,
    /// Whom a worker's end is told when its budget is used up, where the pool is to leave it to others.
    pub(crate) escalation: Mutex<Option<Escalation>>,
    /// It has a supervisor: slots whose budget is used up rest, and what is queued is kept.
    pub(crate) supervised: AtomicBool,
}

impl<A: Actor> Default for Controllers<A> {
    fn default() -> Self {
        Self {
            advising: Mutex::default(),
            coordination: OnceLock::new(),
            escalation: Mutex::default(),
            supervised: AtomicBool::new(false),
        }
    }
}
