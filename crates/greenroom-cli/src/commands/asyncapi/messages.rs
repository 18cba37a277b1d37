//! The messages of a document: one for each type or pattern that the configuration names.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::config::{Config, InputKind};

/// How events are written wherever they are whole.
pub(super) const CONTENT_TYPE: &str = "application/cloudevents+json";
/// What any event is.
pub(super) const ANY: &str = "**";
/// The key of the message that a dead letter is.
pub(super) const DEAD_LETTER: &str = "dead-letter";

/// The key of the message of each type and pattern. Keys have a small alphabet, types have not.
pub(super) struct Messages {
    keys: BTreeMap<String, String>,
}

impl Messages {
    pub(super) fn of(config: &Config) -> Self {
        let mut messages = Self { keys: BTreeMap::new() };
        messages.add(ANY);
        let handlers = config.handlers.iter().flat_map(|handler| &handler.on);
        let outputs = config.outputs.iter().flat_map(|output| &output.on);
        handlers.chain(outputs).chain(generated(config)).for_each(|ty| messages.add(ty));
        let records = config.inputs.iter().filter_map(|input| input.records.as_ref()?.known_type());
        records.for_each(|ty| messages.add(ty));
        messages
    }

    fn add(&mut self, ty: &str) {
        if !self.keys.contains_key(ty) {
            let key = self.free(&key(ty));
            self.keys.insert(ty.to_owned(), key);
        }
    }

    /// Two types may be alike but for characters that no key can have.
    fn free(&self, key: &str) -> String {
        let taken =
            |name: &String| name == DEAD_LETTER || self.keys.values().any(|key| key == name);
        let numbered = (2_u32..).map(|number| format!("{key}-{number}"));
        let names = std::iter::once(key.to_owned()).chain(numbered);
        names.into_iter().find(|name| !taken(name)).unwrap_or_default()
    }

    /// The key of a type or pattern of the configuration that this was made of.
    pub(super) fn key(&self, ty: &str) -> &str {
        self.keys.get(ty).map_or(DEAD_LETTER, String::as_str)
    }

    /// All messages, by their keys.
    pub(super) fn components(&self) -> Map<String, Value> {
        let events = self.keys.iter().map(|(ty, key)| (key.clone(), event(ty)));
        let letter = json!({
            "name": DEAD_LETTER,
            "title": "An event that could not be handled, and why",
            "contentType": "application/json",
            "payload": { "$ref": "#/components/schemas/DeadLetter" },
        });
        events.chain([(DEAD_LETTER.to_owned(), letter)]).collect()
    }
}

/// The types that generators make up.
pub(super) fn generated(config: &Config) -> impl Iterator<Item = &String> {
    config.inputs.iter().flat_map(|input| match &input.kind {
        InputKind::Generator(generator) => generator.types.as_slice(),
        InputKind::File(_) | InputKind::Http(_) | InputKind::Kafka(_) | InputKind::Nats(_) => &[],
    })
}

/// `order.*` as `order.any`, `**` as `all`; what no key can have as `_`.
fn key(ty: &str) -> String {
    let segment = |segment: &str| match segment {
        "*" => "any".to_owned(),
        "**" => "all".to_owned(),
        word => {
            let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            word.chars().map(|c| if allowed(c) { c } else { '_' }).collect()
        }
    };
    ty.split('.').map(segment).collect::<Vec<_>>().join(".")
}

fn event(ty: &str) -> Value {
    let any = json!({ "$ref": "#/components/schemas/CloudEvent" });
    let (title, payload) = if ty == ANY {
        ("Any event".to_owned(), any)
    } else if ty.contains('*') {
        (format!("Events whose type matches `{ty}`"), any)
    } else {
        let exact = json!({ "properties": { "type": { "const": ty } } });
        (format!("Events of the type `{ty}`"), json!({ "allOf": [any, exact] }))
    };
    json!({ "name": ty, "title": title, "contentType": CONTENT_TYPE, "payload": payload })
}

/// What payloads are.
pub(super) fn schemas() -> Value {
    let text = json!({ "type": "string", "minLength": 1 });
    let time = json!({ "type": "string", "format": "date-time" });
    let maybe = json!({ "type": ["string", "null"] });
    json!({
        "CloudEvent": {
            "description": "CloudEvents 1.0 in its JSON format. Extensions stand beside the other attributes.",
            "type": "object",
            "required": ["specversion", "id", "source", "type"],
            "properties": {
                "specversion": { "const": "1.0" },
                "id": text,
                "source": text,
                "type": text,
                "subject": text,
                "time": time,
                "datacontenttype": text,
                "dataschema": { "type": "string", "format": "uri" },
                "data": {},
                "data_base64": { "type": "string", "contentEncoding": "base64" },
            },
        },
        "DeadLetter": {
            "type": "object",
            "required": ["event", "raw_base64", "reason", "error", "attempts", "input", "position"],
            "properties": {
                "event": { "oneOf": [{ "$ref": "#/components/schemas/CloudEvent" }, { "type": "null" }] },
                "raw_base64": { "type": ["string", "null"], "contentEncoding": "base64" },
                "reason": text,
                "error": { "type": "string" },
                "attempts": { "type": "integer", "minimum": 0 },
                "first_at": time,
                "last_at": time,
                "input": text,
                "source": text,
                "position": { "type": "integer", "minimum": 0 },
                "pool": maybe,
                "handler": maybe,
            },
        },
    })
}
