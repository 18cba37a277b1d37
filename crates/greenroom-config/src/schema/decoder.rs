//! Decodes by the table of options: types, ranges, unknown and missing keys, all in one pass.

mod meant;
mod scalar;
mod secrets;
mod told;

use std::{borrow::Cow, collections::HashMap};

use super::{Group, Kind, Opt, Presence, default};
use crate::{
    interpolate::is_unresolved,
    literal::Literal,
    near,
    places::Places,
    problem::{Problem, Problems},
    record::{Record, Typed},
    tree::{Entry, Node, Place, Value},
};

use self::told::{
    is_name, is_scalar, listed, missing, named_kind, nearest, not_a_group, not_named, refused_kind,
    takes_nothing, twice, unknown, wrong,
};

/// Decodes a mapping, and notes the places of all values.
pub(crate) fn record(
    node: &Node,
    group: &'static Group,
    problems: &mut Problems,
) -> (Record, Places) {
    secrets::hide(node, group, problems);
    let mut decoder = Decoder { problems, places: Places::default() };
    let record = decoder.group(node, &node.place, group, "").unwrap_or_default();
    (record, decoder.places)
}

/// Decodes the value that replaces an omitted option.
pub(super) fn left_out(opt: &'static Opt, text: &str, problems: &mut Problems) {
    let mut decoder = Decoder { problems, places: Places::default() };
    decoder.default(opt, text, "");
}

struct Decoder<'p> {
    problems: &'p mut Problems,
    places: Places,
}

