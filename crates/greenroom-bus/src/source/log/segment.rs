//! The segments of a log: their names, their order, and which of them has a sequence number.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    disk::{Disk, DiskFile},
    error::{Damage, LogError},
    format::{NoHeader, SEGMENT_HEADER, SegmentHeader, VERSION},
};

const EXTENSION: &str = ".segment";

/// A file that was a segment and will be one again.
pub(super) const SPARE: &str = "spare";

/// A segment that is being made.
pub(super) const NEXT: &str = "next.tmp";

/// One file of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) path: PathBuf,
    pub(super) header: SegmentHeader,
    /// Of the file, in bytes.
    pub(super) length: u64,
}

impl Segment {
    /// So that the names sort as the segments do.
    pub(super) fn path(directory: &Path, base: u64) -> PathBuf {
        directory.join(format!("{base:020}{EXTENSION}"))
    }

    /// Reads the header of a file with the name of a segment.
    pub(super) fn open(
        disk: &dyn Disk,
        path: &Path,
        base: u64,
        to_write: bool,
    ) -> Result<(Self, Arc<dyn DiskFile>), LogError> {
        let file = disk.open(path, to_write).map_err(LogError::io(path))?;
        let length = file.length().map_err(LogError::io(path))?;
        let mut bytes = [0; SEGMENT_HEADER];
        let count = file.read_at(&mut bytes, 0).map_err(LogError::io(path))?;
        let damaged = |what: &str| {
            let (file, what) = (path.to_owned(), what.to_owned());
            LogError::Damaged(Damage { file, offset: 0, sequence: base, what })
        };
        if count < SEGMENT_HEADER {
            return Err(damaged("it ends inside its header"));
        }
        let header = SegmentHeader::read(&bytes).map_err(|why| match why {
            NoHeader::Damaged => damaged("its header is not that of a segment"),
            NoHeader::Later(form) => {
                LogError::Later { path: path.to_owned(), form, known: VERSION }
            }
        })?;
        if header.base != base {
            return Err(damaged("its header has another sequence number than its name"));
        }
        Ok((Self { path: path.to_owned(), header, length }, file))
    }

    /// The damage of a file that is shorter than it was created: the missing part may have been
    /// durable.
    pub(super) fn is_cut(&self) -> Option<Damage> {
        let (length, made) = (self.length, self.header.length);
        (length < made).then(|| Damage {
            file: self.path.clone(),
            offset: length,
            sequence: self.header.base,
            what: format!("it has {length} bytes and was made with {made}: its end is missing"),
        })
    }

    /// The damage of a segment that belongs to another log.
    pub(super) fn is_foreign(&self, log: u64) -> Option<Damage> {
        let other = self.header.log;
        (other != log).then(|| Damage {
            file: self.path.clone(),
            offset: 0,
            sequence: self.header.base,
            what: format!(
                "it is a segment of another log, {other:016x}, and this one is {log:016x}: move it \
                 out of the directory"
            ),
        })
    }
}

/// The sequence numbers with which the segments in a directory begin, rising.
pub(super) fn bases(names: &[String]) -> Vec<u64> {
    let base = |name: &String| name.strip_suffix(EXTENSION)?.parse().ok();
    let mut bases: Vec<u64> = names.iter().filter_map(base).collect();
    bases.sort_unstable();
    bases
}

/// Segments in their order; the last one is written.
#[derive(Debug, Default)]
pub(super) struct Segments(pub(super) VecDeque<Segment>);

impl Segments {
    /// Of all files together.
    pub(super) fn bytes(&self) -> u64 {
        self.0.iter().map(|segment| segment.length).sum()
    }

    /// The lowest sequence number that is kept.
    pub(super) fn first(&self) -> u64 {
        self.0.front().map_or(1, |segment| segment.header.base)
    }

    /// The segment that contains this sequence number, or will contain it.
    pub(super) fn containing(&self, sequence: u64) -> Option<&Segment> {
        let after = self.0.partition_point(|segment| segment.header.base <= sequence);
        self.0.get(after.checked_sub(1)?)
    }
}
