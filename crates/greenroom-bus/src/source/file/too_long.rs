//! Lines that exceed the maximum event size: their beginning is kept, and the whole is identified
//! by its length and a hash.

use std::fmt::Write;

use ring::digest::{Context, SHA256};

use crate::source::Malformed;

/// A line whose beginning is kept.
pub(super) struct TooLong {
    kept: Vec<u8>,
    /// How many it has, without its line feed.
    bytes: u64,
    /// Of all of them, in hexadecimal digits.
    sha256: String,
}

impl TooLong {
    /// Of a line that is there as a whole, without its line feed.
    pub(super) fn new(line: &[u8], max_event: usize) -> Self {
        Measured::new(line).line(line[..max_event].to_vec())
    }

    /// Reports the length of the line, the kept part, and how to find the whole again.
    pub(super) fn malformed(self) -> Malformed {
        let Self { kept, bytes, sha256 } = self;
        let most = kept.len();
        let reason = format!(
            "the line has {bytes} bytes, more than `max_event` ({most}): it is cut, and its first {most} bytes are kept; \
             sha256 of the whole line: {sha256}"
        );
        Malformed::too_large(kept, reason)
    }
}

/// The measure of a line, piece by piece.
pub(super) struct Measured {
    bytes: u64,
    sha256: Context,
}

impl Measured {
    pub(super) fn new(beginning: &[u8]) -> Self {
        let mut measured = Self { bytes: 0, sha256: Context::new(&SHA256) };
        measured.add(beginning);
        measured
    }

    pub(super) fn add(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        self.sha256.update(piece);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The line is complete; these bytes of it are kept.
    pub(super) fn line(self, kept: Vec<u8>) -> TooLong {
        let mut sha256 = String::new();
        for byte in self.sha256.finish().as_ref() {
            // Writing to a string cannot fail.
            let _ = write!(sha256, "{byte:02x}");
        }
        TooLong { kept, bytes: self.bytes, sha256 }
    }
}