impl Decoder<'_> {
    /// `at` is where a missing key is reported: the key of the mapping. `None`: the node is no
    /// mapping, which has been reported; its default replaces it, if it has one.
    fn group(
        &mut self,
        node: &Node,
        at: &Place,
        group: &'static Group,
        path: &str,
    ) -> Option<Record> {
        let node = spelled_short(node, group);
        let node = &*node;
        let entries = self.entries(node, || not_a_group(node, group))?;
        let mut record = Record::default();
        let mut given: Vec<(&str, &Entry)> = Vec::new();
        // The intended options behind unknown keys: these are not missing.
        let mut misspelt: Vec<&str> = Vec::new();
        for entry in entries {
            let Some(opt) = group.find(&entry.key) else {
                let kind = named_kind(entry, group);
                let near = kind.or_else(|| nearest(&entry.key, group).map(|(opt, _)| opt));
                misspelt.extend(near.map(|opt| opt.name));
                self.problems.push(unknown(entry, group));
                // So that the mapping does not pass for an empty one.
                self.places.note(&join(path, &entry.key), &entry.place, None);
                continue;
            };
            if let Some((_, first)) = given.iter().find(|(name, _)| *name == opt.name) {
                self.problems.push(
                    Problem::error(format!("`{}` is given twice", opt.name), entry.place.clone())
                        .help(format!("it is the same as `{}`; keep one of them", first.key)),
                );
                continue;
            }
            given.push((opt.name, entry));
            if let Some(value) = self.option(entry, opt, &join(path, opt.name)) {
                record.fields.insert(opt.name, value);
            }
        }
        let kind_is_misspelt = misspelt.iter().any(|name| group.is_kind(name));
        if !(kind_is_misspelt && given.iter().all(|(name, _)| !group.is_kind(name))) {
            self.one_of(&given, at, group);
        }
        let known: Vec<_> = given.iter().map(|(name, _)| *name).chain(misspelt).collect();
        self.left_out(&known, at, group, path, &mut record);
        Some(record)
    }

    /// The entries of a mapping, each key once. `wrong` describes the problem if the node is no
    /// mapping.
    fn entries<'n>(
        &mut self,
        node: &'n Node,
        wrong: impl FnOnce() -> Problem,
    ) -> Option<Vec<&'n Entry>> {
        match &node.value {
            Value::Map(entries) => Some(self.once(entries)),
            Value::Null => Some(Vec::new()),
            _ if is_unresolved(node) => None,
            _ => {
                self.problems.push(wrong());
                None
            }
        }
    }

    fn once<'n>(&mut self, entries: &'n [Entry]) -> Vec<&'n Entry> {
        let mut first: HashMap<&str, &Entry> = HashMap::new();
        let mut once = Vec::new();
        for entry in entries {
            match first.get(entry.key.as_str()) {
                Some(first) => self.problems.push(twice(entry, first)),
                None => {
                    first.insert(&entry.key, entry);
                    once.push(entry);
                }
            }
        }
        once
    }

    fn option(&mut self, entry: &Entry, opt: &'static Opt, path: &str) -> Option<Typed> {
        let inner = match opt.kind {
            Kind::Group(_) | Kind::Named(_) | Kind::Each(_) => &entry.place,
            Kind::CountOr { .. } if is_map(&entry.node) => &entry.place,
            _ => &entry.node.place,
        };
        self.places.note(path, inner, entry.node.origin.as_ref());
        match opt.kind {
            Kind::Refused(text) => {
                self.problems.push(Problem::error(text, entry.place.clone()));
                None
            }
            Kind::Group(group) if group.is_empty() && is_scalar(&entry.node) => {
                self.problems.push(takes_nothing(entry));
                Some(Typed::Group(Record::default()))
            }
            Kind::Group(group) => {
                self.group(&entry.node, &entry.place, group, path).map(Typed::Group)
            }
            Kind::CountOr { group, .. } if is_map(&entry.node) => {
                self.group(&entry.node, &entry.place, group, path).map(Typed::Group)
            }
            Kind::Named(group) => Some(self.named(&entry.node, opt, group, path)),
            Kind::Each(group) => Some(self.each(&entry.node, opt, group, path)),
            Kind::List(group) => self.list(&entry.node, opt, group, path),
            Kind::Texts | Kind::Command => self.texts(&entry.node, opt, path),
            Kind::Variables => self.variables(&entry.node, opt, path),
            Kind::Any => Some(Typed::Any(entry.node.clone())),
            Kind::Literals => self.literals(&entry.node, opt, path),
            _ => self.scalar(&entry.node, opt),
        }
    }

    fn scalar(&mut self, node: &Node, opt: &Opt) -> Option<Typed> {
        if is_unresolved(node) {
            return None;
        }
        match scalar::decode(node, &opt.kind) {
            Ok(value) => Some(value),
            Err(why) => {
                self.problems.push(wrong(node, opt, why));
                None
            }
        }
    }

    fn named(&mut self, node: &Node, opt: &Opt, group: &'static Group, path: &str) -> Typed {
        let help = "a name has 1 to 64 letters, digits, `-` or `_`";
        self.by_key(node, opt, (group, path), (is_name, "be a name", help))
    }

    fn each(&mut self, node: &Node, opt: &Opt, group: &'static Group, path: &str) -> Typed {
        self.by_key(node, opt, (group, path), (|key| !key.is_empty(), "be a key", "it is empty"))
    }

    fn by_key(
        &mut self,
        node: &Node,
        opt: &Opt,
        (group, path): (&'static Group, &str),
        (may_be, what, help): (fn(&str) -> bool, &str, &str),
    ) -> Typed {
        let entries = self.entries(node, || not_named(node, opt)).unwrap_or_default();
        let mut records = Vec::new();
        for entry in entries {
            if !may_be(&entry.key) {
                let text = format!("`{}` cannot {what}", entry.key);
                self.problems.push(Problem::error(text, entry.place.clone()).help(help));
                continue;
            }
            let path = join(path, &entry.key);
            self.places.note(&path, &entry.place, None);
            let record = self.group(&entry.node, &entry.place, group, &path);
            records.extend(record.map(|record| (entry.key.clone(), record)));
        }
        Typed::Named(records)
    }

    fn list(&mut self, node: &Node, opt: &Opt, group: &'static Group, path: &str) -> Option<Typed> {
        let items = match &node.value {
            Value::List(items) if !items.is_empty() => items,
            _ if is_unresolved(node) => return None,
            value => {
                let is_empty = matches!(value, Value::List(_));
                let why = is_empty.then(|| "the list is empty".to_owned());
                self.problems.push(wrong(node, opt, why));
                return None;
            }
        };
        let records = items.iter().enumerate().map(|(index, item)| {
            let path = join(path, &index.to_string());
            self.places.note(&path, &item.place, item.origin.as_ref());
            let item = self.spelled_out(item, group)?;
            self.group(&item, &item.place, group, &path)
        });
        Some(Typed::List(records.collect()))
    }

    /// A word in a list is short for a mapping with only that key, if the key needs no settings.
    /// `None`: another word, which has been reported.
    fn spelled_out<'n>(&mut self, item: &'n Node, group: &Group) -> Option<Cow<'n, Node>> {
        let Value::Text(word) = &item.value else { return Some(Cow::Borrowed(item)) };
        if item.origin.is_some() {
            return Some(Cow::Borrowed(item));
        }
        let help = match group.find(word) {
            Some(opt) if matches!(opt.kind, Kind::Group(_)) => {
                let node = Node::new(Value::Null, item.place.clone());
                let entry = Entry { key: word.clone(), place: item.place.clone(), node };
                return Some(Cow::Owned(Node::new(Value::Map(vec![entry]), item.place.clone())));
            }
            Some(opt) => format!("write `{{ {word}: … }}`, with {} in it", opt.kind.expected()),
            None => match nearest(word, group) {
                Some((_, name)) => near::did_you_mean(word, &name),
                None => format!("one of {}", listed(&group.kind_names())),
            },
        };
        let text = format!("{} is a mapping, but this is {}", group.title, item.describe());
        self.problems.push(Problem::error(text, item.place.clone()).help(help));
        None
    }

    fn texts(&mut self, node: &Node, opt: &Opt, path: &str) -> Option<Typed> {
        let command = matches!(opt.kind, Kind::Command);
        let single = std::slice::from_ref(node);
        let items = match &node.value {
            Value::List(items) if !items.is_empty() => items,
            Value::List(_) => {
                self.problems.push(wrong(node, opt, Some("the list is empty".to_owned())));
                return None;
            }
            _ if command && !is_unresolved(node) => {
                self.problems.push(wrong(node, opt, None));
                return None;
            }
            _ => single,
        };
        let mut texts = Vec::new();
        for (index, item) in items.iter().enumerate() {
            self.places.note(&join(path, &index.to_string()), &item.place, item.origin.as_ref());
            // A program has to be named; its arguments may be empty.
            let kind = if command && index > 0 { &scalar::ANY_TEXT } else { &Kind::Text };
            match scalar::decode(item, kind) {
                _ if is_unresolved(item) => {}
                Ok(Typed::Text(text)) => texts.push(text),
                Ok(_) => {}
                Err(why) => self.problems.push(wrong(item, opt, why)),
            }
        }
        (texts.len() == items.len()).then_some(Typed::Texts(texts))
    }

    fn literals(&mut self, node: &Node, opt: &Opt, path: &str) -> Option<Typed> {
        let items = match &node.value {
            Value::List(items) if !items.is_empty() => items,
            _ if is_unresolved(node) => return None,
            value => {
                let is_empty = matches!(value, Value::List(_));
                let why = is_empty.then(|| "the list is empty".to_owned());
                self.problems.push(wrong(node, opt, why));
                return None;
            }
        };
        let mut literals = Vec::new();
        for (index, item) in items.iter().enumerate() {
            self.places.note(&join(path, &index.to_string()), &item.place, item.origin.as_ref());
            match Literal::of(item) {
                _ if is_unresolved(item) => {}
                Some(literal) => literals.push(literal),
                None => self.problems.push(wrong(item, opt, None)),
            }
        }
        (literals.len() == items.len()).then_some(Typed::Literals(literals))
    }

    fn variables(&mut self, node: &Node, opt: &Opt, path: &str) -> Option<Typed> {
        let entries = self.entries(node, || wrong(node, opt, None))?;
        let mut pairs = Vec::new();
        for entry in entries {
            self.places.note(&join(path, &entry.key), &entry.place, entry.node.origin.as_ref());
            match &entry.node.value {
                _ if is_unresolved(&entry.node) => {}
                Value::Text(text) => pairs.push((entry.key.clone(), text.clone())),
                _ => self.problems.push(
                    Problem::error(
                        format!(
                            "`{}` has to be text, but this is {}",
                            entry.key,
                            if opt.secret {
                                entry.node.describe_secret()
                            } else {
                                entry.node.describe()
                            }
                        ),
                        entry.node.place.clone(),
                    )
                    .help("put it into quotes"),
                ),
            }
        }
        Some(Typed::Variables(pairs))
    }

    fn one_of(&mut self, given: &[(&str, &Entry)], at: &Place, group: &Group) {
        if !group.has_kinds() {
            return;
        }
        let kinds: Vec<_> = given.iter().filter(|(name, _)| group.is_kind(name)).collect();
        let refused = given.iter().any(|(name, _)| refused_kind(group, name));
        match kinds.as_slice() {
            [] if refused || !group.needs_kind => {}
            [] => self.problems.push(
                Problem::error(format!("{} needs a kind", group.title), at.clone())
                    .help(format!("one of {}", listed(&group.kind_names()))),
            ),
            [_] => {}
            [(first, _), rest @ ..] => {
                for (name, entry) in rest {
                    let text =
                        format!("{} has one kind, but `{name}` follows `{first}`", group.title);
                    self.problems
                        .push(Problem::error(text, entry.place.clone()).help("keep one of them"));
                }
            }
        }
    }

    fn left_out(
        &mut self,
        given: &[&str],
        at: &Place,
        group: &'static Group,
        path: &str,
        record: &mut Record,
    ) {
        let mut defaults = Vec::new();
        for opt in group.all().filter(|opt| !record.fields.contains_key(opt.name)) {
            let given = given.contains(&opt.name);
            match opt.presence {
                Presence::Required if !given => self.problems.push(missing(opt, group, at)),
                // Also replaces a wrong value, so that the checks after this one see the rest.
                Presence::Default(text) | Presence::Inherits(text) => {
                    if let Some(value) = self.default(opt, text, path) {
                        defaults.push((opt.name, value));
                    }
                }
                Presence::Required | Presence::Optional => {}
            }
        }
        record.fields.extend(defaults);
    }

    /// Defaults go through the decoder like anything else; a test decodes each of them.
    fn default(&mut self, opt: &'static Opt, text: &str, path: &str) -> Option<Typed> {
        let node = default::value_of(text, self.problems)?;
        let outer = std::mem::take(&mut self.places);
        let entry = Entry { key: opt.name.to_owned(), place: node.place.clone(), node };
        let value = self.option(&entry, opt, &join(path, opt.name));
        self.places = outer;
        value
    }
}

/// A single value in place of a mapping is short for one of its keys, if the mapping declares one.
fn spelled_short<'n>(node: &'n Node, group: &Group) -> Cow<'n, Node> {
    let single =
        matches!(node.value, Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Text(_));
    match group.short {
        Some(short) if single => {
            let place = node.place.clone();
            let entry = Entry { key: short.to_owned(), place, node: node.clone() };
            Cow::Owned(Node::new(Value::Map(vec![entry]), node.place.clone()))
        }
        _ => Cow::Borrowed(node),
    }
}

fn is_map(node: &Node) -> bool {
    matches!(node.value, Value::Map(_))
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
