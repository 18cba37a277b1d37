//! One settlement per event taken: acknowledged once, or refused once, whatever happens in between.
//!
//! The engine gives every event a settlement when it takes it. Each output or dead letter that stands for the event
//! holds an [`Ack`], a child of that settlement. The event is settled when the handler is done with it *and* every
//! child is confirmed; a child that is refused or dropped refuses the event.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

/// Is told, once, how an event ended.
pub trait Settle: Send + Sync + 'static {
    /// Called exactly once for each settlement, on whichever thread released its last part.
    fn settled(&self, acknowledged: bool);
}

/// One part of an event's settlement. Confirmed or refused; dropped, it refuses.
pub struct Ack {
    shared: Option<Arc<Shared>>,
}

struct Shared {
    open: AtomicU32,
    refused: AtomicBool,
    settle: Box<dyn Settle>,
}

impl Ack {
    /// The first part of a new settlement, which reports to `settle`.
    pub fn new(settle: Box<dyn Settle>) -> Self {
        let shared = Shared { open: AtomicU32::new(1), refused: AtomicBool::new(false), settle };
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
            self.settle.settled(!self.refused.load(Ordering::Relaxed));
        }
    }
}

impl Drop for Ack {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.take() {
            shared.refused.store(true, Ordering::Relaxed);
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

    struct Log(Arc<Mutex<Vec<bool>>>);

    impl Settle for Log {
        fn settled(&self, acknowledged: bool) {
            self.0.lock().unwrap().push(acknowledged);
        }
    }

    fn settlement() -> (Ack, Arc<Mutex<Vec<bool>>>) {
        let log = Arc::new(Mutex::new(Vec::new()));
        (Ack::new(Box::new(Log(log.clone()))), log)
    }

    #[test]
    fn m03_is_acknowledged_once_when_every_part_is_confirmed() {
        let (root, log) = settlement();
        let (a, b) = (root.child(), root.child());
        root.confirm();
        a.confirm();
        assert!(log.lock().unwrap().is_empty());
        b.confirm();
        assert_eq!(*log.lock().unwrap(), [true]);
    }

    #[test]
    fn m03_one_dropped_part_refuses_the_event_once() {
        let (root, log) = settlement();
        let (a, b) = (root.child(), root.child());
        drop(a);
        b.confirm();
        root.confirm();
        assert_eq!(*log.lock().unwrap(), [false]);
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
        assert_eq!(*log.lock().unwrap(), [false]);
    }
}
