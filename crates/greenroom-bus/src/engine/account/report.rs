//! The result of a run.

mod json;

use std::{collections::BTreeMap, time::Duration};

use serde::Serialize;

use crate::source::{PartitionStanding, Standing};

/// The final report of a run. `taken = handled + dead_lettered + ignored + refused + revoked +
/// given_back`.
///
/// Serialized, it is the object that `greenroom run --report json` prints: times are in seconds,
/// milliseconds or microseconds as the names of its keys say.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RunReport {
    /// Items taken from the inputs, malformed ones included.
    pub taken: u64,
    /// Events handled, whose outputs are stored.
    pub handled: u64,
    /// Events without a handler that the configuration says to ignore.
    pub ignored: u64,
    /// Items stored as dead letters.
    pub dead_lettered: u64,
    /// Events that were neither handled nor stored anywhere. A source that keeps its positions
    /// delivers them again.
    pub refused: u64,
    /// Events whose partition was taken away before they were done. The next owner of
    /// the partition handles them.
    pub revoked: u64,
    /// Events that waited when a stop came, and that their input delivers again: to the next run,
    /// or to another member of its group.
    pub given_back: u64,
    /// Among the refused ones, events that waited behind parked keys at the end, or came when no
    /// more could wait there.
    pub parked: u64,
    /// Attempts that were not the first of their event. An event that waits for the end
    /// of an outage makes none.
    pub retried: u64,
    /// Attempts that did not succeed and may have had an effect all the same
    /// ([`Effect::Unknown`](crate::handler::Effect)): timeouts, connections lost after the event
    /// was sent, processes and handlers that died with the event in hand, attempts that a stop has
    /// cut off.
    pub repeated_at_most: u64,
    /// Restarts of workers and worker processes.
    pub restarts: u64,
    /// Events that left after a later one of their key. Anything but 0 is a bug.
    pub out_of_order: u64,
    /// Events acknowledged when their handler was done with them
    /// ([`OnSuccess`](crate::engine::AckWhen::OnSuccess)), of whose outputs at least one was not
    /// stored.
    pub lost_outputs: u64,
    /// From the start of the run to its end.
    pub elapsed: Duration,
    /// The 50th, 99th and 99.9th percentile of the time from taken to settled.
    pub latency: [Duration; 3],
    /// The most events that were queued in pools at once, sampled 20 times a second: the most that
    /// [`Progress::queued`] was.
    pub peak_queued: u64,
    /// The most bytes that one input had in flight
    /// ([`InputView::most_in_flight_bytes`](crate::engine::InputView)).
    pub peak_in_flight_bytes: u64,
    /// The most memory that the process has had resident, where the system tells.
    pub peak_rss_bytes: Option<u64>,
    /// The keys whose events took longest from taken to settled.
    pub slowest_keys: Vec<SlowKey>,
    /// Stored dead letters by reason. Their sum is `dead_lettered`, with two exceptions: an event
    /// went to several handlers ([`fan_out`](crate::engine::HandlerConfig::fan_out)) and more than
    /// one gave it up, or an output rejected an event whose input was acknowledged before
    /// ([`OnSuccess`](crate::engine::AckWhen::OnSuccess)).
    pub dead_letters_by_reason: BTreeMap<&'static str, u64>,
    /// A row for each pool.
    pub pools: Vec<PoolReport>,
    /// A row for each input, in the order in which they were added; includes removed ones.
    pub inputs: Vec<InputReport>,
    /// A row for each output, in the order in which they were added; includes removed ones.
    pub outputs: Vec<OutputReport>,
    /// A row for each input that keeps its positions.
    pub positions: Vec<PositionsReport>,
    /// Where dead letters went.
    pub dead_letters: String,
    /// Things that an operator should know, although nothing was lost: for example that an output
    /// was rotated.
    pub warnings: Vec<String>,
    /// Errors of inputs, outputs, dead letters or workers, in words.
    pub errors: Vec<String>,
}

impl RunReport {
    /// True when every item taken has exactly one outcome.
    pub fn adds_up(&self) -> bool {
        self.taken == self.handled + self.dead_lettered + self.ignored + self.given_up()
    }

