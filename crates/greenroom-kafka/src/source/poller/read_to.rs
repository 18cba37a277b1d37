//! How far the records of a partition were read, and which of them are of another log.
//!
//! Where a topic was deleted and made again, and where a partition has lost its newest records,
//! librdkafka goes back without a word, and records come at offsets that were read before. So it
//! does where a broker has not caught up for a moment, and then they are the same records, and
//! done. By their time one is told from the other: a record that is later than the last one read
//! cannot have been there.

use greenroom_bus::source::Taken;
use rdkafka::Message;

/// How far the records of a partition were read.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadTo {
    pub(super) next: u64,
    /// The time of the last one, in milliseconds.
    last_at: Option<i64>,
}

/// Records that wait until the engine has given up those before.
pub(super) struct Anew {
    pub(super) taken: Vec<Taken>,
    pub(super) read: ReadTo,
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
