//! What of a letter is not shown: letters hold what customers have sent.

use std::{
    borrow::Cow,
    cmp::Reverse,
    collections::{HashMap, HashSet},
    ops::Range,
};

use super::json_walk::{JsonStep, json_pointer, json_text, walk_json};
use crate::event::{Event, Pointer};

/// What stands in place of what is not shown.
const HIDDEN: &str = "***";

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
    /// Hides what these JSON pointers (RFC 6901) lead to, in the event as JSON. A `*` in place of
    /// a name or a number stands for all that are there.
    ///
    /// # Errors
    /// One of them is no pointer.
    pub fn of(pointers: &[impl AsRef<str>]) -> Result<Self, NoMask> {
        let pointers = pointers.iter().map(|pointer| Pointer::of(pointer.as_ref()));
        pointers.collect::<Result<_, _>>().map(Self).map_err(|_| NoMask)
    }

    /// True where everything is shown.
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

    /// A text in this JSON that looks as if it stood for what is hidden, such as `***`. `None` if
    /// nothing is hidden.
    pub fn stand_in(&self, json: &str) -> Option<String> {
        let mut found = None;
        // In what is no JSON, nothing is found.
        let _ = walk_json(json, |_, range| {
            found = found.take().or_else(|| stands_for_hidden(&json[range]));
        });
        found.filter(|_| !self.is_empty())
    }

    /// The event as JSON, without what is hidden. Text that is no JSON is hidden whole.
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
        for HiddenPlace { at, .. } in self.places(&json, &[]).unwrap_or_default() {
            let hidden = &json[at];
            // It is a part of what was walked through, so it is JSON.
            let _ = walk_json(hidden, |_, at| values.extend(spellings(&hidden[at])));
        }
        values.retain(|value| value.chars().count() >= SHORTEST);
        // One may be a part of another.
        values.sort_by_key(|value| Reverse(value.len()));
        values.iter().fold(error, |error, value| error.replace(&**value, HIDDEN))
    }

    /// A list of what has an event each, without what is hidden in those.
    pub(super) fn events(&self, json: &[u8]) -> String {
        self.hide(json, &["*", "event"])
    }

    fn hide(&self, json: &[u8], event: &[&str]) -> String {
        let json = str::from_utf8(json).unwrap_or_default();
        let places = self.places(json, event);
        let hidden = places.map(|places| {
            let hide = |place: HiddenPlace| (place.at, format!("\"{HIDDEN}\""));
            splice(json, places.into_iter().map(hide)).0
        });
        hidden.unwrap_or_else(|_| format!("\"{HIDDEN}\""))
    }

    /// What is hidden of the event that these steps lead to, one behind the other.
    fn places(&self, json: &str, event: &[&str]) -> serde_json::Result<Vec<HiddenPlace>> {
        let mut places = Vec::new();
        walk_json(json, |path, at| {
            let Some((to_event, path)) = path.split_at_checked(event.len()) else { return };
            let is_text = json[at.clone()].starts_with('"');
            if leads(event, to_event)
                && self.0.iter().any(|pointer| hides(pointer.tokens(), path, is_text))
            {
                places.push(HiddenPlace { pointer: json_pointer(path), at });
            }
        })?;
        places.sort_by_key(|place| (place.at.start, Reverse(place.at.end)));
        // What lies within another is hidden with it.
        let mut end = 0;
        places.retain(|place| {
            let is_outer = place.at.start >= end;
            end = end.max(place.at.end);
            is_outer
        });
        Ok(places)
    }
}

/// What is hidden in a text.
struct HiddenPlace {
    /// From the event on.
    pointer: String,
    at: Range<usize>,
}

/// True where one of these places, which follow each other, has all of this.
fn holds(places: &[HiddenPlace], range: &Range<usize>) -> bool {
    let behind = places.partition_point(|place| place.at.end < range.end);
    places.get(behind).is_some_and(|place| place.at.start <= range.start)
}

fn leads(way: &[impl AsRef<str>], path: &[JsonStep<'_>]) -> bool {
    way.iter().zip(path).all(|(token, step)| token.as_ref() == "*" || step.is(token.as_ref()))
}

/// Where the way ends early, in a text, that may hold what it leads to.
fn hides(way: &[Box<str>], path: &[JsonStep<'_>], is_text: bool) -> bool {
    // Nobody can say where in bytes a member of the data is.
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

/// The text with other text at these places, and where that stands now.
fn splice(
    text: &str,
    places: impl IntoIterator<Item = (Range<usize>, String)>,
) -> (String, Vec<Range<usize>>) {
    let (mut out, mut now, mut end) = (String::with_capacity(text.len()), Vec::new(), 0);
    for (at, new) in places {
        out.push_str(&text[end..at.start]);
        now.push(out.len()..out.len() + new.len());
        out.push_str(&new);
        end = at.end;
    }
    out.push_str(&text[end..]);
    (out, now)
}

/// Why an edit is refused by a mask.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotRestored {
    /// A text stands for what is hidden, and says not for what.
    #[error(
        "{text:?} at {at:?} names no hidden place of this letter: keep each hidden text as it is handed out for an edit, such as \"{HIDDEN} /data/card\", or write the value itself"
    )]
    Unknown {
        /// It.
        text: String,
        /// Where it is in what was written.
        at: String,
    },
    /// What is hidden would be shown.
    #[error(
        "{text:?} at {at:?} would be shown there: what is hidden may only move to where the mask hides it, too"
    )]
    Shown {
        /// What stands for it.
        text: String,
        /// Where it is in what was written.
        at: String,
    },
}

