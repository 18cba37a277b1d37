//! Events from a file or from standard input, one a line (B01).
//!
//! ```text
//! thread:  read ─▶ decompress ─▶ cut at a line feed ─┬─▶ parse lines ─┬─┐
//! others, while the engine waits:                     └─▶ parse lines ─┘ │ few batches in order, of a chunk of 256 KiB each
//! pull:                                                        events ◀──┘
//! ```
//!
//! The thread keeps a disk, a pipe or a decompressor from blocking the runtime, and the parser from
//! keeping it busy. Memory: the batches on their way (some MiB), a decompressor's window, and the
//! longest line; of lines that are longer than an event may be, the one at hand and the one before
//! it, which is taken before the thread reads on.
//!
//! [Several files](FileSetSource) are read one after the other, as one input.
//!
//! With a [checkpoint](FileSource::with_checkpoint), the lines that are done are remembered from
//! run to run, in whichever order they were done.

mod blank;
mod checkpoint;
mod chunks;
mod decompress;
mod demand;
mod follow;
mod form;
mod identity;
mod input;
mod keeper;
mod kind;
mod known;
mod lines;
mod marks;
mod parsers;
mod plan;
mod positions;
mod resume;
mod select;
mod set;
mod skip;
mod too_long;
mod turns;

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use tokio::sync::{mpsc, oneshot};

use self::{
    checkpoint::{Checkpoint, Contents, StoredCheckpoint, StoredSet},
    chunks::Chunks,
    demand::Demand,
    form::Form,
    input::{CountedReader, Pipe, Regular},
    keeper::{Keeper, Kept},
    lines::{Items, Lines, ReadBatch},
    marks::Mark,
    positions::FilePositions,
    resume::{NoStart, Start},
    skip::Skip,
};
use super::{Committer, Pull, Pulling, Receipts, Source, SourceError, Taken};
use crate::record::Mapping;

#[doc(hidden)]
pub use checkpoint::positions_in;
pub use follow::FollowSource;
pub use kind::{FileInput, INPUT};
pub use select::{EXTENSIONS, FileSet, UnreadableEntry};
pub use set::FileSetSource;

/// Batches on their way from the thread: enough that neither side waits for the other's every step.
const BATCHES: usize = 3;

/// This many bytes show how a file is compressed.
const MAGIC: u64 = 4;

/// Takes a chunk from the thread. False if no more is wanted.
type Give = Box<dyn FnMut(chunks::Chunk) -> bool + Send>;

/// How a [`FileSource`] reads.
#[derive(Debug, Clone, PartialEq)]
pub struct FileSourceOptions {
    /// The longest line that is taken for an event, in bytes. Of a longer one this many are kept,
    /// with its length and its SHA-256, for a dead letter. Default: 16 MiB.
    pub max_event: usize,
    /// The rule that makes events of lines that are no CloudEvents (M05). Blank lines are skipped
    /// all the same. Default: none; each line is a CloudEvent.
    ///
    /// An id that the rule does not name is `INODE-LINE-CRC`: the file's inode (its path, if it has
    /// none), the number of the line and a checksum of its bytes. So it is the same whenever the
    /// line is read again, whatever was read before it; and a rewritten file has other ids for
    /// lines that have changed or moved.
    pub records: Option<Arc<Mapping>>,
}

impl Default for FileSourceOptions {
    fn default() -> Self {
        Self { max_event: 16 * 1024 * 1024, records: None }
    }
}

/// Reads NDJSON, plain, gzip or zstd, told apart by the first bytes. Positions are
/// line numbers, from 1; blank lines count, and are skipped. A byte order mark, carriage returns
/// and NULs at the head of a line are tolerated.
///
/// An input that cannot be read to its end (a truncated archive, a failing disk, a file that is cut
/// while it is read) ends with an error that names the current line. That line is not taken,
/// however much of it was read: with a checkpoint, the next run continues with it.
///
/// When dropped, it ends its thread; a thread that waits for standard input or a pipe ends at its
/// next data or its end.
pub struct FileSource {
    name: String,
    replayable: bool,
    batches: mpsc::Receiver<ReadBatch>,
    ended: bool,
    read: Arc<AtomicU64>,
    /// The file's size in bytes, if it has one.
    length: Option<u64>,
    /// How far it has been handled, if that is kept.
    positions: Option<FilePositions>,
    /// Their keeper, unless that belongs to a set of files.
    keeper: Option<Keeper>,
    /// The engine commits them.
    is_committed: bool,
    /// A batch that another thread is about to make.
    promised: Option<oneshot::Receiver<Items>>,
    /// A batch that came before there was room for it.
    held: Option<Items>,
    demand: Demand,
}

