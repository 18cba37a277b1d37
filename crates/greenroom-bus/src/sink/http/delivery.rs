//! A request, until its events are settled.

use std::{sync::Arc, time::Duration};

use reqwest::{Request, Response};
use tokio::time::{Instant, sleep};

use super::{
    config::HttpSinkMode,
    queue::WaitingEvent,
    shared::{Settings, Shared},
};
use crate::{
    http::{
        On, Verdict, answer,
        connection::NoAnswer,
        message::{self, Mode},
    },
    sink::Outgoing,
};

/// The longest wait that a target may ask for (`Retry-After`).
const LONGEST_ASKED: Duration = Duration::from_secs(300);

/// How much is read of a body that nobody needs.
const ANSWER: usize = 64 * 1024;

/// What an attempt comes to.
enum Attempted {
    Stored,
    Rejected(String),
    /// It may pass; the target may have had the events, or not.
    Failed {
        error: String,
        after: Option<Duration>,
        reached: bool,
    },
    /// An operator has to correct it.
    Misconfigured(String),
}

/// Sends these events until the target has taken or rejected each.
pub(super) async fn deliver(shared: Arc<Shared>, number: u64, events: Vec<WaitingEvent>) {
    let lines = events.iter().filter_map(|waiting| waiting.outgoing.line).collect();
    let _over = RequestOver { shared: &shared, lines };
    match until_settled(&shared, number, &events).await {
        Ok(()) => events.into_iter().for_each(|waiting| waiting.outgoing.ack.confirm()),
        Err(error) if events.len() == 1 => {
            events.into_iter().for_each(|waiting| reject(waiting.outgoing, &error));
        }
        // One of them is to blame, and nobody knows which.
        Err(_) => {
            for waiting in events {
                match until_settled(&shared, number, std::slice::from_ref(&waiting)).await {
                    Ok(()) => waiting.outgoing.ack.confirm(),
                    Err(error) => reject(waiting.outgoing, &error),
                }
            }
        }
    }
}

fn reject(outgoing: Outgoing, error: &str) {
    outgoing.ack.reject(error);
}

/// The request is over, however it ends: the next of its lines may go. After its events are
/// settled, so that an order which is audited there holds.
struct RequestOver<'a> {
    shared: &'a Shared,
    lines: Vec<u64>,
}

impl Drop for RequestOver<'_> {
    fn drop(&mut self) {
        self.shared.is_over(&self.lines);
    }
}

/// # Errors
/// Why the target rejects them.
async fn until_settled(
    shared: &Shared,
    number: u64,
    events: &[WaitingEvent],
) -> Result<(), String> {
    let (mut attempt, mut failures) = (0, 0);
    loop {
        let pass = shared.gate.pass().await;
        let settings = shared.settings();
        let shown = &settings.connection.target.shown;
        attempt += 1;
        match attempt_once(&settings, events, attempt).await {
            Attempted::Stored => {
                shared.gate.works(number, shown);
                return Ok(());
            }
            Attempted::Rejected(error) => {
                shared.gate.works(number, shown);
                return Err(error);
            }
            Attempted::Failed { error, after, reached } => {
                failures += 1;
                if reached {
                    shared.repeats(events.len());
                }
                let after = after.map(|after| after.min(LONGEST_ASKED));
                shared.gate.fails(number, shown, &error, after);
                drop(pass);
                let wait = settings.config.backoff.wait(failures, rand::random());
                tokio::select! {
                    () = sleep(after.unwrap_or(wait)) => {}
                    () = shared.gate.changed(), if after.is_none() => {}
                }
            }
            Attempted::Misconfigured(error) => {
                let chance = rand::random();
                shared.gate.pause(shown, error, &settings.config.probe, chance);
            }
        }
    }
}

async fn attempt_once(settings: &Settings, events: &[WaitingEvent], attempt: u32) -> Attempted {
    let request = match request(settings, events, attempt) {
        Ok(request) => request,
        Err(error) => return Attempted::Rejected(error),
    };
    let started = Instant::now();
    match settings.connection.send(request).await {
        Ok(response) => answered(settings, response, started).await,
        Err(none) => unanswered(settings, none),
    }
}

fn request(settings: &Settings, events: &[WaitingEvent], attempt: u32) -> Result<Request, String> {
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
    let reached = matches!(response.status().as_u16(), 502 | 504);
    let error = answer::refusal(&settings.connection, &mut response, took).await;
    comes_to(verdict, error, after, reached)
}

fn unanswered(settings: &Settings, none: NoAnswer) -> Attempted {
    let verdict = match none.on {
        On::Timeout => settings.config.status.timeout(),
        _ => settings.config.status.connection(),
    };
    // No attempt mends a certificate.
    let mendable = none.untrusted && verdict == Verdict::Retry;
    let verdict = if mendable { Verdict::Pause } else { verdict };
    comes_to(verdict, none.text, None, none.reached)
}

fn comes_to(verdict: Verdict, error: String, after: Option<Duration>, reached: bool) -> Attempted {
    match verdict {
        Verdict::Settle => Attempted::Stored,
        Verdict::Retry => Attempted::Failed { error, after, reached },
        Verdict::Pause => Attempted::Misconfigured(error),
        Verdict::Reject | Verdict::Park => Attempted::Rejected(error),
    }
}
