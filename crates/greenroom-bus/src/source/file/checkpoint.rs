//! The file in which the positions of another file are kept.
//!
//! ```json
//! {"greenroom_checkpoint":1,"crc32":"9a0c…","of":{"input":"/data/orders.ndjson","identity":{…},"next":1204,"open":[17,1],…}}
//! ```
//!
//! That is form 1, of an input that is one file. Of several files it is form 2,
//! `"of":{"input":"/data/*.ndjson","files":[…]}`, with one such record for each file that was
//! begun.
//!
//! Written to a temporary file, synced and renamed, so that there is always a complete one: the
//! last or the one before.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{
    identity::{FileIdentity, Fingerprint},
    marks::Mark,
};
use crate::{
    sink::{
        lock::{Locked, is_at, open_locked},
        storage::sync_directory,
    },
    watermark::Positions,
};

/// The form of one file.
const ONE: u32 = 1;
/// The form of several.
const SEVERAL: u32 = 2;

/// The place of a checkpoint.
#[derive(Debug)]
pub(super) struct Checkpoint {
    path: PathBuf,
    /// Written, then renamed to `path`.
    beside: PathBuf,
    /// The file at `path`, locked: no other process may store there. Each new one is locked before
    /// it replaces the last.
    held: Option<Locked>,
}

/// Its contents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredCheckpoint {
    /// The path of the file that was read, for people and for telling whose checkpoint this is.
    pub(super) input: String,
    pub(super) identity: FileIdentity,
    /// Of the bytes before `mark`.
    pub(super) tail: Fingerprint,
    /// A place at or before the lowest open line.
    pub(super) mark: Mark,
    /// Lines below this were taken.
    next: u64,
    /// Those of them that are not done: lines done, lines open, lines done, and so on, from line 0.
    open: Vec<u64>,
    /// Lines below this may have been taken since.
    pub(super) taken_below: u64,
    /// The bytes of the file when its end was read; `None` before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) read: Option<u64>,
}

/// The records of several files that are one input.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct StoredSet {
    /// The directory or pattern that names them.
    pub(super) input: String,
    /// Those that were begun, in the order in which they are read.
    pub(super) files: Vec<StoredCheckpoint>,
}

/// Like [`StoredSet`], to be written.
#[derive(Serialize)]
struct SetToStore<'a> {
    input: &'a str,
    files: &'a [Arc<StoredCheckpoint>],
}

/// The contents of a checkpoint.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Contents {
    One(StoredCheckpoint),
    Several(StoredSet),
}

#[derive(Serialize, Deserialize)]
struct Envelope<'a> {
    greenroom_checkpoint: u32,
    crc32: String,
    #[serde(borrow)]
    of: &'a RawValue,
}

/// Why a stored record cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unusable {
    #[error("it cannot be read: {0}")]
    Unreadable(io::Error),
    #[error("it is not a checkpoint of greenroom")]
    Foreign,
    #[error("it is of a later version of greenroom (form {0})")]
    Later(u32),
    #[error("it is damaged: {0}")]
    Damaged(String),
}

impl StoredCheckpoint {
    pub(super) fn new(
        input: String,
        identity: FileIdentity,
        (mark, tail): (Mark, Fingerprint),
        positions: &Positions,
        taken_below: u64,
    ) -> Self {
        let (next, open) = (positions.next(), in_turns(positions.open()));
        Self { input, identity, tail, mark, next, open, taken_below, read: None }
    }

    /// The same record for a copy of its file.
    pub(super) fn of_copy(&self, identity: FileIdentity) -> Self {
        Self { identity, ..self.clone() }
    }

    /// The same of a compressed copy, whose lines are counted from the first one, and which is not
    /// read to its end.
    pub(super) fn of_archive(&self, identity: FileIdentity) -> Self {
        let (mark, tail, read) = (Mark::START, Fingerprint::default(), None);
        Self { identity, mark, tail, read, ..self.clone() }
    }

    /// Whether both say the same of the lines.
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        let of = |stored: &Self| (stored.next, stored.taken_below, stored.read);
        of(self) == of(other) && self.open == other.open
    }

    /// Every line is done that the file had when its end was read.
    pub(super) fn is_complete(&self) -> bool {
        self.read.is_some() && self.open.is_empty() && self.taken_below == self.next
    }

    /// The settled positions.
    pub(super) fn positions(&self) -> Result<Positions, Unusable> {
        let damaged = |why: String| Unusable::Damaged(why);
        let (mut open, mut at) = (Vec::new(), 0_u64);
        for turn in self.open.chunks(2) {
            let [done, count] = *turn else {
                return Err(damaged("its list of open lines ends in the middle".to_owned()));
            };
            let start = at.checked_add(done);
            let range = start.and_then(|start| Some(start..start.checked_add(count)?));
            let range = range.ok_or_else(|| damaged("an open line has no number".to_owned()))?;
            at = range.end;
            open.push(range);
        }
        let positions = Positions::new(self.next, open).map_err(|why| damaged(why.to_string()))?;
        let lowest = positions.lowest();
        if self.mark.line == 0 || self.mark.line > lowest || self.taken_below < self.next {
            return Err(damaged(format!("its lines do not go together (the lowest is {lowest})")));
        }
        Ok(positions)
    }
}

