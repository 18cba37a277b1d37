//! The handlers and pools of an engine, each at its place.

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use parking_lot::Mutex;

use super::{
    attempt_figures::AttemptFigures, circuits::Circuits, pause::PauseGate, pool_shares::PoolShares,
    retries::Retries, share_rooms::ShareRooms, shown::ShownEvents,
};
use crate::{
    name::Name,
    router::{HandlerConfig, OnFull, PoolConfig, Retry},
};

/// A handler with its health.
pub(crate) struct HandlerEntry {
    pub(crate) name: Name,
    pub(crate) config: HandlerConfig,
    /// The place of its pool.
    pub(crate) pool: usize,
    pub(crate) circuits: Circuits,
    pub(crate) pause: PauseGate,
    /// Events that had no value at its `order_by`, and so stand in no line.
    pub(crate) without_key: AtomicU64,
    pub(crate) attempts: AttemptFigures,
    /// As it is now; looked at when an attempt has failed.
    retry: Mutex<Retry>,
}

impl HandlerEntry {
    pub(crate) fn new(name: &str, config: HandlerConfig, pool: usize, circuits: Circuits) -> Self {
        let retry = Mutex::new(config.retry.unwrap_or_default());
        Self {
            name: Name::new(name),
            config,
            pool,
            circuits,
            pause: PauseGate::default(),
            without_key: AtomicU64::new(0),
            attempts: AttemptFigures::default(),
            retry,
        }
    }

    pub(crate) fn retry(&self) -> Retry {
        *self.retry.lock()
    }

    pub(crate) fn set_retry(&self, retry: Retry) {
        *self.retry.lock() = retry;
    }
}

/// The settings of a pool that its workers and inputs need.
pub(crate) struct PoolSettings {
    pub(crate) name: Name,
    /// As it is now.
    pub(crate) config: Mutex<PoolConfig>,
    pub(crate) pause: PauseGate,
    pub(crate) shares: PoolShares,
    /// The events in hand of its workers.
    pub(crate) in_hand: ShownEvents,
    /// Of an attempt.
    pub(crate) timeout: Option<Duration>,
    /// Events stand in line where their handlers say so.
    pub(crate) keeps_order: bool,
    pub(crate) on_full: OnFull,
    /// The rooms of its shares, if its events have some.
    pub(crate) rooms: Option<Arc<ShareRooms>>,
    /// Attempts that failed.
    pub(crate) failed_attempts: AtomicU64,
    /// Attempts that were not the first of their event.
    pub(crate) further_attempts: AtomicU64,
    /// Failures that are followed by another attempt.
    pub(crate) retries: Retries,
}
