//! Letters as records.

use std::{borrow::Cow, sync::Arc};

use greenroom_bus::{dead_letter::DeadLetter, record::Mapping};
use rdkafka::{
    Message,
    error::RDKafkaErrorCode,
    message::{BorrowedMessage, Header, OwnedHeaders},
};
use tokio::sync::oneshot;

use crate::{
    decode::{self, CONTENT_TYPE},
    marks::{self, Form, Marks},
    place::Place,
};

/// What the broker says of a letter.
pub(super) type LetterResult = Result<(), RDKafkaErrorCode>;

/// A letter that is under way, with its answer.
pub(super) type PendingLetter = oneshot::Receiver<LetterResult>;

/// A letter on its way.
pub(super) struct Letter {
    /// Without its event once there is a record of it.
    pub(super) letter: DeadLetter,
    /// Its record, if that is one of Kafka's.
    pub(super) place: Option<Place>,
    /// The published content, once it is known.
    pub(super) content: Option<Content>,
    /// While the brokers owe an answer.
    pub(super) under_way: Option<PendingLetter>,
}

/// A record of the topic for letters, but for its headers that say why.
pub(super) struct Content {
    form: Form,
    pub(super) key: Option<Vec<u8>>,
    pub(super) value: Option<Vec<u8>>,
    headers: OwnedHeaders,
    marks: Marks,
}

impl Content {
    pub(super) fn headers(&self) -> OwnedHeaders {
        self.marks.behind(self.headers.clone(), self.form)
    }

    pub(super) fn bytes(&self) -> usize {
        self.value.as_ref().map_or(0, Vec::len)
    }
}

impl Letter {
    pub(super) fn new(letter: DeadLetter) -> Self {
        let place = Place::of_source(&letter.source);
        Self { letter, place, content: None, under_way: None }
    }

    /// Its place in the logs of all inputs.
    pub(super) fn in_its_log(&self) -> (Arc<str>, Option<Place>, u64) {
        (self.letter.input.clone(), self.place.clone(), self.letter.position)
    }

    /// Whether it is about this record, that is, the record that was taken. In a recreated topic,
    /// another record is at its offset.
    pub(super) fn is_of(&self, record: &BorrowedMessage<'_>, records: Option<&Mapping>) -> bool {
        match (decode::taken(records, record).event, &self.letter.event, &self.letter.raw) {
            (Ok(read), Some(taken), _) => read == *taken,
            (Err(read), _, Some(taken)) => read.raw == *taken,
            _ => false,
        }
    }

    /// It is the record that it is about.
    pub(super) fn is_record(&mut self, record: &BorrowedMessage<'_>) {
        self.content = Some(Content {
            form: Form::Record,
            key: record.key().map(<[u8]>::to_vec),
            value: record.payload().map(<[u8]>::to_vec),
            headers: record.headers().map_or_else(OwnedHeaders::new, |headers| headers.detach()),
            marks: self.marks(self.letter.rejected_json()),
        });
        // The published content includes all of it.
        (self.letter.event, self.letter.raw) = (None, None);
        self.letter.rejected.clear();
    }

    /// It is JSON, because there is no record, or that cannot be read again.
    pub(super) fn is_json(&mut self, unread: Option<&str>) {
        let mut json = Vec::new();
        self.letter.write_json(&mut json);
        let mut marks = self.marks(None);
        if let Some(why) = unread {
            marks = marks.with("greenroom_unread", why);
        }
        let content_type = Header { key: CONTENT_TYPE, value: Some("application/json") };
        self.content = Some(Content {
            form: Form::Json,
            key: self.letter.key.as_ref().map(|key| key.as_bytes().to_vec()),
            value: Some(json),
            headers: OwnedHeaders::new().insert(content_type),
            marks,
        });
        (self.letter.event, self.letter.raw) = (None, None);
        self.letter.rejected.clear();
    }

