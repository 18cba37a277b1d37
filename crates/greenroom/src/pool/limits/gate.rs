//! The gate of a pool with limits: a worker passes it before it takes a message.
//!
//! ```text
//! worker without a pass ──▶ line ──▶ first in line: a place among those in hand, then a token ──▶ takes a message
//!                                    └── both are waited for here, without a shard or a key ──┘
//! ```
//!
//! Workers stand in line in the order in which they came, and one waits at a time, so that a token wakes one worker. A pass
//! that finds no message is given back, and so is that of a worker that dies.
//!
//! The price: a worker that waits is one that does not lie idle, and each that is woken for more work joins the line. A pool
//! without limits pays one branch.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

use super::{Adaptive, AdaptiveLimit, LimitChange, Mode, Outcome, Rate, TokenBucket};
use crate::SpawnError;

/// How many messages may be in hand at once.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AtOnce {
    Fixed(usize),
    Adaptive(Adaptive),
}

/// The gate of one pool.
pub(crate) struct Gate {
    start: Instant,
    /// Who is first in line holds this.
    line: tokio::sync::Mutex<()>,
    bucket: Option<Mutex<TokenBucket>>,
    at_once: Option<Mutex<Places>>,
    /// A place or a token has been given back.
    freed: Notify,
}

enum Places {
    Fixed { limit: usize, taken: usize, held_back: u64 },
    Adaptive(Box<AdaptiveLimit>),
}

/// What the limits of a pool have come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LimitStats {
    /// How many messages may be in hand at once, where that is limited.
    pub limit: Option<usize>,
    /// How many might be, where an adaptive limit is only observed.
    pub would_be_limit: Option<usize>,
    /// How often a worker had to wait for a place, or would have had to.
    pub held_back: u64,
}

impl Gate {
    /// `None` for a pool without limits.
    pub(crate) fn new(
        rate: Option<Rate>,
        at_once: Option<AtOnce>,
    ) -> Result<Option<Arc<Self>>, SpawnError> {
        if rate.is_none() && at_once.is_none() {
            return Ok(None);
        }
        let bucket = rate.map(|rate| TokenBucket::new(rate, rate.burst())).transpose()?;
        let at_once = at_once.map(Places::new).transpose()?;
        Ok(Some(Arc::new(Self {
            start: Instant::now(),
            line: tokio::sync::Mutex::new(()),
            bucket: bucket.map(Mutex::new),
            at_once: at_once.map(Mutex::new),
            freed: Notify::new(),
        })))
    }

    /// A pass, where nobody stands in line and there is no need to wait.
    pub(crate) fn try_pass(self: &Arc<Self>) -> Option<Pass> {
        let _first = self.line.try_lock().ok()?;
        let place = self.try_place()?;
        let token = self.try_token();
        token.is_ok().then(|| place.with_token())
    }

    /// Stands in line, and waits for a place and a token.
    ///
    /// # Cancel safety
    /// A dropped future has given back what it had, and its place in line.
    pub(crate) async fn pass(self: &Arc<Self>) -> Pass {
        let _first = self.line.lock().await;
        let place = loop {
            let freed = self.freed.notified();
            match self.try_place() {
                Some(place) => break place,
                None => freed.await,
            }
        };
        loop {
            let freed = self.freed.notified();
            match self.try_token() {
                Ok(()) => return place.with_token(),
                // Or until one is given back.
                Err(at) => drop(tokio::time::timeout_at(at, freed).await),
            }
        }
    }

    fn try_place(self: &Arc<Self>) -> Option<Pass> {
        let taken = self.at_once.as_ref().is_none_or(|places| places.lock().take());
        taken.then(|| Pass { gate: self.clone(), token: false, started: None, over: false })
    }

