//! One settlement per event taken: acknowledged once, or refused once, whatever happens in between.
//!
//! The engine gives every event a settlement when it takes it. Each output or dead letter that stands for the event
//! holds an [`Ack`], a part of that settlement. The event is settled when the handler is done with it *and* every part
//! is confirmed; a part that is refused or dropped refuses the event.

use std::sync::{
    Arc,
    atomic::{AtomicU8, AtomicU32, Ordering},
};

/// How an acknowledged event ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// Its handler handled it, and what it produced is stored.
    Handled,
    /// It lies safely in the dead letters.
    DeadLettered,
    /// No handler is named for it, and the configuration says to ignore such events.
    Ignored,
}

/// How an event was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// The source need not deliver it again.
    Acknowledged(Outcome),
    /// The source should deliver it again, where it can.
    Refused,
}

/// Is told, once, how an event ended.
pub trait Settle: Send + Sync + 'static {
    /// Called exactly once for each settlement, on whichever thread released its last part.
    fn settled(&self, how: Settled);
}

/// One part of an event's settlement. Confirmed or refused; dropped, it refuses.
pub struct Ack {
    shared: Option<Arc<Shared>>,
}

struct Shared<S: Settle + ?Sized = dyn Settle> {
    /// Parts that are neither confirmed nor refused.
    open: AtomicU32,
    /// One of the constants below: the outcome, or refused, which nothing changes any more.
    state: AtomicU8,
    settle: S,
}

const HANDLED: u8 = 0;
const DEAD_LETTERED: u8 = 1;
const IGNORED: u8 = 2;
const REFUSED: u8 = 3;

impl Ack {
    /// The first part of a new settlement, which reports to `settle`.
    pub fn new(settle: impl Settle) -> Self {
        let shared = Shared { open: AtomicU32::new(1), state: AtomicU8::new(HANDLED), settle };
        Self { shared: Some(Arc::new(shared)) }
    }

    /// A settlement that nobody watches, for tests and tools.
    pub fn detached() -> Self {
        Self { shared: None }
    }

    /// Another part of the same settlement.
    pub fn child(&self) -> Self {
        if let Some(shared) = &self.shared {
            shared.open.fetch_add(1, Ordering::Relaxed);
        }
        Self { shared: self.shared.clone() }
    }

    /// What an acknowledgement will mean, unless the event is refused; [`Outcome::Handled`] unless said otherwise.
    pub fn set_outcome(&self, outcome: Outcome) {
        let state = match outcome {
            Outcome::Handled => HANDLED,
            Outcome::DeadLettered => DEAD_LETTERED,
            Outcome::Ignored => IGNORED,
        };
        if let Some(shared) = &self.shared {
            shared.state.fetch_max(state, Ordering::Relaxed);
        }
    }

    /// This part is done: stored, or handled with nothing to store.
    pub fn confirm(mut self) {
        if let Some(shared) = self.shared.take() {
            shared.release();
        }
    }

    /// This part failed: the event is refused, whatever its other parts say.
    pub fn refuse(self) {
        drop(self);
    }
}

impl Shared {
    fn release(&self) {
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.settle.settled(match self.state.load(Ordering::Relaxed) {
                HANDLED => Settled::Acknowledged(Outcome::Handled),
                DEAD_LETTERED => Settled::Acknowledged(Outcome::DeadLettered),
                IGNORED => Settled::Acknowledged(Outcome::Ignored),
                _ => Settled::Refused,
            });
        }
    }
}

impl Drop for Ack {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.take() {
            shared.state.store(REFUSED, Ordering::Relaxed);
            shared.release();
        }
    }
}

impl std::fmt::Debug for Ack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ack").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    struct Log(Arc<Mutex<Vec<Settled>>>);

    impl Settle for Log {
        fn settled(&self, how: Settled) {
            self.0.lock().unwrap().push(how);
        }
    }

    const HANDLED: Settled = Settled::Acknowledged(Outcome::Handled);

    fn settlement() -> (Ack, Arc<Mutex<Vec<Settled>>>) {
        let log = Arc::new(Mutex::new(Vec::new()));
        (Ack::new(Log(log.clone())), log)
    }

    #[test]
    fn m03_is_acknowledged_once_when_every_part_is_confirmed() {
        let (root, log) = settlement();
        let (a, b) = (root.child(), root.child());
        root.confirm();
        a.confirm();
        assert!(log.lock().unwrap().is_empty());
        b.confirm();
        assert_eq!(*log.lock().unwrap(), [HANDLED]);
    }

    #[test]
    fn m03_one_dropped_part_refuses_the_event_once() {
        let (root, log) = settlement();
        let (a, b) = (root.child(), root.child());
        drop(a);
        b.set_outcome(Outcome::DeadLettered);
        b.confirm();
        root.confirm();
        assert_eq!(*log.lock().unwrap(), [Settled::Refused]);
    }

    #[test]
    fn m03_fires_once_when_the_holder_panics() {
        let (root, log) = settlement();
        let child = root.child();
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            let _held = child;
            panic!("boom");
        }));
        root.confirm();
        assert_eq!(*log.lock().unwrap(), [Settled::Refused]);
    }

    #[test]
    fn the_outcome_of_an_acknowledgement_is_what_was_set() {
        let (root, log) = settlement();
        root.set_outcome(Outcome::Ignored);
        root.confirm();
        assert_eq!(*log.lock().unwrap(), [Settled::Acknowledged(Outcome::Ignored)]);
    }
}
