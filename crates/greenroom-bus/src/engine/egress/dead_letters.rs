//! Dead letters on their way to their store.
//!
//! A worker cannot produce more letters than it has events in hand, but an input can produce as
//! many as it reads: from lines that are not events, or types that have no handler. Inputs
//! therefore pause while too many letters are not stored.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::SystemTime,
};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

use crate::{
    dead_letter::{DeadLetter, DeadLetterStore, OutputRejection, Reason, replay::Replayed},
    engine::account::{ledger::Ledger, log_limit::LogLimit},
    event::Event,
    excerpt::excerpt,
    settlement::{Ack, Outcome, Refusal, Settle, Settled},
    wait::wait_until,
};

/// With this many letters not yet stored, inputs pause: the same number as may wait for full pools.
const LETTERS: usize = 10_000;

/// Or with this many bytes in them: a few of the largest lines that a source lets through.
const BYTES: usize = 64 << 20;

/// The event or data of a dead letter, and the reason.
pub(crate) struct Given {
    pub(crate) event: Option<Event>,
    pub(crate) raw: Option<Vec<u8>>,
    pub(crate) reason: Reason,
    pub(crate) error: String,
    pub(crate) attempts: u32,
    /// The index of its handler, if it was for one.
    pub(crate) handler: Option<usize>,
    /// Its results that outputs rejected.
    pub(crate) rejected: Vec<OutputRejection>,
}

impl Given {
    fn bytes(&self) -> usize {
        let made = self.rejected.iter().filter_map(|rejection| rejection.event.as_ref());
        let events = self.event.iter().chain(made).map(Event::approximate_bytes);
        events.sum::<usize>() + self.raw.as_ref().map_or(0, Vec::len)
    }
}

/// Where it came from, and its destination.
pub(crate) struct Addressed<'a> {
    pub(crate) input: Arc<str>,
    pub(crate) source: Arc<str>,
    pub(crate) position: u64,
    pub(crate) taken_at: Instant,
    pub(crate) handler: Option<&'a str>,
    /// The pool and its place.
    pub(crate) pool: Option<(usize, &'a str)>,
    /// The key by which its handler orders it.
    pub(crate) key: Option<Arc<str>>,
    /// Its share there.
    pub(crate) share: Option<Arc<str>>,
}

/// The way to the store of dead letters.
pub(crate) struct DeadLetters {
    pub(crate) store: Arc<dyn DeadLetterStore>,
    pub(crate) letters: Arc<PendingLetters>,
    ledger: Arc<Ledger>,
    log: LogLimit,
    told: Mutex<Option<ToldLetter>>,
}

/// A dead letter that the log has reported: one of many, if there are many.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToldLetter {
    /// The handler, if it reached one.
    pub handler: Option<String>,
    /// Why it is one.
    pub reason: Reason,
    /// The last error, cut if it is long.
    pub error: String,
}

impl ToldLetter {
    /// Of this handler, for this reason.
    pub fn new(handler: Option<&str>, reason: Reason, error: &str) -> Self {
        Self { handler: handler.map(str::to_owned), reason, error: excerpt(error).into_owned() }
    }
}

impl DeadLetters {
    pub(crate) fn new(store: Arc<dyn DeadLetterStore>, ledger: Arc<Ledger>) -> Self {
        let (log, told) = (LogLimit::default(), Mutex::default());
        Self { store, letters: Arc::default(), ledger, log, told }
    }

    /// Hands a dead letter to its store; the event is settled when it is stored.
    pub(crate) fn give(&self, mut given: Given, addressed: &Addressed<'_>, ack: Ack) {
        ack.set_outcome(Outcome::DeadLettered);
        if let Some(event) = &given.event {
            // The error of an attempt was redacted when it ended, that of a panic or a router was
            // not.
            given.error = self.store.redact(event, given.error);
        }
        self.log(&given, addressed);
        let pool = addressed.pool.map(|(place, _)| place);
        let ack = self.ticket(given.reason, pool, given.bytes(), ack);
        let last_at = SystemTime::now();
        let replayed = given.event.as_ref().and_then(|event| event.local::<Replayed>().copied());
        self.store.store(DeadLetter {
            event: given.event,
            raw: given.raw,
            reason: given.reason,
            error: given.error,
            attempts: given.attempts,
            first_at: last_at.checked_sub(addressed.taken_at.elapsed()).unwrap_or(last_at),
            last_at,
            input: addressed.input.clone(),
            source: addressed.source.clone(),
            position: addressed.position,
            pool: addressed.pool.map(|(_, name)| Arc::from(name)),
            handler: addressed.handler.map(Arc::from),
            key: addressed.key.clone(),
            share: addressed.share.clone(),
            replayed,
            rejected: given.rejected,
            ack,
        });
    }

