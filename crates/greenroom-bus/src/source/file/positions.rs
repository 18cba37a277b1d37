//! How far a file has been handled, and the record to be stored for it.
//!
//! ```text
//! source ── received ──▶ watermark ◀── settled ── outputs, dead letters
//!    ▲                       │ snapshot
//!    └── not before there ◀──┴──▶ record ──▶ checkpoint (keeper.rs)
//!        is room
//! ```
//!
//! A checkpoint says up to which line more may be taken before the next one is stored, and the
//! source keeps to that. So after a crash it is known how much is delivered again at most.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{
    checkpoint::StoredCheckpoint,
    identity::{FileIdentity, Fingerprint},
    lines::Items,
    marks::{Mark, Marks},
    resume::Start,
};
use crate::{
    settlement::Settled,
    source::{Partition, PartitionStanding, Receipts, ahead::Ahead},
    wait::wait_until,
    watermark::{Positions, Snapshot},
};

/// Shared by the source, the settlements of its lines, and the task that commits.
#[derive(Clone)]
pub(super) struct FilePositions(Arc<Shared>);

struct Shared {
    path: PathBuf,
    state: Mutex<State>,
    /// Locked by one commit at a time.
    content: Mutex<FileContent>,
    /// Told when the next commit should not wait for its time.
    due: Arc<Notify>,
    /// Told when a checkpoint has been stored.
    room: Notify,
}

/// The record to be stored, as of one moment.
pub(super) struct PositionsRecord {
    pub(super) stored: Arc<StoredCheckpoint>,
    snapshot: Snapshot,
    /// Lines below this may be taken once it is stored.
    room: u64,
}

struct State {
    ahead: Ahead,
    marks: Marks,
    /// The bytes of the file when its end was read.
    read: Option<u64>,
    /// In an input of several files, from which line on which number is added to make a position
    /// of a line: one entry for each time that it was its turn, as far as lines of it are open. The
    /// number may be below zero, and wraps.
    bases: Vec<(u64, u64)>,
    /// It is followed, so that more may come after its end: it stays open.
    is_followed: bool,
    /// All that its file had when it was looked at last was taken.
    is_caught_up: bool,
}

/// The file as such.
struct FileContent {
    /// With a cursor of its own; `None` once it was closed, when the last record identifies it.
    file: Option<File>,
    identity: FileIdentity,
    /// Whether lines can be found by their bytes, in a file that is not compressed.
    seeks: bool,
    last: Option<Arc<StoredCheckpoint>>,
}

