//! The entries of a deduplication that survive a restart (D14).
//!
//! ```text
//! an event is settled ──▶ a queue ──▶ one writer thread ──▶ a transaction ten times a second
//! ```
//!
//! No event waits for it. So a crash loses the entries of the last tenth of a second and of the
//! transaction under way: if a source gives such an event again, it is handled again.

use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use rusqlite::{Connection, params};

use super::sqlite::{self, Failed, Owned, Schema, error_text};
use crate::sink::SinkError;

const SCHEMA: Schema = Schema {
    // "GRse", as SQLite has it in its header.
    application_id: 0x4752_7365,
    what: "events that were seen",
    file: "seen.db",
    steps: &["CREATE TABLE seen (
        source TEXT NOT NULL,
        id TEXT NOT NULL,
        at INTEGER NOT NULL,
        PRIMARY KEY (source, id)
    ) WITHOUT ROWID;
    CREATE INDEX seen_at ON seen (at);"],
    views: &[],
};

/// Entries wait this long for more, before they are written.
const GATHERED: Duration = Duration::from_millis(100);

/// The most entries that wait to be written; further ones are not remembered across a restart. Only
/// a stalled disk lets this many wait.
const WAITING: usize = 100_000;

/// A source and an id that are longer together, in bytes, are not remembered over a restart: they
/// would make the store larger than its number of events says.
const LONGEST: usize = 4_096;

/// A full disk is tried again after this time.
const AGAIN: Duration = Duration::from_secs(1);

/// Source and id of an event that was seen, and how long ago.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeenEvent {
    pub(crate) source: String,
    pub(crate) id: String,
    pub(crate) age: Duration,
}

enum SeenOrder {
    Seen { source: Box<str>, id: Box<str>, at: i64 },
    Flush(Sender<()>),
}

/// Sources and ids in a directory of their own.
#[derive(Debug)]
pub(crate) struct SeenStore {
    orders: Mutex<Option<Sender<SeenOrder>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    shown: Arc<SeenStatus>,
}

/// Shared by the store and its writer.
#[derive(Debug, Default)]
struct SeenStatus {
    waiting: AtomicUsize,
    error: Mutex<Option<String>>,
    /// The store is being dropped: entries that cannot be written now are given up.
    is_closing: AtomicBool,
}

impl SeenStore {
    /// Opens the store in this directory, or creates it, and returns the entries within the window,
    /// the oldest first, at most this many.
    ///
    /// # Errors
    /// Another process writes it, it is of a later version, or it cannot be read or written.
    pub(crate) fn open(
        directory: &Path,
        within: Duration,
        most: usize,
    ) -> Result<(Self, Vec<SeenEvent>), SinkError> {
        let name = format!("seen:{}", directory.display());
        let cannot = |why: String| SinkError::new(name.clone(), why);
        let owned = sqlite::own(directory, &SCHEMA).map_err(|error| cannot(error.reason))?;
        let bounds = Bounds { within, most };
        let tables = &owned.connection;
        let known = match bounds.forget(tables) {
            // The writer forgets, once there is room for that.
            Err(error) if Failed::classify(&error) == Failed::Full => bounds.known(tables),
            forgotten => forgotten.and_then(|()| bounds.known(tables)),
        };
        let known = known.map_err(|error| cannot(error_text(&error)))?;
        let started = Self::start(name.clone(), owned, bounds);
        let store = started.map_err(|error| cannot(format!("no thread: {error}")))?;
        Ok((store, known))
    }

    fn start(name: String, owned: Owned, bounds: Bounds) -> io::Result<Self> {
        let (orders, taken) = channel();
        let shown = Arc::<SeenStatus>::default();
        let writer = SeenWriter { name, taken, owned, bounds, shown: shown.clone() };
        let thread = thread::Builder::new().name("seen".to_owned()).spawn(move || writer.run())?;
        Ok(Self { orders: Mutex::new(Some(orders)), writer: Mutex::new(Some(thread)), shown })
    }

