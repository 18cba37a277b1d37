//! Changes that an operator makes to a running pool.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::{
    AnyCore, Frame,
    members::{self, dismiss, dismiss_adopted, dismiss_one, hire},
};
use crate::{
    AnyAddress, SpawnError,
    control::advisor::Advisor,
    pool::{AdminError, Change, controllers::advisor, limits::Gate},
    pool_events::ResizeReason,
};

pub(crate) fn add(pool: &Arc<dyn AnyCore>, workers: usize) -> Result<Change, AdminError> {
    let (outcomes, told) = mpsc::unbounded_channel();
    let (slots, size) = hire(pool, workers, ResizeReason::Asked, &outcomes)?;
    Ok(Change::new(slots, Vec::new(), size, told, pool.runtime()))
}

pub(crate) fn remove(pool: &Arc<dyn AnyCore>, workers: usize) -> Result<Change, AdminError> {
    let (outcomes, told) = mpsc::unbounded_channel();
    let (slots, size) = dismiss(pool, workers, ResizeReason::Asked, &outcomes)?;
    Ok(Change::new(Vec::new(), slots, size, told, pool.runtime()))
}

pub(crate) fn remove_worker(pool: &Arc<dyn AnyCore>, slot: usize) -> Result<Change, AdminError> {
    let (outcomes, told) = mpsc::unbounded_channel();
    let size = dismiss_one(pool, slot, &outcomes)?;
    Ok(Change::new(Vec::new(), vec![slot], size, told, pool.runtime()))
}

pub(crate) fn delete(pool: &Arc<dyn AnyCore>, member: &AnyAddress) -> Result<Change, AdminError> {
    let (outcomes, told) = mpsc::unbounded_channel();
    let (slot, size) = dismiss_adopted(pool, member, &outcomes)?;
    Ok(Change::new(Vec::new(), vec![slot], size, told, pool.runtime()))
}

pub(crate) fn resize(pool: &Arc<dyn AnyCore>, workers: usize) -> Result<Change, AdminError> {
    let (outcomes, told) = mpsc::unbounded_channel();
    let (added, removed) = members::resize(pool, workers, &outcomes)?;
    Ok(Change::new(added, removed, workers, told, pool.runtime()))
}

pub(crate) fn enable(pool: &Arc<dyn AnyCore>, slot: usize) -> Result<Change, AdminError> {
    let (outcomes, told) = mpsc::unbounded_channel();
    let size = members::enable(pool, slot, &outcomes)?;
    Ok(Change::new(vec![slot], Vec::new(), size, told, pool.runtime()))
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
