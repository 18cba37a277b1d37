//! The target of lines: a file whose end is known to be intact, or a stream.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::lock::{Locked, is_at, open_locked};

const RENAMED: &str =
    "it was renamed or replaced while it was written, and goes on in the file at its path";

/// Takes bytes, makes them safe, and takes them back. Behind a trait so that tests
/// can make each step fail.
pub(crate) trait Storage: Send + 'static {
    /// Appends all of these bytes.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Returns when all that was appended survives a crash of the machine,
    /// as far as the storage can.
    fn sync(&mut self) -> io::Result<()>;

    /// Takes back everything that was appended since the last successful sync, if that is possible.
    fn revert(&mut self) -> io::Result<()>;

    /// Checks whether the target is still in place, and reopens it if not. Only called while all is
    /// safe.
    fn reopen(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// This many bytes may be appended before [`rotate`](Self::rotate) is to be called.
    fn room(&self) -> u64 {
        u64::MAX
    }

    /// After this time `rotate` is to be asked, whatever was appended until then. `None`: not by
    /// time.
    fn rotates_in(&self) -> Option<Duration> {
        None
    }

    /// Continues in a new file, if that is due. Only called between two lines, while all is safe.
    fn rotate(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// A remark on the target since the last call.
    fn take_remark(&mut self) -> Option<String> {
        None
    }

    /// Advice to an operator about a failure.
    fn advice(&self) -> &'static str {
        "make room or choose another path, then run again"
    }

    /// Lets others write. Nothing is appended afterwards.
    fn close(&mut self) {}
}

/// A regular file that is appended to, or a device or pipe, which can be neither synced nor cut.
///
/// Other programs may rename, remove or cut a regular file while it is written. After each sync its
/// path is compared with it, and only the data in the file at the path then counts as safe: the
/// rest goes to a new file there.
#[derive(Debug)]
pub(crate) struct AppendFile {
    path: PathBuf,
    file: Locked,
    regular: bool,
    length: u64,
    /// All before this is whole and safe.
    synced: u64,
    /// It was not there before.
    is_new: bool,
    keeps_empty: bool,
    remark: Option<String>,
}

impl AppendFile {
    /// Opens or creates a file that no other process writes. A torn last line, which a crash may
    /// have left, is cut off.
    pub(crate) fn open(path: &Path, truncate: bool) -> io::Result<Self> {
        let is_new = !path.exists();
        let open = |path: &Path| {
            let mut options = OpenOptions::new();
            options.read(is_regular_or_new(path)).append(true).create(true).open(path)
        };
        let mut file = open_locked(path, open)?;
        let regular = file.metadata()?.is_file();
        if is_new {
            sync_directory(path)?;
        }
        let length = match regular {
            false => 0,
            true if truncate => 0,
            true => whole_lines(&mut file, path)?,
        };
        if regular && file.metadata()?.len() != length {
            file.set_len(length)?;
        }
        let (path, synced) = (path.to_owned(), length);
        Ok(Self { path, file, regular, length, synced, is_new, keeps_empty: true, remark: None })
    }

    /// Like [`open`](Self::open). A file that has no line when it is closed, and had none before,
    /// is removed; until then it is locked like any other. A process that was killed has left an
    /// empty one.
    pub(crate) fn open_unless_empty(path: &Path) -> io::Result<Self> {
        let file = Self::open(path, false)?;
        Ok(Self { is_new: file.is_new || file.length == 0, keeps_empty: false, ..file })
    }

    pub(super) fn is_in_place(&self) -> io::Result<bool> {
        Ok(!self.regular || is_at(&self.file, &self.path)?)
    }

    /// In bytes, including data that is not safe yet.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    pub(super) fn is_regular(&self) -> bool {
        self.regular
    }

    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    /// When it was last written to.
    pub(super) fn modified(&self) -> io::Result<SystemTime> {
        self.file.metadata()?.modified()
    }

    /// Continues in this one. Only while all is safe: the old one, which keeps its lines, is
    /// released.
    pub(super) fn go_on_in(&mut self, mut next: Self) {
        next.keeps_empty = self.keeps_empty;
        next.remark = self.remark.take();
        *self = next;
    }

    /// Continues in a new file at the path, which gets the data that is not safe yet. The old one
    /// keeps the safe data, and is not touched any more once there is a new one: whoever renamed it
    /// may go on with it.
    fn move_on(&mut self) -> io::Result<()> {
        let remark = Some(self.what_became_of_it()?);
        let unsafe_lines = self.take_unsafe_lines()?;
        let next = Self::open(&self.path, false)?;
        let mut next = Self { remark, keeps_empty: self.keeps_empty, ..next };
        if let Err(error) = next.append(&unsafe_lines) {
            next.revert()?;
            return Err(error);
        }
        *self = next;
        Ok(())
    }

    fn take_unsafe_lines(&mut self) -> io::Result<Vec<u8>> {
        let (mut lines, wanted) = (Vec::new(), self.length - self.synced);
        self.file.seek(SeekFrom::Start(self.synced))?;
        (&*self.file).read_to_end(&mut lines)?;
        let found = lines.len() as u64;
        if found < wanted {
            return Err(lost(wanted - found));
        }
        // Unless another process has written to it since: that would be cut as well.
        if found == wanted {
            self.file.set_len(self.synced)?;
            self.length = self.synced;
        }
        Ok(lines)
    }

    fn what_became_of_it(&self) -> io::Result<String> {
        use std::os::unix::fs::MetadataExt;
        if self.file.metadata()?.nlink() > 0 {
            return Ok(RENAMED.to_owned());
        }
        Ok(format!(
            "it was removed while it was written, with {} bytes that were confirmed before; the rest is in a new file at its \
             path",
            self.synced
        ))
    }

    /// Another process may have cut the file, or written to it. The last appended bytes must be at
    /// its end.
    fn look_at_length(&mut self) -> io::Result<()> {
        let (length, unconfirmed) = (self.file.metadata()?.len(), self.length - self.synced);
        if length < unconfirmed {
            return Err(lost(unconfirmed - length));
        }
        if length < self.length {
            self.remark = Some(format!(
                "it was cut to {length} bytes while it was written, from {}: what was confirmed before is in it no more",
                self.length
            ));
        }
        self.length = length;
        Ok(())
    }
}

