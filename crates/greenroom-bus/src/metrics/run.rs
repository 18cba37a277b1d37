//! The outcomes of all events: the ledger, dead letters, parked keys, waiting events.

use super::{Families, Metric};
use crate::{dead_letter::Reason, engine::Control};

metrics! {
    WORK_WAITING: gauge("greenroom_work_waiting_seconds", &[], Seconds) =
        "How long the waiting events (lag and queues) will take, at the rate of the last 10 s, or \
         the last known one. Missing while no rate is known.";
    TAKEN: counter("greenroom_events_taken_total", &[]) =
        "Items taken from the inputs, malformed ones included.";
    SETTLED: counter("greenroom_events_settled_total", &["outcome"]) =
        "Items settled, by outcome: handled, dead_lettered, ignored, refused, revoked, \
         given_back. Never more than are taken.";
    RESIDENCE: histogram("greenroom_event_residence_seconds", &[]) =
        "Time from taking an event to settling it, for every event.";
    OUT_OF_ORDER: counter("greenroom_events_out_of_order_total", &[]) =
        "Events that left after a later one of their key. Anything but 0 is a bug.";
    VIOLATIONS: counter("greenroom_invariant_violations_total", &["invariant"]) =
        "Checks that failed. order: an event left after a later one of its key. one_at_a_time: \
         two events of a key were in hand at once, of the keys that `audit` watches. ledger: more \
         was settled than taken. Anything but 0 is a bug.";
    LOST_OUTPUTS: counter("greenroom_outputs_lost_total", &[]) =
        "Events with `ack: on_success` that lost a result, because an output did not store it.";
    UNANSWERED: counter("greenroom_attempts_unanswered_total", &[]) =
        "Failed attempts that may have had an effect.";
    STALE: counter("greenroom_stale_results_total", &[]) =
        "Events done after their partition was revoked: its next owner may handle them again.";
    LETTERS: counter("greenroom_dead_letters_total", &["reason"]) =
        "Dead letters that are stored, by reason.";
    LETTERS_OPEN: gauge("greenroom_dead_letters_open", &[]) =
        "Dead letters that are not stored yet.";
    LETTERS_LOST: counter("greenroom_dead_letters_lost_total", &[]) =
        "Dead letters that could not be stored; their events are refused.";
    PARKED_KEYS: gauge("greenroom_parked_keys", &[]) = "Keys that wait for an operator.";
    PARKED_EVENTS: gauge("greenroom_parked_events", &[]) =
        "Events that wait behind parked keys, including the failed ones.";
}

/// Adds the outcomes of all events, and `waiting` as computed by [`Observer::work_waiting`].
///
/// [`Observer::work_waiting`]: super::Observer::work_waiting
pub(super) fn add(
    families: &mut Families,
    control: &Control,
    waiting: Option<std::time::Duration>,
) {
    let (ledger, progress) = (control.ledger(), control.progress());
    if let Some(waiting) = waiting {
        families.add(&WORK_WAITING, &[], waiting);
    }
    families.add(&TAKEN, &[], ledger.taken);
    for (outcome, events) in [
        ("handled", ledger.handled),
        ("dead_lettered", ledger.dead_lettered),
        ("ignored", ledger.ignored),
        ("refused", ledger.refused),
        ("revoked", ledger.revoked),
        ("given_back", ledger.given_back),
    ] {
        families.add(&SETTLED, &[outcome], events);
    }
    families.add(&RESIDENCE, &[], ledger.residence);
    families.add(&OUT_OF_ORDER, &[], ledger.out_of_order);
    for (invariant, violations) in [
        ("order", ledger.out_of_order),
        ("one_at_a_time", ledger.overlapping),
        ("ledger", ledger.settled().saturating_sub(ledger.taken)),
    ] {
        families.add(&VIOLATIONS, &[invariant], violations);
    }
    families.add(&LOST_OUTPUTS, &[], ledger.lost_outputs);
    families.add(&UNANSWERED, &[], ledger.unanswered);
    families.add(&STALE, &[], ledger.stale);
    // All of them from the start: a counter that first appears at 1 has not risen.
    for reason in Reason::ALL.map(Reason::as_str) {
        let letters = ledger.dead_letters.get(reason).copied().unwrap_or_default();
        families.add(&LETTERS, &[reason], letters);
    }
    families.add(&LETTERS_OPEN, &[], progress.dead_letters_open);
    families.add(&LETTERS_LOST, &[], progress.dead_letters_lost);
    families.add(&PARKED_KEYS, &[], progress.parked_keys);
    families.add(&PARKED_EVENTS, &[], progress.parked_events);
}
