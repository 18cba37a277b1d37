//! What greenroom writes: one line of JSON for each attempt.

use std::io::Write;

use crate::event::Event;

/// Writes the line of this attempt into `line`, which is emptied first.
///
/// The token comes first, so that a worker without a JSON parser can cut it out. Data keeps the bytes in which it
/// arrived, line breaks between its tokens included; those become spaces, for here a line end ends the event.
pub(super) fn write(token: u64, attempt: u32, event: &Event, line: &mut Vec<u8>) {
    line.clear();
    // Writing into memory cannot fail.
    let _ = write!(line, "{{\"token\":\"{token}\",\"attempt\":{attempt},\"event\":");
    let start = line.len();
    event.write_json(line);
    // JSON has raw line breaks between tokens only: within strings they are escaped.
    for byte in &mut line[start..] {
        if matches!(*byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    line.extend_from_slice(b"}\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::samples;

    #[test]
    fn u05_the_token_comes_first_and_the_event_stays_on_its_line() {
        let event = samples::event("a", "{\n \"text\": \"two\\nlines\"\r\n}");
        let mut line = b"left over".to_vec();
        write(17, 2, &event, &mut line);
        let text = String::from_utf8(line).unwrap();
        assert!(text.starts_with("{\"token\":\"17\",\"attempt\":2,\"event\":{"), "{text}");
        assert!(text.ends_with("}}\n"), "{text}");
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        let whole: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(whole["event"]["data"]["text"], "two\nlines");
    }
}
