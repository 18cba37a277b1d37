//! The contents of topics, for read-only commands (C15).
//!
//! The reader assigns the partitions itself, so it is not a member of the group: nothing is
//! rebalanced, and nothing committed. It begins at the group's position, leaves out offsets that
//! the group has settled, and ends with the present records.

use std::{fmt, mem, sync::Arc, time::Duration};

use greenroom_bus::{
    record::Mapping,
    source::{Partition, Pull, Pulling, Source, SourceError, Taken},
    watermark::Positions,
};
use parking_lot::Mutex;
use rdkafka::{
    Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer, base_consumer::PartitionQueue},
    error::KafkaError,
    metadata::MetadataTopic,
};
use regex::Regex;

use super::{
    SourceSetup, config,
    context::{Said, SourceContext},
    numbers::Numbers,
    offsets::{self, Beginning, HowToBegin},
};
use crate::{client, decode, options::KafkaInput, place::Place, unusable::Unusable};

/// How long brokers may take to say which topics there are.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between looks at partitions that have returned nothing yet.
const IDLE: Duration = Duration::from_millis(10);
/// Looks at the client's messages, before the reason for its failure is given.
const HEARINGS: usize = 20;
/// Records of one pull.
const BATCH: usize = 1_024;

/// Reads the records of topics that a group has not settled, up to the present end. It neither
/// joins the group nor commits.
pub struct KafkaLooking {
    name: String,
    reader: Arc<Mutex<LookingReader>>,
    partition: Partition,
}

enum LookingReader {
    /// Nothing was asked of a broker yet.
    Closed(Box<SourceSetup>),
    Open(Box<Looking>),
    Failed(String),
}

struct Looking {
    /// Each of these holds on to the consumer, and goes before it.
    open: Vec<Reading>,
    records: Option<Mapping>,
    /// Records that were read, and not given yet.
    ready: Option<(Partition, Vec<Taken>)>,
    consumer: Arc<BaseConsumer<SourceContext>>,
}

/// A partition that is not read to its end.
struct Reading {
    number: Partition,
    done: Positions,
    queue: PartitionQueue<SourceContext>,
}

impl KafkaLooking {
    /// A reader by the options of a [`KafkaSource`](super::KafkaSource). Brokers are asked at the
    /// first pull, which fails if they do not answer, or a topic does not exist.
    ///
    /// # Errors
    /// An option or a property cannot be used. Values of properties are not shown.
    pub fn new(input: KafkaInput, records: Option<Mapping>) -> Result<Self, SourceError> {
        let name = input.described();
        let failed = |error: Unusable| SourceError::new(name.clone(), error.why);
        super::KafkaSource::check(&input).map_err(failed)?;
        let setup = SourceSetup::new(input, records).map_err(failed)?;
        let reader = Arc::new(Mutex::new(LookingReader::Closed(Box::new(setup))));
        Ok(Self { name, reader, partition: Partition::ONLY })
    }
}

impl Source for KafkaLooking {
    fn describe(&self) -> String {
        self.name.clone()
    }

    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>) -> Pulling<'a> {
        Box::pin(async move {
            let reader = self.reader.clone();
            // Records stay with the reader until they are given: a pull may be dropped.
            let read = tokio::task::spawn_blocking(move || reader.lock().read()).await;
            let failed = |why: String| SourceError::new(self.name.clone(), why);
            read.map_err(|error| failed(error.to_string()))?.map_err(failed)?;
            let Some((partition, taken)) = self.reader.lock().give() else {
                return Ok(Pull::End);
            };
            self.partition = partition;
            into.extend(taken);
            Ok(Pull::More)
        })
    }

    fn replayable(&self) -> bool {
        true
    }

    fn partition(&self) -> Partition {
        self.partition
    }
}

impl fmt::Debug for KafkaLooking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaLooking").field("name", &self.name).finish_non_exhaustive()
    }
}

impl LookingReader {
    /// Until something was read, or there is no more.
    fn read(&mut self) -> Result<(), String> {
        if let Self::Closed(setup) = self {
            *self = match Looking::begin(setup) {
                Ok(looking) => Self::Open(Box::new(looking)),
                Err(why) => Self::Failed(why),
            };
        }
        match self {
            Self::Open(looking) => looking.read(),
            Self::Failed(why) => Err(why.clone()),
            Self::Closed(_) => Ok(()),
        }
    }

    fn give(&mut self) -> Option<(Partition, Vec<Taken>)> {
        match self {
            Self::Open(looking) => looking.ready.take(),
            Self::Closed(_) | Self::Failed(_) => None,
        }
    }
}

impl Looking {
    fn begin(setup: &SourceSetup) -> Result<Self, String> {
        let topics = &setup.input.topics;
        let consumer = Arc::new(consumer(setup).map_err(|error| error.why)?);
        let places = places(&consumer, topics)?;
        let beginnings = offsets::begin(&consumer, &places, HowToBegin::of_input(&setup.input))
            .map_err(|error| explained(&consumer, "where to begin is not known", &error))?;
        let (mut numbers, mut open) = (Numbers::new(topics), Vec::new());
        let mut list = TopicPartitionList::with_capacity(beginnings.len());
        for Beginning { place, positions, from, .. } in beginnings {
            let Place { topic, partition } = &place;
            let from = Offset::Offset(i64::try_from(from).unwrap_or(i64::MAX));
            let added = list.add_partition_offset(topic, *partition, from);
            added.map_err(|error| format!("{place}: {error}"))?;
            // Before it is assigned, so that all of it comes there.
            if let Some(queue) = consumer.split_partition_queue(topic, *partition) {
                open.push(Reading { number: numbers.number(&place), done: positions, queue });
            }
        }
        consumer
            .assign(&list)
            .map_err(|error| explained(&consumer, "partitions cannot be read", &error))?;
        Ok(Self { open, records: setup.records.clone(), ready: None, consumer })
    }

