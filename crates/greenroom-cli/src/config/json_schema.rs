//! The table of options as JSON Schema (draft 2020-12), for editors.

use serde_json::{Map, Number, Value, json};

use greenroom_config::{
    Options, default_of,
    schema::{Group, Kind, Opt, Presence},
    tree::{self, Node},
};

/// The schema of a configuration file.
pub(super) fn json_schema<T: Options>(title: &str) -> Value {
    let mut schema = Map::new();
    schema.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("title".to_owned(), json!(title));
    schema.extend(group(T::GROUP));
    Value::Object(schema)
}

/// A mapping, or the single value that is short for one of its keys.
fn group_or_short(inner: &Group) -> Value {
    let mapping = Value::Object(group(inner));
    match inner.short() {
        Some(short) => json!({ "anyOf": [kind(&short.kind), mapping] }),
        None => mapping,
    }
}

fn group(group: &Group) -> Map<String, Value> {
    let mut properties = Map::new();
    for opt in group.built() {
        for (index, name) in opt.spellings().into_iter().enumerate() {
            properties.insert(name, option(opt, index > 0));
        }
    }
    let mut schema = Map::new();
    schema.insert("description".to_owned(), json!(group.doc));
    let nullable = group.all().all(|opt| opt.presence != Presence::Required);
    let kind =
        if nullable && !group.needs_kind { json!(["object", "null"]) } else { json!("object") };
    schema.insert("type".to_owned(), kind);
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema.insert("additionalProperties".to_owned(), json!(false));
    let required: Vec<_> =
        group.all().filter(|opt| opt.presence == Presence::Required).map(|opt| opt.name).collect();
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    if group.needs_kind {
        let names = group.kind_names();
        let kinds: Vec<_> = names.iter().map(|name| json!({ "required": [name] })).collect();
        schema.insert("oneOf".to_owned(), json!(kinds));
    }
    schema
}

fn option(opt: &Opt, other_spelling: bool) -> Value {
    let mut schema = kind(&opt.kind);
    if let Some(fields) = schema.as_object_mut() {
        fields.insert("description".to_owned(), json!(opt.doc));
        if let Some(default) = default_of(opt) {
            fields.insert("default".to_owned(), plain(&default));
        }
        if other_spelling {
            fields.insert("deprecated".to_owned(), json!(true));
        }
    }
    schema
}

/// Values may come from the environment or a file even if they are not text.
const REFERENCE: &str = r"\$\{[A-Za-z_]|^file:";

fn kind(kind: &Kind) -> Value {
    let number = r"[0-9][0-9_]*(\.[0-9]+)?";
    let duration = format!("{number} *(us|ms|s|m|min|h|d)");
    let or_reference = |schema: Value| json!({ "anyOf": [schema, pattern(REFERENCE)] });
    match kind {
        Kind::Flag => or_reference(json!({ "type": "boolean" })),
        Kind::Count { min, max } => json!({ "anyOf": count(*min, *max) }),
        Kind::CountOr { min, max, group: inner } => {
            let or = Value::Object(group(inner));
            json!({ "anyOf": count(*min, *max).into_iter().chain([or]).collect::<Vec<_>>() })
        }
        Kind::Number { min, max } => {
            or_reference(json!({ "type": "number", "minimum": min, "maximum": max }))
        }
        Kind::Any => json!({}),
        Kind::Text => json!({ "type": "string", "minLength": 1 }),
        Kind::Path => json!({ "type": "string" }),
        Kind::Url => json!({ "type": "string", "minLength": 1, "format": "uri-reference" }),
        Kind::Duration { .. } => pattern(&format!("^{duration}$|{REFERENCE}")),
        Kind::DurationRange => pattern(&format!(r"^{duration}(\.\.{duration})?$|{REFERENCE}")),
        Kind::Size { min, max } => {
            let text = pattern(&format!("^{number} *([kKMG]?B|[KMG]iB)?$|{REFERENCE}"));
            json!({ "anyOf": [{ "type": "integer", "minimum": min, "maximum": max }, text] })
        }
        Kind::Rate => pattern(&format!("^{number} */ *(s|sec|m|min|h)$|{REFERENCE}")),
        Kind::Choice(words) => or_reference(json!({ "enum": words })),
        Kind::Texts => json!({ "anyOf": [
            { "type": "string", "minLength": 1 },
            { "type": "array", "minItems": 1, "items": { "type": "string", "minLength": 1 } },
        ] }),
        Kind::Command => json!({ "type": "array", "minItems": 1, "items": { "type": "string" } }),
        Kind::Variables => {
            json!({ "type": ["object", "null"], "additionalProperties": { "type": "string" } })
        }
        Kind::Literal => json!({ "type": ["string", "number", "boolean"] }),
        Kind::Literals => json!({
            "type": "array", "minItems": 1, "items": { "type": ["string", "number", "boolean"] },
        }),
        Kind::Group(inner) => group_or_short(inner),
        Kind::Each(inner) => json!({
            "type": ["object", "null"],
            "propertyNames": { "minLength": 1 },
            "additionalProperties": group_or_short(inner),
        }),
        Kind::Named(inner) => json!({
            "type": ["object", "null"],
            "propertyNames": { "pattern": "^[A-Za-z0-9_-]{1,64}$" },
            "additionalProperties": group(inner),
        }),
        Kind::List(inner) => {
            let mapping = Value::Object(group(inner));
            let bare = inner.built().filter(|opt| matches!(opt.kind, Kind::Group(_)));
            let words: Vec<_> = bare.flat_map(Opt::spellings).collect();
            json!({ "type": "array", "minItems": 1, "items": { "anyOf": [mapping, { "enum": words }] } })
        }
        Kind::Refused(_) => json!(false),
    }
}

/// The ways to write a count.
fn count(min: u64, max: u64) -> [Value; 3] {
    let integer = json!({ "type": "integer", "minimum": min, "maximum": max });
    [integer, pattern("^[0-9][0-9_]*_[0-9_]*$"), pattern(REFERENCE)]
}

fn pattern(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": pattern })
}

/// A value as it was written, as JSON.
pub(crate) fn plain(node: &Node) -> Value {
    match &node.value {
        tree::Value::Null => Value::Null,
        tree::Value::Bool(value) => json!(value),
        tree::Value::Int(value) => Number::from_i128(*value).map_or(Value::Null, Value::Number),
        tree::Value::Float(value) => json!(value),
        tree::Value::Text(value) => json!(value),
        tree::Value::List(items) => items.iter().map(plain).collect(),
        tree::Value::Map(entries) => {
            entries.iter().map(|entry| (entry.key.clone(), plain(&entry.node))).collect()
        }
    }
}
