//! How far one consumer has come in this run: told by settlements, stored by commits.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use super::{
    consumers::Stored,
    shared::{Durable, Held, Shared},
};
use crate::{
    BoxFuture,
    settlement::Settled,
    source::{
        Committer, Partition, PartitionStanding, Receipts, Resumed, SourceError, Standing, Taken,
    },
    watermark::{Epoch, Received, Snapshot, Watermark},
};

/// Events that may be taken beyond what was stored last: four of the largest batches. When half of
/// it is used, the next commit is due, so that reading does not wait for it.
const AHEAD: u64 = 16_384;

/// With so many events settled since the last commit, the next one is due: what a crash repeats
/// stays few.
const SETTLED: u64 = 4_096;

/// Shared by the source, by the settlements of its events and by whoever commits.
#[derive(Clone)]
pub(super) struct LogPositions(Arc<Inner>);

struct Inner {
    log: Arc<Shared>,
    consumer: String,
    name: String,
    epoch: Epoch,
    resumed: Option<Resumed>,
    durable: watch::Receiver<Durable>,
    /// Until another source may read for the consumer: from then on nothing is stored.
    held: Mutex<Option<Held>>,
    state: Mutex<State>,
    /// Locked by one commit at a time.
    committing: Mutex<()>,
    /// Told when the next commit should not wait for its time.
    due: Notify,
    /// Told when a commit was stored.
    room: Notify,
}

struct State {
    watermark: Watermark,
    /// Events below this may be taken: what is stored says so.
    room_below: u64,
    /// The same of what is being stored.
    promised: u64,
    /// With so many events settled, the next commit is due.
    due_at: u64,
    /// The source waits for room up to this event.
    wanted: u64,
    /// Nothing more will be taken.
    ended: bool,
    /// `due` was told since the last commit.
    is_due: bool,
}

impl LogPositions {
    pub(super) fn new(
        (log, held): (Arc<Shared>, Held),
        (consumer, name): (String, String),
        (stored, is_new): (&Stored, bool),
    ) -> Self {
        let durable = log.durable();
        let resumed = (!is_new).then(|| resumed(stored, durable.borrow().next));
        let mut watermark = Watermark::default();
        let epoch = watermark.assign(&stored.positions);
        let state = State {
            watermark,
            room_below: stored.taken_below,
            promised: stored.taken_below,
            due_at: SETTLED,
            wanted: 0,
            ended: false,
            is_due: false,
        };
        Self(Arc::new(Inner {
            log,
            consumer,
            name,
            epoch,
            resumed,
            durable,
            held: Mutex::new(Some(held)),
            state: Mutex::new(state),
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
        loop {
            let mut stored = std::pin::pin!(self.0.room.notified());
            stored.as_mut().enable();
            {
                let mut state = self.0.state.lock();
                state.wanted = state.wanted.max(sequence + 1);
                if sequence < state.room_below {
                    return state.room_below;
                }
            }
            self.0.due.notify_one();
            stored.await;
        }
    }

    /// These are taken. What is done is taken out.
    pub(super) fn received(&self, taken: &mut Vec<Taken>) {
        let state = &mut *self.0.state.lock();
        taken.retain(|item| state.watermark.receive(item.position) == Received::New);
        if state.promised.saturating_sub(state.watermark.next()) < AHEAD / 2 {
            state.tell_due(&self.0.due);
        }
    }

    /// Nothing more will be taken.
    pub(super) fn end(&self) {
        self.0.state.lock().ended = true;
    }

    fn snapshot(&self) -> Option<(Snapshot, u64)> {
        let state = &mut *self.0.state.lock();
        state.is_due = false;
        state.due_at = state.watermark.counts().settled + SETTLED;
        state.promised = state.next_room();
        let snapshot = state.watermark.snapshot()?;
        Some((snapshot, state.promised))
    }

    /// Takes as long as the disk takes.
    fn store(&self) -> std::io::Result<()> {
        let _one_at_a_time = self.0.committing.lock();
        // Kept to the end of this, whoever gives it back meanwhile.
        let Some(_held) = self.0.held.lock().clone() else { return Ok(()) };
        let Some((snapshot, room)) = self.snapshot() else { return Ok(()) };
        let stored = Stored { positions: snapshot.positions().clone(), taken_below: room };
        self.0.log.store_consumer(&self.0.consumer, stored)?;
        let mut state = self.0.state.lock();
        state.watermark.confirm(&snapshot);
        state.room_below = room;
        drop(state);
        self.0.room.notify_waiters();
        Ok(())
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

/// What an earlier run has left, in a log that ends before `end`.
fn resumed(stored: &Stored, end: u64) -> Resumed {
    let positions = &stored.positions;
    let taken = stored.taken_below.min(end).saturating_sub(positions.next());
    Resumed {
        partitions: 1,
        files: 0,
        done: positions.count_done(),
        again_at_most: positions.count_open() + taken,
    }
}

impl State {
    fn tell_due(&mut self, due: &Notify) {
        if !std::mem::replace(&mut self.is_due, true) {
            due.notify_one();
        }
    }

    /// Up to where events may be taken once the next commit is stored.
    fn next_room(&self) -> u64 {
        let next = self.watermark.next();
        if self.ended { next } else { (next + AHEAD).max(self.wanted) }
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
        let state = &mut *self.0.state.lock();
        if !how.is_acknowledged() {
            state.watermark.refuse(self.0.epoch, position);
            return;
        }
        state.watermark.settle(self.0.epoch, position);
        if state.watermark.counts().settled >= state.due_at {
            state.tell_due(&self.0.due);
        }
    }
}

impl Committer for LogPositions {
    fn commit<'a>(&'a self) -> BoxFuture<'a, Result<(), SourceError>> {
        let positions = self.clone();
        Box::pin(async move {
            match tokio::task::spawn_blocking(move || positions.store()).await {
                Ok(stored) => stored.map_err(|error| self.failed(error)),
                Err(panicked) => Err(self.failed(panicked)),
            }
        })
    }

    fn due<'a>(&'a self) -> BoxFuture<'a, ()> {
        Box::pin(self.0.due.notified())
    }

    fn end(&self) {
        self.0.give_back();
    }

    fn standing(&self) -> Standing {
        let state = self.0.state.lock();
        Standing {
            resumed: self.0.resumed,
            skipped: state.watermark.counts().skipped,
            repeated_at_most: state.watermark.repeated_at_most(),
        }
    }

    fn partitions(&self) -> Vec<PartitionStanding> {
        let end = self.0.durable.borrow().next;
        let state = self.0.state.lock();
        let next = state.watermark.next();
        vec![PartitionStanding {
            partition: Partition::ONLY,
            epoch: self.0.epoch,
            next,
            oldest_open: state.watermark.lowest(),
            lag: Some(end.saturating_sub(next)),
        }]
    }
}
