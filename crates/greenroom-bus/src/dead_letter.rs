//! Events that could not be handled, and where they go.

pub mod file;
mod kind;
pub mod redrive;
pub mod replay;

use std::{sync::Arc, time::SystemTime};

pub use self::kind::{LettersKind, letters};
use self::replay::{Replayed, Replays};
use crate::{
    BoxFuture,
    event::Event,
    settlement::Ack,
    sink::{SinkError, Trouble},
    source::{InputKind, InputSetup},
};

/// Where dead letters go. The event stays unsettled until its letter is stored.
pub trait DeadLetterStore: Send + Sync + 'static {
    /// Its name in reports and logs, for example `file:dead-letters.ndjson`.
    fn describe(&self) -> String;

    /// Takes a letter to be stored. Never waits: the number of letters on their way is bounded by
    /// the number of events that the engine has in flight.
    fn store(&self, letter: DeadLetter);

    /// Stores and confirms all that was taken. Nothing may be stored afterwards. By default, there
    /// is nothing to wait for.
    ///
    /// # Errors
    /// Some letters could not be stored (they were refused), in words for an operator.
    fn finish<'a>(&'a self) -> BoxFuture<'a, Result<(), SinkError>> {
        Box::pin(async { Ok(()) })
    }

    /// Why the store cannot store any more, once that has happened.
    fn failure(&self) -> Option<SinkError> {
        None
    }

    /// An input of these options is there, and letters may be about what it reads. In place of one
    /// of its name that was there before.
    ///
    /// # Errors
    /// What of its options cannot be used.
    fn add_input(&self, kind: &dyn InputKind, setup: &InputSetup) -> Result<(), SinkError> {
        let _ = (kind, setup);
        Ok(())
    }

    /// The text of an error without those parts of its event that are to stay hidden. Called for
    /// each failed attempt, before it is reported.
    fn redact(&self, event: &Event, error: String) -> String {
        let _ = event;
        error
    }

    /// Like [`Sink::reopen`](crate::sink::Sink::reopen).
    fn reopen(&self) {}

    /// Like [`Sink::remark`](crate::sink::Sink::remark).
    fn remark(&self) -> Option<String> {
        None
    }

    /// Why it cannot store anything at present ([paused](Trouble::paused)), or soon may not.
    /// Letters wait for that time, and their events stay unsettled.
    fn trouble(&self) -> Option<Trouble> {
        None
    }

    /// The letters that are to be handled again, if it supports that. Called once, when an engine
    /// is built.
    fn replays(&self) -> Option<Arc<dyn Replays>> {
        None
    }
}

/// One dead letter, with all that an operator needs to judge and replay it.
#[derive(Debug)]
pub struct DeadLetter {
    /// The event, where the bytes were one.
    pub event: Option<Event>,
    /// The bytes, if they were not an event.
    pub raw: Option<Vec<u8>>,
    /// Why it is here.
    pub reason: Reason,
    /// The last error, in words.
    pub error: String,
    /// How often it was attempted.
    pub attempts: u32,
    /// When it was taken from its source.
    pub first_at: SystemTime,
    /// When it was given up.
    pub last_at: SystemTime,
    /// The name of the input that it came from.
    pub input: Arc<str>,
    /// The source of that input, for example `file:orders.ndjson`.
    pub source: Arc<str>,
    /// Its position there.
    pub position: u64,
    /// The pool, if it reached one.
    pub pool: Option<Arc<str>>,
    /// The handler, if it reached one.
    pub handler: Option<Arc<str>>,
    /// The key by which its handler orders it, if any.
    pub key: Option<Arc<str>>,
    /// Its share there, if it has one.
    pub share: Option<Arc<str>>,
    /// The letter that was replayed and has become this one.
    pub replayed: Option<Replayed>,
    /// The handler's results that outputs rejected. Other outputs may have stored other results of
    /// the same event.
    pub rejected: Vec<OutputRejection>,
    /// Confirmed when the letter is stored; dropped, it refuses.
    pub ack: Ack,
}

impl DeadLetter {
    /// The trace of its event, if any.
    pub fn trace_id(&self) -> Option<&str> {
        self.event.as_ref()?.trace_id()
    }

    /// The approximate size of its texts.
    pub(crate) fn approximate_bytes(&self) -> usize {
        let made = self.rejected.iter().filter_map(|rejection| rejection.event.as_ref());
        let events = self.event.iter().chain(made).map(Event::approximate_bytes);
        let errors = self.rejected.iter().map(|rejection| rejection.error.len());
        let raw = self.raw.as_ref().map_or(0, Vec::len);
        events.sum::<usize>() + errors.sum::<usize>() + raw + self.error.len()
    }
}

/// A permanent rejection by an output.
#[derive(Debug, Clone)]
pub struct OutputRejection {
    /// The name of the output.
    pub output: Arc<str>,
    /// The handler's result for it; `None` if that is the event itself.
    pub event: Option<Event>,
    /// The output's error.
    pub error: String,
}

spelled! {
    as_str:
    /// Why an event became a dead letter.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Reason {
        /// The bytes were no event.
        Malformed = "malformed",
        /// It has more bytes than its source takes for an event.
        TooLarge = "too_large",
        /// No handler is named for its type.
        NoHandler = "no_handler",
        /// Handlers are named for its type, and none of their matchers takes it.
        HandlerRejected = "handler_rejected",
        /// Its order key is missing or no scalar, and the handler needs one.
        KeyMissing = "key_missing",
        /// The handler rejected it.
        Rejected = "rejected",
        /// Every attempt failed.
        RetriesExhausted = "retries_exhausted",
        /// It killed its worker as often as the poison limit allows.
        Poisoned = "poisoned",
        /// Every worker of its pool was disabled after too many restarts.
        NoWorkers = "no_workers",
        /// Its pool was full, and says `on_full: dead_letter`.
        PoolFull = "pool_full",
        /// Its key was parked, and an operator dropped all that waited there.
        Dropped = "dropped",
        /// Its handler was done with it, and an output rejected a result.
        OutputRejected = "output_rejected",
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The reason after this one. Who adds a reason is made to add it here.
    fn after(reason: Reason) -> Option<Reason> {
        Some(match reason {
            Reason::Malformed => Reason::TooLarge,
            Reason::TooLarge => Reason::NoHandler,
            Reason::NoHandler => Reason::HandlerRejected,
            Reason::HandlerRejected => Reason::KeyMissing,
            Reason::KeyMissing => Reason::Rejected,
            Reason::Rejected => Reason::RetriesExhausted,
            Reason::RetriesExhausted => Reason::Poisoned,
            Reason::Poisoned => Reason::NoWorkers,
            Reason::NoWorkers => Reason::PoolFull,
            Reason::PoolFull => Reason::Dropped,
            Reason::Dropped => Reason::OutputRejected,
            Reason::OutputRejected => return None,
        })
    }

    #[test]
    fn every_reason_is_listed() {
        let all = std::iter::successors(Some(Reason::Malformed), |reason| after(*reason));
        assert!(all.eq(Reason::ALL));
    }

    #[test]
    fn the_page_on_order_says_what_each_reason_means_and_knows_no_other() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/order.md");
        let page = fs::read_to_string(path).unwrap();
        let table = page.split_once("| reason of a dead letter |").unwrap().1;
        let table = table.split_once("\n\n").unwrap().0;
        let named: Vec<&str> = table.lines().filter_map(|row| row.split('`').nth(1)).collect();
        assert_eq!(named, Reason::ALL.map(Reason::as_str));
    }
}
