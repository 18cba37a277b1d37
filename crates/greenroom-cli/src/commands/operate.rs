//! `greenroom key|pool|handler|output|reload`: actions on a running greenroom (C22). Each is one
//! request to its admin listener, which guards it like a request of the dashboard.

use std::process::ExitCode;

use serde_json::Value;
use url::form_urlencoded::{self, Serializer};

use super::agreed::agreed;
use crate::{
    admin_client,
    cli::{
        HandlerCommand, KeyCommand, KeyDecision, NamedAt, OutputCommand, PoolCommand, ShareAt,
        ShareCommand, ShareSort,
    },
    exit::{self, Exit},
    letters::escaped::printable,
    shell::quoted,
};

/// Decides on a parked key.
pub fn key(what: &KeyCommand) -> ExitCode {
    let (word, decision) = match what {
        KeyCommand::Resume(decision) => ("resume", decision),
        KeyCommand::Skip(decision) => ("skip", decision),
        KeyCommand::Drop(decision) => ("drop", decision),
    };
    match decide(word, decision) {
        Ok(done) => exit::answer(&done),
        Err(why) => Exit::CouldNotRun.because(why),
    }
}

fn decide(word: &str, decision: &KeyDecision) -> Result<String, String> {
    let KeyDecision { key, handler, address, event } = decision;
    let event = match event {
        Some(event) => event.clone(),
        None => match shown(word, decision)? {
            Some(event) => event,
            None => return Ok("nothing was decided\n".to_owned()),
        },
    };
    let mut query = Serializer::new(String::new());
    query.append_pair("key", key).append_pair("event", &event);
    if let Some(handler) = handler {
        query.append_pair("handler", handler);
    }
    let path = format!("/api/keys/{word}?{}", query.finish());
    admin_client::post(address, &path, b"").map(|done| done_text(&done))
}

