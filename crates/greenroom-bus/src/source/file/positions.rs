//! How far a file has been handled, and the checkpoint that says so.
//!
//! ```text
//! source ── received ──▶ watermark ◀── settled ── outputs, dead letters
//!    ▲                       │ snapshot
//!    └── not before there ◀──┴──▶ checkpoint, on a thread that may wait
//!        is room
//! ```
//!
//! A checkpoint says up to which line more may be taken before the next one is stored, and the source keeps to that. So
//! after a crash it is known how much is delivered again at most.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{
    checkpoint::{Checkpoint, Stored},
    identity::{Fingerprint, Identity},
    lines::Items,
    marks::{Mark, Marks},
    skip::Skip,
};
use crate::{
    BoxFuture,
    settlement::Settled,
    source::{Committer, Partition, PartitionStanding, Receipts, Resumed, SourceError, Standing},
    watermark::{Epoch, Positions, Received, Watermark},
};

/// Lines that may be taken beyond the last checkpoint: four of the largest batches. When half of it is used, the next one is
/// due, so that reading does not wait for it.
const AHEAD: u64 = 16_384;

/// With so many lines settled since the last checkpoint, the next one is due: what a crash repeats stays few, and storing
/// one costs less than handling these.
const SETTLED: u64 = 4_096;

/// Shared by the source, by the settlements of its lines and by whoever commits.
#[derive(Clone)]
pub(super) struct FilePositions(Arc<Shared>);

struct Shared {
    /// What reports call the source.
    name: String,
    path: PathBuf,
    /// What an earlier run has left.
    resumed: Option<Resumed>,
    /// Lines that it has left done, and that were skipped.
    skipped: Arc<AtomicU64>,
    epoch: Epoch,
    state: Mutex<State>,
    /// Locked by one commit at a time, for as long as it takes to store it.
    store: Mutex<Store>,
    /// Told when the next commit should not wait for its time.
    due: Notify,
    /// Told when a checkpoint has been stored.
    room: Notify,
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
    /// Because there is nothing more.
    is_exhausted: bool,
    /// `due` was told since the last commit.
    is_due: bool,
}

struct Store {
    checkpoint: Checkpoint,
    /// The file that is read, with a cursor of its own.
    file: File,
    identity: Identity,
    /// Positions and room of the last one.
    last: Option<(Positions, u64)>,
    /// Whether lines can be found by their bytes, in a file that is not compressed.
    seeks: bool,
}

/// Where to begin.
pub(super) struct Start {
    /// The place to read from.
    pub(super) mark: Mark,
    done: Positions,
    resumed: Option<Resumed>,
}

impl Start {
    fn at_the_beginning() -> Self {
        let done = Positions::starting_at(Mark::START.line);
        Self { mark: Mark::START, done, resumed: None }
    }

    /// `taken_below` is above all lines that may have been taken.
    fn after(stored: &Stored, done: Positions, taken_below: u64) -> Self {
        let again = done.count_open() + taken_below.saturating_sub(done.next());
        let resumed = Resumed { partitions: 1, done: done.count_done(), again_at_most: again };
        Self { mark: stored.mark, done, resumed: Some(resumed) }
    }
}

impl FilePositions {
    /// Of a regular file, with a cursor that nobody else moves.
    ///
    /// # Errors
    /// The checkpoint cannot be used; or the file cannot be read.
    pub(super) fn open(
        name: String,
        path: &Path,
        mut file: File,
        checkpoint: Checkpoint,
        seeks: bool,
    ) -> Result<(Self, Start), String> {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let start = start(&path, &mut file, &checkpoint, seeks)?;
        let identity = Identity::of(&mut file).map_err(|error| error.to_string())?;
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
            is_exhausted: false,
            is_due: false,
        };
        let store = Store { checkpoint, file, identity, last: None, seeks };
        let shared = Shared {
            name,
            path,
            resumed: start.resumed,
            skipped: Arc::default(),
            epoch,
            state: Mutex::new(state),
            store: Mutex::new(store),
            due: Notify::new(),
            room: Notify::new(),
        };
        Ok((Self(Arc::new(shared)), start))
    }

    /// What the reading thread need not parse.
    pub(super) fn skip(&self, start: &Start) -> Skip {
        Skip::new(start.done.clone(), self.0.skipped.clone())
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

    /// All lines were taken.
    pub(super) fn exhausted(&self) {
        self.0.state.lock().is_exhausted = true;
    }

    /// Nothing more will be taken.
    pub(super) fn end(&self) {
        self.0.state.lock().ended = true;
    }
}

