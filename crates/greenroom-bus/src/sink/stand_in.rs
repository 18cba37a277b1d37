//! An output that does as a stand-in says, for kinds without one of their own.

use std::time::Duration;

use greenroom::Backoff;

use super::{
    SinkError,
    remote::{
        Attempted, Remote, RemoteSink, RequestPace, Requests, SinkRoom, TargetHad, WaitingEvent,
    },
};
use crate::{
    event::Event,
    stand_in::{StandIn, StandInAnswer},
};

const ROOM_BYTES: usize = 16 * 1024 * 1024;
const ROOM_EVENTS: usize = 1_024;

/// Keeps events in memory, by the script of a stand-in.
pub(super) struct StandInSink {
    requests: Requests<StandInTarget>,
}

impl StandInSink {
    /// # Errors
    /// There is no runtime.
    pub(super) fn open(answers: StandIn) -> Result<Self, SinkError> {
        let room = SinkRoom::new(ROOM_BYTES, ROOM_EVENTS);
        Ok(Self { requests: Requests::begin(StandInTarget(answers), room)? })
    }
}

impl RemoteSink for StandInSink {
    type Driver = Requests<StandInTarget>;

    fn driver(&self) -> &Self::Driver {
        &self.requests
    }
}

pub(super) struct StandInTarget(StandIn);

impl Remote for StandInTarget {
    type Kept = Event;

    fn describe(&self) -> String {
        "stand-in".to_owned()
    }

    fn keep(&self, event: Event, _: Option<u64>) -> Event {
        event
    }

    fn pace(&self) -> RequestPace {
        RequestPace {
            concurrency: 1,
            batching: None,
            backoff: Backoff::new(Duration::from_millis(200), Duration::from_secs(30)),
            probe: Backoff::new(Duration::from_secs(1), Duration::from_secs(60)),
        }
    }

    async fn attempt(&self, events: &[WaitingEvent<Event>]) -> Attempted {
        let failed = |error: &str, had| {
            let error = error.to_owned();
            Attempted::Failed { error, after: None, had }
        };
        match self.0.answer() {
            StandInAnswer::Success | StandInAnswer::Events(_) | StandInAnswer::Response { .. } => {
                self.0.store(events.iter().map(|waiting| waiting.kept.clone()));
                Attempted::Stored
            }
            StandInAnswer::Failure(why) => failed(&why, TargetHad::Answered),
            StandInAnswer::Reject(why) => Attempted::Rejected(why),
            StandInAnswer::Timeout => failed("the stand-in gave no answer", TargetHad::Unknown),
            StandInAnswer::Crash => failed("the stand-in died", TargetHad::Unknown),
            StandInAnswer::Connection => {
                failed("the stand-in is not reachable", TargetHad::Nothing)
            }
        }
    }
}