impl FileSource {
    /// Opens a file; `-` is standard input.
    ///
    /// A named pipe is opened by the reading thread, which waits for a writer.
    ///
    /// # Errors
    /// There is no such file, it cannot be read, or it is a directory.
    pub fn open(path: impl AsRef<Path>, options: FileSourceOptions) -> Result<Self, SourceError> {
        let path = path.as_ref();
        let name = format!("file:{}", path.display());
        let max_event = options.max_event;
        let opened = if path.as_os_str() == "-" {
            let form = Form::new(max_event, options.records, path, None);
            Self::start(name.clone(), form, io::stdin(), false, None)
        } else if is_pipe(path) {
            let pipe = Pipe::open(path, name.clone());
            Self::start(
                name.clone(),
                Form::new(max_event, options.records, path, None),
                pipe,
                true,
                None,
            )
        } else {
            open_file(path).and_then(|(file, length)| {
                let form = Form::new(max_event, options.records, path, Some(&file));
                match length {
                    Some(length) => {
                        let input = Regular::new(file, 0, length);
                        Self::start(name.clone(), form, input, true, Some(length))
                    }
                    None => Self::start(name.clone(), form, file, true, None),
                }
            })
        };
        opened.map_err(|error| {
            SourceError::new(
                name,
                format!("cannot be read: {error}; check the path and its permissions"),
            )
        })
    }

    /// Opens a regular file whose positions are kept in `checkpoint`, a file that is made by the
    /// first commit. Lines that it says are done are skipped; in a file that is not compressed,
    /// reading begins near the first that is not.
    ///
    /// A checkpoint belongs to a file, identified by its inode and its earlier content: a file that
    /// has grown is read on, one that was cut, changed or replaced is read from its start, with a
    /// warning. A file that was moved together with its checkpoint is read on. A last line without
    /// a line feed counts as complete, so write whole lines.
    ///
    /// # Errors
    /// Like [`open`](Self::open); the input is not a regular file; or the checkpoint is damaged,
    /// belongs to another input or is not a checkpoint, and the next step.
    pub fn with_checkpoint(
        path: impl AsRef<Path>,
        checkpoint: impl AsRef<Path>,
        options: FileSourceOptions,
    ) -> Result<Self, SourceError> {
        let path = path.as_ref();
        let name = format!("file:{}", path.display());
        let checkpoint = Checkpoint::at_path(checkpoint.as_ref());
        let claimed = checkpoint.claimed();
        let opened =
            claimed.and_then(|checkpoint| Self::go_on(name.clone(), path, checkpoint, options));
        opened.map_err(|reason| SourceError::new(name, reason))
    }

    /// Like [`with_checkpoint`](Self::with_checkpoint), for a read-only caller: another run may be
    /// using the checkpoint, and nothing may be committed.
    ///
    /// # Errors
    /// As there.
    pub fn looking(
        path: impl AsRef<Path>,
        checkpoint: impl AsRef<Path>,
        options: FileSourceOptions,
    ) -> Result<Self, SourceError> {
        let path = path.as_ref();
        let name = format!("file:{}", path.display());
        let checkpoint = Checkpoint::at_path(checkpoint.as_ref());
        let opened = Self::go_on(name.clone(), path, checkpoint, options);
        opened.map_err(|reason| SourceError::new(name, reason))
    }

