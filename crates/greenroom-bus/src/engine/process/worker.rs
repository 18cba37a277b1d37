//! The workers of the engine's pools: results of successful attempts are handed on, failures are
//! left to the pool.

use std::sync::Arc;

use greenroom::{Actor, Answer, Context, Delivery, ExitReason};

use super::{
    attempt::Attempts,
    emit::emit,
    job::{BusError, PoolJob},
};
use crate::engine::{egress::outputs::View, shared::Shared};

/// One worker, with a handler of its own for each that its pool runs.
pub(crate) struct BusWorker {
    shared: Arc<Shared>,
    attempts: Attempts,
    /// The outputs, as it knows them.
    outputs: View,
}

impl BusWorker {
    pub(crate) fn new(shared: Arc<Shared>, pool: usize, slot: usize) -> Self {
        let outputs = View::new(&shared.egress.outputs);
        let attempts = Attempts::new(shared.clone(), pool, slot);
        Self { shared, attempts, outputs }
    }

    async fn receive_all(
        &mut self,
        delivery: &mut Delivery<PoolJob, (), BusError>,
        cx: &mut Context<Self>,
    ) -> Result<Answer<()>, BusError> {
        let jobs = delivery.messages_mut().collect();
        let Self { shared, attempts, outputs: known } = self;
        let results = attempts.attempt_all(jobs).await;
        // They are of one share.
        if let Some(error) = results.iter().find_map(|result| result.as_ref().err()) {
            hold_share(error, cx);
        }
        let mut results = results.into_iter();
        let first = match results.next() {
            Some(Ok(outputs)) => {
                emit(shared, known, delivery.take(), outputs).await;
                Ok(Answer::Reply(()))
            }
            Some(Err(error)) => Err(error),
            None => Ok(Answer::Deferred),
        };
        for (companion, result) in delivery.batch_items().iter_mut().zip(results) {
            let settled = match result {
                Ok(outputs) => {
                    emit(shared, known, companion.delivery().take(), outputs).await;
                    Ok(())
                }
                Err(error) => Err(error),
            };
            companion.settle(settled);
        }
        first
    }
}

impl Actor for BusWorker {
    type Message = PoolJob;
    type Reply = ();
    type Error = BusError;

    const KEEPS_MESSAGE: bool = true;

    /// Not used: [`receive`](Actor::receive) leaves the job in place until it is handled.
    async fn handle(&mut self, mut job: PoolJob, _cx: &mut Context<Self>) -> Result<(), BusError> {
        let Self { shared, attempts, outputs } = self;
        let made = attempts.attempt(&mut job).await?;
        emit(shared, outputs, job, made).await;
        Ok(())
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<PoolJob, (), BusError>,
        cx: &mut Context<Self>,
    ) -> Result<Answer<()>, BusError> {
        if !delivery.batch_items().is_empty() {
            return self.receive_all(delivery, cx).await;
        }
        let Some(job) = delivery.message_mut() else { return Ok(Answer::Deferred) };
        let Self { shared, attempts, outputs } = self;
        let made = attempts.attempt(job).await.inspect_err(|error| hold_share(error, cx))?;
        emit(shared, outputs, delivery.take(), made).await;
        Ok(Answer::Reply(()))
    }

    async fn stopped(&mut self, _reason: &ExitReason) {
        self.attempts.stop().await;
    }
}

/// Nothing of the share of the event is started for as long as the other side asks, if it does.
fn hold_share(error: &BusError, cx: &mut Context<BusWorker>) {
    if let Some((share, during)) = error.holds_share.as_deref() {
        cx.hold_share(share.clone(), *during);
    }
}
