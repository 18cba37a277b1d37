//! SQLite as a log: one thread commits what waits, with a unique index of source and id.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use greenroom_bus::{BoxFuture, event::Event};
use rusqlite::{Connection, params};
use tokio::sync::{mpsc, oneshot};

use super::Store;

/// Appends of one transaction, as many events as the log has in a block of single ones.
const MOST: usize = 4_096;

type Append = (Vec<Event>, oneshot::Sender<()>);

pub(super) struct Sqlite {
    appends: mpsc::UnboundedSender<Append>,
    commits: Arc<AtomicU64>,
}

impl Sqlite {
    pub(super) fn open(path: &Path) -> Self {
        std::fs::create_dir_all(path).expect("a directory");
        let connection = Connection::open(path.join("log.sqlite")).expect("a database");
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
                 CREATE TABLE events (sequence INTEGER PRIMARY KEY, source TEXT, id TEXT, event BLOB);
                 CREATE UNIQUE INDEX identity ON events (source, id);",
            )
            .expect("a table");
        let (appends, waiting) = mpsc::unbounded_channel();
        let commits = Arc::<AtomicU64>::default();
        std::thread::spawn({
            let commits = commits.clone();
            move || commit(connection, waiting, &commits)
        });
        Self { appends, commits }
    }
}

fn commit(
    mut connection: Connection,
    mut waiting: mpsc::UnboundedReceiver<Append>,
    commits: &AtomicU64,
) {
    let mut together = Vec::new();
    let mut line = Vec::new();
    while waiting.blocking_recv_many(&mut together, MOST) > 0 {
        let transaction = connection.transaction().expect("a transaction");
        {
            let mut insert = transaction
                .prepare_cached("INSERT OR IGNORE INTO events (source, id, event) VALUES (?, ?, ?)")
                .expect("a statement");
            for event in together.iter().flat_map(|(events, _)| events) {
                line.clear();
                event.write_json(&mut line);
                insert.execute(params![event.source(), event.id(), line]).expect("it is inserted");
            }
        }
        transaction.commit().expect("it is committed");
        commits.fetch_add(1, Ordering::Relaxed);
        for (_, answer) in together.drain(..) {
            let _ = answer.send(());
        }
    }
}

impl Store for Sqlite {
    fn append(&self, events: Vec<Event>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let (answer, told) = oneshot::channel();
            self.appends.send((events, answer)).expect("the committer is there");
            told.await.expect("it is stored");
        })
    }

    fn syncs(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }
}
