//! Commits on a thread of their own, each until the broker has answered.
//!
//! librdkafka answers a commit of several partitions with one code, which hides that some of them
//! failed. Its answers for each go to a callback that rdkafka does not set. So the coordinator is
//! asked for its state after that, and any missing partition is committed by itself: its code gives
//! the reason.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use rdkafka::{
    Offset, TopicPartitionList,
    consumer::{BaseConsumer, CommitMode, Consumer},
    error::{KafkaResult, RDKafkaErrorCode},
};

use super::{context::SourceContext, offsets::text};
use crate::{client::code, place::Place};

/// The timeout for reading the group's stored offsets.
const PATIENCE: Duration = Duration::from_secs(5);

/// The stored state of a partition: the offset, and the text next to it.
pub(super) type StoredOffset = (u64, String);

/// Of each place, in their order.
pub(super) type Answers = Vec<Result<(), RDKafkaErrorCode>>;

pub(super) struct Storing {
    asks: mpsc::Sender<Vec<(Place, StoredOffset)>>,
    answers: mpsc::Receiver<Answers>,
}

impl Storing {
    /// Begins the thread, which wakes its caller with each answer. The thread ends when this is
    /// dropped.
    pub(super) fn begin(consumer: &Arc<BaseConsumer<SourceContext>>) -> std::io::Result<Self> {
        let (asks, asked) = mpsc::channel::<Vec<(Place, StoredOffset)>>();
        let (answer, answers) = mpsc::channel();
        let (consumer, wakes) = (consumer.clone(), thread::current());
        let stores = move || {
            for places in asked {
                // The receiver is gone at the end.
                let _ = answer.send(store_all(&consumer, &places));
                wakes.unpark();
            }
        };
        thread::Builder::new().name("kafka-commit".to_owned()).spawn(stores)?;
        Ok(Self { asks, answers })
    }

    /// Stores these; [`answer`](Self::answer) returns the result.
    pub(super) fn ask(&self, places: Vec<(Place, StoredOffset)>) {
        // The thread ends after this.
        let _ = self.asks.send(places);
    }

    pub(super) fn answer(&self) -> Option<Answers> {
        self.answers.try_recv().ok()
    }
}

fn store_all(consumer: &BaseConsumer<SourceContext>, places: &[(Place, StoredOffset)]) -> Answers {
    let stored = match places.len() {
        // No more round trips than one by one.
        0..=2 => None,
        _ => store_at_once(consumer, places),
    };
    let is_stored = |place: &Place, (offset, said): &StoredOffset| {
        let of = |list: &TopicPartitionList| {
            let found = list.find_partition(&place.topic, place.partition)?;
            let is_same = found.offset().to_raw() == i64::try_from(*offset).ok();
            Some(is_same && found.error().is_ok() && text(&found).as_ref() == Some(said))
        };
        stored.as_ref().and_then(of) == Some(true)
    };
    let mut answers = Answers::with_capacity(places.len());
    for (place, said) in places {
        let before = answers.iter().find_map(|answer| answer.err().filter(is_of_all));
        answers.push(match before {
            _ if is_stored(place, said) => Ok(()),
            // The broker does not answer: the others would wait as long.
            Some(code) => Err(code),
            None => store(consumer, place, said),
        });
    }
    answers
}

/// In two round trips, however many there are. Returns the group's offsets after that, if they
/// could be read.
fn store_at_once(
    consumer: &BaseConsumer<SourceContext>,
    places: &[(Place, StoredOffset)],
) -> Option<TopicPartitionList> {
    let mut list = TopicPartitionList::with_capacity(places.len());
    places.iter().try_for_each(|(place, said)| add(&mut list, place, said)).ok()?;
    consumer.commit(&list, CommitMode::Sync).ok()?;
    consumer.committed_offsets(list, PATIENCE).ok()
}

/// Whether it concerns other partitions as well.
fn is_of_all(code: &RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode as Code;
    !matches!(
        code,
        Code::OffsetMetadataTooLarge
            | Code::UnknownTopicOrPartition
            | Code::UnknownTopicId
            | Code::TopicAuthorizationFailed
    )
}

pub(super) fn store(
    consumer: &BaseConsumer<SourceContext>,
    place: &Place,
    said: &StoredOffset,
) -> Result<(), RDKafkaErrorCode> {
    let mut list = TopicPartitionList::with_capacity(1);
    let stored = add(&mut list, place, said);
    stored.and_then(|()| consumer.commit(&list, CommitMode::Sync)).map_err(|error| code(&error))
}

fn add(
    list: &mut TopicPartitionList,
    Place { topic, partition }: &Place,
    (offset, text): &StoredOffset,
) -> KafkaResult<()> {
    let mut element = list.add_partition(topic, *partition);
    element.set_offset(Offset::Offset(i64::try_from(*offset).unwrap_or(i64::MAX)))?;
    element.set_metadata(text);
    Ok(())
}
