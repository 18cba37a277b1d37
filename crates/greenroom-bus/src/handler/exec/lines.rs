//! Lines from a pipe, with a bound on their length and no allocation per line.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// One read's worth; Linux pipes hold as much.
const READ_BUFFER: usize = 64 * 1024;

/// The next line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextLine {
    /// A whole line, in [`LineReader::current`]. An unfinished last line counts as one.
    Whole,
    /// More bytes than the bound came without a line end.
    TooLong,
    /// The other side closed its end.
    End,
}

/// A shortened line ends here at the latest: its rest is treated as the next line, so that a line
/// without an end is reported, too.
const LONGEST_REST: u64 = 1024 * 1024;

/// The treatment of a line that exceeds its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beyond {
    /// It is [`NextLine::TooLong`].
    Refused,
    /// The rest is read and counted, and nothing more.
    LeftOut,
}

/// Reads line after line into one buffer.
#[derive(Debug)]
pub(super) struct LineReader<R> {
    input: BufReader<R>,
    /// The line that was read last, without its end.
    line: Vec<u8>,
    /// How many bytes of it are not there.
    left_out: u64,
    /// A part of the next line has been read: `next` was cancelled.
    unfinished: bool,
    /// Longest line in bytes.
    longest: usize,
    beyond: Beyond,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Lines of `longest` bytes at most; a longer one is [`NextLine::TooLong`].
    pub(super) fn bounded(input: R, longest: usize) -> Self {
        let (input, line) = (BufReader::with_capacity(READ_BUFFER, input), Vec::new());
        Self { input, line, left_out: 0, unfinished: false, longest, beyond: Beyond::Refused }
    }

    /// Keeps at most `longest` bytes of each line.
    pub(super) fn shortening(input: R, longest: usize) -> Self {
        Self { beyond: Beyond::LeftOut, ..Self::bounded(input, longest) }
    }

    /// The line that [`LineReader::next`] read last, without its end.
    pub(super) fn current(&self) -> &[u8] {
        &self.line
    }

    /// How many more bytes that line has.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Reads the next line.
    ///
    /// # Errors
    /// The pipe failed.
    ///
    /// # Cancel safety
    /// Nothing is lost: the next call continues with the line.
    pub(super) async fn next(&mut self) -> io::Result<NextLine> {
        if !std::mem::replace(&mut self.unfinished, true) {
            self.line.clear();
            self.left_out = 0;
        }
        let line = self.read_on().await?;
        self.unfinished = false;
        Ok(line)
    }

    async fn read_on(&mut self) -> io::Result<NextLine> {
        loop {
            let bytes = self.input.fill_buf().await?;
            if bytes.is_empty() {
                return Ok(if self.line.is_empty() { NextLine::End } else { NextLine::Whole });
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let came = end.unwrap_or(bytes.len());
            let kept = came.min(self.longest - self.line.len());
            if kept < came && self.beyond == Beyond::Refused {
                return Ok(NextLine::TooLong);
            }
            self.line.extend_from_slice(&bytes[..kept]);
            self.left_out += (came - kept) as u64;
            self.input.consume(came + usize::from(end.is_some()));
            if end.is_some() || self.left_out >= LONGEST_REST {
                return Ok(NextLine::Whole);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test]
    async fn lines_are_cut_at_their_ends_and_the_last_needs_none() {
        let mut lines = LineReader::bounded(&b"one\n\nthree"[..], 10);
        let mut seen = Vec::new();
        while lines.next().await.unwrap() == NextLine::Whole {
            seen.push(String::from_utf8(lines.current().to_vec()).unwrap());
        }
        assert_eq!(seen, ["one", "", "three"]);
    }

    #[tokio::test]
    async fn u05_a_line_beyond_the_bound_is_not_collected() {
        let mut lines = LineReader::bounded(&b"12345\n123456\n"[..], 5);
        assert_eq!(lines.next().await.unwrap(), NextLine::Whole);
        assert_eq!(lines.next().await.unwrap(), NextLine::TooLong);
    }

    #[tokio::test]
    async fn u02_the_rest_of_a_long_line_is_counted() {
        let mut lines = LineReader::shortening(&b"1234567\nx\n\n123"[..], 3);
        let mut seen = Vec::new();
        while lines.next().await.unwrap() == NextLine::Whole {
            seen.push((String::from_utf8(lines.current().to_vec()).unwrap(), lines.left_out()));
        }
        let expected = [("123", 4), ("x", 0), ("", 0), ("123", 0)];
        assert_eq!(seen, expected.map(|(line, rest)| (line.to_owned(), rest)));
    }

    #[tokio::test]
    async fn u02_a_line_without_an_end_is_heard_of() {
        let mut lines = LineReader::shortening(tokio::io::repeat(b'x'), 3);
        for _ in 0..3 {
            assert_eq!(lines.next().await.unwrap(), NextLine::Whole);
            assert!(lines.current() == b"xxx" && lines.left_out() >= LONGEST_REST);
        }
    }

    #[tokio::test]
    async fn a_line_that_was_waited_for_and_given_up_is_read_on() {
        let (read, mut write) = tokio::io::duplex(64);
        let mut lines = LineReader::bounded(read, 10);
        for part in [&b"on"[..], b"e"] {
            write.write_all(part).await.unwrap();
            let waited = tokio::time::timeout(std::time::Duration::from_millis(1), lines.next());
            assert!(waited.await.is_err());
        }
        write.write_all(b"\n").await.unwrap();
        assert_eq!(lines.next().await.unwrap(), NextLine::Whole);
        assert_eq!(lines.current(), b"one");
    }
}
