//! Messages that are sent again and again.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{ticket::Ticket, wheel::Alarm};
use crate::{NotAccepted, WeakAddress};

pub(super) struct Every<M, R, E, F> {
    pub(super) to: WeakAddress<M, R, E>,
    pub(super) period: Duration,
    pub(super) make: F,
}

impl<M, R, E, F: FnMut() -> M> Every<M, R, E, F> {
    /// Sends one message if there is room. False if there is no receiver left.
    fn send(&mut self, ticket: &Ticket) -> bool {
        let Some(address) = self.to.upgrade() else { return false };
        match address.try_reserve() {
            Ok(permit) => {
                let message = (self.make)();
                let sent = ticket.is_pending().then(|| permit.send(message));
                match sent {
                    None => false,
                    Some(Ok(())) => true,
                    Some(Err(error)) => skips(ticket, error.without_message()),
                }
            }
            Err(why) => skips(ticket, why),
        }
    }
}

/// A tick that was not accepted is skipped, unless no receiver is left that could accept another.
fn skips(ticket: &Ticket, why: NotAccepted) -> bool {
    let gone = matches!(why, NotAccepted::Stopped | NotAccepted::NoWorkers);
    if !gone {
        ticket.skip(1);
    }
    !gone
}

/// The next tick that has not passed. Those that have are counted as skipped. Counted from the
/// tick that was due, so that the time between ticks does not drift.
fn next_tick(ticket: &Ticket, period: Duration, due: Instant) -> Option<Instant> {
    let late = due.elapsed().as_nanos() / period.as_nanos();
    let late = u32::try_from(late).unwrap_or(u32::MAX);
    ticket.skip(u64::from(late));
    due.checked_add(period.checked_mul(late.saturating_add(1))?)
}

impl<M, R, E, F> Alarm for Every<M, R, E, F>
where
    M: Send + 'static,
    R: 'static,
    E: 'static,
    F: FnMut() -> M + Send + 'static,
{
    fn ring(&mut self, ticket: &Arc<Ticket>, due: Instant) -> Option<Instant> {
        if self.send(ticket) { next_tick(ticket, self.period, due) } else { None }
    }
}
