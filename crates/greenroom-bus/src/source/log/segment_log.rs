//! A log in a directory.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    thread::JoinHandle,
    time::Duration,
};

use parking_lot::Mutex;
use rand::random;
use tokio::sync::{oneshot, watch};

use super::{
    AppendError, Appended, EventLog,
    active::Active,
    clock::LogClock,
    committer::LogCommitter,
    consumers::{self, Consumers, StoredConsumer},
    disk::{Disk, RealDisk},
    error::LogError,
    format::SegmentHeader,
    identities::Identities,
    options::LogOptions,
    recovery::{Recovered, recover},
    roll::{NoSegment, begin_segment},
    segment::{SPARE, Segments},
    shared::{Durable, Held, Shared, WriterState},
    source::LogSource,
    waiting::{Append, PreparedEvents, Waiting},
};
use crate::{BoxFuture, event::Event};

/// The file that records which process writes the log.
pub(super) const LOCK: &str = "lock";

/// A durable log: a directory of segment files, one thread that writes them, and the positions of
/// its consumers.
///
/// Clones are the same log. It is closed by [`close`](Self::close), or when the last clone is
/// dropped; its directory is free once its sources are dropped, too. A source whose
/// [committer](crate::source::Committer::end) was told that it has ended counts as dropped.
///
/// ```
/// use greenroom_bus::{
///     event::Event,
///     source::{
///         Source,
///         log::{Appended, EventLog, LogOptions, SegmentLog},
///     },
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path().join("orders-log");
/// let log = SegmentLog::open(&directory, LogOptions::default())?;
/// let event = Event::builder("1", "/shop", "order.placed").build()?;
/// assert_eq!(log.append(vec![event.clone()]).await?, Appended { stored: 1, repeated: 0 });
/// // It is on the disk now. Posted again, it is the same event.
/// assert_eq!(log.append(vec![event.clone()]).await?, Appended { stored: 0, repeated: 1 });
///
/// let mut source = log.source("orders")?; // an engine reads it, and commits what is settled
/// let mut taken = Vec::new();
/// source.pull(&mut taken).await?;
/// assert_eq!(taken[0].event.as_ref().ok(), Some(&event));
/// log.close().await;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct SegmentLog {
    handle: Arc<Handle>,
}

/// Closes the log when it is dropped.
struct Handle {
    shared: Arc<Shared>,
    /// Present until a caller has waited for its end.
    committer: Mutex<Option<JoinHandle<()>>>,
    held: Held,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.waiting.close();
    }
}

/// The state of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogStanding {
    /// The sequence number of the oldest event that is kept; `next` if there is none.
    pub first: u64,
    /// The sequence number of the next event.
    pub next: u64,
    /// Files of events.
    pub segments: usize,
    /// Bytes of these files, including allocated space that is not written yet.
    pub bytes: u64,
    /// Syncs since it was opened.
    pub syncs: u64,
    /// Why nothing more is stored, if so.
    pub failure: Option<String>,
    /// Its consumers, by name.
    pub consumers: Vec<ConsumerStanding>,
}

/// The progress of a consumer of a log, by its stored position.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConsumerStanding {
    /// Its name.
    pub name: String,
    /// The oldest event that it is not done with.
    pub oldest_open: u64,
    /// Above all events that it has taken.
    pub next: u64,
    /// Events that it is done with beyond the oldest open one.
    pub done_beyond: u64,
}

impl ConsumerStanding {
    pub(super) fn new(name: String, stored: &StoredConsumer) -> Self {
        let positions = &stored.positions;
        let (oldest_open, next) = (positions.lowest(), positions.next());
        Self { name, oldest_open, next, done_beyond: positions.count_done() }
    }
}

impl SegmentLog {
    /// Opens the log in a directory, which is made if it is not there, for its owner alone.
    ///
    /// A torn tail, which a crash may have left, is cut: none of it was acknowledged. Reads the
    /// last segment, and earlier ones whose events are remembered; this blocks for as long as that
    /// takes.
    ///
    /// # Errors
    /// The options contradict each other, another process writes the log, it is of a later version,
    /// it is damaged, or its files cannot be read or written.
    pub fn open(directory: impl AsRef<Path>, options: LogOptions) -> Result<Self, LogError> {
        Self::open_on(Arc::new(RealDisk), directory.as_ref(), options, LogClock::after)
    }

