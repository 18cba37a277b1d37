//! An HTTP target, and the meaning of its answers.

use std::{sync::Arc, time::Duration};

use greenroom::Backoff;
use parking_lot::RwLock;
use reqwest::{Request, Response};
use tokio::time::Instant;

use super::{HttpOutput, HttpOutputMode};
use crate::{
    event::Event,
    http::{
        On, StatusMap, TargetConfig, Verdict, answer,
        connection::{Connection, NoAnswer},
        message::{self, Mode, SentAttempt},
    },
    sink::remote::{Attempted, Remote, RequestPace, TargetHad, WaitingEvent},
    stand_in::StandIn,
};

/// The longest wait that a target may ask for (`Retry-After`).
const LONGEST_ASKED: Duration = Duration::from_secs(300);

/// How much is read of an unneeded body.
const ANSWER: usize = 64 * 1024;

/// Where to deliver, and how: replaced as a whole.
#[derive(Debug)]
struct Settings {
    output: HttpOutput,
    /// With what its files held.
    target: TargetConfig,
    status: StatusMap,
    connection: Connection,
}

impl Settings {
    fn new(
        output: &HttpOutput,
        target: TargetConfig,
        stand_in: Option<StandIn>,
    ) -> Result<Arc<Self>, String> {
        let zero = |name: &str| Err(format!("http: `{name}` is 0; it is at least 1"));
        let HttpOutput { mode, batch, concurrency, .. } = output;
        match mode {
            _ if *concurrency == 0 => return zero("concurrency"),
            HttpOutputMode::Batch if batch.events == 0 => return zero("batch.events"),
            HttpOutputMode::Batch if batch.bytes == 0 => return zero("batch.bytes"),
            _ => {}
        }
        let status = output.posting().status_map()?;
        let connection = Connection::build(&target, stand_in)?;
        Ok(Arc::new(Self { output: output.clone(), target, status, connection }))
    }
}

/// A URL that takes events.
pub struct HttpTarget {
    settings: RwLock<Arc<Settings>>,
    probe: Backoff,
}

/// The kept part of an event until it is settled.
pub struct KeptEvent {
    event: Event,
    fence: Option<u64>,
}

impl HttpTarget {
    pub(super) fn new(
        output: &HttpOutput,
        stand_in: Option<StandIn>,
        probe: Backoff,
    ) -> Result<Self, String> {
        let settings = Settings::new(output, output.target()?, stand_in)?;
        Ok(Self { settings: RwLock::new(settings), probe })
    }

    fn settings(&self) -> Arc<Settings> {
        self.settings.read().clone()
    }

    /// False if nothing changes.
    pub(super) fn reconfigure(&self, output: &HttpOutput) -> Result<bool, String> {
        let (current, target) = (self.settings(), output.target()?);
        if current.output == *output && current.target == target {
            return Ok(false);
        }
        let settings = Settings::new(output, target, None)?;
        *self.settings.write() = settings;
        Ok(true)
    }
}

impl Remote for HttpTarget {
    type Kept = KeptEvent;

    fn describe(&self) -> String {
        self.settings().connection.target.shown.clone()
    }

    fn keep(&self, event: Event, fence: Option<u64>) -> KeptEvent {
        KeptEvent { event, fence }
    }

    fn pace(&self) -> RequestPace {
        let HttpOutput { mode, batch, concurrency, backoff, .. } = self.settings.read().output;
        RequestPace {
            concurrency,
            batching: (mode == HttpOutputMode::Batch).then_some(batch),
            backoff,
            probe: self.probe,
        }
    }

    async fn attempt(&self, events: &[WaitingEvent<KeptEvent>]) -> Attempted {
        let settings = self.settings();
        let attempted = attempt(&settings, events).await;
        if let (Attempted::Stored, Some(stand_in)) = (&attempted, &settings.connection.stand_in) {
            stand_in.store(events.iter().map(|waiting| waiting.kept.event.clone()));
        }
        if Arc::ptr_eq(&settings, &self.settings()) {
            return attempted;
        }
        match attempted {
            Attempted::Failed { had, .. } => Attempted::Replaced(had),
            Attempted::Misconfigured(_) => Attempted::Replaced(TargetHad::Answered),
            settled => settled,
        }
    }
}

async fn attempt(settings: &Settings, events: &[WaitingEvent<KeptEvent>]) -> Attempted {
    let request = match request(settings, events) {
        Ok(request) => request,
        Err(error) => return Attempted::Unwritable(error),
    };
    let started = Instant::now();
    match settings.connection.send(request).await {
        Ok(response) => answered(settings, response, started).await,
        Err(none) => unanswered(settings, none),
    }
}

fn request(settings: &Settings, events: &[WaitingEvent<KeptEvent>]) -> Result<Request, String> {
    let fence = events[0].kept.fence;
    // A fence that not all of them share is left out.
    let fence = fence.filter(|_| events.iter().all(|waiting| waiting.kept.fence == fence));
    let attempt = SentAttempt { number: events[0].attempt, fence };
    let mode = match (settings.output.mode, events) {
        (HttpOutputMode::Binary, [_]) => Mode::Binary,
        (HttpOutputMode::Structured, [_]) => Mode::Structured,
        // Also several that were taken together before another mode was set.
        _ => {
            let events = events.iter().map(|waiting| &waiting.kept.event);
            return Ok(message::batch(&settings.connection, events, attempt));
        }
    };
    message::single(&settings.connection, mode, &events[0].kept.event, attempt)
}

async fn answered(settings: &Settings, mut response: Response, started: Instant) -> Attempted {
    let took = started.elapsed();
    let verdict = answer::said(&settings.connection, &settings.status, &response);
    if verdict == Verdict::Settle {
        // It has the events, so the body is not needed.
        answer::read_some(&mut response, ANSWER, 0).await;
        return Attempted::Stored;
    }
    let after = answer::wait(&response).map(|after| after.min(LONGEST_ASKED));
    // A gateway answers if the target has not, and does not know its effect.
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
        On::Timeout => settings.status.timeout(),
        _ => settings.status.connection(),
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
        Verdict::Retry | Verdict::Hold => Attempted::Failed { error, after, had },
        Verdict::Pause => Attempted::Misconfigured(error),
        Verdict::Reject | Verdict::Park | Verdict::PauseShare => Attempted::Rejected(error),
    }
}
