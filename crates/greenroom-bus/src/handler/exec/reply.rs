//! The answer of a worker process: one line of JSON for each event.

use std::{borrow::Cow, time::Duration};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    byte_order_mark::skip_byte_order_mark,
    event::Event,
    handler::{Failure, FailureKind, HandlerResult, Outputs},
    printable::printable,
};

/// How much of a worker's error text is kept, in bytes.
const LONGEST_ERROR: usize = 4096;

/// How much of a line that is not understood is quoted, in bytes.
const QUOTED: usize = 200;

/// A line that was understood.
#[derive(Debug)]
pub(super) enum Reply {
    /// The process lives; says nothing about an event in hand.
    Nothing,
    /// The result of an event in hand.
    Settled {
        /// Which of them, counted from 0.
        place: usize,
        result: HandlerResult,
    },
}

/// The fields that a line may have; a field of another name is a mistake that must not go unseen.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields<'a> {
    #[serde(borrow, default)]
    token: Cow<'a, str>,
    #[serde(borrow, default)]
    outcome: Cow<'a, str>,
    #[serde(borrow, default)]
    events: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    retry_after_ms: Option<u64>,
    #[serde(default)]
    heartbeat: bool,
}

/// Reads one line, where events are in hand that were sent with these tokens.
///
/// # Errors
/// Why the line is not understood, for the operator: the process has broken the protocol.
pub(super) fn read(
    line: &[u8],
    mut tokens: impl Iterator<Item = u64> + Clone,
) -> Result<Reply, String> {
    let fields: Fields<'_> = serde_json::from_slice(skip_byte_order_mark(line))
        .map_err(|error| format!("a line on its stdout is no answer ({error}): {}", quote(line)))?;
    if fields.heartbeat {
        return Ok(Reply::Nothing);
    }
    let in_hand = tokens.clone();
    let Some(place) = tokens.position(|token| is_token(&fields.token, token)) else {
        return Err(format!("it answered for token \"{}\", {}", fields.token, listed(in_hand)));
    };
    result(fields).map(|result| Reply::Settled { place, result })
}

/// The tokens in hand, as the end of a sentence.
fn listed(tokens: impl Iterator<Item = u64>) -> String {
    let tokens: Vec<String> = tokens.map(|token| format!("\"{token}\"")).collect();
    match tokens.as_slice() {
        [] => "and nothing is in hand".into(),
        [token] => format!("in hand is {token}"),
        tokens => format!("in hand are {}", tokens.join(", ")),
    }
}

/// Whether `answered` is `sent` as it was written: a sign or leading zeros make it another token.
fn is_token(answered: &str, sent: u64) -> bool {
    answered.starts_with(|first: char| first.is_ascii_digit() && first != '0')
        && answered.parse() == Ok(sent)
}

fn result(fields: Fields<'_>) -> Result<HandlerResult, String> {
    expect_only_its_fields(&fields)?;
    match fields.outcome.as_ref() {
        "success" => Ok(outputs(fields.events.unwrap_or_default())),
        "pass" => Ok(Ok(Outputs::Same)),
        "failure" => {
            let after = fields.retry_after_ms.map(Duration::from_millis);
            Ok(Err(failure(FailureKind::Retry { after }, fields.error)))
        }
        "reject" => Ok(Err(failure(FailureKind::Reject, fields.error))),
        "released" => Ok(Err(failure(FailureKind::Released, fields.error))),
        "" => Err("it answered without an \"outcome\"".into()),
        other => Err(format!(
            "it answered with the outcome \"{other}\"; known are success, pass, failure, reject, released"
        )),
    }
}

/// A field with the wrong outcome would be lost silently: a worker that adds `events` to `pass`
/// expects them to be passed on.
fn expect_only_its_fields(fields: &Fields<'_>) -> Result<(), String> {
    let outcome = fields.outcome.as_ref();
    let failed = matches!(outcome, "failure" | "reject" | "released");
    let stray = [
        ("events", fields.events.is_some() && outcome != "success"),
        ("error", fields.error.is_some() && !failed),
        ("retry_after_ms", fields.retry_after_ms.is_some() && outcome != "failure"),
    ];
    match stray.iter().find(|(_, stray)| *stray) {
        Some((name, _)) => Err(format!(
            "it answered with `{name}`, which does not go with the outcome \"{outcome}\""
        )),
        None => Ok(()),
    }
}

/// An output that is no event rejects the input: the answer itself was understood, and another
/// attempt would bring the same output.
fn outputs(events: Vec<&RawValue>) -> HandlerResult {
    if events.is_empty() {
        return Ok(Outputs::None);
    }
    let parse = |(index, raw): (usize, &&RawValue)| {
        Event::parse(raw.get().as_bytes()).map_err(|error| {
            Failure::reject(format!(
                "exec: `events[{index}]` of the answer is no CloudEvent: {error}"
            ))
        })
    };
    events.iter().enumerate().map(parse).collect::<Result<_, _>>().map(Outputs::Events)
}

fn failure(kind: FailureKind, error: Option<String>) -> Failure {
    let mut error = match error {
        Some(error) => lines(&error),
        None => "exec: the worker gave no reason".into(),
    };
    if error.len() > LONGEST_ERROR {
        error.truncate(error.floor_char_boundary(LONGEST_ERROR));
        error.push('…');
    }
    Failure::new(kind, error)
}

