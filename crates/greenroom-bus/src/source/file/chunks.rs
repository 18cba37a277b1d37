//! The reading thread: bytes into chunks of whole lines.

use std::io::{self, Read};

use super::{
    blank,
    decompress::decompressed,
    too_long::{Measured, TooLong},
};
use crate::byte_order_mark::BYTE_ORDER_MARK;

/// Read at once, and the usual size of a chunk.
const CHUNK_BYTES: usize = 256 * 1024;

/// A message from the thread.
pub(super) enum Chunk {
    /// Whole lines; the very last one may lack its line feed.
    Lines {
        /// The lines.
        bytes: Vec<u8>,
        /// Their offset in the decompressed input.
        at: u64,
    },
    /// One line that is longer than an event may be.
    TooLong(TooLong),
    /// The input has been read to its end.
    End,
    /// The input cannot be read any further. The partial line at hand is not a line, and is
    /// discarded.
    Failed {
        /// Why.
        reason: String,
        /// Where the line at hand begins in the decompressed input.
        at: u64,
        /// It would be of no use to restore it: it is as it was written.
        is_whole: bool,
    },
}

/// The receiver is gone.
struct Unwanted;

pub(super) struct Chunks<F> {
    /// Takes a chunk. False if no more is wanted.
    give: F,
    /// Bytes that were read and not handed over; the part after the last line feed is the beginning
    /// of a line.
    pending: Vec<u8>,
    /// The offset of the next read.
    offset: u64,
    /// The measure of the current line, once it exceeds the longest event: `pending` holds its
    /// beginning.
    too_long: Option<Measured>,
    /// The longest event. This much of a longer line is kept.
    max_event: usize,
    at_start: bool,
}

impl<F: FnMut(Chunk) -> bool> Chunks<F> {
    pub(super) fn new(max_event: usize, give: F) -> Self {
        let pending = Vec::new();
        Self { give, pending, offset: 0, too_long: None, max_event, at_start: true }
    }

    /// Reads to the end, to the first error, or until the receiver is gone.
    pub(super) fn read(mut self, input: impl Read + Send + 'static) {
        // If the receiver was dropped, there is no reader to tell.
        let _ = match decompressed(input) {
            Ok(mut input) => self.read_all(&mut *input),
            Err(error) => self.fail(&error),
        };
    }

    /// Like [`read`](Self::read), for an uncompressed input whose first `offset` bytes, whole
    /// lines, were read before.
    pub(super) fn read_on(mut self, mut input: impl Read, offset: u64) {
        self.offset = offset;
        self.at_start = offset == 0;
        // As above.
        let _ = self.read_all(&mut input);
    }

    /// Continues after this many bytes, which are whole lines of an uncompressed input.
    pub(super) fn behind(self, offset: u64) -> Self {
        Self { offset, at_start: offset == 0, ..self }
    }

    /// Reads once, and hands over the lines that are complete by then. `false`: there is no more
    /// for now, and the partial line is kept.
    ///
    /// # Errors
    /// It cannot be read. The next step tries again.
    pub(super) fn step(&mut self, input: &mut dyn Read) -> io::Result<bool> {
        // If the receiver was dropped, there is no reader to tell.
        let has_more = self.read_once(input)?.is_some();
        if !has_more {
            self.pending.shrink_to_fit();
        }
        Ok(has_more)
    }

