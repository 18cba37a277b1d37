//! Reads all of a log without opening it: its contents and its damage.

use std::{
    io,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::{
    consumers,
    disk::{Disk, RealDisk},
    error::{Damage, LogError},
    format::Block,
    recovery::{missing, take_foreign},
    segment::{Segment, bases},
    segment_log::{ConsumerStanding, LOCK},
    walk::{SegmentEnd, Step, Walk},
};
use crate::event::Event;

/// The contents of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Inspection {
    /// Files of events.
    pub segments: usize,
    /// Bytes of these files.
    pub bytes: u64,
    /// Events that were read.
    pub events: u64,
    /// The sequence number with which the log begins.
    pub first: u64,
    /// Above the last one.
    pub next: u64,
    /// When the oldest event was written, by the log's time.
    pub oldest: Option<SystemTime>,
    /// When the youngest one was.
    pub youngest: Option<SystemTime>,
    /// A block at the end is not whole: a crash has left it, or it is being written.
    pub is_torn: bool,
    /// Durable data that is damaged. The events after it were read.
    pub damage: Vec<Damage>,
    /// Its consumers, by name.
    pub consumers: Vec<ConsumerStanding>,
    /// A process has it open.
    pub is_in_use: bool,
}

/// Whether there is a log in this directory.
pub fn is_log(directory: &Path) -> bool {
    RealDisk.list(directory).is_ok_and(|names| !bases(&names).is_empty())
}

/// Reads a log from its beginning to its end, and hands each intact event to `each`, with its
/// sequence number. Checks every checksum and every sequence number. Changes nothing. If the log is
/// being written, it sees each place as it was at the time of reading. Blocks for as long as that
/// takes.
///
/// # Errors
/// There is no log, its files cannot be read, or `each` has failed. Damage is no error.
pub fn inspect(
    directory: &Path,
    mut each: impl FnMut(u64, &Event) -> io::Result<()>,
) -> Result<Inspection, LogError> {
    let disk = RealDisk;
    let names = disk.list(directory).map_err(LogError::io(directory))?;
    let mut bases = bases(&names);
    let mut found = Inspection { is_in_use: is_in_use(directory), ..Inspection::default() };
    // Their events are no events of this log.
    found.damage = take_foreign(&disk, directory, &mut bases)?;
    found.first = bases.first().copied().unwrap_or(1);
    let mut log = None;
    for (n, base) in bases.iter().enumerate() {
        let following = bases.get(n + 1).copied();
        let path = Segment::path(directory, *base);
        let (segment, file) = match Segment::open(&disk, &path, *base, false) {
            Ok(opened) => opened,
            Err(LogError::Damaged(damage)) => {
                found.damage.push(damage);
                continue;
            }
            // It was not needed any more.
            Err(LogError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        log.get_or_insert(segment.header.log);
        found.segments += 1;
        found.bytes += segment.length;
        found.damage.extend(segment.is_cut());
        segment_of(Walk::new(segment, file), following, &mut found, &mut each)?;
    }
    let Some(log) = log else { return Ok(found) };
    match consumers::read(&disk, &directory.join(consumers::DIRECTORY), log) {
        Ok(all) => {
            let all = all.into_iter().map(|(name, stored)| ConsumerStanding::new(name, &stored));
            found.consumers = all.collect();
        }
        Err(LogError::Damaged(damage)) => found.damage.push(damage),
        Err(error) => return Err(error),
    }
    check_consumers(directory, &mut found);
    Ok(found)
}

fn is_in_use(directory: &Path) -> bool {
    let lock = directory.join(LOCK);
    let is_busy = |error: &io::Error| error.kind() == io::ErrorKind::ResourceBusy;
    lock.exists() && RealDisk.lock(&lock).is_err_and(|error| is_busy(&error))
}

/// `following`: where the next segment begins.
fn segment_of(
    mut walk: Walk,
    following: Option<u64>,
    found: &mut Inspection,
    each: &mut impl FnMut(u64, &Event) -> io::Result<()>,
) -> Result<(), LogError> {
    loop {
        match walk.step(following.is_none())? {
            Step::Block(block) => block_of(&walk, &block, found, each)?,
            Step::End(end) => {
                found.is_torn = end == SegmentEnd::Torn;
                let gap = following.filter(|base| *base != walk.next);
                found.damage.extend(gap.map(|base| missing(&walk, base)));
                return Ok(());
            }
            Step::Damaged { damage, later } => {
                found.damage.push(damage);
                let Some(later) = later else { return Ok(()) };
                walk.go_to(later);
            }
        }
    }
}

fn block_of(
    walk: &Walk,
    block: &Block,
    found: &mut Inspection,
    each: &mut impl FnMut(u64, &Event) -> io::Result<()>,
) -> Result<(), LogError> {
    found.next = block.next();
    if block.header.count > 0 {
        let time = UNIX_EPOCH.checked_add(Duration::from_millis(block.header.time));
        found.oldest = found.oldest.or(time);
        found.youngest = time;
    }
    for (sequence, stored) in block.records() {
        match Event::read_stored(stored) {
            Ok(event) => {
                found.events += 1;
                each(sequence, &event).map_err(LogError::io("the output"))?;
            }
            Err(error) => {
                let damage = walk.damage(error.to_string());
                found.damage.push(Damage { sequence, ..damage });
            }
        }
    }
    Ok(())
}

/// Not while the log is written: then they may be ahead of the inspection.
fn check_consumers(directory: &Path, found: &mut Inspection) {
    found.next = found.next.max(found.first);
    if found.is_in_use {
        return;
    }
    for consumer in &found.consumers {
        let what = match consumer {
            ahead if ahead.next > found.next => "has taken events that are not there",
            behind if behind.oldest_open < found.first => "needs events that are not there",
            _ => continue,
        };
        found.damage.push(Damage {
            file: directory.join(consumers::DIRECTORY),
            offset: 0,
            sequence: consumer.oldest_open,
            what: format!("the consumer `{}` {what}", consumer.name),
        });
    }
}
