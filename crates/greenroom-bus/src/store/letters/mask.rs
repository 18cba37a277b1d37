//! What of a letter is not shown: letters hold what customers have sent.

use serde_json::Value;

use crate::event::Pointer;

/// What stands in place of what is not shown.
const HIDDEN: &str = "***";

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

    /// The event as JSON, without what is hidden. Text that is no JSON is hidden whole.
    pub(super) fn event(&self, json: &[u8]) -> Value {
        let Ok(mut event) = serde_json::from_slice(json) else { return HIDDEN.into() };
        for pointer in &self.0 {
            hide(&mut event, pointer.tokens());
            // Nobody can say where in bytes a member of the data is.
            if let [first, ..] = pointer.tokens()
                && matches!(&**first, "data" | "*")
                && let Some(bytes) = event.get_mut("data_base64")
            {
                *bytes = HIDDEN.into();
            }
        }
        event
    }
}

impl Mask {
    /// Puts back into an edited event what was masked when it was shown, and has been left as it
    /// was.
    ///
    /// # Errors
    /// One of the two is no JSON.
    pub fn restore(&self, original: &[u8], edited: &[u8]) -> serde_json::Result<Vec<u8>> {
        if self.is_empty() {
            return Ok(edited.to_vec());
        }
        let (original, mut edited): (Value, Value) =
            (serde_json::from_slice(original)?, serde_json::from_slice(edited)?);
        for pointer in &self.0 {
            show(&mut edited, &original, pointer.tokens());
        }
        if edited.get("data_base64").is_some_and(|bytes| bytes == HIDDEN)
            && let Some(bytes) = original.get("data_base64")
        {
            edited["data_base64"] = bytes.clone();
        }
        serde_json::to_vec(&edited)
    }
}

/// What `hide` has hidden, from the original.
fn show(edited: &mut Value, original: &Value, way: &[Box<str>]) {
    if edited == HIDDEN {
        *edited = original.clone();
        return;
    }
    let Some((next, rest)) = way.split_first() else { return };
    match (edited, original) {
        (Value::Object(edited), Value::Object(original)) => {
            for (name, member) in edited {
                if let Some(known) =
                    original.get(name).filter(|_| **next == *"*" || **next == *name)
                {
                    show(member, known, rest);
                }
            }
        }
        (Value::Array(edited), Value::Array(original)) => {
            for (at, (item, known)) in edited.iter_mut().zip(original).enumerate() {
                if **next == *"*" || next.parse() == Ok(at) {
                    show(item, known, rest);
                }
            }
        }
        _ => {}
    }
}

/// Where the way ends early, in a text, that may hold what it leads to.
fn hide(value: &mut Value, way: &[Box<str>]) {
    let Some((next, rest)) = way.split_first() else {
        *value = HIDDEN.into();
        return;
    };
    match value {
        Value::Object(members) if **next == *"*" => {
            members.values_mut().for_each(|member| hide(member, rest));
        }
        Value::Object(members) => {
            if let Some(member) = members.get_mut(&**next) {
                hide(member, rest);
            }
        }
        Value::Array(items) if **next == *"*" => items.iter_mut().for_each(|item| hide(item, rest)),
        Value::Array(items) => {
            if let Some(item) = next.parse::<usize>().ok().and_then(|at| items.get_mut(at)) {
                hide(item, rest);
            }
        }
        Value::String(text) => *text = HIDDEN.to_owned(),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn masked(pointers: &[&str], event: &Value) -> Value {
        Mask::of(pointers).unwrap().event(event.to_string().as_bytes())
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
        assert_eq!(Mask::of(&["/data/card"]).unwrap().event(b"{"), json!("***"));
    }

    #[test]
    fn c04_what_was_hidden_from_who_edits_stays_and_what_was_written_holds() {
        let mask = Mask::of(&["/data/card", "/data/items/*/iban"]).unwrap();
        let original =
            json!({ "data": { "card": 4, "items": [{ "iban": "DE" }, { "iban": "FR" }], "n": 1 } });
        let mut edited = mask.event(original.to_string().as_bytes());
        edited["data"]["n"] = 2.into();
        edited["data"]["items"][1]["iban"] = "new".into();
        let restored = mask.restore(original.to_string().as_bytes(), edited.to_string().as_bytes());
        let restored: Value = serde_json::from_slice(&restored.unwrap()).unwrap();
        let items = json!([{ "iban": "DE" }, { "iban": "new" }]);
        assert_eq!(restored, json!({ "data": { "card": 4, "items": items, "n": 2 } }));
    }

    #[test]
    fn d06_a_mask_has_to_be_a_pointer() {
        for wrong in ["data", "", "/a~2", "data/card"] {
            assert!(Mask::of(&[wrong]).is_err(), "{wrong}");
        }
    }
}
