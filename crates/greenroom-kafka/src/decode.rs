//! Events from records, and records from events.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    str,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use greenroom_bus::{
    event::{Event, TraceHeaders},
    record::{Mapping, Record},
    source::{Malformed, Taken},
};
use rdkafka::{
    Timestamp,
    message::{BorrowedMessage, Headers, Message},
};

/// The prefix of the headers of an event in binary mode.
pub(crate) const PREFIX: &str = "ce_";
pub(crate) const CONTENT_TYPE: &str = "content-type";
/// The header in which a redrive names a record's first place. It stays with the record; ids
/// derived from the position use it.
pub(crate) const ORIGIN: &str = "greenroom_origin";
const STRUCTURED: &str = "application/cloudevents";

/// The item of a record. Its bytes are copied: the original buffer has up to some megabytes, which
/// one held record would keep.
///
/// Without a rule, it is an event by the Kafka binding of CloudEvents 1.0.2: with `ce_` headers in
/// binary mode, otherwise as JSON in the value. The key of a record becomes the extension
/// `partitionkey` of its event ([`with_partition_key`](Event::with_partition_key)), in place of the
/// event's own; by a rule (M05), unless that sets it. A tombstone is an event without data then.
pub(crate) fn taken(records: Option<&Mapping>, message: &BorrowedMessage<'_>) -> Taken {
    let event = headers(message).and_then(|headers| {
        let event = match records {
            None => cloud_event(message, &headers),
            Some(mapping) => mapped(mapping, message, &headers),
        };
        // In the format of instrumented clients, unless the event has a trace itself.
        let trace = TraceHeaders::find(&headers);
        event.map(|event| trace.into_iter().fold(event, Event::with_trace))
    });
    let position = message.offset() as u64;
    let event =
        event.map_err(|why| Malformed::new(message.payload().unwrap_or_default().to_vec(), why));
    Taken { position, event }
}

fn copied(message: &BorrowedMessage<'_>) -> Option<Bytes> {
    message.payload().map(Bytes::copy_from_slice)
}

/// Reads headers. rdkafka panics where the name of one is not UTF-8, which the protocol allows.
pub(crate) fn readable<T>(read: impl FnOnce() -> T) -> Result<T, String> {
    let read = catch_unwind(AssertUnwindSafe(read));
    read.map_err(|_| "the name of one of its headers is not UTF-8 text".to_owned())
}

fn headers<'m>(message: &'m BorrowedMessage<'_>) -> Result<Vec<(&'m str, &'m [u8])>, String> {
    let Some(headers) = message.headers() else { return Ok(Vec::new()) };
    let parts = || headers.iter().map(|header| (header.key, header.value.unwrap_or_default()));
    readable(|| parts().collect())
}

fn published(message: &BorrowedMessage<'_>) -> Option<SystemTime> {
    match message.timestamp() {
        Timestamp::CreateTime(millis) | Timestamp::LogAppendTime(millis) => {
            UNIX_EPOCH.checked_add(Duration::from_millis(u64::try_from(millis).ok()?))
        }
        Timestamp::NotAvailable => None,
    }
}

fn mapped(
    mapping: &Mapping,
    message: &BorrowedMessage<'_>,
    headers: &[(&str, &[u8])],
) -> Result<Event, String> {
    let content_type = headers.iter().rev().find(|(name, _)| is_content_type(name));
    let own = position(message.topic(), message.partition(), message.offset());
    // A redrive names its first place, so that its id stays the same.
    let origin = headers.iter().find(|(name, _)| *name == ORIGIN);
    let origin = origin.and_then(|(_, value)| str::from_utf8(value).ok());
    let position: &dyn fmt::Display = match &origin {
        Some(origin) if !origin.is_empty() => origin,
        _ => &own,
    };
    let record = Record {
        key: message.key(),
        headers,
        topic: Some(message.topic()),
        content_type: content_type.and_then(|(_, value)| str::from_utf8(value).ok()),
        time: published(message),
        ..Record::new(copied(message), position)
    };
    mapping.event(&record).map_err(|error| error.to_string())
}

/// The place of a record, which is its id if it has no other.
pub(crate) fn position(
    topic: impl fmt::Display,
    partition: impl fmt::Display,
    offset: impl fmt::Display,
) -> impl fmt::Display {
    fmt::from_fn(move |f| write!(f, "{topic}-{partition}-{offset}"))
}

/// Whether this header is of the event, which writes it again by itself, or of this topic alone.
pub(crate) fn is_of_event(name: &str) -> bool {
    name.starts_with(PREFIX) || is_content_type(name) || name == ORIGIN
}

fn is_content_type(name: &str) -> bool {
    name.eq_ignore_ascii_case(CONTENT_TYPE)
}

fn cloud_event(message: &BorrowedMessage<'_>, headers: &[(&str, &[u8])]) -> Result<Event, String> {
    let is_structured = |(name, value): &(&str, &[u8])| {
        is_content_type(name)
            && value
                .get(..STRUCTURED.len())
                .is_some_and(|it| it.eq_ignore_ascii_case(STRUCTURED.as_bytes()))
    };
    let is_binary = headers.iter().any(|(name, _)| *name == "ce_specversion");
    let event = match message.payload() {
        _ if is_binary && !headers.iter().any(is_structured) => binary(message, headers)?,
        Some(json) => Event::parse(json).map_err(|error| error.to_string())?,
        None => {
            let why = "it has no value (a tombstone) and no `ce_` headers; map records, to make \
                       events of tombstones";
            return Err(why.to_owned());
        }
    };
    Ok(message.key().into_iter().fold(event, Event::with_partition_key))
}

fn binary(message: &BorrowedMessage<'_>, headers: &[(&str, &[u8])]) -> Result<Event, String> {
    let text = |name: &str, value| {
        str::from_utf8(value).map_err(|_| format!("header `{name}` is not UTF-8 text"))
    };
    let required = |name: &str| {
        let header = headers.iter().find(|(known, _)| *known == name);
        let (name, value) = header.ok_or_else(|| format!("header `{name}` is missing"))?;
        text(name, value)
    };
    match required("ce_specversion")? {
        "1.0" => {}
        other => return Err(format!("header `ce_specversion` is {other:?}, and has to be 1.0")),
    }
    let mut event =
        Event::builder(required("ce_id")?, required("ce_source")?, required("ce_type")?);
    for (name, value) in headers {
        let Some(attribute) = name.strip_prefix(PREFIX) else {
            if is_content_type(name) {
                event = event.datacontenttype(text(name, value)?);
            }
            continue;
        };
        event = match attribute {
            "specversion" | "id" | "source" | "type" => event,
            "subject" => event.subject(text(name, value)?),
            "time" => event.time(text(name, value)?),
            "dataschema" => event.dataschema(text(name, value)?),
            extension => event.extension(extension, text(name, value)?),
        };
    }
    if let Some(payload) = copied(message) {
        event = event.data_payload(payload);
    }
    event.build().map_err(|error| error.to_string())
}
