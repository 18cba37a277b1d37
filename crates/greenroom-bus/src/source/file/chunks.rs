//! The reading thread: bytes into chunks of whole lines.

use std::io::{self, Read};

use super::decompress::decompressed;

/// Read at once, and the usual size of a chunk.
const CHUNK_BYTES: usize = 256 * 1024;
/// Of a line without end, so much is kept for the dead letters.
const RAW_LIMIT: usize = 256 * 1024 * 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What the thread hands over.
pub(super) enum Chunk {
    /// Whole lines; the very last one may lack its line feed.
    Lines {
        /// The lines.
        bytes: Vec<u8>,
        /// Where they begin in the decompressed input.
        at: u64,
    },
    /// One line that cannot be an event.
    NoLine {
        /// Its bytes, or as many as are kept.
        raw: Vec<u8>,
        /// Why.
        reason: String,
    },
    /// The input has been read to its end.
    End,
    /// The input cannot be read any further.
    Failed(String),
}

/// The receiver is gone: nobody wants more.
struct Unwanted;

pub(super) struct Chunks<F> {
    /// Takes a chunk. False when nobody wants more.
    give: F,
    /// What was read and not handed over; the part after its last line feed is the beginning of a line.
    pending: Vec<u8>,
    /// Where what is read next begins.
    offset: u64,
    /// How many bytes of the line at hand were thrown away because it has passed [`RAW_LIMIT`].
    thrown_away: u64,
    raw_limit: usize,
    at_start: bool,
}

impl<F: FnMut(Chunk) -> bool> Chunks<F> {
    pub(super) fn new(give: F) -> Self {
        let pending = Vec::new();
        Self { give, pending, offset: 0, thrown_away: 0, raw_limit: RAW_LIMIT, at_start: true }
    }

    #[cfg(test)]
    pub(super) fn with_raw_limit(self, raw_limit: usize) -> Self {
        Self { raw_limit, ..self }
    }

    /// Reads to the end, to the first error, or until nobody wants more.
    pub(super) fn read(mut self, input: impl Read + Send + 'static) {
        // Whoever has dropped the receiver needs no word.
        let _ = match decompressed(input) {
            Ok(mut input) => self.read_all(&mut *input),
            Err(error) => self.send(Chunk::Failed(error.to_string())),
        };
    }

    /// As [`read`](Self::read), of an input that is not compressed, and of which this many bytes, whole lines, are behind.
    pub(super) fn read_on(mut self, mut input: impl Read, offset: u64) {
        self.offset = offset;
        self.at_start = offset == 0;
        // As above.
        let _ = self.read_all(&mut input);
    }

    fn read_all(&mut self, input: &mut dyn Read) -> Result<(), Unwanted> {
        loop {
            let start = self.pending.len();
            match self.fill(input) {
                Ok(0) => return self.finish(),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return self.fail(&error),
            }
            self.skip_byte_order_mark();
            let start = start.min(self.pending.len());
            self.hand_over_lines(start)?;
        }
    }

    fn fill(&mut self, input: &mut dyn Read) -> io::Result<usize> {
        let start = self.pending.len();
        self.pending.resize(start + CHUNK_BYTES, 0);
        let result = input.read(&mut self.pending[start..]);
        let count = result.as_ref().copied().unwrap_or(0);
        self.pending.truncate(start + count);
        self.offset += count as u64;
        result
    }

    fn skip_byte_order_mark(&mut self) {
        if self.at_start && self.pending.len() >= BYTE_ORDER_MARK.len() {
            self.at_start = false;
            if self.pending.starts_with(BYTE_ORDER_MARK) {
                self.pending.drain(..BYTE_ORDER_MARK.len());
            }
        }
    }

    /// Hands over up to the last line feed among the bytes from `start` on: at once, for a pipe may have no more for
    /// a long time.
    fn hand_over_lines(&mut self, start: usize) -> Result<(), Unwanted> {
        match memchr::memrchr(b'\n', &self.pending[start..]) {
            Some(at) => self.hand_over(start + at + 1),
            None => {
                self.throw_away_excess();
                Ok(())
            }
        }
    }

    fn hand_over(&mut self, end: usize) -> Result<(), Unwanted> {
        let rest = self.pending[end..].to_vec();
        let end_at = self.offset - rest.len() as u64;
        let mut lines = std::mem::replace(&mut self.pending, rest);
        lines.truncate(end);
        if self.thrown_away > 0 {
            let first = memchr::memchr(b'\n', &lines).map_or(lines.len(), |at| at + 1);
            let others = lines.split_off(first);
            lines.pop();
            self.send_endless(lines)?;
            lines = others;
        }
        self.send_lines(lines, end_at)
    }

    /// Only called while the pending bytes are one unended line.
    fn throw_away_excess(&mut self) {
        if self.pending.len() > self.raw_limit {
            self.thrown_away += (self.pending.len() - self.raw_limit) as u64;
            self.pending.truncate(self.raw_limit);
        }
    }

    fn send_endless(&mut self, mut raw: Vec<u8>) -> Result<(), Unwanted> {
        let length = raw.len() as u64 + std::mem::take(&mut self.thrown_away);
        raw.truncate(self.raw_limit);
        let reason = format!("the line has {length} bytes; the first {} are kept", raw.len());
        self.send(Chunk::NoLine { raw, reason })
    }

    fn send_lines(&mut self, bytes: Vec<u8>, end_at: u64) -> Result<(), Unwanted> {
        let at = end_at - bytes.len() as u64;
        if bytes.is_empty() { Ok(()) } else { self.send(Chunk::Lines { bytes, at }) }
    }

    fn finish(&mut self) -> Result<(), Unwanted> {
        let rest = std::mem::take(&mut self.pending);
        if self.thrown_away > 0 {
            self.send_endless(rest)?;
        } else {
            self.send_lines(rest, self.offset)?;
        }
        self.send(Chunk::End)
    }

    fn fail(&mut self, error: &io::Error) -> Result<(), Unwanted> {
        let raw = std::mem::take(&mut self.pending);
        if !raw.is_empty() {
            let reason = format!("the line is cut off: {error}");
            self.send(Chunk::NoLine { raw, reason })?;
        }
        self.send(Chunk::Failed(error.to_string()))
    }

    fn send(&mut self, chunk: Chunk) -> Result<(), Unwanted> {
        if (self.give)(chunk) { Ok(()) } else { Err(Unwanted) }
    }
}
