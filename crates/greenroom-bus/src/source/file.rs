//! Events from a file or from standard input, one a line (B01).
//!
//! ```text
//! thread:  read ─▶ decompress ─▶ cut at a line feed ─┐
//!                                                     │ few chunks of 256 KiB
//! pull:                      events ◀─ parse lines ◀─┘
//! ```
//!
//! The thread keeps a disk, a pipe or a decompressor from blocking the runtime. Memory: the chunks on their way
//! (about 1.5 MiB), a decompressor's window, and the longest line.

mod chunks;
mod decompress;

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

use self::chunks::{Chunk, Chunks};
use super::{Malformed, Pull, Source, SourceError, Taken};
use crate::{BoxFuture, event::Event};

/// Chunks on their way from the thread: enough that neither side waits for the other's every step.
const CHUNKS: usize = 4;
/// At most so many items per pull, blank lines included.
const ITEMS_PER_PULL: usize = 4_096;
/// The line feed is not part of a line; the carriage return of a foreign one is not, either.
const CARRIAGE_RETURN: u8 = b'\r';

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
    options: FileSourceOptions,
    replayable: bool,
    chunks: mpsc::Receiver<Chunk>,
    /// Lines that are not handed out yet, and where the next one begins.
    lines: Vec<u8>,
    at: usize,
    /// The number of the last line handed out or skipped.
    line: u64,
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
        let (sender, chunks) = mpsc::channel(CHUNKS);
        let read = Arc::new(AtomicU64::new(0));
        let input = Counted { input, read: read.clone() };
        thread::Builder::new()
            .name("greenroom-reader".to_owned())
            .spawn(move || Chunks::new(sender).read(input))?;
        let (lines, at, line, ended) = (Vec::new(), 0, 0, false);
        Ok(Self { name, options, replayable, chunks, lines, at, line, ended, read, length })
    }

    /// Hands out lines of the current chunk. False when it is used up.
    fn take_lines(&mut self, into: &mut Vec<Taken>) -> bool {
        for _ in 0..ITEMS_PER_PULL {
            let rest = &self.lines[self.at..];
            if rest.is_empty() {
                return false;
            }
            let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let line = &rest[..length];
            self.at += (length + 1).min(rest.len());
            self.line += 1;
            if let Some(event) = read_line(line, self.options.max_event) {
                into.push(Taken { position: self.line, event });
            }
        }
        true
    }

    fn take_chunk(
        &mut self,
        chunk: Option<Chunk>,
        into: &mut Vec<Taken>,
    ) -> Result<Pull, SourceError> {
        match chunk {
            Some(Chunk::Lines(lines)) => {
                self.lines = lines;
                self.at = 0;
                Ok(Pull::More)
            }
            Some(Chunk::NoLine { raw, reason }) => {
                self.line += 1;
                into.push(Taken { position: self.line, event: Err(Malformed { raw, reason }) });
                Ok(Pull::More)
            }
            Some(Chunk::End) => {
                self.ended = true;
                Ok(Pull::End)
            }
            Some(Chunk::Failed(reason)) => self.fail(&reason),
            None => self.fail("its reading thread ended unexpectedly"),
        }
    }

    /// After this, there is nothing more.
    fn fail(&mut self, reason: &str) -> Result<Pull, SourceError> {
        self.ended = true;
        let reason = format!(
            "reading failed after line {}: {reason}; what was whole before it was delivered: restore the file, then run again",
            self.line
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

/// None for a blank line.
fn read_line(line: &[u8], max_event: usize) -> Option<Result<Event, Malformed>> {
    let line = line.strip_suffix(&[CARRIAGE_RETURN]).unwrap_or(line);
    if line.len() > max_event {
        let reason =
            format!("the line has {} bytes, more than `max_event` ({max_event})", line.len());
        return Some(Err(Malformed { raw: line.to_vec(), reason }));
    }
    match Event::parse(line) {
        Ok(event) => Some(Ok(event)),
        Err(_) if line.trim_ascii().is_empty() => None,
        Err(error) => Some(Err(Malformed { raw: line.to_vec(), reason: error.to_string() })),
    }
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
            let before = into.len();
            loop {
                let more = self.take_lines(into);
                if into.len() > before || self.ended {
                    return Ok(if self.ended { Pull::End } else { Pull::More });
                }
                if more {
                    // Thousands of blank lines: others may run.
                    tokio::task::yield_now().await;
                    continue;
                }
                // Given back before the wait for more, which may be long.
                self.lines = Vec::new();
                self.at = 0;
                let chunk = self.chunks.recv().await;
                if self.take_chunk(chunk, into)? == Pull::End {
                    return Ok(Pull::End);
                }
            }
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
