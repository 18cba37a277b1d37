//! Dead letters to a topic, and from there back (D06).

use std::{collections::BTreeMap, future::ready, sync::Arc, time::Duration};

use greenroom_bus::{
    BoxFuture,
    dead_letter::{
        DeadLetter, DeadLetterStore, Reason,
        redrive::{LetterChoice, RedriveError},
    },
    engine::InputConfig,
    event::Event,
    handler::{Failure, FailureKind, HandlerResult, Outputs},
    record::{Mapping, Pick},
};
use greenroom_kafka::{
    KafkaInput, KafkaLetters, Redriven, output::KafkaDeadLetters, redrive, source::KafkaSource,
};
use krafka::{
    error::ErrorCode,
    testing::{ApiKey, Control},
};
use rdkafka::{
    message::{Header, OwnedHeaders},
    producer::BaseRecord,
};

use super::{
    fake::{broker, fake, spoil_name},
    output::Ends,
    scenarios::engine,
    support::{
        PATIENCE, Publisher, Record, alter_topic, create_topic, create_topic_with, event, options,
        pull, real_broker, records, remove_below, unique, until,
    },
};

/// A letter of this record, which no handler has made.
fn letter(ends: &Ends, source: &str, position: u64, raw: &[u8]) -> DeadLetter {
    DeadLetter {
        event: None,
        raw: Some(raw.to_vec()),
        reason: Reason::Malformed,
        error: "it is no event".to_owned(),
        attempts: 0,
        first_at: std::time::UNIX_EPOCH,
        last_at: std::time::UNIX_EPOCH,
        input: "input".into(),
        source: source.into(),
        position,
        pool: None,
        handler: None,
        key: None,
        share: None,
        replayed: None,
        rejected: Vec::new(),
        ack: ends.ack(&position.to_string()),
    }
}

/// Those of a test: an input's records, its letters, and its options.
struct Desk {
    broker: String,
    orders: String,
    dead: String,
}

impl Desk {
    fn at(broker: &str, partitions: i32) -> Self {
        let (orders, dead) = (unique("orders"), unique("dead"));
        create_topic(broker, &orders, partitions);
        create_topic(broker, &dead, 2);
        Self { broker: broker.to_owned(), orders, dead }
    }

    fn source(&self) -> KafkaInput {
        options(&self.broker, "billing", std::slice::from_ref(&self.orders))
    }

    fn letters(&self) -> KafkaDeadLetters {
        let options = KafkaLetters::new(&self.broker, &self.dead);
        let letters = KafkaDeadLetters::open(&options).unwrap();
        letters.input("input", &self.source(), None).unwrap();
        letters
    }

    /// Publishes these values, each with its key and two headers, to the last partition.
    fn publish(&self, partition: i32, values: &[&[u8]]) {
        let publisher = Publisher::new(&self.broker);
        for (number, value) in values.iter().enumerate() {
            let number = number.to_string();
            let header = |key, value| Header { key, value };
            let headers = OwnedHeaders::new()
                .insert(header("trace", Some(number.as_bytes())))
                .insert(header("empty", None));
            let record = BaseRecord::<[u8], [u8]>::to(&self.orders)
                .partition(partition)
                .key(b"k\xff")
                .headers(headers)
                .payload(value);
            publisher.0.send(record).map_err(|(error, _)| error).unwrap();
        }
        publisher.flush();
    }

    fn redrive(&self, change: impl FnOnce(&mut LetterChoice)) -> Redriven {
        let group = Some(format!("redrive-{}", self.dead));
        let mut choice = LetterChoice { group, ..LetterChoice::default() };
        change(&mut choice);
        redrive(&KafkaLetters::new(&self.broker, &self.dead), &[], &choice, |_| {}).unwrap()
    }

