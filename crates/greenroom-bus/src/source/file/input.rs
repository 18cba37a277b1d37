//! The input file: a regular file that must not shrink, or a pipe that waits for its writer.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// Counts bytes read, before decompression.
pub(super) struct CountedReader<R> {
    pub(super) input: R,
    pub(super) read: Arc<AtomicU64>,
}

impl<R: Read> Read for CountedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// A regular file. If it ends before its length at opening, or before the bytes that were read of
/// it, it was cut: its end is an error then, since the missing part is unknown.
pub(super) struct Regular {
    file: File,
    /// The offset of the next read.
    at: u64,
    /// In bytes, when it was opened. 0 also for files that do not know their length (`/proc`).
    length: u64,
}

impl Regular {
    pub(super) fn new(file: File, at: u64, length: u64) -> Self {
        Self { file, at, length }
    }

    fn end(&self) -> io::Result<()> {
        let (length, expected) = (self.file.metadata()?.len(), self.length.max(self.at));
        if self.length == 0 || length >= expected {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "the file was cut while it was read: it has {length} bytes, and had {expected}"
        )))
    }
}

impl Read for Regular {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.at += count as u64;
        if count == 0 && !buffer.is_empty() {
            self.end()?;
        }
        Ok(count)
    }
}

/// A named pipe, which is opened when it is first read: opening waits for a writer.
pub(super) struct Pipe {
    path: PathBuf,
    /// Its name in log lines.
    name: String,
    file: Option<File>,
}

impl Pipe {
    pub(super) fn open(path: &Path, name: String) -> Self {
        Self { path: path.to_owned(), name, file: None }
    }
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let file = match self.file.take() {
            Some(file) => file,
            None => {
                tracing::info!(
                    input = self.name,
                    "it is a pipe: reading begins when somebody writes to it"
                );
                File::open(&self.path)?
            }
        };
        self.file.insert(file).read(buffer)
    }
}
