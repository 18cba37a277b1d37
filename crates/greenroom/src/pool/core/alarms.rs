//! What follows when something that waits comes due.

use std::hash::Hash;

use tokio::time::Instant;

use super::Core;
use crate::{Actor, pool::clock::PoolAlarm};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// Rings one alarm that is due. False when there is none.
    pub(crate) fn ring_next(&self) -> bool {
        let Some(alarm) = self.clock.pop_due(Instant::now()) else { return false };
        self.note_time();
        match alarm.what {
            PoolAlarm::Lane(id) => self.wake_lane(alarm.index, id),
            PoolAlarm::Tag(tag) => {
                if let Some(push) = &self.push {
                    push.wake_tag(self, tag);
                }
            }
            PoolAlarm::Held(slot) => {
                if let Some(push) = &self.push {
                    push.notify_held(self, slot);
                }
            }
            PoolAlarm::Mail(slot, entry) => {
                self.clock.message_rang();
                if let Some(entry) = entry.own::<A, K>() {
                    self.wake_mail(slot, entry);
                }
            }
            PoolAlarm::Message(entry) => {
                self.clock.message_rang();
                if let Some(entry) = entry.own::<A, K>() {
                    self.wake_message(alarm.index, entry);
                }
            }
        }
        true
    }
}
