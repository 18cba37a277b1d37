//! Callers that wait for a child to come up, or to be gone.

use std::collections::HashMap;

use tokio::sync::oneshot::Sender;

use super::{change::Change, child::ChildId, error::ChangeError};
use crate::pool::StopSummary;

type Answers<T> = HashMap<ChildId, Vec<Sender<Result<T, ChangeError>>>>;

/// A caller whose sender is dropped unanswered is told that something else came first.
#[derive(Default)]
pub(crate) struct Waiting {
    up: Answers<()>,
    gone: Answers<StopSummary>,
}

impl Waiting {
    pub(crate) fn for_up(&mut self, child: ChildId) -> Change<()> {
        wait(&mut self.up, child)
    }

    pub(crate) fn for_gone(&mut self, child: ChildId) -> Change<StopSummary> {
        wait(&mut self.gone, child)
    }

    /// A child has come up, or will not.
    pub(crate) fn up(&mut self, child: ChildId, outcome: &Result<(), ChangeError>) {
        answer(&mut self.up, child, outcome);
    }

    /// A child has stopped for good. Without a summary, it is unknown how.
    pub(crate) fn gone(&mut self, child: ChildId, summary: Option<StopSummary>) {
        answer(&mut self.gone, child, &summary.ok_or(ChangeError::Overtaken));
    }

    /// Lets go of callers whose child is not to come up any more.
    pub(crate) fn forget_overtaken(&mut self, wants_up: impl Fn(ChildId) -> bool) {
        self.up.retain(|child, _| wants_up(*child));
    }
}

fn wait<T: Clone>(answers: &mut Answers<T>, child: ChildId) -> Change<T> {
    let (change, sender) = Change::new(child);
    answers.entry(child).or_default().push(sender);
    change
}

fn answer<T: Clone>(answers: &mut Answers<T>, child: ChildId, outcome: &Result<T, ChangeError>) {
    for sender in answers.remove(&child).into_iter().flatten() {
        let _ = sender.send(outcome.clone());
    }
}
