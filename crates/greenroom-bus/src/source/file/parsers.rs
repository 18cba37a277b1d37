//! Parsing threads in addition to the reading ones, shared by all inputs of the process.
//!
//! There are none until a reading thread asks for one, at most one less than there are cores, and
//! each ends after being idle for a while. A reading thread asks for an idle thread, and parses
//! itself if there is none: so no job ever queues here, and the amount under way is bounded by the
//! readers' own channels.

use std::{sync::LazyLock, thread, time::Duration};

use parking_lot::{Condvar, Mutex};

/// Besides the reading thread. An input has no more batches on their way than these and its own.
const MOST: usize = 3;
/// After this long without work, a thread ends.
const PATIENCE: Duration = Duration::from_secs(1);

type ParserJob = Box<dyn FnOnce() + Send>;

static PARSERS: Parsers = Parsers { state: Mutex::new(State::NONE), work: Condvar::new() };

/// One core is left to the reading thread.
static LIMIT: LazyLock<usize> = LazyLock::new(|| {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    (cores - 1).min(MOST)
});

struct Parsers {
    state: Mutex<State>,
    /// Told when there is a job.
    work: Condvar,
}

struct State {
    threads: usize,
    /// Jobs that no thread has begun, never more than idle threads.
    jobs: Vec<ParserJob>,
    waiting: usize,
    /// Promised to a reading thread whose job has not arrived yet.
    claimed: usize,
}

impl State {
    const NONE: Self = Self { threads: 0, jobs: Vec::new(), waiting: 0, claimed: 0 };
}

/// A thread that has nothing to do, until it is given something or let go of.
pub(super) struct Helper(());

/// An idle thread, if there is one or one may be started.
pub(super) fn idle() -> Option<Helper> {
    let mut state = PARSERS.state.lock();
    if state.waiting <= state.jobs.len() + state.claimed {
        if state.threads >= *LIMIT || !start() {
            return None;
        }
        state.threads += 1;
        state.waiting += 1;
    }
    state.claimed += 1;
    Some(Helper(()))
}

impl Helper {
    /// Has it do this.
    pub(super) fn run(self, job: impl FnOnce() + Send + 'static) {
        PARSERS.state.lock().jobs.push(Box::new(job));
        PARSERS.work.notify_one();
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        PARSERS.state.lock().claimed -= 1;
    }
}

/// It counts as waiting from its first moment on.
fn start() -> bool {
    let started = thread::Builder::new().name("greenroom-parser".to_owned()).spawn(|| {
        while let Some(job) = next() {
            let _working = Working;
            job();
        }
    });
    started.is_ok()
}

/// However a job ends, the thread that had it waits again, or is gone.
struct Working;

impl Drop for Working {
    fn drop(&mut self) {
        let mut state = PARSERS.state.lock();
        match thread::panicking() {
            true => state.threads -= 1,
            false => state.waiting += 1,
        }
    }
}

/// `None`: there was nothing for a while, and the thread does not count any more.
fn next() -> Option<ParserJob> {
    let mut state = PARSERS.state.lock();
    loop {
        if let Some(job) = state.jobs.pop() {
            state.waiting -= 1;
            return Some(job);
        }
        let has_waited = PARSERS.work.wait_for(&mut state, PATIENCE).timed_out();
        if has_waited && state.waiting > state.jobs.len() + state.claimed {
            state.waiting -= 1;
            state.threads -= 1;
            return None;
        }
    }
}
