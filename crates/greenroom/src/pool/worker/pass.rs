//! Passing the gate of a pool with limits before each message.

use std::sync::{Arc, atomic::Ordering};

use super::in_flight::InFlight;
use crate::pool::frame::{AnyCore, notify::notify_limit, shares::ShareHand};
use crate::{
    Actor,
    pool::{
        limits::{Outcome, Pass},
        membership::slot_state::{HAND_OVER, SIGNAL},
        pool_payload::Key,
    },
};

/// The right to take a message, together with its share's attempt.
pub(super) struct Passage {
    pass: Pass,
    /// In a pool with shares: the attempt of the share, which ends with this.
    hand: Option<ShareHand>,
}

impl Passage {
    pub(super) fn new(pass: Pass, pool: Arc<dyn AnyCore>, slot: usize) -> Self {
        let shared = pool.frame().shares.is_some();
        Self { pass, hand: shared.then(|| ShareHand::new(pool, slot)) }
    }

    pub(super) fn started(&mut self) {
        self.pass.started();
    }

    pub(super) fn not_started(&mut self) {
        self.pass.not_started();
        if let Some(hand) = &self.hand {
            hand.not_started();
        }
    }
}

/// Passes the gate if a message may be started now. Otherwise the worker gives up a place that
/// others could work from, and [waits](await_pass).
pub(super) fn try_pass<A: Actor, K: Key>(in_flight: &mut InFlight<A, K>) -> Option<Passage> {
    in_flight.outcome = Outcome::Done;
    let core = &in_flight.worker.core;
    if let Some(pass) = core.frame.limits.as_ref().and_then(|gate| gate.try_pass()) {
        return Some(Passage::new(pass, core.erased(), in_flight.worker.slot));
    }
    in_flight.worker.give_up_place();
    in_flight.worker.rest();
    None
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
        // notification of `over` follows each (an abort, if it is a kill): either this check sees
        // it, or `called` resolves. A check before `notified` could miss it, and the worker would
        // wait at the gate.
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

/// The message of this pass has been settled.
pub(super) fn end_pass<A: Actor, K: Key>(
    in_flight: &mut InFlight<A, K>,
    Passage { pass, hand }: Passage,
) {
    if let Some(hand) = hand {
        hand.ended();
    }
    let outcome = std::mem::replace(&mut in_flight.outcome, Outcome::Done);
    if let Some(change) = pass.ended(outcome) {
        notify_limit(&*in_flight.worker.core, change);
    }
}
