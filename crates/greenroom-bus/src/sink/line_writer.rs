//! Lines that are confirmed when they are safe: a thread that writes,
//! syncs, and only then confirms.
//!
//! ```text
//! accept ──room──▶ queue ──batch──▶ serialise ──append──▶ sync ──▶ confirm, in order
//!           │                                      │
//!           └ given back once serialised           └ any error: revert, refuse all that is not confirmed, for ever
//! ```
//!
//! Many lines share a sync: at most one in [`SYNC_EVERY`] while lines keep coming, and one as soon
//! as they pause. A due rotation happens after a sync, between two lines. The thread is woken when
//! a pause ends or a batch is full, not line by line. The user of the writer sets the length of a
//! pause: an input waits for a sink's confirmations, and nothing waits for a dead letter.

use std::{
    hint::black_box,
    io,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use tokio::sync::{Semaphore, TryAcquireError, watch};

use super::{SinkError, storage::Storage};
use crate::settlement::{Ack, Refusal};

/// Syncs are this far apart while lines keep coming. Each costs the disk some
/// milliseconds, whatever its size.
const SYNC_EVERY: Duration = Duration::from_millis(100);
/// Queued lines take at most this many bytes: enough for workers to continue while a sync takes its
/// ten milliseconds, measured with `bench/end-to-end`.
const QUEUE_BYTES: usize = 8 * 1024 * 1024;
/// The most queued lines: each takes at least its share of [`QUEUE_BYTES`].
const QUEUE_LINES: usize = 8 * 1024;
/// With this many bytes queued, a batch is full: as much as fits into a core's own cache, measured.
const BATCH_BYTES: usize = 512 * 1024;
/// A file that is rotated by time is looked at this often while nothing comes: the clock of the
/// system may be set.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// Serialised bytes are handed to the storage in pieces of about this size.
const APPEND_BYTES: usize = 256 * 1024;

/// Lines, and settlements, that are fetched into the caches at a time: enough that their misses
/// overlap, and few enough that they are still there.
const FETCHED: usize = 16;

/// Reads a byte of each of the next.
fn fetch<T>(ahead: &[T], read: impl Fn(&T) -> u8) {
    black_box(ahead.iter().take(FETCHED).fold(0, |all, next| all ^ read(next)));
}

/// Takes the contents of the buffer, and leaves it empty.
pub(crate) type DrainBuffer<'a> = dyn FnMut(&mut Vec<u8>) -> io::Result<()> + 'a;

/// Something that becomes a line.
pub(crate) trait Line: Send + 'static {
    /// About how many bytes it takes while it is queued.
    fn bytes(&self) -> usize;

    /// Appends the line, without the line feed. A large one may be passed on in pieces.
    ///
    /// # Errors
    /// A piece that was passed on could not be written.
    fn write(&self, out: &mut Vec<u8>, pass: &mut DrainBuffer<'_>) -> io::Result<()>;

    /// Reads a byte of each part that [`write`](Self::write) will read: queued data has left the
    /// caches, and this overlaps the misses of several lines.
    fn fetch(&self) -> u8 {
        0
    }

    /// The part to confirm once the line is safe. The rest is dropped.
    fn into_ack(self) -> Ack;
}

/// The sending side of a writer thread. When dropped, it lets the thread write all accepted lines,
/// and end.
pub(crate) struct LineWriter<L: Line> {
    shared: Arc<Shared<L>>,
}

struct Shared<L> {
    /// The name of the target in errors.
    name: String,
    /// How long a batch collects, and how long no line must have come for a pause.
    pause: Duration,
    state: Mutex<State<L>>,
    /// Wakes the thread: at `wake_at`, when finishing.
    work: Condvar,
    /// One permit is one byte. Taken before a line is queued, given back once it is serialised;
    /// first come, first served. Closed when nothing can be stored any more.
    room: Semaphore,
    /// True once the thread has confirmed or refused everything.
    ended: watch::Sender<bool>,
}

struct State<L> {
    /// In order of acceptance, with the permits that each holds.
    queue: Vec<(L, usize)>,
    bytes: usize,
    /// The thread is to be woken when this many bytes are queued. `usize::MAX` while it is awake.
    wake_at: usize,
    finishing: bool,
    /// The thread is to look whether its file is still in its place.
    reopening: bool,
    failure: Option<SinkError>,
    /// How many remarks there were, and the last one.
    remarks: (u64, String),
}

/// The thread's next step.
enum Next {
    Write,
    Pause,
    Reopen,
    End,
}

impl<L: Line> LineWriter<L> {
    /// Starts the thread. A line that comes alone is synced after two pauses.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub(crate) fn start(name: String, storage: impl Storage, pause: Duration) -> io::Result<Self> {
        let state = State {
            queue: Vec::new(),
            bytes: 0,
            wake_at: usize::MAX,
            finishing: false,
            reopening: false,
            failure: None,
            remarks: (0, String::new()),
        };
        let shared = Arc::new(Shared {
            name,
            pause,
            state: Mutex::new(state),
            work: Condvar::new(),
            room: Semaphore::new(QUEUE_BYTES),
            ended: watch::Sender::new(false),
        });
        let thread =
            Thread { shared: shared.clone(), storage, unsynced: Vec::new(), unsynced_since: None };
        thread::Builder::new().name("greenroom-writer".to_owned()).spawn(move || thread.run())?;
        Ok(Self { shared })
    }

    pub(crate) fn name(&self) -> &str {
        &self.shared.name
    }

    /// Queues a line, or gives it back when there is no room. After a failure
    /// or the end it is refused.
    pub(crate) fn try_accept(&self, line: L) -> Result<(), L> {
        let room = room_of(&line);
        match self.shared.room.try_acquire_many(permits(room)) {
            Ok(permit) => {
                permit.forget();
                self.shared.push(line, room);
                Ok(())
            }
            Err(TryAcquireError::NoPermits) => Err(line),
            Err(TryAcquireError::Closed) => Ok(()),
        }
    }

    /// Waits for room in order of arrival, then queues the line. Cancelled, it drops
    /// the line, which refuses it.
    pub(crate) async fn accept(&self, line: L) {
        let room = room_of(&line);
        if let Ok(permit) = self.shared.room.acquire_many(permits(room)).await {
            permit.forget();
            self.shared.push(line, room);
        }
    }

    /// Queues a line whatever the room: its number is bounded by others.
    pub(crate) fn accept_beyond_bounds(&self, line: L) {
        self.shared.push(line, 0);
    }

    /// Writes, syncs and confirms all that was accepted.
    pub(crate) async fn finish(&self) -> Result<(), SinkError> {
        self.shared.finish();
        // The sender lives in `shared`, so the wait cannot fail.
        let _ = self.shared.ended.subscribe().wait_for(|ended| *ended).await;
        self.failure().map_or(Ok(()), Err)
    }

    pub(crate) fn failure(&self) -> Option<SinkError> {
        self.shared.state.lock().failure.clone()
    }

    /// The thread looks whether its file is still in its place.
    pub(crate) fn reopen(&self) {
        self.shared.state.lock().reopening = true;
        self.shared.work.notify_one();
    }

    /// A remark about the target.
    pub(crate) fn remark(&self) -> Option<String> {
        let state = self.shared.state.lock();
        match &state.remarks {
            (0, _) => None,
            (1, what) => Some(what.clone()),
            (times, what) => Some(format!("{what} ({times} times such a thing happened)")),
        }
    }
}

