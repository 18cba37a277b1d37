//! The settlement of an event, in the hands of its handler.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;

use crate::settlement::{Ack, Refusal};

/// Settles one event, for handlers with [`ack: manual`](crate::engine::AckWhen::Manual): once;
/// later calls have no effect. Clones settle the same event. It may be kept beyond the attempt, for
/// example until a batch of the handler's own is stored; if the last clone is dropped before the
/// event was settled, the event is refused.
#[derive(Clone)]
pub struct Settlement {
    part: Arc<Mutex<Option<Ack>>>,
}

impl Settlement {
    /// Settles this part of an event.
    pub(crate) fn new(part: Ack) -> Self {
        Self { part: Arc::new(Mutex::new(Some(part))) }
    }

    /// The source need not deliver the event again. Its outputs have to be stored as well before
    /// the source is informed. Returns true if it was not settled before.
    pub fn acknowledge(&self) -> bool {
        let part = self.part.lock().take();
        part.map(Ack::confirm).is_some()
    }

    /// The source should deliver the event again. True if nothing was said before.
    pub fn refuse(&self) -> bool {
        let part = self.part.lock().take();
        part.map(|part| part.refuse(Refusal::Handler)).is_some()
    }

    /// True once it has been said how the event ends.
    pub fn is_settled(&self) -> bool {
        self.part.lock().is_none()
    }
}

impl fmt::Debug for Settlement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settlement").field("settled", &self.is_settled()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settlement::{Outcome, Settle, Settled};

    struct Log(Arc<Mutex<Vec<Settled>>>);

    impl Settle for Log {
        fn settled(&self, how: Settled) {
            self.0.lock().push(how);
        }
    }

    fn settlement() -> (Settlement, Arc<Mutex<Vec<Settled>>>) {
        let log = Arc::new(Mutex::new(Vec::new()));
        (Settlement::new(Ack::new(Log(log.clone()))), log)
    }

    #[test]
    fn r09_an_event_is_settled_once_by_whoever_speaks_first() {
        let (settlement, log) = settlement();
        let other = settlement.clone();
        assert!(settlement.acknowledge() && other.is_settled());
        assert!(!other.refuse() && !other.acknowledge());
        drop((settlement, other));
        assert_eq!(*log.lock(), [Settled::Acknowledged(Outcome::Handled)]);
    }

    #[test]
    fn r09_an_event_of_which_nobody_says_anything_is_refused() {
        let (settlement, log) = settlement();
        drop(settlement.clone());
        assert!(log.lock().is_empty());
        drop(settlement);
        assert_eq!(*log.lock(), [Settled::Refused(Refusal::Dropped)]);
    }
}
