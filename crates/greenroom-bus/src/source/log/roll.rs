//! Begins a new segment, in a recycled file if there is one.

use std::{io, path::Path, sync::Arc};

use super::{
    active::Active,
    disk::{Disk, DiskFile, is_full},
    format::{SEGMENT_HEADER, SegmentHeader},
    segment::{NEXT, SPARE, Segment},
};

/// Why there is no new segment.
pub(super) enum NoSegment {
    /// The disk is full. Nothing was changed.
    Full(io::Error),
    /// Something failed after which nothing more may be written.
    Failed(io::Error),
}

/// Makes the segment that `header` tells of. Until it has its name it is
/// nothing to anybody, so a crash at any step leaves the log as it was.
pub(super) fn begin_segment(
    disk: &dyn Disk,
    directory: &Path,
    header: SegmentHeader,
    recycle: bool,
) -> Result<Active, NoSegment> {
    let beside = directory.join(if recycle { SPARE } else { NEXT });
    let made = make(disk, &beside, header, recycle);
    let file = made.map_err(|error| {
        if !recycle {
            // Its remains are removed when the log is opened the next time.
            let _ = disk.remove(&beside);
        }
        if is_full(&error) { NoSegment::Full(error) } else { NoSegment::Failed(error) }
    })?;
    let path = Segment::path(directory, header.base);
    disk.rename(&beside, &path).map_err(NoSegment::Failed)?;
    disk.sync_directory(directory).map_err(NoSegment::Failed)?;
    let segment = Segment { path, length: header.length, header };
    Ok(Active { segment, file, end: SEGMENT_HEADER as u64 })
}

fn make(
    disk: &dyn Disk,
    path: &Path,
    header: SegmentHeader,
    recycle: bool,
) -> io::Result<Arc<dyn DiskFile>> {
    let file = if recycle { disk.open(path, true)? } else { disk.create(path, header.length)? };
    file.write_at(&header.write(), 0)?;
    file.sync()?;
    Ok(file)
}
