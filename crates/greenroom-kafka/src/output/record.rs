//! Records from events.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use greenroom_bus::event::{Data, Event, ExtensionValue};
use rdkafka::message::{Header, OwnedHeaders};

use super::options::{KafkaSinkMode, KafkaSinkOptions};
use crate::{decode::CONTENT_TYPE, kept::KeptRecord};

const STRUCTURED: &str = "application/cloudevents+json; charset=UTF-8";
const JSON: &str = "application/json";

/// What is published, kept until it is stored.
pub(super) struct Record {
    pub(super) key: Option<Arc<[u8]>>,
    pub(super) value: Option<Bytes>,
    pub(super) headers: Vec<(Cow<'static, str>, Box<str>)>,
    /// Of the record that the event came as.
    kept: Option<KeptRecord>,
}

impl Record {
    pub(super) fn of(event: &Event, options: &KafkaSinkOptions) -> Self {
        let key = match &options.key {
            // What has no key of that kind has none.
            Some(by) => by.key_bytes(event).ok().flatten(),
            None => {
                let own = event.partition_key().map(Arc::from);
                own.or_else(|| event.subject().cloned().map(Arc::from))
            }
        };
        let kept = event.local::<KeptRecord>().cloned();
        match options.mode {
            KafkaSinkMode::Binary => {
                Self { key, value: value(event), headers: headers(event), kept }
            }
            KafkaSinkMode::Structured => {
                let mut json = Vec::new();
                event.write_json(&mut json);
                let headers = vec![(CONTENT_TYPE.into(), STRUCTURED.into())];
                Self { key, value: Some(json.into()), headers, kept }
            }
        }
    }

    /// In milliseconds since 1970, where it is not that of now.
    pub(super) fn timestamp(&self) -> Option<i64> {
        self.kept.as_ref().and_then(|kept| kept.timestamp)
    }

    pub(super) fn native_headers(&self) -> OwnedHeaders {
        let headers = match &self.kept {
            Some(kept) => kept.headers.clone(),
            None => OwnedHeaders::new_with_capacity(self.headers.len()),
        };
        self.headers.iter().fold(headers, |headers, (name, value)| {
            headers.insert(Header { key: name, value: Some(&**value) })
        })
    }
}

fn text(value: &ExtensionValue) -> Cow<'_, str> {
    match value {
        ExtensionValue::Text(text) => Cow::Borrowed(text),
        ExtensionValue::Bool(value) => Cow::Owned(value.to_string()),
        ExtensionValue::Integer(value) => Cow::Owned(value.to_string()),
    }
}

fn value(event: &Event) -> Option<Bytes> {
    match event.data() {
        Data::None => None,
        Data::Binary(bytes) | Data::Payload(bytes) => Some(bytes.clone()),
        Data::Json(_) => event.data_bytes().map(|bytes| Bytes::copy_from_slice(&bytes)),
    }
}

fn headers(event: &Event) -> Vec<(Cow<'static, str>, Box<str>)> {
    let known = [
        ("ce_specversion", Some("1.0")),
        ("ce_id", Some(event.id())),
        ("ce_source", Some(event.source())),
        ("ce_type", Some(event.ty())),
        ("ce_subject", event.subject().map(|subject| &**subject)),
        ("ce_time", event.time()),
        ("ce_dataschema", event.dataschema()),
    ];
    let mut headers = Vec::with_capacity(known.len() + 1 + event.extensions().len());
    for (name, value) in known {
        headers.extend(value.map(|value| (Cow::Borrowed(name), value.into())));
    }
    for (name, value) in event.extensions() {
        headers.push((Cow::Owned(format!("ce_{name}")), text(value).into()));
    }
    let is_json = matches!(event.data(), Data::Json(_));
    if let Some(media_type) = event.datacontenttype().or(is_json.then_some(JSON)) {
        headers.push((Cow::Borrowed(CONTENT_TYPE), media_type.into()));
    }
    headers
}
