//! Messages that are sent periodically.

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

/// The next tick that has not passed. Those that have are counted as skipped. Counted from the tick
/// that was due, so that the interval does not drift.
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
        // Before `make` runs: a slow one delays the next tick, but does not skip it.
        let next = next_tick(ticket, self.period, due);
        if self.send(ticket) { next } else { None }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

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
    async fn a18_a_slow_function_makes_the_next_tick_late_and_not_skipped() {
        let pool = Pool::new(|_| Idle).workers(1).spawn().await.unwrap();
        let (period, slow) = (Duration::from_millis(10), Duration::from_millis(200));
        // Its first poll moves the clock.
        let make = move || _ = tokio::time::advance(slow).now_or_never();
        let mut every = Every { to: pool.downgrade(), period, make };
        let due = Instant::now();
        let ticket = Arc::new(Ticket::new(tokio::runtime::Handle::current().id(), due));
        assert_eq!(every.ring(&ticket, due), Some(due + period));
        assert_eq!((ticket.skipped(), pool.stats().accepted), (0, 1));
    }
}
