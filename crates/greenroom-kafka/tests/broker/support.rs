//! Topics, records and groups of a real broker.

use std::{
    env,
    io::{self, Write},
    sync::{
        Once,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use greenroom_bus::{
    dead_letter::{DeadLetter, DeadLetterStore},
    event::Event,
    source::{Pull, Source, Taken},
};
use greenroom_kafka::{KafkaInput, source::KafkaSource};
use rdkafka::{
    ClientConfig, Message, Offset, TopicPartitionList,
    admin::{
        AdminClient, AdminOptions, AlterConfig, NewTopic, ResourceSpecifier, TopicReplication,
    },
    client::DefaultClientContext,
    consumer::{BaseConsumer, CommitMode, Consumer},
    error::KafkaResult,
    message::{Header, Headers},
    producer::{BaseProducer, BaseRecord, Producer},
};

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What a run says is part of the output of a test that fails.
pub(crate) fn log() {
    let writes = tracing_subscriber::fmt().with_test_writer().with_ansi(false);
    let _ = writes.with_max_level(tracing::Level::DEBUG).try_init();
}

/// The broker that is named, for what no other than a real one does. Without, it is said that this
/// test did not run.
pub(crate) fn real_broker() -> Option<String> {
    static SAID: Once = Once::new();
    log();
    let broker = env::var("GREENROOM_KAFKA").ok().filter(|broker| !broker.is_empty());
    if broker.is_none() {
        // Past the capture of test output.
        let mut stderr = io::stderr().lock();
        let thread = thread::current();
        let test = thread.name().unwrap_or("a test");
        let _ = writeln!(stderr, "NOT RUN, as it needs a real Kafka broker: {test}");
        SAID.call_once(|| {
            let _ = writeln!(
                stderr,
                "To run all tests of Kafka against one: GREENROOM_KAFKA=$(scripts/kafka up) cargo \
                 test -p greenroom-kafka"
            );
        });
    }
    broker
}

/// Names of topics and groups that no other run has.
pub(crate) fn unique(name: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{name}-{}-{number}", now.as_nanos())
}

pub(crate) fn config(broker: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", broker);
    config
}

/// Makes a topic, and waits until it is there.
pub(crate) fn create_topic(broker: &str, name: &str, partitions: i32) {
    create_topic_with(broker, name, partitions, &[]);
}

pub(crate) fn create_topic_with(
    broker: &str,
    name: &str,
    partitions: i32,
    settings: &[(&str, &str)],
) {
    let admin: AdminClient<DefaultClientContext> = config(broker).create().unwrap();
    let mut topic = NewTopic::new(name, partitions, TopicReplication::Fixed(1));
    for (name, value) in settings {
        topic = topic.set(name, value);
    }
    let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
    let topics = [topic];
    let made = wait(admin.create_topics(&topics, &options)).unwrap();
    made.into_iter().for_each(|made| assert!(made.is_ok(), "{made:?}"));
    let consumer: BaseConsumer = config(broker).create().unwrap();
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let found = consumer.fetch_metadata(Some(name), Duration::from_secs(5));
        let is_there = |topic: &rdkafka::metadata::MetadataTopic| {
            topic.partitions().len() == partitions as usize
                && topic.partitions().iter().all(|partition| partition.leader() >= 0)
        };
        if found.is_ok_and(|found| found.topics().iter().any(is_there)) {
            return;
        }
    }
    panic!("topic {name} does not come");
}

pub(crate) fn delete_topic(broker: &str, topic: &str) {
    let admin: AdminClient<DefaultClientContext> = config(broker).create().unwrap();
    let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
    let gone = wait(admin.delete_topics(&[topic], &options)).unwrap();
    gone.into_iter().for_each(|gone| assert!(gone.is_ok(), "{gone:?}"));
}

/// Changes one setting of a topic.
pub(crate) fn alter_topic(broker: &str, topic: &str, name: &str, value: &str) {
    let admin: AdminClient<DefaultClientContext> = config(broker).create().unwrap();
    let change = AlterConfig::new(ResourceSpecifier::Topic(topic)).set(name, value);
    let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
    let changed = wait(admin.alter_configs([&change], &options)).unwrap();
    changed.into_iter().for_each(|changed| assert!(changed.is_ok(), "{changed:?}"));
}

/// A record as it lies in a topic.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record {
    pub(crate) partition: i32,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Record {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().rev().find(|(known, _)| known == name)?;
        std::str::from_utf8(value.as_ref()?).ok()
    }
}

/// All that lies in a topic, partition by partition.
pub(crate) fn records(broker: &str, topic: &str) -> Vec<Record> {
    let consumer: BaseConsumer = group(broker, "reads");
    let found = consumer.fetch_metadata(Some(topic), PATIENCE).unwrap();
    let partitions = found.topics()[0].partitions().len() as i32;
    let mut records = Vec::new();
    for partition in 0..partitions {
        let (low, end) = consumer.fetch_watermarks(topic, partition, PATIENCE).unwrap();
        if low == end {
            continue;
        }
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, partition, Offset::Offset(low)).unwrap();
        consumer.assign(&list).unwrap();
        let mut next = low;
        while next < end {
            let record = consumer.poll(PATIENCE).expect("another record").unwrap();
            next = record.offset() + 1;
            let headers = record.headers().map_or_else(Vec::new, |headers| {
                let owned = |header: Header<'_, &[u8]>| {
                    (header.key.to_owned(), header.value.map(<[u8]>::to_vec))
                };
                headers.iter().map(owned).collect()
            });
            records.push(Record {
                partition,
                key: record.key().map(<[u8]>::to_vec),
                value: record.payload().map(<[u8]>::to_vec),
                headers,
            });
        }
    }
    records
}

