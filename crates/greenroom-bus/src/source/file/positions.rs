//! How far a file has been handled, and what is to be stored of that.
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
    checkpoint::Stored,
    identity::{Fingerprint, Identity},
    lines::Items,
    marks::{Mark, Marks},
    resume::Start,
};
use crate::{
    settlement::Settled,
    source::{Partition, PartitionStanding, Receipts},
    watermark::{Epoch, Positions, Received, Snapshot, Watermark},
};

/// Lines that may be taken beyond the last checkpoint: four of the largest batches. When half of it
/// is used, the next one is due, so that reading does not wait for it.
const AHEAD: u64 = 16_384;

/// With so many lines settled since the last checkpoint, the next one is due: what a crash repeats
/// stays few, and storing one costs less than handling these.
const SETTLED: u64 = 4_096;

/// Shared by the source, by the settlements of its lines and by whoever commits.
#[derive(Clone)]
pub(super) struct FilePositions(Arc<Shared>);

struct Shared {
    path: PathBuf,
    epoch: Epoch,
    state: Mutex<State>,
    /// Locked by one commit at a time.
    content: Mutex<Content>,
    /// Told when the next commit should not wait for its time.
    due: Arc<Notify>,
    /// Told when a checkpoint has been stored.
    room: Notify,
}

/// What is to be stored of one moment.
pub(super) struct Record {
    pub(super) stored: Arc<Stored>,
    snapshot: Snapshot,
    /// Lines below this may be taken once it is stored.
    room: u64,
}

struct State {
    watermark: Watermark,
    marks: Marks,
    /// Lines below this may be taken: the last checkpoint says so.
    room_below: u64,
    /// The same of the one that is being stored.
    promised: u64,
    /// With so many lines settled, the next commit is due.
    due_at: u64,
    /// The source waits for room up to this line.
    wanted: u64,
    /// Nothing more will be taken.
    ended: bool,
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
    /// `due` was told since the last commit.
    is_due: bool,
}

/// The file as such.
struct Content {
    /// With a cursor of its own; `None` once it was let go of, after which the last record says
    /// what it was.
    file: Option<File>,
    identity: Identity,
    /// Whether lines can be found by their bytes, in a file that is not compressed.
    seeks: bool,
    last: Option<Arc<Stored>>,
}

