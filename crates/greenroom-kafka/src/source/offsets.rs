//! Where to begin in assigned partitions: looked up on a separate thread, because a broker may take
//! its time, and the consumer has to be polled throughout.

use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, mpsc},
    thread,
    time::{Duration, UNIX_EPOCH},
};

use greenroom_bus::{source::StartAt, watermark::Positions};
use parking_lot::Mutex;
use rdkafka::{
    Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    error::{KafkaError, KafkaResult, RDKafkaErrorCode},
    metadata::MetadataTopic,
    topic_partition_list::TopicPartitionListElem,
};

use super::context::SourceContext;
use crate::{
    commit_set,
    options::{FormerConsumer, KafkaInput},
    place::Place,
};

/// For how long a broker may think about each question.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where to begin in one partition.
pub(super) struct Beginning {
    pub(super) place: Place,
    /// The settled positions.
    pub(super) positions: Positions,
    /// The first offset to fetch.
    pub(super) from: u64,
    /// They are exactly the committed ones.
    pub(super) is_committed: bool,
    /// The program that was there before has committed it, in its own words.
    pub(super) is_of_former: bool,
    /// A remark for an operator.
    pub(super) remark: Option<String>,
}

/// Where to begin, and the partitions for which that is not known yet.
#[derive(Default)]
pub(super) struct Answered {
    pub(super) beginnings: Vec<Beginning>,
    pub(super) unknown: Vec<(Place, KafkaError)>,
}

pub(super) type Answer = KafkaResult<Answered>;

/// How to begin in partitions: where the group has committed nothing, and after another program.
#[derive(Debug, Clone, Copy)]
pub(super) struct HowToBegin {
    pub(super) start: StartAt,
    pub(super) from: Option<FormerConsumer>,
}

impl HowToBegin {
    pub(super) fn of_input(input: &KafkaInput) -> Self {
        Self { start: input.start, from: input.from }
    }

    /// A group counts as another program's only if none of its commits is ours.
    fn after(self, committed: &TopicPartitionList) -> Self {
        let elements = committed.elements();
        let is_ours = elements.iter().any(|element| {
            let offset = element.offset().to_raw().and_then(|offset| u64::try_from(offset).ok());
            let text = text(element).filter(|text| !text.is_empty());
            offset.zip(text).is_some_and(|(offset, text)| commit_set::decode(offset, &text).is_ok())
        });
        Self { from: self.from.filter(|_| !is_ours), ..self }
    }
}

/// How many partitions topics had when the source began. Others have been added since.
#[derive(Default)]
pub(super) struct Known(Mutex<Option<HashMap<String, usize>>>);

impl Known {
    /// Asked once, and for all topics: which of them a pattern will take is not known.
    fn learn(&self, consumer: &BaseConsumer<SourceContext>) -> KafkaResult<()> {
        let mut known = self.0.lock();
        if known.is_none() {
            let found = consumer.fetch_metadata(None, PATIENCE)?;
            let count = |of: &MetadataTopic| (of.name().to_owned(), of.partitions().len());
            *known = Some(found.topics().iter().map(count).collect());
        }
        Ok(())
    }

    /// All new records are later than the latest one before.
    fn start(&self, place: &Place, start: StartAt) -> StartAt {
        let known = self.0.lock();
        let is_new = known.as_ref().is_some_and(|known| {
            let count = known.get(&*place.topic).copied().unwrap_or(0);
            place.partition.unsigned_abs() as usize >= count
        });
        match start {
            StartAt::Latest if is_new => StartAt::Earliest,
            start => start,
        }
    }
}

/// Asks for all of these.
pub(super) fn ask(
    consumer: &Arc<BaseConsumer<SourceContext>>,
    places: &[Place],
    how: HowToBegin,
    known: &Arc<Known>,
) -> mpsc::Receiver<Answer> {
    let (answer, answered) = mpsc::channel();
    let (consumer, places, known) = (consumer.clone(), places.to_vec(), known.clone());
    let wakes = thread::current();
    let asks = move || {
        // The receiver is gone if the partitions were revoked in between.
        let _ = answer.send(begin_each(&consumer, &places, how, &known));
        wakes.unpark();
    };
    // Without a thread there is no answer, and it is asked again.
    let _ = thread::Builder::new().name("kafka-offsets".to_owned()).spawn(asks);
    answered
}

/// A partition without an answer delays no other.
fn begin_each(
    consumer: &BaseConsumer<SourceContext>,
    places: &[Place],
    how: HowToBegin,
    known: &Known,
) -> Answer {
    if how.start == StartAt::Latest {
        known.learn(consumer)?;
    }
    let committed = committed(consumer, places)?;
    let how = how.after(&committed);
    let mut answered = Answered::default();
    let mut places = places.iter();
    while let Some(place) = places.next() {
        let how = HowToBegin { start: known.start(place, how.start), ..how };
        match begin_one(consumer, place, &committed, how) {
            Ok(beginning) => answered.beginnings.push(beginning),
            Err(why) => {
                if is_timeout(&why) {
                    // Others may wait as long, and the group waits for all. They come first in the
                    // next question.
                    let rest = places.by_ref().map(|place| (place.clone(), why.clone()));
                    answered.unknown.splice(0..0, rest);
                }
                answered.unknown.push((place.clone(), why));
            }
        }
    }
    Ok(answered)
}