fn in_turns(open: &[Range<u64>]) -> Vec<u64> {
    let mut at = 0;
    let turns = open.iter().flat_map(|open| {
        let done = open.start - at;
        at = open.end;
        [done, open.end - open.start]
    });
    turns.collect()
}

impl Checkpoint {
    pub(super) fn at_path(path: &Path) -> Self {
        let mut beside = OsString::from(path);
        beside.push(".tmp");
        Self { path: path.to_owned(), beside: beside.into(), held: None }
    }

    /// Takes it for oneself, until it is let go of or dropped.
    ///
    /// # Errors
    /// Another process has it; the text says which.
    pub(super) fn claimed(mut self) -> Result<Self, String> {
        self.held = match open_locked(&self.path, |path| File::open(path)) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                let path = self.path.display();
                return Err(format!(
                    "its checkpoint {path} is in use: {error}; wait for its end, or name another checkpoint"
                ));
            }
            // Reading it will report the error.
            Err(_) => None,
        };
        Ok(self)
    }

    /// Lets others have it. Nothing more is stored.
    pub(super) fn let_go(&mut self) {
        self.held = None;
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Why it cannot be used, and the next step.
    pub(super) fn unusable(&self, why: &str) -> String {
        let shown = self.path.display();
        format!(
            "the checkpoint {shown} cannot be used: {why}; remove it to read the input from its start, which repeats what \
             was done, or name another one"
        )
    }

    /// A file with other content is read from its start: its lines are not the settled ones.
    pub(super) fn tell_other_content(&self, path: &Path, why: &str) {
        tracing::warn!(
            input = %path.display(),
            checkpoint = %self.path.display(),
            why,
            "the input is not the file that its checkpoint is of: it is read from its start"
        );
    }

    /// The contents; `None` if there are none.
    pub(super) fn read(&self) -> Result<Option<Contents>, Unusable> {
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Unusable::Unreadable(error)),
        };
        read(&text).map(Some)
    }

    /// Returns when this is the stored text, even after a crash of the machine.
    pub(super) fn write(&mut self, text: &str) -> io::Result<()> {
        let create = |path: &Path| OpenOptions::new().append(true).create(true).open(path);
        let mut file = open_locked(&self.beside, create)?;
        if let Err(error) = self.nobody_else_has_it() {
            fs::remove_file(&self.beside)?;
            return Err(error);
        }
        file.set_len(0)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&self.beside, &self.path)?;
        self.held = Some(file);
        sync_directory(&self.path)
    }

    /// While the lock file is held, no other process can replace it: a file that is not ours was
    /// stored by another run.
    fn nobody_else_has_it(&self) -> io::Result<()> {
        let is_ours = match &self.held {
            Some(held) => is_at(held, &self.path)? || !self.path.exists(),
            None => !self.path.exists(),
        };
        if is_ours {
            return Ok(());
        }
        drop(open_locked(&self.path, |path| File::open(path))?);
        Err(io::Error::other("another run has stored its own there meanwhile"))
    }
}

/// The text for one file.
pub(super) fn text_of_one(stored: &StoredCheckpoint) -> io::Result<String> {
    envelope(ONE, stored)
}

/// The text for the files of this input.
pub(super) fn text_of_several(input: &str, files: &[Arc<StoredCheckpoint>]) -> io::Result<String> {
    envelope(SEVERAL, &SetToStore { input, files })
}

fn envelope(form: u32, stored: &impl Serialize) -> io::Result<String> {
    let of = serde_json::value::to_raw_value(stored)?;
    let crc32 = checksum(of.get());
    let envelope = Envelope { greenroom_checkpoint: form, crc32, of: &of };
    Ok(serde_json::to_string(&envelope)? + "\n")
}

fn read(text: &[u8]) -> Result<Contents, Unusable> {
    // Whatever begins as ours is ours, and was cut or changed.
    const BEGINNING: &[u8] = b"{\"greenroom_checkpoint\":";
    let envelope: Envelope<'_> = serde_json::from_slice(text).map_err(|error| {
        let ours = text.starts_with(BEGINNING);
        if ours { Unusable::Damaged(error.to_string()) } else { Unusable::Foreign }
    })?;
    let form = envelope.greenroom_checkpoint;
    if ![ONE, SEVERAL].contains(&form) {
        return Err(Unusable::Later(form));
    }
    let of = envelope.of.get();
    if envelope.crc32 != checksum(of) {
        return Err(Unusable::Damaged("its checksum is wrong".to_owned()));
    }
    let contents = match form {
        ONE => serde_json::from_str(of).map(Contents::One),
        _ => serde_json::from_str(of).map(Contents::Several),
    };
    contents.map_err(|error| Unusable::Damaged(error.to_string()))
}

