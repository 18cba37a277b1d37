//! The fate of a message that the worker which had it in hand does not take: an adopted worker
//! whose own pool has stopped, has no workers, or refuses this message.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use greenroom_queue::{entry::Entry, stamp::Stamp};

use super::{InFlight, Source};
use crate::{
    Actor, CallError, DeadLetter, DeadLetterReason, Delivery, NotAccepted,
    delivery::{Extra, Marks},
    pool::{
        core::ExtraOf,
        frame::task_guard::start_clock,
        membership::mailbox::Mailbox,
        pool_payload::{Key, Queued},
        worker::refusals::Refusals,
    },
};

/// How long a message waits that no worker takes at the moment, in a pool that keeps
/// messages without workers.
const PATIENCE: Duration = Duration::from_millis(100);

/// The worker in this slot does not take this delivery.
pub(crate) fn note_refusal<M, R, E>(
    delivery: &mut Delivery<M, R, E>,
    slot: usize,
    why: NotAccepted,
) {
    let extra = delivery.extra.get_or_insert_with(Extra::without_port);
    let refusals = extra.refusals.get_or_insert_with(|| Box::new(Refusals { by: Vec::new(), why }));
    refusals.by.push(slot);
    refusals.why = why;
    delivery.marks.add(Marks::PUT_BACK);
}

impl<A: Actor, K: Key> InFlight<A, K> {
    /// The message was not this worker's to handle: another worker has it, or its sender is told
    /// why no worker takes it.
    #[cold]
    pub(in crate::pool::worker) fn put_back(&mut self) {
        self.delivery.marks.remove(Marks::PUT_BACK);
        let core = self.worker.core.clone();
        // After a stale `false` the message waits in a queue, and is given back from there by
        // `give_back_queued`, at the latest when the last task ends.
        if core.frame.lifecycle.ended.load(Ordering::Relaxed) {
            return self.return_message();
        }
        let extra = self.delivery.extra.as_ref();
        let refusals = extra.and_then(|extra| extra.refusals.as_deref());
        let (by, why) = refusals.map_or((&[][..], NotAccepted::NoWorkers), |r| (&r.by, r.why));
        let may_come = matches!(why, NotAccepted::NoWorkers | NotAccepted::Stopped);
        match core.who_else(by) {
            _ if self.delivery.message.is_none() => self.refuse(why),
            Some(other) => self.leave_to(&other),
            None if may_come && core.frame.config.size.holds_when_empty => self.wait_for_somebody(),
            None => self.refuse(why),
        }
    }

    fn leave_to(&mut self, other: &Arc<Mailbox<A, K>>) {
        let stamp = self.delivery.came_at();
        if let Some(entry) = self.take_entry(stamp) {
            self.worker.core.queue.permits.take_back();
            self.worker.core.leave_to(other, entry);
        }
    }

    /// Workers are asked again in a while, all of them.
    fn wait_for_somebody(&mut self) {
        let core = self.worker.core.clone();
        let accepted = self.delivery.queued_at();
        let due = core.frame.telemetry.coarse.timely().saturating_add(PATIENCE.as_nanos() as u64);
        let Some(mut entry) = self.take_entry(Stamp::coarse(due)) else { return };
        let extra = entry.extra.get_or_insert_with(ExtraOf::<A>::without_port);
        (extra.refusals, extra.accepted, extra.next.parked) = (None, Some(accepted), true);
        start_clock(&core.erased());
        core.park(self.worker.slot, Source::None, entry, PATIENCE);
    }

    /// The message in hand, out of it.
    fn take_entry(&mut self, stamp: Stamp) -> Option<Queued<A, K>> {
        let message = self.take_message()?;
        let urgent = self.delivery.class.is_urgent();
        let extra = self.delivery.extra.take();
        self.out_of_hand(false);
        Some(Entry { message, extra, key: None, hash: 0, urgent, stamp })
    }

    /// No worker takes it.
    fn refuse(&mut self, why: NotAccepted) {
        let reason = DeadLetterReason::NoWorkers;
        self.slot_state.counters.dead_letters.count(reason);
        let attempts = self.delivery.attempt() - 1;
        let age = Some(self.delivery.queued_for());
        let (message, extra) = self.finish();
        if let Some(port) = extra.and_then(|extra| extra.port) {
            port.resolve(error_of(why));
        }
        let letter = DeadLetter { message, reason, error: None, panic: None, attempts, age };
        self.worker.core.report_dead_letter(letter);
    }
}

/// The error of a caller whose message no worker takes: there is no worker for it, unless there is
/// one that refuses this message.
fn error_of<E>(why: NotAccepted) -> CallError<E> {
    match why {
        NotAccepted::Stopped | NotAccepted::NoWorkers => CallError::NoWorkers,
        why => CallError::NotTaken(why),
    }
}