    /// By the offsets that their records had.
    fn stored(&self) -> BTreeMap<u64, Record> {
        let offset = |record: &Record| record.header("greenroom_offset").unwrap().parse().unwrap();
        records(&self.broker, &self.dead)
            .into_iter()
            .map(|record| (offset(&record), record))
            .collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d06_a_poisonous_record_is_a_letter_as_it_was_and_goes_back_and_is_handled() {
    let broker = broker();
    let desk = Desk::at(&broker, 3);
    let json = |id: u64| {
        let mut json = Vec::new();
        event(id, "k").write_json(&mut json);
        json
    };
    let (good, poison) = (json(0), json(1));
    desk.publish(2, &[&good, &poison, b"{ no"]);
    let run = async |events: u64, is_mended: bool| {
        let handles = move |event: Event| -> BoxFuture<'static, HandlerResult> {
            let is_poison = event.id() == "1" && !is_mended;
            Box::pin(ready(match is_poison {
                true => Err(Failure::new(FailureKind::Reject, "it is poison")),
                false => Ok(Outputs::None),
            }))
        };
        let (source, letters) = (KafkaSource::open(desk.source(), None).unwrap(), desk.letters());
        let handles = Arc::new(handles);
        let engine = engine(source, InputConfig::default(), Arc::new(letters), handles).await;
        let control = engine.control();
        let run = tokio::spawn(engine.run());
        let is_settled = || control.progress().settled == events;
        tokio::task::block_in_place(|| until("all is settled", is_settled));
        control.drain();
        let report = tokio::time::timeout(PATIENCE, run).await.unwrap().unwrap();
        assert!(report.adds_up() && report.out_of_order == 0, "{report:?}");
        (report.handled, report.dead_lettered)
    };
    assert_eq!(run(3, false).await, (1, 2));
    let (originals, letters) = (records(&broker, &desk.orders), desk.stored());
    assert!(letters.keys().copied().eq([1, 2]), "{letters:?}");
    for (offset, letter) in &letters {
        let original = &originals[*offset as usize];
        assert_eq!((&letter.key, &letter.value), (&original.key, &original.value));
        assert_eq!(letter.headers[..2], original.headers[..]);
        assert_eq!(letter.header("greenroom_letter"), Some("record"));
        assert_eq!(letter.header("greenroom_topic"), Some(&*desk.orders));
        assert_eq!(letter.header("greenroom_partition"), Some("2"));
        assert_eq!(letter.header("greenroom_input"), Some("input"));
    }
    let poisoned = &letters[&1];
    assert_eq!(poisoned.header("greenroom_reason"), Some("rejected"));
    assert_eq!(poisoned.header("greenroom_error"), Some("it is poison"));
    assert_eq!(poisoned.header("greenroom_attempts"), Some("1"));
    assert_eq!(poisoned.header("greenroom_handler"), Some("all"));
    assert_eq!(letters[&2].header("greenroom_reason"), Some("malformed"));

    let chosen = |choice: &mut LetterChoice| choice.reason = Some("rejected".to_owned());
    let counted = desk.redrive(|choice| {
        chosen(choice);
        choice.counts_only = true;
    });
    assert_eq!((counted.count(), counted.passed_over, counted.left), (1, 1, 0));
    assert_eq!(records(&broker, &desk.orders).len(), 3, "nothing is sent");
    let sent = desk.redrive(chosen);
    assert_eq!(sent.published, [(desk.orders.clone(), 1)].into());
    assert_eq!(desk.redrive(chosen).count(), 0, "it is done");
    let mut back = records(&broker, &desk.orders).pop().unwrap();
    let origin = back.headers.pop().unwrap();
    assert_eq!(origin.0, "greenroom_origin");
    assert_eq!(origin.1, Some(format!("{}-2-1", desk.orders).into_bytes()));
    assert_eq!(back, originals[1]);
    assert_eq!(run(1, true).await, (1, 0));
    // What was passed over before is still there.
    assert_eq!(desk.redrive(|_| {}).count(), 1);
    assert_eq!(desk.redrive(|_| {}), Redriven::default());
}

#[tokio::test]
async fn d06_letters_of_many_records_are_redriven_in_their_order_and_once() {
    let broker = broker();
    let desk = Desk::at(&broker, 1);
    let values: Vec<_> = (0..300).map(|number: u32| number.to_string()).collect();
    desk.publish(0, &values.iter().map(String::as_bytes).collect::<Vec<_>>());
    let (letters, ends) = (desk.letters(), Ends::default());
    let source = format!("kafka:{}/0", desk.orders);
    for position in (0..300).rev() {
        letters.store(letter(&ends, &source, position, values[position as usize].as_bytes()));
    }
    letters.finish().await.unwrap();
    assert_eq!((ends.stored(), letters.trouble()), (300, None));
    let part = desk.redrive(|choice| choice.limit = Some(100));
    assert_eq!(part.count(), 100);
    assert_eq!(desk.redrive(|_| {}).count(), 200);
    assert_eq!(desk.redrive(|_| {}).count(), 0);
    let mut back: Vec<_> = records(&broker, &desk.orders).split_off(300);
    assert!(back.iter().all(|record| record.headers.len() == 3), "{back:?}");
    back.sort_by_key(|record| {
        String::from_utf8(record.value.clone().unwrap()).unwrap().parse::<u32>().unwrap()
    });
    assert!(
        back.iter()
            .map(|record| record.value.clone().unwrap())
            .eq(values.iter().map(|value| value.clone().into_bytes()))
    );
}

#[tokio::test]
async fn m05_the_id_that_a_record_has_by_its_position_survives_every_redrive() {
    let broker = broker();
    let desk = Desk::at(&broker, 1);
    desk.publish(0, &[b"x"]);
    for position in 0..2 {
        let (letters, ends) = (desk.letters(), Ends::default());
        letters.store(letter(&ends, &format!("kafka:{}/0", desk.orders), position, b"x"));
        letters.finish().await.unwrap();
        assert_eq!(desk.redrive(|_| {}).count(), 1);
    }
    let mapping = Mapping::new(Pick::literal("t"), Pick::literal("s"));
    let taken = pull(&mut KafkaSource::open(desk.source(), Some(mapping)).unwrap(), 3).await;
    let ids = taken.into_iter().map(|(_, taken)| taken.event.unwrap().id().to_owned());
    let first = format!("{}-0-0", desk.orders);
    assert!(ids.eq([&first; 3].map(Clone::clone)));
}

/// Brokers forget offsets that nobody has committed for a week.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d06_a_redrive_with_nothing_to_send_remembers_anew_what_was_sent() {
    let fake = fake();
    let desk = Desk::at(&fake.bootstrap_servers(), 1);
    desk.publish(0, &[b"x"]);
    let (letters, ends) = (desk.letters(), Ends::default());
    letters.store(letter(&ends, &format!("kafka:{}/0", desk.orders), 0, b"x"));
    letters.finish().await.unwrap();
    assert_eq!(desk.redrive(|_| {}).count(), 1);
    let committed = fake.request_count(ApiKey::OffsetCommit);
    assert_eq!(desk.redrive(|_| {}).count(), 0);
    assert_eq!(fake.request_count(ApiKey::OffsetCommit), committed + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d06_a_redrive_names_a_letter_whose_header_has_a_name_that_is_no_text() {
    let fake = fake();
    let desk = Desk::at(&fake.bootstrap_servers(), 1);
    desk.publish(0, &[b"x"]);
    let publisher = Publisher::new(&desk.broker);
    let headers = OwnedHeaders::new().insert(Header { key: "a-name", value: Some("x") });
    let record = BaseRecord::<str, [u8], ()>::to(&desk.dead).partition(0).payload(b"{}");
    publisher.0.send(record.headers(headers)).map_err(|(error, _)| error).unwrap();
    publisher.flush();
    spoil_name(&fake, &desk.dead, "a-name");
    let (letters, ends) = (desk.letters(), Ends::default());
    letters.store(letter(&ends, &format!("kafka:{}/0", desk.orders), 0, b"x"));
    letters.finish().await.unwrap();
    let redriven = desk.redrive(|_| {});
    assert_eq!((redriven.count(), redriven.left), (1, 1));
    let why = redriven.left_because.join("\n");
    assert!(why.contains(&desk.dead) && why.contains("is not UTF-8 text"), "{why}");
}

#[tokio::test]
async fn d06_letters_without_a_record_are_json_and_stay_where_they_are() {
    // The one in this process does not tell of an offset beyond the end.
    let Some(broker) = real_broker() else { return };
    let desk = Desk::at(&broker, 1);
    desk.publish(0, &[b"x"]);
    let (letters, ends) = (desk.letters(), Ends::default());
    letters.store(letter(&ends, "file:orders.ndjson", 7, b"{ no"));
    letters.store(letter(&ends, &format!("kafka:{}/0", desk.orders), 5, b"{ no"));
    let mut unknown = letter(&ends, &format!("kafka:{}/0", desk.orders), 0, b"x");
    unknown.input = "another".into();
    letters.store(unknown);
    letters.finish().await.unwrap();
    assert_eq!(ends.stored(), 3);
    let stored = records(&broker, &desk.dead);
    assert_eq!(stored.len(), 3);
    for letter in &stored {
        assert_eq!(letter.header("greenroom_letter"), Some("json"));
        assert_eq!(letter.header("content-type"), Some("application/json"));
        let value = String::from_utf8_lossy(letter.value.as_ref().unwrap());
        assert!(value.contains(r#""reason":"malformed""#), "{value}");
    }
    let named = |name: &str| stored.iter().filter_map(|letter| letter.header(name)).count();
    assert_eq!((named("greenroom_source"), named("greenroom_unread")), (1, 1));
    let redriven = desk.redrive(|_| {});
    assert_eq!((redriven.count(), redriven.left), (0, 3));
    let why = redriven.left_because.join("\n");
    assert!(why.contains("it came from file:orders.ndjson"), "{why}");
    assert!(why.contains("its record was gone when it was written"), "{why}");
}

#[tokio::test]
async fn d06_a_record_that_was_removed_makes_a_letter_of_what_was_taken_of_it() {
    let Some(broker) = real_broker() else { return };
    let desk = Desk::at(&broker, 1);
    desk.publish(0, &[b"a", b"b", b"c"]);
    remove_below(&broker, &desk.orders, 2);
    let (letters, ends) = (desk.letters(), Ends::default());
    let source = format!("kafka:{}/0", desk.orders);
    let taken: [&[u8]; 3] = [b"a", b"taken", b"c"];
    (0..3).for_each(|at| letters.store(letter(&ends, &source, at, taken[at as usize])));
    letters.finish().await.unwrap();
    assert_eq!(ends.stored(), 3);
    let stored = desk.stored();
    let forms: Vec<_> = stored.values().map(|letter| letter.header("greenroom_letter")).collect();
    assert_eq!(forms, ["json", "json", "record"].map(Some));
    assert!(String::from_utf8_lossy(stored[&1].value.as_ref().unwrap()).contains("dGFrZW4="));
    assert_eq!(stored[&2].value.as_deref(), Some(&b"c"[..]));
}

/// As where its topic was deleted and made again: another record lies at its offset.
#[tokio::test]
async fn d06_a_record_that_is_another_one_now_is_no_letter() {
    let broker = broker();
    let desk = Desk::at(&broker, 1);
    let (mut same, mut other) = (Vec::new(), Vec::new());
    event(2, "k").write_json(&mut same);
    event(7, "k").write_json(&mut other);
    desk.publish(0, &[b"another", &other, &same, b"the same"]);
    let (letters, ends) = (desk.letters(), Ends::default());
    let source = format!("kafka:{}/0", desk.orders);
    let store = |position: u64, raw: &[u8], event: Option<Event>| {
        let raw = event.is_none().then(|| raw.to_vec());
        letters.store(DeadLetter { event, raw, ..letter(&ends, &source, position, b"") });
    };
    store(0, b"taken", None);
    store(1, b"", Some(event(1, "k")));
    store(2, b"", Some(event(2, "k").with_partition_key(b"k\xff")));
    store(3, b"the same", None);
    letters.finish().await.unwrap();
    assert_eq!(ends.stored(), 4);
    let stored = desk.stored();
    let forms: Vec<_> = stored.values().map(|letter| letter.header("greenroom_letter")).collect();
    assert_eq!(forms, ["json", "json", "record", "record"].map(Some));
    let value = |at: u64| String::from_utf8_lossy(stored[&at].value.as_ref().unwrap());
    assert!(value(0).contains("dGFrZW4=") && value(1).contains(r#""id":"1""#), "{stored:?}");
    assert!(stored[&1].header("greenroom_unread").unwrap().contains("another record"));
    assert_eq!((value(2), value(3)), (String::from_utf8_lossy(&same), "the same".into()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d13_a_letter_that_its_topic_does_not_take_waits_and_is_told_and_holds_up_no_other() {
    let Some(broker) = real_broker() else { return };
    let mut desk = Desk::at(&broker, 1);
    desk.dead = unique("narrow");
    create_topic_with(&broker, &desk.dead, 1, &[("max.message.bytes", "2000")]);
    let values: [&[u8]; 2] = [&[b'x'; 3_000], b"small"];
    desk.publish(0, &values);
    let (letters, ends) = (desk.letters(), Ends::default());
    let source = format!("kafka:{}/0", desk.orders);
    (0..2).for_each(|at| letters.store(letter(&ends, &source, at, values[at as usize])));
    until("the small one is stored", || ends.stored() == 1);
    until("the large one is told", || letters.trouble().is_some_and(|trouble| trouble.paused));
    let trouble = letters.trouble().unwrap().error;
    assert!(
        trouble.contains("does not take the letter of") && trouble.contains("max.message.bytes"),
        "{trouble}"
    );
    alter_topic(&broker, &desk.dead, "max.message.bytes", "10000");
    letters.finish().await.unwrap();
    assert_eq!((ends.stored(), letters.trouble()), (2, None));
    assert_eq!(desk.stored()[&0].value.as_ref().map(Vec::len), Some(3_000));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d06_letters_wait_for_a_broker_that_does_not_answer_and_are_refused_without_one() {
    let fake = fake();
    let desk = Desk::at(&fake.bootstrap_servers(), 1);
    desk.publish(0, &[b"a", b"b"]);
    let (letters, ends) = (desk.letters(), Ends::default());
    let source = format!("kafka:{}/0", desk.orders);
    fake.on(ApiKey::Produce, |_| Control::Error(ErrorCode::TopicAuthorizationFailed));
    letters.store(letter(&ends, &source, 0, b"a"));
    until("it is paused", || letters.trouble().is_some_and(|trouble| trouble.paused));
    assert_eq!(ends.of("0").len(), 0, "it is open");
    fake.clear_hooks();
    fake.crash(0);
    letters.store(letter(&ends, &source, 1, b"b"));
    until("it is told", || letters.trouble().is_some());
    fake.restart(0);
    letters.finish().await.unwrap();
    assert_eq!((ends.stored(), letters.trouble()), (2, None));
    let letters = desk.letters();
    fake.crash(0);
    letters.store(letter(&ends, &source, 0, b"a"));
    drop(letters);
    until("it is refused", || {
        ends.of("0").last().is_some_and(|end| end.as_ref().is_ok_and(|end| !end.is_acknowledged()))
    });
}

fn redrive_all(letters: &KafkaLetters) -> Result<Redriven, RedriveError> {
    redrive(letters, &[], &LetterChoice::default(), |_| {})
}

#[test]
fn d06_options_of_letters_that_cannot_be_used_are_refused_without_a_broker() {
    let refused = |broker: &str, topic: &str| {
        let options = KafkaLetters::new(broker, topic);
        KafkaDeadLetters::check(&options).unwrap_err().why
    };
    assert!(refused("", "t").contains("`brokers` is empty"));
    assert!(refused("b:1", " ").contains("`topic` is empty"));
    let mut options = KafkaLetters::new("b:1", "t");
    KafkaDeadLetters::check(&options).unwrap();
    options.properties.set("linger.ms", "hunter2");
    let why = KafkaDeadLetters::check(&options).unwrap_err().why;
    assert!(why.contains("`linger.ms` cannot be set here") && !why.contains("hunter2"), "{why}");
    let missing = redrive_all(&KafkaLetters::new("", "t")).unwrap_err().to_string();
    assert!(missing.contains("`brokers` is empty"), "{missing}");
}

#[tokio::test]
async fn d06_a_redrive_says_what_is_missing() {
    let broker = broker();
    let mut options = KafkaLetters::new(&broker, unique("no-such"));
    options.properties.set("allow.auto.create.topics", "false");
    let why = redrive_all(&options).map(|redriven| format!("{redriven:?}"));
    let why = why.unwrap_or_else(|error| error.to_string());
    assert!(why.contains("create it, or correct its name"), "{why}");
    let begun = std::time::Instant::now();
    let nobody = redrive_all(&KafkaLetters::new("127.0.0.1:1", "t")).unwrap_err().to_string();
    assert!(nobody.contains("see that a broker runs there"), "{nobody}");
    assert!(begun.elapsed() < Duration::from_secs(30));
}
