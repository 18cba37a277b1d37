//! Dead letters, read from their file while it is written.
//!
//! A letter is identified by the offset of its line in the file, which only grows: the offset stays
//! the same, and no other letter is read to find it. One letter is in memory at a time: a list has
//! its long texts cut, and a page of it is limited in size. A file may be of any size, so a request
//! reads a part of it and says where that ended.

mod lines;
#[cfg(test)]
mod tests;
pub(super) mod wanted;

use std::{
    collections::HashMap,
    fs::{self, File},
    io,
    path::Path,
};

use axum::{body::Body, http::StatusCode, response::Response};
use greenroom_bus::store::letters::{By, Filter, Order, RejectedBy, error_group};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::{Value, json};

use self::{
    lines::{LetterLines, Line, LinesBackwards},
    wanted::{MOST, Wanted},
};
use super::answer::{Answer, Json, Refusal, as_json};

/// The size at which a page ends, in bytes, however many letters were requested.
const PAGE: usize = 512 << 10;

/// The part of a text in a list that is shown, in bytes: room for a long error.
const SHOWN: usize = 1_000;

/// A request reads this many bytes of the file and the rest of the last line: some 100,000 letters
/// of usual size, which take well under a second.
const READ: u64 = 32 << 20;

/// The fields of a letter in a list, without the data of its event, which may be large or private.
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
    /// Letters of earlier versions have none.
    key: Option<String>,
    /// Letters of earlier versions have none.
    share: Option<String>,
    /// Letters of earlier versions have none.
    trace_id: Option<String>,
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

/// A line of the file.
struct FileLetter {
    number: u64,
    bytes: u64,
    /// `None` if it is no letter.
    letter: Option<Letter>,
}

/// Letters that share a property.
#[derive(Serialize)]
struct FileGroup {
    name: Option<String>,
    letters: u64,
    bytes: u64,
    first: String,
    last: String,
    reason: String,
    handler: Option<String>,
    error: String,
}

/// A page of letters, or of groups of them. `searched_bytes` says how much of the file was read, if
/// that is not all of it.
pub(super) fn list(path: &Path, wanted: &Wanted) -> Answer {
    let file = open(path)?;
    let found = match wanted.by {
        Some(by) => groups(file, &wanted.filter, by),
        None => page(file, wanted),
    };
    let mut found = found.map_err(|error| unread(path, &error))?;
    found["file"] = path.display().to_string().into();
    Ok(Json::ok(found))
}

fn page(file: Option<File>, wanted: &Wanted) -> io::Result<Value> {
    let (mut letters, mut bytes, mut last, mut is_full) = (Vec::new(), 0, wanted.after, false);
    let (read, is_all) = read(file, wanted.order, wanted.after, |found| {
        let number = found.number;
        if let Some(letter) = found.shown(&wanted.filter) {
            is_full = letters.len() == wanted.limit || bytes >= PAGE;
            if is_full {
                return false;
            }
            bytes += letter.to_string().len();
            letters.push(letter);
        }
        last = number;
        true
    })?;
    Ok(json!({
        "letters": letters,
        "after": (!is_all).then_some(last),
        "next": (!is_all).then(|| wanted.next_page(last)),
        "searched_bytes": (!is_all && !is_full).then_some(read),
    }))
}

/// The letters, grouped and counted by a property; the largest groups first. The newest letters are
/// read first.
fn groups(file: Option<File>, wanted: &Filter, by: By) -> io::Result<Value> {
    let mut groups = HashMap::<Option<String>, FileGroup>::new();
    let (read, is_all) = read(file, Order::Newest, Order::Newest.start(), |found| {
        let FileLetter { number, bytes, letter } = found;
        let Some(letter) = letter.filter(|letter| letter.matches(number, wanted)) else {
            return true;
        };
        let name = letter.name(by);
        if groups.len() == MOST && !groups.contains_key(&name) {
            return false;
        }
        let group = groups.entry(name).or_insert_with_key(|name| FileGroup {
            name: name.clone(),
            letters: 0,
            bytes: 0,
            first: String::new(),
            last: letter.last_at.clone(),
            reason: letter.reason,
            handler: letter.handler,
            error: letter.error,
        });
        group.letters += 1;
        group.bytes += bytes;
        group.first = letter.last_at;
        true
    })?;
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by(|a, b| (b.letters, &b.last).cmp(&(a.letters, &a.last)));
    let (letters, bytes) =
        groups.iter().fold((0, 0), |sum, of| (sum.0 + of.letters, sum.1 + of.bytes));
    let mut groups = json!(groups);
    shorten(&mut groups);
    Ok(json!({
        "groups": groups,
        "totals": { "letters": letters, "bytes": bytes },
        "searched_bytes": (!is_all).then_some(read),
    }))
}

