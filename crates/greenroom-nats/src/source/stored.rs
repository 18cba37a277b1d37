//! A message as its stream has it.
//!
//! The client accepts only messages with valid headers and subject, but a server stores any. In the
//! server's answer to a read request, both are encoded.

use async_nats::{
    datetime::DateTime,
    jetstream::{message::StreamMessage, stream::RawMessage},
};

use crate::connection::because;

/// The server's code for a message that is not there.
const NOT_FOUND: &str = "\"err_code\":10037";

/// Replaces bytes that are not UTF-8.
const NO_UTF_8: &str = "\\ufffd";

/// Blanks that JSON cannot contain unescaped.
const BLANKS: [&str; 5] = ["\\u000b", "\\f", "\\u000c", "\\u2028", "\\u2029"];

/// The answer of a stream that was asked for a message.
#[derive(Debug)]
pub(super) struct Stored<'a> {
    pub(super) position: u64,
    /// As JSON has it.
    subject: &'a str,
    /// In base64, as the payload is.
    headers: Option<&'a str>,
    payload: &'a str,
}

impl<'a> Stored<'a> {
    /// Reads the answer. `None`: there is no such message.
    ///
    /// # Errors
    /// It is no answer of this kind.
    pub(super) fn read(answer: &'a str) -> Result<Option<Self>, String> {
        if answer.contains(NOT_FOUND) {
            return Ok(None);
        }
        let read = || {
            let (_, behind) = answer.split_once("\"seq\":")?;
            let digits = behind.find(|c: char| !c.is_ascii_digit())?;
            Some(Self {
                position: behind[..digits].parse().ok().filter(|position| *position < u64::MAX)?,
                subject: text(answer, "subject")?,
                headers: text(answer, "hdrs"),
                payload: text(answer, "data").unwrap_or_default(),
            })
        };
        read().map(Some).ok_or_else(|| answer.chars().take(200).collect())
    }

    /// Its payload, and why the client cannot read the rest; `None` if it can.
    pub(super) fn unreadable(&self, stored: DateTime) -> Option<(Vec<u8>, String)> {
        let of = |payload: &str, headers: Option<&str>| {
            StreamMessage::try_from(RawMessage {
                subject: String::new(),
                sequence: self.position,
                payload: payload.to_owned(),
                headers: headers.map(str::to_owned),
                time: stored,
            })
        };
        let bytes = |text: &str| of(text, None).map(|message| message.payload.to_vec());
        let headers = || bytes(self.headers.unwrap_or_default()).unwrap_or_default();
        let why = match of(self.payload, self.headers) {
            Err(error) => format!("the headers cannot be read: {}", because(&*error)),
            Ok(_) if has_return(&String::from_utf8_lossy(&headers())) => {
                "a header has a carriage return".to_owned()
            }
            Ok(_) if self.is_subject_bad() => "the subject has blanks or is not UTF-8".to_owned(),
            Ok(_) => return None,
        };
        Some((bytes(self.payload).unwrap_or_default(), why))
    }

    /// Only of a message with headers, the client takes each blank for the end of the subject.
    fn is_subject_bad(&self) -> bool {
        // A character after a backslash in the subject itself is literal.
        let subject = self.subject.replace(r"\\", "");
        let has_blanks = || {
            subject.contains(char::is_whitespace) || BLANKS.iter().any(|one| subject.contains(one))
        };
        subject.contains(NO_UTF_8) || (self.headers.is_some() && has_blanks())
    }
}

/// Whether the value of a header has a carriage return. If it continues on further lines, the
/// client leaves it there, and panics at it; when reading stored messages, it trims each line.
fn has_return(headers: &str) -> bool {
    let mut lines = headers.lines().skip(1).peekable();
    while let Some(line) = lines.next() {
        let Some((_, value)) = line.split_once(':') else { continue };
        let mut value = value.trim_start().to_owned();
        while let Some(more) = lines.next_if(|line| line.starts_with(char::is_whitespace)) {
            value.push_str(more);
        }
        if value.trim_end().contains('\r') {
            return true;
        }
    }
    false
}

/// A text of the answer. No other has quotes before its name: inside of a text, they are escaped.
fn text<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let (_, behind) = answer.split_once(&format!("\"{name}\":\""))?;
    let mut is_escaped = false;
    let end = behind.find(|c| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    })?;
    Some(&behind[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(subject: &str, headers: &str) -> String {
        format!(
            r#"{{"type":"t","message":{{"subject":"{subject}","seq":7,{headers}"data":"aGk=","time":"x"}}}}"#
        )
    }

    fn unreadable(answer: &str) -> Option<(Vec<u8>, String)> {
        let stored = Stored::read(answer).unwrap().unwrap();
        assert_eq!(stored.position, 7);
        stored.unreadable(async_nats::datetime::from_nanos(0).unwrap())
    }

    #[test]
    fn z12_what_the_client_cannot_read_is_known() {
        // NATS/1.0, and a line without a colon.
        let broken = r#""hdrs":"TkFUUy8xLjANCm5vIGNvbG9uDQoNCg==","#;
        // NATS/1.0, and `a: b`.
        let right = r#""hdrs":"TkFUUy8xLjANCmE6IGINCg0K","#;
        let (payload, why) = unreadable(&answer("a.b", broken)).unwrap();
        assert!(payload == b"hi" && why.starts_with("the headers cannot be read: "), "{why}");
        for bad in ["a\u{a0}b", r"a\ufffd", r"a\fb", r"a\u000cb"] {
            let (payload, why) = unreadable(&answer(bad, right)).unwrap();
            assert!(payload == b"hi" && why.contains("subject"), "{why}");
        }
        assert!(unreadable(&answer(r"a\ufffd", "")).is_some());
        for good in ["a\u{a0}b", r"a\u2028b", r"a\fb"] {
            assert_eq!(unreadable(&answer(good, "")), None, "{good}, without headers");
        }
        let quoted = r#"\"seq\":9,\"hdrs\":\"x\"\\"#;
        for good in ["a.b", "a.\u{fffd}", quoted, r"\u003c", r"a\\fb", r"a\\ufffd"] {
            assert_eq!(unreadable(&answer(good, right)), None, "{good}");
            assert_eq!(unreadable(&answer(good, "")), None, "{good}");
        }
    }

    #[test]
    fn z12_a_carriage_return_is_bad_within_the_value_of_a_header_alone() {
        for (headers, is_bad) in [
            ("a: b\r\r\n c", true),
            ("a: b\r\n \rc", true),
            ("x: y\r\na: b\n c\r\r\n\td", true),
            ("a: b\r\n c\r\r\nd: \re", false),
            ("a:\r\r\n b", false),
        ] {
            assert_eq!(
                has_return(&format!("NATS/1.0\r\n{headers}\r\n\r\n")),
                is_bad,
                "{headers:?}"
            );
        }
        // NATS/1.0, and the first of them.
        let headers = r#""hdrs":"TkFUUy8xLjANCmE6IGINDQogYw0KDQo=","#;
        let (payload, why) = unreadable(&answer("a", headers)).unwrap();
        assert!(payload == b"hi" && why.contains("carriage return"), "{why}");
    }

    #[test]
    fn z12_what_is_not_there_is_none_and_what_is_no_answer_is_said() {
        let none = r#"{"error":{"code":404,"err_code":10037,"description":"no message found"}}"#;
        assert!(Stored::read(none).unwrap().is_none());
        for other in ["", "{}", r#"{"error":{"code":503}}"#, r#"{"seq":7"#, r#"{"seq":x}"#] {
            assert_eq!(Stored::read(other).unwrap_err(), other);
        }
    }
}