fn is_timeout(error: &KafkaError) -> bool {
    use RDKafkaErrorCode as Code;
    matches!(
        error.rdkafka_error_code(),
        Some(Code::OperationTimedOut | Code::RequestTimedOut | Code::MessageTimedOut)
    )
}

/// Asks for all of these here and now. The group is not joined for it.
pub(super) fn begin(
    consumer: &BaseConsumer<SourceContext>,
    places: &[Place],
    how: HowToBegin,
) -> KafkaResult<Vec<Beginning>> {
    let committed = committed(consumer, places)?;
    let how = how.after(&committed);
    places.iter().map(|place| begin_one(consumer, place, &committed, how)).collect()
}

fn committed(
    consumer: &BaseConsumer<SourceContext>,
    places: &[Place],
) -> KafkaResult<TopicPartitionList> {
    let mut list = TopicPartitionList::with_capacity(places.len());
    for place in places {
        list.add_partition(&place.topic, place.partition);
    }
    consumer.committed_offsets(list, PATIENCE)
}

fn begin_one(
    consumer: &BaseConsumer<SourceContext>,
    place: &Place,
    committed: &TopicPartitionList,
    HowToBegin { start, from }: HowToBegin,
) -> KafkaResult<Beginning> {
    let found = committed.find_partition(&place.topic, place.partition);
    let committed = match &found {
        Some(element) => {
            element.error()?;
            match element.offset() {
                Offset::Offset(offset) => Some((offset.unsigned_abs(), text(element))),
                _ => None,
            }
        }
        None => None,
    };
    let (low, high) = consumer.fetch_watermarks(&place.topic, place.partition, PATIENCE)?;
    let ends = (low.unsigned_abs(), high.unsigned_abs());
    match committed {
        Some((offset, text)) if offset <= ends.1 => Ok(go_on(place, (offset, text), ends, from)),
        beyond => {
            let remark = beyond.map(|(offset, _)| {
                format!(
                    "the group has committed offset {offset}, and its records end at {}: the topic \
                     was made anew, or has lost records; it is read from where a new group begins",
                    ends.1
                )
            });
            let from = first(consumer, place, start, ends)?;
            Ok(Beginning {
                place: place.clone(),
                positions: Positions::starting_at(from),
                from,
                is_committed: false,
                is_of_former: false,
                remark,
            })
        }
    }
}

/// The text next to an offset. rdkafka panics if it is not UTF-8, which no Apache broker returns;
/// another one might.
pub(super) fn text(element: &TopicPartitionListElem<'_>) -> Option<String> {
    catch_unwind(AssertUnwindSafe(|| element.metadata().to_owned())).ok()
}

fn go_on(
    place: &Place,
    (offset, text): (u64, Option<String>),
    (low, high): (u64, u64),
    former: Option<FormerConsumer>,
) -> Beginning {
    let text = text.ok_or_else(|| "it is not UTF-8".to_owned());
    // An empty one says the same in every language.
    let is_of_former = former.is_some() && text.as_ref().is_ok_and(|text| !text.is_empty());
    let decode = match is_of_former {
        true => commit_set::decode_parallel_consumer,
        false => commit_set::decode,
    };
    let read = text.and_then(|text| decode(offset, &text).map_err(|why| why.to_string()));
    let read = read.and_then(|positions| match positions.next() <= high {
        true => Ok(positions),
        false => {
            Err(format!("it names offset {}, and records end at {high}", positions.next() - 1))
        }
    });
    let is_committed = read.is_ok();
    let mut remark = None;
    let positions = read.unwrap_or_else(|why| {
        remark = Some(format!(
            "the metadata of its commit is ignored, and everything from offset {offset} on is handled: \
             {why}"
        ));
        Positions::starting_at(offset)
    });
    if offset < low {
        let gone = low - offset;
        remark = Some(format!(
            "{gone} offsets from {offset} on were removed by retention before they were handled"
        ));
    }
    let from = offset.max(low);
    Beginning { place: place.clone(), positions, from, is_committed, is_of_former, remark }
}

fn first(
    consumer: &BaseConsumer<SourceContext>,
    place: &Place,
    start: StartAt,
    (low, high): (u64, u64),
) -> KafkaResult<u64> {
    let time = match start {
        StartAt::Earliest => return Ok(low),
        StartAt::Latest => return Ok(high),
        StartAt::Time(time) => time.duration_since(UNIX_EPOCH).unwrap_or_default(),
    };
    let mut list = TopicPartitionList::with_capacity(1);
    let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    list.add_partition_offset(&place.topic, place.partition, Offset::Offset(millis))?;
    let found = consumer.offsets_for_times(list, PATIENCE)?;
    let element = found.find_partition(&place.topic, place.partition);
    match element.map(|element| (element.error(), element.offset())) {
        Some((Ok(()), Offset::Offset(offset))) => Ok(offset.unsigned_abs()),
        Some((Ok(()), _)) | None => Ok(high),
        Some((Err(error), _)) => Err(error),
    }
}

/// Whether it is worth saying why, at a second asking.
pub(super) fn is_worth_saying(error: &KafkaError, last: Option<&KafkaError>) -> bool {
    last.is_none_or(|last| last.rdkafka_error_code() != error.rdkafka_error_code())
}
