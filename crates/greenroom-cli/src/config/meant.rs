//! What was probably meant by a value that an option does not take.

use super::{
    near,
    schema::Kind,
    tree::{Node, Value},
    units,
};

/// What to write instead, where that can be told. A value from a reference may be a secret: nothing is told of it.
pub(super) fn suggestion(node: &Node, kind: &Kind) -> Option<String> {
    if node.origin.is_some() {
        return None;
    }
    match (kind, &node.value) {
        (Kind::Flag, value) => flag(value),
        (Kind::Choice { words, .. }, Value::Text(text)) => {
            near::suggestion(text, words.iter().copied())
        }
        (Kind::CountOr { group, .. }, Value::Text(text)) => {
            let name = near::nearest(text, group.options.iter().map(|opt| opt.name))?;
            Some(format!("did you mean `{{ {name}: {{ … }} }}`?"))
        }
        (Kind::Duration { .. }, Value::Text(text)) => {
            corrected(text, DURATIONS, |text| units::duration(text).is_some())
        }
        (Kind::Duration { .. }, Value::Int(number)) => whole(*number, &["s", "ms"]),
        (Kind::DurationRange, Value::Text(text)) => range(text),
        (Kind::DurationRange, Value::Int(number)) => whole(*number, &["s", "ms"]),
        (Kind::Size { .. }, Value::Text(text)) => {
            corrected(text, SIZES, |text| units::size(text).is_some())
        }
        (Kind::Rate, Value::Text(text)) => rate(text),
        (Kind::Rate, Value::Int(number)) => whole(*number, &["/s", "/min"]),
        (Kind::Count { .. } | Kind::CountOr { .. } | Kind::Size { .. }, Value::Float(number)) => {
            written_out(*number)
        }
        (
            Kind::Text | Kind::Path | Kind::Texts | Kind::Command,
            Value::Int(_) | Value::Float(_) | Value::Bool(_),
        ) => Some("put it into quotes if it is text".to_owned()),
        _ => None,
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

/// How units are written here, and how else people write them.
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

fn corrected(text: &str, units: Units, is_good: impl Fn(&str) -> bool) -> Option<String> {
    let meant = with_unit(text, units).filter(|meant| is_good(meant))?;
    Some(format!("did you mean `{meant}`?"))
}

fn range(text: &str) -> Option<String> {
    let ends = ["...", "..", " to ", "-", ","].iter().find_map(|between| text.split_once(between));
    let (from, to) = ends?;
    let (from, to) = (with_unit(from, DURATIONS)?, with_unit(to, DURATIONS)?);
    let shorter = units::duration(&from)? <= units::duration(&to)?;
    let meant = if shorter { format!("{from}..{to}") } else { format!("{to}..{from}") };
    Some(format!("did you mean `{meant}`?"))
}

fn rate(text: &str) -> Option<String> {
    let (number, per) = ["/", " per ", "p"].iter().find_map(|between| text.split_once(between))?;
    let meant = format!("{}/{}", number.trim(), unit(per, TIMES)?);
    units::rate(&meant)?;
    Some(format!("did you mean `{meant}`?"))
}

/// A number without its unit.
fn whole(number: i64, units: &[&str]) -> Option<String> {
    let each: Vec<_> = units.iter().map(|unit| format!("`{number}{unit}`")).collect();
    (number > 0).then(|| format!("did you mean {}?", each.join(" or ")))
}

/// `1e9`: counts are written in digits.
fn written_out(number: f64) -> Option<String> {
    let whole = number.fract() == 0.0 && (0.0..1e15).contains(&number);
    whole.then(|| format!("write it in digits, without a point or an exponent: `{number}`"))
}
