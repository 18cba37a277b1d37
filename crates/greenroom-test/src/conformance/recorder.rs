//! The handler of every check: records each attempt in the ledger, and follows the plan.

use std::{future::pending, sync::Arc};

use greenroom_bus::{
    event::Event,
    handler::{Attempt, Failure, Handler, HandlerFactory, HandlerResult, Handling, Outputs},
};
use tokio::time::sleep;

use super::{
    ledger::{Ledger, Mark},
    plan::Plan,
};

#[derive(Clone)]
pub(super) struct Recorder {
    ledger: Arc<Ledger>,
    plan: Arc<Plan>,
}

impl Recorder {
    pub(super) fn new(ledger: &Arc<Ledger>, plan: Plan) -> Self {
        Self { ledger: ledger.clone(), plan: Arc::new(plan) }
    }
}

impl HandlerFactory for Recorder {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(self.clone()))
    }
}

impl Handler for Recorder {
    fn handle<'a>(&'a mut self, event: &'a Event, attempt: &'a Attempt) -> Handling<'a> {
        Handling::Later(Box::pin(attempt_at(self, event, attempt.number)))
    }
}

/// In a handler's hands until it is dropped, even by a stop or with its runtime.
struct InHand<'a>(&'a Ledger, Mark);

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        self.0.lets_go(self.1);
    }
}

async fn attempt_at(recorder: &Recorder, event: &Event, attempt: u32) -> HandlerResult {
    let Recorder { ledger, plan } = recorder;
    let Some(mark) = event.local::<Mark>().copied() else {
        ledger.fails(format!("{} was handled, and its source did not give it", event.id()));
        return Ok(Outputs::None);
    };
    ledger.starts(mark, attempt);
    let _in_hand = InHand(ledger, mark);
    let deed = plan.deed(event.id(), attempt);
    if deed.is_stuck {
        pending::<()>().await;
    }
    if let Some(gate) = &plan.gate {
        // It is never closed.
        let _ = gate.acquire().await.map(|permit| permit.forget());
    }
    if !deed.latency.is_zero() {
        sleep(deed.latency).await;
    }
    if deed.fails { Err(Failure::retry("on purpose")) } else { Ok(Outputs::None) }
}
