//! The bytes of a segment: a header, and blocks of records one behind the other.
//!
//! ```text
//! segment   header (64)  block  block  block  …  zeros, or what a recycled file had
//! block     magic  checksum  first  time  bytes  count  |  record  record  …  padding to 8
//! record    length  checksum  sequence  |  an event
//! ```
//!
//! A block is the unit of one sync, and a block begins only when the previous one is durable. So an
//! incomplete block was never acknowledged, unless a later one follows it.
//!
//! The checksum of a block covers its header, the headers of its records and the salt of its
//! segment, so remains of an earlier use of the file are never taken for a block of this one. The
//! checksum of a record covers its event.

use bytes::Bytes;
use crc32fast::Hasher;

/// The form that is written. Older ones are read, later ones refused.
pub(super) const VERSION: u32 = 1;

/// Bytes before the first block.
pub(super) const SEGMENT_HEADER: usize = 64;
/// Bytes before the first record of a block.
pub(super) const BLOCK_HEADER: usize = 40;
/// Bytes before the event of a record.
pub(super) const RECORD_HEADER: usize = 16;
/// Blocks begin at multiples of this.
pub(super) const ALIGNMENT: usize = 8;

const SEGMENT_MAGIC: [u8; 8] = *b"GRNRMLOG";
/// The first bytes of a block.
pub(super) const BLOCK_MAGIC: [u8; 4] = *b"GRBK";

/// The header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    /// The same in all segments of a log.
    pub(super) log: u64,
    /// The sequence of its first event.
    pub(super) base: u64,
    /// When it was begun, in milliseconds of the log's time.
    pub(super) created: u64,
    /// Another one for each use of a file.
    pub(super) salt: u32,
    /// Bytes of the file, which is created as a whole: a shorter one has lost something. 0 if it is
    /// not known: in segments that were created before this field existed.
    pub(super) length: u64,
}

/// Why bytes are not the header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoHeader {
    /// They are of something else, or damaged.
    Damaged,
    /// They are of a later version.
    Later(u32),
}

impl SegmentHeader {
    pub(super) fn write(&self) -> [u8; SEGMENT_HEADER] {
        let mut bytes = [0; SEGMENT_HEADER];
        bytes[..8].copy_from_slice(&SEGMENT_MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.log.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.base.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.created.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.salt.to_le_bytes());
        bytes[44..52].copy_from_slice(&self.length.to_le_bytes());
        let sum = checksum_of_header(&bytes);
        bytes[12..16].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    pub(super) fn read(bytes: &[u8; SEGMENT_HEADER]) -> Result<Self, NoHeader> {
        if bytes[..8] != SEGMENT_MAGIC {
            return Err(NoHeader::Damaged);
        }
        match u32_at(bytes, 8) {
            VERSION => {}
            0 => return Err(NoHeader::Damaged),
            later => return Err(NoHeader::Later(later)),
        }
        if u32_at(bytes, 12) != checksum_of_header(bytes) {
            return Err(NoHeader::Damaged);
        }
        let (log, base) = (u64_at(bytes, 16), u64_at(bytes, 24));
        let (created, salt) = (u64_at(bytes, 32), u32_at(bytes, 40));
        Ok(Self { log, base, created, salt, length: u64_at(bytes, 44) })
    }
}

fn checksum_of_header(bytes: &[u8; SEGMENT_HEADER]) -> u32 {
    let mut crc = Hasher::new();
    crc.update(&bytes[..12]);
    crc.update(&bytes[16..]);
    crc.finalize()
}

/// Of the event of a record.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// A block that is being made.
pub(super) struct BlockBuilder {
    bytes: Vec<u8>,
    /// Over the headers of the records.
    headers: Vec<u8>,
    first: u64,
    count: u32,
}

impl BlockBuilder {
    pub(super) fn new(first: u64) -> Self {
        Self { bytes: vec![0; BLOCK_HEADER], headers: Vec::new(), first, count: 0 }
    }

