//! The gate of a pool with limits: a worker passes it before it takes a message.
//!
//! ```text
//! worker without a pass ──▶ line ──▶ first in line: a place among those in hand, then a token ──▶ takes a message
//!                                    └── both are waited for here, without a shard or a key ──┘
//! ```
//!
//! Workers wait in line in the order of their arrival, and only the first waits for a token, so a
//! token wakes one worker. A pass that finds no message is given back, and so is that of a worker
//! that dies.
//!
//! The price: a waiting worker is not idle, and each worker that is woken for more work joins the
//! line. A pool without limits pays a branch; one that may get limits later pays a branch and a
//! load.
//!
//! Limits come and go while workers run: the holder of a pass has counted itself among the messages
//! in hand, whether there was a limit or not, and a message that passed without a limit continues
//! alongside those that the limit counts.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use greenroom_queue::lock::Mutex;
use tokio::{sync::Notify, time::Instant};

use super::{Adaptive, AdaptiveLimit, LimitChange, Mode, Outcome, Rate, TokenBucket};
use crate::{SpawnError, size::check_range};

/// How many messages may be in hand at once.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AtOnce {
    Fixed(usize),
    Adaptive(Adaptive),
}

/// The gate of one pool.
pub(crate) struct Gate {
    start: Instant,
    /// Held by the first in line.
    line: tokio::sync::Mutex<()>,
    /// Taken before `at_once`, if both are.
    bucket: Mutex<Option<TokenBucket>>,
    at_once: Mutex<InHandLimit>,
    /// Whether there is a limit. Written under both locks.
    engaged: AtomicBool,
    /// Messages are started in the order of their shares, whatever else limits them. Written under
    /// both locks.
    shared: AtomicBool,
    /// Notified when a place or a token is given back.
    freed: Notify,
}

enum InHandLimit {
    /// Without a limit, it counts the passes that are held.
    Fixed {
        limit: Option<usize>,
        taken: usize,
        held_back: u64,
    },
    Adaptive(Box<AdaptiveLimit>),
}

/// The current state of a pool's limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LimitStats {
    /// How many messages may be in hand at once, if that is limited.
    pub limit: Option<usize>,
    /// How many would be allowed, if an adaptive limit is only observed.
    pub would_be_limit: Option<usize>,
    /// How often a worker had to wait for a place, or would have had to.
    pub held_back: u64,
}

impl Gate {
    /// `None` for a pool without limits, unless some may come later.
    pub(crate) fn new(
        rate: Option<Rate>,
        at_once: Option<AtOnce>,
        adjustable: bool,
        shared: bool,
    ) -> Result<Option<Arc<Self>>, SpawnError> {
        let engaged = rate.is_some() || at_once.is_some() || shared;
        if !engaged && !adjustable {
            return Ok(None);
        }
        let bucket = rate.map(full).transpose()?;
        let at_once = InHandLimit::new(at_once)?;
        Ok(Some(Arc::new(Self {
            start: Instant::now(),
            line: tokio::sync::Mutex::new(()),
            bucket: Mutex::new(bucket),
            at_once: Mutex::new(at_once),
            engaged: AtomicBool::new(engaged),
            shared: AtomicBool::new(shared),
            freed: Notify::new(),
        })))
    }

    /// Whether there is a limit now. Checked before each message.
    pub(crate) fn is_engaged(&self) -> bool {
        self.engaged.load(Ordering::Relaxed)
    }

    /// A pass, if the line is empty and there is no need to wait.
    pub(crate) fn try_pass(self: &Arc<Self>) -> Option<Pass> {
        let _first = self.line.try_lock().ok()?;
        let mut pass = self.try_place()?;
        pass.token = self.try_token().ok()?;
        Some(pass)
    }

    /// Waits in line, for a place and a token.
    ///
    /// # Cancel safety
    /// A dropped future has given back its place, its token, and its turn in line.
    pub(crate) async fn pass(self: &Arc<Self>) -> Pass {
        let _first = self.line.lock().await;
        let mut pass = loop {
            let freed = self.freed.notified();
            match self.try_place() {
                Some(pass) => break pass,
                None => freed.await,
            }
        };
        loop {
            let freed = self.freed.notified();
            match self.try_token() {
                Ok(token) => {
                    pass.token = token;
                    return pass;
                }
                // Or until one is given back.
                Err(at) => drop(tokio::time::timeout_at(at, freed).await),
            }
        }
    }

    fn try_place(self: &Arc<Self>) -> Option<Pass> {
        let taken = self.at_once.lock().take();
        taken.then(|| Pass { gate: self.clone(), token: false, started: None, over: false })
    }

