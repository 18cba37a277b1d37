//! Requested replays: which letters, how fast, and their progress.

use greenroom_config::words;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;

use super::{
    error::LetterError,
    filter::{number, time},
    row::{TextPart, read},
    state::State,
};
use crate::{
    dead_letter::replay::{Replay, ReplayEnd, Replayed, TakenLetters},
    event::{Event, rfc3339::format_utc},
};

/// This many finished replays are remembered.
const REMEMBERED: i64 = 100;

/// With a rate, letters are taken for a tenth of a second at a time.
const TAKEN_A_SECOND: f64 = 10.0;

/// A replay that was asked for.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Job {
    /// Its number.
    pub id: u64,
    /// When it was asked for, RFC 3339 in UTC.
    pub created_at: String,
    /// Which letters, in words.
    pub wanted: String,
    /// The most a second; `None`: as fast as they are handled.
    pub rate: Option<f64>,
    /// `running`, `stopped` or `done`.
    pub state: &'static str,
    /// How many letters it began with.
    pub letters: u64,
    /// How many wait for their turn.
    pub waiting: u64,
    /// How many an engine has.
    pub in_replay: u64,
    /// How many are settled and removed from the store, or dead letters again under another number.
    pub settled: u64,
    /// How many have failed again.
    pub failed: u64,
    /// How many could not be replayed.
    pub refused: u64,
}

words! {
    /// An order to a replay.
    pub enum JobChange {
        /// Takes no further letter. Waiting ones stay marked.
        Stop = "stop",
        /// Continues.
        Resume = "resume",
        /// Lets go of the letters that wait: they are marked no more.
        Cancel = "cancel",
    }
}

const COLUMNS: &str = "SELECT id, created_at, wanted, rate, stopped, letters, settled, failed, \
                       refused, (SELECT count(*) FROM letters WHERE job = jobs.id AND state = 1), \
                       (SELECT count(*) FROM letters WHERE job = jobs.id AND state = 2) FROM jobs";

/// All that are remembered, the newest first.
pub(super) fn all(tables: &Connection) -> rusqlite::Result<Vec<Job>> {
    let mut select = tables.prepare_cached(&format!("{COLUMNS} ORDER BY id DESC"))?;
    select.query_map([], job)?.collect()
}

fn job(row: &Row<'_>) -> rusqlite::Result<Job> {
    let (stopped, waiting, in_replay): (i64, u64, u64) = (row.get(4)?, row.get(9)?, row.get(10)?);
    Ok(Job {
        id: row.get(0)?,
        created_at: format_utc(time(row.get(1)?)),
        wanted: row.get(2)?,
        rate: row.get(3)?,
        state: match (waiting + in_replay, stopped) {
            (0, _) => "done",
            (_, 0) => "running",
            _ => "stopped",
        },
        letters: row.get(5)?,
        waiting,
        in_replay,
        settled: row.get(6)?,
        failed: row.get(7)?,
        refused: row.get(8)?,
    })
}

/// Changes one.
pub(super) fn change(tables: &Connection, id: u64, change: JobChange) -> Result<Job, LetterError> {
    let stopped = match change {
        JobChange::Resume => 0,
        JobChange::Stop => 1,
        JobChange::Cancel => 2,
    };
    tables.execute("UPDATE jobs SET stopped = ? WHERE id = ?", params![stopped, number(id)])?;
    if change == JobChange::Cancel {
        let release = "UPDATE letters SET state = 0, job = NULL WHERE job = ? AND state = 1";
        tables.execute(release, [number(id)])?;
    }
    let select = format!("{COLUMNS} WHERE id = ?");
    let found = tables.query_row(&select, [number(id)], job).optional()?;
    found.ok_or(LetterError::NoReplay(id))
}