impl Mask {
    /// The event as JSON for who edits it: what is hidden is named, so that it is known wherever it
    /// stands afterwards.
    pub(super) fn for_edit(&self, json: &[u8]) -> String {
        let json = str::from_utf8(json).unwrap_or_default();
        let Ok(named) = NamedPlaces::of(self, json) else { return self.hide(b"", &[]) };
        let quoted = |(name, at)| (at, serde_json::Value::String(name).to_string());
        splice(json, named.places.into_iter().map(quoted)).0
    }

    /// Puts back into an edited event what was hidden when it was handed out for that. Of an
    /// original that is no JSON nothing was.
    ///
    /// # Errors
    /// A text stands for nothing that was hidden, or would show it.
    pub fn restore(&self, original: &[u8], edited: &[u8]) -> Result<Vec<u8>, NotRestored> {
        let as_it_is = || Ok(edited.to_vec());
        if self.is_empty() {
            return as_it_is();
        }
        let (Ok(original), Ok(text)) = (str::from_utf8(original), str::from_utf8(edited)) else {
            return as_it_is();
        };
        let Ok(named) = NamedPlaces::of(self, original) else { return as_it_is() };
        let places: HashMap<_, _> = named.places.into_iter().collect();
        let (mut known, mut unknown) = (Vec::new(), None);
        let walked = walk_json(text, |path, range| {
            let Some(said) = stands_for_hidden(&text[range.clone()]) else { return };
            let at = || json_pointer(path);
            match places.get(&said) {
                Some(place) => known.push((range, original[place.clone()].to_owned(), said, at())),
                None if named.shown.contains(&said) => {}
                None => unknown = Some(NotRestored::Unknown { text: said, at: at() }),
            }
        });
        match (walked, unknown) {
            (Err(_), _) => return as_it_is(),
            (Ok(()), Some(unknown)) => return Err(unknown),
            (Ok(()), None) => {}
        }
        let values = known.iter().map(|(range, value, ..)| (range.clone(), value.clone()));
        let (restored, now) = splice(text, values);
        let hidden = self.places(&restored, &[]).unwrap_or_default();
        for (range, (_, _, said, at)) in now.iter().zip(known) {
            if !holds(&hidden, range) {
                return Err(NotRestored::Shown { text: said, at });
            }
        }
        Ok(restored.into_bytes())
    }
}

/// What is hidden in an event, each place with a name of its own.
struct NamedPlaces {
    places: Vec<(String, Range<usize>)>,
    /// What looks like a name, and is a text that everybody sees.
    shown: HashSet<String>,
}

impl NamedPlaces {
    fn of(mask: &Mask, json: &str) -> serde_json::Result<Self> {
        let hidden = mask.places(json, &[])?;
        let mut shown = HashSet::new();
        walk_json(json, |_, range| {
            let is_hidden = holds(&hidden, &range);
            shown.extend(stands_for_hidden(&json[range]).filter(|_| !is_hidden));
        })?;
        let mut taken = shown.clone();
        let name = |place: HiddenPlace| {
            let mut name = format!("{HIDDEN} {}", place.pointer);
            // A member that is there twice, or a text that reads alike.
            while !taken.insert(name.clone()) {
                name.push('*');
            }
            (name, place.at)
        };
        Ok(Self { places: hidden.into_iter().map(name).collect(), shown })
    }
}

