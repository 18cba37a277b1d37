//! Taking back a message that its worker does not take.

use super::{
    HandoffSlot,
    between::{Between, HandoffStep},
    exchange::Exchange,
    outcome::Retracted,
};
use crate::{
    discard::wake_tasks,
    lock::{Locked, locked},
    stamp::Stamp,
};

impl<T: Exchange> HandoffSlot<T> {
    /// Takes back the message that a caller has handed over, because the worker does not take it.
    #[cold]
    pub fn retract(&self, now: impl Fn() -> Stamp) -> Option<Retracted<T>> {
        retract(locked(&self.0), &now)
    }

    /// Like `retract`, if the message was already there at the last call. If `whole` is false, it
    /// only checks for that. Also returns the number of messages that the worker has come for.
    pub fn retract_what_is_left(
        &self,
        whole: bool,
        now: impl Fn() -> Stamp,
    ) -> (u64, Option<Retracted<T>>) {
        let mut between = locked(&self.0);
        let came = between.came;
        let was_seen = between.has_handed() && std::mem::replace(&mut between.was_seen, true);
        (came, if was_seen && whole { retract(between, &now) } else { None })
    }
}

fn retract<T: Exchange>(
    mut between: Locked<'_, Between<T>>,
    now: &dyn Fn() -> Stamp,
) -> Option<Retracted<T>> {
    if !between.has_handed() {
        return None;
    }
    let (port, promise) = T::open();
    let (message, stamp) = (between.message.take()?, between.stamp_it(now));
    let mut waiter = None;
    if between.step == HandoffStep::Handed {
        between.promised = Some(promise);
        waiter = between.notify(HandoffStep::Promised);
    } else {
        between.step = HandoffStep::Shut;
    }
    drop(between);
    if let Some(waiter) = waiter {
        // While the message is nowhere else.
        wake_tasks(|| waiter.wake());
    }
    Some((message, stamp, port))
}
