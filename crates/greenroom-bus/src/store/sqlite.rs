//! A directory with a SQLite database that one process writes: the common part of all such stores.
//!
//! ```text
//! directory (0700) ─┬─ NAME.db (0600), NAME.db-wal, NAME.db-shm
//!                   └─ lock        held by the writing process, for as long as it lives
//! ```
//!
//! The journal is a write-ahead log, and each commit is synced (`synchronous = FULL`). Readers need
//! no lock and see the last commit.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::sink::lock::{Locked, open_locked};

/// How long a statement waits for another process that reads or copies.
const BUSY: Duration = Duration::from_secs(5);

/// The size to which the journal's file is cut, in bytes, once all of it is in the database: about
/// as much as SQLite lets it grow before a checkpoint.
const JOURNAL: i64 = 4 << 20;

/// Pages that are returned to the disk at a time: moving them takes half of the room that a store
/// of dead letters reserves for its journal.
const VACUUM: i64 = 500;

/// The purpose of a database, and the steps that led to its present form.
pub(crate) struct Schema {
    /// Tells it from the databases of other programs.
    pub(crate) application_id: i32,
    /// For example `dead letters`.
    pub(crate) what: &'static str,
    /// The name of the file.
    pub(crate) file: &'static str,
    /// The steps from each version to the next. There are as many versions as steps.
    pub(crate) steps: &'static [&'static str],
    /// How a reader sees an earlier version as the present one: temporary views over its tables.
    pub(crate) views: &'static [(i64, &'static str)],
}

impl Schema {
    pub(crate) fn path(&self, directory: &Path) -> PathBuf {
        directory.join(self.file)
    }

    fn version(&self) -> i64 {
        self.steps.len() as i64
    }
}

/// A database that no other process writes.
pub(crate) struct Owned {
    pub(crate) connection: Connection,
    pub(crate) lock: Locked,
}

/// Why a store cannot be opened, in words for an operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct NotOpened {
    pub(crate) reason: String,
    /// Another process writes it.
    pub(crate) is_held: bool,
}

impl NotOpened {
    pub(crate) fn because(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), is_held: false }
    }
}

impl From<rusqlite::Error> for NotOpened {
    fn from(error: rusqlite::Error) -> Self {
        Self::because(error_text(&error))
    }
}

impl From<io::Error> for NotOpened {
    fn from(error: io::Error) -> Self {
        Self::because(error.to_string())
    }
}

/// Opens a store to write it, or makes it: the directory too, if only that is missing.
///
/// # Errors
/// Another process writes it; a later version or another program has made it; it cannot be read or
/// written.
pub(crate) fn own(directory: &Path, schema: &Schema) -> Result<Owned, NotOpened> {
    make(directory, schema)?;
    let lock = lock(directory)?;
    let path = schema.path(directory);
    if !path.try_exists()? {
        private(&path, true)?.sync_all()?;
        File::open(directory)?.sync_all()?;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(&path, flags)?;
    connection.busy_timeout(BUSY)?;
    // Before the first table: it has no effect afterwards, and writes a page all the same, for
    // which a disk that is full has no room.
    if version(&connection)? == 0 {
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    prepare(&connection)?;
    connection
        .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection
        .pragma_update_and_check(None, "journal_size_limit", JOURNAL, |row| row.get::<_, i64>(0))?;
    migrate(&mut connection, schema)?;
    Ok(Owned { connection, lock })
}

/// Keeps others from writing the store in this directory, until it is dropped.
///
/// # Errors
/// Another process writes it.
pub(crate) fn lock(directory: &Path) -> Result<Locked, NotOpened> {
    let lock = open_locked(&directory.join("lock"), |path| private(path, true));
    lock.map_err(|error| NotOpened {
        is_held: error.kind() == io::ErrorKind::ResourceBusy,
        reason: error.to_string(),
    })
}

/// Opens a store to read it, even while another process writes it.
///
/// # Errors
/// There is none, or it is of another version.
pub(crate) fn read(directory: &Path, schema: &Schema) -> Result<Connection, NotOpened> {
    let path = schema.path(directory);
    if !path.try_exists()? {
        let what = schema.what;
        return Err(NotOpened::because(format!("there is no store of {what}")));
    }
    let open = |access| {
        let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&path, flags)?;
        connection.busy_timeout(BUSY)?;
        prepare(&connection)?;
        version(&connection).map(|found| (connection, found))
    };
    // Readers also write the index of the journal, if they may.
    let opened = open(OpenFlags::SQLITE_OPEN_READ_WRITE);
    let opened = opened.or_else(|_| open(OpenFlags::SQLITE_OPEN_READ_ONLY));
    let (connection, found) = opened?;
    let own = is_own(&connection, schema, found)?;
    match schema.views.iter().find(|(version, _)| *version == found) {
        Some((_, view)) if own => connection.execute_batch(view)?,
        _ if own && found == schema.version() => {}
        _ => {
            return Err(NotOpened::because(format!(
                "an earlier version of greenroom has made it (schema {found}, this one reads {}): \
                 start greenroom with it once, which brings it up to date",
                schema.version()
            )));
        }
    }
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// Settings of every connection: no function or view of a foreign file runs.
fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "foreign_keys", true)
}

