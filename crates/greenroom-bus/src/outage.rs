//! An outage: since when something does not work, and which attempt probes whether it works again.
//!
//! ```text
//!        what begins one is for others to say       the wait is over: one probes
//!  none ─────────────────────────────────▶ waiting ─────────────────────────────▶ probing
//!   ▲                                         ▲                                    │   │
//!   │                                         └──── it failed, or said nothing ────┘   │
//!   └──────────────────────────────────────────────── it succeeded ────────────────────┘
//! ```
//!
//! Handlers, circuit breakers and outputs that are paused have an `Option` of one each. Requests of
//! an output queue for the probe, so that each has its turn.

use greenroom::Backoff;
use tokio::time::Instant;

/// An outage, from the failure that begins it until something succeeds.
#[derive(Debug)]
pub struct Outage {
    /// When the failure came that began it.
    pub since: Instant,
    /// The last error.
    pub error: String,
    /// When the next probe is due.
    pub next_probe: Instant,
    /// How many failures there were.
    failures: u32,
    /// A probe is under way. It [ends](Self::ends_probe) in any case.
    probing: bool,
}

impl Outage {
    /// A failure begins an outage, or prolongs it: the next probe is due after the wait that
    /// `waits` names, with `chance`, from 0 to 1, as its jitter. Attempts that were under way when
    /// the outage began may all fail before the probe is due, and prolong nothing. A probe that is
    /// under way stays one.
    pub fn fails(
        outage: &mut Option<Self>,
        error: &str,
        waits: &Backoff,
        chance: f64,
        now: Instant,
    ) {
        let outage = outage.get_or_insert_with(|| Self {
            since: now,
            error: String::new(),
            next_probe: now,
            failures: 0,
            probing: false,
        });
        error.clone_into(&mut outage.error);
        if outage.failures > 0 && now < outage.next_probe {
            return;
        }
        outage.failures = outage.failures.saturating_add(1);
        outage.next_probe = now + waits.wait(outage.failures, chance);
    }

    /// True for one attempt at a time, which is to find out whether it works again. Unless it
    /// succeeds, it has to [end](Self::ends_probe).
    pub fn try_probe(&mut self, now: Instant) -> bool {
        let probes = !self.probing && now >= self.next_probe;
        self.probing |= probes;
        probes
    }

    /// A probe has failed, or ended without an answer: another may probe once it is due.
    pub fn ends_probe(&mut self) {
        self.probing = false;
    }

    /// A probe is under way.
    pub fn is_probed(&self) -> bool {
        self.probing
    }
}
