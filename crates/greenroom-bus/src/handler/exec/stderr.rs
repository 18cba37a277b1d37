//! A worker's stderr: read to its end so that the process never waits for it, line by line into the log.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{process::ChildStderr, task::JoinHandle, time::timeout};

use super::lines::{Line, Lines};
use crate::handler::Attempt;

/// Longest line of the log; more is cut off, the rest of the line follows on lines of its own.
const LONGEST_LINE: usize = 8 * 1024;

/// How long a dead process's last lines are waited for. Only a process that it left behind and that still holds the
/// pipe uses this up.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// The task that reads one process's stderr.
#[derive(Debug)]
pub(super) struct Stderr {
    reader: JoinHandle<()>,
    /// The last line that was not blank. Written by the reader, read once the process is dead.
    last: Arc<Mutex<String>>,
}

impl Stderr {
    /// Starts to read, and to log each line with pool and worker.
    pub(super) fn log(pipe: ChildStderr, attempt: &Attempt) -> Self {
        let last = Arc::new(Mutex::new(String::new()));
        let (pool, worker, kept) = (attempt.pool, attempt.worker, last.clone());
        let reader = tokio::spawn(async move {
            let mut lines = Lines::cutting(pipe, LONGEST_LINE);
            while let Ok(Line::Whole) = lines.next().await {
                let text = String::from_utf8_lossy(lines.current());
                let text = text.trim_end();
                if !text.is_empty() {
                    tracing::info!(pool = %pool, worker, "{text}");
                    kept.lock().replace_range(.., text);
                }
            }
        });
        Self { reader, last }
    }

    /// The last line of a process that is dead; empty if it said nothing.
    pub(super) async fn last_words(mut self) -> String {
        // The reader ends with the pipe; if something still holds it open, what has come so far will do.
        let _ = timeout(LAST_WORDS, &mut self.reader).await;
        std::mem::take(&mut *self.last.lock())
    }
}
