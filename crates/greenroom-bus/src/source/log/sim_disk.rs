//! An in-memory disk that fails by seed, and loses unsynced data in a crash.
//!
//! A write is visible at once and durable only after a sync. In a crash each write that is not
//! durable survives as a whole, in some of its sectors, or not at all; of the creations, renames
//! and removals in a directory, a prefix survives. After a failed sync, the data is visible and
//! will never be durable, as on real disks.

use std::{
    any::Any,
    collections::{BTreeMap, HashMap},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::{Condvar, Mutex};
use rand::{Rng, RngExt, SeedableRng, rngs::StdRng};

use super::disk::{Disk, DiskFile};

const SECTOR: usize = 512;

/// Clones are the same disk; those of an earlier [`crash`](Self::crash) fail.
#[derive(Clone)]
pub(super) struct SimDisk {
    machine: Arc<Machine>,
    generation: u64,
}

struct Machine {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    rng: StdRng,
    generation: u64,
    files: HashMap<u64, SimFile>,
    names: BTreeMap<PathBuf, u64>,
    durable_names: BTreeMap<PathBuf, u64>,
    /// Not durable yet, by directory.
    changes: Vec<(PathBuf, Change)>,
    next_file: u64,
    locked: bool,
    /// One in this many operations fails.
    fails_in: Option<u32>,
    /// The next operation of this kind fails with this error.
    fails_next: Option<(Op, io::ErrorKind)>,
    /// While this is `Some`, no file is made; how many were to be.
    lacks_room: Option<u32>,
    /// Files that may be open at once, and that are.
    most_open: usize,
    open: usize,
    /// Syncs of files wait.
    holds_syncs: bool,
    syncs_held: usize,
    /// Operations so far.
    pub(super) operations: u64,
}

#[derive(Clone, Default)]
struct SimFile {
    seen: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<(usize, Vec<u8>)>,
}

#[derive(Clone)]
enum Change {
    Put(PathBuf, u64),
    Remove(PathBuf),
    Rename(PathBuf, PathBuf),
}

/// Operations that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Create,
    Write,
    Sync,
    SyncDirectory,
    Other,
}

impl SimDisk {
    pub(super) fn new(seed: u64) -> Self {
        let state = State {
            rng: StdRng::seed_from_u64(seed),
            generation: 0,
            files: HashMap::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            changes: Vec::new(),
            next_file: 0,
            locked: false,
            fails_in: None,
            fails_next: None,
            lacks_room: None,
            most_open: usize::MAX,
            open: 0,
            holds_syncs: false,
            syncs_held: 0,
            operations: 0,
        };
        let machine = Machine { state: Mutex::new(state), changed: Condvar::new() };
        Self { machine: Arc::new(machine), generation: 0 }
    }

    /// One in this many operations fails; `None`: none does.
    pub(super) fn fails_in(&self, operations: Option<u32>) {
        self.machine.state.lock().fails_in = operations;
    }

    pub(super) fn fails_next(&self, op: Op, kind: io::ErrorKind) {
        self.machine.state.lock().fails_next = Some((op, kind));
    }

    /// No file is made from now on.
    pub(super) fn fill(&self) {
        self.machine.state.lock().lacks_room = Some(0);
    }

    /// How many files were to be made since there is no room.
    pub(super) fn refused(&self) -> u32 {
        self.machine.state.lock().lacks_room.unwrap_or(0)
    }

    /// There is room again.
    pub(super) fn clear(&self) {
        self.machine.state.lock().lacks_room = None;
    }

    /// No more files than these may be open at once.
    pub(super) fn limit_open(&self, most: usize) {
        self.machine.state.lock().most_open = most;
    }

    pub(super) fn hold_syncs(&self) {
        self.machine.state.lock().holds_syncs = true;
    }

    pub(super) fn release_syncs(&self) {
        self.machine.state.lock().holds_syncs = false;
        self.machine.changed.notify_all();
    }

    /// Waits until a sync of a file is held.
    pub(super) fn until_sync_is_held(&self) {
        let mut state = self.machine.state.lock();
        while state.syncs_held == 0 {
            self.machine.changed.wait(&mut state);
        }
    }

    /// The process is gone. The disk as the next one sees it.
    pub(super) fn kill(&self) -> Self {
        let mut state = self.machine.state.lock();
        state.generation += 1;
        state.locked = false;
        state.holds_syncs = false;
        let generation = state.generation;
        drop(state);
        self.machine.changed.notify_all();
        Self { machine: self.machine.clone(), generation }
    }

