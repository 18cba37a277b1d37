//! A request, and what follows for its events.

use std::{sync::Arc, time::Duration};

use greenroom::Backoff;
use reqwest::{Request, Response};
use tokio::time::Instant;

use super::{
    config::HttpSinkMode,
    shared::{Settings, Shared},
    waiting::WaitingEvent,
};
use crate::http::{
    On, Verdict, answer,
    connection::NoAnswer,
    message::{self, Mode, SentAttempt},
};

/// The longest wait that a target may ask for (`Retry-After`).
const LONGEST_ASKED: Duration = Duration::from_secs(300);

/// How much is read of a body that nobody needs.
const ANSWER: usize = 64 * 1024;

/// A batch that has failed so often is sent in halves from then on, until the event that it fails
/// of is alone. A moment in which the target does not work is over by then, and leaves it whole.
const FAILS_WHOLE: u32 = 3;

/// The same where the target may be down, and has settled nothing else meanwhile.
const FAILS_WHOLE_IN_OUTAGE: u32 = 10;

/// What an attempt comes to.
enum Attempted {
    Stored,
    Rejected(String),
    /// The target has not heard of it.
    Unwritable(String),
    /// It may pass.
    Failed {
        error: String,
        after: Option<Duration>,
        had: TargetHad,
    },
    /// An operator has to correct it.
    Misconfigured(String),
}

/// What the target has had of a request that failed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TargetHad {
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

/// Makes an attempt at these events. It settles them, or they go back into the queue: while they
/// wait for the next one, others are sent.
pub(super) async fn deliver(shared: Arc<Shared>, mut events: Vec<WaitingEvent>) {
    let lines = events.iter().filter_map(|waiting| waiting.outgoing.line).collect();
    let _over = RequestOver { shared: &shared, lines };
    let number = events[0].number;
    loop {
        let _pass = shared.gate.pass().await;
        events.retain(|waiting| !waiting.outgoing.ack.is_revoked());
        if events.is_empty() {
            // Their new owner sends them.
            return shared.gate.leaves(number);
        }
        let settings = shared.settings();
        let shown = &settings.connection.target.shown;
        let attempted = attempt(&settings, &mut events).await;
        // What is said to a configuration that is replaced meanwhile holds up nothing.
        let is_replaced = !Arc::ptr_eq(&settings, &shared.settings());
        match attempted {
            Attempted::Stored => {
                shared.works(number, shown);
                return events.into_iter().for_each(|waiting| waiting.outgoing.ack.confirm());
            }
            Attempted::Rejected(error) => {
                shared.works(number, shown);
                return rejected(&shared, events, &error);
            }
            Attempted::Unwritable(error) => {
                shared.gate.leaves(number);
                return rejected(&shared, events, &error);
            }
            Attempted::Failed { error, after, had } => {
                if matches!(had, TargetHad::Gateway | TargetHad::Unknown) {
                    shared.repeats(events.len());
                }
                let after = after.map(|after| after.min(LONGEST_ASKED));
                let after = if is_replaced { Some(Duration::ZERO) } else { after };
                shared.gate.fails(number, shown, &error, after);
                put_off(&mut events, &settings.config.backoff, after, had, shared.settled());
                return shared.come_back(events);
            }
            Attempted::Misconfigured(_) if is_replaced => {}
            Attempted::Misconfigured(error) => {
                let chance = rand::random();
                shared.gate.pause(shown, error, &settings.config.probe, chance);
            }
        }
    }
}

fn rejected(shared: &Shared, mut events: Vec<WaitingEvent>, error: &str) {
    if events.len() == 1 {
        return events.into_iter().for_each(|waiting| waiting.outgoing.ack.reject(error));
    }
    // One of them is to blame, and nobody knows which: each goes by itself.
    let now = Instant::now();
    events.iter_mut().for_each(|waiting| waiting.comes_back(now, waiting.number));
    shared.come_back(events);
}

/// When events that have failed for now are sent again, and with which others. `settled` is how
/// many requests the target has settled by now.
fn put_off(
    events: &mut [WaitingEvent],
    backoff: &Backoff,
    after: Option<Duration>,
    had: TargetHad,
    settled: u64,
) {
    let past = events[0].past;
    let failures = events.iter().map(|waiting| waiting.past.failures).max().unwrap_or(0) + 1;
    let wait = after.unwrap_or_else(|| backoff.wait(failures, rand::random()));
    let due = Instant::now() + wait;
    // A target that names a wait fails of no event.
    let splits = after.is_none() && failures >= fails_whole(had, settled > past.settled);
    let together = if splits { events.len().div_ceil(2) } else { events.len() };
    for part in events.chunks_mut(together) {
        let with = part[0].number;
        for waiting in part {
            (waiting.past.failures, waiting.past.settled) = (failures, settled);
            waiting.comes_back(due, with);
        }
    }
}

