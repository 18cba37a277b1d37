//! The circuit of a handler: an outage is not a poison message (D09).
//!
//! ```text
//!        enough failures in a row, over two events or more       refused, or broken
//!  Up ───────────────────────────────────────────────────▶ Down ◀──────────────────── Up
//!   ▲                                                       │ one event probes at a time,
//!   └──────────────── a probe that succeeds ────────────────┘ the others wait uncounted
//! ```
//!
//! Two thresholds make an outage: a number of failures, and a time of nothing but failures. If
//! events come too slowly for either, a failure that would give up an event counts too. While
//! inputs are read, no event is given up as long as its handler has had nothing but failures,
//! including those of other events, since the event's first failure. If it is the only event, the
//! two cases cannot be told apart: its last attempt waits until another event succeeds, or until
//! the time has passed that makes an outage of several events. Once the inputs have ended, no slow
//! event is to come: only the number and the time decide, and a few events that always fail end a
//! short run soon.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use greenroom::Backoff;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::origin::OriginId;
use crate::{engine::config::OutageConfig, handler::FailureKind, outage::Outage};

/// The waits between probes.
const PROBES: Backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(5));

/// How long events wait before they ask again whether the outage is over. With them all coming back
/// within this time, a success releases them all.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// How long the last attempt of the only event that fails may wait for another one, however long a
/// window is set.
const ALONE: Duration = Duration::from_secs(10);

/// The outage of a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutageView {
    /// For how long it has lasted.
    pub lasted: Duration,
    /// The last error.
    pub error: String,
    /// Its cause.
    pub cause: OutageCause,
}

/// The cause of an outage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutageCause {
    /// Attempts have only failed.
    #[default]
    Failures,
    /// The target refuses greenroom itself (401, 403): only other credentials help.
    Refused,
    /// The program that the handler runs does not work, and has to be corrected.
    Broken,
}

impl OutageCause {
    pub(crate) fn from_failure(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Pause => Self::Refused,
            FailureKind::Broken => Self::Broken,
            _ => Self::Failures,
        }
    }
}

/// The health of one handler.
#[derive(Debug)]
pub(crate) struct Circuit {
    config: OutageConfig,
    /// True if the state below is anything but untroubled: read without the lock for each event.
    troubled: AtomicBool,
    state: Mutex<State>,
}

/// Failures of a handler without a success between them: a number that grows with each success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Streak(u64);

/// An attempt that failed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failing<'a> {
    pub(crate) event: OriginId,
    pub(crate) cause: OutageCause,
    pub(crate) error: &'a str,
    pub(crate) probe: bool,
    /// Attempts that are left after it.
    pub(crate) left: u32,
    /// The streak of its event's first failure, if this is not the first.
    pub(crate) since: Option<Streak>,
    /// Inputs are read: others may come.
    pub(crate) others_may_come: bool,
}

#[derive(Debug, Default)]
struct State {
    streak: u64,
    /// The last streak that was an outage.
    outage: Option<u64>,
    /// Failed attempts since the last success.
    failures: u32,
    /// When the first of them ended.
    since: Option<Instant>,
    /// The event that failed first, and whether another has failed too.
    first_event: Option<OriginId>,
    several: bool,
    down: Option<Outage>,
    /// Of the last answer in an outage.
    cause: OutageCause,
}

impl State {
    /// Counts a failure. True when they have become an outage.
    fn failed(&mut self, config: &OutageConfig, event: OriginId, now: Instant) -> bool {
        self.failures = self.failures.saturating_add(1);
        let since = *self.since.get_or_insert(now);
        let first = *self.first_event.get_or_insert(event);
        self.several |= first != event;
        let many = self.failures >= config.failures;
        let long = now.duration_since(since) >= config.window;
        self.several && (many || long)
    }

    /// For how long there was nothing but failures.
    fn lasted(&self, now: Instant) -> Duration {
        self.since.map_or(Duration::ZERO, |since| now.duration_since(since))
    }

    fn goes_down(&mut self, error: &str, cause: OutageCause, now: Instant) {
        Outage::fails(&mut self.down, error, &PROBES, 1.0, now);
        self.cause = cause;
    }
}

/// Whether an event may be attempted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Go ahead.
    Attempt,
    /// The handler is in outage; this attempt finds out whether it still is.
    Probe,
    /// The handler is in outage: ask again after this.
    Wait(Duration),
}

/// Whose fault a failed attempt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blame {
    /// The event's: the attempt counts.
    Event,
    /// The cause is not known yet: the attempt counts, and the next one, which is the last, waits
    /// for at least this long.
    Unknown(Duration),
    /// The handler's, since this attempt.
    NewOutage,
    /// The handler's, for longer.
    Outage,
}

impl Circuit {
    pub(crate) fn new(config: OutageConfig) -> Self {
        Self::from_streak(config, 0)
    }

    /// As `new`; its first streak has this number.
    pub(crate) fn from_streak(config: OutageConfig, streak: u64) -> Self {
        let state = Mutex::new(State { streak, ..State::default() });
        Self { config, troubled: AtomicBool::new(false), state }
    }

