//! A worker's stderr: read to its end so that the process never waits for it,
//! line by line into the log.
//!
//! The log gets no more than [`RATE`] lines a second from each process, none longer than
//! [`LONGEST_LINE`], and no control characters. Omitted lines are counted, and the log reports
//! their number.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use greenroom_config::plural;
use parking_lot::Mutex;
use tokio::{
    io::AsyncRead,
    process::ChildStderr,
    task::JoinHandle,
    time::{Instant, timeout, timeout_at},
};

use super::lines::{LineReader, NextLine};
use crate::{handler::Attempt, name::Name, printable::printable};

/// Longest line of the log in bytes, before escaping: the lines of a stack trace are shorter.
const LONGEST_LINE: usize = 4 * 1024;

/// Lines within one [`WINDOW`]: a long stack trace is logged whole, and a process that writes
/// without end fills no disk by it.
const RATE: u32 = 100;

/// How long the lines of the [`RATE`] are counted together.
const WINDOW: Duration = Duration::from_secs(1);

/// How many of the last lines are kept, for the error that says how the process ended.
const LAST_LINES: usize = 5;

/// How much of each of them, in characters.
const LAST_LINE: usize = 300;

/// How long a dead process's last lines are waited for. Only a process that it left behind and that
/// still holds the pipe uses this up.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// The task that reads one process's stderr.
#[derive(Debug)]
pub(super) struct Stderr {
    reader: JoinHandle<()>,
    /// The last lines that were not blank. Written by the reader, read once the process is dead.
    last: Arc<Mutex<VecDeque<String>>>,
}

impl Stderr {
    /// Starts to read, and to log each line with pool and worker.
    pub(super) fn log(pipe: ChildStderr, attempt: &Attempt) -> Self {
        let last = Arc::new(Mutex::new(VecDeque::new()));
        let log = StderrLog { pool: attempt.pool, worker: attempt.worker, last: last.clone() };
        Self { reader: tokio::spawn(log.follow(pipe)), last }
    }

    /// The last lines of a process that is dead; empty if it said nothing.
    pub(super) async fn last_words(mut self) -> String {
        // The reader ends with the pipe; if another process still holds it open, the output so far
        // is enough.
        let _ = timeout(LAST_WORDS, &mut self.reader).await;
        let last: Vec<String> = self.last.lock().drain(..).collect();
        last.join(" | ")
    }
}

/// Where the lines of one process go.
struct StderrLog {
    pool: Name,
    worker: usize,
    last: Arc<Mutex<VecDeque<String>>>,
}

impl StderrLog {
    async fn follow(self, pipe: impl AsyncRead + Unpin) {
        let mut lines = LineReader::shortening(pipe, LONGEST_LINE);
        let mut rate = Rate::begin(Instant::now());
        loop {
            let next = match rate.ends_with_some_left_out() {
                // Told when it is over, also where nothing else comes.
                Some(end) => timeout_at(end, lines.next()).await.ok(),
                None => Some(lines.next().await),
            };
            if let Some(left_out) = rate.move_on(Instant::now()) {
                self.tell_left_out(left_out);
            }
            match next {
                None => {}
                Some(Ok(NextLine::Whole)) => self.line(&lines, &mut rate),
                Some(_) => break,
            }
        }
        if let Some(left_out) = rate.left_out() {
            self.tell_left_out(left_out);
        }
    }

    fn line<R: AsyncRead + Unpin>(&self, lines: &LineReader<R>, rate: &mut Rate) {
        let text = String::from_utf8_lossy(lines.current());
        let text = printable(text.trim_end());
        if text.is_empty() && lines.left_out() == 0 {
            return;
        }
        self.keep(&text);
        let (pool, worker) = (self.pool, self.worker);
        match (rate.admit(), lines.left_out()) {
            (false, _) => {}
            (true, 0) => tracing::info!(pool = %pool, worker, "{text}"),
            (true, left_out) => {
                let whole = lines.current().len() as u64 + left_out;
                tracing::info!(pool = %pool, worker, "{text}… (cut; the line has {whole} bytes)");
            }
        }
    }

    fn keep(&self, text: &str) {
        let mut last = self.last.lock();
        if last.len() == LAST_LINES {
            last.pop_front();
        }
        let mut kept: String = text.chars().take(LAST_LINE).collect();
        if kept.len() < text.len() {
            kept.push('…');
        }
        last.push_back(kept);
    }

