//! The contents of an event, besides its type, that a handler, an input or an output asks for.

use std::{
    any::Any,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    str::FromStr,
    sync::Arc,
};

use super::{condition::Condition, inspected::Inspected};
use crate::event::{Event, ExtensionValue, Field, Pointers};

type Function = Arc<dyn Fn(&Event) -> bool + Send + Sync>;

/// Conditions on an event's source, subject, other attributes and data. All of them have to hold;
/// with none, every event is taken.
///
/// ```
/// use greenroom_bus::{event::Event, router::Matcher};
///
/// let eu = Matcher::any().source("/shop/*".parse()?).attribute("region", "eu".parse()?);
/// let order = Event::builder("1", "/shop/berlin", "order").extension("region", "eu").build()?;
/// assert!(eu.matches(&order));
/// assert!(!eu.clone().subject("vip".parse()?).matches(&order), "it has no subject");
/// assert!(eu.when(|event| event.id() == "1").matches(&order));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Matcher {
    source: Option<Glob>,
    subject: Option<Glob>,
    /// By name: context attributes and extensions.
    attributes: Vec<(String, Glob)>,
    /// Those of the data behind the others: they cost more.
    fields: Vec<(Field, Condition)>,
    /// Those of `fields`.
    pointers: Pointers,
    functions: Vec<Function>,
}

impl Matcher {
    /// Takes every event.
    pub fn any() -> Self {
        Self::default()
    }

    /// Only events whose source is like this.
    pub fn source(mut self, like: Glob) -> Self {
        self.source = Some(like);
        self
    }

    /// Only events that have a subject, and one like this.
    pub fn subject(mut self, like: Glob) -> Self {
        self.subject = Some(like);
        self
    }

    /// Only events that have this attribute, and one like this: `id`, `time`,
    /// `datacontenttype`, `dataschema` or the name of an extension. Numbers and truth values
    /// are compared as they are written.
    pub fn attribute(mut self, name: impl Into<String>, like: Glob) -> Self {
        self.attributes.push((name.into(), like));
        self
    }

    /// Only events whose attribute, extension or member of the data meets this condition; of one
    /// field several may be asked. The data is read only once all other conditions hold, and once
    /// for all that are asked of it.
    pub fn field(mut self, field: Field, condition: Condition) -> Self {
        match field.pointer() {
            Some(pointer) => {
                self.pointers.add(pointer);
                self.fields.push((field, condition));
            }
            None => {
                let data = self.fields.iter().position(|(field, _)| field.pointer().is_some());
                self.fields.insert(data.unwrap_or(self.fields.len()), (field, condition));
            }
        }
        self
    }

    /// Only events for which this returns true. It is called on the way in, once for each event
    /// that gets this far, so it must neither block nor take long. If it panics, the event becomes
    /// a dead letter.
    pub fn when(mut self, condition: impl Fn(&Event) -> bool + Send + Sync + 'static) -> Self {
        self.functions.push(Arc::new(condition));
        self
    }

    /// True if there is no condition.
    pub fn is_any(&self) -> bool {
        self.source.is_none()
            && self.subject.is_none()
            && self.attributes.is_empty()
            && self.fields.is_empty()
            && self.functions.is_empty()
    }

    /// Whether it takes this event.
    ///
    /// # Panics
    /// If a [condition](Self::when) panics.
    pub fn matches(&self, event: &Event) -> bool {
        self.mismatch_in(&Inspected::new(event, &self.pointers)).is_none()
    }

    /// The first condition that does not hold for this event, by its configured name; `None` if it
    /// takes the event.
    ///
    /// # Panics
    /// Like [`matches`](Self::matches).
    pub fn mismatch(&self, event: &Event) -> Option<Mismatch<'_>> {
        self.mismatch_in(&Inspected::new(event, &self.pointers))
    }

    fn mismatch_in(&self, inspected: &Inspected<'_>) -> Option<Mismatch<'_>> {
        let event = inspected.event;
        if self.source.as_ref().is_some_and(|like| !like.matches(event.source())) {
            return Some(Mismatch::Attribute("source"));
        }
        let is_like = |like: &Glob| event.subject().is_some_and(|subject| like.matches(subject));
        if self.subject.as_ref().is_some_and(|like| !is_like(like)) {
            return Some(Mismatch::Attribute("subject"));
        }
        if let Some((name, _)) = self.attributes.iter().find(|(name, like)| !has(event, name, like))
        {
            return Some(Mismatch::Attribute(name));
        }
        let fails = |(field, condition): &&(Field, Condition)| {
            !condition.holds_for(&inspected.value(*field))
        };
        if let Some((field, condition)) = self.fields.iter().find(fails) {
            return Some(Mismatch::Field(*field, condition));
        }
        let holds = self.functions.iter().all(|function| function(event));
        (!holds).then_some(Mismatch::Function)
    }

    /// True if it has conditions on [fields](Self::field).
    pub(crate) fn asks_fields(&self) -> bool {
        !self.fields.is_empty()
    }

    /// The members of the data that it may ask for.
    pub(crate) fn pointers(&self) -> &Pointers {
        &self.pointers
    }

    /// Like [`matches`](Self::matches), or the message of a condition that panicked.
    pub(crate) fn try_matches(&self, event: &Event) -> Result<bool, String> {
        self.try_matches_in(&Inspected::new(event, &self.pointers))
    }

    /// The same of an event that others look at, too.
    pub(crate) fn try_matches_in(&self, inspected: &Inspected<'_>) -> Result<bool, String> {
        let matches = || self.mismatch_in(inspected).is_none();
        catch_unwind(AssertUnwindSafe(matches)).map_err(|panic| said(&*panic))
    }

    /// Like [`mismatch`](Self::mismatch) in words, or the message of a condition that panicked.
    pub(crate) fn try_mismatch(&self, event: &Event) -> Result<Option<String>, String> {
        let mismatch = || self.mismatch(event).map(|mismatch| mismatch.to_string());
        catch_unwind(AssertUnwindSafe(mismatch)).map_err(|panic| said(&*panic))
    }
}

