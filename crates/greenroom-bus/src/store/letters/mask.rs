//! The parts of a letter that are hidden: letters contain customers' data.

use std::{borrow::Cow, cmp::Reverse, ops::Range};

use super::json_walk::{JsonStep, json_text, walk_json};
use crate::event::{Event, Pointer};

/// Replaces a hidden value.
const HIDDEN: &str = "***";

/// The same as JSON.
const HIDDEN_JSON: &str = "\"***\"";

/// Hidden values are looked for in errors from this length on, in characters: shorter ones are in
/// many words and figures.
const SHORTEST: usize = 4;

/// Places in an event that are not shown, such as `/data/card`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mask(Vec<Pointer>);

/// A mask that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is no JSON pointer: write, for example, /data/card, with ~1 for a `/` and ~0 for a `~` in a name"
)]
pub struct NoMask;

impl Mask {
    /// Hides the values that these JSON pointers (RFC 6901) refer to, in the event as JSON. A `*`
    /// in place of a name or an index matches all of them.
    ///
    /// # Errors
    /// One of them is no pointer.
    pub fn new(pointers: &[impl AsRef<str>]) -> Result<Self, NoMask> {
        let pointers = pointers.iter().map(|pointer| Pointer::from_text(pointer.as_ref()));
        pointers.collect::<Result<_, _>>().map(Self).map_err(|_| NoMask)
    }

    /// True if everything is shown.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The pointers as they were written.
    pub(super) fn written(&self) -> Vec<&'static str> {
        self.0.iter().map(|pointer| pointer.as_str()).collect()
    }

    /// The text, unless this attribute of an event is hidden.
    pub(super) fn attribute(&self, name: &str, text: Option<String>) -> Option<String> {
        let is_hidden = self.0.iter().any(|pointer| match pointer.tokens() {
            [only] => **only == *name || **only == *"*",
            _ => false,
        });
        match is_hidden {
            true => text.map(|_| HIDDEN.to_owned()),
            false => text,
        }
    }

    /// The event as JSON, without hidden values. Text that is not JSON is hidden as a whole.
    pub fn event(&self, json: &[u8]) -> String {
        self.hide(json, &[])
    }

    /// The text of an error without the values that are hidden of the event that it is about.
    pub(super) fn error(&self, event: &Event, error: String) -> String {
        if self.is_empty() {
            return error;
        }
        let mut json = Vec::new();
        event.write_json(&mut json);
        let json = String::from_utf8(json).unwrap_or_default();
        let mut values: Vec<Cow<'_, str>> = Vec::new();
        for at in self.places(&json, &[]).unwrap_or_default() {
            let hidden = &json[at];
            // It is a part of the text that was just walked, so it is JSON.
            let _ = walk_json(hidden, |_, at| values.extend(spellings(&hidden[at])));
        }
        values.retain(|value| value.chars().count() >= SHORTEST);
        // One may be a part of another.
        values.sort_by_key(|value| Reverse(value.len()));
        values.iter().fold(error, |error, value| error.replace(&**value, HIDDEN))
    }

    /// A list of entries with an event each, with the hidden values of those removed.
    pub(super) fn events(&self, json: &[u8]) -> String {
        self.hide(json, &["*", "event"])
    }

    /// True if some of this event is not shown.
    pub(super) fn hides_part(&self, json: &[u8]) -> bool {
        let json = str::from_utf8(json).unwrap_or_default();
        !self.is_empty() && !self.places(json, &[]).is_ok_and(|places| places.is_empty())
    }

    /// True if `***` is in a place that this hides: the event was copied from a masked view.
    pub fn stands_in(&self, json: &[u8]) -> bool {
        let json = str::from_utf8(json).unwrap_or_default();
        let places = self.places(json, &[]).unwrap_or_default();
        places.into_iter().any(|at| json[at] == *HIDDEN_JSON)
    }

    fn hide(&self, json: &[u8], event: &[&str]) -> String {
        let json = str::from_utf8(json).unwrap_or_default();
        let Ok(places) = self.places(json, event) else { return HIDDEN_JSON.to_owned() };
        let (mut shown, mut end) = (String::with_capacity(json.len()), 0);
        for at in places {
            shown.push_str(&json[end..at.start]);
            shown.push_str(HIDDEN_JSON);
            end = at.end;
        }
        shown.push_str(&json[end..]);
        shown
    }

    /// The hidden ranges of the event at the end of these steps.
    fn places(&self, json: &str, event: &[&str]) -> serde_json::Result<Vec<Range<usize>>> {
        let mut places: Vec<Range<usize>> = Vec::new();
        walk_json(json, |path, at| {
            let Some((to_event, path)) = path.split_at_checked(event.len()) else { return };
            let is_text = json[at.clone()].starts_with('"');
            if leads(event, to_event)
                && self.0.iter().any(|pointer| hides(pointer.tokens(), path, is_text))
            {
                places.push(at);
            }
        })?;
        places.sort_by_key(|at| (at.start, Reverse(at.end)));
        // A value inside another hidden one is hidden with it.
        let mut end = 0;
        places.retain(|at| {
            let is_outer = at.start >= end;
            end = end.max(at.end);
            is_outer
        });
        Ok(places)
    }
}

