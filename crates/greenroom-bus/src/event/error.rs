//! Errors in bytes that should be an event, and in data that should be of a type.

use std::error::Error;

use crate::excerpt::excerpt;

/// Why bytes are not a CloudEvent. The text names the attribute, the expectation, and the value
/// found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// The bytes are not UTF-8, which JSON requires.
    #[error("invalid UTF-8 at column {column}")]
    InvalidUtf8 {
        /// The first bad byte, counted from 1.
        column: usize,
    },
    /// The bytes are not JSON, or not the JSON of an event.
    #[error("no JSON event: {message} at {}column {column}", line_prefix(*line))]
    Json {
        /// The parser's error.
        message: String,
        /// Counted from 1. Always 1 for events that are lines.
        line: usize,
        /// Counted in bytes.
        column: usize,
    },
    /// A required attribute is not there.
    #[error("required attribute `{name}` is missing")]
    Missing {
        /// The attribute.
        name: &'static str,
    },
    /// An attribute has the wrong type or form.
    #[error("attribute `{name}` must be {expected}, found {found}")]
    Attribute {
        /// The attribute.
        name: String,
        /// The expectation.
        expected: &'static str,
        /// The value found, shortened.
        found: String,
    },
    /// CloudEvents allows lower-case letters and digits in attribute names, nothing else.
    #[error("`{name}` is no attribute name: only lower-case letters a-z and digits are allowed")]
    Name {
        /// The name as it was found, shortened.
        name: String,
    },
    /// A name is there twice.
    #[error("`{name}` is there twice")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// `data` and `data_base64` exclude each other.
    #[error("both `data` and `data_base64` are there: an event has one of them")]
    TwoData,
    /// The data of an event under construction could not be written.
    #[error("data cannot be written: {0}")]
    Data(String),
    /// An event within a batch is wrong.
    #[error("event {index} of the batch: {error}")]
    InBatch {
        /// Its place, counted from 1.
        index: usize,
        /// Its error.
        error: Box<EventError>,
    },
    /// A batch has more events than it may.
    #[error("a batch of more than {most} events")]
    TooMany {
        /// The limit.
        most: usize,
    },
}

fn line_prefix(line: usize) -> String {
    if line > 1 { format!("line {line} ") } else { String::new() }
}

impl From<serde_json::Error> for EventError {
    fn from(error: serde_json::Error) -> Self {
        let text = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        // It repeats the text in the wrong place, however long that is.
        let message = excerpt(text.strip_suffix(&place).unwrap_or(&text)).into_owned();
        Self::Json { message, line: error.line(), column: error.column() }
    }
}

/// The error of a codec: a sentence for an operator, or an error of its own.
pub type CodecError = Box<dyn Error + Send + Sync>;

/// Why the data of an event could not be read as the type that was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The event has no data.
    #[error("the event has no data")]
    Missing,
    /// The data is binary, and its content type is not JSON.
    #[error("the data is `{content_type}`, not JSON")]
    NotJson {
        /// The declared content type, or `application/octet-stream`.
        content_type: String,
    },
    /// The data is JSON of another shape.
    #[error("the data is not of the expected shape: {0}")]
    Shape(#[from] serde_json::Error),
    /// This content type has no codec.
    #[error(
        "there is no codec for data of the content type `{content_type}`; there {}",
        listed(known)
    )]
    NoCodec {
        /// The content type of the data.
        content_type: String,
        /// The existing codecs.
        known: Vec<String>,
    },
    /// The codec of its content type could not read the data.
    #[error("the data cannot be read as `{content_type}`: {error}")]
    Unreadable {
        /// The content type of the data.
        content_type: String,
        /// The codec's error.
        error: CodecError,
    },
    /// The codec could not write the value.
    #[error("the value cannot be written as `{content_type}`: {error}")]
    Unwritable {
        /// The content type that was asked for.
        content_type: String,
        /// The codec's error.
        error: CodecError,
    },
}

fn listed(known: &[String]) -> String {
    match known {
        [] => "is none at all".to_owned(),
        [only] => format!("is one for {only}"),
        several => format!("are some for {}", several.join(", ")),
    }
}

/// At most this many characters of a wrong value are repeated in an error.
const SHOWN_CHARS: usize = 40;

/// A name as an error repeats it: only the beginning of a long one.
pub(super) fn named(name: &str) -> String {
    match name.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_owned(),
    }
}

/// A text as errors show it: quoted, and shortened if it is long.
pub(super) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}
