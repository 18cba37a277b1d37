//! JSON with every long text cut short, so that a decoder needs memory only for the shown part.

use std::io::{self, BufRead, Read, Write};

/// The kept part of a text, in bytes: room for a long error.
const KEPT: u64 = 1_000;

/// Passes JSON through, and shortens its texts.
pub(super) struct Shortened<R> {
    source: R,
    out: Vec<u8>,
    /// How much of `out` was read.
    taken: usize,
    state: State,
}

enum State {
    Outside,
    Inside(Text),
}

#[derive(Default)]
struct Text {
    length: u64,
    /// Whether the rest is cut off.
    cut: bool,
    escape: Escape,
    /// Whether the last escape was the first half of a character, which must not be split.
    half: bool,
}

#[derive(Default)]
enum Escape {
    #[default]
    None,
    Begun,
    /// The number of missing hexadecimal digits; the value of those before.
    Digits(u8, u32),
}

impl<R: BufRead> Shortened<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, out: Vec::new(), taken: 0, state: State::Outside }
    }
}

impl<R: BufRead> Read for Shortened<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.out.len() {
            self.out.clear();
            self.taken = 0;
            let found = self.source.fill_buf()?;
            if found.is_empty() {
                return Ok(0);
            }
            for byte in found {
                self.state.pass(*byte, &mut self.out);
            }
            let read = found.len();
            self.source.consume(read);
        }
        let read = (&self.out[self.taken..]).read(into)?;
        self.taken += read;
        Ok(read)
    }
}

impl State {
    fn pass(&mut self, byte: u8, out: &mut Vec<u8>) {
        match self {
            Self::Outside => {
                out.push(byte);
                if byte == b'"' {
                    *self = Self::Inside(Text::default());
                }
            }
            Self::Inside(text) if byte == b'"' && matches!(text.escape, Escape::None) => {
                if text.cut {
                    // Writing into a Vec cannot fail.
                    let _ = write!(out, "… ({} bytes)", text.length);
                }
                out.push(byte);
                *self = Self::Outside;
            }
            Self::Inside(text) => text.pass(byte, out),
        }
    }
}

impl Text {
    fn pass(&mut self, byte: u8, out: &mut Vec<u8>) {
        let begins = matches!(self.escape, Escape::None) && byte & 0xC0 != 0x80;
        self.cut |= begins && !self.half && self.length >= KEPT;
        self.length += 1;
        self.advance(byte, begins);
        if !self.cut {
            out.push(byte);
        }
    }

    fn advance(&mut self, byte: u8, begins: bool) {
        let digit = || (byte as char).to_digit(16).unwrap_or_default();
        self.escape = match self.escape {
            Escape::None if byte == b'\\' => Escape::Begun,
            Escape::None => {
                self.half &= !begins;
                Escape::None
            }
            Escape::Begun if byte == b'u' => Escape::Digits(4, 0),
            Escape::Begun => {
                self.half = false;
                Escape::None
            }
            Escape::Digits(1, value) => {
                self.half = (0xD800..0xDC00).contains(&(value << 4 | digit()));
                Escape::None
            }
            Escape::Digits(missing, value) => Escape::Digits(missing - 1, value << 4 | digit()),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use serde_json::Value;

    use super::*;

    fn shortened(json: &str, buffer: usize) -> Value {
        let source = BufReader::with_capacity(buffer, json.as_bytes());
        serde_json::from_reader(Shortened::new(source)).unwrap()
    }

    #[test]
    fn short_texts_are_as_they_were() {
        let json = r#"{"a":"b \" \\ \n \u00e9 ä","c":[1,null,""]}"#;
        for buffer in [1, 2, 7, 64] {
            let whole: Value = serde_json::from_str(json).unwrap();
            assert_eq!(shortened(json, buffer), whole);
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters_and_say_how_long_they_were() {
        for unit in ["x", "ä", "€", "😀", r"\n", r#"\""#, r"\\", r"\u00e9", r"\ud83d\ude00"] {
            for before in ["", "a", "ab", "abc", "abcd", "abcde"] {
                let text = format!("{before}{}", unit.repeat(1_000));
                let found = shortened(&format!("[\"{text}\", 1]"), 64);
                let found = found[0].as_str().unwrap();
                let whole: String = serde_json::from_str(&format!("\"{text}\"")).unwrap();
                let (start, said) = found.split_once('…').unwrap_or((found, ""));
                assert!(whole.starts_with(start), "{unit}");
                if text.len() > 1_020 {
                    assert_eq!(said, format!(" ({} bytes)", text.len()), "{unit}");
                    assert!(found.len() < 1_040, "{unit}: {}", found.len());
                }
            }
        }
    }
}