    fn go_on(
        name: String,
        path: &Path,
        checkpoint: Checkpoint,
        options: FileSourceOptions,
    ) -> Result<Self, String> {
        if is_pipe(path) {
            return Err(not_regular());
        }
        let mut opened = OpenedFile::open(path)?;
        let known = known(path, &mut opened, &checkpoint)?;
        let (start, keeper, place) = known.kept(name.clone(), checkpoint);
        let resume = Resume::new(path, &mut opened, start, &keeper)?;
        // Positions are line numbers, whatever else the checkpoint contains.
        resume.positions.begins_behind(0);
        keeper.opened(place, resume.positions.clone());
        let prepared = PreparedFile { name, path: path.to_owned(), opened, resume: Some(resume) };
        let mut source = prepared.read(options).map_err(|error| unreadable(&error))?;
        source.keeper = Some(keeper);
        Ok(source)
    }

    fn start(
        name: String,
        form: Form,
        input: impl Read + Send + 'static,
        replayable: bool,
        length: Option<u64>,
    ) -> io::Result<Self> {
        let parts = (name, form.max_event, replayable, length);
        let lines = Lines::new(form);
        Self::reading(parts, lines, |chunks, read| chunks.read(CountedReader { input, read }))
    }

    fn reading(
        (name, max_event, replayable, length): (String, usize, bool, Option<u64>),
        mut lines: Lines,
        read: impl FnOnce(Chunks<Give>, Arc<AtomicU64>) + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, batches) = mpsc::channel(BATCHES);
        let demand = lines.demand();
        let give: Give =
            Box::new(move |chunk| lines.parse(chunk, |batch| sender.blocking_send(batch).is_ok()));
        let count = Arc::new(AtomicU64::new(0));
        let counted = count.clone();
        thread::Builder::new()
            .name("greenroom-reader".to_owned())
            .spawn(move || read(Chunks::new(max_event, give), counted))?;
        Ok(Self {
            name,
            replayable,
            batches,
            ended: false,
            read: count,
            length,
            positions: None,
            keeper: None,
            is_committed: false,
            promised: None,
            held: None,
            demand,
        })
    }

    /// Takes the batch at hand, once there is room for it.
    async fn take(&mut self, into: &mut Vec<Taken>) -> bool {
        let Some(held) = &self.held else { return false };
        if let (Some(positions), true) = (&self.positions, self.is_committed)
            && let Some(last) = held.items.last()
        {
            positions.room_for(last.position).await;
        }
        let Some(mut taken) = self.held.take() else { return false };
        if let Some(positions) = &self.positions {
            positions.received(&mut taken);
        }
        let any = !taken.items.is_empty();
        into.append(&mut taken.items);
        any
    }

    /// The next batch, from the reading thread or from a parser. `None` if its thread ended
    /// unexpectedly.
    async fn next_batch(&mut self) -> Option<ReadBatch> {
        if self.promised.is_none() {
            match self.batches.recv().await? {
                ReadBatch::Promised(promised) => self.promised = Some(promised),
                batch => return Some(batch),
            }
        }
        let made = self.promised.as_mut()?.await;
        self.promised = None;
        made.ok().map(ReadBatch::Items)
    }

    /// There is nothing more. `read`: the bytes of the file, if its end was read.
    fn end(&mut self, read: Option<u64>) {
        self.ended = true;
        if let Some(positions) = &self.positions {
            positions.end(read);
        }
    }

    /// `is_whole`: nothing of it is missing.
    fn fail(&mut self, reason: &str, is_whole: bool) -> Result<Pull, SourceError> {
        self.end(None);
        let next = match self.positions {
            _ if is_whole => "then run again",
            Some(_) => "restore its content in place, then run again, which goes on with this line",
            None => "restore it, then run again, which reads it from its start",
        };
        let reason = format!(
            "reading failed {reason}; the lines before it were delivered, and it was not taken: {next}"
        );
        Err(SourceError::new(self.name.clone(), reason))
    }
}

fn unreadable(error: &io::Error) -> String {
    format!("cannot be read: {error}; check the path and its permissions")
}

fn not_regular() -> String {
    "only a regular file can be read on: leave its checkpoint out".to_owned()
}

/// A regular file, opened twice.
struct OpenedFile {
    file: File,
    /// With a cursor of its own.
    beside: File,
    /// In bytes.
    length: u64,
    /// It is not compressed.
    is_plain: bool,
}

