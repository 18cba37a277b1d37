//! The options of a test file, each declared once.

use std::path::PathBuf;

use bytes::Bytes;
use greenroom_bus::{
    dead_letter::Reason,
    event::Event,
    stand_in::{ScriptedAnswer, StandIn, StandInAnswer},
};
use greenroom_config::{
    At, any, count, each, group, list, named, near, options, path, text, texts,
    tree::{self, Node},
    variables, word, words,
};
use serde_json::{Value, json};

use crate::config::json;

options! {
    /// Cases for a configuration, with stand-ins in place of all targets (`greenroom test FILE`).
    pub struct TestFile = "the test file" {
        /// The configuration. A relative path starts at the directory of this file.
        config: PathBuf = path().default("greenroom.yaml");
        /// The answers of handlers in every case that gives none itself, by the name of the
        /// handler.
        handlers: Vec<StandInOptions> = named().or_empty();
        /// The answers of outputs in every case that gives none itself, by the name of the output.
        outputs: Vec<StandInOptions> = named().or_empty();
        /// The cases, each by a sentence. Each has a run of its own, on virtual time.
        cases: Vec<CaseOptions> = each();
    }
}

options! {
    /// One event or several, and the expected consequences. Exactly one of `event`, `record` and
    /// `request` is given.
    pub struct CaseOptions named name = "a case", then CaseOptions::checked {
        /// The input that the event comes by. Needed if there are several, and the event is a
        /// `record` or a `request`.
        input: Option<String> = text().optional();
        /// A CloudEvent, or a list of them. `specversion`, `id` and `source` may be left out.
        event: Option<Node> = any().optional();
        /// A line, or a record of a broker: `records` of the input makes an event of it.
        record: Option<RecordOptions> = group().optional();
        /// A request to an `http` input.
        request: Option<RequestOptions> = group().optional();
        /// The answers of handlers, by the name of the handler. Without any, every event is
        /// handled.
        handlers: Vec<StandInOptions> = named().or_empty();
        /// The answers of outputs, by the name of the output. Without any, every event is stored.
        outputs: Vec<StandInOptions> = named().or_empty();
        /// The expected consequences. Without `letters`, no dead letter is expected.
        expect: Expectations = group();
    }
}

options! {
    /// Parts that the input has not are left out.
    pub struct RecordOptions = "a record" {
        /// The value: a text as it is, anything else as JSON.
        value: Option<Node> = any().optional();
        /// The key.
        key: Option<String> = text().optional();
        /// The headers.
        headers: Vec<(String, String)> = variables().default("{}");
        /// The topic, subject or stream.
        topic: Option<String> = text().optional();
        /// The path of the file.
        path: Option<String> = text().optional();
    }
}

options! {
    /// A POST.
    pub struct RequestOptions = "a request" {
        /// Its path, without a query; without it, that of the input.
        path: Option<String> = text().optional();
        /// Its headers.
        headers: Vec<(String, String)> = variables().default("{}");
        /// Its body: a text as it is, anything else as JSON.
        body: Option<Node> = any().optional();
    }
}

options! {
    /// The answers of one handler or output, in turn. After the last one, everything succeeds.
    pub struct StandInOptions named name = "a stand-in", then StandInOptions::checked {
        /// The answers.
        answers: Vec<AnswerOptions> = list();
    }
}

options! {
    /// Success, unless it says something else.
    pub struct AnswerOptions = "an answer", then AnswerOptions::checked {
        /// How often it is given; without it, from then on.
        times: Option<u32> = count(1..=1_000_000).optional();
        /// The outcome, for targets of all kinds.
        outcome: Option<AnswerOutcome> = word().optional();
        /// The text of a `failure` or a `reject`.
        error: Option<String> = text().optional();
        /// The events that a handler answers with, in place of the event itself: one or a list.
        events: Option<Node> = any().optional();
        /// The status of the response, for `http` targets.
        status: Option<u32> = count(100..=999).optional();
        /// The headers of the response.
        headers: Vec<(String, String)> = variables().default("{}");
        /// The body of the response: a text as it is, anything else as JSON.
        body: Option<Node> = any().optional();
    }
}

words! {
    /// The outcome of an attempt.
    pub enum AnswerOutcome {
        /// It is handled, or stored.
        Success = "success",
        /// It failed for now.
        Failure = "failure",
        /// It is refused for good.
        Reject = "reject",
        /// There is no answer in time.
        Timeout = "timeout",
        /// There is no connection.
        Connection = "connection",
        /// The process dies, or the connection is lost.
        Crash = "crash",
    }
}

