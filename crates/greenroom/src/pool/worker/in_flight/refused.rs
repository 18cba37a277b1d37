//! The fate of a message in hand that its worker does not take: an adopted worker whose own pool
//! has stopped, has no workers, or refuses this message.

use std::{sync::atomic::Ordering, time::Duration};

use greenroom_queue::{entry::Entry, stamp::Stamp};

use super::{InFlight, Source};
use crate::{
    Actor, CallError, DeadLetter, DeadLetterReason, Delivery, NotAccepted,
    delivery::{Extra, Marks},
    pool::{
        core::{
            ExtraOf,
            elsewhere::who_else,
            notify::report_dead_letter,
            park::{leave_to, park},
        },
        frame::task_guard::start_clock,
        pool_payload::{Entries, Key, Queued},
        worker::refusals::Refusals,
    },
};

/// How long a message waits if no worker takes it at the moment, in a pool that keeps messages
/// without workers.
const PATIENCE: Duration = Duration::from_millis(100);

/// The worker with this slot and task does not take this delivery.
pub(crate) fn note_refusal<M, R, E>(
    delivery: &mut Delivery<M, R, E>,
    worker: (usize, u64),
    why: NotAccepted,
) {
    let extra = delivery.extra.get_or_insert_with(|| Extra::new(None));
    let refusals = extra.refusals.get_or_insert_with(|| Box::new(Refusals { by: Vec::new(), why }));
    refusals.by.push(worker);
    refusals.why = why;
    delivery.marks.add(Marks::PUT_BACK);
}

/// The message was not for this worker: another worker gets it, or its sender learns why no worker
/// takes it.
#[cold]
pub(in crate::pool::worker) fn put_back<A: Actor, K: Key>(in_flight: &mut InFlight<A, K>) {
    in_flight.delivery.marks.remove(Marks::PUT_BACK);
    let core = in_flight.worker.core.clone();
    // After a stale `false` the message waits in a queue, and `give_back_queued` gives it back from
    // there, at the latest when the last task ends.
    if core.frame.lifecycle.ended.load(Ordering::Relaxed) {
        return in_flight.return_message();
    }
    let extra = in_flight.delivery.extra.as_ref();
    let refusals = extra.and_then(|extra| extra.refusals.as_deref());
    let (by, why) = refusals.map_or((&[][..], NotAccepted::NoWorkers), |r| (&r.by, r.why));
    let may_come = matches!(why, NotAccepted::NoWorkers | NotAccepted::Stopped);
    match who_else(&core, by) {
        _ if in_flight.delivery.message.is_none() => refuse(in_flight, why),
        Some(other) => {
            let stamp = in_flight.delivery.came_at();
            if let Some(entry) = take_entry(in_flight, stamp) {
                core.queue.permits.take_back();
                leave_to(&core, &other, entry);
            }
        }
        None if may_come && core.frame.config.size.holds_when_empty => wait_for_somebody(in_flight),
        None => refuse(in_flight, why),
    }
}

/// All workers are asked again after a while.
fn wait_for_somebody<A: Actor, K: Key>(in_flight: &mut InFlight<A, K>) {
    let core = in_flight.worker.core.clone();
    let accepted = in_flight.delivery.queued_at();
    let due = core.frame.telemetry.coarse.timely().saturating_add(PATIENCE.as_nanos() as u64);
    let Some(mut entry) = take_entry(in_flight, Stamp::coarse(due)) else { return };
    let extra = entry.extra.get_or_insert_with(ExtraOf::<A>::without_port);
    (extra.refusals, extra.accepted, extra.next.parked) = (None, Some(accepted), true);
    start_clock(&core.erased());
    let entries = Entries::<A, K>::only(entry);
    park(&core, in_flight.worker.slot, Source::None, entries, PATIENCE);
}

/// Takes the message out of the worker's hand.
fn take_entry<A: Actor, K: Key>(
    in_flight: &mut InFlight<A, K>,
    stamp: Stamp,
) -> Option<Queued<A, K>> {
    let message = in_flight.take_message()?;
    let urgent = in_flight.delivery.class.is_urgent();
    let extra = in_flight.delivery.extra.take();
    in_flight.out_of_hand(false);
    Some(Entry { message, extra, key: None, hash: 0, urgent, stamp })
}

/// No worker takes the message.
fn refuse<A: Actor, K: Key>(in_flight: &mut InFlight<A, K>, why: NotAccepted) {
    let reason = DeadLetterReason::NoWorkers;
    in_flight.slot_state.counters.dead_letters.count(reason);
    let attempts = in_flight.delivery.attempt() - 1;
    let age = Some(in_flight.delivery.queued_for());
    let (message, extra) = in_flight.finish();
    if let Some(port) = extra.and_then(|extra| extra.port) {
        port.resolve(error_of(why));
    }
    let letter = DeadLetter { message, reason, error: None, panic: None, attempts, age };
    report_dead_letter(&in_flight.worker.core, letter);
}

/// The error of a caller whose message no worker takes: there is no worker for it, unless there is
/// one that refuses this message.
fn error_of<E>(why: NotAccepted) -> CallError<E> {
    match why {
        NotAccepted::Stopped | NotAccepted::NoWorkers => CallError::NoWorkers,
        why => CallError::NotTaken(why),
    }
}
