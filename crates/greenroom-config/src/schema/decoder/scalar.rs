//! Single values: turns the written text into the value of an option.

use crate::{
    literal::Literal,
    record::Typed,
    schema::Kind,
    tree::{Node, Value, plain_scalar},
    units,
};

/// Text that may be empty.
pub(super) const ANY_TEXT: Kind = Kind::Path;

/// Why a value is not accepted; `None` if naming the value says it all.
pub(super) type Why = Option<String>;

/// Decodes a single value.
pub(super) fn decode(node: &Node, kind: &Kind) -> Result<Typed, Why> {
    let value = retyped(node, kind);
    let out = || out_of_range(node);
    match kind {
        Kind::Flag => match value {
            Value::Bool(flag) => Ok(Typed::Flag(flag)),
            _ => Err(None),
        },
        Kind::Count { min, max } | Kind::CountOr { min, max, .. } => {
            let count = count(&value)?;
            if (*min..=*max).contains(&count) { Ok(Typed::Count(count)) } else { Err(out()) }
        }
        Kind::Number { min, max } => {
            let number = number(&value)?;
            if (*min..=*max).contains(&number) { Ok(Typed::Number(number)) } else { Err(out()) }
        }
        Kind::Size { min, max } => {
            let size = size(&value)?;
            if (*min..=*max).contains(&size) { Ok(Typed::Count(size)) } else { Err(out()) }
        }
        Kind::Text | Kind::Url => match value {
            Value::Text(text) if text.is_empty() => Err(Some("it is empty".to_owned())),
            Value::Text(text) => Ok(Typed::Text(text)),
            _ => Err(None),
        },
        Kind::Path => text(&value).map(|text| Typed::Text(text.to_owned())),
        Kind::Choice(words) => choice(text(&value)?, words),
        Kind::Duration { min_ms, max_ms } => {
            let duration =
                units::duration(text(&value).map_err(|_| unitless(&value))?).ok_or(None)?;
            let inside =
                (u128::from(*min_ms)..=u128::from(*max_ms)).contains(&duration.as_millis());
            if inside { Ok(Typed::Duration(duration)) } else { Err(out()) }
        }
        Kind::DurationRange => {
            let range = text(&value).map_err(|_| unitless(&value))?;
            units::duration_range(range).map(Typed::Range).ok_or(None)
        }
        Kind::Literal => Literal::of(node).map(Typed::Literal).ok_or(None),
        Kind::Rate => units::rate(text(&value)?).map(Typed::Rate).ok_or(None),
        // The decoder itself handles mappings and lists.
        _ => Err(None),
    }
}

/// A value from a reference is text; options that take no text read it as if it were unquoted.
fn retyped(node: &Node, kind: &Kind) -> Value {
    let takes_text = matches!(kind, Kind::Text | Kind::Path | Kind::Url | Kind::Choice(_));
    match &node.value {
        Value::Text(text) if node.origin.is_some() && !takes_text => plain_scalar(text.trim()),
        value => value.clone(),
    }
}

fn out_of_range(node: &Node) -> Why {
    let shown = node.describe();
    Some(format!("{shown} is out of that range"))
}

fn unitless(value: &Value) -> Why {
    let number = matches!(value, Value::Int(_) | Value::Float(_));
    number.then(|| "the unit is missing".to_owned())
}

fn text(value: &Value) -> Result<&str, Why> {
    match value {
        Value::Text(text) => Ok(text),
        _ => Err(None),
    }
}

fn count(value: &Value) -> Result<u64, Why> {
    match value {
        Value::Int(number) => u64::try_from(*number).map_err(|_| {
            let side = if *number < 0 { "is below zero" } else { "is too large" };
            Some(format!("{number} {side}"))
        }),
        // Only `1_000` reaches this as text: YAML reads plain digits as a number, and quoted ones
        // were meant as text.
        Value::Text(text) if text.contains('_') => units::count(text).ok_or(None),
        _ => Err(None),
    }
}

fn number(value: &Value) -> Result<f64, Why> {
    match value {
        Value::Int(number) => Ok(*number as f64),
        Value::Float(number) => Ok(*number),
        _ => Err(None),
    }
}

fn size(value: &Value) -> Result<u64, Why> {
    match value {
        Value::Text(text) => units::size(text).ok_or(None),
        _ => count(value),
    }
}

fn choice(text: &str, words: &[&str]) -> Result<Typed, Why> {
    if words.contains(&text) { Ok(Typed::Text(text.to_owned())) } else { Err(None) }
}
