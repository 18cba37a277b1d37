//! Recovery when a log is opened: where it ends, and which identities it remembers.
//!
//! The last segment is read to its end, and those before it as far as identities are remembered;
//! the others are checked when they are read. A torn tail is cut; anything else that is wrong
//! refuses the log.

use std::path::Path;

use super::{
    active::Active,
    consumers::{self, StoredConsumer},
    disk::{Disk, read_whole},
    error::{Damage, LogError},
    format::{BLOCK_HEADER, Block, checksum},
    identities::{Identities, identity},
    options::LogOptions,
    segment::{NEXT, SPARE, Segment, Segments, bases},
    walk::{SegmentEnd, Step, Walk},
};
use crate::event::Event;

/// Identities of events whose segments were removed.
pub(super) const IDENTITIES: &str = "identities";
const IDENTITIES_MAGIC: [u8; 8] = *b"GRNRMIDS";
/// Magic, checksum of the rest, the log, and a sequence number.
const IDENTITIES_HEADER: usize = 8 + 4 + 8 + 8;

/// The findings.
pub(super) struct Recovered {
    pub(super) log: u64,
    pub(super) segments: Segments,
    pub(super) active: Active,
    /// The sequence number of the next event.
    pub(super) next: u64,
    /// When the last block was written.
    pub(super) time: u64,
    pub(super) identities: Identities,
    /// A file that can become a segment.
    pub(super) has_spare: bool,
    pub(super) consumers: Vec<(String, StoredConsumer)>,
}

/// `None`: there is no log yet. Nothing is changed before all of it was found to be in order.
pub(super) fn recover(
    disk: &dyn Disk,
    directory: &Path,
    options: &LogOptions,
) -> Result<Option<Recovered>, LogError> {
    let names = disk.list(directory).map_err(LogError::io(directory))?;
    let segments = segments(disk, directory, &names)?;
    let log = segments.0.back().map(|last| last.header.log);
    let consumers_at = directory.join(consumers::DIRECTORY);
    let consumers = consumers::read(disk, &consumers_at, log.unwrap_or_default())?;
    let Some(log) = log else { return Ok(None) };
    let mut identities = Identities::new(options.remember_for, options.remember_events);
    let begin = remembered_from(&segments, options);
    if begin == 0 {
        restore(disk, directory, log, segments.first(), &mut identities)?;
    }
    let Read { walk, last, end, time } = read(disk, &segments, begin, &mut identities)?;
    check_consumers(&consumers, segments.first(), &walk)?;
    if names.iter().any(|name| name == NEXT) {
        let path = directory.join(NEXT);
        disk.remove(&path).map_err(LogError::io(path))?;
    }
    let has_spare =
        names.iter().any(|name| name == SPARE) && is_usable_spare(disk, directory, options)?;
    let active =
        Active { segment: walk.segment.clone(), file: walk.file().clone(), end: walk.offset };
    make_durable(&active, last.as_ref(), end).map_err(LogError::io(&active.segment.path))?;
    if end == SegmentEnd::Torn {
        tracing::warn!(
            file = %active.segment.path.display(),
            offset = active.end,
            sequence = walk.next,
            "cut off a torn tail, which a crash had left: nothing of it was acknowledged"
        );
    }
    let next = walk.next;
    Ok(Some(Recovered { log, segments, active, next, time, identities, has_spare, consumers }))
}

/// Stored positions of consumers were durable: a log that ends before one, or begins after it, has
/// lost something.
fn check_consumers(
    consumers: &[(String, StoredConsumer)],
    first: u64,
    end: &Walk,
) -> Result<(), LogError> {
    let positions = || consumers.iter().map(|(_, stored)| &stored.positions);
    let next = positions().map(|positions| positions.next()).max().unwrap_or_default();
    if next > end.next {
        let what = format!("a consumer has taken events up to {}", next - 1);
        return Err(LogError::Damaged(end.damage(what)));
    }
    match positions().map(|positions| positions.lowest()).min() {
        Some(lowest) if lowest < first => {
            let what = format!("the log begins with event {first}, and a consumer needs {lowest}");
            let file = end.segment.path.clone();
            Err(LogError::Damaged(Damage { file, offset: 0, sequence: lowest, what }))
        }
        _ => Ok(()),
    }
}

