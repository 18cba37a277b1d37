//! The interface of a pool for the frame, which does not know the pool's types.

use std::{sync::Arc, time::Duration};

use greenroom_queue::{
    entry::first, permits::Permits, queue::credit_for, stamp::Stamp, sync::Ordering, wake::Wake,
};

use super::{
    Core, Key,
    backlog::share_out,
    drain::{dead_letter_queued, give_back_queued},
    mail::{clear_mailbox, take_mailbox},
    park::{wake_lane, wake_mail, wake_message},
    parked::parked_messages,
    pushes::{ask_again, hand_over},
    serve::{handed, oldest_handed},
    shut::{count_accepted, set_shards_shut, tell_shut},
};
use crate::{
    Actor, ExitReason,
    pool::{
        clock::{ClockEntry, PoolAlarm},
        frame::{
            self, Afterwards, AnyCore, Beginning, Counts, Frame, KeysTo, MailCounts, Unattended,
        },
        worker,
    },
};

impl<A: Actor, K: Key> AnyCore for Core<A, K> {
    fn frame(&self) -> &Frame {
        &self.frame
    }

    fn permits(&self) -> &Permits {
        &self.queue.permits
    }

    fn wake(&self) -> &Wake {
        &self.queue.wake
    }

    fn counts(&self) -> Counts {
        Counts {
            accepted: count_accepted(self),
            held_for_others: self.tables().map_or(0, |tables| tables.held_for_others(self)),
            bytes: self.settings.derived.bytes.as_ref().map(|bytes| bytes.waiting()),
        }
    }

    fn depth(&self) -> usize {
        let mut queued = 0;
        for shard in &self.queue.shards {
            let outbox = shard.outbox.lock();
            queued += outbox.queued() + shard.inbox.lock().queued();
        }
        for slot in 0..self.desks.len() {
            queued += self.mailbox_if_any(slot).map_or(0, |mailbox| mailbox.waiting());
        }
        queued + handed(self) + self.routing.held.lock().len() + self.frame.clock.messages()
    }

    fn oldest(&self) -> Option<Duration> {
        let mut oldest = oldest_handed(self);
        for shard in &self.queue.shards {
            let outbox = shard.outbox.lock();
            let inbox = shard.inbox.lock();
            oldest = Stamp::earliest(&[
                oldest,
                first(outbox.queue.iter()),
                outbox.lanes.oldest(),
                first(inbox.queue.iter()),
                first(inbox.urgent.iter()),
            ]);
        }
        for slot in 0..self.desks.len() {
            if let Some(mailbox) = self.mailbox_if_any(slot) {
                oldest = Stamp::earliest(&[oldest, mailbox.oldest()]);
            }
        }
        let held = first(self.routing.held().iter());
        let oldest = Stamp::earliest(&[oldest, held])?;
        Some(oldest.age(self.frame.telemetry.coarse.real()))
    }

    fn unattended(&self) -> Unattended {
        Unattended { parked: parked_messages(self), held: self.routing.held().len() as u64 }
    }

    fn mail(&self, slot: usize) -> Option<MailCounts> {
        let mailbox = self.mailbox_if_any(slot)?;
        Some(MailCounts {
            waiting: mailbox.waiting(),
            held: mailbox.held(),
            capacity: mailbox.capacity(),
        })
    }

    fn grow_to(&self, slots: usize) {
        self.desks.grow_to(slots);
        self.queue.wake.grow_to(slots);
    }

    fn hold_at_most(&self, capacity: usize) {
        self.queue.permits.resize(capacity, self);
        share_out(self, capacity);
        self.queue.credit.store(credit_for(capacity, self.queue.shards.len()), Ordering::Relaxed);
    }

    fn serve_waiters(&self) {
        Self::serve_waiters(self);
    }

    fn set_shut(&self, shut: bool) {
        set_shards_shut(self, shut);
    }

    fn tell_shut(&self, for_good: bool) {
        tell_shut(self, for_good);
    }

    fn start_worker(self: Arc<Self>, slot: usize, beginning: Beginning) {
        self.frame.spawn_worker(slot, Box::pin(worker::run(self.clone(), slot, beginning)));
    }

    fn move_keys(&self, slot: usize, to: KeysTo) -> Afterwards<'_> {
        let tables = self.tables()?;
        let migrated = tables.move_keys(self, slot, to);
        Some(Box::new(move || tables.migrated(self, migrated)))
    }

    fn hand_over(&self, slot: usize) {
        hand_over(self, slot);
    }

    fn ask_again(&self) {
        ask_again(self);
    }

    fn take_mail(self: Arc<Self>, slot: usize, reason: &ExitReason) -> Afterwards<'_> {
        let taken = take_mailbox(&self, slot)?;
        Some(Box::new(move || clear_mailbox(&self, taken, reason)))
    }

    fn end_worker(self: Arc<Self>, slot: usize, reason: &ExitReason) {
        if let Some(mailbox) = self.mailbox_if_any(slot) {
            self.end_of_worker(&mailbox, reason);
        }
    }

    fn dead_letter_queued(&self) {
        dead_letter_queued(self);
    }

    fn give_back_queued(&self) {
        give_back_queued(self);
    }

    fn ring(&self, alarm: ClockEntry) {
        self.note_time();
        match alarm.what {
            PoolAlarm::Shares => frame::shares::ring(self),
            PoolAlarm::Lane(id) => wake_lane(self, alarm.index, id),
            PoolAlarm::Tag(tag) => {
                if let Some(tables) = self.tables() {
                    tables.wake_tag(self, tag);
                }
            }
            PoolAlarm::Held(slot) => {
                if let Some(tables) = self.tables() {
                    tables.notify_held(self, slot);
                }
            }
            PoolAlarm::Mail(slot, entry) => {
                self.frame.clock.message_rang();
                if let Some(entry) = entry.own::<A, K>() {
                    wake_mail(self, slot, entry);
                }
            }
            PoolAlarm::Message(entry) => {
                self.frame.clock.message_rang();
                if let Some(entry) = entry.own::<A, K>() {
                    wake_message(self, alarm.index, entry);
                }
            }
        }
    }
}
