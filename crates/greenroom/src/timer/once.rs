//! A message that is sent once.

use std::sync::Arc;

use tokio::time::Instant;

use super::{
    ticket::{Ticket, TimerState},
    wheel::Alarm,
};
use crate::{
    Address, NotAccepted, SendError, WeakAddress,
    pool::{Outgoing, Permit},
};

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

impl<M: Send + 'static, R: Send + 'static, E: Send + 'static> Alarm for Once<M, R, E> {
    fn ring(&mut self, ticket: &Arc<Ticket>, _due: Instant) -> Option<Instant> {
        let (message, address) = (self.message.take()?, self.to.upgrade()?);
        match address.try_reserve() {
            Ok(permit) => {
                if let Some(message) = fire(permit, message, ticket) {
                    wait_in_line(address.clone(), message, ticket.clone());
                }
            }
            Err(NotAccepted::Full) => {
                let waiting =
                    wait_for_room(address.clone(), message, WaitingTicket(ticket.clone()));
                ticket.waits_in(tokio::spawn(waiting).abort_handle());
            }
            Err(_) => {}
        }
        None
    }
}

/// Decides first, then sends: a timer that was cancelled in time never sends, and one
/// that sends cannot be cancelled. Gives the message back if there is room in the pool
/// and none behind its key, or for its bytes.
fn fire<M, R, E>(permit: Permit<M, R, E>, message: M, ticket: &Ticket) -> Option<M> {
    ticket.leave_pending(TimerState::Fired)?;
    match permit.send(message) {
        Ok(()) => None,
        Err(SendError::KeyFull(message) | SendError::Full(message)) => Some(message),
        Err(_) => {
            ticket.undo_fired();
            None
        }
    }
}

async fn wait_for_room<M: Send + 'static, R: Send + 'static, E: Send + 'static>(
    address: Address<M, R, E>,
    message: M,
    waiting: WaitingTicket,
) {
    let unsent = match address.reserve().await {
        Ok(permit) => fire(permit, message, &waiting.0),
        Err(_) => None,
    };
    if let Some(message) = unsent {
        wait_in_line(address, message, waiting.0.clone());
    }
}

/// It has fired, and waits in line like any sender.
fn wait_in_line<M: Send + 'static, R: Send + 'static, E: Send + 'static>(
    address: Address<M, R, E>,
    message: M,
    ticket: Arc<Ticket>,
) {
    tokio::spawn(async move {
        let sent =
            address.vtable.push_waiting(&mut Outgoing::new(message, None), address.place()).await;
        if sent.is_err() {
            ticket.undo_fired();
        }
    });
}

/// A message that waits for room. Its task may end without having sent it, for example by a panic
/// or with its runtime.
struct WaitingTicket(Arc<Ticket>);

impl Drop for WaitingTicket {
    fn drop(&mut self) {
        self.0.leave_pending(TimerState::Ended);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Actor, Context, Pool};

    struct Idle;

    impl Actor for Idle {
        type Message = ();
        type Reply = ();
        type Error = ();

        async fn handle(&mut self, (): (), _cx: &mut Context<Self>) -> Result<(), ()> {
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a18_a_timer_that_is_cancelled_when_it_is_due_sends_nothing() {
        let pool = Pool::new(|_| Idle).workers(1).spawn().await.unwrap();
        let ring = |ticket: &Arc<Ticket>| {
            Once::new(pool.downgrade(), ()).ring(ticket, Instant::now());
            pool.stats().accepted
        };
        let runtime = tokio::runtime::Handle::current().id();
        let ticket = || Arc::new(Ticket::new(runtime, Instant::now()));
        let (cancelled, pending) = (ticket(), ticket());
        assert!(cancelled.leave_pending(TimerState::Cancelled).is_some());
        assert_eq!((ring(&cancelled), ring(&pending)), (0, 1));
        assert_eq!(pending.state(), TimerState::Fired);
        assert_eq!((ring(&pending), pending.state()), (1, TimerState::Fired), "once");
    }
}
