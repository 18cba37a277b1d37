//! The source that reads a broker.

use std::sync::Arc;

use greenroom_bus::{
    source::{Committer, Lease, Partition, Pull, Pulling, Receipts, Resumed, Source, Taken},
    wait::wait_until,
    watermark::Epoch,
};

use super::{
    committer::{Commits, Heard, resumed},
    log::Log,
    state::Shared,
};

/// Reads all assigned partitions, until another source replaces it.
pub(super) struct Member {
    shared: Shared,
    /// Its number among the sources of its broker.
    number: u64,
    resumed: Option<Resumed>,
    /// The partition of the last pull.
    last: (Partition, Epoch),
}

impl Member {
    /// Replaces the source before it.
    pub(super) fn join(shared: Shared) -> Self {
        let (number, resumed) = shared.change(|state| {
            let resumed = resumed(state.logs.values());
            state.member += 1;
            state.paused.clear();
            state.logs.values_mut().filter(|log| log.is_wanted).for_each(Log::assign);
            (state.member, resumed)
        });
        Self { shared, number, resumed, last: (Partition::ONLY, Epoch::default()) }
    }

    fn next(&mut self, into: &mut Vec<Taken>) -> Option<Pull> {
        let mut state = self.shared.0.state.lock();
        if state.member != self.number {
            return Some(Pull::End);
        }
        if state.any_leaves() {
            return Some(Pull::Revoke);
        }
        let Some(partition) = state.give(into) else {
            return state.is_over().then_some(Pull::End);
        };
        self.last = (partition, state.log(partition).epoch().unwrap_or_default());
        drop(state);
        self.shared.0.changed.notify_waiters();
        Some(Pull::More)
    }
}

/// Marks the source as pulled, until it is dropped.
struct Asked {
    shared: Shared,
    member: u64,
}

impl Asked {
    fn by(member: &Member) -> Self {
        let asked = Self { shared: member.shared.clone(), member: member.number };
        asked.set(true);
        asked
    }

    fn set(&self, is_asked: bool) {
        let mut state = self.shared.0.state.lock();
        if state.member == self.member {
            state.is_asked = is_asked;
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.set(false);
    }
}

impl Source for Member {
    fn describe(&self) -> String {
        "broker".to_owned()
    }

    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>) -> Pulling<'a> {
        Box::pin(async move {
            let _asked = Asked::by(self);
            let shared = self.shared.clone();
            Ok(wait_until(&shared.0.changed, || self.next(into)).await)
        })
    }

    fn replayable(&self) -> bool {
        true
    }

    fn lease(&self) -> Option<Arc<Lease>> {
        self.shared.0.lease.get().cloned()
    }

    fn committer(&mut self) -> Option<Arc<dyn Committer>> {
        Some(Commits::new(&self.shared, self.number, self.resumed))
    }

    fn receipts(&self) -> Option<Arc<dyn Receipts>> {
        let (partition, epoch) = self.last;
        Some(Heard::new(&self.shared, partition, epoch))
    }

    fn is_partitioned(&self) -> bool {
        true
    }

    fn partition(&self) -> Partition {
        self.last.0
    }

    fn set_paused(&mut self, paused: &[Partition]) {
        self.shared.change(|state| state.paused = paused.to_vec());
    }

    fn revoking(&mut self) -> Vec<Partition> {
        self.shared.change(|state| {
            let leaving = state.logs.iter_mut().filter(|(_, log)| log.leaves());
            let leaving = leaving.map(|(partition, log)| {
                log.is_leaving = true;
                *partition
            });
            leaving.collect()
        })
    }

    fn revoked(&mut self, partition: Partition) {
        self.shared.change(|state| {
            let log = state.log(partition);
            if !log.is_leaving {
                let what = format!("partition {partition} was answered, and is not taken away");
                return state.misuse.push(what);
            }
            log.leave();
            if log.is_wanted {
                log.assign();
            }
            state.revoked.push(partition);
        });
    }
}
