//! The lines of a file, one after the other, however long they are: nothing but a buffer is held.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
};

/// A file that is read line by line.
pub(super) struct LetterLines {
    file: BufReader<File>,
    /// Where the next line begins.
    offset: u64,
}

/// One line, read as far as it was asked for.
pub(super) struct LetterLine<'a> {
    lines: &'a mut LetterLines,
    start: u64,
    /// Its end was read.
    ended: bool,
}

impl LetterLines {
    pub(super) fn of(file: File) -> Self {
        Self { file: BufReader::with_capacity(64 << 10, file), offset: 0 }
    }

    pub(super) fn next(&mut self) -> LetterLine<'_> {
        LetterLine { start: self.offset, lines: self, ended: false }
    }
}

impl LetterLine<'_> {
    /// Where it begins in the file.
    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// Goes to its end. Returns its length in bytes; `None` where its end is not written yet.
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
