//! Events to a topic, and back.

use std::sync::{Arc, Mutex};

use greenroom_bus::{
    event::{Data, Event},
    settlement::{Ack, Settle, Settled},
    sink::{Outgoing, Sink},
    source::Source,
};
use greenroom_kafka::{
    KafkaOutput,
    output::{KafkaSink, KafkaSinkMode},
    source::KafkaSource,
};

use super::fake::broker;
use super::support::{
    Record, create_topic, create_topic_with, options, pull, real_broker, records, unique, until,
};

/// How events ended, by their ids.
#[derive(Clone, Default)]
pub(crate) struct Ends(Arc<Mutex<Vec<(String, How)>>>);

/// Settled, or rejected with these words.
pub(crate) type How = Result<Settled, String>;

struct End(Ends, String);

impl Settle for End {
    fn settled(&self, how: Settled) {
        self.0.0.lock().unwrap().push((self.1.clone(), Ok(how)));
    }

    fn rejected(&self, why: String) -> bool {
        self.0.0.lock().unwrap().push((self.1.clone(), Err(why)));
        true
    }
}

impl Ends {
    pub(crate) fn ack(&self, id: &str) -> Ack {
        Ack::new(End(self.clone(), id.to_owned()))
    }

    pub(crate) fn outgoing(&self, event: Event) -> Outgoing {
        let ack = self.ack(event.id());
        Outgoing { event, pool: "p".into(), attempt: 1, line: None, fence: None, ack }
    }

    pub(crate) fn of(&self, id: &str) -> Vec<How> {
        let ends = self.0.lock().unwrap();
        ends.iter().filter(|(of, _)| of == id).map(|(_, end)| end.clone()).collect()
    }

    pub(crate) fn stored(&self) -> usize {
        let ends = self.0.lock().unwrap();
        ends.iter().filter(|(_, end)| end.as_ref().is_ok_and(|end| end.is_acknowledged())).count()
    }
}

fn event(number: usize, bytes: usize) -> Event {
    let event = Event::builder(number.to_string(), "/tests", "made");
    let event = event.subject(format!("k{}", number % 5)).extension("tenant", "blue");
    event.data_json(&"x".repeat(bytes)).build().unwrap()
}

#[tokio::test]
async fn f07_what_is_confirmed_is_in_the_topic_in_order_with_its_key() {
    let broker = broker();
    for mode in [KafkaSinkMode::Binary, KafkaSinkMode::Structured] {
        let name = unique("f07");
        create_topic(&broker, &name, 3);
        let sink_options = KafkaOutput { mode, ..KafkaOutput::new(&broker, &name) };
        let (sink, ends) = (KafkaSink::open(sink_options).unwrap(), Ends::default());
        for number in 0..500 {
            sink.accept(ends.outgoing(event(number, 10))).await;
        }
        sink.finish().await.unwrap();
        assert_eq!(ends.stored(), 500);
        let mut source =
            KafkaSource::open(options(&broker, &name, std::slice::from_ref(&name)), None).unwrap();
        let taken = pull(&mut source, 500).await;
        let (mut last, mut partition_of) = ([None; 5], [None; 5]);
        for (partition, taken) in taken {
            let back = taken.event.unwrap();
            let number: usize = back.id().parse().unwrap();
            let key = number % 5;
            assert!(last[key] < Some(number), "key {key}: {number} after {:?}", last[key]);
            assert_eq!(*partition_of[key].get_or_insert(partition), partition);
            last[key] = Some(number);
            let sent = event(number, 10);
            assert_eq!((back.ty(), back.subject()), (sent.ty(), sent.subject()));
            assert_eq!(back.extension("tenant"), sent.extension("tenant"));
            assert_eq!(back.data_bytes(), sent.data_bytes());
        }
    }
}

#[tokio::test]
async fn f07_an_event_without_data_is_a_tombstone() {
    let broker = broker();
    let name = unique("tombstone");
    create_topic(&broker, &name, 1);
    let (sink, ends) =
        (KafkaSink::open(KafkaOutput::new(&broker, &name)).unwrap(), Ends::default());
    let event = Event::builder("1", "/s", "gone").subject("k").build().unwrap();
    sink.accept(ends.outgoing(event)).await;
    sink.finish().await.unwrap();
    let mut source =
        KafkaSource::open(options(&broker, &name, std::slice::from_ref(&name)), None).unwrap();
    let back = pull(&mut source, 1).await.remove(0).1.event.unwrap();
    assert_eq!((back.ty(), back.data()), ("gone", &Data::None));
}