    /// The last one in the log.
    pub(crate) fn told(&self) -> Option<ToldLetter> {
        self.told.lock().clone()
    }

    fn log(&self, given: &Given, addressed: &Addressed<'_>) {
        let Some(left_out) = self.log.line(Instant::now()) else { return };
        *self.told.lock() = Some(ToldLetter::new(addressed.handler, given.reason, &given.error));
        let Addressed { input, source, position, handler, .. } = addressed;
        let (reason, error) = (given.reason.as_str(), &*excerpt(&given.error));
        let id = given.event.as_ref().map(|event| excerpt(event.id()));
        let trace_id = given.event.as_ref().and_then(Event::trace_id);
        let (input, source, id) = (&**input, &**source, id.as_deref());
        let attempts = given.attempts;
        tracing::warn!(
            input,
            source,
            position,
            id,
            trace_id,
            handler,
            reason,
            attempts,
            error,
            lines_left_out = left_out,
            "dead letter"
        );
    }

    /// The part that the store confirms in place of the event's settlement.
    fn ticket(&self, reason: Reason, pool: Option<usize>, bytes: usize, event: Ack) -> Ack {
        self.letters.count.fetch_add(1, Ordering::AcqRel);
        self.letters.bytes.fetch_add(bytes, Ordering::AcqRel);
        let (ledger, letters) = (self.ledger.clone(), self.letters.clone());
        let event = Mutex::new(Some(event));
        Ack::new(LetterTicket { ledger, letters, reason, pool, bytes, event })
    }
}

/// Letters that were handed to the store, and are neither stored nor refused.
#[derive(Debug, Default)]
pub(crate) struct PendingLetters {
    count: AtomicUsize,
    bytes: AtomicUsize,
    /// Letters that could not be stored.
    lost: AtomicU64,
    /// Told each time one of the two falls below its bound.
    freed: Notify,
}

impl PendingLetters {
    /// Letters that are not stored yet.
    pub(crate) fn open(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Letters that could not be stored.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    pub(crate) fn has_room(&self) -> bool {
        self.count.load(Ordering::Acquire) < LETTERS && self.bytes.load(Ordering::Acquire) < BYTES
    }

    /// Waits until there is room for more. A batch that is read after that may exceed the limits.
    ///
    /// # Cancel safety
    /// A dropped future has done nothing.
    pub(crate) async fn room(&self) {
        wait_until(&self.freed, || self.has_room().then_some(())).await;
    }

    fn leave(&self, bytes: usize) {
        let fewer = self.count.fetch_sub(1, Ordering::AcqRel) == LETTERS;
        let before = self.bytes.fetch_sub(bytes, Ordering::AcqRel);
        if fewer || (before >= BYTES && before - bytes < BYTES) {
            self.freed.notify_waiters();
        }
    }
}

/// The settlement of a letter. Only a letter that was stored counts as one, and settles its event.
struct LetterTicket {
    ledger: Arc<Ledger>,
    letters: Arc<PendingLetters>,
    reason: Reason,
    /// The index of the event's pool, if it reached one.
    pool: Option<usize>,
    bytes: usize,
    /// The event's own settlement, until the letter has its outcome.
    event: Mutex<Option<Ack>>,
}

impl Settle for LetterTicket {
    fn settled(&self, how: Settled) {
        self.letters.leave(self.bytes);
        let Some(event) = self.event.lock().take() else { return };
        if !how.is_acknowledged() {
            self.letters.lost.fetch_add(1, Ordering::Relaxed);
            return event.refuse(Refusal::NotStored);
        }
        self.ledger.letters.count(self.reason, self.pool);
        event.confirm();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BoxFuture, event::TRACEPARENT, handler::samples, sink::SinkError};