    pub(super) fn open_on(
        disk: Arc<dyn Disk>,
        directory: &Path,
        options: LogOptions,
        clock: impl FnOnce(u64) -> LogClock,
    ) -> Result<Self, LogError> {
        options.check()?;
        let directory = directory.to_owned();
        let consumers_directory = directory.join(consumers::DIRECTORY);
        for path in [&directory, &consumers_directory] {
            disk.make_directory(path).map_err(LogError::io(path))?;
        }
        let lock_path = directory.join(LOCK);
        let held = disk.lock(&lock_path).map_err(|error| match error.kind() {
            std::io::ErrorKind::ResourceBusy => {
                LogError::InUse { directory: directory.clone(), by: error.to_string() }
            }
            _ => LogError::Io { path: lock_path, error },
        })?;
        let held: Held = held.into();
        let found = match recover(&*disk, &directory, &options)? {
            Some(found) => found,
            None => begin(&*disk, &directory, &options)?,
        };
        // A run that was killed may have put files in their places without waiting for the disk.
        for path in [&directory, &consumers_directory] {
            disk.sync_directory(path).map_err(LogError::io(path))?;
        }
        let consumers = Consumers::new(&disk, &directory, found.log, found.consumers);
        let durable = Durable { next: found.next, writer: WriterState::Open };
        let waiting = Waiting::new(&options);
        let shared = Arc::new(Shared {
            directory: directory.clone(),
            disk,
            options,
            segments: Mutex::new(found.segments),
            waiting,
            consumers,
            durable: watch::Sender::new(durable),
            syncs: Default::default(),
            trouble: Mutex::default(),
        });
        let clock = clock(found.time);
        let committer = LogCommitter {
            shared: shared.clone(),
            log: found.log,
            active: found.active,
            next: found.next,
            looked: clock.now(),
            clock,
            identities: found.identities,
            has_spare: found.has_spare,
            lacks: None,
            held: held.clone(),
        };
        let committer = Mutex::new(Some(committer.spawn().map_err(LogError::io(directory))?));
        Ok(Self { handle: Arc::new(Handle { shared, committer, held }) })
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    /// Shared by its parts.
    #[cfg(test)]
    pub(super) fn handle_for_tests(&self) -> &Shared {
        self.shared()
    }

    /// The directory.
    pub fn directory(&self) -> PathBuf {
        self.shared().directory.clone()
    }

    /// Reads for a consumer, from its position; a new one begins with the oldest kept event. Events
    /// that it is not done with are not removed. Blocks while its position is stored.
    ///
    /// # Errors
    /// Another source reads for it, its name cannot be a file name, or its position cannot be
    /// stored.
    pub fn source(&self, consumer: &str) -> Result<LogSource, LogError> {
        let shared = self.shared();
        let (stored, is_new) = {
            // Nothing is removed between the look at the first and the entry of the consumer.
            let segments = shared.segments.lock();
            shared.consumers.take(consumer, segments.first())?
        };
        let log = (shared.clone(), self.handle.held.clone());
        Ok(LogSource::new(log, consumer, self.describe(), (&stored, is_new)))
    }

    /// Forgets a consumer: events that only it needs may be removed.
    ///
    /// # Errors
    /// There is none of this name, a source reads for it, or its file cannot be removed.
    pub fn remove_consumer(&self, consumer: &str) -> Result<(), LogError> {
        self.shared().consumers.remove(consumer)?;
        self.shared().waiting.retain();
        Ok(())
    }

    /// Its state.
    pub fn standing(&self) -> LogStanding {
        let shared = self.shared();
        let durable = shared.durable.borrow().clone();
        let consumers = shared.consumers.all().into_iter();
        let failure = match durable.writer {
            WriterState::Failed(why) => Some(why.to_string()),
            _ => None,
        };
        let segments = shared.segments.lock();
        LogStanding {
            first: segments.first(),
            next: durable.next,
            segments: segments.0.len(),
            bytes: segments.bytes(),
            syncs: shared.syncs.load(Ordering::Relaxed),
            failure,
            consumers: consumers
                .map(|(name, stored, _)| ConsumerStanding::new(name, &stored))
                .collect(),
        }
    }

    /// The data that finds no room, and why: events, or the position of a consumer. `None` once all
    /// of it has found some.
    pub fn trouble(&self) -> Option<String> {
        let trouble = self.shared().trouble.lock();
        trouble.full.clone().or_else(|| trouble.unstored.clone())
    }

    /// Accepts nothing more, makes pending appends durable, and returns when nothing more is
    /// written. Sources then give their remaining events, and end.
    ///
    /// # Cancel safety
    /// A dropped future has closed it all the same.
    pub async fn close(&self) {
        self.shared().waiting.close();
        let mut durable = self.shared().durable();
        // `self` holds the sender.
        let _ = durable.wait_for(|durable| durable.writer != WriterState::Open).await;
        let committer = self.handle.committer.lock().take();
        if let Some(committer) = committer {
            // Its thread is at its end, and lets go of the log.
            let _ = tokio::task::spawn_blocking(move || committer.join()).await;
        }
    }

    /// Like [`close`](Self::close), outside a runtime: blocks until nothing more is written.
    pub fn close_and_wait(&self) {
        self.shared().waiting.close();
        let committer = self.handle.committer.lock().take();
        // After a panic, the waiters have been notified already.
        let _ = committer.map(JoinHandle::join);
    }

    /// Removes segments that no consumer needs and that are older than `keep_for`, and the spare
    /// file. Returns the state of the log before and after. Blocks for as long as that takes.
    ///
    /// Ids are remembered of the last day, of up to ten million events.
    ///
    /// # Errors
    /// It cannot be opened: see [`open`](Self::open).
    pub fn compact(
        directory: impl AsRef<Path>,
        keep_for: Duration,
    ) -> Result<(LogStanding, LogStanding), LogError> {
        let options = LogOptions {
            keep_for,
            max_bytes: u64::MAX,
            remember_for: Duration::from_secs(24 * 60 * 60),
            remember_events: 10_000_000,
            ..LogOptions::default()
        };
        let log = Self::open(directory, options)?;
        let (before, shared) = (log.standing(), log.shared());
        log.close_and_wait();
        let spare = shared.directory.join(SPARE);
        match shared.disk.remove(&spare) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(LogError::Io { path: spare, error });
            }
            _ => {}
        }
        let directory = &shared.directory;
        shared.disk.sync_directory(directory).map_err(LogError::io(directory))?;
        Ok((before, log.standing()))
    }

    async fn append_these(&self, events: Vec<Event>) -> Result<Appended, AppendError> {
        if events.is_empty() {
            return Ok(Appended::default());
        }
        let shared = self.shared();
        let about = events.iter().map(|event| event.approximate_bytes() as u64).sum();
        let limit = shared.options.append_limit();
        // Checked first, so that neither is prepared for nothing.
        shared.waiting.room(events.len(), 0)?;
        if about > limit.saturating_mul(2) {
            return Err(AppendError::TooLarge { bytes: about, limit });
        }
        let remembers =
            !shared.options.remember_for.is_zero() && shared.options.remember_events > 0;
        let prepared = PreparedEvents::new(&events, remembers);
        drop(events);
        let bytes = prepared.bytes();
        if bytes > limit {
            return Err(AppendError::TooLarge { bytes, limit });
        }
        let (answer, told) = oneshot::channel();
        shared.waiting.push(Append { prepared, answer })?;
        told.await.unwrap_or_else(|_| {
            let why = "the log ended before it has answered: post again";
            Err(AppendError::Failed(why.to_owned()))
        })
    }
}

