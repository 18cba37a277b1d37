//! Callers that wait for a child to come up, or to be gone.

use tokio::sync::oneshot::Sender;

use super::{change::Change, child::ChildId, error::ChangeError};
use crate::pool::StopSummary;

/// Callers, each with its child. Answered and dropped under no lock, because that wakes them. A
/// caller that is dropped unanswered learns that another change came first.
pub(super) type Callers<T> = Vec<(ChildId, Sender<Result<T, ChangeError>>)>;

#[derive(Default)]
pub(super) struct Waiting {
    up: Callers<()>,
    gone: Callers<StopSummary>,
}

impl Waiting {
    pub(super) fn for_up(&mut self, child: ChildId) -> Change<()> {
        wait(&mut self.up, child)
    }

    pub(super) fn for_gone(&mut self, child: ChildId) -> Change<StopSummary> {
        wait(&mut self.gone, child)
    }

    /// A child has come up, or will not.
    pub(super) fn up(&mut self, child: ChildId) -> Callers<()> {
        self.up.extract_if(.., |(of, _)| *of == child).collect()
    }

    /// A child has stopped for good.
    pub(super) fn gone(&mut self, child: ChildId) -> Callers<StopSummary> {
        self.gone.extract_if(.., |(of, _)| *of == child).collect()
    }

    /// Callers whose child is no longer meant to come up.
    pub(super) fn overtaken(&mut self, wants_up: impl Fn(ChildId) -> bool) -> Callers<()> {
        self.up.extract_if(.., |(child, _)| !wants_up(*child)).collect()
    }
}

fn wait<T: Clone>(callers: &mut Callers<T>, child: ChildId) -> Change<T> {
    let (change, caller) = Change::new(child);
    callers.push((child, caller));
    change
}

pub(super) fn answer<T: Clone>(callers: Callers<T>, outcome: &Result<T, ChangeError>) {
    for (_, caller) in callers {
        let _ = caller.send(outcome.clone());
    }
}
