//! Guesses the intended value behind one that an option does not accept.

use super::scalar;
use crate::{
    near,
    schema::{Group, Kind},
    tree::{Node, Place, Value, plain_scalar},
    units,
};

/// The value to write instead, if it can be guessed. A value from a reference may be a secret: it
/// gets no suggestion.
pub(super) fn suggestion(node: &Node, kind: &Kind) -> Option<String> {
    if node.origin.is_some() {
        return None;
    }
    match (kind, &node.value) {
        (Kind::Flag, value) => flag(value),
        (Kind::Choice(words), Value::Text(text)) => near::suggestion(text, words.iter().copied()),
        (Kind::CountOr { group, .. }, Value::Text(text)) => group_or_count(text, group, kind),
        (Kind::Count { .. }, Value::Text(text)) => said(kind, digits(text)),
        (Kind::Number { .. }, Value::Text(text)) => said(kind, percent(text)),
        (Kind::Duration { .. }, Value::Text(text)) => said(kind, with_unit(text, DURATIONS)),
        (Kind::DurationRange, Value::Text(text)) => said(kind, range(text)),
        (Kind::Size { .. }, Value::Text(text)) => said(kind, with_unit(text, SIZES)),
        (Kind::Rate, Value::Text(text)) => said(kind, rate(text)),
        (Kind::Duration { .. } | Kind::DurationRange, Value::Int(number)) => {
            whole(*number, &["s", "ms"])
        }
        (Kind::Rate, Value::Int(number)) => whole(*number, &["/s", "/min"]),
        (Kind::Count { .. } | Kind::CountOr { .. } | Kind::Size { .. }, Value::Float(number)) => {
            said(kind, Some(number.to_string()))
        }
        (
            Kind::Text | Kind::Path | Kind::Texts | Kind::Command,
            Value::Int(_) | Value::Float(_) | Value::Bool(_),
        ) => Some("put it into quotes if it is text".to_owned()),
        _ => None,
    }
}

/// The suggestion, if the option accepts it.
fn said(kind: &Kind, meant: Option<String>) -> Option<String> {
    let meant = meant?;
    let node = Node::new(plain_scalar(&meant), Place::whole_file());
    scalar::decode(&node, kind).is_ok().then(|| format!("did you mean `{meant}`?"))
}

fn group_or_count(text: &str, group: &Group, kind: &Kind) -> Option<String> {
    match near::nearest(text, group.built().map(|opt| opt.name)) {
        Some(name) => Some(format!("did you mean `{{ {name}: {{ … }} }}`?")),
        None => said(kind, digits(text)),
    }
}

/// `'5'`, `1,000`, `10k`.
fn digits(text: &str) -> Option<String> {
    let text: String = text.chars().filter(|c| !matches!(c, ' ' | ',' | '_' | '\'')).collect();
    let (number, zeros) = match text.strip_suffix(['k', 'K']) {
        Some(number) => (number, "000"),
        None => (text.strip_suffix(['m', 'M']).unwrap_or(&text), ""),
    };
    let zeros = if text.ends_with(['m', 'M']) { "000000" } else { zeros };
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| format!("{number}{zeros}"))
}

/// `5%`.
fn percent(text: &str) -> Option<String> {
    match text.strip_suffix('%') {
        Some(number) => Some((number.trim().parse::<f64>().ok()? / 100.0).to_string()),
        None => text.parse::<f64>().ok().map(|number| number.to_string()),
    }
}

fn flag(value: &Value) -> Option<String> {
    let word = match value {
        Value::Text(text) => text.to_lowercase(),
        Value::Int(number) => number.to_string(),
        _ => return None,
    };
    match word.as_str() {
        "yes" | "on" | "y" | "1" | "enabled" => Some("did you mean `true`?".to_owned()),
        "no" | "off" | "n" | "0" | "disabled" => Some("did you mean `false`?".to_owned()),
        word => near::suggestion(word, ["true", "false"]),
    }
}

/// The spelling of units here, and the spellings that others use.
type Units = &'static [(&'static str, &'static [&'static str])];

const DURATIONS: Units = &[
    ("us", &["us", "µs", "μs", "micros", "microsecond", "microseconds"]),
    ("ms", &["ms", "msec", "msecs", "milli", "millis", "millisecond", "milliseconds"]),
    ("s", &["s", "sec", "secs", "second", "seconds"]),
    ("m", &["m", "min", "mins", "minute", "minutes"]),
    ("h", &["h", "hr", "hrs", "hour", "hours"]),
    ("d", &["d", "day", "days"]),
];

const SIZES: Units = &[
    ("B", &["b", "byte", "bytes"]),
    ("kB", &["k", "kb"]),
    ("MB", &["m", "mb", "megabyte", "megabytes"]),
    ("GB", &["g", "gb", "gigabyte", "gigabytes"]),
    ("KiB", &["ki", "kib"]),
    ("MiB", &["mi", "mib"]),
    ("GiB", &["gi", "gib"]),
];

const TIMES: Units = &[
    ("s", &["s", "sec", "secs", "second", "seconds"]),
    ("min", &["m", "min", "mins", "minute", "minutes"]),
    ("h", &["h", "hr", "hour", "hours"]),
];

fn unit(word: &str, units: Units) -> Option<&'static str> {
    let word = word.trim().to_lowercase();
    units.iter().find(|(_, spellings)| spellings.contains(&word.as_str())).map(|(unit, _)| *unit)
}

fn with_unit(text: &str, units: Units) -> Option<String> {
    let text = text.trim();
    let end = text.find(|c: char| c.is_alphabetic())?;
    let (number, word) = text.split_at(end);
    Some(format!("{}{}", number.trim().replace(',', "."), unit(word, units)?))
}

/// The separators that people write between the ends of a range.
fn ends(text: &str) -> Option<(&str, &str)> {
    ["...", "..=", "..", " to ", "-", ","].iter().find_map(|between| text.split_once(between))
}

fn range(text: &str) -> Option<String> {
    let (from, to) = ends(text)?;
    let (from, to) = (with_unit(from, DURATIONS)?, with_unit(to, DURATIONS)?);
    let ordered = units::duration(&from)? <= units::duration(&to)?;
    Some(if ordered { format!("{from}..{to}") } else { format!("{to}..{from}") })
}

fn rate(text: &str) -> Option<String> {
    let (number, per) = ["/", " per ", "p"].iter().find_map(|between| text.split_once(between))?;
    Some(format!("{}/{}", number.trim(), unit(per, TIMES)?))
}

/// A number without its unit.
fn whole(number: i128, units: &[&str]) -> Option<String> {
    let each: Vec<_> = units.iter().map(|unit| format!("`{number}{unit}`")).collect();
    (number > 0).then(|| format!("did you mean {}?", each.join(" or ")))
}
