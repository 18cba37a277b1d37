//! What an edit makes of an event.

use greenroom_bus::event::Event;
use serde_json::Value;

/// The event with these places set, each `/pointer=value`: the value is JSON, or else a text.
///
/// # Errors
/// What is wrong, and with which.
pub(crate) fn set<'a>(
    event: &[u8],
    changes: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<u8>, String> {
    let no_event = |_| "its bytes are no JSON: give the whole event".to_owned();
    let mut event: Value = serde_json::from_slice(event).map_err(no_event)?;
    for change in changes {
        let wrong = || format!("`{change}` sets nothing: write `/data/name=value`");
        let (pointer, value) = change.split_once('=').ok_or_else(wrong)?;
        let (parent, name) = pointer.rsplit_once('/').ok_or_else(wrong)?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        let missing = || format!("`{pointer}` has no place: there is no `{parent}` in the event");
        let name = name.replace("~1", "/").replace("~0", "~");
        match event.pointer_mut(parent).ok_or_else(missing)? {
            Value::Object(members) => {
                members.insert(name, value);
            }
            Value::Array(items) => {
                let at = name.parse::<usize>().ok().and_then(|at| items.get_mut(at));
                *at.ok_or_else(missing)? = value;
            }
            _ => return Err(format!("`{parent}` is a single value, so `{pointer}` has no place")),
        }
    }
    serde_json::to_vec(&event).map_err(|error| error.to_string())
}

/// The event that these bytes are.
///
/// # Errors
/// Why they are none.
pub(crate) fn event(bytes: &[u8]) -> Result<Event, String> {
    Event::parse(bytes.trim_ascii()).map_err(|error| format!("this is no event: {error}"))
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
}
