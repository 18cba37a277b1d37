//! Dead letters, read from their file while it is written.
//!
//! A letter is known by the number of its line: the file is only ever appended to, so that stays the same.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::Path,
};

use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::answer::{Answer, Json, Refusal};

/// Letters of one answer, unless said otherwise, and at most.
pub(super) const LIMIT: usize = 50;
pub(super) const MOST: usize = 1_000;

/// Which letters are asked for.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    /// Those behind this line.
    pub(super) after: u64,
    pub(super) limit: usize,
    pub(super) reason: Option<String>,
    pub(super) pool: Option<String>,
    pub(super) handler: Option<String>,
}

/// What a list tells of a letter: not the data of its event, which may be large or private.
#[derive(Deserialize)]
struct Letter<'a> {
    #[serde(borrow)]
    event: Option<Head<'a>>,
    reason: String,
    error: String,
    attempts: u64,
    first_at: String,
    last_at: String,
    /// Letters of earlier versions have none.
    input: Option<String>,
    source: String,
    position: u64,
    pool: Option<String>,
    handler: Option<String>,
    #[serde(borrow, default)]
    raw_base64: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Head<'a> {
    id: String,
    r#type: String,
    subject: Option<String>,
    #[serde(borrow, default, rename = "data")]
    _data: Option<&'a RawValue>,
}

/// A page of letters, oldest first. Reads the file from its start.
pub(super) fn list(path: &Path, wanted: &Wanted) -> Answer {
    let (mut letters, mut last, mut more) = (Vec::new(), wanted.after, false);
    each_line(path, |number, line| {
        if number <= wanted.after {
            return true;
        }
        let Some(letter) = shown(number, line, wanted) else { return true };
        more = letters.len() == wanted.limit;
        if !more {
            letters.push(letter);
            last = number;
        }
        !more
    })?;
    let next = more.then(|| format!("/api/dead-letters?after={last}&limit={}", wanted.limit));
    Ok(Json::ok(json!({ "file": path.display().to_string(), "letters": letters, "next": next })))
}

/// One letter, whole.
pub(super) fn show(path: &Path, wanted: u64) -> Answer {
    let mut found = None;
    each_line(path, |number, line| {
        if number == wanted {
            found = serde_json::from_slice::<Value>(line).ok();
        }
        number < wanted
    })?;
    let letter = found.ok_or_else(|| {
        let what = format!("there is no dead letter {wanted}");
        let place = path.display().to_string();
        Refusal::new(StatusCode::NOT_FOUND, what, place, "`/api/dead-letters` lists what there is")
    })?;
    Ok(Json::ok(json!({ "number": wanted, "letter": letter })))
}

/// What a list says of this line; `None` where it is not wanted.
fn shown(number: u64, line: &[u8], wanted: &Wanted) -> Option<Value> {
    let Ok(letter) = serde_json::from_slice::<Letter<'_>>(line) else {
        let any = wanted.reason.is_none() && wanted.pool.is_none() && wanted.handler.is_none();
        return any.then(|| json!({ "number": number, "error": "this line is no dead letter" }));
    };
    let is = |wanted: &Option<String>, found: Option<&String>| {
        wanted.is_none() || wanted.as_ref() == found
    };
    let all = is(&wanted.reason, Some(&letter.reason))
        && is(&wanted.pool, letter.pool.as_ref())
        && is(&wanted.handler, letter.handler.as_ref());
    let event = letter.event.as_ref();
    all.then(|| {
        json!({
            "number": number,
            "id": event.map(|event| &event.id),
            "type": event.map(|event| &event.r#type),
            "subject": event.and_then(|event| event.subject.as_ref()),
            "raw": letter.raw_base64.is_some_and(|raw| raw.get() != "null"),
            "reason": letter.reason,
            "error": letter.error,
            "attempts": letter.attempts,
            "first_at": letter.first_at,
            "last_at": letter.last_at,
            "input": letter.input,
            "source": letter.source,
            "position": letter.position,
            "pool": letter.pool,
            "handler": letter.handler,
        })
    })
}

/// Goes through whole lines, from 1, while `go_on` says so. A last line without its end is still being written.
fn each_line(path: &Path, mut go_on: impl FnMut(u64, &[u8]) -> bool) -> Result<(), Refusal> {
    let unread = |error: io::Error| {
        let next = "see to it that greenroom may read the file that `dead_letters` names";
        let (status, place) = (StatusCode::INTERNAL_SERVER_ERROR, path.display().to_string());
        Refusal::new(status, format!("cannot read the dead letters: {error}"), place, next)
    };
    let mut file = match File::open(path) {
        Ok(file) => BufReader::new(file),
        // It is made with the first letter.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unread(error)),
    };
    let (mut line, mut number) = (Vec::new(), 0);
    loop {
        line.clear();
        file.read_until(b'\n', &mut line).map_err(unread)?;
        if line.pop() != Some(b'\n') {
            return Ok(());
        }
        number += 1;
        if !go_on(number, &line) {
            return Ok(());
        }
    }
}
