//! The table of options that a declaration creates: decoding, the JSON Schema and the reference
//! page read it.

mod declared;
pub(crate) mod decoder;
pub(crate) mod default;

use std::borrow::Cow;

use crate::units;

/// A mapping with known keys.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// Its name in messages, with an article: `a pool`.
    pub title: &'static str,
    /// Its description.
    pub doc: &'static str,
    /// Its keys.
    pub options: &'static [Opt],
    /// Further keys, of which one is given; none if there is no such choice. A function, because a
    /// [`Registry`](crate::Registry) is filled at run time.
    pub kinds: fn() -> &'static [Opt],
    /// One of these is required.
    pub needs_kind: bool,
    /// The key that a single value is short for, written in place of the mapping.
    pub short: Option<&'static str>,
}

impl Group {
    /// A group without keys, for kinds that have no settings; `title` as in `this layer`.
    pub const fn without_settings(title: &'static str) -> Self {
        let doc = "Has no settings.";
        Self { title, doc, options: &[], kinds: no_kinds, needs_kind: false, short: None }
    }

    /// All keys.
    pub fn all(&self) -> impl Iterator<Item = &'static Opt> + Clone + use<> {
        self.options.iter().chain((self.kinds)())
    }

    /// The keys that this version has.
    pub fn built(&self) -> impl Iterator<Item = &'static Opt> + Clone + use<> {
        self.all().filter(|opt| opt.is_built())
    }

    /// The key of this spelling.
    pub fn find(&self, key: &str) -> Option<&'static Opt> {
        self.all().find(|opt| opt.is_named(key))
    }

    /// The option that a single value in place of the mapping is short for.
    pub fn short(&self) -> Option<&'static Opt> {
        self.find(self.short?)
    }

    /// Whether a single value in its place must never be printed.
    pub fn has_secret(&self) -> bool {
        self.all().any(|opt| opt.secret)
    }

    /// True if it has no keys.
    pub fn is_empty(&self) -> bool {
        self.options.is_empty() && !self.has_kinds()
    }

    /// True if there are keys of which one is given.
    pub fn has_kinds(&self) -> bool {
        !(self.kinds)().is_empty()
    }

    /// True when it is one of the keys of which one is given.
    pub fn is_kind(&self, name: &str) -> bool {
        (self.kinds)().iter().any(|opt| opt.name == name)
    }

    /// The names of those that this version has.
    pub fn kind_names(&self) -> Vec<&'static str> {
        (self.kinds)().iter().map(|opt| opt.name).collect()
    }
}

/// For a mapping without a choice of keys.
pub const fn no_kinds() -> &'static [Opt] {
    &[]
}

/// One key: its values, its default and its meaning.
#[derive(Debug, Clone, Copy)]
pub struct Opt {
    /// Its name, in snake case. The camel-case spelling is accepted too.
    pub name: &'static str,
    /// Other accepted names, each in camel case too.
    pub aliases: &'static [&'static str],
    /// The values that it accepts.
    pub kind: Kind,
    /// The effect of leaving it out.
    pub presence: Presence,
    /// Whether a change takes effect while the program runs.
    pub live: bool,
    /// Whether its value must never be printed.
    pub secret: bool,
    /// Its meaning, and how to choose it.
    pub doc: &'static str,
}

