//! Room that is kept for letters when the disk is full: a file that is removed then.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::store::sqlite::private;

/// Some thousand letters of usual size.
pub(super) const RESERVED: u64 = 8 << 20;

const NAME: &str = "reserve";

/// The file that keeps room.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
    is_kept: bool,
}

impl Reserve {
    /// Keeps room in this directory, where there is some.
    pub(super) fn new(directory: &Path) -> Self {
        let mut reserve = Self { path: directory.join(NAME), is_kept: false };
        if let Err(error) = reserve.keep() {
            tracing::warn!(path = %reserve.path.display(), %error, "no room is kept for dead letters");
        }
        reserve
    }

    pub(super) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Gives the room back to the disk. False where there was none.
    pub(super) fn give_back(&mut self) -> bool {
        std::mem::take(&mut self.is_kept) && fs::remove_file(&self.path).is_ok()
    }

    /// Removes what is kept in a directory that nobody has open. False where there was none.
    pub(super) fn remove(directory: &Path) -> bool {
        fs::remove_file(directory.join(NAME)).is_ok()
    }

    /// Keeps room again.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn keep(&mut self) -> io::Result<()> {
        if self.is_kept {
            return Ok(());
        }
        let kept = self.allocate();
        self.is_kept = kept.is_ok();
        if kept.is_err() {
            // What was written of it would be missing elsewhere.
            let _ = fs::remove_file(&self.path);
        }
        kept
    }

    fn allocate(&self) -> io::Result<()> {
        let mut file = private(&self.path, true)?;
        if file.metadata()?.len() == RESERVED {
            return Ok(());
        }
        file.set_len(0)?;
        // Written, because a file with holes keeps no room.
        let zeros = vec![0; 256 << 10];
        for _ in 0..RESERVED / zeros.len() as u64 {
            file.write_all(&zeros)?;
        }
        file.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d06_room_is_kept_given_back_and_kept_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(NAME);
        let mut reserve = Reserve::new(directory.path());
        assert!(reserve.is_kept());
        assert_eq!(fs::metadata(&path).unwrap().len(), RESERVED);
        assert!(reserve.give_back() && !path.exists());
        assert!(!reserve.give_back(), "there is none any more");
        reserve.keep().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), RESERVED);
        assert!(Reserve::new(directory.path()).is_kept(), "it is found by the next start");
    }
}
