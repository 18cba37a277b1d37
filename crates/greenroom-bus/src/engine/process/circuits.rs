//! The outages of one handler: one for all of its events, or one for each share (Q07).
//!
//! Each share has a circuit of its own, of the same kind. The handler is in outage only when most
//! shares that had attempts are; then any failure of another share begins an outage of that share,
//! too. A share that works is never held up by others.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{
    circuit::{Admission, Blame, Circuit, Failing, OutageView, Streak},
    job::PoolJob,
    share_rooms::{ShareName, shrink},
};
use crate::engine::config::{OutageConfig, OutagePer};

/// How long a share is remembered after its last attempt: its events may still have failed
/// attempts from before, which do not count after an outage.
const REMEMBERED: Duration = Duration::from_secs(300);

/// The outages of one handler.
#[derive(Debug)]
pub(crate) struct Circuits {
    config: OutageConfig,
    /// For all events, if they are not told apart by share.
    all: Arc<Circuit>,
    /// A share has failed lately: read without the lock for each event.
    any: AtomicBool,
    shares: Mutex<Shares>,
}

#[derive(Debug, Default)]
struct Shares {
    /// Those that had attempts of late, once one has failed.
    known: HashMap<ShareName, KnownShare>,
    /// How many of them are in outage.
    down: usize,
    tidied: Option<Instant>,
    /// The streak that the next circuit begins with: none is used again.
    streak: u64,
}

#[derive(Debug)]
struct KnownShare {
    /// Present once the share has failed.
    circuit: Option<Arc<Circuit>>,
    last: Instant,
}

impl Shares {
    /// Most shares that had attempts are in outage.
    fn is_mostly_down(&self) -> bool {
        self.down * 2 > self.known.len()
    }

    /// Once a window, forgets shares that have had no attempt for a while. True if that found no
    /// share in trouble.
    fn tidy(&mut self, window: Duration, now: Instant) -> bool {
        if self.tidied.is_some_and(|at| now.duration_since(at) < window) {
            return false;
        }
        self.tidied = Some(now);
        let mut any = false;
        self.known.retain(|_, KnownShare { circuit, last }| {
            let is_troubled = circuit.as_ref().is_some_and(|circuit| circuit.is_troubled());
            any |= is_troubled;
            is_troubled || now.duration_since(*last) < REMEMBERED
        });
        shrink(&mut self.known);
        !any
    }
}

impl Circuits {
    pub(crate) fn new(config: OutageConfig) -> Self {
        let (all, any, shares) =
            (Arc::new(Circuit::new(config)), AtomicBool::new(false), Mutex::default());
        Self { config, all, any, shares }
    }

    fn is_by_share(&self) -> bool {
        self.config.per == OutagePer::Share
    }

    /// The circuit of a share that has failed; of all events, if shares are not told apart.
    fn known(&self, job: &PoolJob) -> Option<Arc<Circuit>> {
        if !self.is_by_share() {
            return Some(self.all.clone());
        }
        if !self.any.load(Ordering::Relaxed) {
            return None;
        }
        self.shares.lock().known.get(&job.share().cloned())?.circuit.clone()
    }

    /// Whether this event may be attempted; if as a probe, of which circuit.
    ///
    /// # Errors
    /// How long it waits before it asks again.
    pub(crate) fn admit(&self, job: &PoolJob) -> Result<Option<Arc<Circuit>>, Duration> {
        if !self.is_by_share() && !self.all.is_troubled() {
            return Ok(None);
        }
        let Some(circuit) = self.known(job) else { return Ok(None) };
        match circuit.admit_now() {
            Admission::Attempt => Ok(None),
            Admission::Probe => Ok(Some(circuit)),
            Admission::Wait(wait) => Err(wait),
        }
    }

    /// True if a success would change something.
    pub(crate) fn is_troubled(&self) -> bool {
        match self.is_by_share() {
            true => self.any.load(Ordering::Relaxed),
            false => self.all.is_troubled(),
        }
    }

