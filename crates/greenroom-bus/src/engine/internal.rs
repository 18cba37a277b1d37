//! An engine without inputs: what a router needs to run its pools by itself.

use std::{sync::Arc, time::Duration};

pub(crate) use super::Parts;
use super::{
    BuildError, Engine, RunReport,
    ledger::{Batch, Ticket},
};
pub(crate) use super::{
    intake::JobAddress,
    shared::{Job, Origin, Produced, Shared},
    waiting::gone,
};
use crate::{dead_letter::DeadLetterStore, router::Router};

/// What events are called that callers give to a router, where an input would be named.
const CALLERS: &str = "router";

pub(crate) async fn without_inputs(
    router: Router,
    dead_letters: Arc<dyn DeadLetterStore>,
) -> Result<Parts, BuildError> {
    let engine = Engine::builder().router(router).dead_letters(dead_letters);
    Ok(engine.build_for(CALLERS).await?.parts)
}

impl Parts {
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn address(&self, pool: usize) -> JobAddress {
        self.pools[pool].address()
    }

    /// Handles what was given, and ends.
    pub(crate) async fn stop(mut self, deadline: Duration) -> RunReport {
        self.deadline = deadline;
        self.control().drain();
        Engine { parts: self }.run().await
    }
}

/// The settlement of one event in the ledger.
pub(crate) fn ticket(shared: &Shared) -> Ticket {
    Ticket { batch: Batch::of_caller(&shared.ledger), bytes: 0, line: None }
}
