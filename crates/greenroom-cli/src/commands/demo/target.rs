//! The destination of messages: it takes time, fails if it is flaky, and records every message.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use greenroom_bus::source::generator::zipf::Chance;
use tokio::time::{Instant, sleep};

use super::{
    arrivals::{self, SLOW},
    ledger::Ledger,
};
use crate::{
    commands::trial::{Arrival, Failed, Taken, Takes},
    latencies::Latencies,
};

/// The time for a message of any other key.
const QUICK_WORK: Duration = Duration::from_millis(1);
/// The time for a message of the slow key.
pub(super) const SLOW_WORK: Duration = Duration::from_millis(200);
/// The fraction of attempts that a flaky target refuses.
const REFUSED: f64 = 0.05;
/// The fraction that it accepts, but whose answer is lost.
const UNHEARD: f64 = 0.005;

/// The target of one side.
pub(super) struct Target {
    /// The messages that it received.
    pub(super) ledger: Ledger,
    /// From arrival to handled, for the slow key.
    pub(super) slow: Latencies,
    /// The same for all others.
    pub(super) others: Latencies,
    /// Attempts that were refused.
    pub(super) refused: AtomicU64,
    /// Attempts whose answer was lost.
    pub(super) unheard: AtomicU64,
    /// Decides on failures, if it is flaky.
    chance: Option<Mutex<Chance>>,
    /// When the first message could arrive.
    started: Instant,
}

impl Target {
    /// A target that fails at random from this seed, or never.
    pub(super) fn new(flaky: Option<u64>, started: Instant) -> Self {
        Self {
            ledger: Ledger::new(arrivals::keys()),
            slow: Latencies::new(),
            others: Latencies::new(),
            refused: AtomicU64::new(0),
            unheard: AtomicU64::new(0),
            chance: flaky.map(|seed| Mutex::new(Chance::new(seed))),
            started,
        }
    }

    /// Takes a message.
    pub(super) async fn deliver(&self, arrival: Arrival) -> Result<(), Failed> {
        let key = arrival.key.unwrap_or(SLOW);
        sleep(if key == SLOW { SLOW_WORK } else { QUICK_WORK }).await;
        let failed = self.failure();
        if failed == Some(Failed::Refused) {
            self.refused.fetch_add(1, Relaxed);
            return Err(Failed::Refused);
        }
        self.ledger.saw(key, arrival.number);
        if failed == Some(Failed::Unheard) {
            self.unheard.fetch_add(1, Relaxed);
            return Err(Failed::Unheard);
        }
        let of = if key == SLOW { &self.slow } else { &self.others };
        of.record(self.started.elapsed().saturating_sub(arrival.due));
        Ok(())
    }

    fn failure(&self) -> Option<Failed> {
        let chance = self.chance.as_ref()?;
        match chance.lock().unwrap_or_else(PoisonError::into_inner).unit() {
            part if part < REFUSED => Some(Failed::Refused),
            part if part < REFUSED + UNHEARD => Some(Failed::Unheard),
            _ => None,
        }
    }
}

impl Takes for Target {
    fn take(&self, _slot: usize, arrival: Arrival) -> Taken<'_> {
        Taken::Later(Box::pin(self.deliver(arrival)))
    }
}