    /// The machine is gone, and all data that was not durable.
    pub(super) fn crash(&self) -> Self {
        let killed = self.kill();
        let state = &mut *killed.machine.state.lock();
        state.lose();
        killed.clone()
    }

    pub(super) fn names(&self) -> Vec<PathBuf> {
        self.machine.state.lock().names.keys().cloned().collect()
    }

    fn begin(&self, op: Op) -> io::Result<parking_lot::MutexGuard<'_, State>> {
        let mut state = self.machine.state.lock();
        if state.generation != self.generation {
            return Err(io::Error::other("the process is gone"));
        }
        state.operations += 1;
        if let Some((_, kind)) = state.fails_next.take_if(|(failing, _)| *failing == op) {
            return Err(kind.into());
        }
        if let (Op::Create, Some(tries)) = (op, &mut state.lacks_room) {
            *tries += 1;
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(state)
    }

    fn opened(&self, state: &mut State, id: u64) -> io::Result<Arc<dyn DiskFile>> {
        if state.open >= state.most_open {
            return Err(io::Error::other("too many open files"));
        }
        state.open += 1;
        Ok(Arc::new(Opened { disk: self.clone(), id }))
    }
}

impl State {
    /// By chance, an error.
    fn chance(&mut self) -> Option<io::Error> {
        let fails_in = self.fails_in?;
        if self.rng.random_range(0..fails_in) > 0 {
            return None;
        }
        let kinds = [
            io::ErrorKind::StorageFull,
            io::ErrorKind::ReadOnlyFilesystem,
            io::ErrorKind::Other,
            io::ErrorKind::QuotaExceeded,
        ];
        Some(kinds[self.rng.random_range(0..kinds.len())].into())
    }

    fn check(&mut self) -> io::Result<()> {
        self.chance().map_or(Ok(()), Err)
    }

    fn lose(&mut self) {
        let directories: Vec<PathBuf> =
            self.changes.iter().map(|(directory, _)| directory.clone()).collect();
        for directory in directories {
            let (of_it, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.changes)
                .into_iter()
                .partition(|(changed, _)| *changed == directory);
            self.changes = rest;
            let kept = self.rng.random_range(0..=of_it.len());
            for (_, change) in of_it.into_iter().take(kept) {
                apply(&mut self.durable_names, change);
            }
        }
        self.names = self.durable_names.clone();
        let rng = &mut self.rng;
        let mut ids: Vec<_> = self.files.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            let Some(file) = self.files.get_mut(&id) else { continue };
            for (at, bytes) in std::mem::take(&mut file.pending) {
                write_in_part(&mut file.durable, at, &bytes, rng);
            }
            file.seen = file.durable.clone();
        }
    }
}

fn write_in_part(durable: &mut Vec<u8>, at: usize, bytes: &[u8], rng: &mut StdRng) {
    match rng.random_range(0..4) {
        0 => {}
        1 => put(durable, at, bytes),
        2 => put(durable, at, &bytes[..rng.random_range(0..=bytes.len())]),
        _ => {
            for (n, sector) in bytes.chunks(SECTOR).enumerate() {
                if rng.random() {
                    put(durable, at + n * SECTOR, sector);
                }
            }
        }
    }
}

fn put(content: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if content.len() < at + bytes.len() {
        content.resize(at + bytes.len(), 0);
    }
    content[at..at + bytes.len()].copy_from_slice(bytes);
}

fn apply(names: &mut BTreeMap<PathBuf, u64>, change: Change) {
    match change {
        Change::Put(path, file) => _ = names.insert(path, file),
        Change::Remove(path) => _ = names.remove(&path),
        Change::Rename(from, to) => {
            if let Some(file) = names.remove(&from) {
                names.insert(to, file);
            }
        }
    }
}

fn parent(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("")).to_owned()
}

impl State {
    fn change(&mut self, directory: PathBuf, change: Change) {
        apply(&mut self.names, change.clone());
        self.changes.push((directory, change));
    }