fn lost(bytes: u64) -> io::Error {
    io::Error::other(format!(
        "somebody cut it while it was written, and {bytes} bytes that were not confirmed are lost (to rotate a file, rename it)"
    ))
}

/// A pipe opened for reading as well would wait for itself.
fn is_regular_or_new(path: &Path) -> bool {
    path.metadata().map_or(true, |metadata| metadata.is_file())
}

/// Makes the new name itself survive a crash.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

/// Where the last whole line ends.
///
/// # Errors
/// The rest does not look like the beginning of a line of ours: cutting it would destroy data that
/// is not ours.
fn whole_lines(file: &mut File, path: &Path) -> io::Result<u64> {
    let length = file.metadata()?.len();
    let end = last_line_feed(file, length)?.map_or(0, |at| at + 1);
    if end == length {
        return Ok(end);
    }
    if byte_at(file, end)? != b'{' {
        return Err(io::Error::other(
            "its last line is neither whole nor the beginning of an event; choose another path, or remove the file",
        ));
    }
    tracing::warn!(path = %path.display(), bytes = length - end, "cut off a torn last line, which a crash had left");
    Ok(end)
}

fn byte_at(file: &mut File, at: u64) -> io::Result<u8> {
    let mut byte = [0];
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut byte)?;
    Ok(byte[0])
}

/// Searched from the end, block by block.
fn last_line_feed(file: &mut File, length: u64) -> io::Result<Option<u64>> {
    const BLOCK: u64 = 64 * 1024;
    let mut block = Vec::new();
    let mut end = length;
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        file.seek(SeekFrom::Start(start))?;
        block.clear();
        file.take(end - start).read_to_end(&mut block)?;
        if let Some(at) = block.iter().rposition(|byte| *byte == b'\n') {
            return Ok(Some(start + at as u64));
        }
        end = start;
    }
    Ok(None)
}

impl Storage for AppendFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        while self.regular {
            self.file.sync_data()?;
            if self.is_in_place()? {
                self.look_at_length()?;
                break;
            }
            self.move_on()?;
        }
        self.synced = self.length;
        Ok(())
    }

    fn revert(&mut self) -> io::Result<()> {
        if self.regular {
            let length = self.file.metadata()?.len();
            self.file.set_len(self.synced.min(length))?;
        }
        self.length = self.synced;
        Ok(())
    }

    fn reopen(&mut self) -> io::Result<()> {
        if self.is_in_place()? { Ok(()) } else { self.sync() }
    }

    fn take_remark(&mut self) -> Option<String> {
        self.remark.take()
    }

    fn close(&mut self) {
        if !self.regular {
            return;
        }
        let is_needless = self.is_new && self.length == 0 && !self.keeps_empty;
        if is_needless && self.is_in_place().unwrap_or(false) {
            // An empty file in its place does no harm.
            let _ = std::fs::remove_file(&self.path);
        }
        // Closed, it is let go of in any case.
        let _ = self.file.unlock();
    }
}

/// Standard output: written at once, and synced if it is a regular file. Nothing is taken back.
#[derive(Debug)]
pub(crate) struct StandardOutput {
    out: File,
    regular: bool,
}

impl StandardOutput {
    pub(crate) fn open() -> io::Result<Self> {
        let out = standard_output()?;
        let regular = out.metadata().is_ok_and(|found| found.is_file());
        Ok(Self { out, regular })
    }
}

/// Without the shared buffer: data that could not be written is not left in any buffer.
fn standard_output() -> io::Result<File> {
    use std::os::fd::AsFd;
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

impl Storage for StandardOutput {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => {
                io::Error::new(error.kind(), "whoever read standard output has closed it")
            }
            _ => error,
        })
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.regular { self.out.sync_data() } else { Ok(()) }
    }

    fn revert(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn advice(&self) -> &'static str {
        "run again with a reader that reads to the end"
    }
}
