//! Stand-ins: answers in place of a target, so that a configuration can be tried without one.
//!
//! ```text
//! handler, output ──request──▶ StandIn ──▶ the next answer of its script
//!                                  └──────▶ keeps the events that it took for stored
//! ```
//!
//! A kind that is opened with a stand-in ([`HandlerKind::stand_in`], [`OutputKind::stand_in`]) asks
//! it in place of its target. The `http` kinds write requests and read answers with the code of a
//! run; only the network is missing. Other kinds take the answer as the outcome of the attempt.
//!
//! [`HandlerKind::stand_in`]: crate::handler::HandlerKind::stand_in
//! [`OutputKind::stand_in`]: crate::sink::OutputKind::stand_in

use std::{collections::VecDeque, fmt, sync::Arc};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::event::Event;

/// Answers by a script. Clones share it.
#[derive(Clone, Default)]
pub struct StandIn(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    answers: VecDeque<ScriptedAnswer>,
    stored: Vec<Event>,
}

/// A part of a script.
#[derive(Debug, Clone)]
pub struct ScriptedAnswer {
    /// The answer.
    pub answer: StandInAnswer,
    /// How often it is given; `None`: from then on.
    pub times: Option<u32>,
}

/// An answer of a stand-in.
#[derive(Debug, Clone, PartialEq)]
pub enum StandInAnswer {
    /// The event is handled, or stored.
    Success,
    /// It is handled, and these events are made of it.
    Events(Vec<Event>),
    /// An HTTP response; for kinds that post.
    Response {
        /// Its status.
        status: u16,
        /// Its headers.
        headers: Vec<(String, String)>,
        /// Its body.
        body: Bytes,
    },
    /// The attempt failed for now.
    Failure(String),
    /// The event is refused for good.
    Reject(String),
    /// There is no answer in time.
    Timeout,
    /// There is no connection.
    Connection,
    /// The process died, or the connection was lost, with the event in hand.
    Crash,
}

impl StandIn {
    /// Gives these answers in turn, then [`StandInAnswer::Success`].
    pub fn new(answers: impl IntoIterator<Item = ScriptedAnswer>) -> Self {
        let answers = answers.into_iter().collect();
        Self(Arc::new(Mutex::new(Script { answers, stored: Vec::new() })))
    }

    /// The events that an output has stored with it, in their order.
    pub fn stored(&self) -> Vec<Event> {
        self.0.lock().stored.clone()
    }

    /// The next answer.
    pub(crate) fn answer(&self) -> StandInAnswer {
        let mut script = self.0.lock();
        let Some(next) = script.answers.front_mut() else { return StandInAnswer::Success };
        let answer = next.answer.clone();
        if let Some(times) = &mut next.times {
            *times = times.saturating_sub(1);
            if *times == 0 {
                script.answers.pop_front();
            }
        }
        answer
    }

    /// These events are stored.
    pub(crate) fn store(&self, events: impl IntoIterator<Item = Event>) {
        self.0.lock().stored.extend(events);
    }
}

impl fmt::Debug for StandIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StandIn").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c23_a_script_is_given_in_turn_and_then_everything_succeeds() {
        let failure = || StandInAnswer::Failure("busy".into());
        let twice = ScriptedAnswer { answer: failure(), times: Some(2) };
        let stand_in = StandIn::new([twice]);
        let answers: Vec<_> = (0..4).map(|_| stand_in.answer()).collect();
        let success = StandInAnswer::Success;
        assert_eq!(answers, [failure(), failure(), success.clone(), success]);
        let stand_in = StandIn::new([ScriptedAnswer { answer: failure(), times: None }]);
        assert!((0..9).all(|_| stand_in.answer() == failure()));
    }
}
