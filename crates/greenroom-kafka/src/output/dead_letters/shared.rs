//! Shared by the store and its thread.

use std::{
    collections::BTreeMap,
    mem,
    sync::{Arc, OnceLock},
    thread::Thread,
    time::{Duration, Instant},
};

use greenroom_bus::{
    dead_letter::DeadLetter,
    sink::{SinkError, Trouble},
};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::reader::RecordReader;

/// A letter that is under way for this long has met brokers that do not answer.
const SLOW: Duration = Duration::from_secs(2);

pub(super) struct Shared {
    pub(super) name: String,
    pub(super) topic: String,
    arrived: Mutex<Arrived>,
    standing: Mutex<Standing>,
    failure: Mutex<Option<SinkError>>,
    ended: watch::Sender<bool>,
    thread: OnceLock<Thread>,
}

/// Arrivals since the thread last looked.
#[derive(Default)]
pub(super) struct Arrived {
    pub(super) letters: Vec<DeadLetter>,
    pub(super) readers: Vec<(Arc<str>, RecordReader)>,
    /// Nothing more is to come.
    pub(super) finishes: bool,
    /// The store is gone, or cannot continue.
    pub(super) is_over: bool,
}

/// The obstacle for letters.
#[derive(Default)]
struct Standing {
    /// Letters that were refused or could not be made, by their numbers.
    failing: BTreeMap<u64, Failing>,
    /// Since when the brokers owe an answer.
    unanswered: Option<Instant>,
    /// The client's last message.
    said: Option<(String, bool)>,
}

struct Failing {
    since: Instant,
    error: String,
    is_paused: bool,
}

impl Shared {
    pub(super) fn new(name: String, topic: String) -> Self {
        Self {
            name,
            topic,
            arrived: Mutex::default(),
            standing: Mutex::default(),
            failure: Mutex::default(),
            ended: watch::Sender::new(false),
            thread: OnceLock::new(),
        }
    }

    pub(super) fn is_driven_by(&self, thread: &Thread) {
        // Told once.
        let _ = self.thread.set(thread.clone());
    }

    fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    pub(super) fn push(&self, letter: DeadLetter) {
        let mut arrived = self.arrived.lock();
        if arrived.finishes || arrived.is_over {
            drop(arrived);
            // It is refused outside the lock.
            return drop(letter);
        }
        arrived.letters.push(letter);
        drop(arrived);
        self.wake();
    }

    pub(super) fn reads(&self, input: Arc<str>, reader: RecordReader) {
        self.arrived.lock().readers.push((input, reader));
        self.wake();
    }

    /// The arrivals. The end of arrivals, or of the store, is permanent.
    pub(super) fn take(&self) -> Arrived {
        let mut arrived = self.arrived.lock();
        let (finishes, is_over) = (arrived.finishes, arrived.is_over);
        mem::replace(&mut *arrived, Arrived { finishes, is_over, ..Arrived::default() })
    }

    pub(super) fn is_over(&self) -> bool {
        self.arrived.lock().is_over
    }

    pub(super) fn finish(&self) {
        self.arrived.lock().finishes = true;
        self.wake();
    }

    /// Nothing is published any more; letters that came are refused.
    pub(super) fn give_up(&self, failure: Option<String>) {
        if let Some(why) = failure {
            self.failure.lock().get_or_insert(SinkError::new(&self.name, why));
        }
        self.arrived.lock().is_over = true;
        drop(self.take());
        self.wake();
    }

    /// The thread has ended.
    pub(super) fn has_ended(&self) {
        self.ended.send_replace(true);
    }

    /// Waits until all is stored, or given up.
    ///
    /// # Errors
    /// Why unstored letters are refused.
    pub(super) async fn ended(&self) -> Result<(), SinkError> {
        // The sender lives in here, so the wait cannot fail.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
        self.failure().map_or(Ok(()), Err)
    }

    pub(super) fn failure(&self) -> Option<SinkError> {
        self.failure.lock().clone()
    }

    /// The client has lost its brokers, or is not let in.
    pub(super) fn says(&self, error: String, is_paused: bool) {
        self.standing.lock().said = Some((error, is_paused));
    }

    /// Whether any are under way: since now, or since the last answer.
    pub(super) fn awaits(&self, any: bool) {
        let mut standing = self.standing.lock();
        standing.unanswered = any.then(|| standing.unanswered.unwrap_or_else(Instant::now));
    }

    /// The brokers have answered.
    pub(super) fn is_answered(&self) {
        let mut standing = self.standing.lock();
        (standing.unanswered, standing.said) = (None, None);
    }

    pub(super) fn works(&self, number: u64) {
        self.standing.lock().failing.remove(&number);
    }

    pub(super) fn fails(&self, number: u64, error: String, is_paused: bool) {
        let mut standing = self.standing.lock();
        let since = standing.failing.get(&number).map_or_else(Instant::now, |known| known.since);
        standing.failing.insert(number, Failing { since, error, is_paused });
    }

    /// An error that an operator has to correct comes before one that may pass by itself.
    pub(super) fn trouble(&self) -> Option<Trouble> {
        let standing = self.standing.lock();
        let paused = standing.failing.values().find(|failing| failing.is_paused);
        if let Some(Failing { since, error, .. }) = paused {
            return Some(Trouble::paused(since.elapsed(), error));
        }
        let slow = standing.unanswered.filter(|since| since.elapsed() >= SLOW);
        if let Some(since) = slow {
            return Some(match &standing.said {
                Some((error, true)) => Trouble::paused(since.elapsed(), error),
                Some((error, false)) => Trouble::failing(since.elapsed(), error),
                None => Trouble::failing(since.elapsed(), "the brokers have not answered yet"),
            });
        }
        let failing = standing.failing.values().next()?;
        Some(Trouble::failing(failing.since.elapsed(), &*failing.error))
    }
}
