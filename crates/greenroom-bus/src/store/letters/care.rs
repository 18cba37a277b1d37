//! Maintenance of a store of dead letters: an integrity check, a copy, and returning its room.

use std::{
    fs::{self, File},
    io::ErrorKind,
    path::Path,
};

use super::{error::LetterError, reserve::Reserves, schema::SCHEMA};
use crate::store::sqlite::{
    Failed, NotOpened, checkpoint, lock, own, private, private_directory, read, vacuum,
};

/// The result of checking a store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checked {
    /// Letters in it.
    pub letters: u64,
    /// The damage, in the words of SQLite; empty if it is intact.
    pub damage: Vec<String>,
}

/// True if this directory is a store of dead letters.
pub fn is_letter_store(directory: &Path) -> bool {
    SCHEMA.path(directory).is_file()
}

/// Returns the reserve of a store to the disk, so that the store can be opened on a full disk.
/// False if there was no reserve, or if a process writes the store. The next writer builds a
/// reserve again, once there is room.
pub fn give_reserve_back(directory: &Path) -> bool {
    is_letter_store(directory)
        && lock(directory).is_ok_and(|_held| Reserves::new(directory).give_back())
}

/// Looks at every page of the store, even while a process writes it.
///
/// # Errors
/// It cannot be opened or read.
pub fn check(directory: &Path) -> Result<Checked, LetterError> {
    let tables = open(directory)?;
    let mut check = tables.prepare("PRAGMA integrity_check")?;
    let found = check.query_map([], |row| row.get::<_, String>(0))?;
    let damage = found.collect::<Result<Vec<_>, _>>()?;
    let damage = damage.into_iter().filter(|line| line != "ok").collect();
    let count = "SELECT count(*) FROM letters";
    let letters = tables.query_row(count, [], |row| row.get(0)).unwrap_or_default();
    Ok(Checked { letters, damage })
}

/// Copies the store, as of one moment, into a directory that does not exist yet. A process that
/// writes it continues. The copy is itself a store, and is on disk when this returns.
///
/// # Errors
/// It cannot be read, or the copy cannot be written; an incomplete copy is removed.
pub fn backup(directory: &Path, to: &Path) -> Result<(), LetterError> {
    let tables = open(directory)?;
    let not_made = |error: std::io::Error| LetterError::not_opened(to, error.into());
    private_directory(to).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            let why = "it is there already; name a directory that does not exist yet";
            LetterError::not_opened(to, NotOpened::because(why))
        }
        _ => not_made(error),
    })?;
    let copy = || -> Result<(), LetterError> {
        let path = SCHEMA.path(to);
        private(&path, true).map_err(not_made)?;
        let name = path.to_str().ok_or_else(|| {
            LetterError::not_opened(to, NotOpened::because("the path is not UTF-8"))
        })?;
        tables.pragma_update(None, "query_only", false)?;
        tables.execute("VACUUM INTO ?", [name])?;
        let synced = private(&path, false).and_then(|copy| copy.sync_all());
        synced.and_then(|()| File::open(to)?.sync_all()).map_err(not_made)
    };
    copy().inspect_err(|_| {
        // It was made here.
        let _ = fs::remove_dir_all(to);
    })
}

/// Returns the room of removed letters to the file system. Returns the size of the database in
/// bytes before and after. This works on a full disk, too; the rest is packed closely only if there
/// is as much free room as the store has bytes.
///
/// # Errors
/// A greenroom has it open, or it cannot be read or written.
pub fn compact(directory: &Path) -> Result<(u64, u64), LetterError> {
    let own = || -> Result<_, LetterError> {
        drop(open(directory)?);
        own(directory, &SCHEMA).map_err(|error| LetterError::not_opened(directory, error))
    };
    let owned = match own() {
        Err(_) if give_reserve_back(directory) => own()?,
        owned => owned?,
    };
    let (tables, mut reserves) = (&owned.connection, Reserves::new(directory));
    let size = || fs::metadata(SCHEMA.path(directory)).map_or(0, |found| found.len());
    let before = size();
    match give_free_pages_back(tables) {
        Err(error) if is_full(&error) && reserves.give_back() => give_free_pages_back(tables)?,
        given_back => given_back?,
    }
    let packed = tables.execute_batch("VACUUM");
    checkpoint(tables)?;
    reserves.keep();
    match packed {
        Err(error) if !is_full(&error) => Err(error.into()),
        _ => Ok((before, size())),
    }
}

fn is_full(error: &rusqlite::Error) -> bool {
    Failed::classify(error) == Failed::Full
}

fn give_free_pages_back(tables: &rusqlite::Connection) -> rusqlite::Result<()> {
    let free = || tables.pragma_query_value(None, "freelist_count", |row| row.get::<_, i64>(0));
    checkpoint(tables)?;
    let mut left = free()?;
    while left > 0 {
        vacuum(tables)?;
        checkpoint(tables)?;
        left = match free()? {
            fewer if fewer < left => fewer,
            _ => break,
        };
    }
    Ok(())
}

fn open(directory: &Path) -> Result<rusqlite::Connection, LetterError> {
    read(directory, &SCHEMA).map_err(|error| LetterError::not_opened(directory, error))
}
