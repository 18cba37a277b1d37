//! Records that are read again, one by one: by the guard, which moves them, and for dead letters.

use std::time::{Duration, Instant};

use rdkafka::{
    ClientContext, Message, Offset, TopicPartitionList,
    config::RDKafkaLogLevel,
    consumer::{BaseConsumer, Consumer, ConsumerContext},
    error::{KafkaError, RDKafkaErrorCode},
    message::BorrowedMessage,
};

use crate::{client, connection::Access, place::Place, unusable::Unusable};

/// Between looks at whether a record has come.
const POLL: Duration = Duration::from_millis(50);

/// A record this far ahead in the same partition is reached by reading on; for any other, the
/// partition is reassigned, which takes a fetch.
const READ_ON: u64 = 256;

/// A letter whose record cannot be found is reported with the kept details.
const OTHER: &str = "what is there now is another record, since its topic was made anew or has lost records; or \
                     it is read in another way than before";

/// Properties that begin so a consumer has none of that is no member of a group.
const OF_MEMBERS: [&str; 5] =
    ["group.", "heartbeat.", "max.poll.", "partition.assignment.", "session."];

/// And these no producer has.
const OF_CONSUMERS: [&str; 12] = [
    "auto.offset.",
    "check.crcs",
    "enable.auto.",
    "enable.partition.eof",
    "fetch.",
    "group.",
    "heartbeat.",
    "isolation.level",
    "max.poll.",
    "partition.assignment.",
    "queued.",
    "session.",
];

/// Which brokers hold the records, and how to connect: as the source of these records does.
#[derive(Clone, Copy)]
pub(crate) struct From<'a> {
    /// Of a member of the group.
    pub(crate) access: &'a Access,
    pub(crate) group: &'a str,
}

/// A consumer that is no member of the group.
pub(crate) struct Again {
    consumer: BaseConsumer<Quiet>,
    /// The place being read, and its next offset.
    at: Option<(Place, u64)>,
}

/// Why a record was not read.
#[derive(Debug)]
pub(crate) enum Unread {
    /// The broker has it no more.
    Gone(String),
    Other(String),
}

/// As a producer connects in place of a member: without what only a consumer has, and what is ours.
pub(crate) fn writing(access: &Access, ours: &[(&'static str, String)]) -> Access {
    access.without(&OF_CONSUMERS, ours)
}

impl Again {
    /// It connects when it is first asked.
    ///
    /// # Errors
    /// A property cannot be used.
    pub(crate) fn new(name: String, from: From<'_>) -> Result<Self, Unusable> {
        let ours = [
            // It is asked for where partitions are assigned by hand, too.
            ("group.id", from.group.to_owned()),
            ("enable.auto.commit", "false".to_owned()),
            ("enable.auto.offset.store", "false".to_owned()),
            ("auto.offset.reset", "error".to_owned()),
            // One record is wanted at a time, and soon: after those behind it were fetched as well,
            // librdkafka would not look at another offset for a second.
            ("queued.min.messages", "1".to_owned()),
            ("fetch.queue.backoff.ms", "5".to_owned()),
            ("fetch.message.max.bytes", "65536".to_owned()),
        ];
        let kept = from.access.without(&OF_MEMBERS, &ours);
        let consumer = client::config(&kept, &ours, &[], &[])?
            .create_with_context(Quiet(name))
            .map_err(|error| client::creation_error(error, &kept.properties))?;
        Ok(Self { consumer, at: None })
    }

    /// Takes the record at this offset, once it has come; while waiting, `idle` is called now and
    /// then, and returns whether to keep waiting. `take` returns `None` for a record that was not
    /// read there before.
    ///
    /// # Errors
    /// It is not there any more, has not come within that time, or cannot be read.
    pub(crate) fn read<T>(
        &mut self,
        place: &Place,
        offset: u64,
        within: Duration,
        mut idle: impl FnMut() -> bool,
        take: impl FnOnce(&BorrowedMessage<'_>) -> Option<T>,
    ) -> Result<T, Unread> {
        let unread = |why: &str| format!("{place} at offset {offset} cannot be read again: {why}");
        let gone = || Unread::Gone(unread("retention or compaction has removed it"));
        let other = || Unread::Gone(unread(OTHER));
        self.go_to(place, offset).map_err(|error| Unread::Other(unread(&error.to_string())))?;
        let begun = Instant::now();
        while begun.elapsed() < within && idle() {
            let record = match self.consumer.poll(POLL) {
                None => continue,
                Some(Ok(record)) => record,
                Some(Err(error)) => {
                    self.at = None;
                    return Err(match is_gone(&error) {
                        true => gone(),
                        false => Unread::Other(unread(&error.to_string())),
                    });
                }
            };
            let is_of_it = record.topic() == &*place.topic && record.partition() == place.partition;
            match record.offset().unsigned_abs() {
                // Remains of the last one, or an earlier record.
                _ if !is_of_it => {}
                before if before < offset => {}
                found => {
                    self.at = Some((place.clone(), found + 1));
                    return if found > offset {
                        Err(gone())
                    } else {
                        take(&record).ok_or_else(other)
                    };
                }
            }
        }
        self.at = None;
        Err(Unread::Other(unread(&format!("it has not come within {within:?}"))))
    }

    fn go_to(&mut self, place: &Place, offset: u64) -> Result<(), KafkaError> {
        let is_ahead = |next: u64| (next..=next.saturating_add(READ_ON)).contains(&offset);
        if self.at.as_ref().is_some_and(|(at, next)| at == place && is_ahead(*next)) {
            return Ok(());
        }
        let position = Offset::Offset(i64::try_from(offset).unwrap_or(i64::MAX));
        let mut list = TopicPartitionList::with_capacity(1);
        list.add_partition_offset(&place.topic, place.partition, position)?;
        self.consumer.assign(&list)
    }
}

/// A consumer's error for an offset below the oldest record, or beyond the newest, and for a topic
/// that does not exist any more.
fn is_gone(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(
            RDKafkaErrorCode::AutoOffsetReset
                | RDKafkaErrorCode::UnknownTopic
                | RDKafkaErrorCode::UnknownTopicOrPartition
                | RDKafkaErrorCode::UnknownPartition
        )
    )
}

/// A client whose only messages are librdkafka's logs.
pub(crate) struct Quiet(pub(crate) String);

impl ClientContext for Quiet {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        client::log(&self.0, level, facility, message);
    }
}

impl ConsumerContext for Quiet {}