/// A condition that does not hold.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Mismatch<'m> {
    /// The attribute of this name does not match the pattern, or is missing.
    Attribute(&'m str),
    /// The field does not meet the condition.
    Field(Field, &'m Condition),
    /// A [function](Matcher::when) says no.
    Function,
}

impl fmt::Display for Mismatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attribute(name) => write!(f, "match {name}"),
            Self::Field(field, condition) => write!(f, "where {field} ({condition})"),
            Self::Function => f.write_str("a function"),
        }
    }
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "it gave no reason".to_owned())
}

fn has(event: &Event, name: &str, like: &Glob) -> bool {
    match name {
        "id" => like.matches(event.id()),
        "type" => like.matches(event.ty()),
        "source" => like.matches(event.source()),
        "subject" => event.subject().is_some_and(|subject| like.matches(subject)),
        "time" => event.time().is_some_and(|time| like.matches(time)),
        "datacontenttype" => event.datacontenttype().is_some_and(|ty| like.matches(ty)),
        "dataschema" => event.dataschema().is_some_and(|schema| like.matches(schema)),
        _ => match event.extension(name) {
            Some(ExtensionValue::Text(text)) => like.matches(text),
            Some(ExtensionValue::Bool(truth)) => {
                like.matches(if *truth { "true" } else { "false" })
            }
            Some(ExtensionValue::Integer(number)) => like.matches(&number.to_string()),
            None => false,
        },
    }
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matcher")
            .field("source", &self.source)
            .field("subject", &self.subject)
            .field("attributes", &self.attributes)
            .field("fields", &self.fields)
            .field("functions", &self.functions.len())
            .finish()
    }
}

/// Equal if the conditions are. Functions are equal only if one is a copy of the other.
impl PartialEq for Matcher {
    fn eq(&self, other: &Self) -> bool {
        let functions = || self.functions.iter().zip(&other.functions);
        self.source == other.source
            && self.subject == other.subject
            && self.attributes == other.attributes
            && self.fields == other.fields
            && self.functions.len() == other.functions.len()
            && functions().all(|(one, other)| Arc::ptr_eq(one, other))
    }
}

/// A text in which each `*` matches any characters, including none. A literal star cannot be
/// expressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    text: String,
}

/// There is nothing that could be matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the text to match is empty; write for example `/shop/*`")]
pub struct EmptyGlob;

impl FromStr for Glob {
    type Err = EmptyGlob;

    fn from_str(text: &str) -> Result<Self, EmptyGlob> {
        if text.is_empty() { Err(EmptyGlob) } else { Ok(Self { text: text.to_owned() }) }
    }
}

impl Glob {
    /// Whether the whole text is like this. Takes time in the product of both lengths at most.
    ///
    /// A part between two stars is searched from the left, which is enough: a later match would
    /// leave less text for the rest.
    pub fn matches(&self, text: &str) -> bool {
        let Some((start, rest)) = self.text.split_once('*') else { return self.text == text };
        let Some(mut text) = text.strip_prefix(start) else { return false };
        let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
        for part in middle.split('*').filter(|part| !part.is_empty()) {
            let Some(at) = text.find(part) else { return false };
            text = &text[at + part.len()..];
        }
        text.ends_with(end)
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glob(text: &str) -> Glob {
        text.parse().unwrap()
    }

    #[test]
    fn r03_a_star_stands_for_any_characters() {
        let cases = [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("a*", "a", true),
            ("a*b", "ab", true),
            ("a*b", "a b c b", true),
            ("ab*b", "ab", false),
            ("*x*", "a x b", true),
            ("*x*", "abc", false),
            ("a*b*c", "a-c-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("**", "anything", true),
            ("a**c", "abc", true),
            ("*é*", "café au lait", true),
        ];
        for (text, on, expected) in cases {
            assert_eq!(glob(text).matches(on), expected, "{text} on {on}");
        }
        assert_eq!("".parse::<Glob>(), Err(EmptyGlob));
    }

    #[test]
    fn r03_all_conditions_have_to_hold() {
        let event = Event::builder("7", "/shop/a", "t").subject("s-1").extension("n", "12");
        let event = event.build().unwrap();
        let takes = |matcher: Matcher| matcher.matches(&event);
        assert!(takes(Matcher::any()) && Matcher::any().is_any());
        assert!(takes(Matcher::any().source(glob("/shop/*")).subject(glob("s-*"))));
        assert!(!takes(Matcher::any().source(glob("/shop/*")).subject(glob("t-*"))));
        assert!(takes(Matcher::any().attribute("n", glob("12")).attribute("id", glob("7"))));
        assert!(!takes(Matcher::any().attribute("m", glob("*"))), "it has no such attribute");
        assert!(!takes(Matcher::any().attribute("time", glob("*"))));
        assert!(!takes(Matcher::any().attribute("n", glob("12")).when(|_| false)));
    }

    #[test]
    fn the_same_conditions_are_equal_and_functions_only_to_their_copies() {
        let one = || Matcher::any().source(glob("a")).attribute("n", glob("1"));
        assert_eq!(one(), one());
        assert_ne!(one(), one().subject(glob("s")));
        let function = one().when(|_| true);
        assert_eq!(function, function.clone());
        assert_ne!(function, one().when(|_| true));
    }
}
