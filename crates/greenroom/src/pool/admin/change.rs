//! A change of a pool's size, and its result.

use std::{collections::BTreeSet, time::Duration};

use tokio::{runtime::Handle, sync::mpsc};

use crate::pool::clock::timed::{self, later};

/// The result for one slot.
#[derive(Debug)]
pub(crate) enum SlotOutcome {
    Started(usize),
    StartFailed(usize, String),
    Left(usize),
}

/// Receives the results of slots.
pub(crate) type Outcomes = mpsc::UnboundedSender<SlotOutcome>;

/// A change of size that has begun. It continues even if its result is not awaited.
#[derive(Debug)]
#[must_use = "the change has only begun; `done` tells what came of it"]
pub struct Change {
    added: Vec<usize>,
    removed: Vec<usize>,
    size: usize,
    outcomes: mpsc::UnboundedReceiver<SlotOutcome>,
    /// The runtime on which the pool was spawned.
    runtime: Handle,
}

/// The result of a change at its deadline.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ChangeReport {
    /// Slots whose workers run.
    pub started: Vec<usize>,
    /// Slots whose workers could not be started, and why. They remain, and are retried with
    /// backoff.
    pub failed: Vec<(usize, String)>,
    /// Slots whose workers have gone.
    pub left: Vec<usize>,
    /// Slots that had not reported by the deadline: still starting, or busy with the
    /// message in hand.
    pub pending: Vec<usize>,
}

impl Change {
    pub(crate) fn new(
        added: Vec<usize>,
        removed: Vec<usize>,
        size: usize,
        outcomes: mpsc::UnboundedReceiver<SlotOutcome>,
        runtime: &Handle,
    ) -> Self {
        Self { added, removed, size, outcomes, runtime: runtime.clone() }
    }

    /// Slots in which workers are being started.
    pub fn added(&self) -> &[usize] {
        &self.added
    }

    /// Slots whose workers were told to leave. They may be fewer than requested, if there were no
    /// more.
    pub fn removed(&self) -> &[usize] {
        &self.removed
    }

    /// The size of the pool with this change.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Waits until all of it is done, or until the deadline, and reports exactly what happened.
    ///
    /// # Cancel safety
    /// The change continues; its outcome is no longer reported.
    pub async fn done(mut self, deadline: Duration) -> ChangeReport {
        let deadline = later(deadline);
        let mut report = ChangeReport::default();
        let mut pending: BTreeSet<usize> =
            self.added.iter().chain(&self.removed).copied().collect();
        while !pending.is_empty()
            && let Ok(Some(outcome)) =
                timed::until(&self.runtime, deadline, self.outcomes.recv()).await
        {
            pending.remove(&report.note(outcome));
        }
        report.pending = pending.into_iter().collect();
        report.started.sort_unstable();
        report
    }
}

impl ChangeReport {
    fn note(&mut self, outcome: SlotOutcome) -> usize {
        match outcome {
            SlotOutcome::Started(slot) => {
                self.started.push(slot);
                slot
            }
            SlotOutcome::StartFailed(slot, why) => {
                self.failed.push((slot, why));
                slot
            }
            SlotOutcome::Left(slot) => {
                self.left.push(slot);
                slot
            }
        }
    }

    /// True if everything that was requested has happened.
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty() && self.pending.is_empty()
    }
}