impl<L: Line> Drop for LineWriter<L> {
    fn drop(&mut self) {
        self.shared.finish();
    }
}

/// A line larger than the queue takes the whole of it, and so passes alone.
fn room_of(line: &impl Line) -> usize {
    line.bytes().clamp(QUEUE_BYTES / QUEUE_LINES, QUEUE_BYTES)
}

fn permits(room: usize) -> u32 {
    u32::try_from(room).unwrap_or(u32::MAX)
}

impl<L: Line> Shared<L> {
    fn push(&self, line: L, room: usize) {
        // A line that comes too late is dropped, and so refused, outside the lock.
        let mut late = None;
        let mut wake = false;
        {
            let mut state = self.state.lock();
            if state.finishing || state.failure.is_some() {
                late = Some(line);
            } else {
                state.bytes += line.bytes().max(1);
                state.queue.push((line, room));
                wake = state.take_wake();
            }
        }
        if wake {
            self.work.notify_one();
        }
        drop(late);
    }

    fn finish(&self) {
        self.state.lock().finishing = true;
        self.work.notify_one();
    }

    /// Waits for lines, and moves them to `into`; no longer than to the next pause, if there is
    /// one.
    fn next(&self, into: &mut Vec<(L, usize)>, pause: Option<Duration>) -> Next {
        let mut state = self.state.lock();
        while state.queue.is_empty() && !state.finishing && !state.reopening {
            state.wake_at = 1;
            let Some(pause) = pause else {
                self.work.wait(&mut state);
                continue;
            };
            if self.work.wait_for(&mut state, pause).timed_out() && state.queue.is_empty() {
                return Next::Pause;
            }
        }
        if std::mem::take(&mut state.reopening) {
            state.wake_at = usize::MAX;
            return Next::Reopen;
        }
        if state.queue.is_empty() {
            return Next::End;
        }
        if !state.finishing && state.bytes < BATCH_BYTES {
            state.wake_at = BATCH_BYTES;
            self.work.wait_for(&mut state, self.pause);
        }
        state.wake_at = usize::MAX;
        state.bytes = 0;
        std::mem::swap(&mut state.queue, into);
        Next::Write
    }

