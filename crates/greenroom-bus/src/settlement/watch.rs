//! Hearing of a settlement without being a part of it.

use std::{
    collections::HashSet,
    sync::{Arc, Weak, atomic::Ordering},
};

use parking_lot::Mutex;

use super::{Ack, Settled, Watch};

/// Held from the look whether a settlement may wait for another until it does: two that begin to
/// wait for each other at once would both find that they may.
static FOLLOWING: Mutex<()> = Mutex::new(());

/// The result of making one settlement wait for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Following {
    /// It stays open until the other one is settled, and is settled in the same way.
    Waits,
    /// The other one waits for it.
    IsPart,
    /// Nothing that the other one waits for has gone back in, or it is settled.
    Not,
}

impl Ack {
    /// Observes the settlement, in addition to the party that it reports to, without being a part
    /// of it.
    pub fn watch(&self) -> Watch {
        Watch { shared: self.shared.as_ref().map(Arc::downgrade) }
    }
}

impl Watch {
    /// Calls `told` once with how the event was settled, on the thread that settles it and before
    /// its source is informed; at once if it is settled already. A panic of `told` ends there.
    ///
    /// False, with `told` dropped, if the settlement will never be known: it is
    /// [detached](Ack::detached), or over and forgotten.
    pub fn when_settled(&self, told: impl FnOnce(Settled) + Send + 'static) -> bool {
        let Some(shared) = self.shared.as_ref().and_then(Weak::upgrade) else { return false };
        // While this part is held, it cannot be settled.
        let Some(part) = self.part() else {
            super::contained(|| told(Settled::from_state(shared.state.load(Ordering::Relaxed))));
            return true;
        };
        shared.watchers.lock().get_or_insert_default().told.push(Box::new(told));
        shared.is_watched.store(true, Ordering::Relaxed);
        part.confirm();
        true
    }

    /// If the other one may wait for events that came back in, keeps its settlement open until that
    /// one is settled: it is acknowledged with it, or refused for the same reason. Not if the other
    /// one would then wait for itself.
    pub(crate) fn follow(&self, other: &Self) -> Following {
        let following = FOLLOWING.lock();
        if self.is_part_of(other) {
            return Following::IsPart;
        }
        let Some(part_of_other) = other.part() else { return Following::Not };
        let sent_back = part_of_other.shared.as_ref();
        let sent_back = sent_back.filter(|shared| shared.has_sent_back.load(Ordering::Relaxed));
        let follows = match sent_back.and_then(|shared| Some((shared, self.part()?))) {
            Some((shared, own)) => {
                shared.watchers.lock().get_or_insert_default().waiting.push(own);
                shared.is_watched.store(true, Ordering::Relaxed);
                Following::Waits
            }
            None => Following::Not,
        };
        // It may be the last part, and its listeners are user code.
        drop(following);
        part_of_other.confirm();
        follows
    }

    /// A part of its settlement, unless that is over.
    fn part(&self) -> Option<Ack> {
        let shared = self.shared.as_ref()?.upgrade()?;
        let one_more = |open: u32| (open > 0).then(|| open + 1);
        shared.open.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).ok()?;
        Some(Ack { shared: Some(shared) })
    }

    /// Whether its settlement has to come before the other one: the other is its parent, or follows
    /// it, directly or through others. Takes time for each settlement in between.
    pub(crate) fn is_part_of(&self, other: &Self) -> bool {
        let (mut known, mut after) = (HashSet::new(), self.after());
        while let Some(this) = after.pop() {
            if this.is(other) {
                return true;
            }
            if known.insert(this.shared.as_ref().map(|shared| shared.as_ptr().cast::<()>())) {
                after.extend(this.after());
            }
        }
        false
    }

    /// The settlements that can only come after its own.
    fn after(&self) -> Vec<Self> {
        let Some(shared) = self.shared.as_ref().and_then(Weak::upgrade) else { return Vec::new() };
        let mut after = Vec::from_iter(shared.settle.part_of());
        if let Some(watchers) = &*shared.watchers.lock() {
            after.extend(watchers.waiting.iter().map(Ack::watch));
        }
        after
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
