//! Dead letters, read from their file while it is written.
//!
//! A letter is known by the number of its line: the file is only ever appended to, so that stays
//! the same. A letter may be of any size, so none is held in memory: the list decodes them with
//! their long texts cut, a page of it has a largest size, and a single letter is handed out in
//! pieces.

mod lines;
mod shortened;
#[cfg(test)]
mod tests;
mod whole;

use std::{
    fs::File,
    io::{self, BufReader},
    path::Path,
};

use axum::{http::StatusCode, response::Response};
use greenroom_bus::store::letters::RejectedBy;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};
use url::form_urlencoded;

use self::{
    lines::{LetterLine, LetterLines},
    shortened::Shortened,
    whole::Whole,
};
use super::answer::{Answer, Json, Refusal};

/// Letters of one answer, unless said otherwise, and at most.
pub(super) const LIMIT: usize = 50;
pub(super) const MOST: usize = 1_000;

/// The size at which a page ends, in bytes, however many letters were asked for.
const PAGE: usize = 512 << 10;

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
struct Letter {
    event: Option<Head>,
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
    #[serde(default)]
    raw_base64: Option<IgnoredAny>,
    #[serde(default)]
    rejected_by: Option<Vec<RejectedBy>>,
}

#[derive(Deserialize)]
struct Head {
    id: String,
    r#type: String,
    subject: Option<String>,
}

/// A page of letters, oldest first. Reads the file from its start.
pub(super) fn list(path: &Path, wanted: &Wanted) -> Answer {
    let page = page(path, wanted).map_err(|error| unread(path, &error))?;
    let (letters, next) = (page.letters, page.more.then(|| wanted.path_after(page.last)));
    Ok(Json::ok(json!({ "file": path.display().to_string(), "letters": letters, "next": next })))
}

#[derive(Default)]
struct Page {
    letters: Vec<Value>,
    /// How much they are, as text.
    bytes: usize,
    /// The number of the last one.
    last: u64,
    /// There are others behind it.
    more: bool,
}

impl Page {
    fn is_full(&self, wanted: &Wanted) -> bool {
        self.letters.len() == wanted.limit || self.bytes >= PAGE
    }

    fn push(&mut self, number: u64, letter: Value) {
        self.bytes += letter.to_string().len();
        self.letters.push(letter);
        self.last = number;
    }
}

fn page(path: &Path, wanted: &Wanted) -> io::Result<Page> {
    let mut page = Page { last: wanted.after, ..Page::default() };
    let Some(mut lines) = open(path)? else { return Ok(page) };
    for number in 1.. {
        let mut line = lines.next();
        let is_wanted = number > wanted.after;
        let letter = if is_wanted { json_of(&mut line)? } else { None };
        // A last line without its end is still being written.
        let Some(length) = line.skip()? else { break };
        let Some(letter) = is_wanted.then(|| shown(number, length, letter, wanted)).flatten()
        else {
            continue;
        };
        if page.is_full(wanted) {
            page.more = true;
            break;
        }
        page.push(number, letter);
    }
    Ok(page)
}

/// One letter, whole.
pub(super) fn show(path: &Path, wanted: u64) -> Result<Response, Refusal> {
    let found = find(path, wanted).map_err(|error| unread(path, &error))?;
    let whole = found.ok_or_else(|| {
        let what = format!("there is no dead letter {wanted}");
        let place = path.display().to_string();
        Refusal::new(StatusCode::NOT_FOUND, what, place, "`/api/dead-letters` lists what there is")
    })?;
    Ok(whole.answer())
}

fn find(path: &Path, wanted: u64) -> io::Result<Option<Whole>> {
    let Some(mut lines) = open(path)? else { return Ok(None) };
    for _ in 1..wanted {
        if lines.next().skip()?.is_none() {
            return Ok(None);
        }
    }
    let mut line = lines.next();
    let start = line.start();
    let is_json = json_of::<IgnoredAny>(&mut line)?.is_some();
    let length = line.skip()?.filter(|_| is_json && wanted > 0);
    let path = path.to_owned();
    Ok(length.map(|length| Whole { path, number: wanted, start, length }))
}

/// What a line holds; `None` where it holds something else.
fn json_of<T: for<'de> Deserialize<'de>>(line: &mut LetterLine<'_>) -> io::Result<Option<T>> {
    match serde_json::from_reader(BufReader::new(Shortened::new(line))) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_io() => Err(error.into()),
        Err(_) => Ok(None),
    }
}

/// What a list says of this line; `None` where it is not wanted.
fn shown(number: u64, bytes: u64, letter: Option<Letter>, wanted: &Wanted) -> Option<Value> {
    let Some(letter) = letter else {
        let error = "this line is no dead letter";
        return wanted
            .takes_all()
            .then(|| json!({ "number": number, "bytes": bytes, "error": error }));
    };
    let event = letter.event.as_ref();
    wanted.takes(&letter).then(|| {
        json!({
            "number": number,
            "bytes": bytes,
            "id": event.map(|event| &event.id),
            "type": event.map(|event| &event.r#type),
            "subject": event.and_then(|event| event.subject.as_ref()),
            "raw": letter.raw_base64.is_some(),
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
            "rejected_by": letter.rejected_by.unwrap_or_default(),
        })
    })
}

impl Wanted {
    fn takes_all(&self) -> bool {
        self.reason.is_none() && self.pool.is_none() && self.handler.is_none()
    }

    fn takes(&self, letter: &Letter) -> bool {
        let is = |wanted: &Option<String>, found: Option<&String>| {
            wanted.is_none() || wanted.as_ref() == found
        };
        is(&self.reason, Some(&letter.reason))
            && is(&self.pool, letter.pool.as_ref())
            && is(&self.handler, letter.handler.as_ref())
    }

    /// What to ask for to get the letters behind this one.
    fn path_after(&self, last: u64) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("after", &last.to_string());
        query.append_pair("limit", &self.limit.to_string());
        let filters = [("reason", &self.reason), ("pool", &self.pool), ("handler", &self.handler)];
        for (name, value) in filters {
            if let Some(value) = value {
                query.append_pair(name, value);
            }
        }
        format!("/api/dead-letters?{}", query.finish())
    }
}

/// None if the file is not there: it was renamed or removed.
fn open(path: &Path) -> io::Result<Option<LetterLines>> {
    match File::open(path) {
        Ok(file) => Ok(Some(LetterLines::of(file))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn unread(path: &Path, error: &io::Error) -> Refusal {
    let next = "see to it that greenroom may read the file that `dead_letters` names";
    let (status, place) = (StatusCode::INTERNAL_SERVER_ERROR, path.display().to_string());
    Refusal::new(status, format!("cannot read the dead letters: {error}"), place, next)
}