    /// Something happened to the place.
    fn remark(&self, what: String) {
        tracing::warn!(output = self.name, "{what}");
        let mut state = self.state.lock();
        state.remarks = (state.remarks.0 + 1, what);
    }

    /// Nothing is stored from now on; queued lines are refused.
    fn fail(&self, reason: String) {
        let error = SinkError::new(self.name.clone(), reason);
        // The engine that runs the sink tells the user.
        tracing::debug!(%error, "stopped storing");
        let refused = {
            let mut state = self.state.lock();
            state.failure.get_or_insert(error);
            std::mem::take(&mut state.queue)
        };
        self.room.close();
        drop(refused);
    }
}

impl<L> State<L> {
    fn take_wake(&mut self) -> bool {
        let wake = self.bytes >= self.wake_at;
        if wake {
            self.wake_at = usize::MAX;
        }
        wake
    }
}

struct Thread<L: Line, S: Storage> {
    shared: Arc<Shared<L>>,
    storage: S,
    /// Appended, not yet safe. Refused when the thread ends before they are.
    unsynced: Vec<Ack>,
    /// When the first of them was appended. None while everything is safe.
    unsynced_since: Option<Instant>,
}

/// The storage failed: the failure is reported, and nothing more is written.
struct GaveUp;

impl<L: Line, S: Storage> Thread<L, S> {
    fn run(mut self) {
        // An early end has reported its reason itself.
        let _ = self.write_until_end();
    }

    fn write_until_end(&mut self) -> Result<(), GaveUp> {
        let (mut batch, mut buffer) = (Vec::new(), Vec::new());
        loop {
            match self.shared.next(&mut batch, self.pause()) {
                Next::Write => self.append(&mut batch, &mut buffer)?,
                Next::Pause => self.sync()?,
                Next::Reopen => self.reopen()?,
                Next::End => return self.sync(),
            }
            if self.unsynced_since.is_some_and(|since| since.elapsed() >= SYNC_EVERY) {
                self.sync()?;
            }
        }
    }

    /// How long to wait for lines before the written ones are synced, or the file is rotated.
    fn pause(&self) -> Option<Duration> {
        if !self.unsynced.is_empty() {
            return Some(self.shared.pause);
        }
        self.storage.rotates_in().map(|left| left.min(LOOK_AGAIN))
    }