    fn marks(&self, rejected: Option<String>) -> Marks {
        let letter = &self.letter;
        let [first_at, last_at] = letter.moments();
        let position = letter.position.to_string();
        let marks = match &self.place {
            Some(Place { topic, partition }) => Marks::default()
                .with(marks::TOPIC, topic)
                .with(marks::PARTITION, &partition.to_string())
                .with(marks::OFFSET, &position),
            None => Marks::default()
                .with("greenroom_source", &letter.source)
                .with("greenroom_position", &position),
        };
        let known = [
            (marks::REASON, Some(letter.reason.as_str())),
            ("greenroom_error", Some(&*letter.error)),
            ("greenroom_attempts", Some(&*letter.attempts.to_string())),
            (marks::INPUT, Some(&*letter.input)),
            ("greenroom_pool", letter.pool.as_deref()),
            (marks::HANDLER, letter.handler.as_deref()),
            ("greenroom_share", letter.share.as_deref()),
            ("greenroom_trace_id", letter.trace_id()),
            ("greenroom_first_at", Some(&*first_at)),
            ("greenroom_last_at", Some(&*last_at)),
        ];
        let known = known.into_iter().filter_map(|(name, text)| Some((name, text?)));
        let marks = known.fold(marks, |marks, (name, text)| marks.with(name, text));
        match rejected {
            Some(json) => marks.with_whole("greenroom_rejected_by", json),
            None => marks,
        }
    }

    /// Its name in errors.
    pub(super) fn described(&self) -> Cow<'_, str> {
        let position = self.letter.position;
        match &self.place {
            Some(place) => format!("the letter of {place} at offset {position}").into(),
            None => format!("the letter of {} at {position}", self.letter.source).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use greenroom_bus::{
        dead_letter::{OutputRejection, Reason},
        event::{Event, TRACEPARENT},
        settlement::Ack,
    };

    use super::*;

    fn letter(source: &str) -> Letter {
        let letter = DeadLetter {
            event: None,
            raw: Some(b"{ no".to_vec()),
            reason: Reason::OutputRejected,
            error: format!("line\nbreak {}", "x".repeat(2_000)),
            attempts: 3,
            first_at: UNIX_EPOCH,
            last_at: UNIX_EPOCH + Duration::from_millis(5),
            input: "in".into(),
            source: source.into(),
            position: 17,
            pool: Some("p".into()),
            handler: None,
            key: Some("k".into()),
            share: Some("acme".into()),
            replayed: None,
            rejected: vec![OutputRejection {
                output: "out".into(),
                event: None,
                error: "too large".into(),
            }],
            ack: Ack::detached(),
        };
        Letter::new(letter)
    }

    fn marks(mut letter: Letter) -> (Content, Marks) {
        letter.is_json(Some("it is gone"));
        let content = letter.content.unwrap();
        let read = marks::read(content.headers().as_borrowed()).unwrap().unwrap();
        assert_eq!(read.form, Form::Json);
        (content, read.marks)
    }

    #[test]
    fn d06_the_headers_of_a_letter_say_where_its_record_was_and_why_it_is_here() {
        let (content, marks) = marks(letter("kafka:orders/3"));
        let of = |name: &str| marks.get(&format!("greenroom_{name}"));
        assert_eq!(["topic", "partition", "offset"].map(of), ["orders", "3", "17"].map(Some));
        assert_eq!([of("reason"), of("attempts")], [Some("output_rejected"), Some("3")]);
        assert_eq!([of("input"), of("pool"), of("handler")], [Some("in"), Some("p"), None]);
        assert_eq!(of("last_at"), Some("1970-01-01T00:00:00.005Z"));
        assert_eq!([of("source"), of("unread")], [None, Some("it is gone")]);
        let error = of("error").unwrap();
        assert!(error.starts_with("line\nbreak x") && error.len() == 512, "{error}");
        let json = String::from_utf8(content.value.unwrap()).unwrap();
        assert!(
            json.contains(r#""raw_base64":"eyBubw==""#) && json.contains("too large"),
            "{json}"
        );
        assert_eq!(content.key.as_deref(), Some(&b"k"[..]));
    }

    #[test]
    fn o06_the_headers_of_a_letter_name_the_trace_of_its_event() {
        let trace_id = |traceparent: &str| {
            let mut letter = letter("kafka:orders/3");
            let event = Event::builder("1", "/s", "t").extension(TRACEPARENT, traceparent);
            letter.letter.event = Some(event.build().unwrap());
            marks(letter).1.get("greenroom_trace_id").map(str::to_owned)
        };
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(trace_id(parent).as_deref(), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
        assert_eq!(trace_id("00-ab-cd-01"), None);
    }

    #[test]
    fn d06_a_letter_of_another_source_says_which() {
        let (_, marks) = marks(letter("file:orders.ndjson"));
        assert_eq!(marks.get("greenroom_source"), Some("file:orders.ndjson"));
        assert_eq!(marks.get("greenroom_position"), Some("17"));
        assert_eq!(marks.get(marks::TOPIC), None);
    }
}