/// As retention does: removes what is below this offset.
pub(crate) fn remove_below(broker: &str, topic: &str, offset: i64) {
    let admin: AdminClient<DefaultClientContext> = config(broker).create().unwrap();
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, 0, Offset::Offset(offset)).unwrap();
    let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
    wait(admin.delete_records(&list, &options)).unwrap();
}

/// Waits for a future of rdkafka, which needs no runtime: on a thread of its own, as tests have
/// one.
fn wait<T: Send>(future: impl Future<Output = T> + Send) -> T {
    let run = || tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future);
    thread::scope(|scope| scope.spawn(run).join().unwrap())
}

pub(crate) struct Publisher(pub(crate) BaseProducer);

impl Publisher {
    pub(crate) fn new(broker: &str) -> Self {
        // Of a new topic, the first batch may be refused and sent again: it stays the first.
        let mut config = config(broker);
        config.set("linger.ms", "5").set("enable.idempotence", "true");
        Self(config.create().unwrap())
    }

    pub(crate) fn send(&self, topic: &str, partition: i32, key: &str, value: &[u8]) {
        let mut record = BaseRecord::to(topic).partition(partition).key(key).payload(value);
        while let Err((_, again)) = self.0.send(record) {
            record = again;
            self.0.poll(Duration::from_millis(10));
        }
    }

    pub(crate) fn event(&self, topic: &str, partition: i32, event: &Event) {
        let mut json = Vec::new();
        event.write_json(&mut json);
        self.send(topic, partition, event.subject().map_or("", |key| &**key), &json);
    }

    pub(crate) fn flush(&self) {
        self.0.flush(PATIENCE).unwrap();
    }
}

/// An event by number, of a key.
pub(crate) fn event(number: u64, key: &str) -> Event {
    Event::builder(number.to_string(), "tests", "made").subject(key).build().unwrap()
}

/// What a group has committed: the offset, and the text beside it.
pub(crate) fn committed(
    group: &BaseConsumer,
    topic: &str,
    partition: i32,
) -> Option<(u64, String)> {
    let mut list = TopicPartitionList::new();
    list.add_partition(topic, partition);
    let found = group.committed_offsets(list, PATIENCE).unwrap();
    let element = found.find_partition(topic, partition)?;
    match element.offset() {
        Offset::Offset(offset) => Some((offset as u64, element.metadata().to_owned())),
        _ => None,
    }
}

/// A client that reads and writes the commits of a group, and never joins it.
pub(crate) fn group(broker: &str, name: &str) -> BaseConsumer {
    config(broker).set("group.id", name).set("enable.auto.commit", "false").create().unwrap()
}

pub(crate) fn commit(
    group: &BaseConsumer,
    topic: &str,
    partition: i32,
    offset: i64,
    text: &str,
) -> KafkaResult<()> {
    let mut list = TopicPartitionList::new();
    let mut element = list.add_partition(topic, partition);
    element.set_offset(Offset::Offset(offset)).unwrap();
    element.set_metadata(text);
    group.commit(&list, CommitMode::Sync)
}

/// Sessions are short, so that a member that was killed is missed soon.
pub(crate) fn options(broker: &str, group: &str, topics: &[String]) -> KafkaInput {
    let mut options = KafkaInput::new(broker, group, topics);
    options
        .properties
        .set("session.timeout.ms", "6000")
        .set("heartbeat.interval.ms", "500")
        .set("topic.metadata.refresh.interval.ms", "500")
        .set("topic.metadata.refresh.fast.interval.ms", "100");
    options
}

/// Pulls until so many have come, and answers what is taken away.
pub(crate) async fn pull(source: &mut KafkaSource, count: usize) -> Vec<(u32, Taken)> {
    let mut all = Vec::new();
    let pulls = async {
        while all.len() < count {
            let mut taken = Vec::new();
            match source.pull(&mut taken).await.unwrap() {
                Pull::Revoke => answer(source),
                _ => {
                    let partition = source.partition().0;
                    all.extend(taken.into_iter().map(|taken| (partition, taken)));
                }
            }
        }
    };
    let came = tokio::time::timeout(PATIENCE, pulls).await;
    came.unwrap_or_else(|_| panic!("{} of {count} came", all.len()));
    all
}

fn answer(source: &mut KafkaSource) {
    for partition in source.revoking() {
        source.revoked(partition);
    }
}

/// Positions of a partition, in the order in which they came.
pub(crate) fn positions(taken: &[(u32, Taken)], partition: u32) -> Vec<u64> {
    let of = taken.iter().filter(|(of, _)| *of == partition);
    of.map(|(_, taken)| taken.position).collect()
}

/// Waits until this is so, looking now and then: what it is about happens in a broker.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what} does not come about");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Dead letters of tests in which there are none: whatever comes here is refused, and stays open.
pub(crate) struct NoLetters;

impl DeadLetterStore for NoLetters {
    fn describe(&self) -> String {
        "none".to_owned()
    }

    fn store(&self, letter: DeadLetter) {
        drop(letter);
    }
}
