//! Records that are no CloudEvents, and the rule that makes events of them (M05).
//!
//! A line of a log, a message of a broker, a webhook: bytes with a key, headers, a place. A
//! [`Mapping`] says where the attributes of their events come from.
//!
//! ```text
//! record ─┬─ value ──────────────────────────▶ data, as it is; without a value: no data
//!         ├─ literal, topic, key, header,  ──▶ type, source, subject, id, time, extensions
//!         │  path, time, JSON pointer
//!         └─ position ───────────────────────▶ id, where the rule names none
//! ```
//!
//! The value is parsed only if the rule has a JSON pointer, and then once; its bytes are passed on
//! untouched. A record that cannot be mapped is a malformed event: a dead letter with its bytes,
//! and a reason that names the attribute and the place that was searched.
//!
//! ```
//! use greenroom_bus::{event::Event, record::{Mapping, Pick, Record, RecordPart}};
//!
//! let kind = Pick::part(RecordPart::Pointer("/kind".parse()?)).or("log.line");
//! let mapping = Mapping::new(kind, Pick::literal("/app"))
//!     .subject(Pick::part(RecordPart::Pointer("/user/id".parse()?)).optional())
//!     .extension("tenant", Pick::part(RecordPart::Header("X-Tenant".into())))?;
//!
//! let value = bytes::Bytes::from_static(br#"{"kind":"login","user":{"id":7}}"#);
//! let headers: [(&str, &[u8]); 1] = [("x-tenant", b"blue")];
//! let record = Record { headers: &headers, ..Record::new(value.clone(), &"logins-3-1042") };
//! let event = mapping.event(&record)?;
//! assert_eq!((event.id(), event.source(), event.ty()), ("logins-3-1042", "/app", "login"));
//! assert_eq!(event.subject().map(|of| &**of), Some("7"));
//! assert_eq!(event.data_bytes().as_deref(), Some(&*value));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod mapping;
mod pick;

use std::{fmt, time::SystemTime};

use bytes::Bytes;

pub use mapping::{Mapping, Unmapped};
pub use pick::{Pick, RecordPart};

/// An item of an input that is not a CloudEvent.
#[derive(Clone)]
pub struct Record<'r> {
    /// Its bytes. `None`: it has no value, as a tombstone.
    pub value: Option<Bytes>,
    /// The key by which a broker partitions it: bytes of any kind.
    pub key: Option<&'r [u8]>,
    /// Names and values; names are compared without their case, and of several of one name the last
    /// one counts.
    pub headers: &'r [(&'r str, &'r [u8])],
    /// The topic or subject that it was published to.
    pub topic: Option<&'r str>,
    /// The path of its file, or of its request.
    pub path: Option<&'r str>,
    /// The media type of its value, if known.
    pub content_type: Option<&'r str>,
    /// When it was published, as its source says.
    pub time: Option<SystemTime>,
    /// Its position among all records that its source has ever given: the same for a repetition,
    /// different for every other record. It is formatted only if the rule names no id.
    pub position: &'r dyn fmt::Display,
}

impl<'r> Record<'r> {
    /// A record with only a value and a position.
    pub fn new(value: impl Into<Option<Bytes>>, position: &'r dyn fmt::Display) -> Self {
        Self {
            value: value.into(),
            key: None,
            headers: &[],
            topic: None,
            path: None,
            content_type: None,
            time: None,
            position,
        }
    }
}

#[cfg(test)]
mod tests;
