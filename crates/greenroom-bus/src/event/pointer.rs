//! JSON pointers (RFC 6901): members of JSON text, found without building values.
//!
//! Several pointers are one tree, so that they are found in one reading of the text:
//!
//! ```text
//! /order/id, /order/total, /region      order ─┬─ id      (0)
//!                                              └─ total   (1)
//!                                       region            (2)
//! ```

use std::{
    collections::HashMap,
    fmt,
    sync::{
        LazyLock,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A JSON pointer (RFC 6901), such as `/order/id`. Each distinct one is kept once, for the life of
/// the process, so a copy costs nothing: pointers come from configurations, so there are few.
#[derive(Clone, Copy)]
pub struct Pointer(&'static ParsedPointer);

struct ParsedPointer {
    /// As it was written.
    written: Box<str>,
    /// With the escapes undone.
    tokens: Vec<Box<str>>,
    /// The way that it leads.
    way: TokenTree,
}

/// A pointer that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoPointer {
    /// It does not begin with `/`.
    Start,
    /// A `~` without `0` or `1` after it.
    Escape,
}

/// Pointers by how they were written.
static KEPT: LazyLock<Mutex<HashMap<Box<str>, &'static ParsedPointer>>> =
    LazyLock::new(Mutex::default);

impl Pointer {
    /// The pointer that is written so.
    pub(crate) fn from_text(written: &str) -> Result<Self, NoPointer> {
        let mut kept = KEPT.lock();
        if let Some(known) = kept.get(written) {
            return Ok(Self(known));
        }
        let rest = written.strip_prefix('/').ok_or(NoPointer::Start)?;
        let tokens: Vec<_> = rest.split('/').map(unescape).collect::<Result<_, _>>()?;
        let mut way = TokenTree::default();
        way.lead(&tokens, 0);
        let pointer = Box::leak(Box::new(ParsedPointer { written: written.into(), tokens, way }));
        kept.insert(written.into(), pointer);
        Ok(Self(pointer))
    }

    /// As it was written.
    pub(crate) fn as_str(self) -> &'static str {
        &self.0.written
    }

    /// Its parts, with the escapes undone.
    #[cfg(feature = "store")]
    pub(crate) fn tokens(self) -> &'static [Box<str>] {
        &self.0.tokens
    }

    /// The value there. Text after the value is not looked at.
    pub(crate) fn find(self, json: &str) -> serde_json::Result<Option<&RawValue>> {
        let mut found = [None];
        let mut parser = serde_json::Deserializer::from_str(json);
        PointerWalk { way: &self.0.way, found: &mut found }.deserialize(&mut parser)?;
        Ok(found[0])
    }
}

/// RFC 6901, section 3.
fn unescape(token: &str) -> Result<Box<str>, NoPointer> {
    let bad = token.split('~').skip(1).any(|rest| !rest.starts_with(['0', '1']));
    if bad {
        return Err(NoPointer::Escape);
    }
    Ok(token.replace("~1", "/").replace("~0", "~").into())
}

impl PartialEq for Pointer {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Pointer {}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pointer({:?})", self.as_str())
    }
}

/// Several pointers, each once.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Pointers {
    pointers: Vec<Pointer>,
    way: TokenTree,
}

impl Pointers {
    pub(crate) fn add(&mut self, pointer: Pointer) {
        if self.place(pointer).is_none() {
            self.way.lead(&pointer.0.tokens, self.pointers.len());
            self.pointers.push(pointer);
        }
    }

    pub(crate) fn add_all(&mut self, others: &Self) {
        others.pointers.iter().for_each(|pointer| self.add(*pointer));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pointers.is_empty()
    }

    /// The index of this pointer among the results of [`find`](Self::find).
    pub(crate) fn place(&self, pointer: Pointer) -> Option<usize> {
        self.pointers.iter().position(|known| *known == pointer)
    }

    /// The value at each pointer, in one pass. If a member is duplicated, the last one counts.
    ///
    /// # Errors
    /// The text as a whole is no JSON value.
    pub(crate) fn find<'j>(&self, json: &'j str) -> serde_json::Result<Vec<Option<&'j RawValue>>> {
        let mut found = vec![None; self.pointers.len()];
        let mut parser = serde_json::Deserializer::from_str(json);
        PointerWalk { way: &self.way, found: &mut found }.deserialize(&mut parser)?;
        parser.end()?;
        Ok(found)
    }
}

/// The tree of the tokens of some pointers.
#[derive(Debug, Clone, PartialEq, Default)]
struct TokenTree {
    /// The pointer that ends here.
    end: Option<usize>,
    below: Vec<(Box<str>, TokenTree)>,
}

impl TokenTree {
    fn lead(&mut self, tokens: &[Box<str>], end: usize) {
        let Some((token, rest)) = tokens.split_first() else {
            self.end = Some(end);
            return;
        };
        let at = self.below.iter().position(|(known, _)| known == token).unwrap_or_else(|| {
            self.below.push((token.clone(), Self::default()));
            self.below.len() - 1
        });
        self.below[at].1.lead(rest, end);
    }

    /// Nothing was found here after all: the member is there once more.
    fn forget(&self, found: &mut [Option<&RawValue>]) {
        if let Some(end) = self.end {
            found[end] = None;
        }
        self.below.iter().for_each(|(_, below)| below.forget(found));
    }
}

/// Follows the pointers through the text; values off their paths are skipped.
struct PointerWalk<'w, 'f, 'j> {
    way: &'w TokenTree,
    found: &'f mut [Option<&'j RawValue>],
}

