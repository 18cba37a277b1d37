//! A letter and its texts, as rows.

use rusqlite::{Connection, OptionalExtension, params};

use super::{
    error_group::error_group,
    filter::{micros, number},
};
use crate::{
    dead_letter::{DeadLetter, file::write_rejected},
    event::Event,
};

/// The size of a piece: a multiple of three, so that the base64 of all pieces put together is that
/// of the whole.
pub(super) const PIECE: usize = 3 * 64 * 1024;

/// An error is kept so far, in bytes. The texts of a row are read whole.
const LONGEST_ERROR: usize = 64 << 10;

/// The approximate size of a row without its texts.
const ROW: usize = 200;

/// Which text of a letter a piece is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextPart {
    Event = 0,
    Raw = 1,
    /// Rejections by outputs, a JSON array.
    Rejected = 2,
    /// The event before it was edited.
    Original = 3,
    /// The trace id of the event, so that a list need not read that. Not of letters that an earlier
    /// version has stored.
    Trace = 4,
}

/// Stores a letter, as a new one or in place of the one whose replay has failed. By how many bytes
/// the store has grown.
pub(super) fn store(tables: &Connection, letter: &DeadLetter) -> rusqlite::Result<i64> {
    match known(tables, letter)? {
        Some((id, bytes)) => Ok(again(tables, id, letter)? - bytes),
        None => insert(tables, letter),
    }
}

/// The letter whose replay this one is, and its size, while that replay is under way.
fn known(tables: &Connection, letter: &DeadLetter) -> rusqlite::Result<Option<(i64, i64)>> {
    let Some(replayed) = letter.replayed else { return Ok(None) };
    let known = "SELECT id, bytes FROM letters WHERE id = ? AND state = 2 AND round = ?";
    let bound = [number(replayed.letter), number(replayed.round)];
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    tables.prepare_cached(known)?.query_row(bound, row).optional()
}

fn insert(tables: &Connection, letter: &DeadLetter) -> rusqlite::Result<i64> {
    let insert = "INSERT INTO letters (bytes, has_event, reason, grp, attempts, first_at, last_at, \
                  position, input, source, pool, handler, key, event_id, event_type, subject, error, \
                  share) VALUES (0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let (error, handler) = (kept(&letter.error), letter.handler.as_deref());
    let event = letter.event.as_ref();
    let id = tables.prepare_cached(insert)?.insert(params![
        event.is_some(),
        letter.reason.as_str(),
        error_group(letter.reason.as_str(), handler, error),
        letter.attempts,
        micros(letter.first_at),
        micros(letter.last_at),
        letter.position as i64,
        &*letter.input,
        &*letter.source,
        letter.pool.as_deref(),
        handler,
        letter.key.as_deref(),
        event.map(Event::id),
        event.map(Event::ty),
        event.and_then(|event| event.subject().map(|subject| &**subject)),
        error,
        letter.share.as_deref(),
    ])?;
    if let Some(raw) = &letter.raw {
        write(tables, id, TextPart::Raw, raw)?;
    }
    texts(tables, id, letter)?;
    weigh(tables, id)
}

/// Updates a letter that failed again. Its number, its first time, its size and its original stay.
fn again(tables: &Connection, id: i64, letter: &DeadLetter) -> rusqlite::Result<i64> {
    let failed = "UPDATE jobs SET failed = failed + 1 \
                  WHERE id = (SELECT job FROM letters WHERE id = ?)";
    tables.prepare_cached(failed)?.execute([id])?;
    let update = "UPDATE letters SET state = 0, job = NULL, refused = NULL, replays = replays + 1, \
                  reason = ?, grp = ?, attempts = ?, last_at = ?, pool = ?, handler = ?, key = ?, \
                  error = ?, share = ? WHERE id = ?";
    let (error, handler) = (kept(&letter.error), letter.handler.as_deref());
    tables.prepare_cached(update)?.execute(params![
        letter.reason.as_str(),
        error_group(letter.reason.as_str(), handler, error),
        letter.attempts,
        micros(letter.last_at),
        letter.pool.as_deref(),
        handler,
        letter.key.as_deref(),
        error,
        letter.share.as_deref(),
        id,
    ])?;
    texts(tables, id, letter)?;
    weigh(tables, id)
}

fn kept(error: &str) -> &str {
    &error[..error.floor_char_boundary(LONGEST_ERROR)]
}

fn texts(tables: &Connection, id: i64, letter: &DeadLetter) -> rusqlite::Result<()> {
    if let Some(event) = &letter.event {
        write_event(tables, id, event)?;
    }
    let mut rejected = Vec::new();
    if !letter.rejected.is_empty() {
        write_rejected(&letter.rejected, &mut rejected);
    }
    write(tables, id, TextPart::Rejected, &rejected)
}

/// Replaces the event.
pub(super) fn write_event(tables: &Connection, id: i64, event: &Event) -> rusqlite::Result<()> {
    let mut json = Vec::new();
    event.write_json(&mut json);
    write(tables, id, TextPart::Event, &json)?;
    write(tables, id, TextPart::Trace, event.trace_id().unwrap_or_default().as_bytes())
}

/// Notes how many bytes a letter has.
pub(super) fn weigh(tables: &Connection, id: i64) -> rusqlite::Result<i64> {
    let weigh = "UPDATE letters SET bytes = ? + length(CAST(error AS BLOB)) + coalesce(\
                 (SELECT sum(length(data)) FROM pieces WHERE letter = letters.id), 0) \
                 WHERE id = ? RETURNING bytes";
    tables.prepare_cached(weigh)?.query_row(params![ROW as i64, id], |row| row.get(0))
}

/// Replaces a text.
pub(super) fn write(
    tables: &Connection,
    id: i64,
    part: TextPart,
    text: &[u8],
) -> rusqlite::Result<()> {
    let clear = "DELETE FROM pieces WHERE letter = ? AND part = ?";
    tables.prepare_cached(clear)?.execute(params![id, part as i64])?;
    let insert = "INSERT INTO pieces (letter, part, number, data) VALUES (?, ?, ?, ?)";
    let mut insert = tables.prepare_cached(insert)?;
    for (number, piece) in text.chunks(PIECE).enumerate() {
        insert.execute(params![id, part as i64, number as i64, piece])?;
    }
    Ok(())
}

/// Calls this with each piece of a text, in order. False if there is no such text.
pub(super) fn each_piece<E: From<rusqlite::Error>>(
    tables: &Connection,
    id: i64,
    part: TextPart,
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<bool, E> {
    let select = "SELECT data FROM pieces WHERE letter = ? AND part = ? ORDER BY number";
    let mut select = tables.prepare_cached(select)?;
    let mut rows = select.query(params![id, part as i64])?;
    let mut any = false;
    while let Some(row) = rows.next()? {
        any = true;
        each(row.get_ref(0)?.as_blob().unwrap_or_default())?;
    }
    Ok(any)
}

/// A whole text.
pub(super) fn read(
    tables: &Connection,
    id: i64,
    part: TextPart,
) -> rusqlite::Result<Option<Vec<u8>>> {
    let mut text = Vec::new();
    let any = each_piece(tables, id, part, |piece| {
        text.extend_from_slice(piece);
        Ok::<(), rusqlite::Error>(())
    })?;
    Ok(any.then_some(text))
}
