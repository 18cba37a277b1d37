//! An operator's changes to letters.

use std::time::SystemTime;

use rusqlite::{Connection, OptionalExtension, params, params_from_iter, types::Value};
use serde::Serialize;

use super::{
    error::LetterError,
    filter::{Filter, micros, number},
    options::LetterStoreOptions,
    row::{TextPart, read, weigh, write, write_event},
};
use crate::event::Event;

/// Letters that go in one transaction: others that are to be stored wait for it.
const AT_ONCE: usize = 1_000;

/// The result of marking letters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Marked {
    /// The number of the replay; none where no letter was marked.
    pub replay: Option<u64>,
    /// Letters that were marked.
    pub letters: u64,
    /// Letters that were left out, because they have no event: their bytes are none, and can be
    /// edited into one.
    pub without_event: u64,
    /// Letters that were left out, because they are marked or in replay already.
    pub marked_before: u64,
}

/// The result of dropping letters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Dropped {
    /// Letters that are gone.
    pub letters: u64,
    /// Letters that were left, because they are being replayed.
    pub in_replay: u64,
}

/// A change to a letter.
#[derive(Debug, Clone)]
pub struct Edit {
    /// The letter.
    pub letter: u64,
    /// Its event from now on. The original is kept as well.
    pub event: Event,
}

fn count(tables: &Connection, condition: &str, bound: &[Value]) -> rusqlite::Result<u64> {
    let count = format!("SELECT count(*) FROM letters WHERE {condition}");
    tables.query_row(&count, params_from_iter(bound), |row| row.get(0))
}

/// Marks letters for a replay.
pub(super) fn mark(
    tables: &Connection,
    filter: &Filter,
    rate: Option<f64>,
) -> rusqlite::Result<Marked> {
    let (condition, bound) = filter.condition();
    let count = |more| count(tables, &format!("{condition} AND {more}"), &bound);
    let without_event = count("state = 0 AND has_event = 0")?;
    let marked_before = count("state <> 0")?;
    let letters = count("state = 0 AND has_event = 1")?;
    if letters == 0 {
        return Ok(Marked { without_event, marked_before, ..Marked::default() });
    }
    let job = "INSERT INTO jobs (created_at, wanted, rate, letters) VALUES (?, ?, ?, ?)";
    let (now, wanted) = (micros(SystemTime::now()), filter.describe());
    tables.execute(job, params![now, wanted, rate, number(letters)])?;
    let job = tables.last_insert_rowid();
    let mark = format!(
        "UPDATE letters SET state = 1, refused = NULL, job = ? \
         WHERE {condition} AND state = 0 AND has_event = 1"
    );
    let all = std::iter::once(Value::Integer(job)).chain(bound.iter().cloned());
    tables.execute(&mark, params_from_iter(all))?;
    Ok(Marked { replay: Some(job as u64), letters, without_event, marked_before })
}

/// Drops some of these letters. None are left once it drops none.
pub(super) fn drop_some(tables: &Connection, filter: &Filter) -> rusqlite::Result<Dropped> {
    let (condition, bound) = filter.condition();
    let delete = format!(
        "DELETE FROM letters WHERE id IN (\
         SELECT id FROM letters WHERE {condition} AND state <> 2 ORDER BY id LIMIT {AT_ONCE})"
    );
    let letters = tables.execute(&delete, params_from_iter(&bound))? as u64;
    let in_replay = count(tables, &format!("{condition} AND state = 2"), &bound)?;
    Ok(Dropped { letters, in_replay })
}

/// Replaces the event of a letter.
pub(super) fn edit(tables: &Connection, edit: &Edit) -> Result<(), LetterError> {
    let select = "SELECT state, edited, has_event FROM letters WHERE id = ?";
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let found = tables.query_row(select, [number(edit.letter)], row).optional()?;
    let (state, edited, has_event): (i64, i64, bool) =
        found.ok_or(LetterError::NoLetter(edit.letter))?;
    if state == 2 {
        return Err(LetterError::InReplay(edit.letter));
    }
    let id = edit.letter as i64;
    if edited == 0
        && has_event
        && let Some(original) = read(tables, id, TextPart::Event)?
    {
        write(tables, id, TextPart::Original, &original)?;
    }
    let event = &edit.event;
    write_event(tables, id, event)?;
    let update = "UPDATE letters SET edited = edited + 1, has_event = 1, refused = NULL, \
                  event_id = ?, event_type = ?, subject = ? WHERE id = ?";
    let subject = event.subject().map(|subject| &**subject);
    tables.execute(update, params![event.id(), event.ty(), subject, id])?;
    weigh(tables, id)?;
    Ok(())
}

/// The bytes of all letters.
pub(super) fn bytes(tables: &Connection) -> rusqlite::Result<i64> {
    tables.query_row("SELECT coalesce(sum(bytes), 0) FROM letters", [], |row| row.get(0))
}

/// Removes letters that are too old, and the oldest if all together are too large: a few at a time,
/// and never one that is marked or in replay. Returns their number and bytes.
pub(super) fn retire(
    tables: &Connection,
    options: &LetterStoreOptions,
    bytes: i64,
) -> rusqlite::Result<(u64, i64)> {
    let oldest = options.age.and_then(|age| SystemTime::now().checked_sub(age)).map(micros);
    let (mut letters, mut gone) = (Vec::new(), 0);
    if let Some(oldest) = oldest {
        let select =
            "SELECT id, bytes FROM letters WHERE state = 0 AND last_at < ? ORDER BY id LIMIT ?";
        for (id, size) in pairs(tables, select, params![oldest, AT_ONCE as i64])? {
            letters.push(id);
            gone += size;
        }
    }
    let too_many = options.size.map(|most| i64::try_from(most).unwrap_or(i64::MAX));
    if letters.is_empty()
        && let Some(most) = too_many.filter(|most| bytes > *most)
    {
        let select = "SELECT id, bytes FROM letters WHERE state = 0 ORDER BY id LIMIT ?";
        for (id, size) in pairs(tables, select, params![AT_ONCE as i64])? {
            if bytes - gone <= most {
                break;
            }
            letters.push(id);
            gone += size;
        }
    }
    let mut delete = tables.prepare_cached("DELETE FROM letters WHERE id = ?")?;
    for id in &letters {
        delete.execute([id])?;
    }
    if !letters.is_empty() {
        let note = "INSERT INTO notes (name, value) VALUES ('removed', ?) \
                    ON CONFLICT (name) DO UPDATE SET value = value + excluded.value";
        tables.execute(note, [letters.len() as i64])?;
    }
    Ok((letters.len() as u64, gone))
}

fn pairs(
    tables: &Connection,
    select: &str,
    bound: impl rusqlite::Params,
) -> rusqlite::Result<Vec<(i64, i64)>> {
    let mut select = tables.prepare_cached(select)?;
    select.query_map(bound, |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// Records the mask in the store, for readers without a configuration. The same mask again writes
/// nothing, because a store can be opened on a full disk.
pub(super) fn note_mask(tables: &Connection, written: &str) -> rusqlite::Result<()> {
    let note = "INSERT INTO notes (name, value) VALUES ('mask', ?) ON CONFLICT (name) \
                DO UPDATE SET value = excluded.value WHERE value <> excluded.value";
    tables.execute(note, [written]).map(|_| ())
}