fn leads(way: &[impl AsRef<str>], path: &[JsonStep<'_>]) -> bool {
    way.iter().zip(path).all(|(token, step)| token.as_ref() == "*" || step.is(token.as_ref()))
}

/// If the path ends early, in a string, that string may contain the hidden value.
fn hides(way: &[Box<str>], path: &[JsonStep<'_>], is_text: bool) -> bool {
    // The place of a member of the data in bytes is unknown.
    let is_data = way.first().is_some_and(|first| matches!(&**first, "data" | "*"));
    is_data && matches!(path, [only] if only.is("data_base64"))
        || (way.len() == path.len() || way.len() > path.len() && is_text) && leads(way, path)
}

/// A text as it is and as JSON writes it; a number. Nothing of anything else.
fn spellings(json: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let written = json.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let number = json.starts_with(|c: char| c == '-' || c.is_ascii_digit()).then_some(json);
    json_text(json).into_iter().chain(written.or(number).map(Cow::Borrowed))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn masked(pointers: &[&str], event: &Value) -> Value {
        let shown = Mask::new(pointers).unwrap().event(event.to_string().as_bytes());
        serde_json::from_str(&shown).unwrap()
    }

    #[test]
    fn d06_what_a_mask_names_is_not_shown_and_the_rest_is() {
        let event = json!({ "id": "1", "data": { "card": { "number": 4 }, "a/b": 1, "items": [
            { "iban": "DE", "n": 1 }, { "iban": "FR", "n": 2 } ] } });
        let found = masked(&["/data/card", "/data/a~1b", "/data/items/*/iban", "/no/such"], &event);
        assert_eq!(
            found,
            json!({ "id": "1", "data": { "card": "***", "a/b": "***", "items": [
                { "iban": "***", "n": 1 }, { "iban": "***", "n": 2 } ] } })
        );
        assert_eq!(masked(&["/data/items/1"], &event)["data"]["items"][1], "***");
    }

    #[test]
    fn d06_what_nobody_can_look_into_is_hidden_whole() {
        let text = json!({ "data": "{\"card\": 4}", "type": "t" });
        assert_eq!(masked(&["/data/card"], &text), json!({ "data": "***", "type": "t" }));
        let binary = json!({ "data_base64": "eyJjYXJkIjo0fQ==" });
        assert_eq!(masked(&["/data/card"], &binary), json!({ "data_base64": "***" }));
        assert_eq!(Mask::new(&["/data/card"]).unwrap().event(b"{"), "\"***\"");
    }

    #[test]
    fn c04_a_mask_knows_of_which_events_it_hides_something() {
        let mask = Mask::new(&["/data/card"]).unwrap();
        for (event, hides_part, stands_in) in [
            (r#"{"data":{"card":null}}"#, true, false),
            (r#"{"data":"{\"card\":4}"}"#, true, false),
            (r#"{"data_base64":"eyJjYXJkIjo0fQ=="}"#, true, false),
            (r#"{"data":{"card":"***"}}"#, true, true),
            (r#"{"data":{"name":"***"}}"#, false, false),
            ("{", true, false),
        ] {
            let event = event.as_bytes();
            let found = (mask.hides_part(event), mask.stands_in(event));
            assert_eq!(found, (hides_part, stands_in), "{event:?}");
            assert!(!Mask::default().hides_part(event), "{event:?}");
        }
    }

    #[test]
    fn d06_what_is_shown_stays_byte_for_byte() {
        let event = r#"{"b": 1.50, "data":{"card":0.12345678901234567890123,"s":"\ud800"},"b":123456789012345678901234567890}"#;
        let shown = event.replace("0.12345678901234567890123", HIDDEN_JSON);
        assert_eq!(Mask::new(&["/data/card"]).unwrap().event(event.as_bytes()), shown);
    }

    #[test]
    fn d06_an_error_repeats_no_hidden_value() {
        let data = json!({
            "card": "4711 0815", "pin": 123, "amount": 8127.5, "on": true,
            "items": [{ "iban": "DE\"12", "name": "anna" }],
        });
        let event = Event::builder("1", "/s", "t").data_json(&data).build().unwrap();
        let pointers = ["/data/card", "/data/pin", "/data/amount", "/data/on", "/data/items/*"];
        let mask = Mask::new(&pointers).unwrap();
        let error = |text: &str| mask.error(&event, text.to_owned());
        assert_eq!(error("422: no card 4711 0815 for 8127.5"), "422: no card *** for ***");
        assert_eq!(error(r#"{"iban":"DE\"12"} of anna: DE"12"#), r#"{"iban":"***"} of ***: ***"#);
        let short = "pin 123 is true: nothing of that is long enough, or a text";
        assert_eq!(error(short), short);
        assert_eq!(Mask::default().error(&event, "4711 0815".to_owned()), "4711 0815");
    }

    #[test]
    fn d06_a_mask_has_to_be_a_pointer() {
        for wrong in ["data", "", "/a~2", "data/card"] {
            assert!(Mask::new(&[wrong]).is_err(), "{wrong}");
        }
    }
}