impl<'j> DeserializeSeed<'j> for PointerWalk<'_, '_, 'j> {
    type Value = ();

    fn deserialize<D: Deserializer<'j>>(self, deserializer: D) -> Result<(), D::Error> {
        let Some(end) = self.way.end else {
            return deserializer.deserialize_any(PointerStep(self));
        };
        let raw = <&RawValue as serde::Deserialize>::deserialize(deserializer)?;
        self.found[end] = Some(raw);
        if self.way.below.is_empty() {
            return Ok(());
        }
        // One pointer leads beyond the end of another.
        let mut parser = serde_json::Deserializer::from_str(raw.get());
        parser.deserialize_any(PointerStep(self)).map_err(D::Error::custom)
    }
}

struct PointerStep<'w, 'f, 'j>(PointerWalk<'w, 'f, 'j>);

impl<'j> Visitor<'j> for PointerStep<'_, '_, 'j> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_map<A: MapAccess<'j>>(self, mut map: A) -> Result<(), A::Error> {
        let PointerWalk { way, found } = self.0;
        // A bit each; beyond the first of them, a repetition goes unsaid.
        let mut met = 0_u64;
        while let Some(wanted) = map.next_key_seed(Wanted(way))? {
            match wanted {
                Some(place) => {
                    let (name, way) = &way.below[place];
                    let bit = u32::try_from(place).ok().and_then(|at| 1_u64.checked_shl(at));
                    if met & bit.unwrap_or(0) != 0 {
                        tell_repeated(name);
                    }
                    met |= bit.unwrap_or(0);
                    way.forget(found);
                    map.next_value_seed(PointerWalk { way, found: &mut *found })?;
                }
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'j>>(self, mut seq: A) -> Result<(), A::Error> {
        let PointerWalk { way, found } = self.0;
        for place in 0_usize.. {
            let way = way.below.iter().find(|(token, _)| index(token) == Some(place));
            let element = match way {
                Some((_, way)) => seq.next_element_seed(PointerWalk { way, found: &mut *found })?,
                None => seq.next_element::<IgnoredAny>()?.map(drop),
            };
            if element.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Said once for all: a producer that repeats members does so in every event.
#[cold]
fn tell_repeated(member: &str) {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if !TOLD.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            member,
            "a member is there twice in the data of an event: the last one counts here, and may not elsewhere; \
             the layer `validation` rejects such events"
        );
    }
}

/// RFC 6901: digits without a leading zero.
fn index(token: &str) -> Option<usize> {
    let plain = token == "0" || !token.starts_with(['0', '+']);
    token.parse().ok().filter(|_| plain)
}

/// The pointers that continue at a member.
struct Wanted<'w>(&'w TokenTree);

impl<'de> DeserializeSeed<'de> for Wanted<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Wanted<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.below.iter().position(|(token, _)| **token == *name))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn pointers(written: &[&str]) -> Pointers {
        let mut pointers = Pointers::default();
        written.iter().for_each(|pointer| pointers.add(Pointer::from_text(pointer).unwrap()));
        pointers
    }

    fn found<'j>(written: &[&str], json: &'j str) -> Vec<Option<&'j str>> {
        let found = pointers(written).find(json).unwrap();
        found.iter().map(|raw| raw.map(RawValue::get)).collect()
    }

    #[test]
    fn several_pointers_are_found_in_one_reading() {
        let json = r#"{"a":{"b":[1,{"c":2}],"":3},"a/b":"x","m~n":null,"z":0}"#;
        let written = ["/a/b/1/c", "/a/b", "/a/", "/a~1b", "/m~0n", "/a/b/01", "/a/b/2", "/z/0"];
        assert_eq!(
            found(&written, json),
            [
                Some("2"),
                Some(r#"[1,{"c":2}]"#),
                Some("3"),
                Some(r#""x""#),
                Some("null"),
                None,
                None,
                None
            ]
        );
    }

    #[test]
    fn of_a_member_that_is_there_twice_the_last_one_counts() {
        let json = r#"{"a":{"b":1,"c":2},"a":{"c":3}}"#;
        assert_eq!(found(&["/a/b", "/a/c", "/a"], json), [None, Some("3"), Some(r#"{"c":3}"#)]);
    }

    #[test]
    fn text_that_is_no_json_value_is_told() {
        for text in ["", "{", "{} x", "nul", r#"{"a":1,}"#] {
            assert!(pointers(&["/a"]).find(text).is_err(), "{text}");
        }
        assert_eq!(Pointer::from_text("a"), Err(NoPointer::Start));
        assert_eq!(Pointer::from_text("/a~2"), Err(NoPointer::Escape));
        assert_eq!(Pointer::from_text("/a~"), Err(NoPointer::Escape));
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-c/~\"]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map("[a-c/~]{0,2}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// What serde_json finds in the parsed value.
        #[test]
        fn pointers_lead_where_rfc_6901_says(
            json in json(),
            tokens in prop::collection::vec(prop::collection::vec("([a-c]|~0|~1|[0-3]){0,2}", 1..4), 1..5),
        ) {
            let written: Vec<String> = tokens
                .iter()
                .map(|tokens| tokens.iter().map(|token| format!("/{token}")).collect())
                .collect();
            let mut unique = written.clone();
            let mut seen = std::collections::HashSet::new();
            unique.retain(|pointer| seen.insert(pointer.clone()));
            let text = json.to_string();
            let all: Vec<&str> = unique.iter().map(String::as_str).collect();
            for (pointer, found) in all.iter().zip(pointers(&all).find(&text).unwrap()) {
                let expected = json.pointer(pointer);
                let found = found.map(|raw| serde_json::from_str::<Value>(raw.get()).unwrap());
                prop_assert_eq!(found.as_ref(), expected, "{} in {}", pointer, text);
                let alone = Pointer::from_text(pointer).unwrap().find(&text).unwrap();
                prop_assert_eq!(alone.is_some(), expected.is_some());
            }
        }
    }
}
