//! Letters, read while a writer may write more.

use std::{
    io::{self, Write},
    path::Path,
};

use rusqlite::{Connection, OptionalExtension, Row, params_from_iter, types::Value};

use super::{
    error::LetterError,
    filter::{Filter, Order, number, time},
    jobs::{self, Job},
    mask::Mask,
    row::{TextPart, each_piece, read},
    schema::SCHEMA,
    state::State,
    summary::{By, Group, RejectedBy, Summary, Totals},
};
use crate::{
    event::{TRACEPARENT, rfc3339::format_utc, write_bare_base64, write_integer, write_text},
    excerpt::excerpt,
    store::sqlite,
};

/// Letters that are looked up at a time: no statement takes long, so the journal can be
/// checkpointed in between.
const AT_ONCE: usize = 256;

/// Read access to the letters of a store.
pub struct Letters {
    tables: Connection,
    mask: Mask,
}

/// The original that an edit of a letter starts from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LetterContent {
    /// The event as JSON, or bytes that are no event, as they were read.
    pub bytes: Vec<u8>,
    /// True if the bytes are an event.
    pub is_event: bool,
}

/// The columns of a letter, in the order of `LetterRow`.
const COLUMNS: &str = "id, state, bytes, reason, grp, attempts, first_at, last_at, position, \
                       input, source, pool, handler, key, event_id, event_type, subject, error, \
                       replays, edited, refused, has_event, share";

struct LetterRow {
    id: i64,
    state: State,
    bytes: u64,
    reason: String,
    group: String,
    attempts: u64,
    first_at: String,
    last_at: String,
    position: u64,
    input: String,
    source: String,
    pool: Option<String>,
    handler: Option<String>,
    key: Option<String>,
    event_id: Option<String>,
    event_type: Option<String>,
    subject: Option<String>,
    error: String,
    replays: u64,
    edited: u64,
    refused: Option<String>,
    has_event: bool,
    share: Option<String>,
}

impl LetterRow {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            state: State::from_number(row.get(1)?),
            bytes: row.get(2)?,
            reason: row.get(3)?,
            group: row.get(4)?,
            attempts: row.get(5)?,
            first_at: format_utc(time(row.get(6)?)),
            last_at: format_utc(time(row.get(7)?)),
            position: row.get::<_, i64>(8)? as u64,
            input: row.get(9)?,
            source: row.get(10)?,
            pool: row.get(11)?,
            handler: row.get(12)?,
            key: row.get(13)?,
            event_id: row.get(14)?,
            event_type: row.get(15)?,
            subject: row.get(16)?,
            error: row.get(17)?,
            replays: row.get(18)?,
            edited: row.get(19)?,
            refused: row.get(20)?,
            has_event: row.get(21)?,
            share: row.get(22)?,
        })
    }
}