/// Each is closed again when its header was read: a log may have more segments than a process may
/// have files open.
fn segments(disk: &dyn Disk, directory: &Path, names: &[String]) -> Result<Segments, LogError> {
    let mut segments = Segments::default();
    let mut bases = bases(names);
    if let Some(damage) = take_foreign(disk, directory, &mut bases)?.into_iter().next() {
        return Err(LogError::Damaged(damage));
    }
    for base in bases {
        let (segment, _) = Segment::open(disk, &Segment::path(directory, base), base, false)?;
        if let Some(damage) = segment.is_cut() {
            return Err(LogError::Damaged(damage));
        }
        segments.0.push_back(segment);
    }
    Ok(segments)
}

/// Removes segments of foreign logs from those that begin with `bases`, and returns their damage.
/// The log of the directory is the one that most consumers belong to, then most segments, then the
/// first. Files that cannot be opened report that themselves.
pub(super) fn take_foreign(
    disk: &dyn Disk,
    directory: &Path,
    bases: &mut Vec<u64>,
) -> Result<Vec<Damage>, LogError> {
    let open = |base: &u64| Segment::open(disk, &Segment::path(directory, *base), *base, false);
    let opened = bases.iter().filter_map(|base| open(base).ok());
    let segments: Vec<_> = opened.map(|(segment, _)| segment).collect();
    let consumers = consumers::logs(disk, &directory.join(consumers::DIRECTORY))?;
    let logs = || segments.iter().map(|segment| segment.header.log);
    let votes = |log| {
        let consumers = consumers.iter().filter(|other| **other == log).count();
        (consumers, logs().filter(|other| *other == log).count())
    };
    // Of several with as many, this takes the last.
    let Some(log) = logs().rev().max_by_key(|log| votes(*log)) else { return Ok(Vec::new()) };
    let foreign: Vec<_> = segments.iter().filter_map(|segment| segment.is_foreign(log)).collect();
    bases.retain(|base| foreign.iter().all(|damage| damage.sequence != *base));
    Ok(foreign)
}

/// One of another size, of a run with other options, is removed.
fn is_usable_spare(
    disk: &dyn Disk,
    directory: &Path,
    options: &LogOptions,
) -> Result<bool, LogError> {
    let path = directory.join(SPARE);
    let file = disk.open(&path, false).map_err(LogError::io(&path))?;
    if file.length().map_err(LogError::io(&path))? == options.segment_bytes {
        return Ok(true);
    }
    disk.remove(&path).map_err(LogError::io(&path))?;
    Ok(false)
}

/// The first segment with an event that is remembered, or the last one.
fn remembered_from(segments: &Segments, options: &LogOptions) -> usize {
    let Some(last) = segments.0.back().map(|last| last.header) else { return 0 };
    let window = super::clock::millis(options.remember_for);
    let mut begin = segments.0.len() - 1;
    while let Some(header) = segments.0.get(begin).map(|segment| segment.header) {
        let is_remembered = ((last.base - header.base) as usize) < options.remember_events
            && header.created >= last.created.saturating_sub(window)
            && window > 0;
        if begin == 0 || !is_remembered {
            break;
        }
        begin -= 1;
    }
    begin
}

struct Read {
    /// At the end of the last segment.
    walk: Walk,
    /// The last block, and its offset.
    last: Option<(u64, Block)>,
    end: SegmentEnd,
    time: u64,
}

