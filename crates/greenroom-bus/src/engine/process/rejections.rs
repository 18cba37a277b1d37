//! Events that outputs reject for good: the input becomes a dead letter, which includes the
//! rejected results (D13).
//!
//! ```text
//! event's settlement ── whole ─┬─ part for an output: confirmed ───────────────┐
//!                              ├─ part for another: rejected ── noted ──┐      ├─ nothing noted: confirmed
//!                              └─ own part, while events are handed on ─┴──────┴─ otherwise: one letter, once stored
//! ```
//!
//! The letter is made when all outputs have answered, so there is one however many of them reject,
//! and it holds all rejected results. Results that other outputs have stored stay stored.

use std::sync::{Arc, Weak, atomic::Ordering};

use parking_lot::Mutex;

use super::origin::Origin;
use crate::{
    dead_letter::{OutputRejection, Reason},
    engine::{
        egress::{dead_letters::Given, outputs::Rejecting},
        shared::Shared,
    },
    event::Event,
    settlement::{Ack, Refusal, Settle, Settled},
};

/// The event that a result was made of, and its position.
#[derive(Debug, Clone)]
pub(crate) struct InputEvent {
    pub(crate) event: Event,
    pub(crate) handler: usize,
    pub(crate) origin: Origin,
    pub(crate) attempts: u32,
}

/// The part of an event's settlement for all outputs that may reject its results.
pub(crate) struct Rejections {
    noted: Arc<Noted>,
    /// Held as long as events are handed on. Dropped before [`Self::handed_on`], it refuses the
    /// event.
    own: Ack,
}

#[derive(Default)]
struct Noted(Mutex<Vec<OutputRejection>>);

impl Rejections {
    pub(crate) fn new(shared: &Arc<Shared>, input: InputEvent, ack: Ack) -> Self {
        let noted = Arc::new(Noted::default());
        // Weak: sinks hold accepted events, and `shared` holds the sinks.
        let shared = Arc::downgrade(shared);
        let whole =
            AllAnswered { shared, noted: noted.clone(), input: Mutex::new(Some((input, ack))) };
        Self { noted, own: Ack::new(whole) }
    }

    /// For an output that may reject; `made` is the handler's result, if that is not the event
    /// itself.
    pub(crate) fn part(&self, of: &Arc<Rejecting>, made: Option<Event>) -> Ack {
        let (of, noted, whole) = (of.clone(), self.noted.clone(), self.own.child());
        Ack::new(OutputPart { of, noted, held: Mutex::new(Some((made, whole))) })
    }

    /// No further part is asked for.
    pub(crate) fn handed_on(self) {
        self.own.confirm();
    }
}

/// The result for one output.
struct OutputPart {
    of: Arc<Rejecting>,
    noted: Arc<Noted>,
    /// Until it is settled.
    held: Mutex<Option<(Option<Event>, Ack)>>,
}

impl Settle for OutputPart {
    fn is_revoked(&self) -> bool {
        self.held.lock().as_ref().is_some_and(|(_, whole)| whole.is_revoked())
    }

    fn rejected(&self, error: String) -> bool {
        let event = self.held.lock().as_mut().and_then(|(made, _)| made.take());
        self.of.events.fetch_add(1, Ordering::Relaxed);
        let output = self.of.output.clone();
        self.noted.0.lock().push(OutputRejection { output, event, error });
        true
    }

    fn settled(&self, how: Settled) {
        let Some((_, whole)) = self.held.lock().take() else { return };
        match how {
            Settled::Acknowledged(_) => whole.confirm(),
            Settled::Refused(why) => whole.refuse(why),
        }
    }
}

/// Fires when all outputs have answered.
struct AllAnswered {
    shared: Weak<Shared>,
    noted: Arc<Noted>,
    input: Mutex<Option<(InputEvent, Ack)>>,
}

impl Settle for AllAnswered {
    fn is_revoked(&self) -> bool {
        self.input.lock().as_ref().is_some_and(|(_, ack)| ack.is_revoked())
    }

    fn settled(&self, how: Settled) {
        let Some((input, ack)) = self.input.lock().take() else { return };
        let rejected = std::mem::take(&mut *self.noted.0.lock());
        match how {
            Settled::Refused(why) => ack.refuse(why),
            Settled::Acknowledged(_) if rejected.is_empty() => ack.confirm(),
            Settled::Acknowledged(_) => match self.shared.upgrade() {
                Some(shared) => give_up(&shared, input, rejected, ack),
                None => ack.refuse(Refusal::NotStored),
            },
        }
    }
}

fn give_up(shared: &Shared, input: InputEvent, mut rejected: Vec<OutputRejection>, ack: Ack) {
    // The new owner of its partition handles it, and may do better.
    if shared.inputs.revocations.is_revoked(input.origin.assigned) {
        return ack.refuse(Refusal::Revoked);
    }
    let store = &shared.egress.dead_letters.store;
    for OutputRejection { event, error, .. } in &mut rejected {
        for about in std::iter::once(&input.event).chain(event.iter()) {
            *error = store.redact(about, std::mem::take(error));
        }
    }
    let given = Given {
        event: Some(input.event),
        raw: None,
        reason: Reason::OutputRejected,
        error: summary(&rejected),
        attempts: input.attempts,
        handler: Some(input.handler),
        rejected,
    };
    shared.dead_letter(input.origin, ack, given);
}

fn summary(rejected: &[OutputRejection]) -> String {
    let Some((first, others)) = rejected.split_first() else { return String::new() };
    let others = match others.len() {
        0 => String::new(),
        more => format!(" (and {more} more: see `rejected_by`)"),
    };
    format!("the output {:?} rejects what was made of it: {}{others}", first.output, first.error)
}
