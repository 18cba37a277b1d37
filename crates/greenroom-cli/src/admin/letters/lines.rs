//! The lines of a file, in either direction: one line is in memory at a time.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
};

/// Bytes to read at once.
const PIECE: u64 = 64 << 10;

/// The number of a line, and its text. Lines are numbered by their offset in the file, so that one
/// can be found without reading earlier ones. The first is number 1.
pub(super) type Line<'a> = (u64, &'a [u8]);

/// A file that is read line by line.
pub(super) struct LetterLines {
    file: BufReader<File>,
    /// The offset of the next line.
    start: u64,
    /// The text of the last line that was read.
    line: Vec<u8>,
}

impl LetterLines {
    /// Starts after the line of this number; 0 is before the first line.
    pub(super) fn start_behind(mut file: File, number: u64) -> io::Result<Self> {
        let start = number.saturating_sub(1).min(file.metadata()?.len());
        file.seek(SeekFrom::Start(start))?;
        let mut lines = Self { file: BufReader::new(file), start, line: Vec::new() };
        if number > 0 {
            lines.next()?;
        }
        Ok(lines)
    }

    /// The next line; `None` if its end is not written yet.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        let number = self.start + 1;
        self.line.clear();
        self.start += self.file.read_until(b'\n', &mut self.line)? as u64;
        Ok(self.line.strip_suffix(b"\n").map(|text| (number, text)))
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

    /// The previous line.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        let Some(end) = self.end.checked_sub(1) else { return Ok(None) };
        self.end = self.line_start(end)?;
        if self.end < self.at || end > self.at + self.piece.len() as u64 {
            self.load(self.end, end)?;
        }
        let text = (self.end - self.at) as usize..(end - self.at) as usize;
        Ok(Some((self.end + 1, &self.piece[text])))
    }

    /// The offset after the last line end before `end`.
    fn line_start(&mut self, mut end: u64) -> io::Result<u64> {
        while end > 0 {
            if end <= self.at {
                self.load(end.saturating_sub(PIECE), end)?;
            }
            let before = &self.piece[..(end - self.at) as usize];
            if let Some(found) = before.iter().rposition(|byte| *byte == b'\n') {
                return Ok(self.at + found as u64 + 1);
            }
            end = self.at;
        }
        Ok(0)
    }

    fn load(&mut self, start: u64, end: u64) -> io::Result<()> {
        self.at = start;
        self.piece.resize((end - start) as usize, 0);
        self.file.seek(SeekFrom::Start(start))?;
        self.file.read_exact(&mut self.piece)
    }
}
