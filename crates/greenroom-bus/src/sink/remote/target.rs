//! What is a target's own, and what it says of an attempt.

use std::{future::Future, time::Duration};

use greenroom::Backoff;
use greenroom_config::{
    count, duration, options, size,
    units::{DAY_MS, GIB},
};

use super::waiting::WaitingEvent;
use crate::event::Event;

/// The target of [`Requests`](super::Requests), which answers each of them.
pub trait Remote: Send + Sync + 'static {
    /// What is kept of an event until it is settled.
    type Kept: Send + Sync;

    /// What reports and logs call the sink.
    fn describe(&self) -> String;

    /// Called by the worker that has handled the event. `fence` is that of its
    /// [`Outgoing`](crate::sink::Outgoing).
    fn keep(&self, event: Event, fence: Option<u64>) -> Self::Kept;

    /// How many requests, and when they are made again.
    fn pace(&self) -> RequestPace;

    /// Delivers these events in one request, several only if the pace has batches.
    fn attempt(
        &self,
        events: &[WaitingEvent<Self::Kept>],
    ) -> impl Future<Output = Attempted> + Send;

    /// Why no request can be made now, because there is no connection.
    fn down(&self) -> Option<String> {
        None
    }

    /// Waits until there is a connection.
    fn ready(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Whether an operator has to correct what keeps it [down](Self::down).
    fn is_refused(&self) -> bool {
        false
    }
}

/// How many requests there are, and when they are made again.
#[derive(Debug, Clone, Copy)]
pub struct RequestPace {
    /// Requests under way at once; of one line, never more than one. With 1, events arrive in the
    /// order in which they were accepted.
    pub concurrency: usize,
    /// `None` where each request has one event.
    pub batching: Option<Batching>,
    /// How long a request waits after it has failed, where the target does not say it.
    pub backoff: Backoff,
    /// How long a paused sink waits before it probes.
    pub probe: Backoff,
}

options! {
    /// A request of `mode: batch` is sent when one of these is reached.
    #[derive(Copy, Eq)]
    pub struct Batching = "batch" {
        /// The most events of a request.
        events: usize = count(1..=10_000).default("100");
        /// About how many bytes of events a request has. A larger event goes alone.
        bytes: usize = size(1024..=GIB).default("1MiB");
        /// How long an event waits for others.
        within: Duration = duration(0..=DAY_MS).default("50ms");
    }
}

impl Default for Batching {
    fn default() -> Self {
        Self { events: 100, bytes: 1024 * 1024, within: Duration::from_millis(50) }
    }
}

/// What an attempt comes to.
#[derive(Debug)]
pub enum Attempted {
    /// All of it is stored.
    Stored,
    /// The target will never store it; of several events, one of them.
    Rejected(String),
    /// No request can be made of it: the target has not heard of it.
    Unwritable(String),
    /// It may pass.
    Failed {
        /// What happened, in words.
        error: String,
        /// The target says when it wants to hear more, and nothing before.
        after: Option<Duration>,
        /// What the target has had of it.
        had: TargetHad,
    },
    /// An operator has to correct it.
    Misconfigured(String),
    /// The same, for these events alone: others go on.
    Refused(String),
    /// Nothing can be delivered any more.
    Ended(String),
    /// It was not stored, and its settings were replaced meanwhile, so the answer says nothing of
    /// the new ones: it is sent again at once. Here is what the earlier target has had of it.
    Replaced(TargetHad),
}

/// What the target has had of a request that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetHad {
    /// Not one event.
    Nothing,
    /// It says itself that it has failed.
    Answered,
    /// Not one event: it, or a gateway before it, says that nobody takes them now.
    Unavailable,
    /// The events, or not: a gateway has answered for it.
    Gateway,
    /// The events, or not.
    Unknown,
}
