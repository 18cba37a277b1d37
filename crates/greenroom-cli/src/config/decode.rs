//! Decoding by the table of options: types, ranges, unknown and missing keys, all in one pass.

use std::borrow::Cow;

use super::{
    interpolate::is_unresolved,
    problem::{Problem, Problems},
    record::{Places, Record, Typed},
    scalar,
    schema::{Group, Kind, Opt, Presence},
    tree::{Entry, Node, Place, Value},
    yaml,
};

/// Decodes `node` as `group`, reporting every problem below it.
pub(super) fn decode(
    node: &Node,
    group: &'static Group,
    problems: &mut Problems,
) -> (Record, Places) {
    let mut decoder = Decoder { problems, places: Places::default() };
    let record = decoder.group(node, &node.place, group, "");
    (record, decoder.places)
}

struct Decoder<'p> {
    problems: &'p mut Problems,
    places: Places,
}

impl Decoder<'_> {
    /// `at` is where a missing key is reported: the key of the mapping.
    fn group(&mut self, node: &Node, at: &Place, group: &'static Group, path: &str) -> Record {
        let mut record = Record::default();
        let Some(entries) = self.entries(node, group.title) else { return record };
        let mut given: Vec<(&str, &Entry)> = Vec::new();
        let mut misspelt = false;
        for entry in entries {
            let Some(opt) = group.options.iter().find(|opt| opt.is_named(&entry.key)) else {
                let near = nearest(&entry.key, group);
                misspelt |= near.is_some_and(|near| is_kind(group, &near));
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
        if !(misspelt && given.iter().all(|(name, _)| !group.one_of.contains(name))) {
            self.one_of(&given, at, group);
        }
        self.left_out(&given, at, group, path, &mut record);
        record
    }

    fn entries<'n>(&mut self, node: &'n Node, title: &str) -> Option<&'n [Entry]> {
        match &node.value {
            Value::Map(entries) => Some(entries),
            Value::Null => Some(&[]),
            _ if is_unresolved(node) => None,
            _ => {
                let text = format!("{title} is a mapping, but this is {}", node.describe());
                self.problems.push(Problem::error(text, node.place.clone()));
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
            Kind::Later(text) => {
                self.problems.push(Problem::error(text, entry.place.clone()));
                None
            }
            Kind::Group(group) => {
                Some(Typed::Group(self.group(&entry.node, &entry.place, group, path)))
            }
            Kind::CountOr { group, .. } if is_map(&entry.node) => {
                Some(Typed::Group(self.group(&entry.node, &entry.place, group, path)))
            }
            Kind::Named(group) => Some(self.named(&entry.node, group, path)),
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

    fn named(&mut self, node: &Node, group: &'static Group, path: &str) -> Typed {
        let entries = self.entries(node, "this").unwrap_or_default();
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

    /// A word in a list stands for a mapping of which it is the only key, where that needs no settings. `None`: another
    /// word, which was told.
    fn spelled_out<'n>(&mut self, item: &'n Node, group: &Group) -> Option<Cow<'n, Node>> {
        let Value::Text(word) = &item.value else { return Some(Cow::Borrowed(item)) };
        if item.origin.is_some() {
            return Some(Cow::Borrowed(item));
        }
        let help = match group.options.iter().find(|opt| opt.is_named(word)) {
            Some(opt) if matches!(opt.kind, Kind::Group(_)) => {
                let node = Node::new(Value::Null, item.place.clone());
                let entry = Entry { key: word.clone(), place: item.place.clone(), node };
                return Some(Cow::Owned(Node::new(Value::Map(vec![entry]), item.place.clone())));
            }
            Some(opt) => format!("write `{{ {word}: … }}`, with {} in it", opt.kind.expected()),
            None => match nearest(word, group) {
                Some(name) => format!("did you mean `{name}`?"),
                None => format!("one of {}", listed(group.one_of)),
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
        let entries = self.entries(node, &format!("`{}`", opt.name))?;
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
        if group.one_of.is_empty() {
            return;
        }
        let kinds: Vec<_> = given.iter().filter(|(name, _)| group.one_of.contains(name)).collect();
        let refused = given.iter().any(|(name, _)| later_kind(group, name));
        match kinds.as_slice() {
            [] if refused => {}
            [] => self.problems.push(
                Problem::error(format!("{} needs a kind", group.title), at.clone())
                    .help(format!("one of {}", listed(group.one_of))),
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
        given: &[(&str, &Entry)],
        at: &Place,
        group: &'static Group,
        path: &str,
        record: &mut Record,
    ) {
        let mut defaults = Vec::new();
        for opt in group.options.iter().filter(|opt| !record.fields.contains_key(opt.name)) {
            let given = given.iter().any(|(name, _)| *name == opt.name);
            match opt.presence {
                Presence::Required if !given => self.problems.push(missing(opt, group, at)),
                // Also instead of a value that was wrong, so that the checks after this one see the rest.
                Presence::Default(text) => {
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

/// True when this is a spelling of one of the kinds of a group with a choice.
fn is_kind(group: &Group, spelling: &str) -> bool {
    let mut kinds = group.options.iter().filter(|opt| group.one_of.contains(&opt.name));
    kinds.any(|opt| opt.is_named(spelling))
}

/// Kinds of later versions stand among the options of groups with a choice.
fn later_kind(group: &Group, name: &str) -> bool {
    group.options.iter().any(|opt| opt.name == name && !opt.is_built())
}

fn unknown(entry: &Entry, group: &Group) -> Problem {
    let problem = Problem::error(
        format!("unknown key `{}` in {}", entry.key, group.title),
        entry.place.clone(),
    );
    match nearest(&entry.key, group) {
        Some(name) => problem.help(format!("did you mean `{name}`?")),
        None => {
            let built: Vec<_> =
                group.options.iter().filter(|o| o.is_built()).map(|o| o.name).collect();
            if built.is_empty() {
                problem.help("remove it")
            } else {
                problem.help(format!("it knows {}", listed(&built)))
            }
        }
    }
}

/// The known key that looks most like this one.
fn nearest(key: &str, group: &Group) -> Option<String> {
    const ALIKE: f64 = 0.75;
    let wanted = key.to_lowercase();
    let spellings = group.options.iter().filter(|opt| opt.is_built()).flat_map(Opt::spellings);
    spellings
        .map(|name| (strsim::jaro_winkler(&name.to_lowercase(), &wanted), name))
        .filter(|(likeness, _)| *likeness > ALIKE)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name)
}

fn wrong(node: &Node, opt: &Opt, why: Option<String>) -> Problem {
    let found = why.unwrap_or_else(|| format!("this is {}", node.describe()));
    let text = format!("`{}` has to be {}, but {found}", opt.name, opt.kind.expected());
    let problem = Problem::error(text, node.place.clone());
    match opt.kind.example() {
        Some(example) => problem.help(format!("for example {example}")),
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