    pub(super) fn push(&mut self, event: &[u8], sum: u32) {
        let sequence = self.first + u64::from(self.count);
        let begin = self.bytes.len();
        self.bytes.extend((event.len() as u32).to_le_bytes());
        self.bytes.extend(sum.to_le_bytes());
        self.bytes.extend(sequence.to_le_bytes());
        self.headers.extend_from_slice(&self.bytes[begin..]);
        self.bytes.extend_from_slice(event);
        self.count += 1;
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// As it will be written.
    pub(super) fn length(&self) -> u64 {
        self.bytes.len().next_multiple_of(ALIGNMENT) as u64
    }

    /// For the segment with this salt.
    pub(super) fn finish(mut self, time: u64, salt: u32) -> Vec<u8> {
        let records = (self.bytes.len() - BLOCK_HEADER) as u32;
        self.bytes.resize(self.length() as usize, 0);
        let header = &mut self.bytes[..BLOCK_HEADER];
        header[..4].copy_from_slice(&BLOCK_MAGIC);
        header[8..16].copy_from_slice(&self.first.to_le_bytes());
        header[16..24].copy_from_slice(&time.to_le_bytes());
        header[24..28].copy_from_slice(&records.to_le_bytes());
        header[28..32].copy_from_slice(&self.count.to_le_bytes());
        let mut crc = salted(salt);
        crc.update(&header[8..]);
        crc.update(&self.headers);
        header[4..8].copy_from_slice(&crc.finalize().to_le_bytes());
        self.bytes
    }
}

fn salted(salt: u32) -> Hasher {
    let mut crc = Hasher::new();
    crc.update(&salt.to_le_bytes());
    crc
}

/// Writes the correct checksum into a segment's header, and returns its salt; `None` if there is no
/// room for a header.
pub(super) fn seal_segment(segment: &mut [u8]) -> Option<u32> {
    let header = segment.first_chunk_mut::<SEGMENT_HEADER>()?;
    let sum = checksum_of_header(header);
    header[12..16].copy_from_slice(&sum.to_le_bytes());
    Some(u32_at(header, 40))
}

/// Writes the checksums that a block and its records should have. `bytes`: all of the block.
pub(super) fn seal_block(bytes: &mut [u8], salt: u32) {
    let Some(header) = BlockHeader::read(bytes) else { return };
    let mut crc = salted(salt);
    crc.update(&bytes[8..BLOCK_HEADER]);
    let mut at = BLOCK_HEADER;
    for _ in 0..header.count {
        let Some((head, rest)) =
            bytes.get_mut(at..).and_then(|bytes| bytes.split_at_mut_checked(RECORD_HEADER))
        else {
            break;
        };
        let length = u32_at(head, 0) as usize;
        let Some(event) = rest.get(..length) else { break };
        head[4..8].copy_from_slice(&checksum(event).to_le_bytes());
        crc.update(head);
        at += RECORD_HEADER + length;
    }
    bytes[4..8].copy_from_slice(&crc.finalize().to_le_bytes());
}

/// The beginning of a block, which is not known to be right before its records were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockHeader {
    /// The sequence of its first event.
    pub(super) first: u64,
    /// When it was written, in milliseconds of the log's time.
    pub(super) time: u64,
    /// Of its records.
    pub(super) bytes: u32,
    /// Events in it.
    pub(super) count: u32,
}

impl BlockHeader {
    /// `None`: no block begins there.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; BLOCK_HEADER] = bytes.first_chunk()?;
        (bytes[..4] == BLOCK_MAGIC).then(|| Self {
            first: u64_at(bytes, 8),
            time: u64_at(bytes, 16),
            bytes: u32_at(bytes, 24),
            count: u32_at(bytes, 28),
        })
    }

    /// With header and padding.
    pub(super) fn length(&self) -> u64 {
        (BLOCK_HEADER + self.bytes as usize).next_multiple_of(ALIGNMENT) as u64
    }
}

/// A block that is whole.
#[derive(Debug, Clone)]
pub(super) struct Block {
    pub(super) header: BlockHeader,
    /// All of it, as stored in the file.
    pub(super) bytes: Bytes,
}

