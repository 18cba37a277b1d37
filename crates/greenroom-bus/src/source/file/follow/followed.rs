//! One followed file: how much of it was read, and whether it has changed.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::PathBuf,
    sync::{Arc, mpsc},
    time::Duration,
};

use tokio::time::Instant;

use super::super::{
    Give,
    chunks::{Chunk, Chunks},
    decompress::{decompressed, is_plain},
    identity::{self, Fingerprint},
    lines::{Items, Lines, ReadBatch},
};
use super::{
    content::{ReadContent, bytes_before, written},
    found::{FoundFile, Id},
    piece::{GRACE, Visited},
};

/// A compressed file is complete when it has not grown for this long.
const STEADY: Duration = Duration::from_secs(2);
/// This many bytes show whether a file is compressed.
const MAGIC: usize = 4;

pub(super) struct Followed {
    pub(super) path: PathBuf,
    pub(super) id: Id,
    pub(super) visited: Arc<Visited>,
    /// `None` while it sleeps, and until it is opened for the first time.
    pub(super) file: Option<File>,
    /// It was opened.
    pub(super) has_begun: bool,
    /// In bytes, at the last look.
    pub(super) length: u64,
    /// A name that is followed leads to it.
    pub(super) is_there: bool,
    /// Since when nothing of it was read.
    pub(super) quiet_since: Option<Instant>,
    pub(super) told: LastTold,
    cutter: Cutter,
    /// The content that was read, unless it is compressed.
    content: ReadContent,
    compressed: Compressed,
}

/// Splits data into chunks, and these into lines.
struct Cutter {
    chunks: Chunks<Give>,
    /// Where the chunks come out.
    cut: mpsc::Receiver<Chunk>,
    lines: Lines,
}

/// The known state of a compressed file.
#[derive(Default)]
struct Compressed {
    archive: Option<Archive>,
    steady: Option<Steady>,
}

/// Whether a file grows.
struct Steady {
    /// Its length, and since when it has that.
    as_long: u64,
    since: Instant,
    /// When it was first met.
    met: Instant,
}

/// The last message to the engine about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastTold {
    Lines,
    CaughtUp,
    Quiet,
}

/// The content of a file that is compressed.
struct Archive {
    /// Of the file, when its content was opened.
    length: u64,
    /// Until it was read to its end.
    content: Option<Box<dyn Read + Send>>,
}

/// The result of reading on.
pub(super) enum Visit {
    Lines(Vec<Items>),
    /// Read on: no line is whole yet.
    Nothing,
    /// As far as it was at the last look.
    Done,
    /// It was cut or replaced, for this reason.
    Cut(String),
    /// It is compressed, and nothing of it was read.
    Compressed,
}

impl Followed {
    /// Reading begins after `offset` bytes, which contain this many lines.
    pub(super) fn new(
        (path, id): (PathBuf, Id),
        visited: Arc<Visited>,
        file: Option<File>,
        (lines, offset, max_event): (Lines, u64, usize),
    ) -> Self {
        let (sender, cut) = mpsc::channel();
        let give: Give = Box::new(move |chunk| sender.send(chunk).is_ok());
        let chunks = Chunks::new(max_event, give).behind(offset);
        Self {
            path,
            id,
            visited,
            has_begun: file.is_some(),
            file,
            length: offset,
            is_there: true,
            quiet_since: None,
            told: LastTold::Lines,
            cutter: Cutter { chunks, cut, lines: lines.stepwise() },
            content: ReadContent::default(),
            compressed: Compressed::default(),
        }
    }

    /// Reads the bytes before the place to continue from.
    pub(super) fn remember(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        // Before its content: a later write is found by the next look. Earlier data is known, and
        // if the file is closed by then, it is not opened for that.
        let found = written(&file.metadata()?);
        self.content = ReadContent::before(file, self.cutter.chunks.offset())?;
        self.content.found(found);
        self.content.is_checked();
        Ok(())
    }

    /// Bytes of the file that were read.
    pub(super) fn read(&self) -> u64 {
        match &self.compressed.archive {
            None => self.cutter.chunks.offset(),
            Some(Archive { length, content: None }) => *length,
            Some(_) => 0,
        }
    }

    /// Bytes of a line that is not whole.
    pub(super) fn at_hand(&self) -> u64 {
        self.cutter.chunks.at_hand()
    }

    pub(super) fn lines_read(&self) -> u64 {
        self.cutter.lines.last()
    }

    /// A name that is followed leads to it.
    pub(super) fn is_found(&mut self, found: FoundFile) {
        self.is_there = true;
        if self.file.is_none() {
            self.length = found.length;
            self.content.found(found.modified);
        }
        self.path = found.path;
    }

    /// Checks its present length. True if there is data to read, or other content.
    pub(super) fn look(&mut self) -> io::Result<bool> {
        if let Some(file) = &self.file {
            let found = file.metadata()?;
            self.length = found.len();
            self.content.found(written(&found));
        }
        if self.content.ends_at(self.length) {
            self.length = self.read();
        }
        if self.length != self.read() {
            self.content.is_checked();
            return Ok(true);
        }
        if !self.content.is_touched() {
            return Ok(false);
        }
        let is_other = self.file.is_none() || self.difference()?.is_some();
        if !is_other {
            self.content.is_checked();
        }
        Ok(is_other)
    }

    pub(super) fn is_quiet(&self, now: Instant) -> bool {
        self.quiet_since.is_some_and(|since| now.duration_since(since) >= GRACE)
    }

