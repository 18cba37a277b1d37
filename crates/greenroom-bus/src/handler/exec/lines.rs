//! Lines from a pipe, with a bound on their length and no allocation per line.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// One read's worth; Linux pipes hold as much.
const READ_BUFFER: usize = 64 * 1024;

/// What the next line is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A whole line, in [`Lines::current`]. An unfinished last line counts as one.
    Whole,
    /// More bytes than the bound came without a line end.
    TooLong,
    /// The other side closed its end.
    End,
}

/// Reads line after line into one buffer.
#[derive(Debug)]
pub(super) struct Lines<R> {
    input: BufReader<R>,
    /// The line that was read last, without its end.
    line: Vec<u8>,
    /// Longest line in bytes.
    longest: usize,
    /// Whether a longer line comes in pieces rather than as [`Line::TooLong`].
    cuts: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Lines of `longest` bytes at most; a longer one is [`Line::TooLong`].
    pub(super) fn bounded(input: R, longest: usize) -> Self {
        let input = BufReader::with_capacity(READ_BUFFER, input);
        Self { input, line: Vec::new(), longest, cuts: false }
    }

    /// Lines of `longest` bytes at most; a longer one comes as several.
    pub(super) fn cutting(input: R, longest: usize) -> Self {
        Self { cuts: true, ..Self::bounded(input, longest) }
    }

    /// The line that [`Lines::next`] read last, without its end.
    pub(super) fn current(&self) -> &[u8] {
        &self.line
    }

    /// Reads the next line.
    ///
    /// # Errors
    /// What the pipe answered.
    ///
    /// # Cancel safety
    /// Not safe: a part of a line may be lost.
    pub(super) async fn next(&mut self) -> io::Result<Line> {
        self.line.clear();
        loop {
            let bytes = self.input.fill_buf().await?;
            if bytes.is_empty() {
                return Ok(if self.line.is_empty() { Line::End } else { Line::Whole });
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(bytes.len());
            let room = self.longest - self.line.len();
            if taken > room {
                if !self.cuts {
                    return Ok(Line::TooLong);
                }
                self.line.extend_from_slice(&bytes[..room]);
                self.input.consume(room);
                return Ok(Line::Whole);
            }
            self.line.extend_from_slice(&bytes[..taken]);
            self.input.consume(taken + usize::from(end.is_some()));
            if end.is_some() {
                return Ok(Line::Whole);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_cut_at_their_ends_and_the_last_needs_none() {
        let mut lines = Lines::bounded(&b"one\n\nthree"[..], 10);
        let mut seen = Vec::new();
        while lines.next().await.unwrap() == Line::Whole {
            seen.push(String::from_utf8(lines.current().to_vec()).unwrap());
        }
        assert_eq!(seen, ["one", "", "three"]);
    }

    #[tokio::test]
    async fn u05_a_line_beyond_the_bound_is_not_collected() {
        let mut lines = Lines::bounded(&b"12345\n123456\n"[..], 5);
        assert_eq!(lines.next().await.unwrap(), Line::Whole);
        assert_eq!(lines.next().await.unwrap(), Line::TooLong);
    }

    #[tokio::test]
    async fn a_cutting_reader_loses_nothing_of_a_long_line() {
        let mut lines = Lines::cutting(&b"1234567\nx"[..], 3);
        let mut seen = Vec::new();
        while lines.next().await.unwrap() == Line::Whole {
            seen.push(String::from_utf8(lines.current().to_vec()).unwrap());
        }
        assert_eq!(seen, ["123", "456", "7", "x"]);
    }
}
