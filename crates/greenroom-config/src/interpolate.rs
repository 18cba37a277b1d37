//! References to the environment and to files, replaced before anything is decoded.
//!
//! `${NAME}` and `${NAME:-default}` may appear anywhere in a value, also within a default, which is
//! evaluated only if it is needed; `$${` is a plain `${`. A value that begins with `file:` is
//! replaced by the content of that file without its final newline (`file://` is left alone, as it
//! is a URL).

use std::{path::Path, sync::Arc};

use crate::{
    problem::{Problem, Problems},
    tree::{Node, Value},
};

/// Secrets are short; a larger file is a mistake.
const MAX_FILE: u64 = 1 << 20;

/// The nesting of defaults: deeper than anyone writes, and shallow enough for the stack.
const MAX_DEPTH: usize = 16;

/// The outside world of a configuration.
pub struct World<'a> {
    /// Looks up an environment variable.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The directory that relative paths start from.
    pub directory: &'a Path,
}

/// Replaces every reference below `node` and reports those that cannot be resolved.
pub fn interpolate(node: &mut Node, world: &World<'_>, problems: &mut Problems) {
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(|item| interpolate(item, world, problems)),
        Value::Map(entries) => {
            entries.iter_mut().for_each(|entry| interpolate(&mut entry.node, world, problems));
        }
        Value::Text(text) => match resolve(text, world) {
            Ok(None) => {}
            Ok(Some(resolved)) => {
                node.value = Value::Text(resolved.text);
                node.origin = resolved.origin;
            }
            Err(why) => {
                problems.push(Problem::error(why.message, node.place.clone()).help(why.help));
                // An unresolved value is reported only once.
                node.origin = Some(UNRESOLVED.into());
            }
        },
        _ => {}
    }
}

const UNRESOLVED: &str = "unresolved";

/// True if the value's reference could not be resolved, which has been reported.
pub(crate) fn is_unresolved(node: &Node) -> bool {
    node.origin.as_deref() == Some(UNRESOLVED)
}

struct Resolved {
    text: String,
    origin: Option<Arc<str>>,
}

struct Unresolved {
    message: String,
    help: String,
}

fn resolve(text: &str, world: &World<'_>) -> Result<Option<Resolved>, Unresolved> {
    if let Some(path) = text.strip_prefix("file:").filter(|path| !path.starts_with("//")) {
        let content = read(path, world.directory)?;
        return Ok(Some(Resolved { text: content, origin: Some(text.into()) }));
    }
    if !text.contains("${") {
        return Ok(None);
    }
    expand(text, world, 0).map(Some)
}

/// The text with its references replaced, at this nesting of defaults.
fn expand(text: &str, world: &World<'_>, depth: usize) -> Result<Resolved, Unresolved> {
    let mut out = String::new();
    let mut origin = None;
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, reference) = rest.split_at(at);
        if let Some(kept) = before.strip_suffix('$') {
            out.push_str(kept);
            out.push_str("${");
            rest = &reference[2..];
            continue;
        }
        let end = end_of(&reference[2..]).ok_or_else(|| Unresolved {
            message: "`${` without `}`".to_owned(),
            help: "close the reference, or write `$${` for a plain `${`".to_owned(),
        })?;
        let (reference, after) = (&reference[2..2 + end], &reference[2 + end + 1..]);
        out.push_str(before);
        out.push_str(&variable(reference, world, depth)?);
        origin.get_or_insert_with(|| named(reference));
        rest = after;
    }
    out.push_str(rest);
    Ok(Resolved { text: out, origin })
}

/// The position of the `}` that closes a reference, after those of the references in its default.
fn end_of(reference: &str) -> Option<usize> {
    let (mut open, mut at) = (0_usize, 0);
    loop {
        let rest = reference.get(at..)?;
        at += match rest {
            _ if rest.starts_with("$${") => 3,
            _ if rest.starts_with("${") => {
                open += 1;
                2
            }
            _ if rest.starts_with('}') && open == 0 => return Some(at),
            _ => {
                open -= usize::from(rest.starts_with('}'));
                rest.chars().next()?.len_utf8()
            }
        };
    }
}

/// The default after `:-` stays out of messages, like any value.
fn named(reference: &str) -> Arc<str> {
    let name = reference.split_once(":-").map_or(reference, |(name, _)| name);
    format!("${{{name}}}").into()
}

fn variable(reference: &str, world: &World<'_>, depth: usize) -> Result<String, Unresolved> {
    let (name, default) = match reference.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (reference, None),
    };
    let valid = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !valid || name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(Unresolved {
            message: format!("`${{{name}}}` is not the name of an environment variable"),
            help: "letters, digits and `_`; write `$${` for a plain `${`".to_owned(),
        });
    }
    let found = (world.env)(name).filter(|value| default.is_none() || !value.is_empty());
    match (found, default) {
        (Some(value), _) => Ok(value),
        (None, Some(_)) if depth == MAX_DEPTH => Err(Unresolved {
            message: format!("more than {MAX_DEPTH} defaults are nested"),
            help: "set one of the environment variables, and leave out the defaults behind it"
                .to_owned(),
        }),
        (None, Some(default)) => expand(default, world, depth + 1).map(|resolved| resolved.text),
        (None, None) => Err(Unresolved {
            message: format!("the environment variable `{name}` is not set"),
            help: format!("set it, or write `${{{name}:-default}}`"),
        }),
    }
}

fn read(path: &str, directory: &Path) -> Result<String, Unresolved> {
    let unread = |why: String| Unresolved {
        message: format!("cannot read `file:{path}`: {why}"),
        help: "the value is the content of that file; make it readable, or write the value itself"
            .to_owned(),
    };
    let full = directory.join(path);
    let length = std::fs::metadata(&full).map_err(|error| unread(error.to_string()))?.len();
    if length > MAX_FILE {
        return Err(unread(format!("it holds {length} bytes, more than {MAX_FILE}")));
    }
    let bytes = std::fs::read(&full).map_err(|error| unread(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| unread("it is not UTF-8 text".to_owned()))?;
    let text = text.trim_start_matches('\u{feff}');
    let trimmed = text.strip_suffix('\n').unwrap_or(text);
    Ok(trimmed.strip_suffix('\r').unwrap_or(trimmed).to_owned())
}
