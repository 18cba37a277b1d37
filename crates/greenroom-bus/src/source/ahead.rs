//! How far an input may be ahead of its stored positions, and when the next commit is due.
//!
//! ```text
//! done │ taken ─────────▶ next │ may be taken ──▶ room_below │ only after the next commit
//!      └─ settled, in any order
//! ```
//!
//! A crash repeats items that were taken and not stored, so a commit promises a bound on the items
//! that will be taken, and none beyond it are taken before the next commit. That is due early
//! enough that the reader does not wait for it, and whenever many items were settled, so that a
//! crash repeats few.

use tokio::sync::Notify;

use super::Taken;
use crate::{
    settlement::Settled,
    watermark::{Epoch, Positions, Received, Snapshot, Watermark},
};

/// This many may be taken beyond the last stored position: four of the largest batches. When half
/// of them are used, the next commit is due.
const AHEAD: u64 = 16_384;

/// With this many settled since the last commit, the next one is due: storing one costs less than
/// handling these.
const SETTLED: u64 = 4_096;

pub(crate) struct Ahead {
    pub(crate) watermark: Watermark,
    epoch: Epoch,
    /// Positions below this may be taken: the stored positions promise it.
    room_below: u64,
    /// The same for the commit under way.
    promised: u64,
    /// With this many settled, the next commit is due.
    due_at: u64,
    /// The source waits for room up to this position.
    wanted: u64,
    /// Nothing more will be taken.
    pub(crate) ended: bool,
    /// It was told since the last commit that the next one is due.
    is_due: bool,
}

impl Ahead {
    /// From stored positions, and the bound below which they allow others to be taken.
    pub(crate) fn from_stored(stored: &Positions, room_below: u64) -> Self {
        let mut watermark = Watermark::default();
        let epoch = watermark.assign(stored);
        Self {
            watermark,
            epoch,
            room_below,
            promised: room_below,
            due_at: SETTLED,
            wanted: 0,
            ended: false,
            is_due: false,
        }
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Below which positions others may be taken, if this one may. Otherwise the next commit makes
    /// room for it.
    pub(crate) fn room_for(&mut self, position: u64) -> Option<u64> {
        self.wanted = self.wanted.max(position + 1);
        (position < self.room_below).then_some(self.room_below)
    }

    /// These are taken. Settled ones are removed.
    pub(crate) fn received(&mut self, taken: &mut Vec<Taken>, due: &Notify) {
        taken.retain(|item| self.watermark.receive(item.position) == Received::New);
        if self.promised.saturating_sub(self.watermark.next()) < AHEAD / 2 {
            self.tell_due(due);
        }
    }

    pub(crate) fn settled(&mut self, position: u64, how: Settled, due: &Notify) {
        if !how.is_acknowledged() {
            self.watermark.refuse(self.epoch, position);
            return;
        }
        self.watermark.settle(self.epoch, position);
        if self.watermark.counts().settled >= self.due_at {
            self.tell_due(due);
        }
    }

    /// The positions that a commit is to store now, and the bound up to which it lets others be
    /// taken.
    pub(crate) fn snapshot(&mut self) -> Option<(Snapshot, u64)> {
        self.is_due = false;
        self.due_at = self.watermark.counts().settled + SETTLED;
        let next = self.watermark.next();
        self.promised = if self.ended { next } else { (next + AHEAD).max(self.wanted) };
        Some((self.watermark.snapshot()?, self.promised))
    }

    /// This is stored.
    pub(crate) fn stored(&mut self, snapshot: &Snapshot, room_below: u64) {
        self.watermark.confirm(snapshot);
        self.room_below = room_below;
    }

    fn tell_due(&mut self, due: &Notify) {
        if !std::mem::replace(&mut self.is_due, true) {
            due.notify_one();
        }
    }
}