    /// It has no name any more, so it cannot be found again.
    pub(super) fn is_removed(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.metadata().is_ok_and(|found| links(&found) == 0))
    }

    /// Whether a compressed file has stopped growing. One whose last write was long ago is complete
    /// at first sight.
    pub(super) fn is_steady(&mut self, now: Instant) -> bool {
        let length = self.length;
        let Steady { as_long, since, .. } =
            self.compressed.steady.get_or_insert(Steady { as_long: length, since: now, met: now });
        if *as_long != length {
            (*as_long, *since) = (length, now);
        }
        now.duration_since(*since) >= STEADY || self.content.is_older(STEADY)
    }

    /// Whether it was first seen this long ago.
    pub(super) fn has_waited(&self, now: Instant, time: Duration) -> bool {
        self.compressed.steady.as_ref().is_some_and(|steady| now.duration_since(steady.met) >= time)
    }

    /// Its beginning, and how much of it was read; `None` if it is compressed, or empty.
    pub(super) fn content(&self) -> Option<(Fingerprint, u64)> {
        let read = self.cutter.chunks.offset();
        let is_known = read > 0 && self.compressed.archive.is_none();
        is_known.then(|| (self.content.head().clone(), read))
    }

    /// Whether a file begins with all that was read of this one, which is something.
    pub(super) fn is_begun_by(&self, file: &mut File) -> bool {
        let read = self.content().map(|(_, read)| self.content.difference(file, read));
        matches!(read, Some(Ok(None)))
    }

    /// Reads a chunk more.
    pub(super) fn visit(&mut self) -> io::Result<Visit> {
        if self.compressed.archive.is_some() {
            return self.unpack();
        }
        if let Some(why) = self.difference()? {
            return Ok(Visit::Cut(why));
        }
        self.content.is_checked();
        if self.read() >= self.length {
            return Ok(Visit::Done);
        }
        let Some(file) = &mut self.file else { return Ok(Visit::Done) };
        if self.cutter.chunks.offset() == 0 {
            let beginning = bytes_before(file, MAGIC as u64, MAGIC)?;
            if !is_plain(&beginning) {
                return Ok(Visit::Compressed);
            }
            if beginning.len() < MAGIC && may_be_magic(&beginning) {
                return Ok(Visit::Done);
            }
        }
        file.seek(SeekFrom::Start(self.cutter.chunks.offset()))?;
        let has_read = self.cutter.chunks.step(&mut self.content.recorded(file))?;
        if !has_read {
            // It has nothing more but NULs, or was cut just now: the next look finds that.
            if self.content.ends_in_nuls() {
                self.length = self.read();
            }
            return Ok(Visit::Done);
        }
        if let Some(positions) = &self.visited.positions {
            positions.begins(self.content.head());
        }
        self.quiet_since = None;
        Ok(self.handed_over())
    }

    /// Its content is read from now on.
    pub(super) fn begin_archive(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.seek(SeekFrom::Start(0))?;
        let content = decompressed(file.try_clone()?)?;
        self.compressed.archive = Some(Archive { length: self.length, content: Some(content) });
        Ok(())
    }

    /// All of its content is taken for read.
    pub(super) fn pass_archive(&mut self) {
        self.compressed.archive = Some(Archive { length: self.length, content: None });
    }

    /// How its content begins, and how long it is.
    pub(super) fn unpacked(&mut self) -> io::Result<(Vec<u8>, u64)> {
        let Some(file) = &mut self.file else { return Ok((Vec::new(), 0)) };
        file.seek(SeekFrom::Start(0))?;
        let mut content = decompressed(file.try_clone()?)?;
        let mut beginning = Vec::new();
        (&mut content).take(identity::BYTES).read_to_end(&mut beginning)?;
        let rest = io::copy(&mut content, &mut io::sink())?;
        let length = beginning.len() as u64 + rest;
        Ok((beginning, length))
    }

    fn unpack(&mut self) -> io::Result<Visit> {
        let Some(Archive { length, content }) = &mut self.compressed.archive else {
            return Ok(Visit::Done);
        };
        if *length != self.length {
            return Err(io::Error::other(
                "it is compressed, and was changed after its content was read: a compressed file that grows cannot be \
                 followed; write it under another name, and rename it when it is whole",
            ));
        }
        let Some(input) = content else { return Ok(Visit::Done) };
        if !self.cutter.chunks.step(input)? {
            *content = None;
            self.cutter.chunks.end();
        }
        self.quiet_since = None;
        Ok(self.handed_over())
    }

    /// The line at hand is whole: nothing more will come.
    pub(super) fn finish(&mut self) -> Vec<Items> {
        self.cutter.chunks.end();
        match self.handed_over() {
            Visit::Lines(items) => items,
            _ => Vec::new(),
        }
    }

    fn handed_over(&mut self) -> Visit {
        let mut all = Vec::new();
        let Cutter { cut, lines, .. } = &mut self.cutter;
        for chunk in cut.try_iter() {
            lines.parse(chunk, |batch| {
                if let ReadBatch::Items(items) = batch {
                    all.push(items);
                }
                true
            });
        }
        if all.is_empty() { Visit::Nothing } else { Visit::Lines(all) }
    }

    /// Why it is not the same file any more. For a compressed one, only its length is known.
    fn difference(&mut self) -> io::Result<Option<String>> {
        match &mut self.file {
            Some(file) if self.compressed.archive.is_none() => {
                self.content.difference(file, self.cutter.chunks.offset())
            }
            _ => Ok(None),
        }
    }
}

fn links(found: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(found)
}

/// A file this short may yet become a compressed one.
fn may_be_magic(beginning: &[u8]) -> bool {
    beginning.first().is_some_and(|first| matches!(first, 0x1f | 0x28 | 0x50..=0x5f))
}