    /// Like [`admit`](Self::admit), now. Reads the clock only if there is trouble.
    pub(crate) fn admit_now(&self) -> Admission {
        match self.is_troubled() {
            true => self.admit(Instant::now()),
            false => Admission::Attempt,
        }
    }

    /// Asks before an attempt. A probe must be reported as succeeded, failed or cancelled.
    pub(crate) fn admit(&self, now: Instant) -> Admission {
        if !self.troubled.load(Ordering::Relaxed) {
            return Admission::Attempt;
        }
        let mut state = self.state.lock();
        let Some(down) = &mut state.down else { return Admission::Attempt };
        if down.try_probe(now) {
            return Admission::Probe;
        }
        let until = down.next_probe.saturating_duration_since(now);
        Admission::Wait(until.clamp(Duration::from_millis(10), ASK_AGAIN))
    }

    /// True if there is a streak of failures that a success would end.
    pub(crate) fn is_troubled(&self) -> bool {
        self.troubled.load(Ordering::Relaxed)
    }

    /// An attempt reached the other side, and the handler itself has said so. True when that ended
    /// an outage.
    pub(crate) fn succeeded(&self) -> bool {
        if !self.is_troubled() {
            return false;
        }
        let mut state = self.state.lock();
        let ended = state.down.is_some();
        let outage = if ended { Some(state.streak) } else { state.outage };
        *state = State { streak: state.streak + 1, outage, ..State::default() };
        self.troubled.store(false, Ordering::Relaxed);
        ended
    }

    /// The current streak of failures since the last success. Earlier failures of an event, the
    /// first of them `since`, are forgiven if an outage has ended in between: then true.
    pub(crate) fn streak(&self, since: Option<Streak>) -> (Streak, bool) {
        let state = self.state.lock();
        let forgiven = since.zip(state.outage).is_some_and(|(since, outage)| since.0 <= outage);
        (Streak(state.streak), forgiven)
    }

    /// True if an attempt has succeeded since this failure, the first one of an event.
    pub(crate) fn has_worked_since(&self, failure: Option<Streak>) -> bool {
        failure.is_some_and(|failure| failure.0 != self.state.lock().streak)
    }

    /// An attempt failed. Attempts that began before the outage do not prolong it: only a `probe`
    /// does.
    pub(crate) fn failed(&self, failing: Failing<'_>, now: Instant) -> Blame {
        self.failed_among(failing, false, now)
    }

    /// As `failed`. If most others like it are in outage, so it is, too.
    pub(crate) fn failed_among(
        &self,
        failing: Failing<'_>,
        others_are_down: bool,
        now: Instant,
    ) -> Blame {
        let Failing { event, cause, error, probe, .. } = failing;
        let mut state = self.state.lock();
        self.troubled.store(true, Ordering::Relaxed);
        if state.down.is_some() {
            if probe {
                state.down.iter_mut().for_each(Outage::ends_probe);
                state.goes_down(error, cause, now);
            }
            return Blame::Outage;
        }
        let many = state.failed(&self.config, event, now) || others_are_down;
        if !many && cause == OutageCause::Failures {
            let only_failures = failing.since.is_none_or(|since| since.0 == state.streak);
            let undecided = self.config.window.min(ALONE).saturating_sub(state.lasted(now));
            match failing.left {
                0 if only_failures && state.several && failing.others_may_come => {}
                1 if only_failures && failing.others_may_come && !undecided.is_zero() => {
                    return Blame::Unknown(undecided);
                }
                _ => return Blame::Event,
            }
        }
        state.goes_down(error, cause, now);
        Blame::NewOutage
    }

    /// A probe ended without an answer: it panicked, was dropped, or was given
    /// back. Another may probe.
    pub(crate) fn probe_cancelled(&self) {
        if let Some(down) = &mut self.state.lock().down {
            down.ends_probe();
        }
    }

    pub(crate) fn is_down(&self) -> bool {
        self.is_troubled() && self.state.lock().down.is_some()
    }

    /// The outage, if there is one.
    pub(crate) fn view(&self) -> Option<OutageView> {
        let state = self.state.lock();
        let down = state.down.as_ref()?;
        let (lasted, error) = (down.since.elapsed(), down.error.clone());
        Some(OutageView { lasted, error, cause: state.cause })
    }
}

/// The right to probe a handler in outage, where the attempt has it. Dropped, whatever ended the
/// attempt (a panic, a stop, an answer that says nothing), it passes to another event.
pub(crate) struct Probe(pub(crate) Option<Arc<Circuit>>);

