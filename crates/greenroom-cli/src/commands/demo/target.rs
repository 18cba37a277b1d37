//! Where messages go: it takes its time, fails where it is flaky, and writes down what it has seen.

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

/// What a message of any other key takes.
const QUICK_WORK: Duration = Duration::from_millis(1);
/// What a message of the slow key takes.
pub(super) const SLOW_WORK: Duration = Duration::from_millis(200);
/// What part of all attempts a flaky target refuses.
const REFUSED: f64 = 0.05;
/// What part it accepts without anybody hearing of it.
const UNHEARD: f64 = 0.005;

/// The target of one side.
pub(super) struct Target {
    /// What it has seen.
    pub(super) ledger: Ledger,
    /// From arrival to handled: of the slow key, and of all others.
    pub(super) slow: Latencies,
    /// The same of all others.
    pub(super) others: Latencies,
    /// Attempts that were refused.
    pub(super) refused: AtomicU64,
    /// Attempts whose answer was lost.
    pub(super) unheard: AtomicU64,
    /// Decides about failures, where there are any.
    chance: Option<Mutex<Chance>>,
    /// When the first message could arrive.
    started: Instant,
}

impl Target {
    /// A target that fails by chance from this seed on, or never.
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
    fn take(&self, arrival: Arrival) -> Taken<'_> {
        Taken::Later(Box::pin(self.deliver(arrival)))
    }
}
