//! How deeply the data of an event is nested.
//!
//! Parsers that call themselves for each level, such as those of many worker programs, fail at some
//! depth, which takes two bytes a level. JSON data is kept as it came and not parsed here, so
//! nothing else bounds it. That no data is too deep is known at nearly no cost: it has no more
//! levels than opening brackets, and these are counted while the data is in the caches (16 bytes at
//! a time). Only data with more of them than levels are allowed is looked through.

/// As many bytes have no more brackets than a byte can count.
const COUNTED: usize = u8::MAX as usize;

/// No JSON of these bytes has more levels than this.
pub(super) fn most_levels(bytes: &[u8]) -> u32 {
    let opening = |bytes: &[u8]| bytes.iter().map(|byte| u8::from(is_opening(*byte))).sum::<u8>();
    bytes.chunks(COUNTED).map(|bytes| u32::from(opening(bytes))).sum()
}

fn is_opening(byte: u8) -> bool {
    matches!(byte, b'[' | b'{')
}

/// Whether it has arrays and objects in more levels than this.
pub(super) fn is_deeper(json: &str, most: u32) -> bool {
    let (mut levels, mut bytes) = (0_u32, json.bytes());
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => skip_text(&mut bytes),
            b'[' | b'{' => levels += 1,
            b']' | b'}' => levels = levels.saturating_sub(1),
            b' '..=b'~' | b'\t' | b'\n' | b'\r' => {}
            // Bytes that are called JSON and are not.
            _ => return false,
        }
        if levels > most {
            return true;
        }
    }
    false
}

/// Up to the end of a text that has begun.
fn skip_text(bytes: &mut impl Iterator<Item = u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => _ = bytes.next(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json, value::RawValue};

    use crate::event::Event;

    fn nested(levels: usize) -> String {
        format!("{}{}", "[".repeat(levels), "]".repeat(levels))
    }

    fn event(json: String) -> Event {
        let data = RawValue::from_string(json).unwrap();
        Event::builder("1", "/s", "t").data_raw(data).build().unwrap()
    }

    #[test]
    fn z12_levels_are_counted_and_brackets_in_texts_are_not() {
        assert!(event(nested(129)).is_deeper_than(128));
        assert!(!event(nested(128)).is_deeper_than(128));
        assert!(event(nested(100_000)).is_deeper_than(99_999));
        let wide = format!("[{}]", vec!["{\"a\":[]}"; 1_000].join(","));
        assert!(event(wide.clone()).is_deeper_than(2) && !event(wide).is_deeper_than(3));
        let texts = format!("[{:?}, {:?}]", "[".repeat(500), r#"\"[["#.repeat(200));
        assert!(!event(texts).is_deeper_than(1));
        let hidden = format!("[{:?},{}]", "]".repeat(500), nested(200));
        assert!(event(hidden).is_deeper_than(200), "no text closes a level");
    }

    #[test]
    fn z12_bytes_that_are_no_json_have_no_levels() {
        let bytes = [b"[".repeat(500), vec![0xFF]].concat();
        for media in ["image/png", "application/json"] {
            let event = Event::builder("1", "/s", "t").datacontenttype(media);
            let event = event.data_payload(bytes.clone()).build().unwrap();
            assert!(!event.is_deeper_than(128), "{media}");
        }
        let event = Event::builder("1", "/s", "t").data_payload(nested(129)).build().unwrap();
        assert!(event.is_deeper_than(128), "without a type, it is JSON if it is some");
    }

    fn depth(value: &Value) -> u32 {
        let below = match value {
            Value::Array(items) => items.iter().map(depth).max(),
            Value::Object(members) => members.values().map(depth).max(),
            _ => return 0,
        };
        1 + below.unwrap_or(0)
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            Just(json!(1.5)),
            "[\\[\\]{}\"\\\\a]*".prop_map(Value::from)
        ];
        leaf.prop_recursive(12, 64, 4, |inner| {
            let texts = "[\\[{\"\\\\a]{0,3}";
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(texts, inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn z12_any_json_is_as_deep_as_its_values_are(value in value(), most in 0..14_u32) {
            prop_assert_eq!(event(value.to_string()).is_deeper_than(most), depth(&value) > most);
        }
    }
}
