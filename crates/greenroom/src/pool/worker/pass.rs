//! Passing the gate of a pool with limits, before each message.

use std::{hash::Hash, sync::atomic::Ordering};

use super::in_flight::InFlight;
use crate::pool::frame::{notify::notify_limit, shares::ShareHand};
use crate::{
    Actor,
    pool::{
        limits::{Outcome, Pass},
        membership::slot_state::{HAND_OVER, SIGNAL},
    },
};

/// The right to take a message, and what follows from it.
pub(super) struct Turn {
    pass: Pass,
    /// In a pool with shares: what is taken is in hand of its share until this ends.
    hand: Option<ShareHand>,
}

impl Turn {
    fn new<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
        pass: Pass,
        in_flight: &InFlight<A, K>,
    ) -> Self {
        let core = &in_flight.worker.core;
        let shared = core.frame.is_shared();
        let hand = shared.then(|| ShareHand::new(core.erased(), in_flight.worker.slot));
        Self { pass, hand }
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

/// Waits until a message may be started, holding no place that others could work from. `None` if
/// something else comes first: the end of the pool or of the worker, or a signal.
pub(super) async fn pass<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    in_flight: &mut InFlight<A, K>,
) -> Option<Turn> {
    let core = in_flight.worker.core.clone();
    let gate = core.frame.limits.as_ref()?;
    in_flight.outcome = Outcome::Done;
    if let Some(pass) = gate.try_pass() {
        return Some(Turn::new(pass, in_flight));
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
    pass.map(|pass| Turn::new(pass, in_flight))
}

/// The message of this pass has its outcome.
pub(super) fn end_pass<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    in_flight: &mut InFlight<A, K>,
    Turn { pass, hand }: Turn,
) {
    if let Some(hand) = hand {
        hand.ended();
    }
    let outcome = std::mem::replace(&mut in_flight.outcome, Outcome::Done);
    if let Some(change) = pass.ended(outcome) {
        notify_limit(&*in_flight.worker.core, change);
    }
}