    /// Whether it took one: without a rate, none is needed.
    fn try_token(&self) -> Result<bool, Instant> {
        let mut bucket = self.bucket.lock();
        let Some(bucket) = &mut *bucket else { return Ok(false) };
        match bucket.try_acquire(self.now()) {
            true => Ok(true),
            false => Err(self.start + bucket.next_at()),
        }
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Changes the rate from now on, or takes it away.
    pub(crate) fn set_rate(&self, rate: Option<Rate>) -> Result<bool, SpawnError> {
        let mut bucket = self.bucket.lock();
        match (&mut *bucket, rate) {
            (Some(bucket), Some(rate)) => bucket.set(self.now(), rate, rate.burst())?,
            (None, Some(rate)) => *bucket = Some(full(rate)?),
            (_, None) => *bucket = None,
        }
        self.changed(&bucket, &self.at_once.lock());
        Ok(true)
    }

    /// Changes how many messages may be in hand at once, or removes that limit. False if the pool
    /// has an adaptive limit.
    pub(crate) fn set_concurrency(&self, messages: Option<usize>) -> Result<bool, SpawnError> {
        let bucket = self.bucket.lock();
        let mut places = self.at_once.lock();
        let InHandLimit::Fixed { limit, .. } = &mut *places else { return Ok(false) };
        *limit = messages.map(at_least_one).transpose()?;
        self.changed(&bucket, &places);
        Ok(true)
    }

    /// Whether messages are started in the order of their shares.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared.load(Ordering::Relaxed)
    }

    /// Sets whether messages are started in the order of their shares.
    pub(crate) fn set_shared(&self, shared: bool) {
        let (bucket, places) = (self.bucket.lock(), self.at_once.lock());
        self.shared.store(shared, Ordering::Relaxed);
        self.changed(&bucket, &places);
    }

    /// The first in line may be waiting for a time or a place of the old limit.
    fn changed(&self, bucket: &Option<TokenBucket>, places: &InHandLimit) {
        let unlimited = matches!(places, InHandLimit::Fixed { limit: None, .. });
        let engaged = bucket.is_some() || !unlimited || self.is_shared();
        self.engaged.store(engaged, Ordering::Relaxed);
        self.freed.notify_one();
    }

    pub(crate) fn stats(&self) -> LimitStats {
        self.at_once.lock().stats()
    }

    fn free(&self, latency: Duration, outcome: Outcome) -> Option<LimitChange> {
        let change = self.at_once.lock().free(self.now(), latency, outcome);
        self.freed.notify_one();
        change
    }
}

/// The right to take one message.
pub(crate) struct Pass {
    gate: Arc<Gate>,
    /// Whether it holds a token.
    token: bool,
    /// The start time of its message.
    started: Option<Instant>,
    /// Whether its place has been given back.
    over: bool,
}

impl Pass {
    /// Marks the start of a message.
    pub(crate) fn started(&mut self) {
        self.started = Some(Instant::now());
    }

    /// The message was withdrawn before it began: the pass serves the next one.
    pub(crate) fn not_started(&mut self) {
        self.started = None;
    }

    /// The message has been settled, or waits for a retry.
    pub(crate) fn ended(mut self, outcome: Outcome) -> Option<LimitChange> {
        let took = self.started.map_or(Duration::ZERO, |started| started.elapsed());
        self.over = true;
        self.gate.free(took, outcome)
    }
}

impl Drop for Pass {
    /// Nothing was started, or the worker has died.
    fn drop(&mut self) {
        if self.over {
            return;
        }
        if self.token
            && self.started.is_none()
            && let Some(bucket) = &mut *self.gate.bucket.lock()
        {
            bucket.give_back();
        }
        let _ = self.gate.free(Duration::ZERO, Outcome::Ignored);
    }
}

/// The number of messages that may start at once after a pause.
fn full(rate: Rate) -> Result<TokenBucket, SpawnError> {
    TokenBucket::new(rate, rate.burst())
}

fn at_least_one(messages: usize) -> Result<usize, SpawnError> {
    check_range(messages > 0, "concurrency", messages, "at least 1").map(|()| messages)
}

impl InHandLimit {
    fn new(at_once: Option<AtOnce>) -> Result<Self, SpawnError> {
        let limit = match at_once {
            Some(AtOnce::Adaptive(settings)) => {
                return Ok(Self::Adaptive(Box::new(AdaptiveLimit::new(settings)?)));
            }
            Some(AtOnce::Fixed(limit)) => Some(at_least_one(limit)?),
            None => None,
        };
        Ok(Self::Fixed { limit, taken: 0, held_back: 0 })
    }

    fn take(&mut self) -> bool {
        match self {
            Self::Fixed { limit, taken, .. } if limit.is_none_or(|limit| *taken < limit) => {
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
                LimitStats { limit: *limit, would_be_limit: None, held_back: *held_back }
            }
            Self::Adaptive(adaptive) => {
                let obeyed = adaptive.settings.mode == Mode::Enforce;
                LimitStats {
                    limit: obeyed.then(|| adaptive.limit()),
                    would_be_limit: (!obeyed).then(|| adaptive.limit()),
                    held_back: adaptive.held_back,
                }
            }
        }
    }
}
