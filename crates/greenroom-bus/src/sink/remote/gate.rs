//! When a request of a remote sink may go: at once, not before a time that the target named, or as
//! a probe (D13).
//!
//! After a temporary failure, the request waits by itself, and the others continue. A failure that
//! an operator has to correct pauses them all: one at a time probes, and the first that is settled
//! opens the gate.

use std::{collections::HashMap, time::Duration};

use greenroom::Backoff;
use parking_lot::Mutex;
use tokio::{
    sync::{MutexGuard, Notify},
    time::{Instant, sleep_until},
};

use crate::{outage::Outage, sink::Trouble};

/// Failures are logged at most this often.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// The gate that all requests of a sink pass. Each has a number of its own until it is settled.
#[derive(Debug, Default)]
pub(super) struct Gate {
    state: Mutex<State>,
    /// Told when something may go that could not before.
    changed: Notify,
    /// Held by the request that probes.
    probing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    /// The target wants to hear nothing before.
    held_until: Option<Instant>,
    /// An error that an operator has to correct.
    paused: Option<Outage>,
    /// Requests that have failed and are not settled, by their numbers.
    failing: HashMap<u64, FailingRequest>,
    /// When the target settled a request last.
    settled: Option<Instant>,
    told: Option<Instant>,
}

#[derive(Debug)]
struct FailingRequest {
    since: Instant,
    /// The last one.
    error: String,
    /// An operator has to correct it.
    is_refused: bool,
}

/// A request that may go. While it is kept, no other probes.
#[derive(Debug)]
pub(super) struct Pass<'a> {
    _probes: Option<MutexGuard<'a, ()>>,
}

enum Closed {
    Until(Instant),
    Paused,
}

impl Gate {
    /// Waits until a request may go.
    ///
    /// # Cancel safety
    /// A dropped future has changed nothing.
    pub(super) async fn pass(&self) -> Pass<'_> {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let closed = self.state.lock().closed(Instant::now());
            match closed {
                None => return Pass { _probes: None },
                Some(Closed::Until(until)) => tokio::select! {
                    () = sleep_until(until) => {}
                    () = changed => {}
                },
                Some(Closed::Paused) => {
                    let probes = tokio::select! {
                        probes = self.probing.lock() => probes,
                        () = changed => continue,
                    };
                    if self.is_due().await {
                        return Pass { _probes: Some(probes) };
                    }
                }
            }
        }
    }

    /// Waits until the next probe is due. Returns false if it is not paused any more.
    async fn is_due(&self) -> bool {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let next = self.state.lock().paused.as_ref().map(|paused| paused.next_probe);
            let Some(next) = next else { return false };
            tokio::select! {
                () = sleep_until(next) => return true,
                () = changed => {}
            }
        }
    }

    /// The target has settled this request. True if that may be news: the request had failed
    /// before, or all were paused.
    pub(super) fn works(&self, request: u64, name: impl FnOnce() -> String) -> bool {
        let mut state = self.state.lock();
        state.settled = Some(Instant::now());
        let (failed, paused) = (state.failing.remove(&request), state.paused.take());
        if failed.is_none() && paused.is_none() {
            return false;
        }
        let works = state.failing.is_empty();
        let is_told = paused.is_some() || (works && state.told.take().is_some());
        drop(state);
        if is_told {
            tracing::info!(target = name(), "the output delivers again");
        }
        self.changed.notify_waiters();
        true
    }

    /// This request is over, and the target has not heard of it: that says nothing of the target.
    pub(super) fn leaves(&self, request: u64) {
        self.state.lock().failing.remove(&request);
    }

    /// A request has failed for now; `is_refused` if an operator has to correct that. If the target
    /// asks for it, no request goes for a while.
    pub(super) fn fails(
        &self,
        request: u64,
        target: &str,
        error: &str,
        after: Option<Duration>,
        is_refused: bool,
    ) {
        let (now, mut state) = (Instant::now(), self.state.lock());
        let since = state.failing.get(&request).map_or(now, |failing| failing.since);
        state
            .failing
            .insert(request, FailingRequest { since, error: error.to_owned(), is_refused });
        if let Some(after) = after {
            state.held_until = state.held_until.max(Some(now + after));
        }
        // Others may go, and find out whether the cause of the pause is corrected.
        let resumed = state.paused.take().is_some();
        if state.told.is_none_or(|told| now.duration_since(told) >= TOLD_EVERY) {
            state.told = Some(now);
            tracing::warn!(
                target,
                error,
                "the output fails for now: its events wait, and are tried again"
            );
        }
        drop(state);
        if resumed {
            self.changed.notify_waiters();
        }
    }

    /// A request has failed because of an error that an operator has to correct: the next probe
    /// goes after the wait that `probe` names, with `chance`, from 0 to 1, as its jitter.
    pub(super) fn pause(&self, target: &str, error: &str, probe: &Backoff, chance: f64) {
        let (now, mut state) = (Instant::now(), self.state.lock());
        if state.paused.is_none() {
            tracing::error!(
                target,
                error,
                "the output is paused until this is corrected: reload the configuration, or resume it; it probes meanwhile"
            );
        }
        Outage::fails(&mut state.paused, error, probe, chance, now);
    }

    /// Returns false if it is not paused.
    pub(super) fn resume(&self) -> bool {
        let mut state = self.state.lock();
        let Some(paused) = &mut state.paused else { return false };
        paused.next_probe = Instant::now();
        drop(state);
        self.changed.notify_waiters();
        true
    }

    /// The hold or pause was meant for another configuration.
    pub(super) fn begin_anew(&self) {
        self.state.lock().held_until = None;
        self.resume();
        self.changed.notify_waiters();
    }

    /// The result of [`Sink::trouble`](crate::sink::Sink::trouble): the pause, or the oldest
    /// failure, one that an operator has to correct first.
    pub(super) fn trouble(&self) -> Option<Trouble> {
        let state = self.state.lock();
        if let Some(paused) = &state.paused {
            return Some(Trouble::paused(paused.since.elapsed(), &*paused.error));
        }
        let failing = state.failing.values();
        let FailingRequest { since, error, is_refused } =
            failing.min_by_key(|failing| (!failing.is_refused, failing.since))?;
        let trouble = Trouble::failing(since.elapsed(), &**error);
        let trouble = Trouble { paused: *is_refused, ..trouble };
        Some(match state.settled {
            Some(settled) => trouble.idle_for(settled.elapsed()),
            None => trouble,
        })
    }
}

impl State {
    fn closed(&self, now: Instant) -> Option<Closed> {
        if self.paused.is_some() {
            return Some(Closed::Paused);
        }
        self.held_until.filter(|until| *until > now).map(Closed::Until)
    }
}
