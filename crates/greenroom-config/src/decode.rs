//! Decoding by the table of options: types, ranges, unknown and missing keys, all in one pass.

use std::{borrow::Cow, path::Path};

use crate::{
    at::At,
    interpolate::is_unresolved,
    meant, near,
    options::Options,
    places::Places,
    problem::{Problem, Problems},
    record::{Record, Typed},
    scalar,
    schema::{Group, Kind, Opt, Presence},
    tree::{Entry, Node, Place, Value},
    yaml,
};

/// Decodes a tree as the options of a type, and reports every problem in it. What was written where
/// comes with it, for checks that look at several values. `directory` is where relative paths
/// start.
///
/// Where a value was wrong, its default stands in, and what cannot be built is left out: so the
/// rest can be looked at.
pub fn decode<T: Options>(
    root: &Node,
    directory: &Path,
    problems: &mut Problems,
) -> (Option<T>, Places) {
    let (record, places) = record(root, T::GROUP, problems);
    let config = T::build(record, &mut At::new("", &places, directory, problems));
    (config, places)
}

/// What holds where nothing is written. `None`: there is something that has to be given. `path` is
/// the name or path of what is made.
pub fn defaults<T: Options>(path: &str) -> Option<T> {
    let mut problems = Problems::default();
    let (record, places) = record(&Node::blank(), T::GROUP, &mut problems);
    let mut at = At::new(path, &places, Path::new(""), &mut problems);
    T::build(record, &mut at).filter(|_| problems.errors() == 0)
}

fn record(node: &Node, group: &'static Group, problems: &mut Problems) -> (Record, Places) {
    let mut decoder = Decoder { problems, places: Places::default() };
    let record = decoder.group(node, &node.place, group, "");
    (record, decoder.places)
}

/// Decodes what stands in for an option that is left out.
pub(crate) fn left_out(opt: &'static Opt, text: &str, problems: &mut Problems) {
    let mut decoder = Decoder { problems, places: Places::default() };
    decoder.default(opt, text, "");
}

struct Decoder<'p> {
    problems: &'p mut Problems,
    places: Places,
}

impl Decoder<'_> {
    /// `at` is where a missing key is reported: the key of the mapping.
    fn group(&mut self, node: &Node, at: &Place, group: &'static Group, path: &str) -> Record {
        let mut record = Record::default();
        let Some(entries) = self.entries(node, |found| not_a_group(node, group, found)) else {
            return record;
        };
        let mut given: Vec<(&str, &Entry)> = Vec::new();
        // The options that were probably meant by keys that are not known: these are not missing.
        let mut misspelt: Vec<&str> = Vec::new();
        for entry in entries {
            let Some(opt) = group.find(&entry.key) else {
                let kind = named_kind(entry, group);
                let near = kind.or_else(|| nearest(&entry.key, group).map(|(opt, _)| opt));
                misspelt.extend(near.map(|opt| opt.name));
                self.problems.push(unknown(entry, group));
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
        record
    }

    /// `wrong` says what is wrong with what is found instead of a mapping.
    fn entries<'n>(
        &mut self,
        node: &'n Node,
        wrong: impl FnOnce(&str) -> Problem,
    ) -> Option<&'n [Entry]> {
        match &node.value {
            Value::Map(entries) => Some(entries),
            Value::Null => Some(&[]),
            _ if is_unresolved(node) => None,
            _ => {
                self.problems.push(wrong(&node.describe()));
                None
            }
        }
    }

    fn option(&mut self, entry: &Entry, opt: &'static Opt, path: &str) -> Option<Typed> {
        let inner = match opt.kind {
            Kind::Group(_) | Kind::Named(_) => &entry.place,
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
                Some(Typed::Group(self.group(&entry.node, &entry.place, group, path)))
            }
            Kind::CountOr { group, .. } if is_map(&entry.node) => {
                Some(Typed::Group(self.group(&entry.node, &entry.place, group, path)))
            }
            Kind::Named(group) => Some(self.named(&entry.node, opt, group, path)),
            Kind::List(group) => self.list(&entry.node, opt, group, path),
            Kind::Texts | Kind::Command => self.texts(&entry.node, opt, path),
            Kind::Variables => self.variables(&entry.node, opt, path),
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
        let entries = self.entries(node, |_| not_named(node, opt)).unwrap_or_default();
        let mut records = Vec::new();
        for entry in entries {
            if !is_name(&entry.key) {
                self.problems.push(
                    Problem::error(
                        format!("`{}` cannot be a name", entry.key),
                        entry.place.clone(),
                    )
                    .help("a name has 1 to 64 letters, digits, `-` or `_`"),
                );
                continue;
            }
            let path = join(path, &entry.key);
            self.places.note(&path, &entry.place, None);
            records.push((entry.key.clone(), self.group(&entry.node, &entry.place, group, &path)));
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
        let records = items.iter().enumerate().filter_map(|(index, item)| {
            let path = join(path, &index.to_string());
            self.places.note(&path, &item.place, item.origin.as_ref());
            let item = self.spelled_out(item, group)?;
            Some(self.group(&item, &item.place, group, &path))
        });
        Some(Typed::List(records.collect()))
    }

    /// A word in a list stands for a mapping of which it is the only key, where that needs no
    /// settings. `None`: another word, which was told.
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
            // A program is named, its arguments may be empty.
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

    fn variables(&mut self, node: &Node, opt: &Opt, path: &str) -> Option<Typed> {
        let entries = self.entries(node, |_| wrong(node, opt, None))?;
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
                            entry.node.describe()
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
        if group.kinds.is_empty() {
            return;
        }
        let kinds: Vec<_> = given.iter().filter(|(name, _)| group.is_kind(name)).collect();
        let refused = given.iter().any(|(name, _)| refused_kind(group, name));
        match kinds.as_slice() {
            [] if refused => {}
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
                // Also instead of a value that was wrong, so that the checks after this one see the
                // rest.
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
        let node = yaml::parse(text, self.problems)?;
        let outer = std::mem::take(&mut self.places);
        let entry = Entry { key: opt.name.to_owned(), place: node.place.clone(), node };
        let value = self.option(&entry, opt, &join(path, opt.name));
        self.places = outer;
        value
    }
}

fn is_map(node: &Node) -> bool {
    matches!(node.value, Value::Map(_))
}

fn is_scalar(node: &Node) -> bool {
    !matches!(node.value, Value::Null | Value::Map(_)) && !is_unresolved(node)
}

/// A kind or layer that is named, and nothing more.
fn takes_nothing(entry: &Entry) -> Problem {
    let text = format!("`{}` takes no settings, but this is {}", entry.key, entry.node.describe());
    Problem::error(text, entry.node.place.clone()).help(format!("write `{}: {{}}`", entry.key))
}

/// The kind that an unknown key has as its value: `kind: pass`.
fn named_kind(entry: &Entry, group: &Group) -> Option<&'static Opt> {
    let Value::Text(word) = &entry.node.value else { return None };
    group.kinds.iter().find(|opt| opt.is_named(word) && entry.node.origin.is_none())
}

