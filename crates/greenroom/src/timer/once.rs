//! A message that is sent once.

use std::sync::Arc;

use tokio::time::Instant;

use super::{
    ticket::{Ticket, TimerState},
    wheel::{Alarm, Next},
};
use crate::{Address, NotAccepted, WeakAddress, pool::Permit};

pub(super) struct Once<M, R, E> {
    to: WeakAddress<M, R, E>,
    /// Present until it rings.
    message: Option<M>,
}

impl<M, R, E> Once<M, R, E> {
    pub(super) fn new(to: WeakAddress<M, R, E>, message: M) -> Self {
        Self { to, message: Some(message) }
    }
}

impl<M: Send + 'static, R: 'static, E: 'static> Alarm for Once<M, R, E> {
    fn ring(&mut self, ticket: &Arc<Ticket>, _now: Instant) -> Next {
        let (Some(message), Some(address)) = (self.message.take(), self.to.upgrade()) else {
            return Next::Over;
        };
        match address.try_reserve() {
            Ok(permit) => fire(permit, message, ticket),
            Err(NotAccepted::Full) => {
                let waiting = wait_for_room(address.clone(), message, Waiting(ticket.clone()));
                ticket.waits_in(tokio::spawn(waiting).abort_handle());
                return Next::Elsewhere;
            }
            Err(_) => {}
        }
        Next::Over
    }
}

/// Decides first, then sends: a timer that was cancelled in time never sends, one that sends can not be cancelled.
fn fire<M, R, E>(permit: Permit<'_, M, R, E>, message: M, ticket: &Ticket) {
    if ticket.leave_pending(TimerState::Fired) && permit.send(message).is_err() {
        ticket.undo_fired();
    }
}

async fn wait_for_room<M, R, E>(address: Address<M, R, E>, message: M, waiting: Waiting) {
    if let Ok(permit) = address.reserve().await {
        fire(permit, message, &waiting.0);
    }
}

/// A message that waits for room. Its task may end without having sent it, also by a panic or with its runtime.
struct Waiting(Arc<Ticket>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.leave_pending(TimerState::Ended);
    }
}
