//! Events to JSON, always on one line.

use std::io::Write;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::de::IgnoredAny;

use super::{
    media_type,
    model::{Data, Event, ExtensionValue},
};
use crate::byte_order_mark::skip_byte_order_mark;

/// The value of an extension attribute that is added while an event is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtraValue<'a> {
    /// A text.
    Text(&'a str),
    /// A whole number.
    Integer(i64),
}

impl Event {
    /// Appends the event in the CloudEvents JSON format, on one line,
    /// without a line feed at its end.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        self.write_json_with(&[], out);
    }

    /// Like [`write_json`](Self::write_json), with these extension attributes added; they replace
    /// the event's own of the same name. Names are written unchanged: lower-case letters and
    /// digits.
    pub fn write_json_with(&self, extra: &[(&str, ExtraValue<'_>)], out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"specversion":"1.0""#);
        self.write_attributes(out);
        for (name, value) in self.extensions() {
            if !extra.iter().any(|(added, _)| *added == name) {
                write_name(name, out);
                write_extension(value, out);
            }
        }
        for (name, value) in extra {
            write_name(name, out);
            match value {
                ExtraValue::Text(text) => write_text(text, out),
                ExtraValue::Integer(number) => write_integer(*number, out),
            }
        }
        self.write_data(out);
        out.push(b'}');
    }

    /// Appends a JSON array of events, on one line, in the format of
    /// [`parse_batch`](Self::parse_batch).
    pub fn write_batch<'a>(events: impl IntoIterator<Item = &'a Self>, out: &mut Vec<u8>) {
        out.push(b'[');
        for (at, event) in events.into_iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            event.write_json(out);
        }
        out.push(b']');
    }

    fn write_attributes(&self, out: &mut Vec<u8>) {
        let attributes = [
            ("id", Some(self.id())),
            ("source", Some(self.source())),
            ("type", Some(self.ty())),
            ("subject", self.subject().map(|subject| &**subject)),
            ("time", self.time()),
            ("datacontenttype", self.datacontenttype()),
            ("dataschema", self.dataschema()),
        ];
        for (name, text) in attributes {
            if let Some(text) = text {
                write_name(name, out);
                write_text(text, out);
            }
        }
    }

    fn write_data(&self, out: &mut Vec<u8>) {
        match self.data() {
            Data::None => {}
            Data::Json(raw) => {
                write_name("data", out);
                out.extend_from_slice(raw.get().as_bytes());
            }
            Data::Binary(bytes) => write_binary(bytes, out),
            Data::Payload(bytes) => self.write_payload(bytes, out),
        }
    }

    /// In the form that the content type names, if the bytes conform to it.
    fn write_payload(&self, bytes: &[u8], out: &mut Vec<u8>) {
        let Ok(text) = std::str::from_utf8(bytes) else { return write_binary(bytes, out) };
        let json = skip_byte_order_mark(bytes);
        let is_json = || serde_json::from_slice::<IgnoredAny>(json).is_ok();
        let media = self.datacontenttype().map(media_type::normal);
        if media.as_deref().is_none_or(media_type::is_json) && is_json() {
            write_name("data", out);
            // White space around it is no part of the data. Between its tokens, where alone a line
            // feed can stand, a space means the same.
            out.extend(
                json.trim_ascii().iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte }),
            );
        } else if media.is_some_and(|media| media.starts_with("text/")) {
            write_name("data", out);
            write_text(text, out);
        } else {
            write_binary(bytes, out);
        }
    }
}

fn write_binary(bytes: &[u8], out: &mut Vec<u8>) {
    write_name("data_base64", out);
    write_base64(bytes, out);
}

fn write_name(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

fn write_extension(value: &ExtensionValue, out: &mut Vec<u8>) {
    match value {
        ExtensionValue::Text(text) => write_text(text, out),
        ExtensionValue::Bool(true) => out.extend_from_slice(b"true"),
        ExtensionValue::Bool(false) => out.extend_from_slice(b"false"),
        ExtensionValue::Integer(number) => write_integer(*number, out),
    }
}

/// Encoded at once: a multiple of three, so that only the last piece is padded, and small compared
/// with a large event.
const BASE64_PIECE: usize = 48 * 1024;

/// Appends bytes as a JSON string of standard base64.
fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    write_bare_base64(bytes, out);
    out.push(b'"');
}

/// Like [`write_base64`], without the quotes.
pub(crate) fn write_bare_base64(bytes: &[u8], out: &mut Vec<u8>) {
    let mut encoded = String::new();
    for piece in bytes.chunks(BASE64_PIECE) {
        encoded.clear();
        BASE64_STANDARD.encode_string(piece, &mut encoded);
        out.extend_from_slice(encoded.as_bytes());
    }
}

/// Appends a whole number.
pub(crate) fn write_integer(number: impl std::fmt::Display, out: &mut Vec<u8>) {
    // Writing to a vector cannot fail.
    let _ = write!(out, "{number}");
}

/// Appends a JSON string. Runs of bytes that need no escape are copied at once.
pub(crate) fn write_text(text: &str, out: &mut Vec<u8>) {
    let mut rest = text.as_bytes();
    out.reserve(rest.len() + 2);
    out.push(b'"');
    while let Some(at) = first_escaped(rest) {
        out.extend_from_slice(&rest[..at]);
        write_escape(rest[at], out);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// The position of the first byte that JSON requires to be escaped. Eight are checked at once: an
/// event may consist mostly of one text.
fn first_escaped(bytes: &[u8]) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let found = escaped_in(u64::from_le_bytes(*word));
        if found != 0 {
            return Some(8 * at + found.trailing_zeros() as usize / 8);
        }
    }
    let is_escaped = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
    let behind = bytes.len() - rest.len();
    rest.iter().position(is_escaped).map(|at| behind + at)
}

/// The high bit of each byte that is below a space, a quote or a backslash. Of several, the lowest
/// is exact: a borrow goes to higher bytes only.
fn escaped_in(word: u64) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (below(word, 0x20) | equal(b'"') | equal(b'\\')) & HIGH
}

fn write_escape(byte: u8, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match byte {
        b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        _ => {
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn e01_every_text_is_written_as_json_reads_it(text in r#"(\PC|["\\\x00-\x20\x7f]){0,40}"#) {
            let mut out = Vec::new();
            write_text(&text, &mut out);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }
    }
}
