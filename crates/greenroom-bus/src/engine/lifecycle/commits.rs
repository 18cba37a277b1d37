//! Inputs that keep their positions have them stored: as often as the input or its source says,
//! when much has happened since, and at the end.
//!
//! An event is reported to its source when it is settled, which is after its outputs or its dead
//! letter were stored. So everything that a commit covers is safe.

use std::{sync::Arc, time::Duration};

use greenroom_config::plural;
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval, timeout},
};

use crate::{
    engine::intake::{
        input::Input,
        inputs::{Arrival, Inputs},
    },
    source::{Committer, Resumed},
};

/// How long a commit that is under way at the end may take to stop. It may still be stored.
const LET_GO: Duration = Duration::from_millis(50);

/// An input and its committer.
#[derive(Clone)]
struct CommittedInput {
    input: Arc<Input>,
    committer: Arc<dyn Committer>,
}

/// The commits of a run. Dropped, it makes no more.
pub(crate) struct Commits {
    kept: Vec<CommittedInput>,
    /// One for each of them.
    tasks: JoinSet<()>,
}

impl Commits {
    pub(crate) fn new() -> Self {
        Self { kept: Vec::new(), tasks: JoinSet::new() }
    }

    /// Asks inputs that are about to be read which of them keep positions, passes on the positions
    /// that they found, and begins.
    pub(crate) fn begin(&mut self, inputs: &Inputs, arrivals: &mut [Arrival]) {
        let before = self.kept.len();
        for arrival in arrivals {
            let Some(committer) = arrival.source.committer() else { continue };
            let input = inputs.get(arrival.place);
            input.keeps_positions(committer.clone());
            let kept = CommittedInput { input, committer };
            self.tasks.spawn(keep(kept.clone()));
            self.kept.push(kept);
        }
        tell_resumed(&self.kept[before..]);
    }

    /// Makes no more commits on its own. The run makes the remaining last commits, and gets all of
    /// them.
    pub(crate) async fn end(mut self) -> Vec<LastCommit> {
        // A commit that blocks its thread does not delay the end.
        let _ = timeout(LET_GO, self.tasks.shutdown()).await;
        let last = |CommittedInput { input, committer }| {
            let is_made = !input.is_keeping();
            LastCommit { input: input.name(), committer, is_made }
        };
        self.kept.into_iter().map(last).collect()
    }
}

/// The last commit and the report of an input that keeps its positions, at the end of its run.
pub(crate) struct LastCommit {
    /// The name of the input.
    pub(crate) input: Arc<str>,
    pub(crate) committer: Arc<dyn Committer>,
    /// All that it gave was settled before, and is stored.
    pub(crate) is_made: bool,
}

fn tell_resumed(kept: &[CommittedInput]) {
    let found = kept.iter().filter_map(|kept| kept.committer.standing().resumed);
    let Some(found) = found.reduce(|a, b| a + b) else { return };
    let Resumed { partitions, files, done, again_at_most } = found;
    let of_files = if files > partitions { format!(" ({files} files)") } else { String::new() };
    tracing::info!(
        "resumed: {}{of_files}, {} remembered, at most {again_at_most} delivered again",
        plural(partitions as usize, "partition"),
        plural(done as usize, "done event")
    );
}

/// Stops an input whose positions are not stored any more because a commit has panicked.
struct StopsByPanic(Arc<Input>);

impl Drop for StopsByPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let why = || "storing its positions panicked; please report this".to_owned();
            self.0.stop.stop(why);
        }
    }
}

/// Until it fails, or the run ends, or all that the input gave is settled and stored: then its name
/// is free, and the next input of that name keeps positions of its own.
async fn keep(CommittedInput { input, committer }: CommittedInput) {
    let _stops = StopsByPanic(input.clone());
    let mut ticks = interval(input.commits_every().unwrap_or_else(|| committer.every()));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let is_done = tokio::select! {
            _ = ticks.tick() => false,
            () = committer.due() => false,
            () = input.done() => true,
        };
        if let Err(error) = committer.commit().await {
            return input.stop.stop(|| error.reason);
        }
        if is_done {
            committer.end();
            return input.keeps_none();
        }
    }
}
