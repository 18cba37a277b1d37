//! A log that begins anew while it is read: its topic was deleted and made again, or it has lost
//! its newest records.
//!
//! The engine is told as if the partition had been taken away, and gives up what waits. Then an
//! epoch begins with the first record of the other log, and with what was open below it: a log
//! that has lost its newest records has that still.

use std::{ops::Range, time::Duration};

use greenroom_bus::{source::Partition, watermark::Positions};
use rdkafka::{Message, Offset, consumer::Consumer, message::BorrowedMessage};

use super::{super::shared::Part, AssignedPartition, Poller, read_to::ReadTo, rebalance::withdraw};

/// What is open of these below this position, and nothing from there on.
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
        let (name, place, before) = (&self.shared.name, &reading.place, reading.read.next);
        withdraw(&self.shared, number, reading);
        let mut watermark = reading.tracker.watermark.lock();
        let snapshot = watermark.snapshot();
        let anew = snapshot.map_or(Positions::starting_at(first), |snapshot| {
            below(snapshot.positions().open(), first)
        });
        watermark.revoke();
        drop(watermark);
        tracing::warn!(
            "{name}: partition {place} was read to offset {before}, and a later record has come at \
             {first}: its topic was made anew, or has lost records; it is read from there, and {} \
             events before that again; what else was read of it is given up",
            anew.count_open()
        );
        reading.anew = Some(anew);
    }

    /// Records come that were read before. Only where a topic is made of a copy they are others.
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

    /// Goes on once the engine has answered. True where it does.
    pub(super) fn begin_anew(&self, number: Partition, reading: &mut AssignedPartition) -> bool {
        let mut state = self.shared.state.lock();
        if state.leaving.contains_key(&number) {
            return false;
        }
        let Some(anew) = reading.anew.take() else { return false };
        let epoch = reading.tracker.watermark.lock().assign(&anew);
        state.parts.insert(number, Part::new(epoch, reading.tracker.clone()));
        drop(state);
        (reading.epoch, reading.committed, reading.full) = (epoch, None, None);
        reading.read = ReadTo::starting_at(anew.lowest());
        // Without waiting. What was fetched before comes no more.
        let from = Offset::Offset(i64::try_from(anew.lowest()).unwrap_or(i64::MAX));
        let place = &reading.place;
        if let Err(error) = self.consumer.seek(&place.topic, place.partition, from, Duration::ZERO)
        {
            self.fail(format!("partition {place} cannot be read anew: {error}"));
        }
        true
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
