//! A log that begins anew while it is read: its topic was deleted and made again, or it has lost
//! its newest records.
//!
//! The engine is told as if the partition had been taken away, and gives up what waits. Then an
//! epoch begins with the first record of the other log.

use greenroom_bus::{source::Partition, watermark::Positions};
use rdkafka::{Message, message::BorrowedMessage};

use super::{
    super::shared::Part,
    AssignedPartition, Poller,
    read_to::{Anew, ReadTo},
    rebalance::withdraw,
};

impl Poller {
    /// These are the first of another log.
    pub(super) fn put_aside(
        &self,
        number: Partition,
        reading: &mut AssignedPartition,
        messages: &[BorrowedMessage<'_>],
    ) {
        let Some(first) = messages.first() else { return };
        let (name, place, before) = (&self.shared.name, &reading.place, reading.read.next);
        let open = reading.tracker.watermark.lock().in_hand();
        tracing::warn!(
            "{name}: partition {place} was read to offset {before}, and a later record has come at {}: \
             its topic was made anew, or has lost records; it is read from there; {open} events that \
             were read before are in hand",
            first.offset()
        );
        withdraw(&self.shared, number, reading);
        reading.tracker.watermark.lock().revoke();
        let mut read = ReadTo::starting_at(0);
        let len = read.read(messages).unwrap_or(messages.len());
        let taken = messages[..len].iter().map(|message| self.options.format.taken(message));
        reading.anew = Some(Anew { taken: taken.collect(), read });
    }

    /// Goes on once the engine has answered. True where it does.
    pub(super) fn begin_anew(&self, number: Partition, reading: &mut AssignedPartition) -> bool {
        let mut state = self.shared.state.lock();
        if state.leaving.contains_key(&number) {
            return false;
        }
        let Some(Anew { taken, read }) = reading.anew.take() else { return false };
        let mut watermark = reading.tracker.watermark.lock();
        let first = taken.first().map_or(read.next, |taken| taken.position);
        let epoch = watermark.assign(&Positions::starting_at(first));
        taken.iter().for_each(|taken| _ = watermark.receive(taken.position));
        drop(watermark);
        let mut part = Part::new(epoch, reading.tracker.clone());
        part.is_ready(taken);
        state.parts.insert(number, part);
        drop(state);
        (reading.epoch, reading.committed, reading.full) = (epoch, None, None);
        reading.read = read;
        self.shared.changed.notify_one();
        true
    }
}
