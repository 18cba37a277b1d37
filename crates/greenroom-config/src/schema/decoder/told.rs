//! Messages about a value or key that is not accepted: the problem, and the likely intention.

use super::meant;
use crate::{
    interpolate::is_unresolved,
    near,
    problem::Problem,
    schema::{Group, Opt, Presence},
    tree::{Entry, Node, Place, Value},
};

pub(super) fn twice(entry: &Entry, first: &Entry) -> Problem {
    let problem = Problem::error(format!("`{}` is given twice", entry.key), entry.place.clone());
    match &first.place {
        Place::Source(span) => problem.help(format!("it was first given on line {}", span.line)),
        Place::Set(_) => problem,
    }
}

/// A kind or layer that is named without any settings.
pub(super) fn takes_nothing(entry: &Entry) -> Problem {
    let text = format!("`{}` takes no settings, but this is {}", entry.key, entry.node.describe());
    Problem::error(text, entry.node.place.clone()).help(format!("write `{}: {{}}`", entry.key))
}

/// The kind that an unknown key has as its value: `kind: pass`.
pub(super) fn named_kind(entry: &Entry, group: &Group) -> Option<&'static Opt> {
    let Value::Text(word) = &entry.node.value else { return None };
    (group.kinds)().iter().find(|opt| opt.is_named(word) && entry.node.origin.is_none())
}

/// A node that should be a mapping with known keys, but is none.
pub(super) fn not_a_group(node: &Node, group: &Group) -> Problem {
    let found = if group.has_secret() { node.describe_secret() } else { node.describe() };
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

/// The only option that is required, or the only one at all: a single value probably means it.
pub(super) fn main_option(group: &Group) -> Option<&'static Opt> {
    let mut required = group.built().filter(|opt| opt.presence == Presence::Required);
    match (required.next(), required.next()) {
        (Some(only), None) => Some(only),
        _ => group.built().next().filter(|_| group.built().count() == 1),
    }
}

/// A node that should be a mapping from names, but is none.
pub(super) fn not_named(node: &Node, opt: &Opt) -> Problem {
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

/// Whether a refused kind was written among the options of a mapping with a choice.
pub(super) fn refused_kind(group: &Group, name: &str) -> bool {
    group.all().any(|opt| opt.name == name && !opt.is_built())
}

pub(super) fn unknown(entry: &Entry, group: &Group) -> Problem {
    let problem = Problem::error(
        format!("unknown key `{}` in {}", entry.key, group.title),
        entry.place.clone(),
    );
    if let Some(kind) = named_kind(entry, group) {
        return problem.help(format!("the kind is a key itself: write `{}: {{ … }}`", kind.name));
    }
    let inside = inside(&entry.key, group);
    if !inside.is_empty() {
        return problem.help(format!("it belongs inside {}", inside.join(" or ")));
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

/// The proper place of a key that was written one level too high, as the reference page writes it.
fn inside(key: &str, group: &Group) -> Vec<String> {
    let inner = group.built().filter_map(|opt| Some((opt, opt.kind.inner()?)));
    let known = inner.filter(|(_, (_, inner))| inner.built().any(|opt| opt.is_named(key)));
    known.map(|(opt, (form, _))| format!("`{}{form}`", opt.name)).collect()
}

/// The option that was probably meant by this key, and the nearest spelling of it. `inHand` is
/// suggested only for a key with capitals: the documentation has `in_hand`.
pub(super) fn nearest(key: &str, group: &Group) -> Option<(&'static Opt, String)> {
    let is_camel = |name: &str| name.contains(char::is_uppercase);
    let spellings: Vec<_> = group
        .built()
        .flat_map(|opt| opt.spellings().into_iter().map(move |name| (opt, name)))
        .filter(|(_, name)| is_camel(key) || !is_camel(name))
        .collect();
    let name = near::nearest(key, spellings.iter().map(|(_, name)| name.as_str()))?;
    spellings.iter().find(|(_, spelling)| spelling == name).cloned()
}

pub(super) fn wrong(node: &Node, opt: &Opt, why: Option<String>) -> Problem {
    let shown = || if opt.secret { node.describe_secret() } else { node.describe() };
    let found = why.unwrap_or_else(|| format!("this is {}", shown()));
    let text = format!("`{}` has to be {}, but {found}", opt.name, opt.kind.expected());
    let problem = Problem::error(text, node.place.clone());
    let example = || opt.kind.example().map(|example| format!("for example {example}"));
    match meant::suggestion(node, &opt.kind).or_else(example) {
        Some(help) => problem.help(help),
        None => problem,
    }
}

pub(super) fn missing(opt: &Opt, group: &Group, at: &Place) -> Problem {
    let text = format!("{} needs `{}`", group.title, opt.name);
    Problem::error(text, at.clone()).help(opt.doc.to_owned())
}

pub(super) fn listed(names: &[&str]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// Names appear in paths, labels and reports.
pub(super) fn is_name(name: &str) -> bool {
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=64).contains(&name.len()) && name.chars().all(valid)
}

pub(super) fn is_scalar(node: &Node) -> bool {
    !matches!(node.value, Value::Null | Value::Map(_)) && !is_unresolved(node)
}
