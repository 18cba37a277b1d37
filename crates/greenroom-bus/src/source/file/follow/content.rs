//! The remembered content of a file, to be found there at later looks.

use std::{
    fs::{File, Metadata},
    io::{self, Read, Seek, SeekFrom},
    time::{Duration, SystemTime},
};

use super::super::{
    blank,
    identity::{self, Fingerprint},
};

/// A file that was written to less than this ago may be written to again with the same time.
const TICK: Duration = Duration::from_secs(1);

/// This many bytes before the present position.
const RECENT: usize = 256;

/// The content that was read of a file.
#[derive(Default)]
pub(super) struct ReadContent {
    /// How it begins.
    head: Fingerprint,
    /// The last bytes.
    recent: Vec<u8>,
    /// When the file was last written to, as of the last look.
    written: Option<SystemTime>,
    /// The modification time at which it was last found unchanged, or longer. A file that stays the
    /// same costs no read at a look.
    checked: Option<SystemTime>,
    nuls: Nuls,
}

/// A log may be allocated before it is written, so NULs at its end are no content yet; a log that
/// is cut while its writer does not append begins with them.
#[derive(Default)]
struct Nuls {
    /// A place that has something else.
    content_at: u64,
    /// When the file had this length, the unread part was only NULs.
    at_the_end: Option<u64>,
}

impl ReadContent {
    /// For a file of which this many bytes were read. Moves the cursor.
    pub(super) fn before(file: &mut File, end: u64) -> io::Result<Self> {
        let head = Fingerprint::read(file, 0..end.min(identity::BYTES))?;
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

    /// The last write was this long ago.
    pub(super) fn is_older(&self, than: Duration) -> bool {
        let age = self.written.and_then(|written| written.elapsed().ok());
        age.is_some_and(|age| age >= than)
    }

    /// Of a file of this length, all is read but NULs, and was so when it was last written to.
    pub(super) fn ends_at(&self, length: u64) -> bool {
        self.nuls.at_the_end == Some(length) && !self.is_touched() && self.is_older(TICK)
    }

    /// The unread part is only NULs.
    pub(super) fn ends_in_nuls(&self) -> bool {
        self.nuls.at_the_end.is_some()
    }

    /// It was written to since it was last checked.
    pub(super) fn is_touched(&self) -> bool {
        self.written != self.checked
    }

    pub(super) fn is_checked(&mut self) {
        self.checked = self.written;
    }

    /// Why a file of which `read` bytes were read has changed. A file that was cut and rewritten
    /// may be longer by now: so the last bytes that were read still have to be there. If its length
    /// is unchanged, nothing was appended: it also has to begin as before.
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

    /// Records the bytes that are read of the file.
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
        let at = self.file.stream_position()?;
        let count = self.file.read(buffer)?;
        let count = self.written(at, &buffer[..count])?;
        let (read, ReadContent { head, recent, .. }) = (&buffer[..count], &mut *self.content);
        head.extend(read);
        recent.extend_from_slice(&read[read.len().saturating_sub(RECENT)..]);
        let excess = recent.len().saturating_sub(RECENT);
        recent.drain(..excess);
        Ok(count)
    }
}

impl Recorded<'_> {
    /// How much of this read, which is at offset `at` of the file, was written: trailing NULs with
    /// nothing after them do not count.
    fn written(&mut self, at: u64, read: &[u8]) -> io::Result<usize> {
        let nuls = &mut self.content.nuls;
        nuls.at_the_end = None;
        let written = read.len() - blank::at_the_end(read);
        let end = at + read.len() as u64;
        if written > 0 || read.is_empty() || nuls.content_at >= end {
            return Ok(if written > 0 { written } else { read.len() });
        }
        match blank::content_from(self.file, end)? {
            Some(at) => nuls.content_at = at,
            None => {
                nuls.at_the_end = Some(self.file.metadata()?.len());
                return Ok(0);
            }
        }
        Ok(read.len())
    }
}

/// When a file was last written to.
pub(super) fn written(found: &Metadata) -> SystemTime {
    found.modified().unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Up to this many bytes that end here. Moves the cursor.
pub(super) fn bytes_before(file: &mut File, end: u64, count: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(count);
    if count > 0 {
        file.seek(SeekFrom::Start(end.saturating_sub(count as u64)))?;
        file.take(count as u64).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}