/// Passes on the lines after the line of this number, in this order, until the receiver has enough.
/// Returns the number of bytes read, and whether the end was reached.
fn read(
    file: Option<File>,
    order: Order,
    after: u64,
    mut each: impl FnMut(FileLetter) -> bool,
) -> io::Result<(u64, bool)> {
    let Some(file) = file else { return Ok((0, true)) };
    let mut next: Box<dyn FnMut() -> io::Result<Option<FileLetter>>> = match order {
        Order::Oldest => {
            let mut lines = LetterLines::start_behind(file, after)?;
            Box::new(move || Ok(lines.next()?.map(FileLetter::from)))
        }
        Order::Newest => {
            let mut lines = LinesBackwards::start_before(file, after)?;
            Box::new(move || Ok(lines.next()?.map(FileLetter::from)))
        }
    };
    let mut read = 0;
    while let Some(found) = next()? {
        let bytes = found.bytes + 1;
        if !each(found) {
            return Ok((read, false));
        }
        read += bytes;
        if read >= READ {
            return Ok((read, false));
        }
    }
    Ok((read, true))
}

/// A whole letter.
pub(super) fn show(path: &Path, wanted: u64) -> Result<Response, Refusal> {
    let found = open(path)?.map_or(Ok(None), |file| find(file, wanted));
    let found = found.map_err(|error| unread(path, &error))?;
    found.map(|letter| as_json(Body::from(letter))).ok_or_else(|| {
        let what = format!("there is no dead letter {wanted}");
        let place = path.display().to_string();
        Refusal::new(StatusCode::NOT_FOUND, what, place, "`/api/dead-letters` lists them")
    })
}

fn find(file: File, wanted: u64) -> io::Result<Option<Vec<u8>>> {
    let Some(start) = wanted.checked_sub(1) else { return Ok(None) };
    let mut lines = LetterLines::start_behind(file, start)?;
    let Some((number, text)) = lines.next()? else { return Ok(None) };
    let is_it = number == wanted && serde_json::from_slice::<IgnoredAny>(text).is_ok();
    let around = [format!("{{\"number\":{number},\"letter\":"), "}\n".to_owned()];
    Ok(is_it.then(|| [around[0].as_bytes(), text, around[1].as_bytes()].concat()))
}

/// Shortens texts that are too long for a list.
fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > SHOWN => {
            let cut = text.floor_char_boundary(SHOWN);
            let length = text.len();
            text.truncate(cut);
            text.push_str(&format!("… ({length} bytes)"));
        }
        Value::Array(values) => values.iter_mut().for_each(shorten),
        Value::Object(members) => members.values_mut().for_each(shorten),
        _ => {}
    }
}

impl From<Line<'_>> for FileLetter {
    fn from((number, text): Line<'_>) -> Self {
        Self { number, bytes: text.len() as u64, letter: serde_json::from_slice(text).ok() }
    }
}

impl FileLetter {
    /// Its form in a list; `None` if the filter excludes it.
    fn shown(self, wanted: &Filter) -> Option<Value> {
        let Self { number, bytes, letter } = self;
        let Some(letter) = letter else {
            let error = "this line is not a dead letter";
            return wanted
                .takes_all()
                .then(|| json!({ "number": number, "bytes": bytes, "error": error }));
        };
        if !letter.matches(number, wanted) {
            return None;
        }
        let event = letter.event.as_ref();
        let mut shown = json!({
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
                "key": letter.key,
                "share": letter.share,
                "group": letter.group(),
                "trace_id": letter.trace_id,
                "rejected_by": letter.rejected_by.unwrap_or_default(),
        });
        shorten(&mut shown);
        Some(shown)
    }
}

impl Letter {
    /// Its group of errors.
    fn group(&self) -> String {
        error_group(&self.reason, self.handler.as_deref(), &self.error)
    }

    fn name(&self, by: By) -> Option<String> {
        match by {
            By::Group => Some(self.group()),
            By::Reason => Some(self.reason.clone()),
            By::Handler => self.handler.clone(),
        }
    }

    fn matches(&self, number: u64, wanted: &Filter) -> bool {
        let Filter { ids, reason, pool, handler, input, key, share, event, group, since, upto } =
            wanted;
        let is = |wanted: &Option<String>, found: Option<&String>| {
            wanted.is_none() || wanted.as_ref() == found
        };
        (ids.is_empty() || ids.contains(&number))
            && is(reason, Some(&self.reason))
            && is(pool, self.pool.as_ref())
            && is(handler, self.handler.as_ref())
            && is(input, self.input.as_ref())
            && is(key, self.key.as_ref())
            && is(share, self.share.as_ref())
            && is(event, self.event.as_ref().map(|event| &event.id))
            && group.as_ref().is_none_or(|group| *group == self.group())
            && since
                .is_none_or(|since| Filter::moment(&self.last_at).is_some_and(|last| last >= since))
            && upto.is_none_or(|upto| number <= upto)
    }
}

/// `None` if the file does not exist: it was renamed or removed.
fn open(path: &Path) -> Result<Option<File>, Refusal> {
    // Opening a pipe may block, and reading it takes letters from other readers.
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        let place = path.display().to_string();
        let what =
            format!("dead letters go to {place}, which is not a file that can be read again");
        let next = "check what that path leads to, or let `dead_letters` name a file";
        return Err(Refusal::new(StatusCode::CONFLICT, what, place, next));
    }
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unread(path, &error)),
    }
}

fn unread(path: &Path, error: &io::Error) -> Refusal {
    let next = "make the file that `dead_letters` names readable for greenroom";
    let (status, place) = (StatusCode::INTERNAL_SERVER_ERROR, path.display().to_string());
    Refusal::new(status, format!("cannot read the dead letters: {error}"), place, next)
}
