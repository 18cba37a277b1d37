//! JSON text, value by value. It is not parsed into numbers and maps, which would round the former
//! and sort the latter: changing one place leaves all others byte for byte as they were.

use std::{borrow::Cow, ops::Range};

use serde_json::value::RawValue;

/// From a value to one within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonStep<'j> {
    /// To the member of an object with this name, in its quotes, as it is written.
    Member(&'j str),
    /// To the item at this index of an array.
    Item(usize),
}

impl JsonStep<'_> {
    /// True if a part of a JSON pointer leads here, its escapes undone.
    pub fn is(&self, token: &str) -> bool {
        match self {
            Self::Member(name) => json_text(name).is_some_and(|name| name == token),
            Self::Item(at) => token.parse() == Ok(*at),
        }
    }
}

/// The text of a JSON string; `None` if it is not a string, or not Unicode.
pub(super) fn json_text(json: &str) -> Option<Cow<'_, str>> {
    let bare = json.strip_prefix('"')?.strip_suffix('"')?;
    match bare.contains('\\') {
        false => Some(Cow::Borrowed(bare)),
        true => serde_json::from_str(json).ok().map(Cow::Owned),
    }
}

/// Visits each value of the text with its path and its range; an array or an object after its
/// contents. The stack grows with the depth of the text.
///
/// # Errors
/// The text is no JSON.
pub fn walk_json<'j>(
    json: &'j str,
    mut visit: impl FnMut(&[JsonStep<'j>], Range<usize>),
) -> serde_json::Result<()> {
    serde_json::from_str::<&RawValue>(json)?;
    let (mut path, mut starts, mut at) = (Vec::new(), Vec::new(), 0);
    while let Some(byte) = json.as_bytes().get(at) {
        let end = at + token_length(&json[at..]);
        match (byte, path.last_mut()) {
            (b'{' | b'[', _) => {
                starts.push(at);
                path.push(if *byte == b'{' { JsonStep::Member("") } else { JsonStep::Item(0) });
            }
            (b'}' | b']', _) => {
                path.pop();
                visit(&path, starts.pop().unwrap_or_default()..end);
            }
            (b',', Some(JsonStep::Item(number))) => *number += 1,
            // The next string is a name.
            (b',', Some(JsonStep::Member(name))) => *name = "",
            (b'"', Some(JsonStep::Member(name))) if name.is_empty() => *name = &json[at..end],
            (b',' | b':' | b' ' | b'\n' | b'\r' | b'\t', _) => {}
            _ => visit(&path, at..end),
        }
        at = end;
    }
    Ok(())
}

/// The length of the token at the beginning of the text: a mark or a blank, a string, a number or a
/// word.
fn token_length(json: &str) -> usize {
    let bytes = json.as_bytes();
    match bytes[0] {
        b'"' => {
            let (mut at, mut escaped) = (1, false);
            while at < bytes.len() && (escaped || bytes[at] != b'"') {
                escaped = !escaped && bytes[at] == b'\\';
                at += 1;
            }
            at + 1
        }
        b'{' | b'}' | b'[' | b']' | b',' | b':' | b' ' | b'\n' | b'\r' | b'\t' => 1,
        _ => {
            let ends =
                |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t');
            bytes.iter().position(ends).unwrap_or(bytes.len())
        }
    }
}

/// The same JSON over several lines, for people.
///
/// # Errors
/// The text is no JSON.
pub fn pretty_json(json: &str) -> serde_json::Result<String> {
    serde_json::from_str::<&RawValue>(json)?;
    let (mut out, mut depth, mut at, mut opened) = (String::new(), 0, 0, false);
    while at < json.len() {
        let token = &json[at..at + token_length(&json[at..])];
        at += token.len();
        let closes = matches!(token, "}" | "]");
        if token.trim().is_empty() {
            continue;
        }
        depth -= usize::from(closes);
        // An empty one stays on its line.
        if opened != closes && (opened || closes) {
            line(&mut out, depth);
        }
        out.push_str(token);
        opened = matches!(token, "{" | "[");
        depth += usize::from(opened);
        match token {
            "," => line(&mut out, depth),
            ":" => out.push(' '),
            _ => {}
        }
    }
    Ok(out)
}

/// A very deep one would be blanks for the most part.
fn line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth.min(64)));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// The JSON pointer that leads along these steps.
    fn json_pointer(path: &[JsonStep<'_>]) -> String {
        let token = |step: &JsonStep<'_>| match step {
            JsonStep::Member(name) => {
                let name = json_text(name).unwrap_or(Cow::Borrowed(name));
                format!("/{}", name.replace('~', "~0").replace('/', "~1"))
            }
            JsonStep::Item(at) => format!("/{at}"),
        };
        path.iter().map(token).collect()
    }

    fn visited(json: &str) -> Vec<(String, &str)> {
        let mut visited = Vec::new();
        walk_json(json, |path, range| visited.push((json_pointer(path), &json[range]))).unwrap();
        visited
    }

    #[test]
    fn each_value_is_visited_as_it_is_written() {
        let json = r#" {"a" : [1.50, {"b/c":"x\"]"}, [] ],"a":{},"\u0061~":1e400, "d":"\ud800"} "#;
        let expected = [
            ("/a/0", "1.50"),
            ("/a/1/b~1c", r#""x\"]""#),
            ("/a/1", r#"{"b/c":"x\"]"}"#),
            ("/a/2", "[]"),
            ("/a", r#"[1.50, {"b/c":"x\"]"}, [] ]"#),
            ("/a", "{}"),
            ("/a~0", "1e400"),
            ("/d", r#""\ud800""#),
            ("", json.trim()),
        ];
        assert_eq!(visited(json), expected.map(|(at, text)| (at.to_owned(), text)));
        assert_eq!(visited("7"), [(String::new(), "7")]);
        for wrong in ["", "{", "[1,]", "{} x", "\"a"] {
            assert!(walk_json(wrong, |_, _| {}).is_err(), "{wrong}");
            assert!(pretty_json(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn how_deep_a_text_is_does_not_matter() {
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        let mut values = 0;
        walk_json(&deep, |_, _| values += 1).unwrap();
        assert_eq!(values, 100_001);
        assert!(pretty_json(&deep).is_ok());
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::from),
            "[a-c/~\"\\\\{},\n]{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map("[a-c/~\"]{0,2}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// What serde_json finds and writes.
        #[test]
        fn every_pointer_leads_to_its_value(value in values()) {
            let text = value.to_string();
            for (pointer, found) in visited(&text) {
                let expected = value.pointer(&pointer).map(Value::to_string);
                prop_assert_eq!(Some(found), expected.as_deref());
            }
            prop_assert_eq!(pretty_json(&text).unwrap(), format!("{value:#}"));
            prop_assert_eq!(pretty_json(&format!("{value:#}")).unwrap(), format!("{value:#}"));
        }
    }

    #[test]
    fn numbers_and_order_are_those_of_the_text() {
        let text = r#"{"b":123456789012345678901234567890,"a":[],"b":{}}"#;
        let expected = "{\n  \"b\": 123456789012345678901234567890,\n  \"a\": [],\n  \"b\": {}\n}";
        assert_eq!(pretty_json(text).unwrap(), expected);
    }
}