    fn append(&mut self, batch: &mut Vec<(L, usize)>, buffer: &mut Vec<u8>) -> Result<(), GaveUp> {
        if self.is_full(buffer) || self.storage.rotates_in().is_some_and(|left| left.is_zero()) {
            self.sync()?;
        }
        let mut room = 0;
        let mut lines = batch.drain(..);
        for at in 0.. {
            if at % FETCHED == 0 {
                fetch(lines.as_slice(), |(line, _)| line.fetch());
            }
            let Some((line, permits)) = lines.next() else { break };
            self.unsynced_since.get_or_insert_with(Instant::now);
            let storage = &mut self.storage;
            let mut pass = |buffer: &mut Vec<u8>| hand_over(storage, buffer);
            line.write(buffer, &mut pass).map_err(|error| self.give_up(&error))?;
            buffer.push(b'\n');
            room += permits;
            self.unsynced.push(line.into_ack());
            if buffer.len() >= APPEND_BYTES || self.is_full(buffer) {
                self.hand_over(buffer)?;
                self.shared.room.add_permits(std::mem::take(&mut room));
                if self.is_full(buffer) {
                    self.sync()?;
                }
            }
        }
        self.hand_over(buffer)?;
        self.shared.room.add_permits(room);
        Ok(())
    }

    /// With these bytes, the file is to be rotated.
    fn is_full(&self, buffer: &[u8]) -> bool {
        buffer.len() as u64 >= self.storage.room()
    }

    fn hand_over(&mut self, buffer: &mut Vec<u8>) -> Result<(), GaveUp> {
        hand_over(&mut self.storage, buffer).map_err(|error| self.give_up(&error))
    }

    fn sync(&mut self) -> Result<(), GaveUp> {
        if !self.unsynced.is_empty() {
            self.storage.sync().map_err(|error| self.give_up(&error))?;
            // Before any confirmation: its receiver may ask for the remark.
            self.remark();
            let mut acks = self.unsynced.drain(..);
            for at in 0.. {
                if at % FETCHED == 0 {
                    fetch(acks.as_slice(), Ack::fetch);
                }
                let Some(ack) = acks.next() else { break };
                ack.confirm();
            }
        }
        self.unsynced_since = None;
        self.storage.rotate().map_err(|error| self.give_up(&error))?;
        self.remark();
        Ok(())
    }

    fn reopen(&mut self) -> Result<(), GaveUp> {
        self.sync()?;
        self.storage.reopen().map_err(|error| self.give_up(&error))?;
        self.remark();
        Ok(())
    }

    fn remark(&mut self) {
        while let Some(what) = self.storage.take_remark() {
            self.shared.remark(what);
        }
    }

    /// Tells the failure before the lines that it concerns are dropped, and so refused.
    fn give_up(&mut self, error: &io::Error) -> GaveUp {
        let rest = match self.storage.revert() {
            Ok(()) => String::new(),
            Err(error) => format!(" (a torn last line may be left: it could not be cut: {error})"),
        };
        let advice = self.storage.advice();
        self.shared.fail(format!(
            "cannot be written: {error}{rest}; what was not confirmed was refused: {advice}"
        ));
        GaveUp
    }
}

/// Leaves the buffer empty, and no larger than usual after a line of unusual size.
fn hand_over(storage: &mut impl Storage, buffer: &mut Vec<u8>) -> io::Result<()> {
    storage.append(buffer)?;
    buffer.clear();
    buffer.shrink_to(2 * APPEND_BYTES);
    Ok(())
}

/// However the thread ends, nothing that it held or that comes later waits for ever.
impl<L: Line, S: Storage> Drop for Thread<L, S> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.shared.fail("the writer thread panicked; see the log, and run again".to_owned());
        }
        self.unsynced.drain(..).for_each(|ack| ack.refuse(Refusal::NotStored));
        self.shared.room.close();
        // A caller that waits for the end may reopen it at once.
        self.storage.close();
        self.shared.ended.send_replace(true);
    }
}
