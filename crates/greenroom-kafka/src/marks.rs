//! The headers of a moved record: where it was, and why it is here (D06).
//!
//! ```text
//! headers   a, b, c           greenroom_letter, greenroom_topic, greenroom_reason, ..
//!           as they were      from here on ours, whatever the others are called
//! ```

use std::{borrow::Cow, str};

use rdkafka::message::{BorrowedHeaders, Header, Headers, OwnedHeaders};

use crate::decode::{ORIGIN, position, readable};

/// Our first header. A record that has been here before may already have one: the last one counts.
const LETTER: &str = "greenroom_letter";

pub(crate) const TOPIC: &str = "greenroom_topic";
pub(crate) const PARTITION: &str = "greenroom_partition";
pub(crate) const OFFSET: &str = "greenroom_offset";
pub(crate) const REASON: &str = "greenroom_reason";
pub(crate) const INPUT: &str = "greenroom_input";
pub(crate) const HANDLER: &str = "greenroom_handler";

/// The most bytes of a text in a header.
const MOST: usize = 512;

/// The form of the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The record's value, with its key and headers.
    Record,
    /// The letter as JSON.
    Json,
}

impl Form {
    fn word(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Json => "json",
        }
    }
}

/// Our headers, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Marks(Vec<(Cow<'static, str>, Box<str>)>);

impl Marks {
    /// Adds one, with only the beginning of a long text.
    pub(crate) fn with(mut self, name: &'static str, text: &str) -> Self {
        let text = &text[..text.floor_char_boundary(MOST)];
        self.0.push((name.into(), text.into()));
        self
    }

    /// Adds one, whole.
    pub(crate) fn with_whole(mut self, name: &'static str, text: String) -> Self {
        self.0.push((name.into(), text.into()));
        self
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, text)| &**text)
    }

    /// Adds the headers of its original place, unless it was sent back before.
    ///
    /// # Errors
    /// The letter does not say that.
    pub(crate) fn adds_origin(&self, headers: OwnedHeaders) -> Result<OwnedHeaders, String> {
        if headers.iter().any(|header| header.key == ORIGIN) {
            return Ok(headers);
        }
        match [TOPIC, PARTITION, OFFSET].map(|name| self.get(name)) {
            [Some(topic), Some(partition), Some(offset)] => {
                let origin = position(topic, partition, offset).to_string();
                Ok(headers.insert(Header { key: ORIGIN, value: Some(&origin) }))
            }
            _ => Err("it does not say where its record was".to_owned()),
        }
    }

    /// Adds these to the headers that a record has.
    pub(crate) fn behind(&self, headers: OwnedHeaders, form: Form) -> OwnedHeaders {
        let first = headers.insert(Header { key: LETTER, value: Some(form.word()) });
        self.0.iter().fold(first, |headers, (name, text)| {
            headers.insert(Header { key: name, value: Some(&**text) })
        })
    }
}

/// The headers of a letter.
pub(crate) struct Read {
    pub(crate) form: Form,
    pub(crate) marks: Marks,
    /// The record's original headers.
    pub(crate) original: OwnedHeaders,
}

/// The headers of a letter; `None` if the record is not a letter.
///
/// # Errors
/// A name that is not text. The original headers are copied one by one.
pub(crate) fn read(headers: &BorrowedHeaders) -> Result<Option<Read>, String> {
    readable(|| read_named(headers))
}

fn read_named(headers: &BorrowedHeaders) -> Option<Read> {
    let at = (0..headers.count()).rev().find(|at| headers.get(*at).key == LETTER)?;
    let form = match headers.get(at).value {
        Some(b"record") => Form::Record,
        _ => Form::Json,
    };
    let original =
        (0..at).fold(OwnedHeaders::new_with_capacity(at), |kept, at| kept.insert(headers.get(at)));
    let marks = (at + 1..headers.count()).filter_map(|at| {
        let Header { key, value } = headers.get(at);
        let text = str::from_utf8(value?).ok()?;
        Some((Cow::Owned(key.to_owned()), text.into()))
    });
    Some(Read { form, marks: Marks(marks.collect()), original })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d06_the_headers_of_a_record_come_back_as_they_were_also_of_one_that_was_a_letter_before() {
        let header = |key, value: Option<&'static str>| Header { key, value };
        let before = OwnedHeaders::new()
            .insert(header("a", Some("1")))
            .insert(header("a", None))
            .insert(header(LETTER, Some("json")))
            .insert(header(REASON, Some("rejected")));
        let marks = Marks::default().with(REASON, "poisoned").with(TOPIC, &"é".repeat(400));
        let read = read(marks.behind(before.clone(), Form::Record).as_borrowed()).unwrap().unwrap();
        assert_eq!(read.form, Form::Record);
        assert_eq!(read.marks.get(REASON), Some("poisoned"));
        assert_eq!(read.marks.get(TOPIC).map(str::len), Some(MOST));
        assert_eq!(read.marks.get(INPUT), None);
        assert_eq!(read.original.count(), before.count());
        assert!(read.original.iter().eq(before.iter()));
        assert!(super::read(OwnedHeaders::new().as_borrowed()).unwrap().is_none());
    }
}
