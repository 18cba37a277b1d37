//! A log that begins anew while it is read: its topic was deleted and made again, or it has lost
//! its newest records.
//!
//! librdkafka goes back then, without a word, and records come at offsets that were read before.
//! So it does where a broker has not caught up for a moment, and then they are the same records,
//! and done. By their time one is told from the other: a record that is later than the last one
//! read cannot have been there.
//!
//! The engine is told as if the partition had been taken away, and gives up what waits. Then an
//! epoch begins with that record.

use greenroom_bus::{
    source::{Partition, Taken},
    watermark::Positions,
};
use rdkafka::{Message, message::BorrowedMessage};

use super::{super::shared::Part, AssignedPartition, Poller, rebalance::withdraw};

/// How far the records of a partition were read.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadTo {
    next: u64,
    /// The time of the last one, in milliseconds.
    last_at: Option<i64>,
}

/// Records that wait until the engine has given up those before.
pub(super) struct Anew {
    taken: Vec<Taken>,
    read: ReadTo,
}

impl ReadTo {
    pub(super) fn starting_at(next: u64) -> Self {
        Self { next, last_at: None }
    }

    /// Reads these. The place of the first one of another log, where there is one: it and those
    /// behind it are not read.
    pub(super) fn read(&mut self, messages: &[impl Message]) -> Option<usize> {
        let (mut last, mut anew) = (None, None);
        for (at, message) in messages.iter().enumerate() {
            let offset = message.offset().unsigned_abs();
            if offset >= self.next {
                (self.next, last) = (offset + 1, Some(at));
            } else if last.map_or(self.last_at, |last: usize| time(&messages[last])) < time(message)
            {
                anew = Some(at);
                break;
            }
        }
        self.last_at = last.map_or(self.last_at, |last| time(&messages[last]));
        anew
    }
}

fn time(message: &impl Message) -> Option<i64> {
    message.timestamp().to_millis()
}

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

#[cfg(test)]
mod tests {
    use rdkafka::{Timestamp, message::OwnedMessage};

    use super::*;

    /// Each by its offset and its time.
    fn messages(of: &[(i64, i64)]) -> Vec<OwnedMessage> {
        let message = |&(offset, at): &(i64, i64)| {
            let at = Timestamp::CreateTime(at);
            OwnedMessage::new(None, None, "orders".to_owned(), at, 0, offset, None)
        };
        of.iter().map(message).collect()
    }

    #[test]
    fn f10_a_later_record_at_an_offset_that_was_read_is_of_another_log() {
        let mut read = ReadTo::starting_at(5);
        assert_eq!(read.read(&messages(&[(5, 100), (6, 90), (9, 110)])), None);
        assert_eq!(read.read(&messages(&[(10, 105), (0, 105), (1, 106), (2, 107)])), Some(2));
        let mut read = ReadTo::starting_at(0);
        assert_eq!(read.read(&messages(&[(0, 1), (1, 2), (2, 3)])), None);
        assert_eq!(read.read(&messages(&[(0, 4)])), Some(0));
    }

    #[test]
    fn f10_records_that_come_once_more_are_of_the_same_log() {
        let mut read = ReadTo::starting_at(0);
        let all = [(0, 100), (1, 90), (2, 100), (3, 100)];
        assert_eq!(read.read(&messages(&all)), None);
        assert_eq!(read.read(&messages(&all)), None);
        assert_eq!(read.read(&messages(&[(4, 99)])), None);
        // What was read then is what counts.
        assert_eq!(read.read(&messages(&[(4, 99), (3, 100)])), Some(1));
    }
}
