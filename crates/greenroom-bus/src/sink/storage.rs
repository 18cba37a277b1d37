//! What lines are written to: a file whose end is known to be whole, one that is made when it is needed, a stream.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

/// Takes bytes, makes them safe, and takes them back. Behind a trait so that tests can make each step fail.
pub(crate) trait Storage: Send + 'static {
    /// Appends all of these bytes.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Returns when all that was appended survives a crash of the machine, as far as the storage can.
    fn sync(&mut self) -> io::Result<()>;

    /// Takes back what was appended since the last successful sync, where that is possible.
    fn revert(&mut self) -> io::Result<()>;
}

/// A regular file that is appended to, or a device or pipe, which can be neither synced nor cut.
#[derive(Debug)]
pub(crate) struct DiskFile {
    file: File,
    regular: bool,
    length: u64,
    /// All before this is whole and safe.
    synced: u64,
}

impl DiskFile {
    /// Opens or creates a file. A torn last line, which a crash may have left, is cut off.
    pub(crate) fn open(path: &Path, truncate: bool) -> io::Result<Self> {
        let is_new = !path.exists();
        let mut file = OpenOptions::new()
            .read(is_regular_or_new(path))
            .append(true)
            .create(true)
            .open(path)?;
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
        Ok(Self { file, regular, length, synced: length })
    }
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
/// The rest does not look like the beginning of a line of ours: cutting it would destroy somebody's data.
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

impl Storage for DiskFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.regular {
            self.file.sync_data()?;
        }
        self.synced = self.length;
        Ok(())
    }

    fn revert(&mut self) -> io::Result<()> {
        if self.regular {
            self.file.set_len(self.synced)?;
        }
        self.length = self.synced;
        Ok(())
    }
}

/// A file that is made when the first bytes come.
#[derive(Debug)]
pub(crate) struct LazyFile {
    path: PathBuf,
    file: Option<DiskFile>,
}

impl LazyFile {
    /// Checks that the file can be made, or opens it where it is there already.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = if path.exists() {
            Some(DiskFile::open(path, false)?)
        } else {
            OpenOptions::new().append(true).create_new(true).open(path)?;
            std::fs::remove_file(path)?;
            None
        };
        Ok(Self { path: path.to_owned(), file })
    }
}

impl Storage for LazyFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let file = match self.file.take() {
            Some(file) => file,
            None => DiskFile::open(&self.path, false)?,
        };
        self.file.insert(file).append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), DiskFile::sync)
    }

    fn revert(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), DiskFile::revert)
    }
}

/// Standard output: flushed, never taken back.
#[derive(Debug)]
pub(crate) struct StandardOutput;

impl Storage for StandardOutput {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        io::stdout().write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }

    fn revert(&mut self) -> io::Result<()> {
        Ok(())
    }
}
