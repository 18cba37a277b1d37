//! The head-of-line guard, as the polling thread sees it (F08).

use greenroom_bus::watermark::Told;
use greenroom_config::plural;

use super::{
    super::guard::{Guard, Moved, Moves},
    Poller,
    filling::BATCH,
};

impl Poller {
    /// Settles the moved events, and looks for more to move.
    pub(super) fn guard(&mut self) {
        let Some(mut guard) = self.guard.take() else { return };
        if let Some(moved) = guard.moved() {
            self.are_moved(&moved, guard.topic());
        }
        if guard.looks() {
            self.look_for_stuck(&mut guard);
        }
        self.guard = Some(guard);
    }

    fn are_moved(&self, Moved { moves, failed, .. }: &Moved, topic: &str) {
        let Moves { number, epoch, place, offsets, .. } = moves;
        let (name, mut count) = (&self.shared.name, 0);
        if let Some(reading) = self.reading.get(number) {
            let mut watermark = reading.tracker.watermark.lock();
            let settled = offsets.iter().map(|offset| watermark.settle(*epoch, *offset));
            // Its handler may have finished in between, or another member may own the partition.
            count = settled.filter(|told| *told == Told::Counted).count();
        }
        if count > 0 {
            let (first, last) = (offsets.iter().min(), offsets.iter().max());
            tracing::warn!(
                "{name}: partition {place} was held up: {} from offset {} to {} moved to topic \
                 {topic}",
                plural(count, "event"),
                first.copied().unwrap_or_default(),
                last.copied().unwrap_or_default()
            );
            // The commit that says so need not wait.
            self.shared.due.notify_one();
        }
        if let Some(why) = failed {
            tracing::warn!("{name}: partition {place} is held up, and stays so for now: {why}");
        }
    }

    /// The first partition that is held up, so that none takes the whole budget in one go.
    fn look_for_stuck(&mut self, guard: &mut Guard) {
        for (number, reading) in &self.reading {
            let (span, is_behind) = {
                let watermark = reading.tracker.watermark.lock();
                (watermark.next() - watermark.lowest(), watermark.expected_end().is_some())
            };
            // This many always fit; a revoked partition drains; and an event that is not in hand
            // yet cannot be settled.
            let drains = reading.queue.is_none() || reading.anew.is_some();
            if span < self.limits.sure() || drains || is_behind {
                continue;
            }
            let snapshot = reading.tracker.watermark.lock().snapshot();
            let Some(snapshot) = snapshot.filter(|of| of.epoch() == reading.epoch) else {
                continue;
            };
            let positions = snapshot.positions();
            let is_full = !self.limits.has_room(positions, BATCH as u64);
            let offsets = guard.choose(positions, &self.limits, is_full);
            if !offsets.is_empty() {
                let (place, epoch) = (reading.place.clone(), reading.epoch);
                let (number, latest) = (*number, reading.read.latest);
                return guard.moves(Moves { number, epoch, place, offsets, latest });
            }
        }
    }
}