options! {
    /// Of an option that is left out, nothing is expected; of `outcome` and `letters`, that the
    /// event is handled.
    pub struct Expectations = "the expectations" {
        /// How the event ends; without it, `dead_letter` if there are `letters`, else `handled`.
        outcome: Option<CaseOutcome> = word().optional();
        /// The handlers that get the event, or an event that came back in (`loopback`), in their
        /// order: one or a list.
        handler: Option<Vec<String>> = texts().optional();
        /// Their pools.
        pool: Option<Vec<String>> = texts().optional();
        /// The keys by which they order it: a value or a list; `null`: it has none.
        key: Option<Node> = any().optional();
        /// Its shares there: a value or a list; `null`: it has none.
        share: Option<Node> = any().optional();
        /// The number of attempts, of all handlers together.
        attempts: Option<u32> = count(0..=1_000_000_000).optional();
        /// The outputs that store something: a name or a list of names, or a mapping from names to
        /// the stored events, each with the members that are compared. Others store nothing.
        outputs: Option<Node> = any().optional();
        /// The dead letters, in their order. Only the members that are written are compared.
        letters: Vec<LetterOptions> = list().or_empty();
        /// The status that an `http` input answers a `request` with.
        reply: Option<u32> = count(100..=999).optional();
    }
}

options! {
    /// A dead letter.
    pub struct LetterOptions = "a letter", then LetterOptions::checked {
        /// Its reason, such as `retries_exhausted` (docs/order.md lists them).
        reason: Option<String> = text().optional();
        /// A part of its error.
        error: Option<String> = text().optional();
        /// The handler that gave the event up.
        handler: Option<String> = text().optional();
        /// The output that rejected it.
        output: Option<String> = text().optional();
        /// Its attempts.
        attempts: Option<u32> = count(0..=1_000_000_000).optional();
    }
}

words! {
    /// How the events of a case end.
    pub enum CaseOutcome {
        /// They are handled, and the results are stored.
        Handled = "handled",
        /// At least one is a dead letter.
        DeadLetter = "dead_letter",
        /// Each has no handler, and is acknowledged.
        Ignored = "ignored",
        /// At least one is neither handled nor stored anywhere.
        Refused = "refused",
        /// The key of at least one is parked.
        Parked = "parked",
    }
}

impl CaseOptions {
    fn checked(self, at: &mut At<'_>) -> Option<Self> {
        let given = ["event", "record", "request"].map(|name| (name, at.has(name)));
        let given: Vec<_> = given.iter().filter(|(_, given)| *given).collect();
        let help = "a case has an `event`, a `record` or a `request`";
        match given[..] {
            [] => at.error("", "nothing comes in", help),
            [_] => {}
            [_, (more, _), ..] => {
                at.error(more, format!("`{more}` is one too many"), help);
            }
        }
        if let Some(Err(why)) = self.event.as_ref().map(events) {
            at.error(
                "event",
                why,
                "a CloudEvent, such as `{ type: order.placed, data: { n: 1 } }`",
            );
        }
        if let Some(outputs) = &self.expect.outputs
            && let Err((name, why)) = stored(outputs)
        {
            let help =
                "for example `outputs: [done]`, or `outputs: { done: [{ type: price.set }] }`";
            at.inside("expect").error(&name, why, help);
        }
        Some(self)
    }
}

impl StandInOptions {
    fn checked(self, at: &mut At<'_>) -> Option<Self> {
        let last = self.answers.len().saturating_sub(1);
        let for_ever = self.answers.iter().position(|answer| answer.times.is_none());
        if let Some(place) = for_ever.filter(|place| *place < last) {
            let text = "this answer is given from then on, so the ones after it never are";
            at.error(&format!("answers.{place}"), text, "say how many `times` it is given");
        }
        Some(self)
    }

    /// It gives an answer that only a target which answers by HTTP can give.
    pub(super) fn posts(&self) -> bool {
        self.answers.iter().any(|answer| answer.status.is_some())
    }

    pub(super) fn stand_in(&self) -> StandIn {
        StandIn::new(
            self.answers
                .iter()
                .map(|answer| ScriptedAnswer { answer: answer.answer(), times: answer.times }),
        )
    }
}

