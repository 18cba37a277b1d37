//! An outage is not a poison message (D09).
//!
//! ```text
//!        enough failures in a row, over two events or more          refused by its target
//!  Up ───────────────────────────────────────────────────▶ Down ◀───────────────────────── Up
//!   ▲                                                       │ one event probes at a time,
//!   └──────────────── a probe that succeeds ────────────────┘ the others wait uncounted
//! ```

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use greenroom::Backoff;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::config::OutageConfig;

/// The waits between probes.
const PROBES: Backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(5));

/// How long events wait before they ask again whether the outage is over. With them all coming back within this time,
/// a success releases them all.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// The health of one handler.
#[derive(Debug)]
pub(crate) struct Outage {
    config: OutageConfig,
    /// True where the state below is anything but untroubled: read without the lock for each event.
    troubled: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Failed attempts since the last success.
    failures: u32,
    /// When the first of them ended.
    since: Option<Instant>,
    /// The position of the event that failed first, and whether another has failed too.
    first_event: Option<(u32, u64)>,
    several: bool,
    down: Option<Down>,
}

#[derive(Debug)]
struct Down {
    since: Instant,
    probes: u32,
    probing: bool,
    next_probe: Instant,
    error: String,
}

/// Whether an event may be attempted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Attempt,
    /// The handler is in outage: ask again after this.
    Wait(Duration),
}

impl Outage {
    pub(crate) fn new(config: OutageConfig) -> Self {
        Self { config, troubled: AtomicBool::new(false), state: Mutex::default() }
    }

    /// Asks before an attempt. An admitted attempt must be reported as succeeded, failed or cancelled.
    pub(crate) fn admit(&self, now: Instant) -> Admission {
        if !self.troubled.load(Ordering::Relaxed) {
            return Admission::Attempt;
        }
        let mut state = self.state.lock();
        let Some(down) = &mut state.down else { return Admission::Attempt };
        if down.probing || now < down.next_probe {
            let until = down.next_probe.saturating_duration_since(now);
            return Admission::Wait(until.clamp(Duration::from_millis(10), ASK_AGAIN));
        }
        down.probing = true;
        Admission::Attempt
    }

    /// An attempt reached the other side. True when that ended an outage.
    pub(crate) fn succeeded(&self) -> bool {
        if !self.troubled.load(Ordering::Relaxed) {
            return false;
        }
        let mut state = self.state.lock();
        let ended = state.down.is_some();
        *state = State::default();
        self.troubled.store(false, Ordering::Relaxed);
        ended
    }

    /// An attempt failed. True when the handler is in outage, so that the attempt does not count.
    pub(crate) fn failed(
        &self,
        event: (u32, u64),
        refused: bool,
        error: &str,
        now: Instant,
    ) -> bool {
        let mut state = self.state.lock();
        self.troubled.store(true, Ordering::Relaxed);
        if let Some(down) = &mut state.down {
            down.probing = false;
            down.probes += 1;
            down.next_probe = now + PROBES.wait(down.probes, 1.0);
            down.error = error.to_owned();
            return true;
        }
        state.failures += 1;
        let since = *state.since.get_or_insert(now);
        let first = *state.first_event.get_or_insert(event);
        state.several |= first != event;
        let many = state.failures >= self.config.failures;
        let long = now.duration_since(since) >= self.config.window;
        if refused || (state.several && (many || long)) {
            let next_probe = now + PROBES.wait(1, 1.0);
            let error = error.to_owned();
            state.down = Some(Down { since: now, probes: 1, probing: false, next_probe, error });
        }
        state.down.is_some()
    }

    /// An attempt was cancelled: another may probe.
    pub(crate) fn cancelled(&self) {
        if self.troubled.load(Ordering::Relaxed)
            && let Some(down) = &mut self.state.lock().down
        {
            down.probing = false;
        }
    }

    /// Since when the handler has been in outage, and the last error.
    pub(crate) fn down_since(&self) -> Option<(Instant, String)> {
        let state = self.state.lock();
        state.down.as_ref().map(|down| (down.since, down.error.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outage() -> (Outage, Instant) {
        (Outage::new(OutageConfig { failures: 3, ..OutageConfig::default() }), Instant::now())
    }

    #[test]
    fn d09_failures_of_one_event_are_no_outage() {
        let (outage, now) = outage();
        for n in 0..100 {
            assert!(!outage.failed((0, 1), false, "503", now + Duration::from_secs(n)));
        }
        assert!(outage.failed((0, 2), false, "503", now), "the second event makes it one");
    }

    #[test]
    fn d09_failures_in_a_row_over_two_events_are() {
        let (outage, now) = outage();
        assert!(!outage.failed((0, 1), false, "503", now));
        assert!(!outage.failed((0, 2), false, "503", now));
        assert!(!outage.succeeded());
        assert!(!outage.failed((0, 1), false, "503", now));
        assert!(!outage.failed((0, 2), false, "503", now));
        assert!(outage.failed((0, 1), false, "503", now));
    }

    #[test]
    fn d09_one_event_probes_at_a_time_and_a_success_releases_all() {
        let (outage, now) = outage();
        assert!(outage.failed((0, 1), true, "401", now), "refused: no event is blamed");
        assert!(matches!(outage.admit(now), Admission::Wait(_)));
        let later = now + Duration::from_secs(1);
        assert_eq!(outage.admit(later), Admission::Attempt);
        assert!(matches!(outage.admit(later), Admission::Wait(_)));
        outage.cancelled();
        assert_eq!(outage.admit(later), Admission::Attempt);
        assert!(outage.failed((0, 1), false, "401", later));
        assert!(matches!(outage.admit(later), Admission::Wait(_)));
        let latest = later + Duration::from_secs(1);
        assert_eq!(outage.admit(latest), Admission::Attempt);
        assert!(outage.down_since().is_some());
        assert!(outage.succeeded());
        assert_eq!(outage.admit(latest), Admission::Attempt);
        assert_eq!(outage.admit(latest), Admission::Attempt);
    }
}
