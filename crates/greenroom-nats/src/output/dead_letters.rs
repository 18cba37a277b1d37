//! Dead letters to a subject (D06).

use std::{fmt, time::UNIX_EPOCH};

use async_nats::{HeaderMap, header::NATS_MESSAGE_ID};
use greenroom_bus::{
    BoxFuture,
    dead_letter::{DeadLetter, DeadLetterStore},
    event::http::encode,
    sink::{
        SinkError, Trouble,
        remote::{RemoteDriver, Requests},
    },
};

use super::{
    message::{CONTENT_TYPE, Message, insert},
    requests,
    target::NatsTarget,
};
use crate::options::{NatsLetters, NatsOutput};

/// This many bytes of an error are a header; all of it is in the letter.
const SHOWN: usize = 512;

/// Publishes each dead letter to a subject, as JSON with the fields of a line of a
/// [file](greenroom_bus::dead_letter::file::FileDeadLetterStore).
///
/// Fields for filtering are in headers as well, percent-encoded like those of CloudEvents:
/// `greenroom-reason`, `greenroom-error` (its beginning), `greenroom-source`
/// (`nats:STREAM/CONSUMER` for a [`NatsSource`](crate::source::NatsSource)), `greenroom-position`
/// (the message's number in that stream), `greenroom-attempts`, `greenroom-input`, `greenroom-pool`
/// and `greenroom-handler` if it reached them, `greenroom-trace-id` if its event is in a trace, and
/// `greenroom-first-at` and `greenroom-last-at` (RFC 3339).
///
/// A letter is confirmed when the server has stored it, and until then its event stays unsettled.
/// Whatever the reason for a refusal, the letter waits: it is never given up. When dropped, the
/// store refuses all unstored letters.
pub struct NatsDeadLetters {
    requests: Requests<NatsTarget>,
}

impl NatsDeadLetters {
    /// Connects. Letters are published on the runtime that this is called on. The stream need not
    /// exist yet: letters wait until it does.
    ///
    /// # Errors
    /// The subject is a template, no server answers in the time that they give, or it refuses
    /// the credentials.
    ///
    /// # Cancel safety
    /// A dropped future has published nothing.
    pub async fn open(letters: &NatsLetters) -> Result<Self, SinkError> {
        let NatsLetters { subject, .. } = letters;
        if subject.wildcard().is_some() {
            let why = "a letter may have no event: write a subject without fields in braces";
            return Err(SinkError::new(format!("nats:{subject}"), why));
        }
        let NatsLetters { servers, subject, auth, tls, domain, connect_within } = letters.clone();
        let output = NatsOutput::new("", subject);
        let output = NatsOutput { servers, auth, tls, domain, connect_within, ..output };
        Ok(Self { requests: requests(output, true).await? })
    }
}

impl DeadLetterStore for NatsDeadLetters {
    fn describe(&self) -> String {
        self.requests.describe()
    }

    fn store(&self, letter: DeadLetter) {
        let subject = self.requests.remote().output.subject.to_string();
        self.requests.take(message(&letter, subject), letter.ack);
    }

    fn finish<'a>(&'a self) -> BoxFuture<'a, Result<(), SinkError>> {
        self.requests.finish();
        Box::pin(self.requests.room().ended())
    }

    fn failure(&self) -> Option<SinkError> {
        self.requests.room().failure()
    }

    fn trouble(&self) -> Option<Trouble> {
        self.requests.trouble()
    }
}

impl fmt::Debug for NatsDeadLetters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsDeadLetters").field("name", &self.describe()).finish_non_exhaustive()
    }
}

fn message(letter: &DeadLetter, subject: String) -> Result<Message, String> {
    let error = &letter.error[..letter.error.floor_char_boundary(SHOWN)];
    let [first_at, last_at] = letter.moments();
    let (position, attempts) = (letter.position.to_string(), letter.attempts.to_string());
    let known = [
        (CONTENT_TYPE, Some("application/json")),
        ("greenroom-reason", Some(letter.reason.as_str())),
        ("greenroom-error", Some(error)),
        ("greenroom-source", Some(&*letter.source)),
        ("greenroom-position", Some(&position)),
        ("greenroom-attempts", Some(&attempts)),
        ("greenroom-input", Some(&*letter.input)),
        ("greenroom-first-at", Some(&first_at)),
        ("greenroom-last-at", Some(&last_at)),
        ("greenroom-pool", letter.pool.as_deref()),
        ("greenroom-handler", letter.handler.as_deref()),
        ("greenroom-share", letter.share.as_deref()),
        ("greenroom-trace-id", letter.trace_id()),
    ];
    let mut headers = HeaderMap::new();
    for (name, value) in known {
        let Some(value) = value else { continue };
        insert(&mut headers, name, &encode(value))?;
    }
    // For a publish that is made again. An event that is handled again, and fails again, has
    // another letter.
    let given_up = letter.last_at.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let id = format!("{} {position} {given_up}", encode(&letter.source));
    insert(&mut headers, NATS_MESSAGE_ID.as_ref(), &id)?;
    let mut json = Vec::new();
    letter.write_json(&mut json);
    Ok(Message { subject, headers, payload: json.into() })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use greenroom_bus::{
        dead_letter::Reason,
        event::{Event, TRACEPARENT},
        settlement::Ack,
    };

    use super::*;

    fn letter() -> DeadLetter {
        DeadLetter {
            event: None,
            raw: Some(b"{ no".to_vec()),
            reason: Reason::Malformed,
            error: format!("line\nbreak {}", "x".repeat(2_000)),
            attempts: 0,
            first_at: UNIX_EPOCH,
            last_at: UNIX_EPOCH + Duration::from_nanos(5),
            input: "in".into(),
            source: "nats:ORDERS/shop".into(),
            position: 7,
            pool: None,
            handler: None,
            key: None,
            share: None,
            replayed: None,
            rejected: Vec::new(),
            ack: Ack::detached(),
        }
    }

    #[test]
    fn o06_a_letter_names_the_trace_of_its_event_in_a_header() {
        let trace_id = |traceparent: &str| {
            let event = Event::builder("1", "/s", "t").extension(TRACEPARENT, traceparent);
            let letter = DeadLetter { event: Some(event.build().unwrap()), ..letter() };
            let headers = message(&letter, "dead".to_owned()).unwrap().headers;
            headers.get("greenroom-trace-id").map(|value| value.as_str().to_owned())
        };
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(trace_id(parent).as_deref(), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
        assert_eq!(trace_id("00-ab-cd-01"), None);
    }

    #[test]
    fn d06_a_letter_says_in_headers_where_it_came_from() {
        let message = message(&letter(), "dead".to_owned()).unwrap();
        let header = |name: &str| message.headers.get(name).map(|value| value.as_str());
        assert_eq!(header("greenroom-source"), Some("nats:ORDERS/shop"));
        assert_eq!(header("greenroom-position"), Some("7"));
        assert_eq!(header("greenroom-reason"), Some("malformed"));
        assert_eq!([header("greenroom-input"), header("greenroom-handler")], [Some("in"), None]);
        assert_eq!(header("greenroom-first-at"), Some("1970-01-01T00:00:00.000Z"));
        assert_eq!(header("Nats-Msg-Id"), Some("nats:ORDERS/shop 7 5"));
        let error = header("greenroom-error").unwrap();
        assert!(error.starts_with("line%0Abreak%20x") && error.len() < 600, "{error}");
        let json = String::from_utf8(message.payload.to_vec()).unwrap();
        assert!(json.contains(r#""raw_base64":"eyBubw==""#) && json.contains(r#""position":7"#));
    }
}
