//! How far each consumer of a log has come, stored in the directory of the log.
//!
//! ```json
//! {"greenroom_checkpoint":3,"crc32":"9a0c…","of":{"log":"5f…","next":1204,"open":[17,1],"taken_below":2000}}
//! ```
//!
//! The envelope is that of file checkpoints; form 3 belongs to a consumer of a log.

use std::{
    collections::BTreeMap,
    io,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{
    disk::{Disk, read_whole, replace},
    error::{Damage, LogError},
    format::checksum,
};
use crate::watermark::Positions;

/// Their directory in the directory of the log.
pub(super) const DIRECTORY: &str = "consumers";

pub(super) const EXTENSION: &str = ".checkpoint";

/// The form of a consumer of a log.
const FORM: u32 = 3;

/// Names are file names.
const LONGEST_NAME: usize = 100;

/// How far a consumer has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredConsumer {
    pub(super) positions: Positions,
    /// Events below this may have been taken since.
    pub(super) taken_below: u64,
}

#[derive(Serialize, Deserialize)]
struct Written {
    /// Which log.
    log: String,
    /// Events below this were taken.
    next: u64,
    /// Those of them that are not done: events done, events open, events done, and so on, from 0.
    open: Vec<u64>,
    taken_below: u64,
}

#[derive(Serialize, Deserialize)]
struct ConsumerEnvelope<'a> {
    greenroom_checkpoint: u32,
    crc32: String,
    #[serde(borrow)]
    of: &'a RawValue,
}

impl StoredConsumer {
    fn write(&self, log: u64) -> io::Result<String> {
        let Self { positions, taken_below } = self;
        let mut at = 0;
        let open = positions.open().iter().flat_map(|open| {
            let done = open.start - at;
            at = open.end;
            [done, open.end - open.start]
        });
        let (log, next) = (format!("{log:016x}"), positions.next());
        let written = Written { log, next, open: open.collect(), taken_below: *taken_below };
        let of = serde_json::value::to_raw_value(&written)?;
        let crc32 = format!("{:08x}", checksum(of.get().as_bytes()));
        let envelope = ConsumerEnvelope { greenroom_checkpoint: FORM, crc32, of: &of };
        Ok(serde_json::to_string(&envelope)? + "\n")
    }

    fn read(text: &[u8], log: u64) -> Result<Self, String> {
        let written = Written::read(text)?;
        if written.log != format!("{log:016x}") {
            return Err("it is of another log".to_owned());
        }
        let positions = positions(&written).ok_or("its numbers do not go together")?;
        Ok(Self { positions, taken_below: written.taken_below })
    }
}

impl Written {
    fn read(text: &[u8]) -> Result<Self, String> {
        let envelope: ConsumerEnvelope<'_> =
            serde_json::from_slice(text).map_err(|error| error.to_string())?;
        if envelope.greenroom_checkpoint != FORM {
            let form = envelope.greenroom_checkpoint;
            return Err(format!("it has form {form}, and that of a consumer is {FORM}"));
        }
        if envelope.crc32 != format!("{:08x}", checksum(envelope.of.get().as_bytes())) {
            return Err("its checksum is wrong".to_owned());
        }
        serde_json::from_str(envelope.of.get()).map_err(|error| error.to_string())
    }
}

fn positions(written: &Written) -> Option<Positions> {
    let (mut open, mut at) = (Vec::<Range<u64>>::new(), 0_u64);
    for turn in written.open.chunks(2) {
        let [done, count] = *turn else { return None };
        let start = at.checked_add(done)?;
        at = start.checked_add(count)?;
        open.push(start..at);
    }
    let is_in_order = written.taken_below >= written.next;
    Positions::new(written.next, open).ok().filter(|_| is_in_order)
}

/// The consumers of a log.
pub(super) struct Consumers {
    directory: PathBuf,
    log: u64,
    disk: Arc<dyn Disk>,
    known: Mutex<BTreeMap<String, Consumer>>,
}

struct Consumer {
    /// The state on disk.
    stored: StoredConsumer,
    /// A source reads for it.
    is_in_use: bool,
}

impl Consumers {
    /// From the positions that were [read](read).
    pub(super) fn new(
        disk: &Arc<dyn Disk>,
        log: &Path,
        id: u64,
        stored: Vec<(String, StoredConsumer)>,
    ) -> Self {
        let known = stored.into_iter();
        let known =
            known.map(|(name, stored)| (name, Consumer { stored, is_in_use: false })).collect();
        let directory = log.join(DIRECTORY);
        Self { directory, log: id, disk: disk.clone(), known: Mutex::new(known) }
    }

    /// The lowest sequence number that one of them still needs; `None` if there are no consumers.
    pub(super) fn lowest(&self) -> Option<u64> {
        let known = self.known.lock();
        known.values().map(|consumer| consumer.stored.positions.lowest()).min()
    }

