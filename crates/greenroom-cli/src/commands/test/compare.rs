//! The comparison of a case with its expectations.

use greenroom_config::{
    Word,
    tree::{self, Node},
};
use serde_json::Value;

use super::{
    options::{CaseOutcome, Expectations, LetterOptions, stored},
    trial::{CaseResult, SeenLetter},
};
use crate::config::{json, plural};

/// Something that is not as expected.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// The expectation: `handler`, `outputs.done, event 1, /data/total`.
    pub(super) about: String,
    pub(super) expected: Vec<String>,
    pub(super) came: Vec<String>,
}

/// Everything that is not as expected.
pub(super) fn differences(expected: &Expectations, came: &CaseResult) -> Vec<Difference> {
    let mut found = Differences(Vec::new());
    let usual =
        if expected.letters.is_empty() { CaseOutcome::Handled } else { CaseOutcome::DeadLetter };
    let outcome = expected.outcome.unwrap_or(usual);
    if outcome != came.outcome {
        let errors = came.errors.iter().map(|error| format!("  ({error})"));
        let lines = [came.outcome.word().to_owned()].into_iter().chain(errors);
        found.push("outcome", vec![outcome.word().to_owned()], lines.collect());
    }
    if let Some(handlers) = &expected.handler {
        found.same("handler", handlers.clone(), each(came, |seen| Some(&seen.handler)));
    }
    if let Some(pools) = &expected.pool {
        found.same("pool", pools.clone(), each(came, |seen| Some(&seen.pool)));
    }
    if let Some(keys) = &expected.key {
        found.same("key", texts(keys), each(came, |seen| seen.key.as_ref()));
    }
    if let Some(shares) = &expected.share {
        found.same("share", texts(shares), each(came, |seen| seen.share.as_ref()));
    }
    if let Some(attempts) = expected.attempts {
        let made = came.attempts.len();
        found.same("attempts", vec![attempts.to_string()], vec![made.to_string()]);
    }
    if let Some(reply) = expected.reply {
        let replied = came.reply.map(|status| status.to_string());
        found.same("reply", vec![reply.to_string()], replied.into_iter().collect());
    }
    if let Some(outputs) = &expected.outputs {
        found.outputs(outputs, came);
    }
    // Letters that are not expected are shown in any case: they say why.
    found.letters(&expected.letters, &came.letters);
    found.0
}

/// The values of all attempts, each once, in the order of the first.
fn each<'c>(
    came: &'c CaseResult,
    value: impl Fn(&'c crate::run::stand_ins::SeenAttempt) -> Option<&'c String>,
) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    for value in came.attempts.iter().filter_map(value) {
        if !values.contains(value) {
            values.push(value.clone());
        }
    }
    values
}

/// A value, a list of values, or `null`, as keys and shares are written.
fn texts(node: &Node) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match (&node.value, json(node)) {
        (tree::Value::Null, _) => Vec::new(),
        (_, Value::Array(values)) => values.iter().map(text).collect(),
        (_, value) => vec![text(&value)],
    }
}

struct Differences(Vec<Difference>);

impl Differences {
    fn push(&mut self, about: impl Into<String>, expected: Vec<String>, came: Vec<String>) {
        self.0.push(Difference { about: about.into(), expected, came });
    }

    fn same(&mut self, about: &str, expected: Vec<String>, came: Vec<String>) {
        if expected != came {
            self.push(about, expected, came);
        }
    }

    fn outputs(&mut self, node: &Node, came: &CaseResult) {
        let expected = stored(node).unwrap_or_default();
        let wanted = |name: &str| expected.iter().find(|(known, _)| known == name);
        for (name, events) in &came.stored {
            let about = format!("outputs.{name}");
            match (wanted(name), events.len()) {
                (None, 0) => {}
                (None, _) => self.push(about, Vec::new(), events.iter().map(short).collect()),
                (Some((_, None)), 0) => {
                    self.push(about, vec!["at least one event".to_owned()], Vec::new());
                }
                (Some((_, None)), _) => {}
                (Some((_, Some(wanted))), _) => self.events(&about, wanted, events),
            }
        }
    }