/// A log that was never there.
fn begin(disk: &dyn Disk, directory: &Path, options: &LogOptions) -> Result<Recovered, LogError> {
    let (clock, log) = (LogClock::after(0), random());
    let (created, length) = (clock.now(), options.segment_bytes);
    let header = SegmentHeader { log, base: 1, created, salt: random(), length };
    let made = begin_segment(disk, directory, header, false);
    let active: Active = made.map_err(|why| match why {
        NoSegment::Full(error) | NoSegment::Failed(error) => {
            LogError::Io { path: directory.to_owned(), error }
        }
    })?;
    Ok(Recovered {
        log,
        segments: Segments([active.segment.clone()].into()),
        active,
        next: 1,
        time: header.created,
        identities: Identities::new(options.remember_for, options.remember_events),
        has_spare: false,
        consumers: Vec::new(),
    })
}

impl EventLog for SegmentLog {
    fn describe(&self) -> String {
        format!("log:{}", self.shared().directory.display())
    }

    fn append<'a>(&'a self, events: Vec<Event>) -> BoxFuture<'a, Result<Appended, AppendError>> {
        Box::pin(self.append_these(events))
    }

    fn is_full(&self) -> bool {
        self.shared().trouble.lock().full.is_some()
    }
}

impl fmt::Debug for SegmentLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentLog").field("standing", &self.standing()).finish_non_exhaustive()
    }
}
