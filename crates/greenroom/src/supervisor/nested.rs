//! A supervisor under a supervisor.

use std::{sync::Arc, time::Duration};

use super::{
    Supervisor,
    child::{
        Child, ChildFuture, ExitReporter,
        sealed::{Adopted, Sealed},
    },
    keeper::Keeper,
    plan::Fall,
};
use crate::{Stop, pool::StopSummary};

/// When it gives up, it goes down with all its children, keeps them, and leaves the decision
/// to its own supervisor.
struct Nested(Arc<Keeper>);

impl Sealed for Supervisor {
    fn into_child(self) -> Adopted {
        Adopted(Arc::new(Nested(self.keeper(Fall::Suspend))))
    }
}

impl Child for Nested {
    fn name(&self) -> Arc<str> {
        self.0.name.clone()
    }

    fn start(&self, exits: ExitReporter) -> ChildFuture<'_, Result<(), String>> {
        Box::pin(async move {
            // If this is dropped, the run goes on until it gets the next order.
            let started = self.0.start(Some(exits)).await;
            started.map_err(|error| error.to_string())
        })
    }

    fn suspend(&self, patience: Duration) -> ChildFuture<'_, ()> {
        Box::pin(self.0.suspend(patience))
    }

    fn disable(&self, patience: Duration) -> ChildFuture<'_, ()> {
        Box::pin(self.0.disable(patience))
    }

    fn stop(&self, how: Stop) -> ChildFuture<'_, StopSummary> {
        Box::pin(async move { self.0.stop(how).await.summary() })
    }
}
