//! The operations on files that a log needs, behind a trait, so that tests make each of them fail.

use std::{
    any::Any,
    fs::{self, File, OpenOptions},
    io,
    path::Path,
    sync::Arc,
};

use crate::sink::{lock::open_locked, storage::sync_directory};

/// Files and their directory.
pub(super) trait Disk: Send + Sync + 'static {
    /// Makes a directory, and those above it, that only its owner can look into.
    fn make_directory(&self, path: &Path) -> io::Result<()>;

    /// The names of the entries in a directory.
    fn list(&self, directory: &Path) -> io::Result<Vec<String>>;

    /// Creates a file of this many zeros, with its space allocated; an existing file is replaced.
    fn create(&self, path: &Path, length: u64) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens a file to read it, and to write it if requested.
    fn open(&self, path: &Path, to_write: bool) -> io::Result<Arc<dyn DiskFile>>;

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Returns when creations, renames and removals in a directory survive a crash.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;

    /// Locks a file until the returned guard is dropped.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any + Send + Sync>>;
}

/// A file, written and read anywhere.
pub(super) trait DiskFile: Send + Sync {
    /// Writes all of these bytes.
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;

    /// Fills `into`, or as much of it as the file has. Returns how much that is.
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize>;

    /// Returns when all writes survive a crash of the machine.
    fn sync(&self) -> io::Result<()>;

    /// In bytes.
    fn length(&self) -> io::Result<u64>;
}

/// The disk of the machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct RealDisk;

impl Disk for RealDisk {
    fn make_directory(&self, path: &Path) -> io::Result<()> {
        if path.is_dir() {
            return Ok(());
        }
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path)?;
        sync_directory(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        let names = fs::read_dir(directory)?;
        names.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn create(&self, path: &Path, length: u64) -> io::Result<Arc<dyn DiskFile>> {
        let file = of_the_owner().create(true).truncate(true).open(path)?;
        preallocate(&file, length)?;
        Ok(Arc::new(file))
    }

    fn open(&self, path: &Path, to_write: bool) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(OpenOptions::new().read(true).write(to_write).open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        File::open(directory)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any + Send + Sync>> {
        let open = |path: &Path| of_the_owner().create(true).truncate(false).open(path);
        Ok(Box::new(open_locked(path, open)?))
    }
}

/// Read and written by its owner alone: events hold customers' data.
fn of_the_owner() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Takes the room now, so that a disk that is full is met before anything is written.
#[cfg(not(target_vendor = "apple"))]
fn preallocate(file: &File, length: u64) -> io::Result<()> {
    use rustix::{
        fs::{FallocateFlags, fallocate},
        io::Errno,
    };
    match fallocate(file, FallocateFlags::empty(), 0, length) {
        Ok(()) => Ok(()),
        // File systems that cannot.
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => write_zeros(file, length),
        Err(error) => Err(error.into()),
    }
}

#[cfg(target_vendor = "apple")]
fn preallocate(file: &File, length: u64) -> io::Result<()> {
    write_zeros(file, length)
}

fn write_zeros(file: &File, length: u64) -> io::Result<()> {
    io::copy(&mut io::Read::take(io::repeat(0), length), &mut &*file).map(drop)
}

impl DiskFile for File {
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(self, bytes, at)
    }

    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        filled(into, at, |into, at| std::os::unix::fs::FileExt::read_at(self, into, at))
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn length(&self) -> io::Result<u64> {
        self.metadata().map(|found| found.len())
    }
}

fn filled(
    into: &mut [u8],
    at: u64,
    read: impl Fn(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<usize> {
    let mut count = 0;
    while count < into.len() {
        match read(&mut into[count..], at + count as u64) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

/// There is no room at the moment.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// All of a small file; `None` if there is none.
pub(super) fn read_whole(disk: &dyn Disk, path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match disk.open(path, false) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = vec![0; file.length()? as usize];
    let count = file.read_at(&mut bytes, 0)?;
    bytes.truncate(count);
    Ok(Some(bytes))
}

/// Puts a file in its place so that there is always a whole one, the last or the one before. After
/// an error it may be tried again: a try begins with a new file.
pub(super) fn replace(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("tmp");
    let file = disk.create(&beside, bytes.len() as u64)?;
    file.write_at(bytes, 0)?;
    file.sync()?;
    disk.rename(&beside, path)?;
    disk.sync_directory(path.parent().unwrap_or(Path::new(".")))
}