/// The text, if it looks as if it stood for what is hidden.
fn stands_for_hidden(json: &str) -> Option<String> {
    let text = json_text(json)?;
    (text == HIDDEN || text.contains("*** /")).then(|| text.into_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn masked(pointers: &[&str], event: &Value) -> Value {
        let shown = Mask::of(pointers).unwrap().event(event.to_string().as_bytes());
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
        assert_eq!(Mask::of(&["/data/card"]).unwrap().event(b"{"), "\"***\"");
    }

    /// What an edit of what is handed out makes of the event.
    fn edited(
        pointers: &[&str],
        original: &str,
        edit: impl FnOnce(&mut Value),
    ) -> Result<Value, NotRestored> {
        let mask = Mask::of(pointers).unwrap();
        let mut event = serde_json::from_str(&mask.for_edit(original.as_bytes())).unwrap();
        edit(&mut event);
        let restored = mask.restore(original.as_bytes(), event.to_string().as_bytes())?;
        Ok(serde_json::from_slice(&restored).unwrap())
    }

    const ITEMS: &str =
        r#"{"data":{"items":[{"name":"anna","iban":"DE"},{"name":"bob","iban":"FR"}]}}"#;
    const IBANS: &[&str] = &["/data/items/*/iban"];

    #[test]
    fn c04_what_was_hidden_from_who_edits_stays_and_what_was_written_holds() {
        let original = r#"{"data":{"card":4,"items":[{"iban":"DE"},{"iban":"FR"}],"n":1}}"#;
        let restored = edited(&["/data/card", "/data/items/*/iban"], original, |event| {
            assert_eq!(event["data"]["card"], "*** /data/card");
            event["data"]["n"] = 2.into();
            event["data"]["items"][1]["iban"] = "new".into();
        });
        let items = json!([{ "iban": "DE" }, { "iban": "new" }]);
        assert_eq!(restored.unwrap(), json!({ "data": { "card": 4, "items": items, "n": 2 } }));
    }

    #[test]
    fn c04_what_is_hidden_in_an_item_goes_where_the_item_goes() {
        let [anna, bob] = [("anna", "DE"), ("bob", "FR")]
            .map(|(name, iban)| json!({ "name": name, "iban": iban }));
        let items = |edit: fn(&mut Vec<Value>)| {
            let restored = edited(IBANS, ITEMS, |event| {
                edit(event["data"]["items"].as_array_mut().unwrap());
            });
            restored.unwrap()["data"]["items"].take()
        };
        assert_eq!(items(|items| drop(items.remove(0))), json!([bob]));
        assert_eq!(items(|items| items.reverse()), json!([bob, anna]));
        assert_eq!(items(|items| items.push(items[0].clone())), json!([anna, bob, anna]));
    }

    #[test]
    fn c04_an_edit_that_a_mask_cannot_follow_is_refused() {
        let refused = |edit: fn(&mut Value)| edited(IBANS, ITEMS, edit).unwrap_err().to_string();
        let bare = refused(|event| event["data"]["items"][1]["iban"] = "***".into());
        assert!(bare.contains(r#""***" at "/data/items/1/iban" names no hidden place"#), "{bare}");
        let none = refused(|event| event["data"]["new"] = "*** /data/items/7/iban".into());
        assert!(none.contains(r#""*** /data/items/7/iban" at "/data/new""#), "{none}");
        let within = refused(|event| event["data"]["new"] = "is *** /data/items/0/iban".into());
        assert!(within.contains("names no hidden place"), "{within}");
        // Else who may not see it has it shown.
        let shown = refused(|event| event["data"]["new"] = "*** /data/items/0/iban".into());
        assert!(shown.contains(r#"at "/data/new" would be shown there"#), "{shown}");
        let object = r#"{"data":{"card":{"number":4}}}"#;
        let shown =
            edited(&["/data/card"], object, |event| event["data"] = "*** /data/card".into());
        assert!(matches!(shown, Err(NotRestored::Shown { .. })), "{shown:?}");
    }

    #[test]
    fn c04_a_text_of_the_event_is_not_taken_for_what_is_hidden() {
        let original = r#"{"data":{"card":4,"a":"***","b":"*** /data/card","card":5}}"#;
        let mask = Mask::of(&["/data/card"]).unwrap();
        let handed = mask.for_edit(original.as_bytes());
        let expected = r#"{"data":{"card":"*** /data/card*","a":"***","b":"*** /data/card","card":"*** /data/card**"}}"#;
        assert_eq!(handed, expected);
        let restored = mask.restore(original.as_bytes(), handed.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(restored).unwrap(), original);
    }

    #[test]
    fn c04_what_an_edit_leaves_stays_byte_for_byte() {
        let original = r#"{"b": 1.50, "data":{"card":0.12345678901234567890123,"s":"\ud800"},"b":123456789012345678901234567890}"#;
        let mask = Mask::of(&["/data/card"]).unwrap();
        let handed = mask.for_edit(original.as_bytes()).replace("1.50", "2.50");
        let restored = mask.restore(original.as_bytes(), handed.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(restored).unwrap(), original.replace("1.50", "2.50"));
        let shown = original.replace("0.12345678901234567890123", "\"***\"");
        assert_eq!(mask.event(original.as_bytes()), shown);
    }

    #[test]
    fn d06_an_error_repeats_no_hidden_value() {
        let data = json!({
            "card": "4711 0815", "pin": 123, "amount": 8127.5, "on": true,
            "items": [{ "iban": "DE\"12", "name": "anna" }],
        });
        let event = Event::builder("1", "/s", "t").data_json(&data).build().unwrap();
        let pointers = ["/data/card", "/data/pin", "/data/amount", "/data/on", "/data/items/*"];
        let mask = Mask::of(&pointers).unwrap();
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
            assert!(Mask::of(&[wrong]).is_err(), "{wrong}");
        }
    }
}
