//! The runs of a supervisor: a root has one; a nested one goes down and comes up again with the
//! same children, in a new run each time. If it gives up, its own supervisor decides.

use std::{sync::Arc, time::Duration};

use tokio::sync::oneshot;

use super::{
    child::{Child, ChildFuture, ExitReporter},
    error::SupervisorError,
    keeper::{Keeper, State},
    plan::Plan,
    report::{SupervisorEnd, SupervisorReport},
    runner::Runner,
};
use crate::{Stop, pool::StopSummary};

/// Starts the children in order. If one does not start, the others are down again when this
/// returns.
///
/// # Cancel safety
/// A dropped future leaves the start in progress.
pub(super) async fn start(
    keeper: &Arc<Keeper>,
    exits: Option<ExitReporter>,
) -> Result<(), SupervisorError> {
    let (boot, booted) = oneshot::channel();
    begin(keeper, |state| state.boot = Some(boot), exits);
    let ended = booted.await.unwrap_or(Err(SupervisorEnd::Stopped));
    ended.map_err(SupervisorError::Ended)
}

/// Stops for good. The run continues to stop if the future is dropped.
pub(super) async fn stop(keeper: &Arc<Keeper>, how: Stop) -> Arc<SupervisorReport> {
    loop {
        if let Some(report) = keeper.report() {
            return report;
        }
        // Children that are down are stopped too.
        begin(keeper, |state| state.go_down(how, Plan::stop), None);
        keeper.go_down(how, Plan::stop);
        keeper.gone().await;
    }
}

/// Begins a run, if it is down. Notifies its starter once: by an error of the start, or an exit.
fn begin(keeper: &Arc<Keeper>, first: impl FnOnce(&mut State), exits: Option<ExitReporter>) {
    let Some(mut run) = keeper.begin(first) else { return };
    tokio::spawn(async move {
        let mut runner = Runner::new(run.keeper.clone());
        let end = loop {
            runner.run().await;
            if let Ok(end) = run.end() {
                break end;
            }
        };
        drop(runner);
        let reason = end.and_then(|end| end.exit_reason());
        if let (Some(exits), Some(reason)) = (exits, reason) {
            exits(reason);
        }
    });
}

impl Child for Keeper {
    fn name(&self) -> Arc<str> {
        self.name.clone()
    }

    fn start(self: Arc<Self>, exits: ExitReporter) -> ChildFuture<Result<(), String>> {
        // If this is dropped, the run continues until it gets the next order.
        Box::pin(async move { start(&self, Some(exits)).await.map_err(|error| error.to_string()) })
    }

    fn suspend(self: Arc<Self>, patience: Duration) -> ChildFuture<()> {
        Box::pin(async move {
            self.go_down(Stop::within(patience), Plan::suspend);
            self.gone().await;
        })
    }

    fn disable(self: Arc<Self>, patience: Duration) -> ChildFuture<()> {
        Box::pin(async move {
            self.clone().suspend(patience).await;
            let children = self.state.lock().plan.handles();
            for child in children.into_iter().rev() {
                child.disable(patience).await;
            }
        })
    }

    fn stop(self: Arc<Self>, how: Stop) -> ChildFuture<StopSummary> {
        Box::pin(async move { stop(&self, how).await.summary() })
    }
}