/// The text with its line breaks, and everything else escaped that a terminal would obey.
fn lines(text: &str) -> String {
    text.lines().map(printable).collect::<Vec<_>>().join("\n")
}

fn quote(line: &[u8]) -> String {
    let shown = String::from_utf8_lossy(&line[..line.len().min(QUOTED)]);
    let more = if line.len() > QUOTED { "…" } else { "" };
    format!("{shown:?}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(line: &str) -> HandlerResult {
        match read(line.as_bytes(), [7].into_iter()) {
            Ok(Reply::Settled { place: 0, result }) => result,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn misunderstood(line: &str) -> String {
        read(line.as_bytes(), [7].into_iter()).expect_err(line)
    }

    #[test]
    fn u05_each_outcome_has_its_result() {
        let kind = |line| settled(line).unwrap_err().kind;
        assert!(matches!(settled(r#"{"token":"7","outcome":"success"}"#), Ok(Outputs::None)));
        assert!(matches!(settled(r#"{"outcome":"pass","token":"7"}"#), Ok(Outputs::Same)));
        assert_eq!(
            kind(r#"{"token":"7","outcome":"failure","retry_after_ms":50}"#),
            FailureKind::Retry { after: Some(Duration::from_millis(50)) }
        );
        assert_eq!(
            kind(r#"{"token":"7","outcome":"failure"}"#),
            FailureKind::Retry { after: None }
        );
        assert_eq!(kind(r#"{"token":"7","outcome":"reject","error":"x"}"#), FailureKind::Reject);
        assert_eq!(kind(r#"{"token":"7","outcome":"released"}"#), FailureKind::Released);
    }

    #[test]
    fn u05_a_byte_order_mark_before_an_answer_is_no_crash() {
        let line = "\u{feff}{\"token\":\"7\",\"outcome\":\"pass\"}";
        assert!(matches!(settled(line), Ok(Outputs::Same)));
    }

    #[test]
    fn u05_success_brings_its_events_in_order() {
        let event = |id| format!(r#"{{"specversion":"1.0","id":"{id}","source":"s","type":"t"}}"#);
        let line = format!(
            r#"{{"token":"7","outcome":"success","events":[{},{}]}}"#,
            event("a"),
            event("b")
        );
        let Ok(Outputs::Events(events)) = settled(&line) else { panic!("no events") };
        assert_eq!(events.iter().map(Event::id).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn u05_an_output_that_is_no_event_rejects_the_input() {
        let failure =
            settled(r#"{"token":"7","outcome":"success","events":[{"id":"a"}]}"#).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Reject);
        assert!(failure.error.contains("events[0]"), "{}", failure.error);
    }

    #[test]
    fn u05_what_is_not_understood_is_said() {
        assert!(misunderstood("hello").contains("\"hello\""));
        assert!(misunderstood(r#"{"token":"8","outcome":"pass"}"#).contains("in hand is \"7\""));
        assert!(misunderstood(r#"{"token":"+7","outcome":"pass"}"#).contains("\"+7\""));
        assert!(misunderstood(r#"{"outcome":"pass"}"#).contains("token \"\""));
        assert!(misunderstood(r#"{"token":"7"}"#).contains("without an \"outcome\""));
        assert!(misunderstood(r#"{"token":"7","outcome":"ok"}"#).contains("\"ok\""));
        assert!(misunderstood(r#"{"token":"7","outcome":"pass","event":[]}"#).contains("event"));
        assert!(
            misunderstood(r#"{"token":"7","outcome":"pass","events":[]}"#).contains("`events`")
        );
        assert!(
            misunderstood(r#"{"token":"7","outcome":"success","error":"x"}"#).contains("`error`")
        );
    }

    #[test]
    fn u05_an_answer_is_for_any_of_those_in_hand_and_for_no_other() {
        let read = |token: &str, in_hand: &[u64]| {
            let line = format!(r#"{{"token":"{token}","outcome":"pass"}}"#);
            match read(line.as_bytes(), in_hand.iter().copied()) {
                Ok(Reply::Settled { place, .. }) => Ok(place),
                other => Err(format!("{other:?}")),
            }
        };
        assert_eq!(read("9", &[7, 8, 9]), Ok(2));
        assert!(read("6", &[7, 8]).unwrap_err().contains(r#"in hand are \"7\", \"8\""#));
        assert!(read("7", &[]).unwrap_err().contains("nothing is in hand"));
    }

    #[test]
    fn u05_a_heartbeat_settles_nothing() {
        assert!(matches!(read(br#"{"heartbeat":true}"#, [7].into_iter()), Ok(Reply::Nothing)));
    }

    #[test]
    fn an_error_text_keeps_its_lines_and_no_escape_sequences() {
        let line = r#"{"token":"7","outcome":"reject","error":"Traceback:\n\u001b[31mbad\u0000"}"#;
        assert_eq!(settled(line).unwrap_err().error, "Traceback:\n\\u{1b}[31mbad\\0");
    }

    #[test]
    fn a_long_error_text_is_cut_at_a_character() {
        let text = "ü".repeat(LONGEST_ERROR);
        let failure = settled(&format!(r#"{{"token":"7","outcome":"reject","error":"{text}"}}"#));
        assert!(failure.unwrap_err().error.len() <= LONGEST_ERROR + '…'.len_utf8());
    }
}