    /// Events that this run has given up, for whatever reason.
    fn given_up(&self) -> u64 {
        self.refused + self.revoked + self.given_back
    }

    /// True when nothing was refused or lost, nothing left out of order and nothing went wrong.
    pub fn is_clean(&self) -> bool {
        let lost = self.refused + self.lost_outputs;
        lost == 0 && self.out_of_order == 0 && self.errors.is_empty()
    }

    /// Items settled for each second of the run.
    pub fn events_per_second(&self) -> f64 {
        let settled = (self.taken - self.given_up()) as f64;
        settled / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// A key and the longest time that one of its events took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SlowKey {
    /// The key.
    pub key: String,
    /// The handler by which it is ordered.
    pub handler: String,
    /// From taken to settled.
    #[serde(rename = "ms", serialize_with = "json::millis")]
    pub longest: Duration,
}

/// The figures of one pool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PoolReport {
    /// Its name.
    pub name: String,
    /// Its workers.
    pub workers: usize,
    /// Events whose handler was done with them.
    pub handled: u64,
    /// Attempts that failed; not those that a handler gave back unstarted.
    pub failed_attempts: u64,
    /// Events for its handlers that were stored as dead letters.
    #[serde(rename = "dead_letters")]
    pub dead_lettered: u64,
    /// Restarts of its workers.
    pub restarts: u64,
}

/// The figures of one input.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct InputReport {
    /// Its name.
    pub name: String,
    /// Its source, for example `file:orders.ndjson`.
    pub source: String,
    /// Items taken from it.
    pub taken: u64,
    /// True if it was [removed](crate::engine::Control::remove_input) while the engine ran.
    pub removed: bool,
    /// Why it ended, if it ended because of an error; serialized among the errors of the run.
    #[serde(skip)]
    pub error: Option<String>,
}

/// The figures of one output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OutputReport {
    /// Its name.
    pub name: String,
    /// Its target, for example `file:done.ndjson`.
    pub target: String,
    /// Events handed to it. Those that it could not store count as refused.
    pub events: u64,
    /// Of these, the ones that it rejected for good: their inputs are dead letters.
    pub rejected: u64,
    /// Why it makes no progress, if so.
    pub trouble: Option<String>,
    /// True if it was [removed](crate::engine::Control::remove_output) while the engine ran.
    pub removed: bool,
    /// Why it failed to store some of the events that it had accepted when it was removed;
    /// serialized among the errors of the run.
    #[serde(skip)]
    pub error: Option<String>,
}

/// How far an input that keeps its positions has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PositionsReport {
    /// The name of the input.
    pub input: String,
    /// The state after the last commit.
    pub standing: Standing,
    /// The progress of each partition that it has then, if it reports any.
    pub partitions: Vec<PartitionStanding>,
}

/// The progress of a run so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// Items taken.
    pub taken: u64,
    /// Items settled.
    pub settled: u64,
    /// Of those, dead letters.
    pub dead_lettered: u64,
    /// Dead letters that were handed to their store and are not stored: their events stay open.
    /// While it rises, the store is too slow or down; inputs pause at 10,000.
    pub dead_letters_open: u64,
    /// Dead letters that could not be stored: their events are refused. Anything but 0 needs an
    /// operator.
    pub dead_letters_lost: u64,
    /// Bytes of events that were handed on and are not settled, over all inputs.
    pub in_flight_bytes: u64,
    /// Events queued in pools or waiting for another attempt. Pools are looked at in turn, sixteen
    /// every 50 ms: with more of them the depth of each is of when its last turn was.
    pub queued: u64,
    /// Keys that wait for an operator, and the events that wait behind them, in flight all of them.
    /// Looked at twice a second.
    pub parked_keys: u64,
    /// See there.
    pub parked_events: u64,
    /// The part of all inputs that has been read, between 0 and 1, where every input knows its end.
    pub read: Option<f64>,
    /// Bytes that inputs without an end, such as files that are followed, have and did not give
    /// yet, as of their last look; `None` where no such input is read.
    pub behind: Option<u64>,
}

/// The most memory that this process has had resident: `VmHWM` of Linux.
pub(crate) fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1_024)
}
