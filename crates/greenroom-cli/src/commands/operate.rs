//! `greenroom key|pool|handler|output|reload`: what an operator does to a running greenroom (C22).
//! Each is one request to its admin listener, which guards it as it guards the screen's.

use std::process::ExitCode;

use serde_json::Value;
use url::form_urlencoded::Serializer;

use crate::{
    admin::ask,
    cli::{HandlerCommand, KeyCommand, KeyDecision, NamedAt, OutputCommand, PoolCommand},
    exit::{self, Exit},
    letters::escaped::printable,
};

/// Decides about a parked key.
pub fn key(what: &KeyCommand) -> ExitCode {
    let (word, decision) = match what {
        KeyCommand::Resume(decision) => ("resume", decision),
        KeyCommand::Skip(decision) => ("skip", decision),
        KeyCommand::Drop(decision) => ("drop", decision),
    };
    let KeyDecision { key, handler, address } = decision;
    let mut query = Serializer::new(String::new());
    query.append_pair("key", key);
    if let Some(handler) = handler {
        query.append_pair("handler", handler);
    }
    order(address, &format!("/api/keys/{word}?{}", query.finish()))
}

/// Pauses, resumes or resizes a pool.
pub fn pool(what: &PoolCommand) -> ExitCode {
    match what {
        PoolCommand::Pause(at) => order(&at.address, &path("pools", at, "pause")),
        PoolCommand::Resume(at) => order(&at.address, &path("pools", at, "resume")),
        PoolCommand::Resize { at, workers } => {
            order(&at.address, &(path("pools", at, "workers") + &format!("?count={workers}")))
        }
    }
}

/// Pauses or resumes a handler.
pub fn handler(what: &HandlerCommand) -> ExitCode {
    match what {
        HandlerCommand::Pause(at) => order(&at.address, &path("handlers", at, "pause")),
        HandlerCommand::Resume(at) => order(&at.address, &path("handlers", at, "resume")),
    }
}

/// Has a paused output tried at once.
pub fn output(what: &OutputCommand) -> ExitCode {
    let OutputCommand::Resume(at) = what;
    order(&at.address, &path("outputs", at, "resume"))
}

/// Has the configuration read again.
pub fn reload(address: &str) -> ExitCode {
    order(address, "/api/reload")
}

/// Names are parts of a path: what is none in a path is written as its bytes.
fn path(kind: &str, at: &NamedAt, order: &str) -> String {
    let mut url = url::Url::parse("http://a/api").unwrap_or_else(|_| unreachable!("it is a URL"));
    if let Ok(mut parts) = url.path_segments_mut() {
        parts.extend([kind, &at.name, order]);
    }
    url.path().to_owned()
}

fn order(address: &str, path: &str) -> ExitCode {
    match ask::post(address, path, b"") {
        Ok(done) => exit::answer(&in_words(&done)),
        Err(why) => Exit::CouldNotRun.because(why),
    }
}

/// What was answered, a line for each member.
fn in_words(done: &Value) -> String {
    let Some(members) = done.as_object() else { return format!("{done}\n") };
    let lines = members.iter().map(|(name, value)| match value {
        Value::String(text) => format!("{name}: {}\n", printable(text)),
        Value::Array(items) if items.is_empty() => format!("{name}: nothing\n"),
        Value::Array(items) => {
            let items = items.iter().map(|item| match item {
                Value::String(text) => format!("  {}\n", printable(text)),
                item => format!("  {}\n", printable(&item.to_string())),
            });
            format!("{name}:\n{}", items.collect::<String>())
        }
        value => format!("{name}: {}\n", printable(&value.to_string())),
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn c22_a_name_of_any_characters_is_one_part_of_the_path() {
        let at = |name: &str| NamedAt { name: name.to_owned(), address: String::new() };
        assert_eq!(path("pools", &at("erp"), "pause"), "/api/pools/erp/pause");
        assert_eq!(path("pools", &at("a/b ?#"), "resume"), "/api/pools/a%2Fb%20%3F%23/resume");
    }

    #[test]
    fn c22_what_was_done_is_told_a_line_for_each_part() {
        let done = json!({ "changed": ["pools.a: workers 4 -> 8"], "left": [], "pool": "a\u{1b}", "workers": 8 });
        let expected =
            "changed:\n  pools.a: workers 4 -> 8\nleft: nothing\npool: a\u{fffd}\nworkers: 8\n";
        assert_eq!(in_words(&done), expected);
    }
}
