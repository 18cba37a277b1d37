//! Loopback events are taken to the pools like those of an input (G03).

use std::sync::Arc;

use tokio::sync::watch;

use super::{reader::EVENTS_PER_TURN, route::Routing};
use crate::engine::{
    account::order_audit::OrderLine,
    lifecycle::phase::Phase,
    process::{
        loopback::{Loopback, Returning},
        origin::Origin,
    },
};

/// The consumer of the loopback. When dropped, it leaves nothing in the queue that no task will
/// take: a worker that is being stopped may still send something.
struct Taker(Arc<Loopback>);

impl Drop for Taker {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The task that passes loopback events to the pools. It has the slot of an input, after all real
/// ones.
pub(crate) async fn carry(
    loopback: Arc<Loopback>,
    mut routing: Routing,
    mut phase: watch::Receiver<Phase>,
) {
    let input = routing.input;
    let loopback = Taker(loopback);
    let mut number = 0;
    let mut revoked = routing.shared.inputs.revocations.told();
    while *phase.borrow_and_update() != Phase::Now {
        let returning = tokio::select! {
            biased;
            _ = phase.changed() => continue,
            _ = revoked.changed() => {
                routing.give_up_waiting();
                continue;
            }
            returning = loopback.0.next() => returning,
            () = routing.go_on() => continue,
        };
        let Some(first) = returning else { break };
        for returning in std::iter::once(first)
            .chain(std::iter::from_fn(|| loopback.0.try_next()))
            .take(EVENTS_PER_TURN)
        {
            let Returning { event, ack, reserved, assigned, taken_at, to } = returning;
            number += 1;
            let origin = Origin { input, assigned, position: number, number, taken_at };
            let shared = routing.shared.clone();
            let part = |line: Option<&OrderLine>| shared.ledger.part(ack.child(), line, None);
            routing.route_again(event, to, origin, Some(reserved), &part);
            ack.confirm();
        }
        routing.feed();
        greenroom::step_aside().await;
    }
    routing.finish(&mut phase).await;
}
