//! The shares of a pool: looked at, limited, held and paused.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use greenroom::shares::{Share, ShareLimits, ShareStatus, Shares};
use tokio::time::Instant;

use super::PoolControl;
use crate::engine::{
    account::order_audit::OrderLine,
    control::change::ChangeError,
    process::{circuit::OutageView, worker::BusWorker},
};

/// The shares of a pool of a running engine. Changes last until the end of the run.
pub struct PoolSharesControl {
    pool: PoolControl,
    shares: Shares<BusWorker>,
}

/// A share that waits for a resume.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PausedShare {
    /// Its name.
    pub share: Arc<str>,
    /// True if its target wants nothing more, and no operator has paused it.
    pub by_target: bool,
    /// Its events that wait in the pool or beside it.
    pub waiting: usize,
}

impl PausedShare {
    /// This many events of a share wait.
    pub fn new(share: impl Into<Arc<str>>, by_target: bool, waiting: usize) -> Self {
        Self { share: share.into(), by_target, waiting }
    }
}

impl PoolControl {
    /// Its shares; `None` if its events have none.
    pub fn shares(&self) -> Option<PoolSharesControl> {
        let shares = self.managed().admin.shares().ok()?;
        Some(PoolSharesControl { pool: self.clone(), shares })
    }
}

impl PoolSharesControl {
    /// The shares that have events, or of which something is set, held or paused, in no order.
    /// Looks at every waiting event.
    pub fn list(&self) -> Vec<ShareStatus> {
        self.shares.list()
    }

    /// How many attempts each share has in hand that has any.
    pub fn in_hand(&self) -> HashMap<Share, usize> {
        self.shares.in_hand()
    }

    /// Time in hand of all of them together.
    pub fn time_in_hand(&self) -> Duration {
        self.shares.time_in_hand()
    }

    /// One of them.
    pub fn status(&self, share: &str) -> ShareStatus {
        self.shares.status(share)
    }

    /// The most events of one share in the pool.
    pub fn share_queue(&self) -> usize {
        self.pool.settings().rooms.as_ref().map_or(usize::MAX, |rooms| rooms.bound())
    }

    /// How many events it has had, if none of them had a share: `share_by` finds nothing in them.
    pub fn all_nameless(&self) -> Option<u64> {
        self.pool.settings().rooms.as_ref()?.all_nameless()
    }

    /// The number of events of this share beside the pool: its room there is used up.
    pub fn beside(&self, share: &Share) -> usize {
        let name = (*share != Share::COMMON).then(|| share.to_string().into());
        self.pool.settings().rooms.as_ref().map_or(0, |rooms| rooms.beside(&name))
    }

    /// The longest outage of this share at a handler of the pool, if shares are told apart.
    pub fn outage(&self, share: &Share) -> Option<OutageView> {
        let name = (*share != Share::COMMON).then(|| share.to_string().into());
        let handlers = self.pool.control.shared.process.handlers.iter();
        let here = handlers.filter(|handler| handler.pool == self.pool.place);
        let outages = here.filter_map(|handler| handler.circuits.share_outage(&name));
        outages.max_by_key(|outage| outage.lasted)
    }

    /// The limits of shares without limits of their own.
    pub fn defaults(&self) -> ShareLimits {
        self.shares.defaults()
    }

    /// Changes the limits of this share.
    ///
    /// # Errors
    /// A limit is out of range.
    pub fn set(&self, share: &str, limits: ShareLimits) -> Result<(), ChangeError> {
        self.pool.done(self.shares.set(share, limits))?;
        self.pool.settings().shares.note(share, Some(limits));
        Ok(())
    }

    /// Gives this share the limits of the configuration again.
    pub fn reset(&self, share: &str) {
        self.pool.settings().shares.note(share, None);
        match self.pool.settings().shares.named().get(share) {
            // They were in range before.
            Some(limits) => drop(self.shares.set(share, *limits)),
            None => self.shares.unset(share),
        }
    }

    /// Limits of its own were given to this share, by the configuration or by hand.
    pub fn has_own_limits(&self, share: &Share) -> bool {
        self.pool.settings().shares.has_limits(&share.to_string())
    }

    /// The limits that were set by hand.
    pub fn by_hand(&self) -> BTreeMap<Arc<str>, ShareLimits> {
        self.pool.settings().shares.by_hand()
    }

    /// The shares that wait for a resume, those with the most waiting events first.
    pub fn paused(&self) -> Vec<PausedShare> {
        let (by_hand, gone) = self.pool.settings().shares.stopped();
        let rooms = self.pool.settings().rooms.as_ref();
        let waiting =
            |share: &Arc<str>| rooms.map_or(0, |rooms| rooms.waiting(&Some(share.clone())));
        let gone = gone.into_iter().filter(|share| !by_hand.contains(share)).map(|one| (one, true));
        let all = by_hand.iter().cloned().map(|share| (share, false)).chain(gone);
        let seen = all
            .map(|(share, by_target)| PausedShare::new(share.clone(), by_target, waiting(&share)));
        let mut seen: Vec<_> = seen.collect();
        seen.sort_by_key(|paused| Reverse(paused.waiting));
        seen
    }

    /// Attempts nothing of this share for so long; then one attempt probes.
    pub fn hold(&self, share: &str, during: Duration) {
        self.pool.settings().shares.is_back(share);
        self.shares.hold(share, Instant::now() + during);
    }

    /// Attempts nothing of this share until it is resumed.
    pub fn pause(&self, share: &str) {
        self.pool.settings().shares.is_paused(share);
        self.shares.pause(share);
    }

    /// Ends a pause and a hold.
    pub fn resume(&self, share: &str) {
        self.pool.settings().shares.is_resumed(share);
        self.shares.resume(share);
    }

    /// Changes the limits of the configuration. Limits that were set by hand stay.
    ///
    /// # Errors
    /// A limit is out of range.
    pub fn configure(
        &self,
        defaults: ShareLimits,
        named: BTreeMap<Arc<str>, ShareLimits>,
    ) -> Result<(), ChangeError> {
        self.pool.done(self.shares.set_defaults(defaults))?;
        self.pool.settings().config.lock().share_limits = defaults;
        let by_hand = self.by_hand();
        for (share, limits) in named.iter().filter(|(share, _)| !by_hand.contains_key(*share)) {
            self.pool.done(self.shares.set(share.clone(), *limits))?;
        }
        let before = self.pool.settings().shares.rename(named.clone());
        let is_left =
            |share: &&Arc<str>| !named.contains_key(*share) && !by_hand.contains_key(*share);
        before.keys().filter(is_left).for_each(|share| self.shares.unset(share.clone()));
        Ok(())
    }

    /// The share of the first event that waits of this line, in the pool or beside it.
    pub(crate) fn status_of_line(&self, line: &OrderLine) -> Option<ShareStatus> {
        let mut found = None;
        self.pool.managed().admin.withdraw(|job| {
            if found.is_none() && job.line.as_ref() == Some(line) {
                found = Some(Share::from(job.share().cloned()));
            }
            false
        });
        let rooms = self.pool.settings().rooms.as_ref();
        let found = found.or_else(|| rooms?.aside(line).map(Share::from));
        found.map(|share| self.shares.status(share))
    }
}
