//! Events from a file or from standard input, one a line (B01).
//!
//! ```text
//! thread:  read ─▶ decompress ─▶ cut at a line feed ─▶ parse lines ─┐
//!                                                                     │ few batches, of a chunk of 256 KiB each
//! pull:                                                   events  ◀───┘
//! ```
//!
//! The thread keeps a disk, a pipe or a decompressor from blocking the runtime, and the parser from keeping it busy.
//! Memory: the batches on their way (some MiB), a decompressor's window, and the longest line.

mod chunks;
mod decompress;
mod lines;

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use tokio::sync::mpsc;

use self::{
    chunks::Chunks,
    lines::{Batch, Lines},
};
use super::{Pull, Source, SourceError, Taken};
use crate::BoxFuture;

/// Batches on their way from the thread: enough that neither side waits for the other's every step.
const BATCHES: usize = 8;

/// How a [`FileSource`] reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSourceOptions {
    /// The longest line that is taken for an event, in bytes; a longer one is malformed. Default: 16 MiB.
    pub max_event: usize,
}

impl Default for FileSourceOptions {
    fn default() -> Self {
        Self { max_event: 16 * 1024 * 1024 }
    }
}

/// Reads NDJSON, plain, gzip or zstd, told apart by the first bytes. Positions are line numbers, from 1; blank lines
/// count, and are skipped. A byte order mark and carriage returns are tolerated.
///
/// Dropped, it ends its thread; one that waits for standard input ends when that gives something or closes.
pub struct FileSource {
    name: String,
    replayable: bool,
    batches: mpsc::Receiver<Batch>,
    ended: bool,
    read: Arc<AtomicU64>,
    /// The file's size in bytes, where it has one.
    length: Option<u64>,
}

impl FileSource {
    /// Opens a file; `-` is standard input.
    ///
    /// # Errors
    /// There is no such file, it cannot be read, or it is a directory.
    pub fn open(path: impl AsRef<Path>, options: FileSourceOptions) -> Result<Self, SourceError> {
        let path = path.as_ref();
        let name = format!("file:{}", path.display());
        let opened = if path.as_os_str() == "-" {
            Self::start(name.clone(), options, io::stdin(), false, None)
        } else {
            open_file(path)
                .and_then(|(file, length)| Self::start(name.clone(), options, file, true, length))
        };
        opened.map_err(|error| {
            SourceError::new(
                name,
                format!("cannot be read: {error}; check the path and its permissions"),
            )
        })
    }

    fn start(
        name: String,
        options: FileSourceOptions,
        input: impl Read + Send + 'static,
        replayable: bool,
        length: Option<u64>,
    ) -> io::Result<Self> {
        let (sender, batches) = mpsc::channel(BATCHES);
        let mut lines = Lines::new(options.max_event);
        let give = move |chunk| lines.of(chunk, |batch| sender.blocking_send(batch).is_ok());
        let read = Arc::new(AtomicU64::new(0));
        let input = Counted { input, read: read.clone() };
        thread::Builder::new()
            .name("greenroom-reader".to_owned())
            .spawn(move || Chunks::new(give).read(input))?;
        Ok(Self { name, replayable, batches, ended: false, read, length })
    }

    /// After this, there is nothing more.
    fn fail(&mut self, reason: &str) -> Result<Pull, SourceError> {
        self.ended = true;
        let reason = format!(
            "reading failed {reason}; what was whole before it was delivered: restore the file, then run again"
        );
        Err(SourceError::new(self.name.clone(), reason))
    }
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

    fn pull<'a>(
        &'a mut self,
        into: &'a mut Vec<Taken>,
    ) -> BoxFuture<'a, Result<Pull, SourceError>> {
        Box::pin(async move {
            while !self.ended {
                match self.batches.recv().await {
                    Some(Batch::Items(items)) if items.is_empty() => {}
                    Some(Batch::Items(mut items)) => {
                        into.append(&mut items);
                        return Ok(Pull::More);
                    }
                    Some(Batch::End) => self.ended = true,
                    Some(Batch::Failed { reason, line }) => {
                        return self.fail(&format!("after line {line}: {reason}"));
                    }
                    None => return self.fail("because its reading thread ended unexpectedly"),
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
}

/// Counts what is read, before it is decompressed.
struct Counted<R> {
    input: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