/// The effect of leaving an option out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It must be given.
    Required,
    /// Nothing; the documentation says which meaning that has.
    Optional,
    /// As if this had been written, in YAML.
    Default(&'static str),
    /// The value of another option, which its documentation names; if that is left out too, as if
    /// this had been written.
    Inherits(&'static str),
}

/// The values that an option accepts.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// `true` or `false`.
    Flag,
    /// A whole number within the bounds, both included.
    Count {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// A number within the bounds, both included.
    Number {
        /// The smallest.
        min: f64,
        /// The largest.
        max: f64,
    },
    /// Any value, as it was written.
    Any,
    /// Text, not empty.
    Text,
    /// The path of a file or a directory.
    Path,
    /// An `http` or `https` URL.
    Url,
    /// A duration, in milliseconds from..=to.
    Duration {
        /// The shortest, in milliseconds.
        min_ms: u64,
        /// The longest, in milliseconds.
        max_ms: u64,
    },
    /// Two durations with `..` between them.
    DurationRange,
    /// Bytes within the bounds, both included.
    Size {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// A number per second, minute or hour.
    Rate,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// One text or a list of texts, at least one.
    Texts,
    /// A list of texts, at least one: a program and its arguments.
    Command,
    /// A mapping from names to texts.
    Variables,
    /// A text, a number, `true` or `false`, as its spelling decides.
    Literal,
    /// A list of these, at least one.
    Literals,
    /// A mapping with known keys.
    Group(&'static Group),
    /// A whole number within the bounds, or a mapping with known keys in place of it.
    CountOr {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
        /// The mapping.
        group: &'static Group,
    },
    /// A mapping from the user's names to mappings with known keys.
    Named(&'static Group),
    /// A mapping from non-empty keys of any form to mappings with known keys.
    Each(&'static Group),
    /// A list of mappings with known keys, at least one.
    List(&'static Group),
    /// Known, and refused with this text.
    Refused(&'static str),
}

impl Opt {
    /// A key that is known and refused, with the message for that.
    pub const fn refused(name: &'static str, why: &'static str) -> Self {
        let (kind, presence) = (Kind::Refused(why), Presence::Optional);
        Self { name, aliases: &[], kind, presence, live: false, secret: false, doc: "" }
    }

    /// Every accepted spelling, the proper one first.
    pub fn spellings(&self) -> Vec<String> {
        let mut all = Vec::new();
        for name in std::iter::once(&self.name).chain(self.aliases) {
            for spelling in [(*name).to_owned(), camel_case(name)] {
                if !all.contains(&spelling) {
                    all.push(spelling);
                }
            }
        }
        all
    }

    /// True when `key` is one of the accepted spellings.
    pub fn is_named(&self, key: &str) -> bool {
        std::iter::once(&self.name)
            .chain(self.aliases)
            .any(|name| *name == key || camel_case(name) == key)
    }

    /// True when this version has it.
    pub fn is_built(&self) -> bool {
        !matches!(self.kind, Kind::Refused(_))
    }

    /// The default as YAML, if it has one of its own.
    pub fn default(&self) -> Option<&'static str> {
        match self.presence {
            Presence::Default(text) => Some(text),
            Presence::Required | Presence::Optional | Presence::Inherits(_) => None,
        }
    }

    /// The YAML that it is decoded from if it is left out.
    pub fn left_out(&self) -> Option<&'static str> {
        match self.presence {
            Presence::Default(text) | Presence::Inherits(text) => Some(text),
            Presence::Required | Presence::Optional => None,
        }
    }
}

impl Kind {
    /// The mapping inside, with the text that the reference page adds to the option's name.
    pub fn inner(&self) -> Option<(&'static str, &'static Group)> {
        match self {
            Self::Group(inner) | Self::CountOr { group: inner, .. } => Some(("", inner)),
            Self::Named(inner) => Some((".NAME", inner)),
            Self::Each(inner) => Some((".KEY", inner)),
            Self::List(inner) => Some(("[]", inner)),
            _ => None,
        }
    }

    /// The expected value, as the words after "expected".
    pub fn expected(&self) -> String {
        match self {
            Self::Flag => "`true` or `false`".to_owned(),
            Self::Count { min, max } => format!("a whole number from {min} to {max}"),
            Self::Number { min, max } => format!("a number from {min} to {max}"),
            Self::Text => "text".to_owned(),
            Self::Path => "a path".to_owned(),
            Self::Url => "an http or https URL".to_owned(),
            Self::Duration { min_ms, max_ms } => format!(
                "a duration from {} to {}",
                units::show_duration(std::time::Duration::from_millis(*min_ms)),
                units::show_duration(std::time::Duration::from_millis(*max_ms))
            ),
            Self::DurationRange => "a range of durations, the shorter first".to_owned(),
            Self::Size { min, max } => {
                format!("a size from {} to {}", units::show_size(*min), units::show_size(*max))
            }
            Self::Rate => "a rate above zero".to_owned(),
            Self::Any => "any value".to_owned(),
            Self::Choice(words) => {
                let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
                words.join(" or ")
            }
            Self::Texts => "text or a list of texts".to_owned(),
            Self::Command => "a list of texts".to_owned(),
            Self::Variables => "a mapping from names to texts".to_owned(),
            Self::Literal => "a text, a number, `true` or `false`".to_owned(),
            Self::Literals => "a list of texts, numbers, `true` or `false`".to_owned(),
            Self::CountOr { min, max, .. } => {
                format!("a whole number from {min} to {max}, or a mapping")
            }
            Self::Group(group) => match group.short() {
                Some(short) => format!("{}, or a mapping", short.kind.expected()),
                None => "a mapping".to_owned(),
            },
            Self::Named(group) => format!("a mapping from names, each to {}", group.title),
            Self::Each(group) => format!("a mapping, each key to {}", group.title),
            Self::List(_) => "a list of mappings".to_owned(),
            Self::Refused(_) => "nothing".to_owned(),
        }
    }

    /// True if a whole number is within its bounds: for values made in code.
    pub fn allows(&self, number: u64) -> bool {
        match self {
            Self::Count { min, max } | Self::Size { min, max } => (*min..=*max).contains(&number),
            _ => true,
        }
    }

    /// A valid value, for messages.
    pub fn example(&self) -> Option<Cow<'static, str>> {
        let example = match self {
            Self::Duration { min_ms, max_ms } => {
                let millis = |text: &str| Some(units::duration(text)?.as_millis() as u64);
                let durations = ["200ms", "5s", "1m", "1h"];
                let examples = fitting(&durations, millis, (*min_ms, *max_ms));
                return (!examples.is_empty()).then(|| alternatives(examples).into());
            }
            Self::Size { min, max } => {
                let sizes = ["64KiB", "1MiB", "64MiB", "1GiB"];
                let mut examples = fitting(&sizes, units::size, (*min, *max));
                examples.truncate(2);
                examples.push("a number of bytes".to_owned());
                return Some(alternatives(examples).into());
            }
            Self::DurationRange => Some("`200ms..30s`"),
            Self::Rate => Some("`20/s` or `100/min`"),
            Self::List(_) => Some("`[{ timeout: 5s }, { rate: 20/s }]`"),
            Self::Command => Some("`[\"python3\", \"worker.py\"]`"),
            Self::Variables => Some("`{ name: text }`"),
            Self::Literals => Some("`[eu, us]`"),
            Self::Url => Some("`http://localhost:9000/path`"),
            _ => None,
        };
        example.map(Cow::Borrowed)
    }
}

/// The values among these that are within the bounds.
fn fitting(
    values: &[&str],
    size: impl Fn(&str) -> Option<u64>,
    (min, max): (u64, u64),
) -> Vec<String> {
    let fits = |value: &&&str| size(value).is_some_and(|size| (min..=max).contains(&size));
    values.iter().filter(fits).map(|value| format!("`{value}`")).collect()
}

fn alternatives(mut words: Vec<String>) -> String {
    let last = words.pop().unwrap_or_default();
    if words.is_empty() { last } else { format!("{} or {last}", words.join(", ")) }
}

/// `max_restarts` as `maxRestarts`.
pub fn camel_case(name: &str) -> String {
    let mut parts = name.split('_');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        out.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        out.push_str(letters.as_str());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c11_an_example_of_a_value_is_one_that_is_taken() {
        let size = |min| Kind::Size { min, max: 1 << 40 }.example().unwrap();
        assert_eq!(size(1), "`64KiB`, `1MiB` or a number of bytes");
        assert_eq!(size(8 << 20), "`64MiB`, `1GiB` or a number of bytes");
        assert_eq!(size(1 << 35), "a number of bytes");
        let duration = |min_ms, max_ms| Kind::Duration { min_ms, max_ms }.example().unwrap();
        assert_eq!(duration(1, 86_400_000), "`200ms`, `5s`, `1m` or `1h`");
        assert_eq!(duration(1_000, 60_000), "`5s` or `1m`");
        assert_eq!(duration(2_000, 5_000), "`5s`");
    }
}