    /// Remembers an event. Never waits.
    pub(crate) fn add(&self, source: &str, id: &str) {
        if source.len() + id.len() > LONGEST {
            return;
        }
        if self.shown.waiting.fetch_add(1, Ordering::Relaxed) >= WAITING {
            self.shown.waiting.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let at = micros(SystemTime::now());
        self.order(SeenOrder::Seen { source: source.into(), id: id.into(), at });
    }

    /// Waits until all entries are written, at most this long.
    pub(crate) fn flush(&self, patience: Duration) {
        let (tell, told) = channel();
        self.order(SeenOrder::Flush(tell));
        // A writer that has failed has said so.
        let _ = told.recv_timeout(patience);
    }

    /// Why no entries survive a restart, if so.
    pub(crate) fn error(&self) -> Option<String> {
        self.shown.error.lock().clone()
    }

    fn order(&self, order: SeenOrder) {
        if let Some(orders) = &*self.orders.lock() {
            // A writer that has failed has said so.
            let _ = orders.send(order);
        }
    }
}

impl Drop for SeenStore {
    fn drop(&mut self) {
        self.shown.is_closing.store(true, Ordering::Release);
        self.orders.lock().take();
        if let Some(writer) = self.writer.lock().take() {
            // It may wait for room on the disk.
            writer.thread().unpark();
            // Errors of its writes were reported.
            let _ = writer.join();
        }
    }
}

/// How much is remembered.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    within: Duration,
    most: usize,
}

impl Bounds {
    fn forget(&self, tables: &Connection) -> rusqlite::Result<()> {
        let within = i64::try_from(self.within.as_micros()).unwrap_or(i64::MAX);
        let oldest = micros(SystemTime::now()).saturating_sub(within);
        tables.prepare_cached("DELETE FROM seen WHERE at < ?")?.execute([oldest])?;
        let count = "SELECT count(*) FROM seen";
        let count: i64 = tables.prepare_cached(count)?.query_row([], |row| row.get(0))?;
        let more = count - i64::try_from(self.most).unwrap_or(i64::MAX);
        if more > 0 {
            let delete = "DELETE FROM seen WHERE (source, id) IN (\
                          SELECT source, id FROM seen ORDER BY at LIMIT ?)";
            tables.prepare_cached(delete)?.execute([more])?;
        }
        Ok(())
    }

    fn known(&self, tables: &Connection) -> rusqlite::Result<Vec<SeenEvent>> {
        let now = micros(SystemTime::now());
        let mut select = tables.prepare("SELECT source, id, at FROM seen ORDER BY at")?;
        let rows = select.query_map([], |row| {
            let age = now.saturating_sub(row.get(2)?).max(0) as u64;
            Ok(SeenEvent { source: row.get(0)?, id: row.get(1)?, age: Duration::from_micros(age) })
        })?;
        let mut seen = rows.collect::<rusqlite::Result<Vec<_>>>()?;
        seen.retain(|event| event.age <= self.within);
        seen.drain(..seen.len().saturating_sub(self.most));
        Ok(seen)
    }
}

