//! Appends that wait to be written, bounded in events and bytes.

use std::{collections::VecDeque, time::Duration};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::{
    AppendError, Appended,
    format::{RECORD_HEADER, checksum},
    identities::{EventIdentity, identity},
    options::LogOptions,
};
use crate::event::Event;

/// Waiting appends are written within a few syncs.
const SOON: Duration = Duration::from_secs(1);

/// This many events are put into a block, or those of one append.
const BLOCK_EVENTS: usize = 4_096;
/// And this many bytes, or fewer in a small log.
const BLOCK_BYTES: u64 = 8 * 1024 * 1024;

/// Events as they will be stored: made by the appending task, so that the committer has little to
/// do.
pub(super) struct PreparedEvents {
    bytes: Vec<u8>,
    events: Vec<PreparedEvent>,
}

struct PreparedEvent {
    length: usize,
    checksum: u32,
    identity: EventIdentity,
}

impl PreparedEvents {
    pub(super) fn new(events: &[Event], is_known_by_identity: bool) -> Self {
        let about = events.iter().map(Event::approximate_bytes).sum();
        let mut prepared =
            Self { bytes: Vec::with_capacity(about), events: Vec::with_capacity(events.len()) };
        for event in events {
            let begin = prepared.bytes.len();
            event.write_stored(&mut prepared.bytes);
            let stored = &prepared.bytes[begin..];
            let identity = match is_known_by_identity {
                true => identity(event.source(), event.id()),
                false => EventIdentity::default(),
            };
            let (length, checksum) = (stored.len(), checksum(stored));
            prepared.events.push(PreparedEvent { length, checksum, identity });
        }
        prepared
    }

    /// As they will stand in a block.
    pub(super) fn bytes(&self) -> u64 {
        (self.bytes.len() + self.events.len() * RECORD_HEADER) as u64
    }

    pub(super) fn events(&self) -> impl Iterator<Item = (&[u8], u32, &EventIdentity)> {
        let mut at = 0;
        self.events.iter().map(move |event| {
            let begin = at;
            at += event.length;
            (&self.bytes[begin..at], event.checksum, &event.identity)
        })
    }
}

/// An append and its waiting caller.
pub(super) struct Append {
    pub(super) prepared: PreparedEvents,
    pub(super) answer: oneshot::Sender<Result<Appended, AppendError>>,
}

/// The committer's next task.
pub(super) enum Work {
    /// Make these durable together.
    Write(Vec<Append>),
    /// Look whether something can be removed.
    Retain,
    /// Nothing more will come.
    End,
}

pub(super) struct Waiting {
    state: Mutex<State>,
    changed: Condvar,
    most_events: usize,
    most_bytes: u64,
    /// Of a block: appends that have room one after the other have it together, too.
    block_bytes: u64,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Append>,
    events: usize,
    bytes: u64,
    /// Why nothing more is taken.
    refuses: Option<AppendError>,
    /// A consumer is done with a segment, or retention was asked for.
    retain: bool,
}

impl Waiting {
    pub(super) fn new(options: &LogOptions) -> Self {
        Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            most_events: options.waiting_events,
            most_bytes: options.waiting_bytes,
            block_bytes: BLOCK_BYTES.min(options.append_limit()),
        }
    }

    /// Whether there is room for this many events and bytes. An append that exceeds the limit by
    /// itself has room if nothing else waits.
    pub(super) fn room(&self, events: usize, bytes: u64) -> Result<(), AppendError> {
        self.has_room(&self.state.lock(), events, bytes)
    }

    fn has_room(&self, state: &State, events: usize, bytes: u64) -> Result<(), AppendError> {
        if let Some(why) = &state.refuses {
            return Err(why.clone());
        }
        let fits =
            state.events + events <= self.most_events && state.bytes + bytes <= self.most_bytes;
        if fits || state.queue.is_empty() {
            return Ok(());
        }
        let reason = format!(
            "{} events ({} bytes) wait to be written, of at most {} (waiting_events) and {} bytes (waiting_bytes): the disk \
             is slower than what comes",
            state.events, state.bytes, self.most_events, self.most_bytes
        );
        Err(AppendError::Full { reason, retry_after: SOON })
    }

    pub(super) fn push(&self, append: Append) -> Result<(), AppendError> {
        let (events, bytes) = (append.prepared.events.len(), append.prepared.bytes());
        let mut state = self.state.lock();
        self.has_room(&state, events, bytes)?;
        state.events += events;
        state.bytes += bytes;
        state.queue.push_back(append);
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// Accepts nothing more; pending appends are still written.
    pub(super) fn close(&self) {
        let closed = AppendError::Failed("the log is closed".to_owned());
        self.state.lock().refuses.get_or_insert(closed);
        self.changed.notify_one();
    }

    /// Nothing more is taken, and nothing is written.
    pub(super) fn fail(&self, why: &AppendError) {
        let queue = {
            let mut state = self.state.lock();
            state.refuses = Some(why.clone());
            (state.events, state.bytes) = (0, 0);
            std::mem::take(&mut state.queue)
        };
        for append in queue {
            // If the receiver was dropped, no caller waits for the answer.
            let _ = append.answer.send(Err(why.clone()));
        }
    }

    pub(super) fn retain(&self) {
        self.state.lock().retain = true;
        self.changed.notify_one();
    }

    /// Waits for work, at most this long.
    pub(super) fn next(&self, most: Duration) -> Work {
        let mut state = self.state.lock();
        if state.queue.is_empty() && state.refuses.is_none() && !state.retain {
            self.changed.wait_for(&mut state, most);
        }
        // Asked for seldom, and first: otherwise a log that is always busy would never come to it.
        if std::mem::take(&mut state.retain) && state.refuses.is_none() {
            return Work::Retain;
        }
        if !state.queue.is_empty() {
            return Work::Write(state.take(self.block_bytes));
        }
        if state.refuses.is_some() { Work::End } else { Work::Retain }
    }
}

impl State {
    /// The appends for the next block.
    fn take(&mut self, block_bytes: u64) -> Vec<Append> {
        let (mut taken, mut events, mut bytes) = (Vec::new(), 0, 0);
        while let Some(append) = self.queue.front() {
            let (more_events, more_bytes) = (append.prepared.events.len(), append.prepared.bytes());
            let fits = events + more_events <= BLOCK_EVENTS && bytes + more_bytes <= block_bytes;
            if !fits && !taken.is_empty() {
                break;
            }
            events += more_events;
            bytes += more_bytes;
            taken.extend(self.queue.pop_front());
        }
        self.events -= events;
        self.bytes -= bytes;
        taken
    }
}
