//! JSON without control characters for a terminal.
//!
//! JSON escapes control characters below U+0020. A terminal also interprets U+007F to U+009F: here
//! they are written as `\u009b`, which is the same text to a reader of JSON.

use std::io::{self, Write};

/// Text that no terminal interprets.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = Vec::new();
    // Writing into a Vec cannot fail.
    let _ = Escaped::new(&mut out).write_all(text.as_bytes());
    String::from_utf8_lossy(&out).into_owned()
}

/// Passes JSON on, and escapes characters that a terminal would interpret.
pub(crate) struct Escaped<W> {
    out: W,
    /// Whether the last byte was the first of such a character.
    half: bool,
}

impl<W: Write> Escaped<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, half: false }
    }
}

impl<W: Write> Write for Escaped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut escaped = Vec::with_capacity(bytes.len());
        for byte in bytes {
            match (std::mem::take(&mut self.half), *byte) {
                (true, second @ 0x80..=0x9f) => {
                    escaped.extend(format!("\\u00{second:02x}").bytes())
                }
                (half, byte) => {
                    if half {
                        escaped.push(0xc2);
                    }
                    match byte {
                        0xc2 => self.half = true,
                        0x7f => escaped.extend(b"\\u007f"),
                        byte => escaped.push(byte),
                    }
                }
            }
        }
        self.out.write_all(&escaped)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A text for people, in which nothing controls a terminal, and nothing is hidden.
pub(crate) fn printable(text: &str) -> String {
    greenroom_bus::printable::printable(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c04_no_letter_steers_a_terminal() {
        let shown = r"a\u{1b}[31mb\u{9b}c\u{202e}d\n";
        assert_eq!(printable("a\u{1b}[31mb\u{9b}c\u{202e}d\n"), shown);
        let text = serde_json::to_string("é\u{9b}31m\u{7f}\u{80}£\u{1b}").unwrap();
        let mut out = Vec::new();
        let mut escaped = Escaped::new(&mut out);
        // Writers may split characters.
        text.as_bytes().chunks(1).for_each(|piece| escaped.write_all(piece).unwrap());
        let out = String::from_utf8(out).unwrap();
        assert_eq!(out, "\"é\\u009b31m\\u007f\\u0080£\\u001b\"");
        let read: String = serde_json::from_str(&out).unwrap();
        assert_eq!(read, "é\u{9b}31m\u{7f}\u{80}£\u{1b}");
    }
}
