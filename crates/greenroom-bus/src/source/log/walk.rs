//! Reads a segment block by block, and says how it ends.

use std::sync::Arc;

use bytes::Bytes;

use super::{
    disk::DiskFile,
    error::{Damage, LogError},
    format::{ALIGNMENT, BLOCK_HEADER, BLOCK_MAGIC, Block, BlockHeader, SEGMENT_HEADER},
    segment::Segment,
};

/// The reader's position in a segment.
#[derive(Clone)]
pub(super) struct Walk {
    pub(super) segment: Segment,
    file: Arc<dyn DiskFile>,
    /// Where the next block begins.
    pub(super) offset: u64,
    /// The sequence number of its first event.
    pub(super) next: u64,
}

/// The contents of the place of the next block.
pub(super) enum Step {
    /// The block.
    Block(Block),
    /// Nothing that was ever acknowledged.
    End(SegmentEnd),
    /// Something that was, and is not whole.
    Damaged {
        damage: Damage,
        /// The offset of the next intact block, and its first event.
        later: Option<(u64, u64)>,
    },
}

/// How the blocks of a segment end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SegmentEnd {
    Clean,
    /// A block was begun, and was never whole.
    Torn,
}

impl Walk {
    pub(super) fn new(segment: Segment, file: Arc<dyn DiskFile>) -> Self {
        let next = segment.header.base;
        Self { segment, file, offset: SEGMENT_HEADER as u64, next }
    }

    /// Reads the next block and goes behind it. `is_last`: no segment follows.
    pub(super) fn step(&mut self, is_last: bool) -> Result<Step, LogError> {
        let why = match self.block_at(self.offset)? {
            Ok(block) if block.header.first == self.next => {
                self.offset += block.bytes.len() as u64;
                self.next = block.next();
                return Ok(Step::Block(block));
            }
            Ok(_) => "the events before it are missing",
            Err(why) => why,
        };
        let later = self.later_block()?;
        if later.is_none() && is_last {
            return Ok(Step::End(if self.is_begun()? {
                SegmentEnd::Torn
            } else {
                SegmentEnd::Clean
            }));
        }
        // A segment that is followed by another ends where that begins, which its reader knows.
        if later.is_none() && !self.is_begun()? {
            return Ok(Step::End(SegmentEnd::Clean));
        }
        let what = match later {
            Some((offset, first)) => {
                format!("{why}, and events from {first} on stand behind it at byte {offset}")
            }
            None => format!("{why}, and another segment follows"),
        };
        Ok(Step::Damaged { damage: self.damage(what), later })
    }

    /// Skips the next block; reads only its header. False if there is no block with this sequence
    /// number, or if it ends after `sequence`.
    pub(super) fn skip_block_before(&mut self, sequence: u64) -> Result<bool, LogError> {
        let Some(header) = self.header_at(self.offset)? else { return Ok(false) };
        let next = header.first.saturating_add(u64::from(header.count));
        if header.first != self.next || next > sequence || !self.has_room_for(&header, self.offset)
        {
            return Ok(false);
        }
        self.offset += header.length();
        self.next = next;
        Ok(true)
    }

    pub(super) fn damage(&self, what: impl Into<String>) -> Damage {
        let (file, offset, sequence) = (self.segment.path.clone(), self.offset, self.next);
        Damage { file, offset, sequence, what: what.into() }
    }

    /// Continues at another block.
    pub(super) fn go_to(&mut self, (offset, next): (u64, u64)) {
        (self.offset, self.next) = (offset, next);
    }

    fn has_room_for(&self, header: &BlockHeader, offset: u64) -> bool {
        header.length() <= self.segment.length.saturating_sub(offset)
    }

    fn header_at(&self, offset: u64) -> Result<Option<BlockHeader>, LogError> {
        let bytes = self.read(offset, BLOCK_HEADER)?;
        Ok(BlockHeader::read(&bytes))
    }

    fn block_at(&self, offset: u64) -> Result<Result<Block, &'static str>, LogError> {
        let Some(header) = self.header_at(offset)? else { return Ok(Err("no block begins there")) };
        if !self.has_room_for(&header, offset) {
            return Ok(Err("a block reaches beyond its file"));
        }
        let bytes = self.read(offset, header.length() as usize)?;
        Ok(Block::read(bytes, self.segment.header.salt))
    }

    /// The block at hand was written, at least in part: remains of an earlier use of the file have
    /// other sequence numbers.
    fn is_begun(&self) -> Result<bool, LogError> {
        let header = self.header_at(self.offset)?;
        Ok(header.is_some_and(|header| header.first == self.next))
    }

    /// A whole block behind the one at hand, which was begun when that one was durable.
    fn later_block(&self) -> Result<Option<(u64, u64)>, LogError> {
        let rest = self.segment.length.saturating_sub(self.offset) as usize;
        let bytes = self.read(self.offset, rest)?;
        for at in memchr::memmem::find_iter(&bytes, &BLOCK_MAGIC).filter(|at| at % ALIGNMENT == 0) {
            let Some(header) = BlockHeader::read(&bytes[at..]) else { break };
            let end = at.saturating_add(header.length() as usize);
            let is_other = header.first > self.next || (header.first == self.next && at > 0);
            let is_whole = is_other
                && end <= bytes.len()
                && Block::read(bytes.slice(at..end), self.segment.header.salt).is_ok();
            if is_whole {
                return Ok(Some((self.offset + at as u64, header.first)));
            }
        }
        Ok(None)
    }

    fn read(&self, offset: u64, length: usize) -> Result<Bytes, LogError> {
        let mut bytes = vec![0; length];
        let count = self.file.read_at(&mut bytes, offset);
        let count = count.map_err(LogError::io(&self.segment.path))?;
        bytes.truncate(count);
        Ok(bytes.into())
    }

    pub(super) fn file(&self) -> &Arc<dyn DiskFile> {
        &self.file
    }
}
