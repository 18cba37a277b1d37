//! One task that serves all timers of a runtime.
//!
//! Tokio's timer is a wheel already. It offers a future for each sleeper, and something must poll
//! that. So there is one sleeper, for the earliest of our timers, and the rest lie in an ordered
//! map. Unlike a second wheel, a map frees a cancelled timer's memory at once, has no longest time,
//! and fires equal instants in the order in which they were set.
//!
//! The task exists while timers are pending. It holds the wheel, and all other holds are short, so
//! that neither task nor memory is left when the last timer has gone.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, LazyLock, Weak, atomic::Ordering},
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

/// What happens when a timer is due.
pub(crate) trait Alarm: Send {
    /// Runs user code: called under no lock.
    fn ring(&mut self, ticket: &Arc<Ticket>, now: Instant) -> AfterAlarm;
}

/// What the task does with the timer next.
pub(crate) enum AfterAlarm {
    /// The timer is at its end.
    Over,
    /// Another task decides how it ends.
    Elsewhere,
    /// It rings again.
    At(Instant),
}

pub(crate) struct Wheel {
    runtime: runtime::Id,
    /// The origin of its nanoseconds.
    epoch: Instant,
    /// A timer has become the earliest.
    changed: Notify,
    pending: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    /// By when it is due, then by number.
    timers: BTreeMap<(u64, u64), Set>,
    /// The number of the next timer.
    next: u64,
    /// A task serves this wheel, or is being spawned. Set by the caller that adds the first timer;
    /// unset by the task under the same lock under which it finds no timer left. Otherwise a timer
    /// could be added that no task serves.
    served: bool,
}

/// A timer that is pending.
struct Set {
    ticket: Arc<Ticket>,
    alarm: Box<dyn Alarm>,
}

/// What the task does next.
enum WheelStep {
    Ring(Set),
    Sleep(Instant),
    End,
}

/// Runtimes with timers pending. A wheel removes itself when it is dropped.
static WHEELS: LazyLock<Mutex<HashMap<runtime::Id, Weak<Wheel>>>> = LazyLock::new(Mutex::default);

impl Wheel {
    /// The wheel of this runtime.
    pub(crate) fn of(runtime: &Handle) -> Arc<Self> {
        let mut wheels = WHEELS.lock();
        if let Some(wheel) = wheels.get(&runtime.id()).and_then(Weak::upgrade) {
            return wheel;
        }
        let wheel = Arc::new(Self::new(runtime));
        wheels.insert(runtime.id(), Arc::downgrade(&wheel));
        wheel
    }

    fn new(runtime: &Handle) -> Self {
        let _clock = runtime.enter();
        Self {
            runtime: runtime.id(),
            epoch: Instant::now(),
            changed: Notify::new(),
            pending: Mutex::default(),
        }
    }

    /// Sets a timer, and makes sure that a task serves it.
    pub(crate) fn set(
        self: &Arc<Self>,
        runtime: &Handle,
        delay: Duration,
        alarm: impl FnOnce(Instant) -> Box<dyn Alarm>,
    ) -> Arc<Ticket> {
        let at = {
            let _clock = runtime.enter();
            self.nanos(Instant::now()).saturating_add(nanos(delay))
        };
        let alarm = alarm(self.instant(at));
        let (ticket, first, served) = self.pending.lock().add(at, alarm);
        if !served {
            runtime.spawn(serve(Service { wheel: self.clone(), ends: false }));
        } else if first {
            self.changed.notify_one();
        }
        ticket
    }

    /// Drops what a cancelled timer would have sent.
    pub(crate) fn remove(&self, ticket: &Ticket) {
        let set = self.pending.lock().remove(ticket);
        discard(set);
    }

    fn nanos(&self, at: Instant) -> u64 {
        nanos(at.saturating_duration_since(self.epoch))
    }

    fn instant(&self, nanos: u64) -> Instant {
        self.epoch + Duration::from_nanos(nanos.min(LATEST))
    }

    fn step(&self) -> WheelStep {
        let now = self.nanos(Instant::now());
        let mut pending = self.pending.lock();
        let Some(first) = pending.timers.first_entry() else {
            pending.served = false;
            return WheelStep::End;
        };
        match first.key().0 {
            at if at <= now => WheelStep::Ring(first.remove()),
            at => WheelStep::Sleep(self.instant(at)),
        }
    }

    fn ring(&self, mut set: Set) {
        let ring = AssertUnwindSafe(|| set.alarm.ring(&set.ticket, Instant::now()));
        let next = catch_unwind(ring).unwrap_or_else(|panic| {
            discard(panic);
            tracing::error!("a timer panicked, and ends");
            AfterAlarm::Over
        });
        match next {
            AfterAlarm::At(at) => self.put_back(set, at),
            AfterAlarm::Elsewhere => discard(set),
            AfterAlarm::Over => {
                set.ticket.leave_pending(TimerState::Ended);
                discard(set);
            }
        }
    }