    fn find(&self, path: &Path) -> io::Result<u64> {
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Disk for SimDisk {
    fn make_directory(&self, _: &Path) -> io::Result<()> {
        self.begin(Op::Other)?.check()
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        let mut state = self.begin(Op::Other)?;
        state.check()?;
        let names = state.names.keys().filter(|path| path.parent() == Some(directory));
        let names = names.filter_map(|path| path.file_name());
        Ok(names.map(|name| name.to_string_lossy().into_owned()).collect())
    }

    fn create(&self, path: &Path, length: u64) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.begin(Op::Create)?;
        let failure = state.chance();
        let id = state.next_file;
        state.next_file += 1;
        let seen = vec![0; length as usize];
        state.files.insert(id, SimFile { seen, ..SimFile::default() });
        state.change(parent(path), Change::Put(path.to_owned(), id));
        match failure {
            Some(error) => Err(error),
            None => self.opened(&mut state, id),
        }
    }

    fn open(&self, path: &Path, _: bool) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.begin(Op::Other)?;
        state.check()?;
        let id = state.find(path)?;
        self.opened(&mut state, id)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.begin(Op::Other)?;
        state.check()?;
        state.find(from)?;
        state.change(parent(from), Change::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.begin(Op::Other)?;
        state.check()?;
        state.find(path)?;
        state.change(parent(path), Change::Remove(path.to_owned()));
        Ok(())
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        let mut state = self.begin(Op::SyncDirectory)?;
        state.check()?;
        let state = &mut *state;
        let changes = std::mem::take(&mut state.changes);
        let (of_it, rest): (Vec<_>, Vec<_>) =
            changes.into_iter().partition(|(changed, _)| changed == directory);
        state.changes = rest;
        of_it.into_iter().for_each(|(_, change)| apply(&mut state.durable_names, change));
        Ok(())
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn Any + Send + Sync>> {
        let mut state = self.begin(Op::Other)?;
        if std::mem::replace(&mut state.locked, true) {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        Ok(Box::new(Lock(self.clone())))
    }
}

struct Lock(SimDisk);

impl Drop for Lock {
    fn drop(&mut self) {
        let mut state = self.0.machine.state.lock();
        if state.generation == self.0.generation {
            state.locked = false;
        }
    }
}

struct Opened {
    disk: SimDisk,
    id: u64,
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.disk.machine.state.lock().open -= 1;
    }
}

impl Opened {
    fn with<T>(
        &self,
        op: Op,
        act: impl FnOnce(&mut SimFile, Option<io::Error>, &mut StdRng) -> io::Result<T>,
    ) -> io::Result<T> {
        let state = &mut *self.disk.begin(op)?;
        let failure = state.chance();
        let file = state.files.get_mut(&self.id).ok_or(io::ErrorKind::NotFound)?;
        act(file, failure, &mut state.rng)
    }
}

impl DiskFile for Opened {
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.with(Op::Write, |file, failure, rng| {
            let count = match failure {
                Some(_) => rng.random_range(0..=bytes.len()),
                None => bytes.len(),
            };
            put(&mut file.seen, at as usize, &bytes[..count]);
            file.pending.push((at as usize, bytes[..count].to_vec()));
            failure.map_or(Ok(()), Err)
        })
    }

    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        self.with(Op::Other, |file, failure, _| {
            let rest = file.seen.get(at as usize..).unwrap_or_default();
            let count = rest.len().min(into.len());
            into[..count].copy_from_slice(&rest[..count]);
            failure.map_or(Ok(count), Err)
        })
    }

    fn sync(&self) -> io::Result<()> {
        {
            let mut state = self.disk.machine.state.lock();
            while state.holds_syncs && state.generation == self.disk.generation {
                state.syncs_held += 1;
                self.disk.machine.changed.notify_all();
                self.disk.machine.changed.wait(&mut state);
                state.syncs_held -= 1;
            }
        }
        self.with(Op::Sync, |file, failure, rng| {
            let pending = std::mem::take(&mut file.pending);
            let length = file.seen.len().max(file.durable.len());
            file.durable.resize(length, 0);
            for (at, bytes) in pending {
                match &failure {
                    None => put(&mut file.durable, at, &bytes),
                    // It is seen, and only some of it will be there after a crash.
                    Some(_) => write_in_part(&mut file.durable, at, &bytes, rng),
                }
            }
            failure.map_or(Ok(()), Err)
        })
    }

    fn length(&self) -> io::Result<u64> {
        self.with(Op::Other, |file, failure, _| failure.map_or(Ok(file.seen.len() as u64), Err))
    }
}

/// For tests that draw random numbers in addition to the disk.
pub(super) fn rng(seed: u64) -> impl Rng {
    StdRng::seed_from_u64(seed)
}