    pub(super) fn all(&self) -> Vec<(String, StoredConsumer, bool)> {
        let known = self.known.lock();
        let all = known
            .iter()
            .map(|(name, consumer)| (name.clone(), consumer.stored.clone(), consumer.is_in_use));
        all.collect()
    }

    /// Takes a consumer for a source. A new one begins at `first` and is stored at once, so that
    /// nothing is removed that it needs. Whether it is new.
    pub(super) fn take(&self, name: &str, first: u64) -> Result<(StoredConsumer, bool), LogError> {
        check_name(name)?;
        let mut known = self.known.lock();
        if let Some(consumer) = known.get_mut(name) {
            if std::mem::replace(&mut consumer.is_in_use, true) {
                let reason = "is read by another source: each has one".to_owned();
                return Err(LogError::Consumer { name: name.to_owned(), reason });
            }
            return Ok((consumer.stored.clone(), false));
        }
        let stored =
            StoredConsumer { positions: Positions::starting_at(first), taken_below: first };
        self.write(name, &stored).map_err(LogError::io(self.path(name)))?;
        let consumer = Consumer { stored: stored.clone(), is_in_use: true };
        known.insert(name.to_owned(), consumer);
        Ok((stored, true))
    }

    /// Its source reads no more.
    pub(super) fn give_back(&self, name: &str) {
        if let Some(consumer) = self.known.lock().get_mut(name) {
            consumer.is_in_use = false;
        }
    }

    /// Returns when this survives a crash.
    pub(super) fn store(&self, name: &str, stored: StoredConsumer) -> io::Result<()> {
        let is_known = self.known.lock().get(name).is_some_and(|known| known.stored == stored);
        if is_known {
            return Ok(());
        }
        self.write(name, &stored)?;
        if let Some(consumer) = self.known.lock().get_mut(name) {
            consumer.stored = stored;
        }
        Ok(())
    }

    /// Forgets a consumer that no source reads for.
    pub(super) fn remove(&self, name: &str) -> Result<(), LogError> {
        let refused = |reason: &str| {
            Err(LogError::Consumer { name: name.to_owned(), reason: reason.to_owned() })
        };
        let mut known = self.known.lock();
        match known.get(name) {
            None => return refused("is not known"),
            Some(consumer) if consumer.is_in_use => {
                return refused("is read for: remove its input first");
            }
            Some(_) => {}
        }
        let path = self.path(name);
        self.disk.remove(&path).map_err(LogError::io(&path))?;
        self.disk.sync_directory(&self.directory).map_err(LogError::io(&path))?;
        known.remove(name);
        Ok(())
    }

    fn write(&self, name: &str, stored: &StoredConsumer) -> io::Result<()> {
        replace(&*self.disk, &self.path(name), stored.write(self.log)?.as_bytes())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}{EXTENSION}"))
    }
}

/// The stored positions of the consumers of a log, by name.
pub(super) fn read(
    disk: &dyn Disk,
    directory: &Path,
    log: u64,
) -> Result<Vec<(String, StoredConsumer)>, LogError> {
    let mut found = Vec::new();
    for (name, path, text) in texts(disk, directory)? {
        let stored = StoredConsumer::read(&text, log).map_err(|what| {
            let what = format!("{what}; removed, its consumer begins with the oldest event again");
            LogError::Damaged(Damage { file: path, offset: 0, sequence: 0, what })
        })?;
        found.push((name, stored));
    }
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(found)
}

/// The logs that the consumers in this directory are of, as far as their files can be read.
pub(super) fn logs(disk: &dyn Disk, directory: &Path) -> Result<Vec<u64>, LogError> {
    let log = |text: &[u8]| u64::from_str_radix(&Written::read(text).ok()?.log, 16).ok();
    let texts = texts(disk, directory)?;
    Ok(texts.iter().filter_map(|(_, _, text)| log(text)).collect())
}

/// The files of consumers: names, paths, and contents.
fn texts(disk: &dyn Disk, directory: &Path) -> Result<Vec<(String, PathBuf, Vec<u8>)>, LogError> {
    let names = disk.list(directory).map_err(LogError::io(directory))?;
    let text = |name: &String| {
        let path = directory.join(name);
        let name = name.strip_suffix(EXTENSION)?.to_owned();
        let text = read_whole(disk, &path).map_err(LogError::io(&path));
        Some(text.map(|text| (name, path, text.unwrap_or_default())))
    };
    names.iter().filter_map(text).collect()
}

fn check_name(name: &str) -> Result<(), LogError> {
    let is_allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
    let is_good = !name.is_empty()
        && name.len() <= LONGEST_NAME
        && !name.starts_with('.')
        && name.bytes().all(is_allowed);
    if is_good {
        return Ok(());
    }
    let reason = format!(
        "has no name that a file can have: letters, digits, `-`, `_` and `.` are allowed, up to {LONGEST_NAME}"
    );
    Err(LogError::Consumer { name: name.to_owned(), reason })
}
