//! Passing the gate of a pool with limits, before each message.

use std::{hash::Hash, sync::atomic::Ordering};

use super::in_flight::InFlight;
use crate::pool::frame::notify::notify_limit;
use crate::{
    Actor,
    pool::{
        limits::{Outcome, Pass},
        membership::slot_state::{HAND_OVER, SIGNAL},
    },
};

/// Waits until a message may be started, holding no place that others could work from. `None` if
/// something else comes first: the end of the pool or of the worker, or a signal.
pub(super) async fn pass<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    in_flight: &mut InFlight<A, K>,
) -> Option<Pass> {
    let core = in_flight.worker.core.clone();
    let gate = core.frame.limits.as_ref()?;
    in_flight.outcome = Outcome::Done;
    if let Some(pass) = gate.try_pass() {
        return Some(pass);
    }
    in_flight.give_up_place();
    in_flight.rest();
    let pass = loop {
        let called = core.frame.lifecycle.over.notified();
        if in_flight.slot_state.has(HAND_OVER) {
            core.hand_over(in_flight.worker.slot);
        }
        // Pairs with the store of `end` and with the `fetch_or` of `SlotState::order`. A
        // notification of `over` follows each (an abort, if it is a kill): either this look
        // sees it, or `called` resolves. A look before `notified` could miss it, and the worker
        // would wait at the gate.
        if core.frame.lifecycle.ended.load(Ordering::SeqCst)
            || in_flight.slot_state.starts_nothing()
            || in_flight.slot_state.has(SIGNAL)
        {
            break None;
        }
        tokio::select! {
            biased;
            () = called => {}
            pass = gate.pass() => break Some(pass),
        }
    };
    in_flight.wake_up();
    pass
}

/// The message of this pass has its outcome.
pub(super) fn end_pass<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    in_flight: &mut InFlight<A, K>,
    pass: Pass,
) {
    let outcome = std::mem::replace(&mut in_flight.outcome, Outcome::Done);
    if let Some(change) = pass.ended(outcome) {
        notify_limit(&*in_flight.worker.core, change);
    }
}
