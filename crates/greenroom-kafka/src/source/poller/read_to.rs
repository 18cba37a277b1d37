//! How far the records of a partition were read, and which of them are of another log.
//!
//! If a topic was deleted and recreated, or a partition has lost its newest records, librdkafka
//! goes back silently, and records come at offsets that were read before. It also goes back if a
//! broker lags for a moment, and then they are the same, settled records. The time distinguishes
//! the two: a record that is later than the last one read was not there before, unless producers'
//! clocks differ, and then it is only handled again.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rdkafka::Message;

/// How far the records of a partition were read.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadTo {
    pub(super) next: u64,
    /// The time of the last one, in milliseconds; before the first one, when this began.
    last_at: i64,
    /// The latest time of all of them, and when this began: later records were not read.
    pub(super) latest: i64,
    /// Some of the latest records were read before.
    pub(super) is_back: bool,
}

/// Another log that a partition waits to be read of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Anew {
    /// The offset of its first record that was not there before.
    pub(super) first: u64,
    pub(super) since: Instant,
}

impl ReadTo {
    pub(super) fn starting_at(next: u64) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let last_at = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
        Self { next, last_at, latest: last_at, is_back: false }
    }

    /// Reads these. Returns the index of the first one of another log, if there is one: it and
    /// those behind it are not read.
    pub(super) fn read(&mut self, messages: &[impl Message]) -> Option<usize> {
        let time = |at: usize| messages[at].timestamp().to_millis();
        let (mut last, mut is_back) = (None, false);
        for (at, message) in messages.iter().enumerate() {
            let offset = message.offset().unsigned_abs();
            if offset >= self.next {
                (self.next, last) = (offset + 1, Some(at));
            } else if time(at) > last.map_or(Some(self.last_at), time) {
                return Some(at);
            } else {
                is_back = true;
            }
        }
        let times = (0..messages.len()).filter_map(time);
        self.latest = times.fold(self.latest, i64::max);
        self.is_back = is_back;
        self.last_at = last.and_then(time).unwrap_or(self.last_at);
        None
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

    /// A record that was published with a later time than those behind it was read, too.
    #[test]
    fn f08_a_record_that_is_later_than_all_that_were_read_was_not_read() {
        let mut read = ReadTo::starting_at(0);
        let began = read.latest;
        read.read(&messages(&[(0, began - 9), (1, began - 8)]));
        assert_eq!(read.latest, began);
        read.read(&messages(&[(2, began + 5), (3, began + 1)]));
        assert_eq!(read.latest, began + 5);
    }

    #[test]
    fn f10_records_that_come_once_more_are_of_the_same_log() {
        let mut read = ReadTo::starting_at(0);
        let all = [(0, 100), (1, 90), (2, 100), (3, 100)];
        assert_eq!((read.read(&messages(&all)), read.is_back), (None, false));
        assert_eq!((read.read(&messages(&all[..2])), read.is_back), (None, true));
        let with_more = [(0, 100), (3, 100), (4, 100)];
        assert_eq!((read.read(&messages(&with_more)), read.is_back), (None, true));
        assert_eq!((read.read(&messages(&[(5, 101)])), read.is_back), (None, false));
    }

    /// What a group has committed is not handled again because a partition has lost its newest
    /// records before any was read here.
    #[test]
    fn f10_before_the_first_record_it_is_the_beginning_that_counts() {
        let mut read = ReadTo::starting_at(100);
        let (before, later) = (read.last_at - 1, read.last_at + 1);
        assert_eq!(read.read(&messages(&[(0, before), (90, before), (91, later)])), Some(2));
    }
}
