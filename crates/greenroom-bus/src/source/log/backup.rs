//! Copies a log, also while it is written.
//!
//! The positions of the consumers are copied first, then the segments: so the copy has every event
//! that a consumer has taken. If retention removes segments in between, the copy starts over.

use std::{io, path::Path};

use super::{
    consumers,
    disk::{Disk, RealDisk, read_whole},
    error::LogError,
    recovery::{IDENTITIES, missing, take_foreign},
    segment::{Segment, bases},
    walk::{Step, Walk},
};

/// Retention removes a segment in a minute rather than one a copy.
const TRIES: usize = 5;

/// Copies the log in `directory` to `to`, which must not exist or be empty, and returns the
/// sequence number after the last event of the copy. When it returns, the copy is on the disk.
/// Events that it has not copied were not acknowledged when it began. Blocks for as long as that
/// takes.
///
/// # Errors
/// There is no log, it is damaged, a file cannot be read or written, or `to` holds something.
pub fn back_up(directory: &Path, to: &Path) -> Result<u64, LogError> {
    let disk = RealDisk;
    let consumers_to = to.join(consumers::DIRECTORY);
    disk.make_directory(to).map_err(LogError::io(to))?;
    let is_empty = disk.list(to).map_err(LogError::io(to))?.is_empty();
    if !is_empty {
        let error = io::Error::other("a copy needs a directory that is empty");
        return Err(LogError::Io { path: to.to_owned(), error });
    }
    disk.make_directory(&consumers_to).map_err(LogError::io(&consumers_to))?;
    let mut tries = 0;
    loop {
        tries += 1;
        match copy(&disk, directory, to) {
            Ok(next) => {
                for path in [&consumers_to, to] {
                    disk.sync_directory(path).map_err(LogError::io(path))?;
                }
                return Ok(next);
            }
            Err(error) if tries == TRIES || !may_be_removed(&error) => return Err(error),
            Err(_) => clear(&disk, to)?,
        }
    }
}

/// The error of a segment that was removed or recycled while it was read.
fn may_be_removed(error: &LogError) -> bool {
    match error {
        LogError::Damaged(_) => true,
        LogError::Io { error, .. } => error.kind() == io::ErrorKind::NotFound,
        _ => false,
    }
}

fn clear(disk: &RealDisk, to: &Path) -> Result<(), LogError> {
    for directory in [to.join(consumers::DIRECTORY), to.to_owned()] {
        for name in disk.list(&directory).map_err(LogError::io(&directory))? {
            let path = directory.join(name);
            if !path.is_dir() {
                disk.remove(&path).map_err(LogError::io(&path))?;
            }
        }
    }
    Ok(())
}

fn copy(disk: &RealDisk, directory: &Path, to: &Path) -> Result<u64, LogError> {
    let consumers = directory.join(consumers::DIRECTORY);
    let names = disk.list(&consumers).map_err(LogError::io(&consumers))?;
    for name in names.iter().filter(|name| name.ends_with(consumers::EXTENSION)) {
        copy_small(disk, &consumers.join(name), &to.join(consumers::DIRECTORY).join(name))?;
    }
    let names = disk.list(directory).map_err(LogError::io(directory))?;
    let mut bases = bases(&names);
    if let Some(damage) = take_foreign(disk, directory, &mut bases)?.into_iter().next() {
        return Err(LogError::Damaged(damage));
    }
    let mut next = None;
    for (n, base) in bases.iter().enumerate() {
        let is_last = n + 1 == bases.len();
        let walk = copy_segment(disk, directory, to, *base, is_last)?;
        if let Some(following) = bases.get(n + 1).filter(|following| **following != walk.next) {
            return Err(LogError::Damaged(missing(&walk, *following)));
        }
        if next.is_none() {
            let log = walk.segment.header.log;
            let all = consumers::read(disk, &to.join(consumers::DIRECTORY), log)?;
            if all.iter().any(|(_, stored)| stored.positions.lowest() < *base) {
                return Err(LogError::Damaged(walk.damage("a consumer needs events before it")));
            }
        }
        next = Some(walk.next);
    }
    // After the segments: it then has at least the identities of the events before them.
    let identities = directory.join(IDENTITIES);
    if identities.exists() {
        copy_small(disk, &identities, &to.join(IDENTITIES))?;
    }
    next.ok_or_else(|| LogError::Io {
        path: directory.to_owned(),
        error: io::Error::other("there is no log in this directory"),
    })
}

fn copy_small(disk: &RealDisk, from: &Path, to: &Path) -> Result<(), LogError> {
    let bytes = read_whole(disk, from).map_err(LogError::io(from))?;
    let bytes = bytes.ok_or(io::ErrorKind::NotFound.into()).map_err(LogError::io(from))?;
    let write = || {
        let file = disk.create(to, bytes.len() as u64)?;
        file.write_at(&bytes, 0)?;
        file.sync()
    };
    write().map_err(LogError::io(to))
}

/// Copies the blocks that are whole.
fn copy_segment(
    disk: &RealDisk,
    directory: &Path,
    to: &Path,
    base: u64,
    is_last: bool,
) -> Result<Walk, LogError> {
    let path = Segment::path(directory, base);
    let (segment, file) = Segment::open(disk, &path, base, false)?;
    if let Some(damage) = segment.is_cut() {
        return Err(LogError::Damaged(damage));
    }
    let copied = Segment::path(to, base);
    let failed = || LogError::io(copied.clone());
    let copy = disk.create(&copied, segment.length).map_err(failed())?;
    copy.write_at(&segment.header.write(), 0).map_err(failed())?;
    let mut walk = Walk::new(segment, file);
    loop {
        let at = walk.offset;
        match walk.step(is_last)? {
            Step::Block(block) => copy.write_at(&block.bytes, at).map_err(failed())?,
            Step::End(_) => break,
            Step::Damaged { damage, .. } => return Err(LogError::Damaged(damage)),
        }
    }
    copy.sync().map_err(failed())?;
    Ok(walk)
}