/// How often a batch fails before it is sent in halves. Behind a gateway, a target that is down and
/// an event that it fails of look alike; what else it settles tells one from the other.
fn fails_whole(had: TargetHad, settles_others: bool) -> u32 {
    match had {
        TargetHad::Nothing => u32::MAX,
        TargetHad::Unavailable | TargetHad::Gateway if !settles_others => FAILS_WHOLE_IN_OUTAGE,
        _ => FAILS_WHOLE,
    }
}

/// The request is over, however it ends: the next of its lines may go. After its events are
/// settled, so that an order which is audited there holds, or back in the queue.
struct RequestOver<'a> {
    shared: &'a Shared,
    lines: Vec<u64>,
}

impl Drop for RequestOver<'_> {
    fn drop(&mut self) {
        self.shared.is_over(&self.lines);
    }
}

async fn attempt(settings: &Settings, events: &mut [WaitingEvent]) -> Attempted {
    let made = events.iter().map(|waiting| waiting.past.made).max().unwrap_or(0) + 1;
    events.iter_mut().for_each(|waiting| waiting.past.made = made);
    let request = match request(settings, events, made) {
        Ok(request) => request,
        Err(error) => return Attempted::Unwritable(error),
    };
    let started = Instant::now();
    match settings.connection.send(request).await {
        Ok(response) => answered(settings, response, started).await,
        Err(none) => unanswered(settings, none),
    }
}

fn request(settings: &Settings, events: &[WaitingEvent], number: u32) -> Result<Request, String> {
    let fence = events[0].outgoing.fence;
    // One that is not that of all says nothing.
    let fence = fence.filter(|_| events.iter().all(|waiting| waiting.outgoing.fence == fence));
    let attempt = SentAttempt { number, fence };
    let mode = match (settings.config.mode, events) {
        (HttpSinkMode::Binary, [_]) => Mode::Binary,
        (HttpSinkMode::Structured, [_]) => Mode::Structured,
        // Also several that were taken together before another mode was set.
        _ => {
            let events = events.iter().map(|waiting| &waiting.outgoing.event);
            return Ok(message::batch(&settings.connection, events, attempt));
        }
    };
    message::single(&settings.connection, mode, &events[0].outgoing.event, attempt)
}

async fn answered(settings: &Settings, mut response: Response, started: Instant) -> Attempted {
    let took = started.elapsed();
    let verdict = answer::said(&settings.connection, &settings.config.status, &response);
    if verdict == Verdict::Settle {
        // It has the events: whatever becomes of the body, nobody needs it.
        answer::read_some(&mut response, ANSWER, 0).await;
        return Attempted::Stored;
    }
    let after = answer::wait(&response);
    // A gateway answers where the target has not, and does not know what that has done.
    let had = match response.status().as_u16() {
        502 | 504 => TargetHad::Gateway,
        503 => TargetHad::Unavailable,
        _ => TargetHad::Answered,
    };
    let error = answer::refusal(&settings.connection, &mut response, took).await;
    comes_to(verdict, error, after, had)
}

fn unanswered(settings: &Settings, none: NoAnswer) -> Attempted {
    let verdict = match none.on {
        On::Timeout => settings.config.status.timeout(),
        _ => settings.config.status.connection(),
    };
    // No attempt mends a certificate.
    let mendable = none.untrusted && verdict == Verdict::Retry;
    let verdict = if mendable { Verdict::Pause } else { verdict };
    let had = if none.reached { TargetHad::Unknown } else { TargetHad::Nothing };
    comes_to(verdict, none.text, None, had)
}

fn comes_to(verdict: Verdict, error: String, after: Option<Duration>, had: TargetHad) -> Attempted {
    match verdict {
        Verdict::Settle => Attempted::Stored,
        Verdict::Retry => Attempted::Failed { error, after, had },
        Verdict::Pause => Attempted::Misconfigured(error),
        Verdict::Reject | Verdict::Park => Attempted::Rejected(error),
    }
}