/// The positions of each file in this checkpoint, for the targets in `fuzz/`. Not a public
/// interface.
///
/// # Errors
/// Why it cannot be read.
#[doc(hidden)]
pub fn positions_in(text: &[u8]) -> Result<Vec<Positions>, String> {
    let files = match read(text).map_err(|why| why.to_string())? {
        Contents::One(stored) => vec![stored],
        Contents::Several(set) => set.files,
    };
    files.iter().map(|stored| stored.positions().map_err(|why| why.to_string())).collect()
}

fn checksum(text: &str) -> String {
    format!("{:08x}", crc32fast::hash(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(directory: &Path) -> StoredCheckpoint {
        let path = directory.join("in");
        fs::write(&path, "something\n").unwrap();
        let mut file = File::open(&path).unwrap();
        let identity = FileIdentity::read(&mut file).unwrap();
        let tail = Fingerprint::before(&mut file, 0).unwrap();
        let positions = Positions::new(1_000, [3..5, 17..18, 990..1_000]).unwrap();
        StoredCheckpoint::new("in".to_owned(), identity, (Mark::START, tail), &positions, 1_200)
    }

    #[test]
    fn b01_what_is_written_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let mut checkpoint = Checkpoint::at_path(&directory.path().join("checkpoint"));
        assert!(checkpoint.read().unwrap().is_none());
        let stored = stored(directory.path());
        checkpoint.write(&text_of_one(&stored).unwrap()).unwrap();
        let read = checkpoint.read().unwrap().unwrap();
        assert_eq!(stored.open, [3, 2, 12, 1, 972, 10]);
        let positions = stored.positions().unwrap();
        assert_eq!(positions.open(), [3..5, 17..18, 990..1_000]);
        assert_eq!(read, Contents::One(stored));
        assert!(!checkpoint.beside.exists());
    }

    #[test]
    fn b01_what_is_written_of_several_files_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let mut checkpoint = Checkpoint::at_path(&directory.path().join("checkpoint"));
        let first = stored(directory.path());
        let second = StoredCheckpoint { input: "in2".to_owned(), read: Some(10), ..first.clone() };
        let files = [first.clone(), second.clone()].map(Arc::new);
        let text = text_of_several("*", &files).unwrap();
        checkpoint.write(&text).unwrap();
        let expected = StoredSet { input: "*".to_owned(), files: vec![first, second] };
        assert_eq!(checkpoint.read().unwrap(), Some(Contents::Several(expected)));
    }

    #[test]
    fn b01_a_checkpoint_of_an_earlier_version_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let text = text_of_one(&stored(directory.path())).unwrap();
        assert!(!text.contains("read"), "what is not known is not written: {text}");
        assert_eq!(read(text.as_bytes()).unwrap(), Contents::One(stored(directory.path())));
    }

    #[test]
    fn b01_every_damage_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let whole = text_of_one(&stored(directory.path())).unwrap().into_bytes();
        assert!(read(&whole).is_ok());
        for at in 0..whole.len() - 1 {
            assert!(read(&whole[..at]).is_err(), "cut at {at}");
            let mut changed = whole.clone();
            changed[at] ^= 1;
            let expected = Contents::One(stored(directory.path()));
            let same = read(&changed).is_ok_and(|changed| changed == expected);
            assert!(!same, "changed at {at}");
        }
        assert!(matches!(read(b"{\"specversion\":\"1.0\"}\n"), Err(Unusable::Foreign)));
        let later = String::from_utf8(whole).unwrap().replace("checkpoint\":1", "checkpoint\":3");
        assert!(matches!(read(later.as_bytes()), Err(Unusable::Later(3))));
    }

    #[test]
    fn f03_positions_that_do_not_go_together_are_never_trusted() {
        let directory = tempfile::tempdir().unwrap();
        let good = stored(directory.path());
        let changes: [fn(&mut StoredCheckpoint); 5] = [
            |stored| stored.next = 900,
            |stored| stored.open.truncate(5),
            |stored| stored.open[1] = u64::MAX,
            |stored| stored.mark.line = 4,
            |stored| stored.taken_below = 999,
        ];
        for change in changes {
            let mut stored = good.clone();
            change(&mut stored);
            assert!(matches!(stored.positions(), Err(Unusable::Damaged(_))), "{stored:?}");
        }
    }
}