/// Shows the event that parks a key, and asks. Returns its id; `None` if the answer is no.
fn shown(word: &str, decision: &KeyDecision) -> Result<Option<String>, String> {
    let KeyDecision { key, handler, address, .. } = decision;
    let of: String = form_urlencoded::byte_serialize(key.as_bytes()).collect();
    let found = admin_client::get(address, &format!("/api/keys?key={of}"))?;
    let lines = found["lines"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut parked = lines.iter().filter(|line| {
        let is_meant = handler.as_ref().is_none_or(|handler| line["handler"] == **handler);
        is_meant && line["state"] == "parked"
    });
    let line = match (parked.next(), parked.next()) {
        (None, _) => return Err(format!("the key `{key}` is not parked")),
        (Some(line), None) => line,
        (Some(_), Some(_)) => {
            return Err(format!(
                "`{key}` is parked with several handlers: choose one with `--handler`"
            ));
        }
    };
    let event = &line["event"];
    let text = |value: &Value| printable(value.as_str().unwrap_or_default());
    eprintln!("{}: {}", text(&line["handler"]), text(&line["text"]));
    for name in ["id", "type", "subject", "source", "time"] {
        eprintln!("{name}: {}", text(&event[name]));
    }
    let data = event["data"].as_str().unwrap_or_default();
    data.lines().for_each(|line| eprintln!("  {}", printable(line)));
    let id = event["id"].as_str().unwrap_or_default();
    let otherwise = format!("nothing was decided: add `--event {}` to confirm", quoted(id));
    let yes = agreed(&format!("{word} it?"), &otherwise)?;
    Ok(yes.then(|| id.to_owned()))
}

/// Pauses, resumes or resizes a pool.
pub fn pool(what: &PoolCommand) -> ExitCode {
    match what {
        PoolCommand::Pause(at) => order(&at.address, &path("pools", at, "pause")),
        PoolCommand::Resume(at) => order(&at.address, &path("pools", at, "resume")),
        PoolCommand::Resize { at, workers, yes } => {
            let path = path("pools", at, "workers") + &format!("?count={workers}");
            match yes {
                true => order(&at.address, &format!("{path}&confirm={workers}")),
                false => order(&at.address, &path),
            }
        }
    }
}

/// Lists shares, or tells one something.
pub fn share(what: &ShareCommand) -> ExitCode {
    match what {
        ShareCommand::List { at, sort } => list_shares(at, *sort),
        ShareCommand::Set { at, weight, in_hand, rate } => {
            let mut query = Serializer::new(String::new());
            let weight = weight.map(|weight| weight.to_string());
            for (name, value) in [("weight", &weight), ("in_hand", in_hand), ("rate", rate)] {
                query.extend_pairs(value.iter().map(|value| (name, value)));
            }
            order(&at.address, &format!("{}?{}", of_share(at, None), query.finish()))
        }
        ShareCommand::Hold { at, seconds } => {
            order(&at.address, &format!("{}?seconds={seconds}", of_share(at, Some("hold"))))
        }
        ShareCommand::Pause(at) => order(&at.address, &of_share(at, Some("pause"))),
        ShareCommand::Resume(at) => order(&at.address, &of_share(at, Some("resume"))),
        ShareCommand::Reset(at) => order(&at.address, &of_share(at, Some("reset"))),
    }
}

fn list_shares(at: &NamedAt, sort: ShareSort) -> ExitCode {
    let sort = match sort {
        ShareSort::Waiting => "waiting",
        ShareSort::Time => "time",
        ShareSort::Held => "held",
    };
    match admin_client::get(&at.address, &format!("{}?sort={sort}", path("pools", at, "shares"))) {
        Ok(found) => exit::answer(&shares_text(&found)),
        Err(why) => Exit::CouldNotRun.because(why),
    }
}

fn shares_text(found: &Value) -> String {
    let shares = found["shares"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut out = String::new();
    for share in shares {
        let text = printable(share["text"].as_str().unwrap_or_default());
        let time = share["time_ms"].as_f64().unwrap_or_default() / 1_000.0;
        out.push_str(&format!("{text}; {time:.1} s of the workers\n"));
    }
    let more = found["count"].as_u64().unwrap_or_default() - shares.len() as u64;
    if more > 0 {
        out.push_str(&format!("and {more} more\n"));
    }
    if let Some(lines) = found["lines"].as_str() {
        out.push_str(&format!("set by hand; these lines keep it:\n{lines}"));
    }
    if out.is_empty() { "no share has anything to do\n".to_owned() } else { out }
}

fn of_share(at: &ShareAt, order: Option<&str>) -> String {
    let parts = ["pools", &at.pool, "shares", &at.share];
    path_of(parts.into_iter().chain(order))
}

/// Pauses or resumes a handler.
pub fn handler(what: &HandlerCommand) -> ExitCode {
    match what {
        HandlerCommand::Pause(at) => order(&at.address, &path("handlers", at, "pause")),
        HandlerCommand::Resume(at) => order(&at.address, &path("handlers", at, "resume")),
    }
}

/// Makes a paused output try at once.
pub fn output(what: &OutputCommand) -> ExitCode {
    let OutputCommand::Resume(at) = what;
    order(&at.address, &path("outputs", at, "resume"))
}

/// Makes it read the configuration again.
pub fn reload(address: &str) -> ExitCode {
    order(address, "/api/reload")
}

/// Names are parts of a path: other characters are percent-encoded.
fn path(kind: &str, at: &NamedAt, order: &str) -> String {
    path_of([kind, &at.name, order])
}

fn path_of<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut url = url::Url::parse("http://a/api").unwrap_or_else(|_| unreachable!("it is a URL"));
    if let Ok(mut path) = url.path_segments_mut() {
        path.extend(parts);
    }
    url.path().to_owned()
}

fn order(address: &str, path: &str) -> ExitCode {
    match admin_client::post(address, path, b"") {
        Ok(done) => exit::answer(&done_text(&done)),
        Err(why) => Exit::CouldNotRun.because(why),
    }
}

/// The answer, with a line for each member.
fn done_text(done: &Value) -> String {
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
            "changed:\n  pools.a: workers 4 -> 8\nleft: nothing\npool: a\\u{1b}\nworkers: 8\n";
        assert_eq!(done_text(&done), expected);
    }
}
