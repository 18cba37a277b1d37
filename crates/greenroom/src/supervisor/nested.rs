//! A supervisor under a supervisor.

use std::{sync::Arc, time::Duration};

use super::{
    Supervisor,
    child::{
        BoxFuture, Child, ExitReporter,
        sealed::{Adopted, Sealed},
    },
    keeper::Keeper,
    plan::Fall,
    runner::Command,
    terms::FOREVER,
};
use crate::{Stop, StopSummary};

/// Goes down with all its children when it gives up, keeps them, and leaves it to its own supervisor what follows.
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

    fn start(&self, exits: ExitReporter) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let given_up = GivenUp(Some(&self.0));
            let started = self.0.start(Some(exits)).await;
            given_up.not();
            started.map_err(|error| error.to_string())
        })
    }

    fn suspend(&self, patience: Duration) -> BoxFuture<'_, ()> {
        Box::pin(self.0.suspend(patience))
    }

    fn disable(&self, patience: Duration) -> BoxFuture<'_, ()> {
        Box::pin(self.0.disable(patience))
    }

    fn stop(&self, how: Stop) -> BoxFuture<'_, StopSummary> {
        Box::pin(async move { self.0.stop(how).await.summary() })
    }
}

/// A start whose future is dropped begins to go down; the order that follows sees to the end of it.
struct GivenUp<'a>(Option<&'a Keeper>);

impl GivenUp<'_> {
    fn not(mut self) {
        self.0 = None;
    }
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        if let Some(keeper) = self.0 {
            keeper.tell(Command::Suspend(FOREVER));
        }
    }
}
