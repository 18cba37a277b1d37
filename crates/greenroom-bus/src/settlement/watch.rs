//! Hearing of a settlement without being a part of it.

use std::sync::{Arc, Weak, atomic::Ordering};

use super::{Ack, Settled, Watch};

impl Ack {
    /// To hear of the settlement beside the one that it reports to, without being a part of it.
    pub fn watch(&self) -> Watch {
        Watch { shared: self.shared.as_ref().map(Arc::downgrade) }
    }
}

impl Watch {
    /// Calls `told` once with how the event was settled, on the thread that settles it and before
    /// its source hears of it; at once where it is settled already. A panic of `told` ends there.
    ///
    /// False, with `told` dropped, where nobody will ever know: the settlement is a
    /// [detached](Ack::detached) one, or it is over and forgotten.
    pub fn when_settled(&self, told: impl FnOnce(Settled) + Send + 'static) -> bool {
        let Some(shared) = self.shared.as_ref().and_then(Weak::upgrade) else { return false };
        let joins = |open| if open == 0 { None } else { Some(open + 1) };
        // With a part of its own for as long as this takes, it cannot be settled meanwhile.
        if shared.open.fetch_update(Ordering::AcqRel, Ordering::Acquire, joins).is_err() {
            super::contained(|| told(Settled::of(shared.state.load(Ordering::Relaxed))));
            return true;
        }
        shared.watchers.lock().get_or_insert_default().0.push(Box::new(told));
        shared.is_watched.store(true, Ordering::Relaxed);
        Ack { shared: Some(shared) }.confirm();
        true
    }

    /// Whether its settlement has to come before the other one: it is a part of that, or of another
    /// part of it. Takes time for each settlement in between.
    pub(crate) fn is_part_of(&self, other: &Self) -> bool {
        let mut whole = self.whole();
        while let Some(this) = whole {
            if this.is(other) {
                return true;
            }
            whole = this.whole();
        }
        false
    }

    fn whole(&self) -> Option<Self> {
        self.shared.as_ref()?.upgrade()?.settle.part_of()
    }

    /// Whether both stand for the same settlement.
    pub fn is(&self, other: &Self) -> bool {
        match (&self.shared, &other.shared) {
            (Some(this), Some(other)) => this.ptr_eq(other),
            _ => false,
        }
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}
