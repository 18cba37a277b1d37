//! Changes that an operator makes to a running pool.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::{
    AnyCore, Frame,
    members::{self, Changed, dismiss, dismiss_adopted, dismiss_one, hire},
};
use crate::{
    AnyAddress, SpawnError,
    control::advisor::Advisor,
    pool::{AdminError, Change, admin::change::Outcomes, controllers::advisor, limits::Gate},
    pool_events::ResizeReason,
};

/// Begins a change of the members.
pub(crate) fn change(
    pool: &Arc<dyn AnyCore>,
    begin: impl FnOnce(&Outcomes) -> Changed,
) -> Result<Change, AdminError> {
    let (outcomes, told) = mpsc::unbounded_channel();
    let (added, removed, size) = begin(&outcomes)?;
    Ok(Change::new(added, removed, size, told, pool.runtime()))
}

pub(crate) fn add(pool: &Arc<dyn AnyCore>, workers: usize) -> Result<Change, AdminError> {
    change(pool, |told| hire(pool, members::members(&**pool)?, workers, ResizeReason::Asked, told))
}

pub(crate) fn remove(pool: &Arc<dyn AnyCore>, workers: usize) -> Result<Change, AdminError> {
    let why = ResizeReason::Asked;
    change(pool, |told| dismiss(pool, members::members(&**pool)?, workers, why, told))
}

pub(crate) fn remove_worker(pool: &Arc<dyn AnyCore>, slot: usize) -> Result<Change, AdminError> {
    change(pool, |told| dismiss_one(pool, slot, told))
}

pub(crate) fn delete(pool: &Arc<dyn AnyCore>, member: &AnyAddress) -> Result<Change, AdminError> {
    change(pool, |told| dismiss_adopted(pool, member, told))
}

pub(crate) fn resize(pool: &Arc<dyn AnyCore>, workers: usize) -> Result<Change, AdminError> {
    change(pool, |told| members::resize(pool, workers, told))
}

pub(crate) fn enable(pool: &Arc<dyn AnyCore>, slot: usize) -> Result<Change, AdminError> {
    change(pool, |told| members::enable(pool, slot, told))
}

pub(crate) fn set_advisor(
    pool: &Arc<dyn AnyCore>,
    advisor: Option<Advisor>,
) -> Result<(), AdminError> {
    pool.frame().lifecycle.check_running()?;
    let out_of_range = |error: SpawnError| AdminError::AdvisorOutOfRange(error.to_string());
    advisor::replace(pool, advisor).map_err(out_of_range)
}

pub(crate) fn set_limit(
    frame: &Frame,
    limit: &'static str,
    set: impl FnOnce(&Gate) -> Result<bool, SpawnError>,
) -> Result<(), AdminError> {
    let out_of_range = |error: SpawnError| AdminError::LimitOutOfRange(error.to_string());
    match frame.limits.as_deref().map(set).transpose().map_err(out_of_range)? {
        Some(true) => Ok(()),
        _ => Err(AdminError::NoSuchLimit(limit)),
    }
}