    fn tell_left_out(&self, lines: u64) {
        let (pool, worker) = (self.pool, self.worker);
        tracing::warn!(
            pool = %pool,
            worker,
            "{} of the worker's stderr left out: it writes more than {RATE} a second",
            plural(lines as usize, "more line")
        );
    }
}

/// How many lines may still be logged.
#[derive(Debug)]
struct Rate {
    /// When the lines of this second began to be counted.
    since: Instant,
    logged: u32,
    left_out: u64,
}

impl Rate {
    fn begin(now: Instant) -> Self {
        Self { since: now, logged: 0, left_out: 0 }
    }

    /// Whether to log one more line; counts it either way.
    fn admit(&mut self) -> bool {
        let admitted = self.logged < RATE;
        match admitted {
            true => self.logged += 1,
            false => self.left_out += 1,
        }
        admitted
    }

    /// When there will be something to tell.
    fn ends_with_some_left_out(&self) -> Option<Instant> {
        (self.left_out > 0).then(|| self.since + WINDOW)
    }

    /// Begins the next second if this one is over; returns how many lines were left out of it, if
    /// any.
    fn move_on(&mut self, now: Instant) -> Option<u64> {
        if now.duration_since(self.since) < WINDOW {
            return None;
        }
        let left_out = self.left_out();
        *self = Self::begin(now);
        left_out
    }

    fn left_out(&self) -> Option<u64> {
        (self.left_out > 0).then_some(self.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::samples::Recorder;

    /// What the log says of this text on stderr, and its last lines.
    async fn logged(text: &[u8]) -> (Vec<String>, Vec<String>) {
        let recorder = Recorder::default();
        let _guard = tracing::subscriber::set_default(recorder.clone());
        let last = Arc::new(Mutex::new(VecDeque::new()));
        StderrLog { pool: "p".into(), worker: 1, last: last.clone() }.follow(text).await;
        let last = last.lock().drain(..).collect();
        (recorder.lines(), last)
    }

    #[tokio::test]
    async fn a_line_of_a_megabyte_on_stderr_is_cut_and_its_length_said() {
        let (lines, last) = logged(&[b"x".repeat(1_000_000), b"\nnext".to_vec()].concat()).await;
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("x… (cut; the line has 1000000 bytes)"), "{}", lines[0]);
        assert!(lines[0].len() < LONGEST_LINE + 100 && lines[1].contains("=next "));
        assert!(last[0].chars().count() == LAST_LINE + 1 && last[1] == "next");
    }

    #[tokio::test]
    async fn nul_bytes_and_escape_sequences_on_stderr_do_not_reach_the_log() {
        let (lines, last) = logged(b"\x1b[2Jno\0w\x07\xff\r\n").await;
        assert_eq!(
            lines,
            [r"INFO message=\u{1b}[2Jno\0w\u{7}".to_owned() + "\u{FFFD} pool=p worker=1"]
        );
        assert!(last.iter().chain(&lines).all(|line| !line.contains(char::is_control)));
    }

    #[tokio::test(start_paused = true)]
    async fn lines_beyond_the_rate_are_counted_and_told() {
        let (lines, last) = logged("again\n".repeat(1_000).as_bytes()).await;
        assert_eq!(lines.len() as u32, RATE + 1, "{lines:?}");
        assert!(lines[100].contains("900 more lines of the worker's stderr left out"));
        assert_eq!(last, ["again"; LAST_LINES]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_left_out_is_told_also_when_nothing_else_is_written() {
        let recorder = Recorder::default();
        let _guard = tracing::subscriber::set_default(recorder.clone());
        let (read, mut write) = tokio::io::duplex(1_000_000);
        let log = StderrLog { pool: "p".into(), worker: 1, last: Arc::default() };
        let following = tokio::spawn(log.follow(read));
        tokio::io::AsyncWriteExt::write_all(&mut write, "x\n".repeat(200).as_bytes())
            .await
            .unwrap();
        tokio::time::sleep(WINDOW * 2).await;
        assert!(recorder.lines().last().unwrap().contains("100 more lines"));
        tokio::io::AsyncWriteExt::write_all(&mut write, b"later\n").await.unwrap();
        drop(write);
        following.await.unwrap();
        assert!(recorder.lines().last().unwrap().contains("later"), "the next second has its own");
    }

    #[test]
    fn each_second_has_its_own_lines() {
        let (start, mut lines) = (Instant::now(), 0);
        let mut rate = Rate::begin(start);
        for n in 0..2_500_u64 {
            rate.move_on(start + Duration::from_millis(n));
            lines += u32::from(rate.admit());
        }
        assert_eq!(lines, RATE * 3);
    }
}