impl FilePositions {
    /// Of a regular file, with a cursor that nobody else moves. `due` is told when a commit should
    /// not wait.
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
        let identity = Identity::of(&mut file)?;
        let mut watermark = Watermark::default();
        let epoch = watermark.assign(&start.done);
        let state = State {
            watermark,
            marks: Marks::new(start.mark),
            room_below: 0,
            promised: 0,
            due_at: SETTLED,
            wanted: 0,
            ended: false,
            read: None,
            bases: Vec::new(),
            is_followed: false,
            is_caught_up: false,
            is_due: false,
        };
        let content = Content { file: Some(file), identity, seeks, last: None };
        Ok(Self(Arc::new(Shared {
            path,
            epoch,
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
        loop {
            let mut stored = std::pin::pin!(self.0.room.notified());
            stored.as_mut().enable();
            if self.0.state.lock().has_room_for(line) {
                return;
            }
            self.0.due.notify_one();
            stored.await;
        }
    }

    /// These are taken. What is not to be handled is taken out.
    pub(super) fn received(&self, taken: &mut Items) {
        let state = &mut *self.0.state.lock();
        if let Some(mark) = taken.mark {
            state.marks.push(mark);
        }
        taken.items.retain(|item| state.watermark.receive(item.position) == Received::New);
        if state.promised.saturating_sub(state.watermark.next()) < AHEAD / 2 {
            state.tell_due(&self.0.due);
        }
    }

    /// Nothing more will be taken. `read`: the bytes of the file, if its end was read.
    pub(super) fn end(&self, read: Option<u64>) {
        let mut state = self.0.state.lock();
        state.ended = true;
        state.read = state.read.or(read);
    }

    /// What is added to a line to make a position, in an input of several files, from its next
    /// line on.
    pub(super) fn begins_behind(&self, base: u64) {
        let state = &mut *self.0.state.lock();
        let (lowest, next) = (state.watermark.lowest(), state.watermark.next());
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
        (state.ended, state.read, state.is_caught_up) = (false, None, false);
    }

    /// All that its file has now was taken.
    pub(super) fn caught_up(&self) {
        self.0.state.lock().is_caught_up = true;
    }

    /// Lines that are not done.
    pub(super) fn open_lines(&self) -> u64 {
        let state = self.0.state.lock();
        state.watermark.snapshot().map_or(0, |snapshot| snapshot.positions().count_open())
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
            epoch: self.0.epoch,
            next: position(state.watermark.next()),
            oldest_open: position(state.watermark.lowest()),
            // How many lines there are is not known before the last one was read.
            lag: (state.read.is_some() || state.is_caught_up).then_some(0),
        }
    }

    /// Lines that are delivered again at most, should everything end now.
    pub(super) fn repeated_at_most(&self) -> u64 {
        self.0.state.lock().watermark.repeated_at_most()
    }

    /// What is to be stored now; `None` where nothing is. Reads a part of the file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn record(&self) -> io::Result<Option<Record>> {
        let (snapshot, mark, room, read) = {
            let state = &mut *self.0.state.lock();
            state.is_due = false;
            state.due_at = state.watermark.counts().settled + SETTLED;
            state.promised = state.next_room();
            let lowest = state.watermark.lowest();
            let Some(snapshot) = state.watermark.snapshot() else { return Ok(None) };
            (snapshot, state.marks.before(lowest), state.promised, state.read)
        };
        let content = &mut *self.0.content.lock();
        let stored = content.stored(&self.0.path, snapshot.positions(), mark, room, read)?;
        Ok(Some(Record { stored, snapshot, room }))
    }

    /// This is stored: more may be taken.
    pub(super) fn is_stored(&self, record: &Record) {
        let mut state = self.0.state.lock();
        state.watermark.confirm(&record.snapshot);
        state.room_below = record.room;
        drop(state);
        self.0.room.notify_waiters();
    }

    #[cfg(test)]
    pub(super) fn holds_file(&self) -> bool {
        self.0.content.lock().file.is_some()
    }

    /// Closes the file, if it is read no more and something of it was recorded. From then on,
    /// records name the place that the last one named to read on from: a run that begins there
    /// skips some lines more.
    pub(super) fn let_go_of_file(&self) {
        let has_ended = self.0.state.lock().ended;
        let content = &mut *self.0.content.lock();
        if has_ended && content.last.is_some() {
            content.file = None;
        }
    }
}

impl State {
    fn has_room_for(&mut self, line: u64) -> bool {
        self.wanted = self.wanted.max(line + 1);
        line < self.room_below
    }

    fn tell_due(&mut self, due: &Notify) {
        if !std::mem::replace(&mut self.is_due, true) {
            due.notify_one();
        }
    }

    /// Up to where lines may be taken once the next checkpoint is stored.
    fn next_room(&self) -> u64 {
        let next = self.watermark.next();
        if self.ended { next } else { (next + AHEAD).max(self.wanted) }
    }
}

impl Content {
    fn stored(
        &mut self,
        path: &Path,
        positions: &Positions,
        mark: Mark,
        room: u64,
        read: Option<u64>,
    ) -> io::Result<Arc<Stored>> {
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
        let mut new = Stored::new(input, identity, place, positions, room);
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
        let state = &mut *self.0.state.lock();
        if !how.is_acknowledged() {
            state.watermark.refuse(self.0.epoch, position);
            return;
        }
        state.watermark.settle(self.0.epoch, position);
        if state.watermark.counts().settled >= state.due_at {
            state.tell_due(&self.0.due);
        }
    }
}
