//! A log that begins again while it is read: its topic was deleted and recreated, or it has lost
//! its newest records.
//!
//! For the engine this is a revocation of the partition, and it gives up the waiting events. Then
//! an epoch begins with the first record of the other log, and with the open offsets below it: a
//! log that has lost its newest records still has those.

use std::{
    ops::Range,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use greenroom_bus::{source::Partition, watermark::Positions};
use rdkafka::{Message, Offset, consumer::Consumer, message::BorrowedMessage};

use super::{
    super::shared::Part,
    AssignedPartition, Poller,
    read_to::{Anew, ReadTo},
    rebalance::withdraw,
};

/// The open positions below this one, and none from there on.
fn below(open: &[Range<u64>], first: u64) -> Positions {
    let cut = |range: &Range<u64>| range.start..range.end.min(first);
    let open = open.iter().map(cut).filter(|range| !range.is_empty());
    Positions::new(first, open).unwrap_or_else(|_| Positions::starting_at(first))
}

impl Poller {
    /// This is the first one of another log.
    pub(super) fn leaves_log(
        &self,
        number: Partition,
        reading: &mut AssignedPartition,
        first: &BorrowedMessage<'_>,
    ) {
        let first = first.offset().unsigned_abs();
        withdraw(&self.shared, number, reading);
        reading.tracker.is_watched.store(true, Ordering::Relaxed);
        tracing::warn!(
            "{}: partition {} was read to offset {}, and a later record has come at {first}: its \
             topic was made anew, or has lost records; it is read from there, and what is open \
             before that again; what else was read of it is given up",
            self.shared.name,
            reading.place,
            reading.read.next
        );
        reading.anew = Some(Anew { first, since: Instant::now() });
    }

    /// Records come that were read before. They differ only if a topic is restored from a copy.
    pub(super) fn tells_step_back(&self, reading: &AssignedPartition) {
        tracing::warn!(
            "{}: partition {} is read once more from before offset {}: what comes is no later than \
             what was read, and counts as done; if its topic was made anew of a copy, stop this \
             group and reset its offsets",
            self.shared.name,
            reading.place,
            reading.read.next
        );
    }

    /// Continues once the engine has answered and nothing is in hand, or the budget for that has
    /// passed. Returns whether it does.
    pub(super) fn begin_anew(&self, number: Partition, reading: &mut AssignedPartition) -> bool {
        let Some(Anew { first, since }) = reading.anew else { return false };
        let mut state = self.shared.state.lock();
        let mut watermark = reading.tracker.watermark.lock();
        let is_in_hand =
            watermark.in_hand() > 0 && since.elapsed() <= self.setup.input.drain_budget;
        if is_in_hand || state.leaving.contains_key(&number) {
            return false;
        }
        let from = watermark.snapshot().map_or(Positions::starting_at(first), |snapshot| {
            below(snapshot.positions().open(), first)
        });
        let epoch = watermark.assign(&from);
        drop(watermark);
        reading.tracker.is_watched.store(false, Ordering::Relaxed);
        state.parts.insert(number, Part::new(epoch, reading.tracker.clone()));
        drop(state);
        (reading.epoch, reading.committed, reading.full) = (epoch, None, None);
        (reading.anew, reading.read) = (None, ReadTo::starting_at(from.lowest()));
        reading.sought = Some(from.lowest());
        self.seek(reading, from.lowest());
        true
    }

    /// Whether librdkafka has gone beyond the requested offset: it may drop a seek, or make one of
    /// its own. Then the seek is repeated once; records that were removed there are not waited for.
    pub(super) fn was_sent_past(&self, reading: &mut AssignedPartition, first: u64) -> bool {
        let Some(sought) = reading.sought.take().filter(|sought| first > *sought) else {
            return false;
        };
        self.seek(reading, sought);
        true
    }

    /// Without waiting. Records that were fetched before do not come any more.
    fn seek(&self, reading: &AssignedPartition, to: u64) {
        let (place, to) = (&reading.place, i64::try_from(to).unwrap_or(i64::MAX));
        let to = Offset::Offset(to);
        if let Err(error) = self.consumer.seek(&place.topic, place.partition, to, Duration::ZERO) {
            self.fail(format!("partition {place} cannot be read anew: {error}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f10_what_is_open_below_the_first_record_of_another_log_stays_open() {
        let open = [3..5, 8..12, 20..30];
        assert_eq!(below(&open, 10).open(), [3..5, 8..10]);
        assert_eq!((below(&open, 10).next(), below(&open, 10).lowest()), (10, 3));
        assert_eq!((below(&open, 0).next(), below(&open, 0).open().len()), (0, 0));
        assert_eq!((below(&open, 3).lowest(), below(&open, 15).open().len()), (3, 2));
    }
}