    /// `None`: there is no more.
    fn read_once(&mut self, input: &mut dyn Read) -> io::Result<Option<Result<(), Unwanted>>> {
        let start = self.pending.len();
        match self.fill(input) {
            Ok(0) => return Ok(None),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Some(Ok(()))),
            Err(error) => return Err(error),
        }
        self.skip_byte_order_mark();
        self.skip_nuls();
        let start = start.min(self.pending.len());
        Ok(Some(self.hand_over_lines(start)))
    }

    /// The line at hand is as whole as it will be.
    pub(super) fn end(&mut self) {
        // As above.
        let _ = self.finish();
    }

    /// Bytes of the line at hand.
    pub(super) fn at_hand(&self) -> u64 {
        self.too_long.as_ref().map_or(self.pending.len() as u64, Measured::bytes)
    }

    /// How many bytes were read.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    fn read_all(&mut self, input: &mut dyn Read) -> Result<(), Unwanted> {
        loop {
            match self.read_once(input) {
                Ok(Some(handed_over)) => handed_over?,
                Ok(None) => return self.finish(),
                Err(error) => return self.fail(&error),
            }
        }
    }

    /// Like [`read_on`](Self::read_on), with a look at the buffer after each step.
    #[cfg(test)]
    pub(super) fn observe(&mut self, input: &mut dyn Read, look: impl Fn(&Vec<u8>)) {
        while matches!(self.fill(input), Ok(1..)) {
            look(&self.pending);
            let _ = self.hand_over_lines(0);
        }
        let _ = self.finish();
    }

    fn fill(&mut self, input: &mut dyn Read) -> io::Result<usize> {
        let start = self.pending.len();
        self.make_room();
        self.pending.resize(start + CHUNK_BYTES, 0);
        let result = input.read(&mut self.pending[start..]);
        let count = result.as_ref().copied().unwrap_or(0);
        self.pending.truncate(start + count);
        self.offset += count as u64;
        result
    }

    /// Room for one more chunk. While a line grows, its bytes are moved; from an eighth of the
    /// maximum line on, it gets room for all of it, so that only a small part is ever in memory
    /// twice.
    fn make_room(&mut self) {
        let wanted = self.pending.len() + CHUNK_BYTES;
        if wanted <= self.pending.capacity() {
            return;
        }
        let most = self.max_event.saturating_add(CHUNK_BYTES + 1).max(wanted);
        let capacity = match wanted > most / 8 {
            true => most,
            false => (2 * self.pending.capacity()).clamp(wanted, most / 8),
        };
        self.pending.reserve_exact(capacity - self.pending.len());
    }

    /// Of a log that was cut while it was written, there may be more of them than a line may have
    /// bytes.
    fn skip_nuls(&mut self) {
        if self.pending.first() == Some(&0) && self.too_long.is_none() {
            self.pending.drain(..blank::at_the_start(&self.pending));
        }
    }

    fn skip_byte_order_mark(&mut self) {
        if self.at_start && self.pending.len() >= BYTE_ORDER_MARK.len() {
            self.at_start = false;
            if self.pending.starts_with(BYTE_ORDER_MARK) {
                self.pending.drain(..BYTE_ORDER_MARK.len());
            }
        }
    }

    /// Hands over up to the last line feed among the bytes from `start` on: at once, for a pipe may
    /// have no more for a long time.
    fn hand_over_lines(&mut self, start: usize) -> Result<(), Unwanted> {
        match memchr::memrchr(b'\n', &self.pending[start..]) {
            Some(at) => self.hand_over(start + at + 1),
            None => {
                self.keep_the_beginning();
                Ok(())
            }
        }
    }

    fn hand_over(&mut self, end: usize) -> Result<(), Unwanted> {
        let rest = self.pending[end..].to_vec();
        let end_at = self.offset - rest.len() as u64;
        let mut lines = std::mem::replace(&mut self.pending, rest);
        lines.truncate(end);
        if let Some(measured) = self.too_long.take() {
            let first = memchr::memchr(b'\n', &lines[self.max_event..])
                .map_or(lines.len(), |at| self.max_event + at + 1);
            let others = lines.split_off(first);
            lines.pop();
            self.send_too_long(measured, lines)?;
            lines = others;
        }
        self.send_lines(lines, end_at)?;
        self.skip_nuls();
        self.keep_the_beginning();
        Ok(())
    }

    /// Only called while the pending bytes are one unended line. A carriage return at its end may
    /// be no part of it.
    fn keep_the_beginning(&mut self) {
        if self.pending.len() <= self.max_event.saturating_add(1) {
            return;
        }
        let (kept, excess) = self.pending.split_at(self.max_event);
        self.too_long.get_or_insert_with(|| Measured::new(kept)).add(excess);
        self.pending.truncate(self.max_event);
    }

    /// The end of the line, without its line feed, follows the kept part.
    fn send_too_long(&mut self, mut measured: Measured, mut line: Vec<u8>) -> Result<(), Unwanted> {
        measured.add(&line[self.max_event..]);
        line.truncate(self.max_event);
        self.send(Chunk::TooLong(measured.line(line)))
    }

    fn send_lines(&mut self, bytes: Vec<u8>, end_at: u64) -> Result<(), Unwanted> {
        let at = end_at - bytes.len() as u64;
        if bytes.is_empty() { Ok(()) } else { self.send(Chunk::Lines { bytes, at }) }
    }

    fn finish(&mut self) -> Result<(), Unwanted> {
        let rest = std::mem::take(&mut self.pending);
        match self.too_long.take() {
            Some(measured) => self.send_too_long(measured, rest)?,
            None => self.send_lines(rest, self.offset)?,
        }
        self.send(Chunk::End)
    }

    /// The pending bytes may be the beginning of a line whose rest cannot be read: they must not be
    /// taken for a line.
    fn fail(&mut self, error: &io::Error) -> Result<(), Unwanted> {
        let pending = self.too_long.as_ref().map_or(self.pending.len() as u64, Measured::bytes);
        let at = self.offset - pending;
        let is_whole = error.kind() == io::ErrorKind::Unsupported;
        self.send(Chunk::Failed { reason: error.to_string(), at, is_whole })
    }

    fn send(&mut self, chunk: Chunk) -> Result<(), Unwanted> {
        if (self.give)(chunk) { Ok(()) } else { Err(Unwanted) }
    }
}
