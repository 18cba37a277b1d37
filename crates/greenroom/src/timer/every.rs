//! Messages that are sent again and again.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{
    ticket::Ticket,
    wheel::{AfterAlarm, Alarm},
};
use crate::{NotAccepted, WeakAddress};

pub(super) struct Every<M, R, E, F> {
    to: WeakAddress<M, R, E>,
    period: Duration,
    /// The tick that rings next. Counted from the first one, so that the time between
    /// ticks does not drift.
    tick: Instant,
    make: F,
}

impl<M, R, E, F: FnMut() -> M> Every<M, R, E, F> {
    pub(super) fn new(to: WeakAddress<M, R, E>, period: Duration, first: Instant, make: F) -> Self {
        Self { to, period, tick: first, make }
    }

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

    /// The next tick that has not passed. Those that have are counted as skipped.
    fn advance(&mut self, ticket: &Ticket, now: Instant) -> AfterAlarm {
        let late = now.saturating_duration_since(self.tick).as_nanos() / self.period.as_nanos();
        let late = u32::try_from(late).unwrap_or(u32::MAX);
        ticket.skip(u64::from(late));
        let ahead = self.period.checked_mul(late.saturating_add(1));
        match ahead.and_then(|ahead| self.tick.checked_add(ahead)) {
            Some(tick) => self.tick = tick,
            None => return AfterAlarm::Over,
        }
        AfterAlarm::At(self.tick)
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

impl<M, R, E, F> Alarm for Every<M, R, E, F>
where
    M: Send + 'static,
    R: 'static,
    E: 'static,
    F: FnMut() -> M + Send + 'static,
{
    fn ring(&mut self, ticket: &Arc<Ticket>, now: Instant) -> AfterAlarm {
        if self.send(ticket) { self.advance(ticket, now) } else { AfterAlarm::Over }
    }
}