    /// An attempt reached the other side, and the handler itself has said so. True when that ended
    /// an outage.
    pub(crate) fn succeeded(&self, job: &PoolJob) -> bool {
        if !self.is_by_share() {
            return self.all.succeeded();
        }
        let (now, mut shares) = (Instant::now(), self.shares.lock());
        let known = shares.known.entry(job.share().cloned());
        let known = known.or_insert_with(|| KnownShare { circuit: None, last: now });
        known.last = now;
        let circuit = known.circuit.clone();
        let ended = circuit.as_ref().is_some_and(|circuit| circuit.succeeded());
        shares.down -= usize::from(ended);
        if shares.tidy(self.config.window, now) {
            self.any.store(false, Ordering::Relaxed);
        }
        ended
    }

    /// The streak of failures that this event is in, as [`Circuit::streak`].
    pub(crate) fn streak(&self, job: &PoolJob, since: Option<Streak>) -> (Streak, bool) {
        self.circuit(job).streak(since)
    }

    /// True if an attempt of its share has succeeded since this failure, the first one of an event.
    pub(crate) fn has_worked_since(&self, job: &PoolJob, failure: Option<Streak>) -> bool {
        match self.known(job) {
            Some(circuit) => circuit.has_worked_since(failure),
            None => failure.is_some(),
        }
    }

    /// An attempt failed, as [`Circuit::failed`].
    pub(crate) fn failed(&self, job: &PoolJob, failing: Failing<'_>, now: Instant) -> Blame {
        let circuit = self.circuit(job);
        if !self.is_by_share() {
            return circuit.failed(failing, now);
        }
        let mut shares = self.shares.lock();
        let mostly_down = shares.is_mostly_down();
        let blame = circuit.failed_among(failing, mostly_down, now);
        shares.down += usize::from(blame == Blame::NewOutage);
        blame
    }

    /// The circuit of its share, made if it has none.
    fn circuit(&self, job: &PoolJob) -> Arc<Circuit> {
        if !self.is_by_share() {
            return self.all.clone();
        }
        let (now, mut shares) = (Instant::now(), self.shares.lock());
        self.any.store(true, Ordering::Relaxed);
        shares.tidy(self.config.window, now);
        shares.streak += 1;
        let streak = shares.streak;
        let known = shares.known.entry(job.share().cloned());
        let known = known.or_insert_with(|| KnownShare { circuit: None, last: now });
        known.last = now;
        known
            .circuit
            .get_or_insert_with(|| Arc::new(Circuit::from_streak(self.config, streak << 32)))
            .clone()
    }

    /// The share of this event, if shares are told apart; empty for that of events without one.
    pub(crate) fn named<'a>(&self, job: &'a PoolJob) -> Option<&'a str> {
        self.is_by_share().then(|| job.share().map_or("", |share| share))
    }

    /// True if the handler is in outage.
    pub(crate) fn is_down(&self) -> bool {
        match self.is_by_share() {
            true => self.is_troubled() && self.shares.lock().is_mostly_down(),
            false => self.all.is_down(),
        }
    }

    /// The outage of the handler, if there is one; of several of its shares, the longest.
    pub(crate) fn view(&self) -> Option<OutageView> {
        match self.is_by_share() {
            true if self.is_down() => self.longest().map(|(_, view)| view),
            true => None,
            false => self.all.view(),
        }
    }

    /// The outage of this share; of all events, if shares are not told apart.
    pub(crate) fn share_outage(&self, share: &ShareName) -> Option<OutageView> {
        if !self.is_by_share() {
            return None;
        }
        self.shares.lock().known.get(share)?.circuit.as_ref()?.view()
    }

    /// The longest outage: of the handler, or of one of its shares, which is named.
    pub(crate) fn longest(&self) -> Option<(Option<ShareName>, OutageView)> {
        if !self.is_by_share() {
            return Some((None, self.all.view()?));
        }
        let shares = self.shares.lock();
        let down = shares.known.iter().filter_map(|(share, known)| {
            Some((Some(share.clone()), known.circuit.as_ref()?.view()?))
        });
        down.max_by_key(|(_, view)| view.lasted)
    }
}
