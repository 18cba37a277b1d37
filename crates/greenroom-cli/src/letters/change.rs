//! The effect of an edit on an event.

use std::ops::Range;

use greenroom_bus::{
    event::Event,
    store::letters::{JsonStep, walk_json},
};
use serde_json::{Value, value::RawValue};

/// The event with these places set, each `/pointer=value`: the value is JSON, or else a text. All
/// other places keep their bytes.
///
/// # Errors
/// The error, and the assignment that caused it.
pub(crate) fn set<'a>(
    event: &[u8],
    changes: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<u8>, String> {
    let no_event = "its bytes are not JSON: give the whole event";
    let mut event = str::from_utf8(event).map_err(|_| no_event)?.to_owned();
    for change in changes {
        let wrong = || format!("`{change}` sets nothing: write `/data/name=value`");
        let (pointer, value) = change.split_once('=').ok_or_else(wrong)?;
        let (parent, name) = pointer.rsplit_once('/').ok_or_else(wrong)?;
        let tokens: Vec<_> = pointer.split('/').skip(1).map(unescaped).collect();
        let missing = || format!("`{pointer}` has no place: there is no `{parent}` in the event");
        let place = place(&event, &tokens).map_err(|_| no_event)?.ok_or_else(missing)?;
        let value = match serde_json::from_str::<&RawValue>(value) {
            Ok(json) => json.get().to_owned(),
            Err(_) => Value::from(value).to_string(),
        };
        let SetPlace { parent: around, value: known } = place;
        match (known, event.as_bytes()[around.start]) {
            (Some(known), _) => event.replace_range(known, &value),
            (None, b'{') => {
                let end = around.end - 1;
                let is_empty = event[around.start + 1..end].trim().is_empty();
                let name = Value::from(unescaped(name));
                let mark = if is_empty { "" } else { "," };
                event.insert_str(end, &format!("{mark}{name}:{value}"));
            }
            (None, b'[') => return Err(missing()),
            _ => return Err(format!("`{parent}` is a single value, so `{pointer}` has no place")),
        }
    }
    Ok(event.into_bytes())
}

/// RFC 6901, section 4.
fn unescaped(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

/// The place for a value.
struct SetPlace {
    /// The range of its parent.
    parent: Range<usize>,
    /// The value there.
    value: Option<Range<usize>>,
}

/// The place that the tokens of a pointer lead to. The last of several members with the same name
/// counts, as for every reader of JSON pointers here.
fn place(json: &str, tokens: &[String]) -> serde_json::Result<Option<SetPlace>> {
    let (mut place, mut value) = (None, None);
    walk_json(json, |path, range| {
        let leads = |(step, token): (&JsonStep<'_>, &String)| step.is(token);
        if path.len() > tokens.len() || !path.iter().zip(tokens).all(leads) {
            return;
        }
        match tokens.len() - path.len() {
            0 => value = Some(range),
            1 => place = Some(SetPlace { parent: range, value: value.take() }),
            // A match inside an earlier member of that name no longer counts.
            _ => place = place.take().filter(|place: &SetPlace| range.start <= place.parent.start),
        }
    })?;
    Ok(place)
}

/// Reads an event from bytes.
///
/// # Errors
/// Why they are no event.
pub(crate) fn event(bytes: &[u8]) -> Result<Event, String> {
    Event::parse(bytes.trim_ascii()).map_err(|error| format!("this is not an event: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn changed(changes: &[&str]) -> Result<Value, String> {
        let event = json!({ "id": "1", "data": { "items": [1, 2], "a/b": 1 } }).to_string();
        let changed = set(event.as_bytes(), changes.iter().copied())?;
        Ok(serde_json::from_slice(&changed).unwrap())
    }

    #[test]
    fn c04_places_of_an_event_are_set_to_json_or_text() {
        let found =
            changed(&["/id=x y", "/data/new={\"n\":1}", "/data/items/1=5", "/data/a~1b=a=b"]);
        let data = json!({ "items": [1, 5], "a/b": "a=b", "new": { "n": 1 } });
        assert_eq!(found.unwrap(), json!({ "id": "x y", "data": data }));
        for wrong in ["id=1", "/no/such=1", "/id/x=1", "/data/items/7=1", "nothing"] {
            assert!(changed(&[wrong]).unwrap_err().contains('`'), "{wrong}");
        }
    }

    #[test]
    fn c04_what_is_not_set_stays_byte_for_byte() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let event = format!(
            r#"{{"z": 123456789012345678901234567890,"data":{{ "n":0.12345678901234567890123,"deep":{deep},"s":"\ud800","n":1e400,"o":{{}} }}, "data2":1}}"#
        );
        let text = |changes: &[&str]| {
            String::from_utf8(set(event.as_bytes(), changes.iter().copied()).unwrap()).unwrap()
        };
        let found = text(&["/data/bad=false", "/data/o/x=12345678901234567890123"]);
        let expected =
            event.replace(r#""o":{} }"#, r#""o":{"x":12345678901234567890123} ,"bad":false}"#);
        assert_eq!(found, expected);
        assert_eq!(
            text(&["/data/n=\"b\""]),
            event.replace("1e400", "\"b\""),
            "the last one counts"
        );
    }

    #[test]
    fn c04_of_an_object_that_is_there_twice_the_last_one_is_set() {
        let found = |event: &str, change| {
            set(event.as_bytes(), [change]).map(|event| String::from_utf8(event).unwrap())
        };
        let event = r#"{"a":{"b":{"c":1}},"a":{"d":{}}}"#;
        assert!(found(event, "/a/b/c=2").unwrap_err().contains("no place"));
        assert_eq!(found(event, "/a/b=2").unwrap(), r#"{"a":{"b":{"c":1}},"a":{"d":{},"b":2}}"#);
    }
}
