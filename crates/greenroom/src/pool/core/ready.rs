//! Callers that wait until so many workers run.

use std::{hash::Hash, sync::atomic::Ordering, time::Duration};

use super::Core;
use crate::{
    Actor,
    pool::{
        clock::timed::{self, later},
        membership::{not_ready::NotReady, slot_state::Status},
    },
};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// Resolves once so many workers run.
    pub(crate) async fn ready(&self, wanted: usize, within: Duration) -> Result<(), NotReady> {
        let deadline = later(within);
        loop {
            let before = self.membership.starts.count();
            let missing = wanted.saturating_sub(self.live_slots()) as u64;
            if missing == 0 || self.lifecycle.check_running().is_err() {
                return self.is_ready(wanted);
            }
            let enough = before.saturating_add(missing);
            let started =
                self.membership.starts.reach(enough, || self.lifecycle.check_running().is_err());
            if timed::until(&self.env.runtime, deadline, started).await.is_err() {
                return self.is_ready(wanted);
            }
        }
    }

    /// Slots keep their state when the pool has ended, but their workers are gone.
    fn live_slots(&self) -> usize {
        // Pairs with the store in `end`: otherwise slots of a pool that has ended count as workers.
        if self.lifecycle.ended.load(Ordering::SeqCst) {
            return 0;
        }
        self.membership
            .slots
            .iter()
            .filter(|slot_state| slot_state.status() == Status::Live)
            .count()
    }

    /// Looks once more: at the deadline, the last may have started just now.
    fn is_ready(&self, wanted: usize) -> Result<(), NotReady> {
        let (live, stopped) = (self.live_slots(), self.lifecycle.check_running().is_err());
        if live >= wanted && !stopped {
            return Ok(());
        }
        let last_error = self.membership.starts.last_error();
        Err(NotReady { wanted, live, last_error, stopped })
    }
}
