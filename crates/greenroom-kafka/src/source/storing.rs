//! Commits on a thread of their own, each until the broker has answered.
//!
//! librdkafka answers a commit of several partitions with one code, which hides that some of them
//! failed. Its answers for each go to a callback that rdkafka does not set. So each partition is
//! committed by itself, and waited for: that takes a round trip, and holds up no handler.

use std::{
    sync::{Arc, mpsc},
    thread,
};

use rdkafka::{
    Offset, TopicPartitionList,
    consumer::{BaseConsumer, CommitMode, Consumer},
    error::{KafkaError, RDKafkaErrorCode},
};

use super::context::SourceContext;
use crate::place::Place;

/// What is to be stored of a partition: the offset, and the text beside it.
pub(super) type StoredOffset = (u64, String);

/// Of each place, in their order.
pub(super) type Answers = Vec<Result<(), RDKafkaErrorCode>>;

pub(super) struct Storing {
    asks: mpsc::Sender<Vec<(Place, StoredOffset)>>,
    answers: mpsc::Receiver<Answers>,
}

impl Storing {
    /// Begins the thread, which wakes the one that calls this with each answer. It ends with this.
    pub(super) fn begin(consumer: &Arc<BaseConsumer<SourceContext>>) -> std::io::Result<Self> {
        let (asks, asked) = mpsc::channel::<Vec<(Place, StoredOffset)>>();
        let (answer, answers) = mpsc::channel();
        let (consumer, wakes) = (consumer.clone(), thread::current());
        let stores = move || {
            for places in asked {
                // Nobody listens any more at the end.
                let _ = answer.send(store_all(&consumer, &places));
                wakes.unpark();
            }
        };
        thread::Builder::new().name("kafka-commit".to_owned()).spawn(stores)?;
        Ok(Self { asks, answers })
    }

    /// Stores these; [`answer`](Self::answer) says what came of it.
    pub(super) fn ask(&self, places: Vec<(Place, StoredOffset)>) {
        // The thread ends after this.
        let _ = self.asks.send(places);
    }

    pub(super) fn answer(&self) -> Option<Answers> {
        self.answers.try_recv().ok()
    }
}

fn store_all(consumer: &BaseConsumer<SourceContext>, places: &[(Place, StoredOffset)]) -> Answers {
    let mut answers = Answers::with_capacity(places.len());
    for (place, said) in places {
        let before = answers.iter().find_map(|answer| answer.err().filter(is_of_all));
        answers.push(match before {
            // The broker does not answer: the others would wait as long.
            Some(code) => Err(code),
            None => store(consumer, place, said),
        });
    }
    answers
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
    Place { topic, partition }: &Place,
    (offset, text): &StoredOffset,
) -> Result<(), RDKafkaErrorCode> {
    let mut list = TopicPartitionList::with_capacity(1);
    let mut element = list.add_partition(topic, *partition);
    let offset = Offset::Offset(i64::try_from(*offset).unwrap_or(i64::MAX));
    let code = |error: KafkaError| error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail);
    element.set_offset(offset).map_err(code)?;
    element.set_metadata(text);
    consumer.commit(&list, CommitMode::Sync).map_err(code)
}
