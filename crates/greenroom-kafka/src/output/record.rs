//! Records from events.

use std::borrow::Cow;

use bytes::Bytes;
use greenroom_bus::event::{Data, Event, ExtensionValue, OrderBy};
use rdkafka::message::{Header, OwnedHeaders};

use crate::options::KafkaSinkMode;
use crate::{
    decode::{CONTENT_TYPE, PREFIX},
    kept::KeptRecord,
};

const STRUCTURED: &str = "application/cloudevents+json; charset=UTF-8";
const JSON: &str = "application/json";

/// The published form of an event, kept until it is stored. Cloning it copies references.
#[derive(Clone)]
pub(super) struct Record {
    event: Event,
    /// The whole event, in structured mode.
    json: Option<Bytes>,
}

impl Record {
    pub(super) fn new(event: Event, mode: KafkaSinkMode) -> Self {
        let json = (mode == KafkaSinkMode::Structured).then(|| {
            let mut json = Vec::new();
            event.write_json(&mut json);
            json.into()
        });
        Self { event, json }
    }

    /// By this; without one, its partition key or its subject.
    pub(super) fn key(&self, by: Option<&OrderBy>) -> Option<Cow<'_, [u8]>> {
        let event = &self.event;
        match by {
            // An event without a key of that kind has none.
            Some(by) => by.key_bytes(event).ok().flatten().map(|key| key.to_vec().into()),
            None => {
                let subject = || event.subject().map(|subject| subject.as_bytes().into());
                event.partition_key().or_else(subject)
            }
        }
    }

    pub(super) fn value(&self) -> Option<Cow<'_, [u8]>> {
        match &self.json {
            Some(json) => Some(Cow::Borrowed(json)),
            None => self.event.data_bytes(),
        }
    }

    /// In milliseconds since 1970, unless it is the present time.
    pub(super) fn timestamp(&self) -> Option<i64> {
        self.event.local::<KeptRecord>().and_then(|kept| kept.timestamp)
    }

    /// After those that its input has kept.
    pub(super) fn headers(&self) -> OwnedHeaders {
        let kept = self.event.local::<KeptRecord>().map(|kept| kept.headers.clone());
        match self.json {
            Some(_) => add(kept.unwrap_or_default(), CONTENT_TYPE, STRUCTURED),
            None => add_attributes(&self.event, kept),
        }
    }
}

fn text(value: &ExtensionValue) -> Cow<'_, str> {
    match value {
        ExtensionValue::Text(text) => Cow::Borrowed(text),
        ExtensionValue::Bool(value) => Cow::Owned(value.to_string()),
        ExtensionValue::Integer(value) => Cow::Owned(value.to_string()),
    }
}

fn add_attributes(event: &Event, kept: Option<OwnedHeaders>) -> OwnedHeaders {
    let known = [
        ("ce_specversion", Some("1.0")),
        ("ce_id", Some(event.id())),
        ("ce_source", Some(event.source())),
        ("ce_type", Some(event.ty())),
        ("ce_subject", event.subject().map(|subject| &**subject)),
        ("ce_time", event.time()),
        ("ce_dataschema", event.dataschema()),
    ];
    let most = known.len() + event.extensions().len() + 1;
    let mut headers = kept.unwrap_or_else(|| OwnedHeaders::new_with_capacity(most));
    for (name, value) in known {
        if let Some(value) = value {
            headers = add(headers, name, value);
        }
    }
    let mut prefixed = String::from(PREFIX);
    for (name, value) in event.extensions() {
        prefixed.truncate(PREFIX.len());
        prefixed.push_str(name);
        headers = add(headers, &prefixed, &text(value));
    }
    let is_json = matches!(event.data(), Data::Json(_));
    match event.datacontenttype().or(is_json.then_some(JSON)) {
        Some(media_type) => add(headers, CONTENT_TYPE, media_type),
        None => headers,
    }
}

fn add(headers: OwnedHeaders, key: &str, value: &str) -> OwnedHeaders {
    headers.insert(Header { key, value: Some(value) })
}