fn read(
    disk: &dyn Disk,
    segments: &Segments,
    begin: usize,
    identities: &mut Identities,
) -> Result<Read, LogError> {
    let mut rest = segments.0.iter().skip(begin).peekable();
    let mut time = 0;
    loop {
        let Some(segment) = rest.next() else { return Err(nothing_to_read()) };
        let base = segment.header.base;
        let next_base = rest.peek().map(|next| next.header.base);
        let (segment, file) = Segment::open(disk, &segment.path, base, next_base.is_none())?;
        let mut walk = Walk::new(segment, file);
        time = time.max(walk.segment.header.created);
        let mut last = None;
        let end = loop {
            let at = walk.offset;
            match walk.step(next_base.is_none())? {
                Step::Block(block) => {
                    remember(&walk, &block, identities)?;
                    time = time.max(block.header.time);
                    last = Some((at, block));
                }
                Step::End(end) => break end,
                Step::Damaged { damage, .. } => return Err(LogError::Damaged(damage)),
            }
        };
        match next_base {
            None => return Ok(Read { walk, last, end, time }),
            Some(base) if base == walk.next => {}
            Some(base) => return Err(LogError::Damaged(missing(&walk, base))),
        }
    }
}

fn nothing_to_read() -> LogError {
    LogError::Options("a log has at least one segment".to_owned())
}

/// A segment ends before the next one begins.
pub(super) fn missing(walk: &Walk, base: u64) -> Damage {
    walk.damage(format!("it ends there, and the next segment begins with event {base}"))
}

fn remember(walk: &Walk, block: &Block, identities: &mut Identities) -> Result<(), LogError> {
    if identities.most() == 0 {
        return Ok(());
    }
    for (sequence, stored) in block.records() {
        let (source, id) = Event::stored_identity(stored).map_err(|error| {
            let damage = walk.damage(format!("event {sequence} cannot be read: {error}"));
            LogError::Damaged(damage)
        })?;
        identities.insert(identity(source, id), block.header.time);
    }
    Ok(())
}

/// A process whose sync failed may have left blocks in memory that are whole there, and not on the
/// disk; a second sync would then say nothing. So the last block is written again before it is
/// trusted.
fn make_durable(
    active: &Active,
    last: Option<&(u64, Block)>,
    end: SegmentEnd,
) -> std::io::Result<()> {
    if let Some((offset, block)) = last {
        active.file.write_at(&block.bytes, *offset)?;
    }
    let room = active.segment.length.saturating_sub(active.end) as usize;
    if end == SegmentEnd::Torn {
        active.file.write_at(&[0; BLOCK_HEADER][..room.min(BLOCK_HEADER)], active.end)?;
    }
    active.file.sync()
}

/// The file of identities, for those below `sequence`.
pub(super) fn identities_file(log: u64, sequence: u64, entries: &[u8]) -> Vec<u8> {
    let mut rest = Vec::with_capacity(IDENTITIES_HEADER + entries.len());
    rest.extend(log.to_le_bytes());
    rest.extend(sequence.to_le_bytes());
    rest.extend(entries);
    let mut bytes = IDENTITIES_MAGIC.to_vec();
    bytes.extend(checksum(&rest).to_le_bytes());
    bytes.append(&mut rest);
    bytes
}

fn restore(
    disk: &dyn Disk,
    directory: &Path,
    log: u64,
    first: u64,
    identities: &mut Identities,
) -> Result<(), LogError> {
    let path = directory.join(IDENTITIES);
    let Some(bytes) = read_whole(disk, &path).map_err(LogError::io(&path))? else { return Ok(()) };
    let Some((sequence, entries)) = entries(&bytes, log) else {
        let what = "it does not hold identities of this log; removed, a repeat of an event whose segment was removed would \
                    be stored again";
        let damage = Damage { file: path, offset: 0, sequence: 0, what: what.to_owned() };
        return Err(LogError::Damaged(damage));
    };
    identities.restore(entries, sequence, first);
    Ok(())
}

fn entries(bytes: &[u8], log: u64) -> Option<(u64, &[u8])> {
    let (magic, bytes) = bytes.split_first_chunk::<8>()?;
    let (sum, rest) = bytes.split_first_chunk::<4>()?;
    let (found, bytes) = rest.split_first_chunk::<8>()?;
    let (sequence, entries) = bytes.split_first_chunk::<8>()?;
    let is_good = *magic == IDENTITIES_MAGIC
        && u32::from_le_bytes(*sum) == checksum(rest)
        && u64::from_le_bytes(*found) == log;
    is_good.then_some((u64::from_le_bytes(*sequence), entries))
}
