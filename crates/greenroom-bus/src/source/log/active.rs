//! The segment that is written.

use std::{io, sync::Arc};

use super::{disk::DiskFile, segment::Segment};

/// The last segment of a log, and where its last block ends.
pub(super) struct Active {
    pub(super) segment: Segment,
    pub(super) file: Arc<dyn DiskFile>,
    pub(super) end: u64,
}

impl Active {
    /// Whether a block of this many bytes has room.
    pub(super) fn fits(&self, bytes: u64) -> bool {
        self.end.saturating_add(bytes) <= self.segment.length
    }

    /// Returns when the block survives a crash.
    ///
    /// # Errors
    /// It is unknown how much of it is on the disk. It must not be tried again: after a failed
    /// sync, the next one may not report the loss.
    pub(super) fn append(&mut self, block: &[u8]) -> io::Result<()> {
        self.file.write_at(block, self.end)?;
        self.file.sync()?;
        self.end += block.len() as u64;
        Ok(())
    }
}
