//! The key by which a broker keeps events together ("Partitioning" among the documented extensions
//! of CloudEvents).
//!
//! A key is bytes, and an attribute is text. A key that is UTF-8 is its own text; any other is
//! standard base64 behind a mark. Keys that begin with the mark are written so too, and so is the
//! empty one: each key has one text, and two keys never have the same.
//!
//! ```text
//! key       63 2d 37       00 00 00 00 00 00 00 07       62 61 73 65 36 34 3a
//! text      c-7            base64:AAAAAAAAAAc=           base64:YmFzZTY0Og==
//! ```

use std::{borrow::Cow, str};

use base64::{Engine, prelude::BASE64_STANDARD};

use super::{
    field::text,
    model::{Event, ExtensionValue},
};

/// The extension attribute that holds it.
pub const PARTITION_KEY: &str = "partitionkey";

/// The prefix of the text of a key that no attribute can hold: bytes that are not UTF-8, and
/// control characters, such as the zeros of a number.
const MARK: &str = "base64:";

/// The text of a key: as it appears in an event, in a line of order, on the screen.
///
/// ```
/// use greenroom_bus::event::key_text;
///
/// assert_eq!(key_text(b"c-7"), "c-7");
/// assert_eq!(key_text(&7_i64.to_be_bytes()), "base64:AAAAAAAAAAc=");
/// ```
pub fn key_text(key: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(key) {
        Ok(text) if is_plain(text) => Cow::Borrowed(text),
        _ => Cow::Owned(format!("{MARK}{}", BASE64_STANDARD.encode(key))),
    }
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && !text.starts_with(MARK) && !text.contains(char::is_control)
}

/// The key that a text encodes. A mark without base64 after it is ordinary text.
fn key_bytes(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    let coded = text.strip_prefix(MARK).map(|coded| BASE64_STANDARD.decode(coded));
    match (coded, text) {
        (Some(Ok(key)), _) => Cow::Owned(key),
        (_, Cow::Borrowed(text)) => Cow::Borrowed(text.as_bytes()),
        (_, Cow::Owned(text)) => Cow::Owned(text.into_bytes()),
    }
}

impl Event {
    /// This event with this [partition key](PARTITION_KEY) in place of its own.
    ///
    /// Inputs of brokers set it to the key of the broker's message, so that `order_by:
    /// partitionkey` keeps the order that its producer intended. The attribute is the
    /// [text](key_text) of the key.
    ///
    /// ```
    /// use greenroom_bus::event::Event;
    ///
    /// let event = Event::builder("1", "/shop", "order.placed").build()?;
    /// let event = event.with_partition_key(&[0xff]);
    /// assert_eq!(event.extension("partitionkey"), Some(&"base64:/w==".into()));
    /// assert_eq!(event.partition_key().as_deref(), Some(&[0xff][..]));
    /// # Ok::<(), greenroom_bus::event::EventError>(())
    /// ```
    pub fn with_partition_key(mut self, key: &[u8]) -> Self {
        let key = ExtensionValue::from(&*key_text(key));
        if self.extension(PARTITION_KEY) != Some(&key) {
            self.change(|inner| {
                inner.extensions.retain(|(name, _)| **name != *PARTITION_KEY);
                inner.extensions.push((PARTITION_KEY.into(), key));
            });
        }
        self
    }

    /// The bytes of its [partition key](PARTITION_KEY), if it has one.
    pub fn partition_key(&self) -> Option<Cow<'_, [u8]>> {
        self.extension(PARTITION_KEY).map(|value| key_bytes(text(value)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn event() -> Event {
        Event::builder("1", "/shop", "order.placed").build().unwrap()
    }

    /// Of few different bytes, those of the mark among them, so that many are nearly the same.
    fn keys() -> impl Strategy<Value = Vec<u8>> {
        let plain = prop::collection::vec(any::<u8>(), 0..12);
        let like_the_mark = "(base64:)?(base64:)?[a-zA-Z0-9+/=]{0,8}".prop_map(String::into_bytes);
        prop_oneof![plain, like_the_mark]
    }

    proptest! {
        #[test]
        fn f06_a_key_of_any_bytes_comes_back_as_it_was_and_no_two_have_one_text(
            keys in prop::collection::vec(keys(), 1..40)
        ) {
            let mut by_text = HashMap::new();
            for key in keys {
                let event = event().with_partition_key(&key);
                prop_assert!(event.partition_key().as_deref() == Some(&*key));
                // Through JSON, as files, workers and letters have it.
                let mut json = Vec::new();
                event.write_json(&mut json);
                let read = Event::parse(&json).unwrap();
                prop_assert!(read.partition_key().as_deref() == Some(&*key));
                let known = by_text.entry(key_text(&key).into_owned()).or_insert(key.clone());
                prop_assert_eq!(&*known, &key);
            }
        }
    }

    #[test]
    fn f06_the_key_of_a_record_takes_the_place_of_the_one_in_the_event() {
        let event = event().with_partition_key(b"of the event").with_partition_key(b"7");
        assert_eq!(event.extension(PARTITION_KEY), Some(&"7".into()));
        assert_eq!(event.extensions().len(), 1);
    }

    #[test]
    fn f06_a_mark_without_base64_is_a_text_and_a_number_is_what_is_written() {
        let own = |value: ExtensionValue| {
            Event::builder("1", "/s", "t").extension(PARTITION_KEY, value).build().unwrap()
        };
        for (value, bytes) in [
            (ExtensionValue::from("base64:no base64"), &b"base64:no base64"[..]),
            (ExtensionValue::from(-7), b"-7"),
            (ExtensionValue::from("base64:/w=="), b"\xff"),
        ] {
            assert_eq!(own(value).partition_key().as_deref(), Some(bytes));
        }
        assert_eq!(event().partition_key(), None);
    }
}
