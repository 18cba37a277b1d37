//! Passing the gate of a pool with limits, before each message.

use std::{hash::Hash, sync::atomic::Ordering};

use crate::{
    Actor,
    pool::{
        hold::Hold,
        limits::{Outcome, Pass},
        seat::{HAND_OVER, SIGNAL},
    },
};

/// Waits until a message may be started, holding no place that others could work from. `None` if
/// something else comes first: the end of the pool or of the worker, or a signal.
pub(super) async fn pass<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    hold: &mut Hold<A, K>,
) -> Option<Pass> {
    let core = hold.post.core.clone();
    let gate = core.settings.derived.gate.as_ref()?;
    hold.outcome = Outcome::Done;
    if let Some(pass) = gate.try_pass() {
        return Some(pass);
    }
    hold.give_up_place();
    hold.rest();
    let pass = loop {
        let called = core.lifecycle.over.notified();
        if hold.seat.has(HAND_OVER) {
            core.hand_over(hold.post.worker);
        }
        // Pairs with the store of `Core::end` and with the `fetch_or` of `Seat::order`. A
        // notification of `over` follows each (an abort, if it is a kill): either this look
        // sees it, or `called` resolves. A look before `notified` could miss it, and the worker
        // would wait at the gate.
        if core.lifecycle.ended.load(Ordering::SeqCst)
            || hold.seat.starts_nothing()
            || hold.seat.has(SIGNAL)
        {
            break None;
        }
        tokio::select! {
            biased;
            () = called => {}
            pass = gate.pass() => break Some(pass),
        }
    };
    hold.wake_up();
    pass
}

/// The message of this pass has its outcome.
pub(super) fn end_pass<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    hold: &mut Hold<A, K>,
    pass: Pass,
) {
    let outcome = std::mem::replace(&mut hold.outcome, Outcome::Done);
    if let Some(change) = pass.ended(outcome) {
        hold.post.core.tell_limit(change);
    }
}