    fn read(&mut self) -> Result<(), String> {
        while self.ready.is_none() && !self.open.is_empty() {
            if let Some(Err(error)) = self.consumer.poll(Duration::ZERO) {
                return Err(explained(&self.consumer, "nothing can be read", &error));
            }
            self.look_at_each()?;
            if self.ready.is_none() {
                std::thread::sleep(IDLE);
            }
        }
        Ok(())
    }

    /// The first one that returned anything goes to the end of the line.
    fn look_at_each(&mut self) -> Result<(), String> {
        for mut reading in mem::take(&mut self.open) {
            if self.ready.is_some() {
                self.open.push(reading);
                continue;
            }
            let (taken, is_over) = reading
                .batch(self.records.as_ref())
                .map_err(|error| explained(&self.consumer, "nothing can be read", &error))?;
            if !taken.is_empty() {
                self.ready = Some((reading.number, taken));
            }
            if !is_over {
                self.open.push(reading);
            }
        }
        if self.ready.is_some() && !self.open.is_empty() {
            self.open.rotate_left(1);
        }
        Ok(())
    }
}

impl Reading {
    /// The records that have come, and whether these were all.
    fn batch(&mut self, records: Option<&Mapping>) -> Result<(Vec<Taken>, bool), KafkaError> {
        let mut taken = Vec::new();
        while taken.len() < BATCH {
            match self.queue.poll(Duration::ZERO) {
                Some(Ok(message)) if self.done.is_done(message.offset().unsigned_abs()) => {}
                Some(Ok(message)) => taken.push(decode::taken(records, &message)),
                Some(Err(KafkaError::PartitionEOF(_))) => return Ok((taken, true)),
                Some(Err(error)) => return Err(error),
                None => break,
            }
        }
        Ok((taken, false))
    }
}

pub(super) fn consumer(setup: &SourceSetup) -> Result<BaseConsumer<SourceContext>, Unusable> {
    let mut setup = setup.clone();
    // It is no member of the group.
    setup.access.properties.unset("group.instance.id");
    let mut config = config(&setup)?;
    config.set("enable.partition.eof", "true");
    let made = config.create_with_context(SourceContext::new(setup.name()));
    made.map_err(|error| client::creation_error(error, &setup.access.properties))
}

/// The partitions of topics, and of those that match a pattern.
pub(super) fn places(
    consumer: &BaseConsumer<SourceContext>,
    topics: &[String],
) -> Result<Vec<Place>, String> {
    let mut places = Vec::new();
    for topic in topics {
        let pattern = topic.starts_with('^').then(|| Regex::new(topic)).transpose();
        let pattern = pattern.map_err(|_| format!("`{topic}` is no regular expression"))?;
        let name = pattern.is_none().then_some(topic.as_str());
        let found = consumer.fetch_metadata(name, PATIENCE).map_err(|error| {
            explained(consumer, "no broker says which topics there are", &error)
        })?;
        let is_wanted = |found: &&MetadataTopic| match &pattern {
            Some(pattern) => pattern.is_match(found.name()),
            None => found.name() == topic,
        };
        for found in found.topics().iter().filter(is_wanted) {
            if let Some(error) = found.error() {
                let error = KafkaError::MetadataFetch(error.into());
                return Err(explained(consumer, &format!("topic `{topic}`"), &error));
            }
            let of = |id| Place::new(found.name(), id);
            places.extend(found.partitions().iter().map(|partition| of(partition.id())));
        }
    }
    places.sort_unstable();
    places.dedup();
    Ok(places)
}

/// With the client's messages in between, which often contain the reason.
pub(super) fn explained(
    consumer: &BaseConsumer<SourceContext>,
    what: &str,
    error: &KafkaError,
) -> String {
    let mut reasons = Vec::new();
    for _ in 0..HEARINGS {
        // Its events reach its context while it is polled, one by one.
        let _ = consumer.poll(IDLE);
        while let Some(said) = consumer.context().next() {
            if let Said::Error(code, reason) = said {
                reasons.push((code, reason));
            }
        }
    }
    let failure = consumer.context().failures.last();
    if let Some((failure, next)) =
        failure.as_deref().and_then(|it| Some((it, client::to_correct(it)?)))
    {
        return format!("{what}: {failure}; {next}");
    }
    // That no broker is left follows from that none has let us in.
    let refused = reasons.iter().find(|(code, _)| client::is_refused(*code));
    match refused.or(reasons.last()) {
        Some((code, reason)) => format!("{what}: {reason}{}", client::advice_at_once(*code)),
        None => {
            let code = error.rdkafka_error_code();
            format!("{what}: {error}{}", code.map_or("", client::advice_at_once))
        }
    }
}
