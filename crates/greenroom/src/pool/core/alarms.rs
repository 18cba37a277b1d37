//! What follows when something that waits comes due.

use std::hash::Hash;

use tokio::time::Instant;

use super::Core;
use crate::{Actor, pool::clock::What};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// Rings one alarm that is due. False when there is none.
    pub(crate) fn ring_next(&self) -> bool {
        let Some(alarm) = self.clock.pop_due(Instant::now()) else { return false };
        self.note_time();
        match alarm.what {
            What::Lane(id) => self.wake_lane(alarm.index, id),
            What::Tag(tag) => self.wake_tag(tag),
            What::Held(slot) => self.tell_held(slot),
            What::Mail(slot, entry) => {
                self.clock.message_rang();
                self.wake_mail(slot, *entry);
            }
            What::Message(entry) => {
                self.clock.message_rang();
                self.wake_message(alarm.index, *entry);
            }
        }
        true
    }
}