    /// A timer that was cancelled while it rang is not put back: its canceller first marks it
    /// cancelled and then looks for it here.
    fn put_back(&self, set: Set, at: Instant) {
        let mut pending = self.pending.lock();
        if set.ticket.is_pending() {
            pending.put(self.nanos(at), set);
        } else {
            drop(pending);
            discard(set);
        }
    }
}

impl Pending {
    /// Returns the ticket, whether this timer is the earliest, and whether a task serves it.
    fn add(&mut self, at: u64, alarm: Box<dyn Alarm>) -> (Arc<Ticket>, bool, bool) {
        let ticket = Arc::new(Ticket::new(self.next, at));
        self.next += 1;
        self.put(at, Set { ticket: ticket.clone(), alarm });
        let first = self.timers.first_key_value();
        let is_first = first.is_some_and(|((_, number), _)| *number == ticket.number);
        (ticket, is_first, std::mem::replace(&mut self.served, true))
    }

    fn put(&mut self, at: u64, set: Set) {
        set.ticket.at.store(at, Ordering::Relaxed);
        self.timers.insert((at, set.ticket.number), set);
    }

    fn remove(&mut self, ticket: &Ticket) -> Option<Set> {
        self.timers.remove(&(ticket.at.load(Ordering::Relaxed), ticket.number))
    }
}

impl Drop for Wheel {
    fn drop(&mut self) {
        let mut wheels = WHEELS.lock();
        // Another one may have taken this place meanwhile.
        if wheels.get(&self.runtime).is_some_and(|wheel| wheel.strong_count() == 0) {
            wheels.remove(&self.runtime);
        }
    }
}

impl fmt::Debug for Wheel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wheel").field("pending", &self.pending.lock().timers.len()).finish()
    }
}

/// The latest instant, so far from any epoch that a wait until then never ends: a hundred
/// years, in nanoseconds.
const LATEST: u64 = 100 * 365 * 24 * 3600 * 1_000_000_000;

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).min(LATEST)
}

/// The state of the task. If it is dropped with its runtime, or spawned on a runtime that has
/// stopped, its timers will never be served: they end.
struct Service {
    wheel: Arc<Wheel>,
    /// The task has found no timer left; timers set since belong to another one.
    ends: bool,
}

impl Drop for Service {
    fn drop(&mut self) {
        if self.ends {
            return;
        }
        let orphans = {
            let mut pending = self.wheel.pending.lock();
            pending.served = false;
            std::mem::take(&mut pending.timers)
        };
        for set in orphans.into_values() {
            set.ticket.leave_pending(TimerState::Ended);
            discard(set);
        }
    }
}

async fn serve(mut service: Service) {
    loop {
        match service.wheel.step() {
            WheelStep::Ring(set) => {
                service.wheel.ring(set);
                // Many may be due at once; others on this thread get their turn.
                tokio::task::coop::consume_budget().await;
            }
            WheelStep::Sleep(until) => {
                let _ = tokio::time::timeout_at(until, service.wheel.changed.notified()).await;
            }
            WheelStep::End => break,
        }
    }
    service.ends = true;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cancelled, if at all, when it has rung and before it is put back.
    struct RingsAgain {
        cancelled: bool,
    }

    impl Alarm for RingsAgain {
        fn ring(&mut self, ticket: &Arc<Ticket>, now: Instant) -> AfterAlarm {
            if self.cancelled {
                ticket.leave_pending(TimerState::Cancelled);
            }
            AfterAlarm::At(now + Duration::from_secs(1))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a18_a_timer_that_is_cancelled_while_it_rings_is_not_put_back() {
        let runtime = Handle::current();
        let wheel = Wheel::of(&runtime);
        for (cancelled, left) in [(true, 0), (false, 1)] {
            wheel.set(&runtime, Duration::ZERO, |_| Box::new(RingsAgain { cancelled }));
            tokio::time::sleep(Duration::from_millis(10)).await;
            assert_eq!(wheel.pending.lock().timers.len(), left);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a18_a_wheel_without_timers_is_forgotten() {
        let runtime = Handle::current();
        let known = || WHEELS.lock().contains_key(&runtime.id());
        let ring = |_| -> Box<dyn Alarm> { Box::new(RingsAgain { cancelled: true }) };
        Wheel::of(&runtime).set(&runtime, Duration::from_secs(1), ring);
        assert!(known());
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(!known());
    }
}