    fn events(&mut self, about: &str, wanted: &[Value], came: &[Value]) {
        if wanted.len() != came.len() {
            let expected = vec![plural(wanted.len(), "event")];
            let count = plural(came.len(), "event");
            let came = [count].into_iter().chain(came.iter().map(short)).collect();
            return self.push(about, expected, came);
        }
        // Events of different keys have no order among themselves.
        let mut left: Vec<_> = came.iter().collect();
        let each_fits = wanted.iter().all(|wanted| {
            let place = left.iter().position(|came| fits(wanted, came));
            place.map(|place| left.remove(place)).is_some()
        });
        if each_fits {
            return;
        }
        for (place, (wanted, came)) in wanted.iter().zip(came).enumerate() {
            self.value(&format!("{about}, event {}, ", place + 1), "", wanted, Some(came));
        }
    }

    /// Members that are not expected may be there; lists are compared as a whole.
    fn value(&mut self, about: &str, pointer: &str, wanted: &Value, came: Option<&Value>) {
        match (wanted, came) {
            (Value::Object(members), Some(Value::Object(found))) => {
                for (name, wanted) in members {
                    let name_in_pointer = name.replace('~', "~0").replace('/', "~1");
                    let pointer = format!("{pointer}/{name_in_pointer}");
                    self.value(about, &pointer, wanted, found.get(name));
                }
            }
            (Value::Array(wanted), Some(Value::Array(found))) if wanted.len() == found.len() => {
                for (place, (wanted, found)) in wanted.iter().zip(found).enumerate() {
                    self.value(about, &format!("{pointer}/{place}"), wanted, Some(found));
                }
            }
            (Value::Null, None) => {}
            (Value::Number(wanted), Some(Value::Number(found)))
                if wanted.as_f64() == found.as_f64() => {}
            (wanted, Some(found)) if wanted == found => {}
            (wanted, found) => {
                let found = found.map(Value::to_string);
                let about = format!("{about}{pointer}");
                self.push(about, vec![wanted.to_string()], found.into_iter().collect());
            }
        }
    }

    fn letters(&mut self, expected: &[LetterOptions], came: &[SeenLetter]) {
        let fits = expected.len() == came.len()
            && expected.iter().zip(came).all(|(expected, came)| is_met(expected, came));
        if !fits {
            let expected = expected.iter().map(wanted_letter).collect();
            self.push("letters", expected, came.iter().map(seen_letter).collect());
        }
    }
}

fn fits(wanted: &Value, came: &Value) -> bool {
    let mut differences = Differences(Vec::new());
    differences.value("", "", wanted, Some(came));
    differences.0.is_empty()
}

fn short(event: &Value) -> String {
    let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
    let data = event.get("data").map(|data| format!(" {data}")).unwrap_or_default();
    format!("{} (id {}){data}", text("type"), text("id"))
}

fn is_met(expected: &LetterOptions, came: &SeenLetter) -> bool {
    let LetterOptions { reason, error, handler, output, attempts } = expected;
    reason.as_ref().is_none_or(|reason| reason == came.reason)
        && error.as_ref().is_none_or(|error| came.error.contains(error))
        && handler.as_ref().is_none_or(|handler| Some(handler) == came.handler.as_ref())
        && output.as_ref().is_none_or(|output| came.outputs.contains(output))
        && attempts.is_none_or(|attempts| attempts == came.attempts)
}

fn wanted_letter(letter: &LetterOptions) -> String {
    let LetterOptions { reason, error, handler, output, attempts } = letter;
    let parts = [
        reason.clone(),
        handler.as_ref().map(|handler| format!("of handler {handler}")),
        output.as_ref().map(|output| format!("of output {output}")),
        attempts.map(|attempts| format!("after {}", plural(attempts as usize, "attempt"))),
        error.as_ref().map(|error| format!("with {error:?}")),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "a letter".to_owned() } else { parts.join(", ") }
}

fn seen_letter(letter: &SeenLetter) -> String {
    let parts = [
        Some(letter.reason.to_owned()),
        letter.handler.as_ref().map(|handler| format!("of handler {handler}")),
        (!letter.outputs.is_empty()).then(|| format!("of output {}", letter.outputs.join(", "))),
        Some(format!("after {}", plural(letter.attempts as usize, "attempt"))),
        Some(format!("with {:?}", letter.error)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
