//! One task that serves all timers of a runtime.
//!
//! Tokio's timer is a wheel already. It offers a future for each sleeper, and something must poll
//! that. So there is one sleeper, for the earliest of our timers, and an ordered map holds the
//! rest. Unlike a second wheel, a map frees a cancelled timer's memory at once, has no longest
//! time, and fires equal instants in the order in which they were set.
//!
//! A runtime is known here while its task lives: both begin with the first timer, and end when none
//! is left.

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, LazyLock},
    time::Duration,
};

use greenroom_queue::discard::discard;
use greenroom_queue::lock::Mutex;
use tokio::{
    runtime::{self, Handle},
    sync::Notify,
    time::Instant,
};

use super::ticket::{Ticket, TimerState};
use crate::pool::later;

/// The action of a due timer.
pub(super) trait Alarm: Send {
    /// Runs user code: called under no lock. Returns the time when it rings again, if it does.
    fn ring(&mut self, ticket: &Arc<Ticket>, due: Instant) -> Option<Instant>;
}

/// The timers of one runtime.
struct Wheel {
    /// By due time, then by number.
    timers: BTreeMap<(Instant, u64), PendingTimer>,
    /// Notified when a timer has become the earliest.
    changed: Arc<Notify>,
}

struct PendingTimer {
    ticket: Arc<Ticket>,
    alarm: Box<dyn Alarm>,
}

/// The runtimes with timers. No user code runs under the lock.
static WHEELS: LazyLock<Mutex<HashMap<runtime::Id, Wheel>>> = LazyLock::new(Mutex::default);

/// Sets a timer, and makes sure that a task serves it.
pub(super) fn set(runtime: &Handle, delay: Duration, alarm: Box<dyn Alarm>) -> Arc<Ticket> {
    let at = {
        let _clock = runtime.enter();
        later(delay)
    };
    let ticket = Arc::new(Ticket::new(runtime.id(), at));
    let timer = PendingTimer { ticket: ticket.clone(), alarm };
    let mut service = None;
    let mut wheels = WHEELS.lock();
    let wheel = wheels.entry(runtime.id()).or_insert_with(|| {
        let changed = Arc::<Notify>::default();
        service = Some(Service { runtime: runtime.id(), changed: changed.clone() });
        Wheel { timers: BTreeMap::new(), changed }
    });
    let earliest = wheel.insert(at, timer).then(|| wheel.changed.clone());
    drop(wheels);
    match (service, earliest) {
        (Some(service), _) => drop(runtime.spawn(serve(service))),
        (None, Some(changed)) => changed.notify_one(),
        (None, None) => {}
    }
    ticket
}

/// Drops the message of a cancelled timer.
pub(super) fn remove(ticket: &Ticket, at: Instant) {
    let mut wheels = WHEELS.lock();
    let wheel = wheels.get_mut(&ticket.runtime);
    let timer = wheel.and_then(|wheel| wheel.timers.remove(&(at, ticket.number)));
    drop(wheels);
    discard(timer);
}

impl Wheel {
    /// True if it is now the earliest.
    fn insert(&mut self, at: Instant, timer: PendingTimer) -> bool {
        let key = (at, timer.ticket.number);
        self.timers.insert(key, timer);
        self.timers.first_key_value().is_some_and(|(first, _)| *first == key)
    }
}

/// The task of a wheel. If it is dropped with its runtime, or spawned on a runtime that has
/// stopped, its timers will never be served: they end.
struct Service {
    runtime: runtime::Id,
    /// The notifier of its wheel, which identifies it.
    changed: Arc<Notify>,
}

/// The next step of the task.
enum WheelStep {
    Ring(Instant, PendingTimer),
    Sleep(Instant),
    End,
}

async fn serve(service: Service) {
    loop {
        match service.step() {
            WheelStep::Ring(due, timer) => {
                service.ring(due, timer);
                // Many may be due at once; others on this thread get their turn.
                tokio::task::coop::consume_budget().await;
            }
            WheelStep::Sleep(until) => {
                let _ = tokio::time::timeout_at(until, service.changed.notified()).await;
            }
            WheelStep::End => break,
        }
    }
}

impl Service {
    /// The wheel is removed under the same lock under which it is found empty. Otherwise a timer
    /// could be added that no task serves.
    fn step(&self) -> WheelStep {
        let now = Instant::now();
        let mut wheels = WHEELS.lock();
        let Some(wheel) = wheels.get_mut(&self.runtime) else { return WheelStep::End };
        let Some(first) = wheel.timers.first_entry() else {
            wheels.remove(&self.runtime);
            return WheelStep::End;
        };
        match first.key().0 {
            at if at <= now => WheelStep::Ring(at, first.remove()),
            at => WheelStep::Sleep(at),
        }
    }

    fn ring(&self, due: Instant, mut timer: PendingTimer) {
        let ring = AssertUnwindSafe(|| timer.alarm.ring(&timer.ticket, due));
        let again = catch_unwind(ring).unwrap_or_else(|panic| {
            discard(panic);
            tracing::error!("a timer panicked, and ends");
            None
        });
        match again {
            Some(at) => discard(self.put_back(at, timer)),
            None => {
                timer.ticket.rang_last();
                discard(timer);
            }
        }
    }

    /// Returns a timer that was cancelled while it rang: its canceller first marks it cancelled,
    /// and then looks for it here.
    fn put_back(&self, at: Instant, timer: PendingTimer) -> Option<PendingTimer> {
        let mut wheels = WHEELS.lock();
        match wheels.get_mut(&self.runtime) {
            Some(wheel) if timer.ticket.rings_again(at) => {
                wheel.insert(at, timer);
                None
            }
            _ => Some(timer),
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let mut wheels = WHEELS.lock();
        let own = match wheels.entry(self.runtime) {
            Entry::Occupied(wheel) if Arc::ptr_eq(&wheel.get().changed, &self.changed) => {
                Some(wheel.remove())
            }
            _ => None,
        };
        drop(wheels);
        for timer in own.into_iter().flat_map(|wheel| wheel.timers.into_values()) {
            timer.ticket.leave_pending(TimerState::Ended);
            discard(timer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cancelled, if at all, after it has rung and before it is put back.
    struct RingsAgain {
        cancelled: bool,
    }

    impl Alarm for RingsAgain {
        fn ring(&mut self, ticket: &Arc<Ticket>, due: Instant) -> Option<Instant> {
            if self.cancelled {
                ticket.leave_pending(TimerState::Cancelled);
            }
            Some(due + Duration::from_secs(1))
        }
    }

    /// How many timers are pending; `None` for a runtime that is not known.
    fn pending(runtime: &Handle) -> Option<usize> {
        WHEELS.lock().get(&runtime.id()).map(|wheel| wheel.timers.len())
    }

    #[tokio::test(start_paused = true)]
    async fn a18_a_timer_that_is_cancelled_while_it_rings_is_not_put_back() {
        let runtime = Handle::current();
        for (cancelled, left) in [(true, None), (false, Some(1))] {
            set(&runtime, Duration::ZERO, Box::new(RingsAgain { cancelled }));
            tokio::time::sleep(Duration::from_millis(10)).await;
            assert_eq!(pending(&runtime), left);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a18_a_wheel_without_timers_is_forgotten() {
        let runtime = Handle::current();
        set(&runtime, Duration::from_secs(1), Box::new(RingsAgain { cancelled: true }));
        assert_eq!(pending(&runtime), Some(1));
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(pending(&runtime), None);
    }
}
