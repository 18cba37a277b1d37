//! The tables of a store of dead letters.
//!
//! A letter's row is small; its texts of any size are in `pieces`, so that marking a letter does
//! not write them again. `state` is 0 for stored, 1 for marked, 2 for taken by an engine. Times are
//! microseconds since 1970.

use crate::store::sqlite::Schema;

pub(super) const SCHEMA: Schema = Schema {
    // "GRdl", as SQLite has it in its header.
    application_id: 0x4752_646c,
    what: "dead letters",
    file: "letters.db",
    steps: &[LETTERS, REPLAYS, SHARES],
    views: &[(2, WITHOUT_SHARES)],
};

const LETTERS: &str = "
CREATE TABLE letters (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    state INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL,
    has_event INTEGER NOT NULL,
    reason TEXT NOT NULL,
    grp TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    position INTEGER NOT NULL,
    input TEXT NOT NULL,
    source TEXT NOT NULL,
    pool TEXT,
    handler TEXT,
    key TEXT,
    event_id TEXT,
    event_type TEXT,
    subject TEXT,
    error TEXT NOT NULL
);
CREATE INDEX letters_state ON letters (state, id, bytes);
CREATE INDEX letters_group ON letters (grp);
CREATE TABLE pieces (
    letter INTEGER NOT NULL REFERENCES letters (id) ON DELETE CASCADE,
    part INTEGER NOT NULL,
    number INTEGER NOT NULL,
    data BLOB NOT NULL
);
CREATE UNIQUE INDEX pieces_of ON pieces (letter, part, number);
CREATE TABLE notes (name TEXT PRIMARY KEY, value NOT NULL);
";

const REPLAYS: &str = "
ALTER TABLE letters ADD COLUMN job INTEGER;
ALTER TABLE letters ADD COLUMN round INTEGER NOT NULL DEFAULT 0;
ALTER TABLE letters ADD COLUMN replays INTEGER NOT NULL DEFAULT 0;
ALTER TABLE letters ADD COLUMN edited INTEGER NOT NULL DEFAULT 0;
ALTER TABLE letters ADD COLUMN refused TEXT;
CREATE INDEX letters_job ON letters (job, state) WHERE job IS NOT NULL;
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    created_at INTEGER NOT NULL,
    wanted TEXT NOT NULL,
    rate REAL,
    stopped INTEGER NOT NULL DEFAULT 0,
    letters INTEGER NOT NULL,
    settled INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    refused INTEGER NOT NULL DEFAULT 0
);
";

const SHARES: &str = "ALTER TABLE letters ADD COLUMN share TEXT";

const WITHOUT_SHARES: &str =
    "CREATE TEMP VIEW letters AS SELECT *, NULL AS share FROM main.letters";
