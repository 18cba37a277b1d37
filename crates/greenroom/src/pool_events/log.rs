//! Pool events as `tracing` events.
//!
//! | level | events |
//! |---|---|
//! | error | an operator has to act: a slot is disabled, a pool stopped for an abnormal reason |
//! | warn | something was lost, or had to be mended: dead letters, drops, restarts, a full mailbox |
//! | info | the pool is another than before: started, stopped, resized |
//! | debug | routine events |
//!
//! The listener formats a field, so without listeners nothing is formatted.

use tracing::{debug, error, info, warn};

use super::event::PoolEvent;
use crate::DeadLetterReason;

pub(super) fn log(pool: &str, what: &PoolEvent) {
    use PoolEvent::*;

    let kind = what.kind().name();
    match what {
        Started { workers } => info!(pool, kind, workers, "a pool has started"),
        Stopped { reason } if reason.is_normal() => {
            info!(pool, kind, %reason, "a pool has stopped");
        }
        Stopped { reason } => error!(pool, kind, %reason, "a pool has stopped"),
        WorkerStarted { slot } => debug!(pool, kind, slot, "a worker has started"),
        WorkerAdded { slot } => debug!(pool, kind, slot, "a worker was added"),
        WorkerRemoved { slot } => debug!(pool, kind, slot, "a worker was removed"),
        WorkerRestarted { slot, restarts, reason } => {
            warn!(pool, kind, slot, restarts, %reason, "a worker was restarted");
        }
        StartFailed { slot, error } => {
            warn!(pool, kind, slot, error, "a worker could not be started; retrying");
        }
        BudgetExceeded { slot } => error!(pool, kind, slot, "a worker was restarted too often"),
        WorkerDisabled { slot } => error!(pool, kind, slot, "a worker's slot is disabled"),
        WorkerEnabled { slot } => info!(pool, kind, slot, "a worker's slot is enabled again"),
        WorkerWedged { slot, busy_for } => {
            error!(pool, kind, slot, ?busy_for, "a worker does not release its message");
        }
        Escalated { slot } => error!(pool, kind, slot, "a failure was passed to the supervisor"),
        // Its caller has gone and does not miss it.
        DeadLetter {
            message_type,
            reason: reason @ DeadLetterReason::Abandoned,
            age,
            attempts,
        } => {
            debug!(pool, kind, message_type, ?reason, ?age, attempts, "a call was abandoned");
        }
        DeadLetter { message_type, reason, age, attempts } => {
            warn!(pool, kind, message_type, ?reason, ?age, attempts, "a message was not handled");
        }
        MailboxFull => warn!(pool, kind, "the mailbox is full"),
        MailboxDrained { full_for } => info!(pool, kind, ?full_for, "the mailbox has room again"),
        DroppedByOverflow { messages } => warn!(pool, kind, messages, "messages were dropped"),
        Withdrawn { messages } => info!(pool, kind, messages, "messages were withdrawn"),
        Resized { from, to, reason } => info!(pool, kind, from, to, ?reason, "a pool is resized"),
        CapacityChanged { from, to } => {
            info!(pool, kind, from, to, "the capacity of a pool has changed");
        }
        Advised { advice } => info!(pool, kind, %advice, "advice on the pool's settings"),
        LimitChanged { from, to, reason } => {
            info!(pool, kind, from, to, ?reason, "a limit has changed");
        }
        SlotHeld { slot, messages, held_for } => {
            warn!(pool, kind, slot, messages, ?held_for, "a worker does not hand over its keys");
        }
        KeyParked => warn!(pool, kind, "a key waits for an operator"),
        KeyReleased => info!(pool, kind, "a key continues"),
        MemoryAboveCeiling { used, ceiling, holds } => {
            error!(pool, kind, used, ceiling, ?holds, "memory is above the pool's ceiling");
        }
    }
}
