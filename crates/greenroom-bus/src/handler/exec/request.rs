//! The request to a worker process: one line of JSON for each attempt.

use std::io::Write;

use crate::event::Event;

/// The Unicode line and paragraph separators share these first two bytes of UTF-8;
/// the third tells them apart.
const SEPARATOR: [u8; 2] = [0xE2, 0x80];

/// Appends the beginning of a line. The token comes first, so that a worker without a JSON parser
/// can cut it out.
pub(super) fn begin(token: u64, line: &mut Vec<u8>) {
    // Writing into memory cannot fail.
    let _ = write!(line, "{{\"token\":\"{token}\",");
}

/// Writes the rest of the line of this attempt into `line`, which is emptied first.
///
/// The data keeps its original bytes, except for those that a worker's runtime may take for the end
/// of a line.
pub(super) fn write_rest(attempt: u32, fence: Option<u64>, event: &Event, line: &mut Vec<u8>) {
    line.clear();
    let _ = write!(line, "\"attempt\":{attempt},");
    if let Some(fence) = fence {
        let _ = write!(line, "\"greenroom-fence\":{fence},");
    }
    line.extend_from_slice(b"\"event\":");
    event.write_json(line);
    join_lines(line);
    escape_separators(line);
    line.extend_from_slice(b"}\n");
}

/// JSON has raw line breaks between tokens only, where a space means the same. Events have no line
/// feeds, but may have carriage returns, which Python treats as the end of a line.
fn join_lines(line: &mut [u8]) {
    for byte in line {
        if matches!(*byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

/// Node's readline ends a line at U+2028 and U+2029, too. JSON has them within strings only, where
/// their escapes mean the same.
fn escape_separators(line: &mut Vec<u8>) {
    if !line.contains(&SEPARATOR[0]) {
        return;
    }
    let mut at = 0;
    while let Some(found) = line[at..].windows(3).position(is_separator) {
        at += found;
        let escape = if line[at + 2] == 0xA8 { br"\u2028" } else { br"\u2029" };
        line.splice(at..at + 3, escape.iter().copied());
        at += escape.len();
    }
}

fn is_separator(bytes: &[u8]) -> bool {
    bytes[..2] == SEPARATOR && matches!(bytes[2], 0xA8 | 0xA9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::samples;

    fn whole(token: u64, attempt: u32, event: &Event) -> String {
        let (mut line, mut rest) = (Vec::new(), b"left over".to_vec());
        begin(token, &mut line);
        write_rest(attempt, None, event, &mut rest);
        String::from_utf8([line, rest].concat()).unwrap()
    }

    #[test]
    fn u05_the_token_comes_first_and_the_event_stays_on_its_line() {
        let event = samples::event("a", "{\n \"text\": \"two\\nlines\"\r\n}");
        let text = whole(17, 2, &event);
        assert!(text.starts_with("{\"token\":\"17\",\"attempt\":2,\"event\":{"), "{text}");
        assert!(text.ends_with("}}\n"), "{text}");
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        let whole: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(whole["event"]["data"]["text"], "two\nlines");
    }

    #[test]
    fn d12_a_worker_is_told_the_fence_of_an_attempt() {
        let mut line = Vec::new();
        write_rest(2, Some(1_764_278_460_000), &samples::event("a", "1"), &mut line);
        let text = String::from_utf8(line).unwrap();
        assert!(text.starts_with("\"attempt\":2,\"greenroom-fence\":1764278460000,\"event\":{"));
    }

    #[test]
    fn u05_unicode_line_separators_are_escaped() {
        let event = samples::event("a", "{\"text\":\"€ one\u{2028}two\u{2029}\"}");
        let text = whole(1, 1, &event);
        assert!(text.contains(r"€ one\u2028two\u2029"), "{text}");
        let whole: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(whole["event"]["data"]["text"], "€ one\u{2028}two\u{2029}");
    }
}
