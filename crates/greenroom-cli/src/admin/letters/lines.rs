//! The lines of a file of any length, in either direction: only a buffer is held in memory.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
};

/// Bytes to read at once.
const PIECE: usize = 64 << 10;

/// A file that is read line by line.
pub(super) struct LetterLines {
    file: BufReader<File>,
    /// The start of the next line.
    offset: u64,
}

/// One line, read as far as requested.
pub(super) struct LetterLine<'a> {
    lines: &'a mut LetterLines,
    start: u64,
    /// Whether its end was read.
    ended: bool,
}

impl LetterLines {
    /// Starts after the line of this number; 0 is before the first line.
    pub(super) fn start_behind(mut file: File, number: u64) -> io::Result<Self> {
        let offset = number.saturating_sub(1).min(file.metadata()?.len());
        file.seek(SeekFrom::Start(offset))?;
        let mut lines = Self { file: BufReader::with_capacity(PIECE, file), offset };
        if number > 0 {
            lines.next().skip()?;
        }
        Ok(lines)
    }

    pub(super) fn next(&mut self) -> LetterLine<'_> {
        LetterLine { start: self.offset, lines: self, ended: false }
    }
}

impl LetterLine<'_> {
    /// Lines are numbered by their offset in the file, so that a line can be found without reading
    /// earlier ones. The first is number 1.
    pub(super) fn number(&self) -> u64 {
        self.start + 1
    }

    /// Goes to its end. Returns its length in bytes; `None` if its end is not written yet.
    pub(super) fn skip(mut self) -> io::Result<Option<u64>> {
        loop {
            let read = self.fill_buf()?.len();
            if read == 0 {
                let length = self.lines.offset - self.start;
                return Ok(self.ended.then(|| length - 1));
            }
            self.consume(read);
        }
    }
}

impl BufRead for LetterLine<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.ended {
            return Ok(&[]);
        }
        let found = self.lines.file.fill_buf()?;
        if found.first() == Some(&b'\n') {
            self.lines.file.consume(1);
            self.lines.offset += 1;
            self.ended = true;
            return Ok(&[]);
        }
        let found = self.lines.file.buffer();
        let end = found.iter().position(|byte| *byte == b'\n').unwrap_or(found.len());
        Ok(&found[..end])
    }

    fn consume(&mut self, read: usize) {
        self.lines.file.consume(read);
        self.lines.offset += read as u64;
    }
}

impl Read for LetterLine<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let found = self.fill_buf()?;
        let read = found.len().min(into.len());
        into[..read].copy_from_slice(&found[..read]);
        self.consume(read);
        Ok(read)
    }
}

/// A file that is read line by line, backwards from its end.
pub(super) struct LinesBackwards {
    file: File,
    /// The bytes of the last read.
    piece: Vec<u8>,
    /// The start of that in the file.
    at: u64,
    /// The end of the next line, after its line end.
    end: u64,
}

impl LinesBackwards {
    /// Starts before the line of this number, and before a last line whose end is not written yet.
    pub(super) fn start_before(file: File, number: u64) -> io::Result<Self> {
        let end = file.metadata()?.len().min(number.saturating_sub(1));
        let mut lines = Self { file, piece: Vec::new(), at: end, end };
        lines.end = lines.line_start(end)?;
        Ok(lines)
    }

    /// The number of the next line, and its length in bytes.
    pub(super) fn next(&mut self) -> io::Result<Option<(u64, u64)>> {
        let Some(end) = self.end.checked_sub(1) else { return Ok(None) };
        self.end = self.line_start(end)?;
        Ok(Some((self.end + 1, end - self.end)))
    }

    /// The text of the line that [`next`](Self::next) returned.
    pub(super) fn text(&mut self, length: u64) -> io::Result<Box<dyn BufRead + '_>> {
        let start = (self.end - self.at) as usize;
        if let Some(text) = self.piece.get(start..start + length as usize) {
            return Ok(Box::new(text));
        }
        self.file.seek(SeekFrom::Start(self.end))?;
        Ok(Box::new(BufReader::new((&self.file).take(length))))
    }

    /// The offset after the last line end before `end`.
    fn line_start(&mut self, mut end: u64) -> io::Result<u64> {
        while end > 0 {
            if end <= self.at {
                self.at = end.saturating_sub(PIECE as u64);
                self.piece.resize((end - self.at) as usize, 0);
                self.file.seek(SeekFrom::Start(self.at))?;
                self.file.read_exact(&mut self.piece)?;
            }
            let before = &self.piece[..(end - self.at) as usize];
            if let Some(found) = before.iter().rposition(|byte| *byte == b'\n') {
                return Ok(self.at + found as u64 + 1);
            }
            end = self.at;
        }
        Ok(0)
    }
}