impl Block {
    /// `bytes`: all of the block.
    ///
    /// # Errors
    /// The problem with it.
    pub(super) fn read(bytes: Bytes, salt: u32) -> Result<Self, &'static str> {
        let header = BlockHeader::read(&bytes).ok_or("no block begins there")?;
        if bytes.len() as u64 != header.length() {
            return Err("it is cut");
        }
        let mut crc = salted(salt);
        crc.update(&bytes[8..BLOCK_HEADER]);
        let block = Self { header, bytes };
        let mut sequence = header.first;
        let mut at = BLOCK_HEADER;
        for _ in 0..header.count {
            let record = block.record(at).ok_or("a record reaches beyond its block")?;
            crc.update(record.header);
            if u64_at(record.header, 8) != sequence {
                return Err("a record has another sequence number");
            }
            if u32_at(record.header, 4) != checksum(record.event) {
                return Err("the checksum of a record is wrong");
            }
            sequence = sequence.checked_add(1).ok_or("a sequence number is too large")?;
            at += RECORD_HEADER + record.event.len();
        }
        if at != BLOCK_HEADER + header.bytes as usize {
            return Err("its records do not fill it");
        }
        if u32_at(&block.bytes, 4) != crc.finalize() {
            return Err("its checksum is wrong");
        }
        Ok(block)
    }

    fn record(&self, at: usize) -> Option<LogRecord<'_>> {
        let records = self.bytes.get(..BLOCK_HEADER + self.header.bytes as usize)?;
        let (header, rest) = records.get(at..)?.split_at_checked(RECORD_HEADER)?;
        let event = rest.get(..u32_at(header, 0) as usize)?;
        Some(LogRecord { header, event })
    }

    /// The sequence behind its last event.
    pub(super) fn next(&self) -> u64 {
        self.header.first + u64::from(self.header.count)
    }

    /// Its events, as they are stored, with their sequence numbers.
    pub(super) fn records(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut at = BLOCK_HEADER;
        (self.header.first..self.next()).map_while(move |sequence| {
            let record = self.record(at)?;
            at += RECORD_HEADER + record.event.len();
            Some((sequence, record.event))
        })
    }
}

struct LogRecord<'a> {
    header: &'a [u8],
    event: &'a [u8],
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block() -> Vec<u8> {
        let mut block = BlockBuilder::new(7);
        for event in [&b"one"[..], b"", b"three"] {
            block.push(event, checksum(event));
        }
        block.finish(1_000, 42)
    }

    #[test]
    fn b03_a_block_is_read_as_it_was_written() {
        let block = Block::read(block().into(), 42).unwrap();
        assert_eq!((block.header.time, block.next()), (1_000, 10));
        let records: Vec<_> = block.records().collect();
        assert_eq!(records, [(7, &b"one"[..]), (8, b""), (9, b"three")]);
    }

    #[test]
    fn b03_every_changed_byte_of_a_block_is_found() {
        let whole = block();
        let padding = BLOCK_HEADER + 3 * RECORD_HEADER + 8;
        for at in 0..padding {
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            assert!(Block::read(changed.into(), 42).is_err(), "changed at {at}");
        }
        for end in 0..whole.len() {
            assert!(Block::read(whole[..end].to_vec().into(), 42).is_err(), "cut at {end}");
        }
        assert!(Block::read(whole.into(), 43).is_err(), "of an earlier use of the file");
    }

    #[test]
    fn b03_every_changed_byte_of_a_segments_header_is_found() {
        let header = SegmentHeader { log: 1, base: 2, created: 3, salt: 4, length: 5 };
        assert_eq!(SegmentHeader::read(&header.write()), Ok(header));
        for at in 0..SEGMENT_HEADER {
            let mut changed = header.write();
            changed[at] ^= 1;
            assert!(SegmentHeader::read(&changed).is_err(), "changed at {at}");
        }
        let mut later = header.write();
        later[8] = 2;
        assert_eq!(SegmentHeader::read(&later), Err(NoHeader::Later(2)));
    }
}