impl AnswerOptions {
    fn checked(self, at: &mut At<'_>) -> Option<Self> {
        let posts = self.status.is_some();
        for name in ["headers", "body"] {
            if at.has(name) && !posts {
                at.error(name, format!("`{name}` without `status`"), "say which `status` it has");
            }
        }
        let others = ["outcome", "events", "status"];
        let given: Vec<_> = others.into_iter().filter(|name| at.has(name)).collect();
        if let [one, another, ..] = given[..] {
            let text = format!("`{one}` and `{another}` do not go together");
            at.error(another, text, "an answer has an `outcome`, `events` or a `status`");
        }
        let fails = matches!(self.outcome, Some(AnswerOutcome::Failure | AnswerOutcome::Reject));
        if self.error.is_some() && !fails {
            let help = "write `outcome: failure` or `outcome: reject` with it";
            at.error("error", "an answer that is no failure has no error", help);
        }
        if let Some(Err(why)) = self.events.as_ref().map(events) {
            at.error("events", why, "a CloudEvent, such as `{ type: price.set, data: { n: 1 } }`");
        }
        Some(self)
    }

    fn answer(&self) -> StandInAnswer {
        if let Some(status) = self.status {
            let status = u16::try_from(status).unwrap_or_default();
            let body = self.body.as_ref().map(bytes).unwrap_or_default();
            return StandInAnswer::Response { status, headers: self.headers.clone(), body };
        }
        if let Some(made) = &self.events {
            return StandInAnswer::Events(events(made).unwrap_or_default());
        }
        let error = || self.error.clone().unwrap_or_else(|| "the stand-in says so".to_owned());
        match self.outcome.unwrap_or(AnswerOutcome::Success) {
            AnswerOutcome::Success => StandInAnswer::Success,
            AnswerOutcome::Failure => StandInAnswer::Failure(error()),
            AnswerOutcome::Reject => StandInAnswer::Reject(error()),
            AnswerOutcome::Timeout => StandInAnswer::Timeout,
            AnswerOutcome::Connection => StandInAnswer::Connection,
            AnswerOutcome::Crash => StandInAnswer::Crash,
        }
    }
}

impl LetterOptions {
    fn checked(self, at: &mut At<'_>) -> Option<Self> {
        let reasons = Reason::ALL.map(Reason::as_str);
        if let Some(reason) = self.reason.as_deref().filter(|reason| !reasons.contains(reason)) {
            let help = near::suggestion(reason, reasons);
            let help = help.unwrap_or_else(|| format!("it is one of {}", reasons.join(", ")));
            at.error("reason", format!("no letter has the reason `{reason}`"), help);
        }
        Some(self)
    }
}

/// A text as it is, anything else as JSON.
pub(super) fn bytes(node: &Node) -> Bytes {
    match &node.value {
        tree::Value::Text(text) => text.clone().into(),
        _ => json(node).to_string().into(),
    }
}

/// The events of a mapping, or of a list of them.
pub(super) fn events(node: &Node) -> Result<Vec<Event>, String> {
    let one = |(place, value): (usize, Value)| event(value, place + 1);
    match json(node) {
        Value::Array(values) => values.into_iter().enumerate().map(one).collect(),
        value => Ok(vec![event(value, 1)?]),
    }
}

fn event(value: Value, number: usize) -> Result<Event, String> {
    let Value::Object(mut members) = value else {
        return Err("an event is a mapping".to_owned());
    };
    let usual = [("specversion", json!("1.0")), ("id", json!(number.to_string()))];
    for (name, value) in usual.into_iter().chain([("source", json!("/test"))]) {
        members.entry(name).or_insert(value);
    }
    let text = Value::Object(members).to_string();
    Event::parse(text.as_bytes()).map_err(|error| format!("event {number}: {error}"))
}

/// The outputs that store something, with the events if they are said.
pub(super) type Stored = Vec<(String, Option<Vec<Value>>)>;

/// # Errors
/// The place of the mistake below the expectations, and a sentence.
pub(super) fn stored(node: &Node) -> Result<Stored, (String, String)> {
    let named = |value: Value| match value {
        Value::String(name) => Ok((name, None)),
        _ => Err(("outputs".to_owned(), "an output is a name".to_owned())),
    };
    match json(node) {
        Value::Array(names) => names.into_iter().map(named).collect(),
        Value::Object(outputs) => outputs
            .into_iter()
            .map(|(name, events)| match events {
                Value::Array(events) if events.iter().all(Value::is_object) => {
                    Ok((name, Some(events)))
                }
                event @ Value::Object(_) => Ok((name, Some(vec![event]))),
                _ => {
                    let text = format!("the events of `{name}` are a mapping or a list of them");
                    Err((format!("outputs.{name}"), text))
                }
            })
            .collect(),
        name => named(name).map(|named| vec![named]),
    }
}