/// Something else stands for a mapping with known keys.
fn not_a_group(node: &Node, group: &Group, found: &str) -> Problem {
    let text = format!("{} is a mapping, but this is {found}", group.title);
    let built = group.built();
    let word = match &node.value {
        Value::Text(word) if node.origin.is_none() => word.as_str(),
        _ => "",
    };
    let help = match built.clone().find(|opt| opt.is_named(word)) {
        Some(opt) => format!("write `{{ {}: … }}`", opt.name),
        None if is_scalar(node) && main_option(group).is_some() => {
            let name = main_option(group).map(|opt| opt.name).unwrap_or_default();
            format!("write `{{ {name}: … }}`, with it in place of the dots")
        }
        None => format!("it knows {}", listed(&built.map(|opt| opt.name).collect::<Vec<_>>())),
    };
    Problem::error(text, node.place.clone()).help(help)
}

/// The only option that has to be given, or that there is: a single value is probably meant for it.
fn main_option(group: &Group) -> Option<&'static Opt> {
    let mut required = group.built().filter(|opt| opt.presence == Presence::Required);
    match (required.next(), required.next()) {
        (Some(only), None) => Some(only),
        _ => group.built().next().filter(|_| group.built().count() == 1),
    }
}

/// Something else stands for a mapping from names.
fn not_named(node: &Node, opt: &Opt) -> Problem {
    let problem = wrong(node, opt, None);
    let name = match &node.value {
        Value::Text(name) if node.origin.is_none() => name,
        Value::List(items) => match items.first().map(|item| &item.value) {
            Some(Value::Text(name)) => name,
            _ => "NAME",
        },
        _ => "NAME",
    };
    let name = if is_name(name) { name } else { "NAME" };
    problem.help(format!("write `{}: {{ {name}: {{ … }} }}`", opt.name))
}

/// A kind that is known and refused stands among the options of a mapping with a choice.
fn refused_kind(group: &Group, name: &str) -> bool {
    group.all().any(|opt| opt.name == name && !opt.is_built())
}

fn unknown(entry: &Entry, group: &Group) -> Problem {
    let problem = Problem::error(
        format!("unknown key `{}` in {}", entry.key, group.title),
        entry.place.clone(),
    );
    if let Some(kind) = named_kind(entry, group) {
        return problem.help(format!("the kind is a key itself: write `{}: {{ … }}`", kind.name));
    }
    match nearest(&entry.key, group) {
        Some((_, name)) => problem.help(near::did_you_mean(&entry.key, &name)),
        None => {
            let built: Vec<_> = group.built().map(|opt| opt.name).collect();
            if built.is_empty() {
                problem.help("remove it")
            } else {
                problem.help(format!("it knows {}", listed(&built)))
            }
        }
    }
}

/// The option that was probably meant by this key, and the spelling of it that is nearest.
fn nearest(key: &str, group: &Group) -> Option<(&'static Opt, String)> {
    let spellings: Vec<_> = group
        .built()
        .flat_map(|opt| opt.spellings().into_iter().map(move |name| (opt, name)))
        .collect();
    let name = near::nearest(key, spellings.iter().map(|(_, name)| name.as_str()))?;
    spellings.iter().find(|(_, spelling)| spelling == name).cloned()
}

fn wrong(node: &Node, opt: &Opt, why: Option<String>) -> Problem {
    let found = why.unwrap_or_else(|| format!("this is {}", node.describe()));
    let text = format!("`{}` has to be {}, but {found}", opt.name, opt.kind.expected());
    let problem = Problem::error(text, node.place.clone());
    let example = || opt.kind.example().map(|example| format!("for example {example}"));
    match meant::suggestion(node, &opt.kind).or_else(example) {
        Some(help) => problem.help(help),
        None => problem,
    }
}

fn missing(opt: &Opt, group: &Group, at: &Place) -> Problem {
    let text = format!("{} needs `{}`", group.title, opt.name);
    Problem::error(text, at.clone()).help(opt.doc.to_owned())
}

fn listed(names: &[&str]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// Names stand in paths, labels and reports.
fn is_name(name: &str) -> bool {
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=64).contains(&name.len()) && name.chars().all(valid)
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
