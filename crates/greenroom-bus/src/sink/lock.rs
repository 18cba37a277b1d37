//! One writer a file.
//!
//! The lock is the system's, on the file itself: it holds for every name of the file, it needs no
//! other file, and it is gone with the process that has it, however that ends. It is advisory:
//! other programs may write all the same.

use std::{
    fs::{self, File, TryLockError},
    io,
    ops::{Deref, DerefMut},
    path::Path,
};

/// A file that no other process may write until this is dropped.
///
/// To close it would not do: a process that was forked and does not run its program yet has the
/// file as well, and with it the lock.
#[derive(Debug)]
pub(crate) struct Locked(File);

impl Deref for Locked {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.0
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // Fails if it was never locked: a device, or a file system without locks.
        let _ = self.0.unlock();
    }
}

/// Opens a file and locks it, until it is dropped. A file that is neither regular nor new is not
/// locked: devices and pipes are shared.
///
/// # Errors
/// It cannot be opened; or another process writes it: of the kind `ResourceBusy`, and says which
/// process.
pub(crate) fn open_locked(
    path: &Path,
    open: impl Fn(&Path) -> io::Result<File>,
) -> io::Result<Locked> {
    loop {
        let file = open(path)?;
        if !file.metadata()?.is_file() {
            return Ok(Locked(file));
        }
        lock(&file, path)?;
        let file = Locked(file);
        // The last holder of the lock may have put another file there before it released it.
        if is_at(&file, path)? {
            return Ok(file);
        }
    }
}

fn lock(file: &File, path: &Path) -> io::Result<()> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            Err(io::Error::new(io::ErrorKind::ResourceBusy, format!("{} writes it", holder(file))))
        }
        Err(TryLockError::Error(error)) => {
            tracing::warn!(
                path = %path.display(),
                %error,
                "files cannot be locked there: see to it that nobody else writes this one"
            );
            Ok(())
        }
    }
}

/// Whether the path leads to this very file.
///
/// # Errors
/// The path cannot be looked at.
pub(crate) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let there = match fs::metadata(path) {
        Ok(there) => there,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let here = file.metadata()?;
    Ok((here.dev(), here.ino()) == (there.dev(), there.ino()))
}

/// The holder of the lock, in words.
fn holder(file: &File) -> String {
    match holding_process(file) {
        Some(pid) if pid == std::process::id() => "another part of this very process".to_owned(),
        Some(pid) => format!("another process ({pid})"),
        None => "another process".to_owned(),
    }
}

/// The kernel's own list of locks, with their processes; those of ended processes are gone.
#[cfg(target_os = "linux")]
fn holding_process(file: &File) -> Option<u32> {
    let place = place(file).ok()?;
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        // `1: FLOCK  ADVISORY  WRITE 2893 fd:02:3801102 0 EOF`, or with `->` in front of the kind
        // for a waiting one.
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, _, pid, at, ..] = *words else { return None };
        (at == place).then(|| pid.parse().ok()).flatten()
    })
}

#[cfg(not(target_os = "linux"))]
fn holding_process(_: &File) -> Option<u32> {
    None
}

/// Device and inode, as the list has them.
#[cfg(target_os = "linux")]
fn place(file: &File) -> io::Result<String> {
    use std::os::unix::fs::MetadataExt;
    let found = file.metadata()?;
    let (major, minor) = (rustix::fs::major(found.dev()), rustix::fs::minor(found.dev()));
    Ok(format!("{major:02x}:{minor:02x}:{}", found.ino()))
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    fn open(path: &Path) -> io::Result<Locked> {
        open_locked(path, |path| OpenOptions::new().append(true).create(true).open(path))
    }

    #[test]
    fn a_file_has_one_writer_under_whatever_name() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("a"), dir.path().join("b"));
        let first = open(&path).unwrap();
        fs::hard_link(&path, &link).unwrap();
        for name in [&path, &link] {
            let error = open(name).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
            #[cfg(target_os = "linux")]
            assert_eq!(error.to_string(), "another part of this very process writes it");
        }
        drop(first);
        drop(open(&link).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "nothing is left beside it");
    }

    #[test]
    fn a_file_is_let_go_of_though_a_forked_process_has_it_still() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let first = open(&path).unwrap();
        // What a fork makes as well: another descriptor of the same opening.
        let forked = first.try_clone().unwrap();
        drop(first);
        drop(open(&path).unwrap());
        drop(forked);
    }

    #[test]
    fn devices_are_shared() {
        let open = || open(Path::new("/dev/null")).unwrap();
        let _both = (open(), open());
    }
}