#[tokio::test]
async fn d13_what_the_topic_never_takes_is_rejected_and_the_others_are_stored() {
    let Some(broker) = real_broker() else { return };
    let name = unique("d13");
    create_topic_with(&broker, &name, 1, &[("max.message.bytes", "2000")]);
    let (sink, ends) =
        (KafkaSink::open(KafkaOutput::new(&broker, &name)).unwrap(), Ends::default());
    for number in 0..60 {
        let bytes = if number % 20 == 7 { 5_000 } else { 10 };
        sink.accept(ends.outgoing(event(number, bytes))).await;
    }
    sink.finish().await.unwrap();
    for number in 0..60 {
        let end = ends.of(&number.to_string());
        let rejected = end.iter().find_map(|end| end.as_ref().err());
        assert_eq!(rejected.is_some(), number % 20 == 7, "{number}: {end:?}");
        assert!(rejected.is_none_or(|why| why.contains("does not take it")), "{rejected:?}");
    }
    // Larger than librdkafka takes: it never leaves this machine.
    let sink = KafkaSink::open(KafkaOutput::new(&broker, &name)).unwrap();
    sink.accept(ends.outgoing(event(100, 3_000_000))).await;
    sink.finish().await.unwrap();
    assert!(ends.of("100")[0].is_err());
}

/// The error blamed the topic.
#[tokio::test]
async fn d13_what_is_larger_than_the_output_sends_says_whose_limit_that_is() {
    let broker = broker();
    let name = unique("own-limit");
    create_topic(&broker, &name, 1);
    let mut sink_options = KafkaOutput::new(&broker, &name);
    sink_options.max_message = 2_000;
    let (sink, ends) = (KafkaSink::open(sink_options).unwrap(), Ends::default());
    sink.accept(ends.outgoing(event(1, 3_000))).await;
    sink.accept(ends.outgoing(event(2, 10))).await;
    sink.finish().await.unwrap();
    let Err(why) = &ends.of("1")[0] else { panic!("it was sent") };
    let says =
        "its 3002 bytes are more than the 2000 that this output sends; raise its `max_message`";
    assert!(why.contains(says) && why.contains("it is not sent to topic"), "{why}");
    assert!(matches!(ends.of("2")[..], [Ok(end)] if end.is_acknowledged()), "{:?}", ends.of("2"));
}

/// The hashes are those of the tests of Kafka's own client.
#[tokio::test]
async fn f07_keys_go_to_the_partition_that_a_client_of_java_chooses() {
    const PARTITIONS: i32 = 7;
    let broker = broker();
    let name = unique("murmur2");
    create_topic(&broker, &name, PARTITIONS);
    let hashes = [
        ("21", -973_932_308),
        ("foobar", -790_332_482),
        ("a-little-bit-long-string", -985_981_536),
        ("a-little-bit-longer-string", -1_486_304_829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
        ("abc", 479_470_107),
    ];
    let (sink, ends) =
        (KafkaSink::open(KafkaOutput::new(&broker, &name)).unwrap(), Ends::default());
    for (key, _) in hashes {
        let event = Event::builder(key, "/tests", "made").subject(key).build().unwrap();
        sink.accept(ends.outgoing(event)).await;
    }
    sink.finish().await.unwrap();
    let records = records(&broker, &name);
    for (key, hash) in hashes {
        let is_it = |record: &&Record| record.key.as_deref() == Some(key.as_bytes());
        let record = records.iter().find(is_it).unwrap();
        assert_eq!(record.partition, (hash & i32::MAX) % PARTITIONS, "{key}");
    }
}

#[tokio::test]
async fn d13_a_topic_that_is_missing_pauses_the_output_until_it_is_there() {
    let broker = broker();
    let name = unique("missing");
    let mut sink_options = KafkaOutput::new(&broker, &name);
    sink_options
        .properties
        .set("allow.auto.create.topics", "false")
        .set("topic.metadata.propagation.max.ms", "100")
        .set("topic.metadata.refresh.fast.interval.ms", "100");
    let (sink, ends) = (KafkaSink::open(sink_options).unwrap(), Ends::default());
    for number in 0..20 {
        sink.accept(ends.outgoing(event(number, 10))).await;
    }
    until("a pause", || sink.trouble().is_some_and(|trouble| trouble.paused));
    assert_eq!(ends.0.lock().unwrap().len(), 0, "nothing is settled");
    create_topic(&broker, &name, 1);
    assert!(sink.resume());
    sink.finish().await.unwrap();
    assert!(sink.trouble().is_none());
    assert_eq!(ends.stored(), 20);
    let mut source =
        KafkaSource::open(options(&broker, &name, std::slice::from_ref(&name)), None).unwrap();
    let taken = pull(&mut source, 20).await;
    let ids = taken.into_iter().map(|(_, taken)| taken.event.unwrap().id().parse::<u64>().unwrap());
    assert!(ids.eq(0..20), "in the order in which they were accepted");
    assert_eq!(source.describe(), format!("kafka:{name}"));
}

#[tokio::test]
async fn f07_what_is_not_stored_when_a_sink_is_dropped_is_refused() {
    let name = unique("dropped");
    let mut sink_options = KafkaOutput::new("127.0.0.1:1", &name);
    sink_options.properties.set("topic.metadata.propagation.max.ms", "60000");
    let (sink, ends) = (KafkaSink::open(sink_options).unwrap(), Ends::default());
    sink.accept(ends.outgoing(event(1, 10))).await;
    until("trouble", || sink.trouble().is_some_and(|trouble| !trouble.paused));
    drop(sink);
    assert!(matches!(ends.of("1")[..], [Ok(Settled::Refused(_))]), "{:?}", ends.of("1"));
}
