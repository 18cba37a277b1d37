//! Room that is kept for when the disk is full: files that are removed then.
//!
//! ```text
//! reserve          8 MiB   letters take it once nothing else is left
//! reserve-journal  8 MiB   letters never do: it lets a store be opened, letters be dropped, and
//!                          the journal be taken into the database
//! ```

use std::{
    fs,
    io::{self, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use crate::store::sqlite::private;

/// Some thousand letters of usual size.
pub(super) const FOR_LETTERS: u64 = 8 << 20;

/// Every page of the journal may need room in the database before the journal can be removed. It is
/// taken in from 4 MiB on, and a transaction of letters adds 2 MiB.
pub(super) const FOR_JOURNAL: u64 = 8 << 20;

/// A file that keeps room.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
    bytes: u64,
    /// Kept as far as there is room. The other one would take the last room from letters.
    in_part: bool,
    is_kept: bool,
}

/// The reserves of a store.
#[derive(Debug)]
pub(super) struct Reserves {
    pub(super) letters: Reserve,
    pub(super) journal: Reserve,
}

impl Reserves {
    /// Those of this directory, as they are.
    pub(super) fn new(directory: &Path) -> Self {
        let file = |name, bytes, in_part| {
            let path = directory.join(name);
            Reserve { path, bytes, in_part, is_kept: false }
        };
        Self {
            letters: file("reserve", FOR_LETTERS, false),
            journal: file("reserve-journal", FOR_JOURNAL, true),
        }
    }

    /// Builds a reserve, if there is room.
    pub(super) fn keep(&mut self) {
        for reserve in [&mut self.journal, &mut self.letters] {
            if let Err(error) = reserve.keep() {
                let path = reserve.path.display();
                tracing::warn!(%path, %error, "no room is kept for dead letters");
            }
        }
    }

    /// Returns all of it to the disk. False if there was none.
    pub(super) fn give_back(&mut self) -> bool {
        self.letters.give_back() | self.journal.give_back()
    }
}

impl Reserve {
    pub(super) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Returns the room to the disk. False if there was none.
    pub(super) fn give_back(&mut self) -> bool {
        self.is_kept = false;
        fs::remove_file(&self.path).is_ok()
    }

    /// Keeps room again.
    ///
    /// # Errors
    /// There is no room, or not enough.
    pub(super) fn keep(&mut self) -> io::Result<()> {
        if self.is_kept {
            return Ok(());
        }
        let kept = self.allocate();
        self.is_kept = kept.is_ok();
        if kept.is_err() && !self.in_part {
            // A partial reserve would only take room from others.
            let _ = fs::remove_file(&self.path);
        }
        kept
    }

    fn allocate(&self) -> io::Result<()> {
        let mut file = private(&self.path, true)?;
        let mut missing = self.bytes.saturating_sub(file.seek(SeekFrom::End(0))?);
        // Written, because a file with holes keeps no room.
        let zeros = vec![0; 256 << 10];
        while missing > 0 {
            let count = missing.min(zeros.len() as u64) as usize;
            file.write_all(&zeros[..count])?;
            missing -= count as u64;
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
        let mut reserves = Reserves::new(directory.path());
        let lengths = || {
            let length = |name| fs::metadata(directory.path().join(name)).ok().map(|it| it.len());
            (length("reserve"), length("reserve-journal"))
        };
        reserves.keep();
        assert!(reserves.letters.is_kept() && reserves.journal.is_kept());
        assert_eq!(lengths(), (Some(FOR_LETTERS), Some(FOR_JOURNAL)));
        assert!(reserves.letters.give_back() && !reserves.letters.is_kept());
        assert!(!reserves.letters.give_back(), "there is none any more");
        assert_eq!(lengths(), (None, Some(FOR_JOURNAL)), "letters never take that of the journal");
        reserves.keep();
        assert_eq!(lengths(), (Some(FOR_LETTERS), Some(FOR_JOURNAL)));
        let mut next = Reserves::new(directory.path());
        assert!(next.give_back(), "it is found by the next start");
        assert_eq!(lengths(), (None, None));
    }

    #[test]
    fn d06_a_part_of_the_room_for_the_journal_is_made_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("reserve-journal");
        fs::write(&path, vec![0; 5_000]).unwrap();
        Reserves::new(directory.path()).keep();
        assert_eq!(fs::metadata(&path).unwrap().len(), FOR_JOURNAL);
    }
}