    struct Nowhere;

    impl DeadLetterStore for Nowhere {
        fn describe(&self) -> String {
            "nowhere".to_owned()
        }

        fn redact(&self, event: &Event, error: String) -> String {
            error.replace(event.id(), "***")
        }

        fn store(&self, _letter: DeadLetter) {}

        fn finish<'a>(&'a self) -> BoxFuture<'a, Result<(), SinkError>> {
            Box::pin(std::future::ready(Ok(())))
        }

        fn failure(&self) -> Option<SinkError> {
            None
        }
    }

    fn dead_letters(pools: usize) -> DeadLetters {
        DeadLetters::new(Arc::new(Nowhere), Arc::new(Ledger::new(pools)))
    }

    fn letter(dead_letters: &DeadLetters, bytes: usize) -> Ack {
        dead_letters.ticket(Reason::Malformed, None, bytes, Ack::detached())
    }

    #[tokio::test(start_paused = true)]
    async fn d03_there_is_no_room_while_too_many_letters_are_not_stored() {
        let dead_letters = dead_letters(0);
        let mut open: Vec<Ack> = (0..LETTERS).map(|_| letter(&dead_letters, 1)).collect();
        let waiter = dead_letters.letters.clone();
        let waits = tokio::spawn(async move { waiter.room().await });
        tokio::task::yield_now().await;
        assert!(!waits.is_finished());
        open.pop().unwrap().confirm();
        waits.await.unwrap();
        drop(open);
        assert!(dead_letters.letters.has_room());
    }

    #[tokio::test(start_paused = true)]
    async fn d03_nor_while_they_are_too_large() {
        let dead_letters = dead_letters(0);
        let (large, small) = (letter(&dead_letters, BYTES), letter(&dead_letters, 1));
        let waiter = dead_letters.letters.clone();
        let waits = tokio::spawn(async move { waiter.room().await });
        small.confirm();
        tokio::task::yield_now().await;
        assert!(!waits.is_finished());
        large.refuse(Refusal::NotStored);
        waits.await.unwrap();
    }

    /// The line of the log about an event with this id.
    fn line(id: &str, traceparent: &str) -> String {
        let event = Event::builder(id, "/s", "t").extension(TRACEPARENT, traceparent);
        let given = Given {
            event: Some(event.build().unwrap()),
            raw: None,
            reason: Reason::Rejected,
            error: "no card 4711".to_owned(),
            attempts: 1,
            handler: None,
            rejected: Vec::new(),
        };
        let addressed = Addressed {
            input: "in".into(),
            source: "file:in".into(),
            position: 0,
            taken_at: Instant::now(),
            handler: None,
            pool: None,
            key: None,
            share: None,
        };
        let recorder = samples::Recorder::default();
        tracing::subscriber::with_default(recorder.clone(), || {
            dead_letters(0).give(given, &addressed, Ack::detached());
        });
        recorder.lines().concat()
    }

    #[test]
    fn o06_the_line_of_a_dead_letter_has_the_trace_id_of_its_event() {
        let told = line("1", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        let traced = r#"id="1" trace_id="4bf92f3577b34da6a3ce929d0e0e4736""#;
        assert!(told.contains("dead letter") && told.contains(traced), "{told}");
        let told = line("1", "00-ab-cd-01");
        assert!(told.contains("dead letter") && !told.contains("trace_id"), "{told}");
    }

    #[test]
    fn d06_an_error_is_redacted_before_the_log_has_it() {
        let told = line("4711", "none");
        assert!(told.contains(r#"error="no card ***""#), "{told}");
    }

    #[test]
    fn g08_only_a_stored_letter_counts_by_its_reason() {
        let dead_letters = dead_letters(1);
        dead_letters.ticket(Reason::PoolFull, Some(0), 0, Ack::detached()).confirm();
        dead_letters.ticket(Reason::Malformed, None, 0, Ack::detached()).refuse(Refusal::NotStored);
        let DeadLetters { ledger, letters, .. } = &dead_letters;
        assert_eq!(ledger.letters.by_reason(), [("pool_full", 1)].into());
        assert_eq!(ledger.letters.of_pool(0), 1);
        assert_eq!((letters.open(), letters.lost()), (0, 1));
    }
}