impl Probe {
    /// The attempt has failed, and reports that itself. True if it was a probe.
    pub(crate) fn done(mut self) -> bool {
        self.0.take().is_some()
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        if let Some(outage) = &self.0 {
            outage.probe_cancelled();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outage() -> (Circuit, Instant) {
        (Circuit::new(OutageConfig { failures: 3, ..OutageConfig::default() }), Instant::now())
    }

    fn fail(outage: &Circuit, event: u64, now: Instant) -> Blame {
        outage.failed(failing(event), now)
    }

    fn failing(event: u64) -> Failing<'static> {
        Failing {
            event: OriginId { input: 0, assigned: 0, at: event },
            cause: OutageCause::Failures,
            error: "503",
            probe: false,
            left: 9,
            since: None,
            others_may_come: true,
        }
    }

    #[test]
    fn d09_failures_of_one_event_are_no_outage() {
        let (outage, now) = outage();
        for n in 0..100 {
            assert_eq!(fail(&outage, 1, now + Duration::from_secs(n)), Blame::Event);
        }
        assert_eq!(fail(&outage, 2, now), Blame::NewOutage, "the second event makes it one");
        assert_eq!(fail(&outage, 2, now), Blame::Outage);
    }

    #[test]
    fn d09_failures_in_a_row_over_two_events_are() {
        let (outage, now) = outage();
        assert_eq!(fail(&outage, 1, now), Blame::Event);
        assert_eq!(fail(&outage, 2, now), Blame::Event);
        assert!(!outage.succeeded());
        assert_eq!(fail(&outage, 1, now), Blame::Event);
        assert_eq!(fail(&outage, 2, now), Blame::Event);
        assert_eq!(fail(&outage, 1, now), Blame::NewOutage);
    }

    #[test]
    fn d09_failures_only_for_the_window_are() {
        let (outage, now) = outage();
        assert_eq!(fail(&outage, 1, now), Blame::Event);
        assert_eq!(fail(&outage, 2, now + Duration::from_secs(10)), Blame::NewOutage);
    }

    #[test]
    fn d09_no_event_is_given_up_while_there_is_nothing_but_failures_of_several() {
        let outage = Circuit::new(OutageConfig::default());
        let now = Instant::now();
        let since = Some(outage.streak(None).0);
        assert_eq!(fail(&outage, 1, now), Blame::Event);
        let before_the_last = Failing { left: 1, since, ..failing(1) };
        let (later, latest) = (now + Duration::from_secs(3), now + Duration::from_secs(10));
        let wait = Blame::Unknown(Duration::from_secs(7));
        assert_eq!(outage.failed(before_the_last, later), wait, "it is the only one");
        let alone = Failing { others_may_come: false, ..before_the_last };
        assert_eq!(outage.failed(alone, later), Blame::Event, "and nobody will tell");
        assert_eq!(outage.failed(before_the_last, latest), Blame::Event);
        let last = Failing { left: 0, ..before_the_last };
        assert_eq!(outage.failed(last, latest), Blame::Event, "it is still the only one");
        assert_eq!(fail(&outage, 2, later), Blame::Event);
        let ended = Failing { others_may_come: false, ..last };
        assert_eq!(outage.failed(ended, later), Blame::Event, "these few are all there are");
        assert_eq!(outage.failed(last, later), Blame::NewOutage, "another one has failed as well");
    }

    #[test]
    fn d09_an_event_is_given_up_where_others_have_succeeded_since_its_first_failure() {
        let outage = Circuit::new(OutageConfig::default());
        let now = Instant::now();
        let since = Some(outage.streak(None).0);
        assert_eq!(fail(&outage, 1, now), Blame::Event);
        assert!(!outage.succeeded());
        assert_eq!(fail(&outage, 2, now), Blame::Event);
        assert_eq!(outage.failed(Failing { left: 0, since, ..failing(1) }, now), Blame::Event);
    }

    #[test]
    fn d09_one_event_probes_at_a_time_and_a_success_releases_all() {
        let (outage, now) = outage();
        let refused = |probe, at| {
            outage.failed(Failing { cause: OutageCause::Refused, probe, ..failing(1) }, at)
        };
        assert_eq!(refused(false, now), Blame::NewOutage, "refused: no event is blamed");
        assert!(matches!(outage.admit(now), Admission::Wait(_)));
        let later = now + Duration::from_secs(1);
        assert_eq!(outage.admit(later), Admission::Probe);
        assert!(matches!(outage.admit(later), Admission::Wait(_)));
        outage.probe_cancelled();
        assert_eq!(outage.admit(later), Admission::Probe);
        assert_eq!(refused(true, later), Blame::Outage);
        assert!(matches!(outage.admit(later), Admission::Wait(_)));
        let latest = later + Duration::from_secs(1);
        assert_eq!(outage.admit(latest), Admission::Probe);
        assert!(outage.view().is_some());
        assert!(outage.succeeded());
        assert_eq!(outage.admit(latest), Admission::Attempt);
        assert_eq!(outage.admit(latest), Admission::Attempt);
    }

    #[test]
    fn d09_attempts_from_before_the_outage_neither_delay_nor_double_the_probe() {
        let (outage, now) = outage();
        let refused = Failing { cause: OutageCause::Refused, ..failing(1) };
        assert_eq!(outage.failed(refused, now), Blame::NewOutage);
        for event in 0..50 {
            assert_eq!(fail(&outage, event, now), Blame::Outage);
        }
        let later = now + PROBES.wait(1, 1.0);
        assert_eq!(outage.admit(later), Admission::Probe);
        assert_eq!(fail(&outage, 51, later), Blame::Outage);
        assert!(matches!(outage.admit(later), Admission::Wait(_)), "the probe is still under way");
    }
}
