//! How far one consumer has come in this run: told by settlements, stored by commits.

use std::{sync::Arc, time::Duration};

use greenroom::Backoff;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use super::{
    consumers::StoredConsumer,
    disk::is_full,
    shared::{Durable, Held, Shared},
};
use crate::{
    BoxFuture,
    settlement::Settled,
    source::{
        Committer, LOCAL, Partition, PartitionStanding, Receipts, Resumed, SourceError, Standing,
        Taken, ahead::Ahead,
    },
    wait::wait_until,
};

/// The pauses between tries to store a position on a full disk: a person has to make room.
const AGAIN: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));

/// Shared by the source, the settlements of its events, and the task that commits.
#[derive(Clone)]
pub(super) struct LogPositions(Arc<Inner>);

struct Inner {
    log: Arc<Shared>,
    consumer: String,
    name: String,
    resumed: Option<Resumed>,
    durable: watch::Receiver<Durable>,
    /// Until another source may read for the consumer: from then on nothing is stored.
    held: Mutex<Option<Held>>,
    ahead: Mutex<Ahead>,
    /// Locked by one commit at a time.
    committing: Mutex<()>,
    /// Told when the next commit should not wait for its time.
    due: Notify,
    /// Told when a commit was stored.
    room: Notify,
}

impl LogPositions {
    pub(super) fn new(
        (log, held): (Arc<Shared>, Held),
        (consumer, name): (String, String),
        (stored, is_new): (&StoredConsumer, bool),
    ) -> Self {
        let durable = log.durable();
        let resumed = (!is_new).then(|| resumed(stored, durable.borrow().next));
        let ahead = Ahead::from_stored(&stored.positions, stored.taken_below);
        Self(Arc::new(Inner {
            log,
            consumer,
            name,
            resumed,
            durable,
            held: Mutex::new(Some(held)),
            ahead: Mutex::new(ahead),
            committing: Mutex::default(),
            due: Notify::new(),
            room: Notify::new(),
        }))
    }

    /// Waits until this event may be taken, and returns below which others may.
    ///
    /// # Cancel safety
    /// A dropped future has taken nothing.
    pub(super) async fn room_for(&self, sequence: u64) -> u64 {
        wait_until(&self.0.room, || {
            let below = self.0.ahead.lock().room_for(sequence);
            if below.is_none() {
                self.0.due.notify_one();
            }
            below
        })
        .await
    }

    /// These are taken. Settled ones are removed.
    pub(super) fn received(&self, taken: &mut Vec<Taken>) {
        self.0.ahead.lock().received(taken, &self.0.due);
    }

    /// Nothing more will be taken.
    pub(super) fn end(&self) {
        self.0.ahead.lock().ended = true;
    }

    /// Takes as long as the disk takes.
    fn store(&self) -> std::io::Result<()> {
        let _one_at_a_time = self.0.committing.lock();
        // Kept to the end of this function, even if the source gives it back in between.
        let Some(_held) = self.0.held.lock().clone() else { return Ok(()) };
        let snapshot = self.0.ahead.lock().snapshot();
        let Some((snapshot, room)) = snapshot else { return Ok(()) };
        let stored = StoredConsumer { positions: snapshot.positions().clone(), taken_below: room };
        self.0.log.store_consumer(&self.0.consumer, stored)?;
        self.0.ahead.lock().stored(&snapshot, room);
        self.0.room.notify_waiters();
        Ok(())
    }

    /// Waits until another try is due.
    async fn wait_for_room(&self, tries: u32, error: &std::io::Error) {
        let pause = AGAIN.wait(tries, rand::random());
        let trouble = format!("the position of `{}` cannot be stored: {error}", self.0.consumer);
        self.0.log.trouble.lock().unstored = Some(trouble);
        tracing::warn!(
            input = self.0.name,
            consumer = self.0.consumer,
            tries,
            again_in_ms = pause.as_millis() as u64,
            %error,
            "a position cannot be stored and is tried again: free some space. Until then nothing is removed from the log, and \
             a run after this one repeats what was handled since"
        );
        tokio::time::sleep(pause).await;
    }

    fn failed(&self, error: impl std::fmt::Display) -> SourceError {
        let reason = format!(
            "the position of the consumer `{}` cannot be stored: {error}; mend that (free space, a writable directory), then \
             run again: it goes on from the last one that was stored",
            self.0.consumer
        );
        SourceError::new(self.0.name.clone(), reason)
    }
}

/// The progress of an earlier run, in a log that ends before `end`.
fn resumed(stored: &StoredConsumer, end: u64) -> Resumed {
    let positions = &stored.positions;
    let taken = stored.taken_below.min(end).saturating_sub(positions.next());
    Resumed {
        partitions: 1,
        files: 0,
        done: positions.count_done(),
        again_at_most: positions.count_open() + taken,
    }
}

impl Inner {
    fn give_back(&self) {
        let held = self.held.lock().take();
        if held.is_some() {
            self.log.consumers.give_back(&self.consumer);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl Receipts for LogPositions {
    fn settled(&self, position: u64, how: Settled) {
        self.0.ahead.lock().settled(position, how, &self.0.due);
    }
}

impl Committer for LogPositions {
    fn commit<'a>(&'a self) -> BoxFuture<'a, Result<(), SourceError>> {
        Box::pin(async move {
            let mut tries = 0;
            loop {
                let positions = self.clone();
                let stored = tokio::task::spawn_blocking(move || positions.store()).await;
                match stored.map_err(|panicked| self.failed(panicked))? {
                    Ok(()) => break,
                    Err(error) if is_full(&error) => {
                        tries += 1;
                        self.wait_for_room(tries, &error).await;
                    }
                    Err(error) => return Err(self.failed(error)),
                }
            }
            if tries > 0 {
                self.0.log.trouble.lock().unstored = None;
                tracing::info!(input = self.0.name, "there is room again: the position is stored");
            }
            Ok(())
        })
    }

    fn due<'a>(&'a self) -> BoxFuture<'a, ()> {
        Box::pin(self.0.due.notified())
    }

    fn every(&self) -> Duration {
        LOCAL
    }

    fn end(&self) {
        self.0.give_back();
    }

    fn standing(&self) -> Standing {
        let ahead = self.0.ahead.lock();
        Standing {
            resumed: self.0.resumed,
            skipped: ahead.watermark.counts().skipped,
            repeated_at_most: ahead.watermark.repeated_at_most(),
        }
    }

    fn partitions(&self) -> Vec<PartitionStanding> {
        let end = self.0.durable.borrow().next;
        let ahead = self.0.ahead.lock();
        let next = ahead.watermark.next();
        vec![PartitionStanding {
            partition: Partition::ONLY,
            epoch: ahead.epoch(),
            next,
            oldest_open: ahead.watermark.lowest(),
            lag: Some(end.saturating_sub(next)),
            ahead: ahead.watermark.done_ahead(),
        }]
    }
}
