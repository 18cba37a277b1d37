//! One tree for YAML, TOML and `--set`: the written values, each node with its place.

use std::sync::Arc;

/// A value of the configuration, and where it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The value as written.
    pub value: Value,
    /// Where.
    pub place: Place,
    /// The reference (`${NAME}`, `file:PATH`) that the value came from. Such a value may be a
    /// secret: messages name the reference and never print the value.
    pub origin: Option<Arc<str>>,
}

/// The kinds of values that YAML and TOML share.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing after the colon, `~` or `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i128),
    /// Any other number.
    Float(f64),
    /// Text, quoted or not.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order in which it was written. Its readers refuse a duplicate key.
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key was written.
    pub place: Place,
    /// Its value.
    pub node: Node,
}

/// Where something was written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the file.
    Source(Span),
    /// On the command line: the path after `--set`, without the value, which may be a secret.
    Set(Arc<str>),
}

/// A stretch of one line of the file. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The line.
    pub line: usize,
    /// The column of its first character.
    pub column: usize,
    /// Its length in characters; 0 for the file as a whole.
    pub width: usize,
}

impl Place {
    /// The file as a whole, for problems about missing parts.
    pub fn whole_file() -> Self {
        Self::Source(Span { line: 1, column: 1, width: 0 })
    }
}

impl Node {
    /// A node whose value was written out, not referenced.
    pub fn new(value: Value, place: Place) -> Self {
        Self { value, place, origin: None }
    }

    /// The node of a text without any value.
    pub(crate) fn blank() -> Self {
        Self::new(Value::Null, Place::whole_file())
    }

    /// True if the text held no value at all.
    pub fn is_blank(&self) -> bool {
        self.value == Value::Null && self.place == Place::whole_file()
    }

    /// Describes the value of a secret option in messages.
    pub(crate) fn describe_secret(&self) -> String {
        match &self.value {
            _ if self.origin.is_some() => self.describe(),
            Value::Bool(_) => "`true` or `false`".to_owned(),
            Value::Int(_) | Value::Float(_) => "a number".to_owned(),
            Value::Text(_) => "a text".to_owned(),
            Value::Null | Value::List(_) | Value::Map(_) => self.describe(),
        }
    }

    /// Describes this value in messages: its kind and, unless it may be a secret, the value.
    pub fn describe(&self) -> String {
        if let Some(origin) = &self.origin {
            return format!("the value of `{origin}`");
        }
        match &self.value {
            Value::Null => "nothing".to_owned(),
            Value::Bool(value) => format!("`{value}`"),
            Value::Int(value) => format!("the number {value}"),
            Value::Float(value) => format!("the number {value}"),
            Value::Text(_) if matches!(self.place, Place::Set(_)) => "the text given".to_owned(),
            Value::Text(text) => format!("the text `{}`", shortened(text)),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a mapping".to_owned(),
        }
    }
}

fn shortened(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// The value of a plain (unquoted) scalar, by YAML's core schema.
pub fn plain_scalar(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => number(text).unwrap_or_else(|| Value::Text(text.to_owned())),
    }
}

fn number(text: &str) -> Option<Value> {
    if let Some(hex) = text.strip_prefix("0x") {
        return i128::from_str_radix(hex, 16).ok().map(Value::Int);
    }
    if let Some(octal) = text.strip_prefix("0o") {
        return i128::from_str_radix(octal, 8).ok().map(Value::Int);
    }
    if let Ok(value) = text.parse() {
        return Some(Value::Int(value));
    }
    // "inf", "nan" and "infinity" are words here, as they are in YAML.
    let numeric = text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    text.parse().ok().filter(|_| numeric).map(Value::Float)
}
