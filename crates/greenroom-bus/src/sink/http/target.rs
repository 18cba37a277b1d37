//! An HTTP target, and the meaning of its answers.

use std::{sync::Arc, time::Duration};

use parking_lot::RwLock;
use reqwest::{Request, Response};
use tokio::time::Instant;

use super::config::{HttpSinkConfig, HttpSinkMode};
use crate::{
    event::Event,
    http::{
        On, Verdict, answer,
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
    config: HttpSinkConfig,
    connection: Connection,
}

impl Settings {
    fn new(config: HttpSinkConfig, stand_in: Option<StandIn>) -> Result<Arc<Self>, String> {
        config.check()?;
        let connection = Connection::build(&config.target, stand_in)?;
        Ok(Arc::new(Self { config, connection }))
    }
}

/// A URL that takes events.
pub struct HttpTarget {
    settings: RwLock<Arc<Settings>>,
}

/// The kept part of an event until it is settled.
pub struct KeptEvent {
    event: Event,
    fence: Option<u64>,
}

impl HttpTarget {
    pub(super) fn new(config: HttpSinkConfig, stand_in: Option<StandIn>) -> Result<Self, String> {
        Ok(Self { settings: RwLock::new(Settings::new(config, stand_in)?) })
    }

    fn settings(&self) -> Arc<Settings> {
        self.settings.read().clone()
    }

    /// False if nothing changes.
    pub(super) fn reconfigure(&self, config: HttpSinkConfig) -> Result<bool, String> {
        if self.settings().config == config {
            return Ok(false);
        }
        let settings = Settings::new(config, None)?;
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
        self.settings.read().config.pace()
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
    let mode = match (settings.config.mode, events) {
        (HttpSinkMode::Binary, [_]) => Mode::Binary,
        (HttpSinkMode::Structured, [_]) => Mode::Structured,
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
    let verdict = answer::said(&settings.connection, &settings.config.status, &response);
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
        Verdict::Retry | Verdict::Hold => Attempted::Failed { error, after, had },
        Verdict::Pause => Attempted::Misconfigured(error),
        Verdict::Reject | Verdict::Park | Verdict::PauseShare => Attempted::Rejected(error),
    }
}
