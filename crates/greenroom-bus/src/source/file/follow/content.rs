//! What is remembered of a file's content, to be found there at later looks.

use std::{
    fs::{File, Metadata},
    io::{self, Read, Seek, SeekFrom},
    time::SystemTime,
};

use super::super::identity::{self, Fingerprint};

/// So many bytes before the place that was read to.
const RECENT: usize = 256;

/// What was read of a file.
#[derive(Default)]
pub(super) struct ReadContent {
    /// How it begins.
    head: Fingerprint,
    /// The last bytes.
    recent: Vec<u8>,
    /// When the file was last written to, as of the last look.
    written: Option<SystemTime>,
    /// As of which `written` it was found unchanged, or longer. A file that stays as it is costs no
    /// read at a look.
    checked: Option<SystemTime>,
}

impl ReadContent {
    /// Of a file of which so many bytes were read. Moves the cursor.
    pub(super) fn before(file: &mut File, end: u64) -> io::Result<Self> {
        let head = Fingerprint::of(file, 0..end.min(identity::BYTES))?;
        let recent = bytes_before(file, end, RECENT.min(usize::try_from(end).unwrap_or(RECENT)))?;
        Ok(Self { head, recent, ..Self::default() })
    }

    /// How the file begins, as far as it was read.
    pub(super) fn head(&self) -> &Fingerprint {
        &self.head
    }

    /// When it was last written to, as it was just found.
    pub(super) fn found(&mut self, written: SystemTime) {
        self.written = Some(written);
    }

    /// It was written to since it was last checked.
    pub(super) fn is_touched(&self) -> bool {
        self.written != self.checked
    }

    pub(super) fn is_checked(&mut self) {
        self.checked = self.written;
    }

    /// Why a file of which `read` bytes were read is not what it was. One that was cut and written
    /// anew may be longer by now: so the last bytes that were read have to be there still. One of
    /// the same length was not appended to: it has to begin as it did, too.
    pub(super) fn difference(&self, file: &mut File, read: u64) -> io::Result<Option<String>> {
        let length = file.metadata()?.len();
        Ok(if length < read {
            Some(format!("it was cut to {length} bytes when {read} had been read"))
        } else if bytes_before(file, read, self.recent.len())? != self.recent {
            Some(format!("its content before byte {read} is not what was read"))
        } else if length == read && !self.head.holds(file)? {
            Some(format!("it has {read} bytes as before, and does not begin as it did"))
        } else {
            None
        })
    }

    /// Remembers what is read of the file.
    pub(super) fn recorded<'a>(&'a mut self, file: &'a mut File) -> impl Read + 'a {
        Recorded { file, content: self }
    }
}

struct Recorded<'a> {
    file: &'a mut File,
    content: &'a mut ReadContent,
}

impl Read for Recorded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        let (read, ReadContent { head, recent, .. }) = (&buffer[..count], &mut *self.content);
        head.extend(read);
        recent.extend_from_slice(&read[read.len().saturating_sub(RECENT)..]);
        let excess = recent.len().saturating_sub(RECENT);
        recent.drain(..excess);
        Ok(count)
    }
}

/// When a file was last written to.
pub(super) fn written(found: &Metadata) -> SystemTime {
    found.modified().unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Up to so many bytes that end here. Moves the cursor.
pub(super) fn bytes_before(file: &mut File, end: u64, count: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(count);
    if count > 0 {
        file.seek(SeekFrom::Start(end.saturating_sub(count as u64)))?;
        file.take(count as u64).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}
