//! Inputs that keep their positions have them stored: once a second, when much has happened since, and at the end.
//!
//! An event is told to its source when it is settled, which is after its outputs or its dead letter were stored. So whatever
//! a commit says is done is safe.

use std::{sync::Arc, time::Duration};

use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval, timeout},
};

use super::shared::Shared;
use crate::source::{Committer, Resumed, Source};

/// How often positions are stored at least: so much work, or what the source calls due, is what a crash repeats.
const EVERY: Duration = Duration::from_secs(1);

/// How long a commit that is under way at the end may take to let go. What it stores may still be stored.
const LET_GO: Duration = Duration::from_millis(50);

/// An input by its name, with who commits.
type Named = (Arc<str>, Arc<dyn Committer>);

/// The commits of a run. Dropped, it makes no more.
pub(super) struct Commits {
    committers: Vec<Named>,
    /// One for each of them.
    tasks: JoinSet<()>,
}

impl Commits {
    /// Asks the inputs which of them keep positions, tells what they have found, and begins.
    pub(super) fn begin(shared: &Arc<Shared>, sources: &mut [Box<dyn Source>]) -> Self {
        let mut commits = Self { committers: Vec::new(), tasks: JoinSet::new() };
        for (input, source) in sources.iter_mut().enumerate() {
            let Some(committer) = source.committer() else { continue };
            commits.committers.push((shared.inputs[input].clone(), committer.clone()));
            commits.tasks.spawn(keep(shared.clone(), input, committer));
        }
        commits.tell_resumed();
        commits
    }

    fn tell_resumed(&self) {
        let found =
            self.committers.iter().filter_map(|(_, committer)| committer.standing().resumed);
        let Some(Resumed { partitions, done, again_at_most }) = found.reduce(|a, b| a + b) else {
            return;
        };
        let plural = if partitions == 1 { "" } else { "s" };
        tracing::info!(
            "resumed: {partitions} partition{plural}, {done} done events remembered, at most {again_at_most} delivered again"
        );
    }

    /// Makes no more on its own: the last ones are for the run to make.
    pub(super) async fn end(mut self) -> Vec<Named> {
        // One that blocks its thread does not hold up the end.
        let _ = timeout(LET_GO, self.tasks.shutdown()).await;
        self.committers
    }
}

/// Stops an input whose positions are not stored any more because a commit has panicked.
struct StopsByPanic(Arc<Shared>, usize);

impl Drop for StopsByPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let why = || "storing its positions panicked; please report this".to_owned();
            self.0.stops[self.1].stop(why);
        }
    }
}

/// Until it fails, or the run ends.
async fn keep(shared: Arc<Shared>, input: usize, committer: Arc<dyn Committer>) {
    let _stops = StopsByPanic(shared.clone(), input);
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = committer.due() => {}
        }
        if let Err(error) = committer.commit().await {
            return shared.stops[input].stop(|| error.reason);
        }
    }
}