/// Takes the next letters that are marked.
pub(super) fn take(
    tables: &Connection,
    most: usize,
    bytes: usize,
) -> rusqlite::Result<TakenLetters> {
    let next = "SELECT id, rate FROM jobs WHERE stopped = 0 AND EXISTS (\
                SELECT 1 FROM letters WHERE job = jobs.id AND state = 1) ORDER BY id LIMIT 1";
    let row = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<f64>>(1)?));
    let Some((job, rate)) = tables.query_row(next, [], row).optional()? else {
        return Ok(TakenLetters::default());
    };
    let at_once = rate.map_or(most, |rate| ((rate / TAKEN_A_SECOND) as usize).clamp(1, most));
    let select = "SELECT id, bytes, round, input, handler FROM letters \
                  WHERE job = ? AND state = 1 ORDER BY id LIMIT ?";
    let mut select = tables.prepare_cached(select)?;
    let rows = select.query_map(params![job, at_once as i64], |row| {
        let (id, size): (u64, usize) = (row.get(0)?, row.get(1)?);
        Ok((id, size, row.get(2)?, row.get(3)?, row.get(4)?))
    })?;
    let (mut letters, mut together) = (Vec::new(), 0);
    for row in rows {
        let (letter, size, round, input, handler) = row?;
        together += size;
        if together > bytes && !letters.is_empty() {
            break;
        }
        let round: u64 = round;
        let replayed = Replayed { letter, round: round + 1 };
        let hand = "UPDATE letters SET state = 2, round = round + 1 WHERE id = ?";
        tables.prepare_cached(hand)?.execute([number(letter)])?;
        match event(tables, letter)? {
            Ok(event) => letters.push(Replay { replayed, event, input, handler }),
            Err(why) => {
                ended(tables, replayed, &ReplayEnd::Refused(why))?;
            }
        }
    }
    Ok(TakenLetters { letters, rate })
}

fn event(tables: &Connection, letter: u64) -> rusqlite::Result<Result<Event, String>> {
    let json = read(tables, letter as i64, TextPart::Event)?;
    let Some(json) = json else { return Ok(Err("it has no event: edit it first".to_owned())) };
    Ok(Event::parse(&json).map_err(|error| format!("its event cannot be read: {error}")))
}

/// Records how a replay has ended, if it is still the current one. Returns how many bytes are freed
/// by that.
pub(super) fn ended(
    tables: &Connection,
    replayed: Replayed,
    how: &ReplayEnd,
) -> rusqlite::Result<i64> {
    let (id, round) = (number(replayed.letter), number(replayed.round));
    let job = "SELECT coalesce(job, 0) FROM letters WHERE id = ? AND state = 2 AND round = ?";
    let bound = params![id, round];
    let job =
        tables.prepare_cached(job)?.query_row(bound, |row| row.get::<_, i64>(0)).optional()?;
    let Some(job) = job else { return Ok(0) };
    match how {
        ReplayEnd::Settled => {
            let delete = "DELETE FROM letters WHERE id = ? RETURNING bytes";
            let bytes = tables.prepare_cached(delete)?.query_row([&id], |row| row.get(0))?;
            count(tables, job, "settled")?;
            return Ok(bytes);
        }
        ReplayEnd::GivenBack => give_back(tables, "id = ?", &id)?,
        ReplayEnd::Refused(why) => {
            let refuse = "UPDATE letters SET state = 0, job = NULL, refused = ? WHERE id = ?";
            tables.prepare_cached(refuse)?.execute(params![why, id])?;
            count(tables, job, "refused")?;
        }
    }
    Ok(0)
}

fn count(tables: &Connection, job: i64, column: &'static str) -> rusqlite::Result<()> {
    let count = format!("UPDATE jobs SET {column} = {column} + 1 WHERE id = ?");
    tables.prepare_cached(&count)?.execute([job]).map(|_| ())
}

/// Marks letters again that an engine has given back; those of a replay that was cancelled since
/// are marked no more.
fn give_back(
    tables: &Connection,
    which: &'static str,
    bound: &rusqlite::types::Value,
) -> rusqlite::Result<()> {
    let cancelled = "SELECT 1 FROM jobs WHERE jobs.id = letters.job AND stopped = 2";
    let release = format!(
        "UPDATE letters SET job = NULL, state = 0 WHERE {which} AND state = 2 AND EXISTS ({cancelled})"
    );
    tables.execute(&release, [bound])?;
    let mark = format!("UPDATE letters SET state = 1 WHERE {which} AND state = 2");
    tables.execute(&mark, [bound]).map(|_| ())
}

/// Marks letters again that an earlier process has taken and not finished. Returns their number.
pub(super) fn recover(tables: &Connection) -> rusqlite::Result<u64> {
    let handed = State::Handed as i64;
    let count = "SELECT count(*) FROM letters WHERE state = ?";
    let found = tables.query_row(count, [handed], |row| row.get(0))?;
    give_back(tables, "state = ?", &rusqlite::types::Value::Integer(handed))?;
    let forget = "DELETE FROM jobs WHERE id <= (SELECT max(id) FROM jobs) - ? AND NOT EXISTS (\
                  SELECT 1 FROM letters WHERE job = jobs.id)";
    tables.execute(forget, [REMEMBERED])?;
    Ok(found)
}
