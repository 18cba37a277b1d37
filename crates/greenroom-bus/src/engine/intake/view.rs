//! The state of inputs and their partitions, as seen from outside.

use std::time::Duration;

use super::held_by::HeldByShare;
use crate::source::{InputState, InputStatus, Partition, PartitionStanding};

/// An input normally connects to its brokers and joins its group within this time.
const BEGINS_WITHIN: Duration = Duration::from_secs(5);

/// A paused input has normally settled an event within this time, or has failed: an outage is
/// noticed after this time.
const STANDS_AFTER: Duration = Duration::from_secs(10);

/// The events of one input that are under way.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputView {
    /// Its name.
    pub name: String,
    /// The name of its source in reports and dead letters.
    pub source: String,
    /// True while its source may give more.
    pub is_read: bool,
    /// The state of its connection; `None` if it has none, like a file.
    pub status: Option<InputStatus>,
    /// Bytes of events that were handed on and are not settled.
    pub in_flight_bytes: u64,
    /// The most bytes that were in flight at once; for several partitions, the sum of their maxima.
    pub most_in_flight_bytes: u64,
    /// With this many bytes, the input pauses.
    pub in_flight_limit: u64,
    /// Events that wait for full pools.
    pub held_back: u64,
    /// With this many events, the input pauses.
    pub run_ahead: u64,
    /// The pool that most of them wait for.
    pub held_by: Option<String>,
    /// The share of most of them, if shares have no room.
    pub held_by_share: Option<HeldByShare>,
    /// How long it has stood because of shares without room, if it does.
    pub stood_for_share: Option<Duration>,
    /// Events that wait behind parked keys, including the failed one; updated twice a second.
    pub parked: u64,
    /// About how many of the bytes in flight are theirs.
    pub parked_bytes: u64,
    /// True if parked keys hold so much (half of the limit on bytes in flight) that later events of
    /// theirs are refused.
    pub refuses_parked: bool,
    /// How long ago the last event was settled, of the partitions that it has now; `None` before
    /// any was.
    pub last_settled: Option<Duration>,
    /// How long ago its last partition was assigned; if it has none, how long it has existed.
    pub assigned_for: Duration,
    /// Its files that have unread data and are not open, as of the last look: removing one loses
    /// that data.
    pub files_at_risk: usize,
    /// Its partitions; a single one, [`Partition::ONLY`](crate::source::Partition::ONLY), where
    /// its source has no parts.
    pub partitions: Vec<PartitionView>,
    /// True if it is not read further until something is settled.
    pub(crate) stands: bool,
}

impl InputView {
    /// The share that stops it: more than half of the events beside the pools are of it.
    pub fn stands_for_share(&self) -> Option<&HeldByShare> {
        let held = self.held_by_share.as_ref()?;
        let stands = self.stood_for_share.is_some() || self.held_back >= self.run_ahead;
        (stands && held.is_why(self.held_back)).then_some(held)
    }

    /// Whether a share has stopped it for longer than is usual for waiting. Events of other shares
    /// may finish meanwhile.
    pub fn stands_long_for_share(&self) -> bool {
        self.is_read && self.stood_for_share.is_some_and(|lasted| lasted >= STANDS_AFTER)
    }

    /// The state of its connection.
    pub fn state(&self) -> InputState {
        self.status.as_ref().map_or(InputState::Assigned, |status| status.state)
    }

    /// Its status, if it is one that an operator should know about; the initial connecting is not.
    pub fn trouble(&self) -> Option<&InputStatus> {
        let begins = |status: &InputStatus| {
            matches!(status.state, InputState::Connecting | InputState::Joining)
        };
        self.not_connected().filter(|status| !begins(status) || status.lasted >= BEGINS_WITHIN)
    }

    /// Whether it takes nothing, and has not settled anything for longer than is usual for waiting.
    pub fn stands_still(&self) -> bool {
        self.is_read
            && self.is_paused()
            && self.last_settled.unwrap_or(Duration::MAX).min(self.assigned_for) >= STANDS_AFTER
    }

    /// Its status, if it cannot receive events although it is read.
    pub fn not_connected(&self) -> Option<&InputStatus> {
        self.status.as_ref().filter(|status| self.is_read && !status.is_connected())
    }

    /// Whether it is asked for nothing more until something is settled.
    pub fn is_paused(&self) -> bool {
        self.stands
            || self.in_flight_bytes >= self.in_flight_limit
            || self.held_back >= self.run_ahead
    }

    /// Whether it is paused because of parked keys, which hold three quarters of its limit on
    /// events in flight.
    pub fn waits_for_parked_keys(&self) -> bool {
        self.is_paused() && self.parked_bytes >= self.in_flight_limit / 4 * 3 && self.parked > 0
    }
}

/// The state of one partition of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionView {
    /// Which.
    pub partition: Partition,
    /// Bytes of its events that were handed on and are not settled.
    pub in_flight_bytes: u64,
    /// With this many bytes it is paused: its share of the input's limit on events in flight.
    pub in_flight_limit: u64,
    /// Its events that wait for full pools; with several partitions, an upper bound that is exact
    /// now and then.
    pub held_back: u64,
    /// With this many waiting events it is paused: its share of the input's limit.
    pub run_ahead: u64,
    /// Whether it is paused until some of its events are settled, or an operator resumes it.
    pub is_paused: bool,
    /// How long ago the last event of it was settled, in whichever way; `None` before any was.
    pub last_settled: Option<Duration>,
    /// Its positions, where its source keeps any.
    pub standing: Option<PartitionStanding>,
}