impl Letters {
    /// Opens the store in this directory, even while another process writes it. Masked values stay
    /// hidden.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub fn open(directory: &Path) -> Result<Self, LetterError> {
        let tables = sqlite::read(directory, &SCHEMA);
        let tables = tables.map_err(|error| LetterError::not_opened(directory, error))?;
        let noted = "SELECT value FROM notes WHERE name = 'mask'";
        let noted = tables.query_row(noted, [], |row| row.get::<_, String>(0)).optional()?;
        let pointers: Vec<String> = match noted {
            Some(noted) => serde_json::from_str(&noted)
                .map_err(|_| LetterError::Failed("the mask of the store is damaged".to_owned()))?,
            None => Vec::new(),
        };
        let mask = Mask::new(&pointers).map_err(|error| LetterError::Failed(error.to_string()))?;
        Ok(Self { tables, mask })
    }

    /// Shows hidden values.
    pub fn unmasked(mut self) -> Self {
        self.mask = Mask::default();
        self
    }

    /// The hidden values.
    pub fn mask(&self) -> &Mask {
        &self.mask
    }

    /// A page of letters behind this number in this order, and whether there are more.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn list(
        &self,
        filter: &Filter,
        order: Order,
        after: u64,
        limit: usize,
    ) -> Result<(Vec<Summary>, bool), LetterError> {
        let mut found = self.behind(filter, order, after, limit.saturating_add(1))?;
        let more = found.len() > limit;
        found.truncate(limit);
        let letters = found.into_iter().map(|found| self.summary(found));
        Ok((letters.collect::<Result<_, _>>()?, more))
    }

    fn behind(
        &self,
        filter: &Filter,
        order: Order,
        after: u64,
        limit: usize,
    ) -> Result<Vec<LetterRow>, LetterError> {
        let (condition, mut bound) = filter.condition();
        bound.push(number(after));
        bound.push(number(limit as u64));
        let select = format!(
            "SELECT {COLUMNS} FROM letters WHERE {condition} AND {} LIMIT ?",
            order.condition()
        );
        let mut select = self.tables.prepare_cached(&select)?;
        let rows = select.query_map(params_from_iter(bound), LetterRow::read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn summary(&self, found: LetterRow) -> Result<Summary, LetterError> {
        let rejected = read(&self.tables, found.id, TextPart::Rejected)?;
        let rejected_by: Vec<RejectedBy> = rejected
            .and_then(|rejected| serde_json::from_slice(&rejected).ok())
            .unwrap_or_default();
        let cut = |text: String| match excerpt(&text) {
            std::borrow::Cow::Borrowed(_) => text,
            std::borrow::Cow::Owned(cut) => cut,
        };
        let attribute = |name: &str, text: Option<String>| self.mask.attribute(name, text).map(cut);
        let trace_id = self.trace_id(found.id)?;
        Ok(Summary {
            number: found.id as u64,
            state: found.state.as_str(),
            id: attribute("id", found.event_id),
            r#type: attribute("type", found.event_type),
            subject: attribute("subject", found.subject),
            key: found.key.map(cut),
            share: found.share.map(cut),
            trace_id,
            raw: !found.has_event,
            reason: found.reason,
            group: found.group,
            error: cut(found.error),
            attempts: found.attempts,
            first_at: found.first_at,
            last_at: found.last_at,
            input: found.input,
            source: found.source,
            position: found.position,
            pool: found.pool,
            handler: found.handler,
            rejected_by: rejected_by
                .into_iter()
                .map(|by| RejectedBy { output: by.output, error: cut(by.error) })
                .collect(),
            replays: found.replays,
            edited: found.edited,
            refused: found.refused,
            bytes: found.bytes,
        })
    }

    /// The letters, grouped and counted by a property; the largest groups first.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn groups(&self, filter: &Filter, by: By) -> Result<Vec<Group>, LetterError> {
        let (condition, bound) = filter.condition();
        // The columns besides `max(id)` come from the row that has it: SQLite documents this.
        let select = format!(
            "SELECT {}, count(*), sum(bytes), min(last_at), max(last_at), max(id), reason, \
             handler, error FROM letters WHERE {condition} GROUP BY 1 ORDER BY 2 DESC, 6 DESC",
            by.column()
        );
        let newest = "SELECT reason, handler, error FROM letters WHERE id = ?";
        let mut select = self.tables.prepare_cached(&select)?;
        let mut newest = self.tables.prepare_cached(newest)?;
        let rows = select.query_map(params_from_iter(bound), |row| {
            let (reason, handler, error): (String, Option<String>, String) = newest
                .query_row([row.get::<_, i64>(5)?], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
                })?;
            Ok(Group {
                name: row.get(0)?,
                letters: row.get(1)?,
                bytes: row.get(2)?,
                first: format_utc(time(row.get(3)?)),
                last: format_utc(time(row.get(4)?)),
                reason,
                handler,
                error: excerpt(&error).into_owned(),
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// How many of these letters there are.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn totals(&self, filter: &Filter) -> Result<Totals, LetterError> {
        let (condition, bound) = filter.condition();
        let select = format!(
            "SELECT count(*), coalesce(sum(bytes), 0), coalesce(sum(state = 1), 0), \
             coalesce(sum(state = 2), 0), coalesce(max(id), 0) FROM letters WHERE {condition}"
        );
        let totals = self.tables.query_row(&select, params_from_iter(bound), |row| {
            Ok(Totals {
                letters: row.get(0)?,
                bytes: row.get(1)?,
                marked: row.get(2)?,
                in_replay: row.get(3)?,
                newest: row.get(4)?,
                removed: 0,
            })
        })?;
        let removed = "SELECT value FROM notes WHERE name = 'removed'";
        let removed = self.tables.query_row(removed, [], |row| row.get(0)).optional()?;
        Ok(Totals { removed: removed.unwrap_or_default(), ..totals })
    }

    /// The replays that were asked for, the newest first.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn replays(&self) -> Result<Vec<Job>, LetterError> {
        Ok(jobs::all(&self.tables)?)
    }

    /// The event of a letter, or else its bytes, whole, for an edit.
    ///
    /// # Errors
    /// There is no such letter, the mask hides some of it, or it cannot be read.
    pub fn content(&self, letter: u64) -> Result<LetterContent, LetterError> {
        let Value::Integer(id) = number(letter) else { return Err(LetterError::NoLetter(letter)) };
        for part in [TextPart::Event, TextPart::Raw] {
            let Some(bytes) = read(&self.tables, id, part)? else { continue };
            let is_event = part == TextPart::Event;
            // A mask hides bytes that are no event altogether.
            let is_masked = match is_event {
                true => self.mask.hides_part(&bytes),
                false => !self.mask.is_empty(),
            };
            return match is_masked {
                true => Err(LetterError::Masked(letter)),
                false => Ok(LetterContent { bytes, is_event }),
            };
        }
        Err(LetterError::NoLetter(letter))
    }

    /// Writes a complete letter as a line of JSON. False if there is no letter with this number.
    ///
    /// # Errors
    /// It cannot be read, or the writer fails.
    pub fn write(&self, letter: u64, out: &mut dyn Write) -> Result<bool, WriteError> {
        match self.behind(&Filter::only([letter]), Order::Oldest, 0, 1)?.first() {
            Some(found) => self.write_found(found, out).map(|()| true),
            None => Ok(false),
        }
    }

    /// Writes these letters, oldest first, one a line. How many.
    ///
    /// # Errors
    /// They cannot be read, or the writer fails.
    pub fn export(&self, filter: &Filter, out: &mut dyn Write) -> Result<u64, WriteError> {
        let (mut written, mut after) = (0, 0);
        loop {
            let page = self.behind(filter, Order::Oldest, after, AT_ONCE)?;
            let Some(last) = page.last() else { return Ok(written) };
            after = last.id as u64;
            for found in &page {
                self.write_found(found, out)?;
                written += 1;
            }
        }
    }

    /// The fields of the file store, then those that only this store has.
    fn write_found(&self, found: &LetterRow, out: &mut dyn Write) -> Result<(), WriteError> {
        out.write_all(b"{\"event\":")?;
        self.write_event(found.id, TextPart::Event, out)?;
        out.write_all(b",\"raw_base64\":")?;
        self.write_raw(found.id, out)?;
        let mut rest = Vec::new();
        text(&mut rest, "reason", Some(&found.reason));
        text(&mut rest, "error", Some(&found.error));
        integer(&mut rest, "attempts", found.attempts);
        text(&mut rest, "first_at", Some(&found.first_at));
        text(&mut rest, "last_at", Some(&found.last_at));
        text(&mut rest, "input", Some(&found.input));
        text(&mut rest, "source", Some(&found.source));
        integer(&mut rest, "position", found.position);
        text(&mut rest, "pool", found.pool.as_deref());
        text(&mut rest, "handler", found.handler.as_deref());
        text(&mut rest, "key", found.key.as_deref());
        text(&mut rest, "share", found.share.as_deref());
        text(&mut rest, "trace_id", self.trace_id(found.id)?.as_deref());
        rest.extend_from_slice(b",\"rejected_by\":");
        rest.extend_from_slice(&self.rejected(found.id)?);
        integer(&mut rest, "number", found.id as u64);
        text(&mut rest, "state", Some(found.state.as_str()));
        text(&mut rest, "group", Some(&found.group));
        integer(&mut rest, "replays", found.replays);
        integer(&mut rest, "edited", found.edited);
        text(&mut rest, "refused", found.refused.as_deref());
        rest.extend_from_slice(b",\"original\":");
        out.write_all(&rest)?;
        self.write_event(found.id, TextPart::Original, out)?;
        out.write_all(b"}\n")?;
        Ok(())
    }

    fn write_event(&self, id: i64, part: TextPart, out: &mut dyn Write) -> Result<(), WriteError> {
        let any = match self.mask.is_empty() {
            true => each_piece(&self.tables, id, part, |piece| {
                out.write_all(piece).map_err(WriteError::from)
            })?,
            false => match read(&self.tables, id, part)? {
                Some(event) => {
                    out.write_all(self.mask.event(&event).as_bytes())?;
                    true
                }
                None => false,
            },
        };
        if !any {
            out.write_all(b"null")?;
        }
        Ok(())
    }

    /// A mask cannot be applied to bytes that are not an event, so they are hidden as a whole.
    fn write_raw(&self, id: i64, out: &mut dyn Write) -> Result<(), WriteError> {
        let mut is_first = true;
        let hides = !self.mask.is_empty();
        each_piece(&self.tables, id, TextPart::Raw, |piece| {
            if std::mem::take(&mut is_first) {
                out.write_all(if hides { b"\"***\"" } else { b"\"" })?;
            }
            if !hides {
                let mut encoded = Vec::new();
                write_bare_base64(piece, &mut encoded);
                out.write_all(&encoded)?;
            }
            Ok::<(), WriteError>(())
        })?;
        out.write_all(match (is_first, hides) {
            (true, _) => b"null",
            (false, true) => b"",
            (false, false) => b"\"",
        })?;
        Ok(())
    }

    fn trace_id(&self, id: i64) -> Result<Option<String>, LetterError> {
        let found = read(&self.tables, id, TextPart::Trace)?;
        let text = found.and_then(|text| String::from_utf8(text).ok());
        Ok(self.mask.attribute(TRACEPARENT, text))
    }

    fn rejected(&self, id: i64) -> Result<Vec<u8>, LetterError> {
        let Some(rejected) = read(&self.tables, id, TextPart::Rejected)? else {
            return Ok(b"null".to_vec());
        };
        if self.mask.is_empty() {
            return Ok(rejected);
        }
        Ok(self.mask.events(&rejected).into_bytes())
    }
}

/// Why letters were not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// They cannot be read.
    #[error(transparent)]
    Letters(#[from] LetterError),
    /// The writer fails.
    #[error(transparent)]
    Out(#[from] io::Error),
}

impl From<rusqlite::Error> for WriteError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Letters(error.into())
    }
}

fn text(out: &mut Vec<u8>, name: &str, value: Option<&str>) {
    out.push(b',');
    write_text(name, out);
    out.push(b':');
    match value {
        Some(value) => write_text(value, out),
        None => out.extend_from_slice(b"null"),
    }
}

fn integer(out: &mut Vec<u8>, name: &str, value: u64) {
    out.push(b',');
    write_text(name, out);
    out.push(b':');
    write_integer(value, out);
}