/// What the checkpoint says of the file. One of another content is told, and the file is read from its start: its lines are not
/// those that were done.
fn start(
    path: &Path,
    file: &mut File,
    checkpoint: &Checkpoint,
    seeks: bool,
) -> Result<Start, String> {
    let shown = checkpoint.path().display();
    let unusable = |why: String| {
        format!(
            "the checkpoint {shown} cannot be used: {why}; remove it to read the input from its start, which repeats what \
             was done, or name another one"
        )
    };
    let stored = checkpoint.read().map_err(|why| unusable(why.to_string()))?;
    let Some(stored) = stored else { return Ok(Start::at_the_beginning()) };
    let done = stored.positions().map_err(|why| unusable(why.to_string()))?;
    let difference = stored.identity.difference(file, &stored.tail);
    let Some(why) = difference.map_err(|error| error.to_string())? else {
        let taken_below = match seeks {
            true => lines_below(file, stored.mark, stored.taken_below),
            false => Ok(stored.taken_below),
        };
        let taken_below = taken_below.map_err(|error| error.to_string())?;
        return Ok(Start::after(&stored, done, taken_below));
    };
    if Path::new(&stored.input) != path {
        return Err(unusable(format!("it is of another input, {}", stored.input)));
    }
    tracing::warn!(
        input = %path.display(),
        checkpoint = %shown,
        why,
        "the input is not the file that its checkpoint is of: it is read from its start"
    );
    Ok(Start::at_the_beginning())
}

/// Above the last line that the file has, looking from this place on and no further than to `most`:
/// a checkpoint allows for more lines than there may be.
fn lines_below(file: &mut File, mark: Mark, most: u64) -> io::Result<u64> {
    file.seek(SeekFrom::Start(mark.byte))?;
    let (mut lines, mut below) = (BufReader::new(file), mark.line);
    while below < most && lines.skip_until(b'\n')? > 0 {
        below += 1;
    }
    Ok(below)
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

impl Shared {
    /// Stores what is settled by now. Takes as long as the disk takes.
    fn write(&self) -> io::Result<()> {
        let store = &mut *self.store.lock();
        let (snapshot, mark, room) = {
            let state = &mut *self.state.lock();
            state.is_due = false;
            state.due_at = state.watermark.counts().settled + SETTLED;
            state.promised = state.next_room();
            let lowest = state.watermark.lowest();
            let Some(snapshot) = state.watermark.snapshot() else { return Ok(()) };
            (snapshot, state.marks.before(lowest), state.promised)
        };
        store.write(&self.path, snapshot.positions(), mark, room)?;
        let mut state = self.state.lock();
        state.watermark.confirm(&snapshot);
        state.room_below = room;
        drop(state);
        self.room.notify_waiters();
        Ok(())
    }

    fn failed(&self, error: impl std::fmt::Display) -> SourceError {
        let checkpoint = self.store.lock().checkpoint.path().display().to_string();
        let reason = format!(
            "its checkpoint {checkpoint} cannot be stored: {error}; mend that (free space, a writable directory, one run at a \
             time), then run again: it goes on from the last one that was stored"
        );
        SourceError::new(self.name.clone(), reason)
    }
}

impl Store {
    fn write(
        &mut self,
        path: &Path,
        positions: &Positions,
        mark: Mark,
        room: u64,
    ) -> io::Result<()> {
        let is_same =
            |(last, last_room): &(Positions, u64)| last == positions && *last_room == room;
        if self.last.as_ref().is_some_and(is_same) {
            return Ok(());
        }
        let mark = if self.seeks { mark } else { Mark::START };
        let tail = Fingerprint::before(&mut self.file, mark.byte)?;
        let identity = self.identity.grown(&self.file)?;
        let input = path.display().to_string();
        self.checkpoint.write(&Stored::new(input, identity, (mark, tail), positions, room))?;
        self.last = Some((positions.clone(), room));
        Ok(())
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

impl Committer for FilePositions {
    fn commit<'a>(&'a self) -> BoxFuture<'a, Result<(), SourceError>> {
        let shared = self.0.clone();
        Box::pin(async move {
            let written = tokio::task::spawn_blocking(move || shared.write()).await;
            match written {
                Ok(written) => written.map_err(|error| self.0.failed(error)),
                Err(panicked) => Err(self.0.failed(panicked)),
            }
        })
    }

    fn due<'a>(&'a self) -> BoxFuture<'a, ()> {
        Box::pin(self.0.due.notified())
    }

    fn end(&self) {
        self.0.store.lock().checkpoint.let_go();
    }

    fn standing(&self) -> Standing {
        Standing {
            resumed: self.0.resumed,
            skipped: self.0.skipped.load(Ordering::Relaxed),
            repeated_at_most: self.0.state.lock().watermark.repeated_at_most(),
        }
    }

    fn partitions(&self) -> Vec<PartitionStanding> {
        let state = self.0.state.lock();
        vec![PartitionStanding {
            partition: Partition::ONLY,
            epoch: self.0.epoch,
            next: state.watermark.next(),
            oldest_open: state.watermark.lowest(),
            // How many lines there are is not known before the last one was read.
            lag: state.is_exhausted.then_some(0),
        }]
    }
}
