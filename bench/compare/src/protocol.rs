//! The lines that a contestant says, as `bench/PROTOCOL.md` has them.

use serde_json::{Value, json};

/// A system that a program offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct System {
    pub name: String,
    pub version: String,
    pub language: String,
    pub what: String,
    pub rows: Vec<String>,
}

/// What a program says when it has started.
#[derive(Debug, Clone)]
pub struct Offer {
    pub systems: Vec<System>,
    pub runtime: String,
}

/// What it says of a repetition.
#[derive(Debug, PartialEq)]
pub enum Answer {
    Value(f64),
    Error(String),
}

pub fn request(system: &str, row: &str, messages: u64) -> String {
    format!("{}\n", json!({ "system": system, "row": row, "messages": messages }))
}

/// What a program offers, in this language where it does not say.
///
/// # Errors
/// Says what is missing.
pub fn offer(line: &str, language: &str) -> Result<Offer, String> {
    let offer: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let systems = offer["systems"].as_array().ok_or("no systems")?;
    let systems = systems.iter().map(|of| system(of, language)).collect::<Result<Vec<_>, _>>()?;
    Ok(Offer { systems, runtime: text(&offer, "runtime").unwrap_or_default() })
}

fn system(offered: &Value, language: &str) -> Result<System, String> {
    let name = text(offered, "name").ok_or("a system without a name")?;
    let needed = |what| text(offered, what).ok_or_else(|| format!("{name} has no {what}"));
    let rows = offered["rows"].as_array().ok_or_else(|| format!("{name} has no rows"))?;
    Ok(System {
        version: needed("version")?,
        language: text(offered, "language").unwrap_or_else(|| language.to_owned()),
        what: text(offered, "what").unwrap_or_default(),
        rows: rows.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        name,
    })
}

fn text(value: &Value, name: &str) -> Option<String> {
    value[name].as_str().map(str::to_owned)
}

/// # Errors
/// When it is neither a figure nor an error.
pub fn answer(line: &str) -> Result<Answer, String> {
    let answer: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    if let Some(error) = answer["error"].as_str() {
        return Ok(Answer::Error(error.to_owned()));
    }
    match answer["value"].as_f64() {
        Some(value) if value > 0.0 => Ok(Answer::Value(value)),
        Some(value) => Ok(Answer::Error(format!("{value} is no figure"))),
        None => Err("neither a value nor an error".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_figure_above_zero_or_an_error() {
        assert_eq!(answer(r#"{"value": 2.81}"#), Ok(Answer::Value(2.81)));
        assert_eq!(answer(r#"{"error": "lost"}"#), Ok(Answer::Error("lost".to_owned())));
        assert_eq!(answer(r#"{"value": 0}"#), Ok(Answer::Error("0 is no figure".to_owned())));
        assert!(answer("{}").is_err() && answer("2.81").is_err() && answer("2.81 M/s").is_err());
    }

    #[test]
    fn an_offer_says_which_system_lacks_what() {
        let error = offer(r#"{"systems": [{"name": "ergo", "rows": ["A4"]}]}"#, "Go").unwrap_err();
        assert_eq!(error, "ergo has no version");
        assert_eq!(offer("{}", "Go").unwrap_err(), "no systems");
    }
}