impl OpenedFile {
    fn open(path: &Path) -> Result<Self, String> {
        let (file, length) = open_file(path).map_err(|error| unreadable(&error))?;
        let length = length.ok_or_else(not_regular)?;
        let mut beginning = Vec::new();
        (&file).take(MAGIC).read_to_end(&mut beginning).map_err(|error| unreadable(&error))?;
        let is_plain = decompress::is_plain(&beginning);
        let beside = File::open(path).map_err(|error| unreadable(&error))?;
        if !identity::are_same(&file, &beside).map_err(|error| unreadable(&error))? {
            return Err("was replaced while it was opened: run again".to_owned());
        }
        Ok(Self { file, beside, length, is_plain })
    }
}

/// Where a file is read from, and the receiver of its positions.
struct Resume {
    start: Start,
    skip: Skip,
    positions: FilePositions,
}

impl Resume {
    fn new(
        path: &Path,
        opened: &mut OpenedFile,
        start: Start,
        keeper: &Keeper,
    ) -> Result<Self, String> {
        let beside = opened.beside.try_clone();
        let beside = beside.map_err(|error| unreadable(&error))?;
        let positions = FilePositions::new(path, beside, &start, opened.is_plain, keeper.due());
        let positions = positions.map_err(|error| unreadable(&error))?;
        Ok(Self { skip: keeper.skip(&start), start, positions })
    }
}

/// A regular file that is about to be read.
struct PreparedFile {
    name: String,
    path: PathBuf,
    opened: OpenedFile,
    /// The keeper of its positions.
    resume: Option<Resume>,
}

impl PreparedFile {
    /// Starts its thread.
    fn read(self, options: FileSourceOptions) -> io::Result<FileSource> {
        let Self { name, path, opened, resume } = self;
        let OpenedFile { mut file, length, is_plain, .. } = opened;
        let max_event = options.max_event;
        let form = Form::new(max_event, options.records, &path, Some(&file));
        let (mark, lines, positions) = match resume {
            None => (Mark::START, Lines::new(form), None),
            Some(Resume { start, skip, positions }) => {
                let lines = Lines::going_on(form, start.mark, skip);
                (start.mark, lines, Some(positions))
            }
        };
        let offset = mark.byte;
        file.seek(SeekFrom::Start(offset))?;
        let input = Regular::new(file, offset, length);
        let parts = (name, max_event, true, Some(length));
        let mut source = FileSource::reading(parts, lines, move |chunks, read| {
            let input = CountedReader { input, read };
            if is_plain { chunks.read_on(input, offset) } else { chunks.read(input) }
        })?;
        source.read.fetch_add(offset, Ordering::Relaxed);
        source.positions = positions;
        Ok(source)
    }
}

/// The record of a file that is an input by itself.
struct KnownFile {
    start: Start,
    /// If it was followed: its name, and the records of files that it replaced, kept for the day on
    /// which it is followed again.
    followed: Option<(String, Vec<StoredCheckpoint>)>,
}

impl KnownFile {
    /// Where to begin, the keeper of the positions, and the index of this file there.
    fn kept(self, name: String, checkpoint: Checkpoint) -> (Start, Keeper, usize) {
        let Self { start, followed } = self;
        let Some((input, others)) = followed else {
            let keeper = Keeper::of_one(name, checkpoint, start.resumed);
            return (start, keeper, 0);
        };
        let place = others.len();
        let others = others.into_iter().map(|other| Some(Kept::Stored(Arc::new(other), 0)));
        let files = others.chain([None]).collect();
        let keeper = Keeper::of_several(name, checkpoint, input, files, start.resumed);
        (start, keeper, place)
    }
}

fn known(
    path: &Path,
    opened: &mut OpenedFile,
    checkpoint: &Checkpoint,
) -> Result<KnownFile, String> {
    let unusable = |why: String| checkpoint.unusable(&why);
    match checkpoint.read().map_err(|why| unusable(why.to_string()))? {
        None => Ok(KnownFile { start: Start::at_the_beginning(), followed: None }),
        Some(Contents::Several(set)) => known_of_followed(path, opened, checkpoint, set),
        Some(Contents::One(stored)) => {
            let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
            let start = go_on_behind(&stored, opened, checkpoint, |why| {
                if Path::new(&stored.input) != path {
                    return Err(unusable(format!("it is of another input, {}", stored.input)));
                }
                checkpoint.tell_other_content(&path, why);
                Ok(())
            })?;
            Ok(KnownFile { start, followed: None })
        }
    }
}

