//! A handler that does as a stand-in says, for kinds without one of their own.

use super::{
    Attempt, Effect, Failure, FailureKind, Handler, HandlerFactory, HandlerResult, Handling,
    Outputs,
};
use crate::{
    event::Event,
    stand_in::{StandIn, StandInAnswer},
};

/// Makes handlers that do as the stand-in says.
pub(super) struct StandInFactory {
    pub(super) answers: StandIn,
    /// With no more than success, the event is passed on.
    pub(super) passes: bool,
}

impl HandlerFactory for StandInFactory {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(StandInHandler { answers: self.answers.clone(), passes: self.passes }))
    }
}

struct StandInHandler {
    answers: StandIn,
    passes: bool,
}

impl Handler for StandInHandler {
    fn handle<'a>(&'a mut self, _: &'a Event, _: &'a Attempt) -> Handling<'a> {
        let mut answer = self.answers.answer();
        // As with worker processes: the event goes to a fresh one at once, and the second crash in
        // a row is the event's.
        if answer == StandInAnswer::Crash {
            answer = self.answers.answer();
        }
        Handling::Done(result(answer, self.passes))
    }
}

fn result(answer: StandInAnswer, passes: bool) -> HandlerResult {
    let failed = |kind, why: &str| Failure::new(kind, why);
    Err(match answer {
        StandInAnswer::Success | StandInAnswer::Response { .. } => {
            return Ok(if passes { Outputs::Same } else { Outputs::None });
        }
        StandInAnswer::Events(events) if events.is_empty() => return Ok(Outputs::None),
        StandInAnswer::Events(events) => return Ok(Outputs::Events(events)),
        StandInAnswer::Failure(why) => Failure::retry(why),
        StandInAnswer::Reject(why) => Failure::reject(why),
        StandInAnswer::Timeout => failed(FailureKind::Timeout, "the stand-in gave no answer"),
        StandInAnswer::Crash => failed(FailureKind::Crash, "the stand-in died"),
        StandInAnswer::Connection => {
            Failure::retry("the stand-in is not reachable").with_effect(Effect::None)
        }
    })
}
