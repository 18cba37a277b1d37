//! Dead letters, read from their file while it is written.
//!
//! A letter is identified by the offset of its line in the file, which only grows: the offset stays
//! the same, and no other letter is read to find it. A letter may be of any size, so none is held
//! in memory: the list decodes them with long texts cut, a page of it is limited in size, and a
//! single letter is sent in pieces. A file may also be of any size, so a request reads a part of it
//! and says where that ended.

mod lines;
mod shortened;
#[cfg(test)]
mod tests;
pub(super) mod wanted;
mod whole;

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, BufRead, BufReader},
    path::Path,
};

use axum::{http::StatusCode, response::Response};
use greenroom_bus::store::letters::{By, Filter, Order, RejectedBy, error_group};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::{Value, json};

use self::{
    lines::{LetterLines, LinesBackwards},
    shortened::Shortened,
    wanted::{MOST, Wanted},
    whole::Whole,
};
use super::answer::{Answer, Json, Refusal};

/// The size at which a page ends, in bytes, however many letters were requested.
const PAGE: usize = 512 << 10;

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
            Box::new(move || {
                let mut line = lines.next();
                let (number, letter) = (line.number(), json_of(&mut line)?);
                // A last line without its end is still being written.
                Ok(line.skip()?.map(|bytes| FileLetter { number, bytes, letter }))
            })
        }
        Order::Newest => {
            let mut lines = LinesBackwards::start_before(file, after)?;
            Box::new(move || {
                let Some((number, bytes)) = lines.next()? else { return Ok(None) };
                let letter = json_of(lines.text(bytes)?)?;
                Ok(Some(FileLetter { number, bytes, letter }))
            })
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
    let found = open(path)?.map_or(Ok(None), |file| find(file, path, wanted));
    let found = found.map_err(|error| unread(path, &error))?;
    let whole = found.ok_or_else(|| {
        let what = format!("there is no dead letter {wanted}");
        let place = path.display().to_string();
        Refusal::new(StatusCode::NOT_FOUND, what, place, "`/api/dead-letters` lists them")
    })?;
    Ok(whole.answer())
}

fn find(file: File, path: &Path, wanted: u64) -> io::Result<Option<Whole>> {
    let Some(start) = wanted.checked_sub(1) else { return Ok(None) };
    let mut lines = LetterLines::start_behind(file, start)?;
    let mut line = lines.next();
    if line.number() != wanted {
        return Ok(None);
    }
    let is_json = json_of::<IgnoredAny>(&mut line)?.is_some();
    let length = line.skip()?.filter(|_| is_json);
    Ok(length.map(|length| Whole { path: path.to_owned(), number: wanted, start, length }))
}

/// The contents of a line; `None` if they have another form.
fn json_of<T: for<'de> Deserialize<'de>>(line: impl BufRead) -> io::Result<Option<T>> {
    match serde_json::from_reader(BufReader::new(Shortened::new(line))) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_io() => Err(error.into()),
        Err(_) => Ok(None),
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
        Some(json!({
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
        }))
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