fn micros(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

struct SeenWriter {
    name: String,
    taken: Receiver<SeenOrder>,
    owned: Owned,
    bounds: Bounds,
    shown: Arc<SeenStatus>,
}

impl SeenWriter {
    fn run(mut self) {
        while let Ok(first) = self.taken.recv() {
            let (mut seen, mut tell) = (Vec::new(), Vec::new());
            self.gather(first, &mut seen, &mut tell);
            let goes_on = self.store(&seen);
            self.shown.waiting.fetch_sub(seen.len(), Ordering::Relaxed);
            drop(tell);
            if !goes_on {
                return;
            }
        }
    }

    /// The entries of a moment, or all present ones once a caller waits for them.
    fn gather(
        &self,
        first: SeenOrder,
        seen: &mut Vec<(Box<str>, Box<str>, i64)>,
        tell: &mut Vec<Sender<()>>,
    ) {
        let until = std::time::Instant::now() + GATHERED;
        let mut next = Some(first);
        while let Some(order) = next.take() {
            match order {
                SeenOrder::Seen { source, id, at } => seen.push((source, id, at)),
                SeenOrder::Flush(one) => tell.push(one),
            }
            let patience = match tell.is_empty() {
                true => until.saturating_duration_since(std::time::Instant::now()),
                false => Duration::ZERO,
            };
            next = self.taken.recv_timeout(patience).ok();
        }
    }

    /// False once nothing can be stored any more.
    fn store(&mut self, seen: &[(Box<str>, Box<str>, i64)]) -> bool {
        loop {
            let Err(error) = self.write(seen) else {
                if self.shown.error.lock().take().is_some() {
                    tracing::info!(store = self.name, "what was seen is stored again");
                }
                return true;
            };
            let why = format!(
                "what was seen is not stored, and would be handled again after a restart: {}",
                error_text(&error)
            );
            if self.shown.error.lock().replace(why.clone()).is_none() {
                tracing::error!(store = self.name, "{why}");
            }
            let is_closing = self.shown.is_closing.load(Ordering::Acquire);
            if Failed::classify(&error) == Failed::ForGood || is_closing {
                return false;
            }
            // Ended early by a store that is dropped, which says so first.
            thread::park_timeout(AGAIN);
        }
    }

    fn write(&mut self, seen: &[(Box<str>, Box<str>, i64)]) -> rusqlite::Result<()> {
        let tables = self.owned.connection.transaction()?;
        {
            let insert = "INSERT OR REPLACE INTO seen (source, id, at) VALUES (?, ?, ?)";
            let mut insert = tables.prepare_cached(insert)?;
            for (source, id, at) in seen {
                insert.execute(params![source, id, at])?;
            }
        }
        self.bounds.forget(&tables)?;
        tables.commit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn ids(seen: &[SeenEvent]) -> Vec<&str> {
        seen.iter().map(|seen| &*seen.id).collect()
    }

    #[test]
    fn d14_what_was_seen_is_there_after_a_restart_and_bounded_by_number() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("seen");
        let (store, seen) = SeenStore::open(&path, HOUR, 3).unwrap();
        assert!(seen.is_empty());
        for id in ["a", "b", "c", "d'); DROP TABLE seen; --"] {
            store.add("s", id);
        }
        store.add("s", &"x".repeat(LONGEST));
        store.flush(HOUR);
        drop(store);
        let (_store, seen) = SeenStore::open(&path, HOUR, 3).unwrap();
        assert_eq!(ids(&seen), ["b", "c", "d'); DROP TABLE seen; --"]);
    }

    #[test]
    fn d14_what_was_seen_long_ago_is_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("seen");
        let (store, _) = SeenStore::open(&path, HOUR, 10).unwrap();
        store.add("s", "a");
        drop(store);
        let tables = sqlite::own(&path, &SCHEMA).unwrap();
        tables.connection.execute("UPDATE seen SET at = at - 3600 * 1000000", []).unwrap();
        drop(tables);
        let (store, seen) = SeenStore::open(&path, HOUR, 10).unwrap();
        assert!(seen.is_empty());
        let error = SeenStore::open(&path, HOUR, 10).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("this very process"), "{error}");
        drop(store);
    }

    #[test]
    fn d14_a_store_on_a_full_disk_ends_and_what_was_stored_before_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("seen");
        let (store, _) = SeenStore::open(&path, HOUR, 100).unwrap();
        store.add("s", "before");
        drop(store);
        let owned = sqlite::own(&path, &SCHEMA).unwrap();
        // No page more than there are: what a full disk does to a database.
        let full = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
        owned.connection.pragma_update_and_check(None, "max_page_count", 1, full).unwrap();
        let bounds = Bounds { within: HOUR, most: 100 };
        let store = SeenStore::start("seen".to_owned(), owned, bounds).unwrap();
        (0..10).for_each(|n| store.add("s", &format!("{n}{}", "x".repeat(LONGEST - 2))));
        while store.error().is_none() {
            thread::yield_now();
        }
        store.flush(Duration::from_millis(10));
        let (tell, told) = channel();
        thread::spawn(move || {
            drop(store);
            tell.send(())
        });
        told.recv_timeout(Duration::from_secs(20)).expect("it ends");
        let (_store, seen) = SeenStore::open(&path, HOUR, 100).unwrap();
        assert_eq!(ids(&seen), ["before"]);
    }
}