/// The records from following it: a record of this file, unless it is a new one, and those of files
/// that it replaced.
fn known_of_followed(
    path: &Path,
    opened: &mut OpenedFile,
    checkpoint: &Checkpoint,
    set: StoredSet,
) -> Result<KnownFile, String> {
    let input = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if Path::new(&set.input) != input {
        return Err(checkpoint.unusable(&format!("it is of several files, {}", set.input)));
    }
    let inode = identity::inode(&opened.beside).map_err(|error| unreadable(&error))?;
    let is_of_it = |record: &StoredCheckpoint| record.identity.inode() == inode;
    let (own, others): (Vec<_>, Vec<_>) = set.files.into_iter().partition(is_of_it);
    let open = others.iter().filter(|other| !other.is_complete()).count();
    if open > 0 {
        tracing::warn!(
            input = %path.display(),
            files = open,
            "files that it has taken the place of are not done: they are read when it is followed again"
        );
    }
    let start = match own.first() {
        None => Start::at_the_beginning(),
        Some(record) => go_on_behind(record, opened, checkpoint, |why| {
            checkpoint.tell_other_content(path, why);
            Ok(())
        })?,
    };
    Ok(KnownFile { start, followed: Some((set.input, others)) })
}

/// After the settled lines, or at the beginning of a file that is not the stored one: `differs`
/// receives the reason.
fn go_on_behind(
    stored: &StoredCheckpoint,
    opened: &mut OpenedFile,
    checkpoint: &Checkpoint,
    differs: impl FnOnce(&str) -> Result<(), String>,
) -> Result<Start, String> {
    match Start::after(stored, &mut opened.beside, opened.is_plain) {
        Ok(start) => Ok(start),
        Err(NoStart::Differs(why)) => differs(&why).map(|()| Start::at_the_beginning()),
        Err(NoStart::Unusable(why)) => Err(checkpoint.unusable(&why.to_string())),
        Err(NoStart::Unreadable(error)) => Err(unreadable(&error)),
    }
}

fn is_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    path.metadata().is_ok_and(|found| found.file_type().is_fifo())
}

fn open_file(path: &Path) -> io::Result<(File, Option<u64>)> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    Ok((file, metadata.is_file().then_some(metadata.len())))
}

impl Source for FileSource {
    fn describe(&self) -> String {
        self.name.clone()
    }

    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>) -> Pulling<'a> {
        Box::pin(async move {
            while !self.ended {
                if self.take(into).await {
                    return Ok(Pull::More);
                }
                match self.next_batch().await {
                    Some(ReadBatch::Items(items)) => {
                        self.demand.taken();
                        self.held = Some(items);
                    }
                    Some(ReadBatch::End) => self.end(Some(self.read.load(Ordering::Relaxed))),
                    Some(ReadBatch::Failed { reason, line, at, is_whole }) => {
                        let reason = format!("in line {line}, from byte {at} on: {reason}");
                        return self.fail(&reason, is_whole);
                    }
                    Some(ReadBatch::Promised(_)) | None => {
                        return self
                            .fail("in some line: its reading thread ended unexpectedly", false);
                    }
                }
            }
            Ok(Pull::End)
        })
    }

    fn progress(&self) -> Option<f64> {
        let length = self.length?;
        if length == 0 {
            return Some(1.0);
        }
        Some((self.read.load(Ordering::Relaxed) as f64 / length as f64).min(1.0))
    }

    fn replayable(&self) -> bool {
        self.replayable
    }

    fn committer(&mut self) -> Option<Arc<dyn Committer>> {
        self.is_committed = true;
        self.keeper.clone().map(|keeper| Arc::new(keeper) as _)
    }

    fn receipts(&self) -> Option<Arc<dyn Receipts>> {
        self.positions.clone().map(|positions| Arc::new(positions) as _)
    }
}

impl Drop for FileSource {
    fn drop(&mut self) {
        self.end(None);
    }
}

#[cfg(test)]
mod checkpoint_tests;
#[cfg(test)]
mod record_tests;
#[cfg(test)]
mod tests;