fn make(directory: &Path, schema: &Schema) -> Result<(), NotOpened> {
    match fs::metadata(directory) {
        Ok(found) if !found.is_dir() => {
            return Err(NotOpened::because("this is a file: a store is a directory of its own"));
        }
        Ok(_) => {
            if !schema.path(directory).try_exists()? && holds_others(directory)? {
                return Err(NotOpened::because(format!(
                    "this directory holds something else: name one that is empty, or that does \
                     not exist yet, for the {}",
                    schema.what
                )));
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            private_directory(directory)?;
            let parent = directory.parent().filter(|parent| *parent != Path::new(""));
            File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
        }
        Err(error) => return Err(error.into()),
    }
    only_ours(directory)
}

/// True if the directory contains more than the remains of an interrupted start.
fn holds_others(directory: &Path) -> io::Result<bool> {
    let names = fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.file_name()));
    Ok(!names.collect::<io::Result<Vec<_>>>()?.iter().all(|name| name == "lock"))
}

pub(crate) fn private_directory(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(directory)
}

/// Removes the permissions of other users on the directory: it contains customers' data.
fn only_ours(directory: &Path) -> Result<(), NotOpened> {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(directory)?.permissions().mode();
    if mode & 0o077 != 0 {
        let ours = fs::Permissions::from_mode(mode & 0o700);
        if let Err(error) = fs::set_permissions(directory, ours) {
            tracing::warn!(
                path = %directory.display(),
                %error,
                "others may read this store; take the rights from them: chmod 700"
            );
        }
    }
    Ok(())
}

/// Opens a file of the store that other users cannot read.
pub(crate) fn private(path: &Path, create: bool) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().read(true).write(true).create(create).mode(0o600).open(path)
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// False if it is still empty.
fn is_own(connection: &Connection, schema: &Schema, found: i64) -> Result<bool, NotOpened> {
    let id: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables == 0 && id == 0 {
        return Ok(false);
    }
    if id != i64::from(schema.application_id) {
        let reason = format!("this SQLite database is no store of {}", schema.what);
        return Err(NotOpened::because(reason));
    }
    if found > schema.version() {
        return Err(NotOpened::because(format!(
            "a later version of greenroom has made it (schema {found}, this one knows {}): use \
             that version",
            schema.version()
        )));
    }
    Ok(true)
}

/// Takes the journal into the database, and gives its room back to the disk.
pub(crate) fn checkpoint(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// Gives some free pages of the database back to the disk, with the next checkpoint.
pub(crate) fn vacuum(connection: &Connection) -> rusqlite::Result<()> {
    let mut vacuum = connection.prepare(&format!("PRAGMA incremental_vacuum({VACUUM})"))?;
    let mut steps = vacuum.query([])?;
    // Each of them takes one page.
    while steps.next()?.is_some() {}
    Ok(())
}

/// Each step is a transaction, so a crash leaves one version or the next.
fn migrate(connection: &mut Connection, schema: &Schema) -> Result<(), NotOpened> {
    let found = version(connection)?;
    is_own(connection, schema, found)?;
    for (at, step) in schema.steps.iter().enumerate().skip(found.max(0) as usize) {
        let change = connection.transaction()?;
        change.execute_batch(step)?;
        change.pragma_update(None, "application_id", schema.application_id)?;
        change.pragma_update(None, "user_version", at as i64 + 1)?;
        change.commit()?;
    }
    Ok(())
}

/// The consequence of a failed transaction. It was rolled back completely, so nothing is stored in
/// part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failed {
    /// There is no room: it may be tried again once there is.
    Full,
    /// Another connection holds the database: it may be tried again.
    Busy,
    /// A write or a sync failed, or the database is damaged. Another try may seem to succeed with
    /// data lost: a failed sync drops its data from the memory of the system.
    ForGood,
}

impl Failed {
    pub(crate) fn classify(error: &rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            _ => Self::ForGood,
        }
    }
}

/// An error of SQLite, and the next step.
pub(crate) fn error_text(error: &rusqlite::Error) -> String {
    let next = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "the disk is full: make room",
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program holds the database: end it"
        }
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
            "greenroom needs to read and write the directory and the files in it"
        }
        Some(ErrorCode::SystemIoFailure) => "look at the disk and at the log of the system",
        Some(ErrorCode::DatabaseCorrupt) => "the file is damaged: put a backup in its place",
        Some(ErrorCode::NotADatabase) => "this is no SQLite database: name another path",
        _ => return error.to_string(),
    };
    format!("{error}; {next}")
}

#[cfg(test)]
mod tests;