impl FilePositions {
    /// For a regular file, with a separate cursor. `due` is notified when a commit should not wait.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn new(
        path: &Path,
        mut file: File,
        start: &Start,
        seeks: bool,
        due: Arc<Notify>,
    ) -> io::Result<Self> {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let identity = FileIdentity::read(&mut file)?;
        let state = State {
            ahead: Ahead::from_stored(&start.done, 0),
            marks: Marks::new(start.mark),
            read: None,
            bases: Vec::new(),
            is_followed: false,
            is_caught_up: false,
        };
        let content = FileContent { file: Some(file), identity, seeks, last: None };
        Ok(Self(Arc::new(Shared {
            path,
            state: Mutex::new(state),
            content: Mutex::new(content),
            due,
            room: Notify::new(),
        })))
    }

    /// Waits until lines up to this one may be taken.
    ///
    /// # Cancel safety
    /// A dropped future has taken nothing.
    pub(super) async fn room_for(&self, line: u64) {
        wait_until(&self.0.room, || {
            let below = self.0.state.lock().ahead.room_for(line);
            if below.is_none() {
                self.0.due.notify_one();
            }
            below
        })
        .await;
    }

    /// These are taken. Those that are not to be handled are removed.
    pub(super) fn received(&self, taken: &mut Items) {
        let state = &mut *self.0.state.lock();
        if let Some(mark) = taken.mark {
            state.marks.push(mark);
        }
        state.ahead.received(&mut taken.items, &self.0.due);
    }

    /// The beginning of its file, as far as it was read. Set before new lines are received, so that
    /// records stored for them include it.
    pub(super) fn begins(&self, head: &Fingerprint) {
        self.0.content.lock().identity.begins(head);
    }

    /// Nothing more will be taken. `read`: the bytes of the file, if its end was read.
    pub(super) fn end(&self, read: Option<u64>) {
        let mut state = self.0.state.lock();
        state.ahead.ended = true;
        state.read = state.read.or(read);
    }

    /// The offset that turns a line number into a position, in an input of several files, from its
    /// next line on.
    pub(super) fn begins_behind(&self, base: u64) {
        let state = &mut *self.0.state.lock();
        let (lowest, next) = (state.ahead.watermark.lowest(), state.ahead.watermark.next());
        while state.bases.get(1).is_some_and(|(from, _)| *from <= lowest) {
            state.bases.remove(0);
        }
        state.bases.push((next, base));
    }

    /// Whether it is followed: more may come after its end, so it is neither done nor closed.
    pub(super) fn set_followed(&self, is_followed: bool) {
        self.0.state.lock().is_followed = is_followed;
    }

    pub(super) fn is_followed(&self) -> bool {
        self.0.state.lock().is_followed
    }

    /// More has come after its end.
    pub(super) fn resume(&self) {
        let mut state = self.0.state.lock();
        (state.ahead.ended, state.read, state.is_caught_up) = (false, None, false);
    }

    /// All that its file has now was taken.
    pub(super) fn caught_up(&self) {
        self.0.state.lock().is_caught_up = true;
    }

    /// Lines that are not done.
    pub(super) fn open_lines(&self) -> u64 {
        let state = self.0.state.lock();
        state.ahead.watermark.snapshot().map_or(0, |snapshot| snapshot.positions().count_open())
    }

    /// Whether it is read, in an input of several files, or was.
    pub(super) fn has_begun(&self) -> bool {
        !self.0.state.lock().bases.is_empty()
    }

    /// How far it has come.
    pub(super) fn standing(&self) -> PartitionStanding {
        let state = self.0.state.lock();
        let position = |line: u64| {
            let base = state.bases.iter().rev().find(|(from, _)| *from <= line);
            line.wrapping_add(base.or(state.bases.first()).map_or(0, |(_, base)| *base))
        };
        PartitionStanding {
            partition: Partition::ONLY,
            epoch: state.ahead.epoch(),
            next: position(state.ahead.watermark.next()),
            oldest_open: position(state.ahead.watermark.lowest()),
            // How many lines there are is not known before the last one was read.
            lag: (state.read.is_some() || state.is_caught_up).then_some(0),
            ahead: state.ahead.watermark.done_ahead(),
        }
    }

    /// Lines that are delivered again at most, should everything end now.
    pub(super) fn repeated_at_most(&self) -> u64 {
        self.0.state.lock().ahead.watermark.repeated_at_most()
    }

    /// The record to be stored now; `None` if there is none. Reads a part of the file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn record(&self) -> io::Result<Option<PositionsRecord>> {
        let (snapshot, mark, room, read) = {
            let state = &mut *self.0.state.lock();
            let Some((snapshot, room)) = state.ahead.snapshot() else { return Ok(None) };
            let lowest = state.ahead.watermark.lowest();
            (snapshot, state.marks.before(lowest), room, state.read)
        };
        let content = &mut *self.0.content.lock();
        let stored = content.stored(&self.0.path, snapshot.positions(), mark, room, read)?;
        Ok(Some(PositionsRecord { stored, snapshot, room }))
    }

    /// This is stored: more may be taken.
    pub(super) fn is_stored(&self, record: &PositionsRecord) {
        self.0.state.lock().ahead.stored(&record.snapshot, record.room);
        self.0.room.notify_waiters();
    }

    /// Whether its file is open.
    pub(super) fn holds_file(&self) -> bool {
        self.0.content.lock().file.is_some()
    }

    /// Whether both are of one file, and of one time that it was begun.
    pub(super) fn are_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Its file, which has a record, is open again.
    pub(super) fn reopened(&self, file: File) {
        self.0.content.lock().file.get_or_insert(file);
    }

    /// Closes the file: nothing more is stored of it.
    pub(super) fn close_file(&self) {
        self.0.content.lock().file = None;
    }

    /// Closes the file, if it is read no more and something of it was recorded. From then on,
    /// records name the place that the last one named to read on from: a run that begins there
    /// skips some lines more.
    pub(super) fn let_go_of_file(&self) {
        let has_ended = self.0.state.lock().ahead.ended;
        let content = &mut *self.0.content.lock();
        if has_ended && content.last.is_some() {
            content.file = None;
        }
    }
}

impl FileContent {
    fn stored(
        &mut self,
        path: &Path,
        positions: &Positions,
        mark: Mark,
        room: u64,
        read: Option<u64>,
    ) -> io::Result<Arc<StoredCheckpoint>> {
        let (identity, place) = match (&mut self.file, &self.last) {
            (Some(file), _) => {
                let mark = if self.seeks { mark } else { Mark::START };
                let tail = Fingerprint::before(file, mark.byte)?;
                (self.identity.grown(file)?, (mark, tail))
            }
            (None, Some(last)) => (last.identity.clone(), (last.mark, last.tail.clone())),
            (None, None) => return Err(io::Error::other("its file was closed")),
        };
        let input = path.display().to_string();
        let mut new = StoredCheckpoint::new(input, identity, place, positions, room);
        new.read = read;
        // A file that only grows is not stored again and again.
        if let Some(last) = self.last.as_ref().filter(|last| last.says_the_same(&new)) {
            return Ok(last.clone());
        }
        let stored = Arc::new(new);
        self.last = Some(stored.clone());
        Ok(stored)
    }
}

impl Receipts for FilePositions {
    fn settled(&self, position: u64, how: Settled) {
        self.0.state.lock().ahead.settled(position, how, &self.0.due);
    }
}