    fn try_token(&self) -> Result<(), Instant> {
        let Some(bucket) = &self.bucket else { return Ok(()) };
        let mut bucket = bucket.lock();
        match bucket.try_acquire(self.now()) {
            true => Ok(()),
            false => Err(self.start + bucket.next_at()),
        }
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Changes the rate from now on. False where the pool has none.
    pub(crate) fn set_rate(&self, rate: Rate) -> Result<bool, SpawnError> {
        let Some(bucket) = &self.bucket else { return Ok(false) };
        bucket.lock().set(self.now(), rate, rate.burst())?;
        // Who is first in line waits for a moment that the old rate named.
        self.freed.notify_one();
        Ok(true)
    }

    /// Changes how many messages may be in hand at once. False where the pool has no fixed limit.
    pub(crate) fn set_concurrency(&self, messages: usize) -> Result<bool, SpawnError> {
        let mut places = match &self.at_once {
            Some(places) => places.lock(),
            None => return Ok(false),
        };
        let Places::Fixed { limit, .. } = &mut *places else { return Ok(false) };
        *limit = at_least_one(messages)?;
        self.freed.notify_one();
        Ok(true)
    }

    pub(crate) fn stats(&self) -> LimitStats {
        self.at_once.as_ref().map(|places| places.lock().stats()).unwrap_or_default()
    }

    fn free(&self, latency: Duration, outcome: Outcome) -> Option<LimitChange> {
        let places = self.at_once.as_ref();
        let change = places.and_then(|places| places.lock().free(self.now(), latency, outcome));
        self.freed.notify_one();
        change
    }
}

/// The right to take one message.
pub(crate) struct Pass {
    gate: Arc<Gate>,
    /// It holds a token.
    token: bool,
    /// When its message was started.
    started: Option<Instant>,
    /// Its place has been given back.
    over: bool,
}

impl Pass {
    fn with_token(mut self) -> Self {
        self.token = true;
        self
    }

    /// There is a message.
    pub(crate) fn started(&mut self) {
        self.token = false;
        self.started = Some(Instant::now());
    }

    /// The message has its outcome, or waits for another attempt.
    pub(crate) fn ended(mut self, outcome: Outcome) -> Option<LimitChange> {
        let took = self.started.map_or(Duration::ZERO, |started| started.elapsed());
        self.over = true;
        self.gate.free(took, outcome)
    }
}

impl Drop for Pass {
    /// Nothing was started, or its worker has died.
    fn drop(&mut self) {
        if self.over {
            return;
        }
        if self.token
            && let Some(bucket) = &self.gate.bucket
        {
            bucket.lock().give_back();
        }
        let _ = self.gate.free(Duration::ZERO, Outcome::Ignored);
    }
}

fn at_least_one(messages: usize) -> Result<usize, SpawnError> {
    let range = "at least 1";
    let none = SpawnError::OutOfRange { setting: "concurrency", value: 0, range };
    if messages == 0 { Err(none) } else { Ok(messages) }
}

impl Places {
    fn new(at_once: AtOnce) -> Result<Self, SpawnError> {
        match at_once {
            AtOnce::Fixed(limit) => {
                Ok(Self::Fixed { limit: at_least_one(limit)?, taken: 0, held_back: 0 })
            }
            AtOnce::Adaptive(settings) => {
                AdaptiveLimit::new(settings).map(|limit| Self::Adaptive(Box::new(limit)))
            }
        }
    }

    fn take(&mut self) -> bool {
        match self {
            Self::Fixed { limit, taken, .. } if *taken < *limit => {
                *taken += 1;
                true
            }
            Self::Fixed { held_back, .. } => {
                *held_back += 1;
                false
            }
            Self::Adaptive(limit) => limit.try_start(),
        }
    }

    fn free(&mut self, now: Duration, latency: Duration, outcome: Outcome) -> Option<LimitChange> {
        match self {
            Self::Fixed { taken, .. } => {
                *taken -= 1;
                None
            }
            Self::Adaptive(limit) => limit.finish(now, latency, outcome),
        }
    }

    fn stats(&self) -> LimitStats {
        match self {
            Self::Fixed { limit, held_back, .. } => {
                LimitStats { limit: Some(*limit), would_be_limit: None, held_back: *held_back }
            }
            Self::Adaptive(adaptive) => {
                let report = adaptive.report();
                let obeyed = report.mode == Mode::Enforce;
                LimitStats {
                    limit: obeyed.then_some(report.limit),
                    would_be_limit: (!obeyed).then_some(report.limit),
                    held_back: report.held_back,
                }
            }
        }
    }
}
