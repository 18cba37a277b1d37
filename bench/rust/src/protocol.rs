//! What is said over standard input and output, a line of JSON each: what there is, then a figure
//! or an error for each request.

use std::{
    any::Any,
    io::{BufRead, Write},
    panic::{AssertUnwindSafe, catch_unwind},
};

use serde::{Deserialize, Serialize};

use crate::{Failure, bench::Bench, offers::Offer, row::Row};

#[derive(Serialize)]
struct Hello<'a> {
    systems: &'a [Offer],
    runtime: &'a str,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    system: String,
    row: String,
    messages: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Value(f64),
    Error(String),
}

/// Says what is offered, and answers each line until there are no more.
///
/// # Errors
///
/// When the input cannot be read or the output not be written. What is wrong
/// with a request is an answer.
pub fn serve(
    offers: &[Offer],
    bench: &Bench,
    input: impl BufRead,
    mut output: impl Write,
) -> Result<(), Failure> {
    say(&mut output, &Hello { systems: offers, runtime: env!("BUILT_BY") })?;
    for line in input.lines() {
        let line = line?;
        if !line.trim().is_empty() {
            say(&mut output, &answer(offers, bench, &line))?;
        }
    }
    Ok(())
}

fn say(output: &mut impl Write, what: &impl Serialize) -> Result<(), Failure> {
    serde_json::to_writer(&mut *output, what)?;
    output.write_all(b"\n")?;
    Ok(output.flush()?)
}

fn answer(offers: &[Offer], bench: &Bench, line: &str) -> Answer {
    match run(offers, bench, line) {
        Ok(value) if value.is_finite() => Answer::Value(value),
        Ok(value) => Answer::Error(format!("the figure is {value}: ask for more messages")),
        Err(error) => Answer::Error(error.to_string()),
    }
}

fn run(offers: &[Offer], bench: &Bench, line: &str) -> Result<f64, Failure> {
    let request: Request = serde_json::from_str(line)
        .map_err(|error| format!("request {line:?} is not understood: {error}"))?;
    let (offer, row) = chosen(offers, &request)?;
    let once = || (offer.run)(bench, row, request.messages);
    catch_unwind(AssertUnwindSafe(once)).unwrap_or_else(|panic| Err(said(&*panic).into()))
}

fn chosen<'a>(offers: &'a [Offer], request: &Request) -> Result<(&'a Offer, Row), Failure> {
    let Request { system, row, messages } = request;
    let offer = offers.iter().find(|offer| offer.name == *system);
    let offer = offer.ok_or_else(|| format!("there is no system {system:?} here"))?;
    let known = Row::named(row).ok_or_else(|| format!("there is no row {row:?}"))?;
    if !offer.rows.contains(&known) {
        return Err(format!("{system} does not offer {row}").into());
    }
    if *messages == 0 {
        return Err("messages must be at least 1".into());
    }
    Ok((offer, known))
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panicked: {}", text.unwrap_or("without words"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn offer(run: fn(&Bench, Row, u64) -> Result<f64, Failure>) -> Offer {
        let rows = vec![Row::named("A4").unwrap()];
        Offer { name: "fake", version: "1.2.3", what: "nothing", rows, run }
    }

    /// What is said after the first line.
    fn answers(run: fn(&Bench, Row, u64) -> Result<f64, Failure>, input: &str) -> Vec<Value> {
        let mut output = Vec::new();
        serve(&[offer(run)], &Bench::new(), input.as_bytes(), &mut output).unwrap();
        let lines = String::from_utf8(output).unwrap();
        lines.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    const ASKED: &str = r#"{"system": "fake", "row": "A4", "messages": 7}"#;

    #[test]
    fn the_first_line_says_what_is_offered() {
        let mut output = Vec::new();
        let offers = [offer(|_, _, _| Ok(1.0))];
        serve(&offers, &Bench::new(), &b""[..], &mut output).unwrap();
        let said: Value = serde_json::from_slice(&output).unwrap();
        let fake = json!({"name": "fake", "version": "1.2.3", "what": "nothing", "rows": ["A4"]});
        assert_eq!(said["systems"], json!([fake]));
        assert!(said["runtime"].as_str().unwrap().starts_with("rustc "), "{said}");
    }

    #[test]
    fn a_figure_is_answered_with_the_messages_that_were_asked_for() {
        let said = answers(|_, _, messages| Ok(messages as f64 / 2.0), ASKED);
        assert_eq!(said, [json!({"value": 3.5})]);
    }

    #[test]
    fn an_error_or_a_panic_is_an_answer_and_more_is_answered_after_it() {
        let input = format!("{ASKED}\n{ASKED}\n");
        let failed = answers(|_, _, _| Err("lost: 1 of 7".into()), &input);
        assert_eq!(failed, vec![json!({"error": "lost: 1 of 7"}); 2]);
        let panicked = answers(|_, _, _| panic!("on purpose"), &input);
        assert_eq!(panicked, vec![json!({"error": "panicked: on purpose"}); 2]);
    }

    #[test]
    fn what_is_not_offered_or_not_understood_is_an_error_that_says_so() {
        for (line, part) in [
            (r#"{"system": "other", "row": "A4", "messages": 7}"#, "no system \"other\""),
            (r#"{"system": "fake", "row": "A5", "messages": 7}"#, "no row \"A5\""),
            (r#"{"system": "fake", "row": "C", "messages": 7}"#, "fake does not offer C"),
            (r#"{"system": "fake", "row": "A4", "messages": 0}"#, "at least 1"),
            (r#"{"system": "fake", "row": "A4"}"#, "missing field `messages`"),
            ("A4", "not understood"),
        ] {
            let said = answers(|_, _, _| Ok(1.0), line);
            let error = said[0]["error"].as_str().unwrap();
            assert!(said.len() == 1 && error.contains(part), "{line} got {said:?}");
        }
    }

    #[test]
    fn a_figure_that_is_no_number_is_an_error() {
        let said = answers(|_, _, _| Ok(f64::NAN), ASKED);
        assert!(said[0]["error"].as_str().unwrap().contains("NaN"), "{said:?}");
    }
}
