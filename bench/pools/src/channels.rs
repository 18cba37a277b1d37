//! The baseline: what people write by hand, a task and a bounded tokio channel for each worker.

use tokio::sync::mpsc::{self, Sender};

use crate::{
    Failure,
    message::{Counters, Message, Worker},
    stage::Stage,
    work::Work,
};

/// Messages that may wait for one worker, on either side.
pub const MAILBOX: usize = 1_000;

/// Spawns a task for each worker and returns what senders hold.
pub fn spawn(
    stage: &Stage,
    counters: &Counters,
    workers: usize,
    mailbox: usize,
    work: Work,
) -> Result<Vec<Sender<Message>>, Failure> {
    (0..workers)
        .map(|index| {
            let worker = Worker::new(counters.of(index), work);
            let (sender, mut inbox) = mpsc::channel(mailbox);
            stage.spawn(async move {
                while let Some(message) = inbox.recv().await {
                    worker.take(&message);
                }
            })?;
            Ok(sender)
        })
        .collect()
}
