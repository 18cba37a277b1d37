//! Passing the gate of a pool with limits, before each message.

use std::{hash::Hash, sync::atomic::Ordering};

use super::in_flight::InFlight;
use crate::pool::frame::{AnyCore, notify::notify_limit};
use crate::{
    Actor,
    pool::{
        limits::{Outcome, Pass},
        membership::slot_state::{HAND_OVER, SIGNAL},
    },
};

/// Passes the gate, if a message may be started now. Otherwise the worker gives up the place that
/// others could work from, and [waits](await_pass).
pub(super) fn try_pass<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    in_flight: &mut InFlight<A, K>,
) -> Option<Pass> {
    in_flight.outcome = Outcome::Done;
    let pass = in_flight.worker.core.frame.limits.as_ref().and_then(|gate| gate.try_pass());
    if pass.is_none() {
        in_flight.give_up_place();
        in_flight.rest();
    }
    pass
}

/// Waits until a message may be started. `None` if something else comes first: the end of the pool
/// or of the worker, or a signal.
pub(super) async fn await_pass(pool: &dyn AnyCore, slot: usize) -> Option<Pass> {
    let frame = pool.frame();
    let (gate, slot_state) = (frame.limits.as_ref()?, frame.membership.slots.at(slot));
    loop {
        let called = frame.lifecycle.over.notified();
        if slot_state.has(HAND_OVER) {
            pool.hand_over(slot);
        }
        // Pairs with the store of `end` and with the `fetch_or` of `SlotState::order`. A
        // notification of `over` follows each (an abort, if it is a kill): either this look
        // sees it, or `called` resolves. A look before `notified` could miss it, and the worker
        // would wait at the gate.
        if frame.lifecycle.ended.load(Ordering::SeqCst)
            || slot_state.starts_nothing()
            || slot_state.has(SIGNAL)
        {
            return None;
        }
        tokio::select! {
            biased;
            () = called => {}
            pass = gate.pass() => return Some(pass),
        }
    }
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
