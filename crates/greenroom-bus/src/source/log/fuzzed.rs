//! Recovery as a function of bytes, for the targets in `fuzz/`. No interface for anybody else: it
//! changes as they need it.

use std::{
    any::Any,
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;

use super::{
    LogError, LogOptions,
    active::Active,
    disk::{Disk, DiskFile},
    format::{BlockBuilder, BlockHeader, SEGMENT_HEADER, SegmentHeader, seal_block, seal_segment},
    recovery::recover as recover_on,
    segment::Segment,
    waiting::PreparedEvents,
    walk::{Step, Walk},
};
use crate::event::Event;

/// The log that all segments of the targets are of.
const LOG: u64 = 7;

const DIRECTORY: &str = "log";

/// The bytes of a segment that begins with the event `base`: these blocks, and `room` zeros.
pub fn segment(base: u64, salt: u32, blocks: &[Vec<Event>], room: usize) -> Vec<u8> {
    let mut bytes = vec![0; SEGMENT_HEADER];
    let mut next = base;
    for events in blocks {
        let mut block = BlockBuilder::new(next);
        for (event, sum, _) in PreparedEvents::new(events, false).events() {
            block.push(event, sum);
        }
        next += events.len() as u64;
        bytes.extend(block.finish(1_000, salt));
    }
    bytes.resize(bytes.len() + room, 0);
    let length = bytes.len() as u64;
    let header = SegmentHeader { log: LOG, base, created: 1_000, salt, length };
    bytes[..SEGMENT_HEADER].copy_from_slice(&header.write());
    bytes
}

/// Corrects the checksums of the header and of all consecutive blocks, as far as their lengths are
/// inside, so that other errors are reached.
pub fn seal(segment: &mut [u8]) {
    let Some(salt) = seal_segment(segment) else { return };
    let mut at = SEGMENT_HEADER;
    while let Some(header) = segment.get(at..).and_then(BlockHeader::read) {
        let end = at.saturating_add(header.length() as usize);
        let Some(block) = segment.get_mut(at..end) else { return };
        seal_block(block, salt);
        at = end;
    }
}

/// The findings of recovery.
pub struct Found {
    /// The sequence number of the next event.
    pub next: u64,
    /// All events, as they are stored, with their sequence numbers.
    pub events: Vec<(u64, Vec<u8>)>,
    active: Active,
}

impl Found {
    /// Continues with a block of one event, if there is room for it. Returns the last segment as it
    /// is now.
    ///
    /// # Errors
    /// None: the disk is memory.
    pub fn append(&mut self, event: &Event) -> io::Result<Option<Vec<u8>>> {
        let mut block = BlockBuilder::new(self.next);
        for (event, sum, _) in PreparedEvents::new(std::slice::from_ref(event), false).events() {
            block.push(event, sum);
        }
        if !self.active.fits(block.length()) {
            return Ok(None);
        }
        self.active.append(&block.finish(2_000, self.active.segment.header.salt))?;
        let mut bytes = vec![0; self.active.segment.length as usize];
        self.active.file.read_at(&mut bytes, 0)?;
        Ok(Some(bytes))
    }
}

/// Opens a log of these segments, each with the sequence number in its name, as a start does, and
/// reads all of it.
///
/// # Errors
/// As a start has them. `None`: there is no log.
pub fn recover(segments: &[(u64, &[u8])]) -> Result<Option<Found>, LogError> {
    let disk = Memory::default();
    for (base, bytes) in segments {
        let file = Arc::new(MemoryFile(Mutex::new(bytes.to_vec())));
        disk.0.lock().insert(Segment::path(Path::new(DIRECTORY), *base), file);
    }
    let Some(found) = recover_on(&disk, Path::new(DIRECTORY), &LogOptions::default())? else {
        return Ok(None);
    };
    let mut events = Vec::new();
    for segment in &found.segments.0 {
        let file = disk.open(&segment.path, false).map_err(LogError::io(&segment.path))?;
        let mut walk = Walk::new(segment.clone(), file);
        while let Step::Block(block) = walk.step(true)? {
            events.extend(block.records().map(|(sequence, event)| (sequence, event.to_vec())));
        }
    }
    Ok(Some(Found { next: found.next, events, active: found.active }))
}

/// Files in memory.
#[derive(Default)]
struct Memory(Mutex<BTreeMap<PathBuf, Arc<MemoryFile>>>);

struct MemoryFile(Mutex<Vec<u8>>);

impl Disk for Memory {
    fn make_directory(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        let files = self.0.lock();
        let names = files.keys().filter_map(|path| path.strip_prefix(directory).ok());
        Ok(names.map(|name| name.to_string_lossy().into_owned()).collect())
    }

    fn create(&self, path: &Path, length: u64) -> io::Result<Arc<dyn DiskFile>> {
        let file = Arc::new(MemoryFile(Mutex::new(vec![0; length as usize])));
        self.0.lock().insert(path.to_owned(), file.clone());
        Ok(file)
    }

    fn open(&self, path: &Path, _: bool) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.0.lock().get(path).cloned();
        file.map(|file| file as Arc<dyn DiskFile>).ok_or(io::ErrorKind::NotFound.into())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut files = self.0.lock();
        let file = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.lock().remove(path).map(drop).ok_or(io::ErrorKind::NotFound.into())
    }

    fn sync_directory(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn Any + Send + Sync>> {
        Ok(Box::new(()))
    }
}

impl DiskFile for MemoryFile {
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let mut file = self.0.lock();
        let (begin, end) = (at as usize, at as usize + bytes.len());
        if file.len() < end {
            file.resize(end, 0);
        }
        file[begin..end].copy_from_slice(bytes);
        Ok(())
    }

    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let file = self.0.lock();
        let rest = file.get(at as usize..).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.lock().len() as u64)
    }
}
