//! Events to a stream, and back (N04, D13).

use std::sync::{Arc, Mutex};

use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType};
use greenroom_bus::{
    event::{Data, Event},
    settlement::{Ack, Settle, Settled},
    sink::{Outgoing, Sink},
};
use greenroom_nats::{
    NatsAuth, NatsOutput, NatsUser,
    output::{NatsSink, NatsSinkMode},
};

use crate::{
    own_server::Server,
    reader::Reader,
    server::{TestStream, unique, until},
};

/// Settled, or rejected with these words.
type How = Result<Settled, String>;

/// How events ended, in this order, by their ids.
#[derive(Clone, Default)]
struct Ends(Arc<Mutex<Vec<(String, How)>>>);

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
    fn outgoing(&self, event: Event, line: Option<u64>) -> Outgoing {
        let ack = Ack::new(End(self.clone(), event.id().to_owned()));
        Outgoing { event, pool: "p".into(), attempt: 1, line, fence: None, ack }
    }

    /// What is rejected is acknowledged as well, by its dead letter.
    fn stored(&self) -> usize {
        let ends = self.0.lock().unwrap();
        let is_acknowledged =
            |end: &How| end.as_ref().is_ok_and(|settled| settled.is_acknowledged());
        let acknowledged = ends.iter().filter(|(_, end)| is_acknowledged(end)).count();
        acknowledged - ends.iter().filter(|(_, end)| end.is_err()).count()
    }

    fn is_refused(&self, id: &str) -> bool {
        let ends = self.0.lock().unwrap();
        ends.iter().any(|(of, end)| of == id && matches!(end, Ok(Settled::Refused(_))))
    }

    fn rejected(&self) -> Vec<(String, String)> {
        let ends = self.0.lock().unwrap();
        let why = |(id, end): &(String, How)| Some((id.clone(), end.clone().err()?));
        ends.iter().filter_map(why).collect()
    }
}

const KEYS: u64 = 5;

fn event(number: u64, bytes: usize) -> Event {
    let event = Event::builder(number.to_string(), "/tests", "made");
    let event = event.subject((number % KEYS).to_string()).extension("tenant", "blau");
    event.data_json(&"x".repeat(bytes)).build().unwrap()
}

async fn push(sink: &NatsSink, ends: &Ends, numbers: std::ops::Range<u64>) {
    for number in numbers {
        sink.accept(ends.outgoing(event(number, 10), Some(number % KEYS))).await;
    }
}

/// To a subject for each key.
fn options(stream: &TestStream) -> NatsOutput {
    output_to(stream, "{subject}")
}

fn output_to(stream: &TestStream, subject: &str) -> NatsOutput {
    NatsOutput::new(&stream.address, format!("{}.{subject}", stream.name).parse().unwrap())
}

async fn open(stream: &TestStream) -> NatsSink {
    NatsSink::open(options(stream)).await.unwrap()
}

/// The numbers of all messages of the stream, by their subjects, as they stand there.
async fn numbers(stream: &TestStream) -> Vec<(String, u64)> {
    let on_it = stream.jetstream().await.get_stream(&stream.name).await.unwrap();
    let last = on_it.get_info().await.unwrap().state.last_sequence;
    let mut numbers = Vec::new();
    for sequence in 1..=last {
        let message = on_it.get_raw_message(sequence).await.unwrap();
        let id = message.headers.get("ce-id").unwrap().as_str().parse().unwrap();
        numbers.push((message.subject.to_string(), id));
    }
    numbers
}

fn are_in_order(numbers: &[(String, u64)]) {
    for key in 0..KEYS {
        let of_key: Vec<u64> = numbers
            .iter()
            .map(|(_, number)| *number)
            .filter(|number| number % KEYS == key)
            .collect();
        assert!(of_key.is_sorted(), "key {key}: {of_key:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn n04_what_is_confirmed_is_in_the_stream_in_order_per_key() {
    for mode in [NatsSinkMode::Binary, NatsSinkMode::Structured] {
        let Some(stream) = TestStream::new("n04_stored").await else { return };
        let (to, ends) = (NatsOutput { mode, ..options(&stream) }, Ends::default());
        let sink = NatsSink::open(to).await.unwrap();
        push(&sink, &ends, 0..500).await;
        sink.finish().await.unwrap();
        assert_eq!((ends.stored(), sink.unanswered()), (500, 0));
        assert_eq!(sink.describe(), format!("nats:{}.{{subject}}", stream.name));
        let mut reader = Reader::open(stream.options()).await;
        let mut last = [None; KEYS as usize];
        for read in reader.some(500).await {
            let number: u64 = read.id.parse().unwrap();
            let of_key = &mut last[(number % KEYS) as usize];
            assert!(*of_key < Some(number), "{number} after {of_key:?}");
            *of_key = Some(number);
            let (back, sent) = (read.event.as_ref().unwrap(), event(number, 10));
            assert_eq!((back.ty(), back.subject()), (sent.ty(), sent.subject()));
            assert_eq!(back.extension("tenant"), sent.extension("tenant"));
            assert_eq!(back.data_bytes(), sent.data_bytes());
            read.done();
        }
        stream.remove().await;
    }
}

#[tokio::test]
async fn n04_an_event_without_data_comes_back_without() {
    let Some(stream) = TestStream::new("n04_empty").await else { return };
    let (sink, ends) = (open(&stream).await, Ends::default());
    let event = Event::builder("1", "/s", "gone").subject("k").build().unwrap();
    sink.accept(ends.outgoing(event, None)).await;
    sink.finish().await.unwrap();
    let mut reader = Reader::open(stream.options()).await;
    let read = reader.next().await;
    let back = read.event.as_ref().unwrap();
    assert_eq!((back.ty(), back.data()), ("gone", &Data::None));
    read.done();
    stream.remove().await;
}

#[tokio::test]
async fn n04_an_event_that_is_published_again_after_a_restart_is_stored_once() {
    let Some(stream) = TestStream::new("n04_again").await else { return };
    for _run in 0..2 {
        let (sink, ends) = (open(&stream).await, Ends::default());
        push(&sink, &ends, 0..50).await;
        sink.finish().await.unwrap();
        assert_eq!(ends.stored(), 50);
    }
    assert_eq!(numbers(&stream).await.len(), 50);
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d13_what_is_too_large_is_rejected_and_the_others_are_stored() {
    let Some(stream) = TestStream::new("d13_large").await else { return };
    stream.change(|config| config.max_message_size = 2_000).await;
    let (sink, ends) = (open(&stream).await, Ends::default());
    for number in 0..60 {
        // One is larger than the stream takes, and one than the server.
        let bytes = [(7, 5_000), (27, 3_000_000)].into_iter().find(|(of, _)| *of == number);
        let event = event(number, bytes.map_or(10, |(_, bytes)| bytes));
        sink.accept(ends.outgoing(event, Some(number % KEYS))).await;
    }
    sink.finish().await.unwrap();
    let mut rejected = ends.rejected();
    rejected.sort();
    let ids: Vec<_> = rejected.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["27", "7"]);
    assert!(rejected.iter().all(|(_, why)| why.contains("does not take it")), "{rejected:?}");
    assert!(sink.trouble().is_none());
    assert_eq!(numbers(&stream).await.len(), 58);
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d13_a_subject_that_is_too_long_is_rejected_and_the_connection_stays() {
    let Some(stream) = TestStream::new("d13_long").await else { return };
    let (sink, ends) = (open(&stream).await, Ends::default());
    let long = Event::builder("long", "/tests", "made").subject("x".repeat(5_000)).build();
    sink.accept(ends.outgoing(long.unwrap(), None)).await;
    push(&sink, &ends, 0..5).await;
    sink.finish().await.unwrap();
    assert_eq!(ends.stored(), 5);
    let rejected = ends.rejected();
    let [(id, why)] = rejected.as_slice() else { panic!("{rejected:?}") };
    assert!(id == "long" && why.contains("3500 are the most"), "{why}");
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d13_the_longest_subject_is_stored() {
    let Some(stream) = TestStream::new("d13_longest").await else { return };
    let (sink, ends) = (open(&stream).await, Ends::default());
    let subject = "x".repeat(3_500 - stream.name.len() - 1);
    let longest = Event::builder("1", "/tests", "made").subject(subject).build();
    sink.accept(ends.outgoing(longest.unwrap(), None)).await;
    sink.finish().await.unwrap();
    assert_eq!(ends.stored(), 1);
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d13_a_stream_that_is_missing_pauses_the_output_until_it_is_there() {
    let Some(address) = crate::server::address("d13_missing") else { return };
    let stream = TestStream { address, name: unique("missing") };
    let to = output_to(&stream, "all");
    let (sink, ends) = (NatsSink::open(to).await.unwrap(), Ends::default());
    push(&sink, &ends, 0..20).await;
    let is_paused = async || sink.trouble().is_some_and(|trouble| trouble.paused);
    until("a pause", is_paused).await;
    let trouble = sink.trouble().unwrap();
    assert!(trouble.error.contains("no stream takes the subject"), "{trouble:?}");
    assert!(ends.0.lock().unwrap().is_empty(), "nothing is settled");
    stream.make(StorageType::Memory).await;
    assert!(sink.resume());
    sink.finish().await.unwrap();
    assert_eq!((ends.stored(), sink.trouble()), (20, None));
    are_in_order(&numbers(&stream).await);
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d13_an_event_whose_subject_no_stream_takes_is_rejected_where_others_are_taken() {
    let Some(stream) = TestStream::new("d13_subject").await else { return };
    stream.change(|config| config.subjects = vec![format!("{}.*", stream.name)]).await;
    let (sink, ends) = (open(&stream).await, Ends::default());
    for (id, subject) in [("odd", "a.b"), ("bad", "a b"), ("good", "a")] {
        let event = Event::builder(id, "/s", "t").subject(subject).build().unwrap();
        sink.accept(ends.outgoing(event, Some(1))).await;
    }
    sink.finish().await.unwrap();
    let rejected = ends.rejected();
    let [(odd, no_stream), (bad, no_subject)] = rejected.as_slice() else { panic!("{rejected:?}") };
    assert_eq!((odd.as_str(), bad.as_str(), ends.stored()), ("odd", "bad", 1));
    assert!(no_stream.contains("no stream takes the subject"), "{no_stream}");
    assert!(no_subject.contains("is no subject"), "{no_subject}");
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d13_a_stream_that_is_full_is_waited_for() {
    let Some(address) = crate::server::address("d13_full") else { return };
    let stream = TestStream { address, name: unique("full") };
    let config = Config {
        name: stream.name.clone(),
        subjects: vec![format!("{}.>", stream.name)],
        storage: StorageType::Memory,
        max_messages: 10,
        discard: DiscardPolicy::New,
        ..Config::default()
    };
    let on_it = stream.jetstream().await.create_stream(config).await.unwrap();
    let (sink, ends) = (open(&stream).await, Ends::default());
    push(&sink, &ends, 0..12).await;
    let fails = async || ends.stored() == 10 && sink.trouble().is_some();
    until("a full stream", fails).await;
    assert!(!sink.trouble().unwrap().paused, "it may pass");
    on_it.purge().await.unwrap();
    sink.finish().await.unwrap();
    assert_eq!((ends.stored(), ends.rejected().len()), (12, 0));
    stream.remove().await;
}

/// Those that wait for the one stream have no place in which they do.
#[tokio::test(flavor = "multi_thread")]
async fn d13_a_stream_that_is_full_does_not_hold_up_events_to_another() {
    let Some(stream) = TestStream::new("d13_others").await else { return };
    stream.change(|config| config.subjects = vec![format!("{}.0", stream.name)]).await;
    let full = TestStream { address: stream.address.clone(), name: unique("full") };
    let config = Config {
        name: full.name.clone(),
        subjects: vec![format!("{}.1", stream.name)],
        storage: StorageType::Memory,
        max_messages: 1,
        discard: DiscardPolicy::New,
        ..Config::default()
    };
    stream.jetstream().await.create_stream(config).await.unwrap();
    let to = NatsOutput { concurrency: 2, ..options(&stream) };
    let (sink, ends) = (NatsSink::open(to).await.unwrap(), Ends::default());
    // In no line, so that each is tried by itself.
    for number in [1, 6, 11, 16, 21] {
        sink.accept(ends.outgoing(event(number, 10), None)).await;
    }
    until("the stream is full", async || sink.trouble().is_some()).await;
    for number in 0..50 {
        sink.accept(ends.outgoing(event(number * KEYS, 10), Some(0))).await;
    }
    until("the others are stored", async || ends.stored() == 51).await;
    assert!(sink.trouble().is_some_and(|trouble| !trouble.paused));
    full.change(|config| config.max_messages = 5).await;
    sink.finish().await.unwrap();
    assert_eq!((ends.stored(), ends.rejected().len()), (55, 0));
    stream.remove().await;
    full.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d13_a_subject_that_is_not_allowed_pauses_the_output_and_no_secret_is_shown() {
    let users = r#"
        authorization { users: [
            { user: root, password: root }
            { user: ann, password: hunter2, permissions: { publish: { deny: ["*.denied"] } } }
        ] }
        no_auth_user: root"#;
    let Some(server) = Server::start_with("d13_denied", users) else { return };
    let stream = TestStream::at(server.address(), StorageType::File).await;
    let auth = Some(NatsAuth::User(NatsUser { name: "ann".into(), password: "hunter2".into() }));
    let to = NatsOutput { auth, ..output_to(&stream, "denied") };
    let (sink, ends) = (NatsSink::open(to.clone()).await.unwrap(), Ends::default());
    push(&sink, &ends, 0..20).await;
    let is_paused = async || sink.trouble().is_some_and(|trouble| trouble.paused);
    until("a pause", is_paused).await;
    let trouble = sink.trouble().unwrap();
    assert!(trouble.error.contains("does not allow this user"), "{trouble:?}");
    assert!(!format!("{trouble:?} {sink:?} {to:?}").contains("hunter2"));
    assert_eq!(ends.0.lock().unwrap().len(), 0, "nothing is settled");
    // It is corrected: with this configuration, all may do everything.
    server.script("down");
    server.script("up");
    sink.finish().await.unwrap();
    assert_eq!(ends.stored(), 20);
    are_in_order(&numbers(&stream).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn z07_a_server_that_is_killed_under_an_output_loses_nothing_and_no_order() {
    let Some(server) = Server::start("z07_output") else { return };
    let stream = TestStream::at(server.address(), StorageType::File).await;
    let (sink, ends) = (Arc::new(open(&stream).await), Ends::default());
    let pushing = {
        let (sink, ends) = (sink.clone(), ends.clone());
        tokio::spawn(async move { push(&sink, &ends, 0..20_000).await })
    };
    for round in 1..=2 {
        until("some are stored", async || ends.stored() >= round * 500).await;
        server.script("kill");
        until("trouble", async || sink.trouble().is_some_and(|trouble| !trouble.paused)).await;
        server.script("up");
    }
    pushing.await.unwrap();
    sink.finish().await.unwrap();
    assert_eq!((ends.stored(), ends.rejected().len(), sink.trouble()), (20_000, 0, None));
    // A kill may cost the server what it had written and not synced; of what stands there, each key
    // is in order and nothing is doubled.
    let on_it = stream.jetstream().await.get_stream(&stream.name).await.unwrap();
    let state = on_it.get_info().await.unwrap().state;
    println!("{} of 20000 in the stream, {} sent again", state.messages, sink.unanswered());
    assert_eq!(state.messages, 20_000);
    let mut reader = Reader::open(stream.options()).await;
    let mut last = [None; KEYS as usize];
    for _ in 0..20_000 {
        let read = reader.next().await;
        let number: u64 = read.id.parse().unwrap();
        let of_key = &mut last[(number % KEYS) as usize];
        assert!(*of_key < Some(number), "{number} after {of_key:?}");
        *of_key = Some(number);
        read.done();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn n04_what_is_not_stored_when_a_sink_is_dropped_is_refused() {
    let Some(address) = crate::server::address("n04_dropped") else { return };
    let stream = TestStream { address, name: unique("dropped") };
    let to = output_to(&stream, "x");
    let (sink, ends) = (NatsSink::open(to).await.unwrap(), Ends::default());
    push(&sink, &ends, 0..1).await;
    until("a pause", async || sink.trouble().is_some()).await;
    drop(sink);
    until("a refusal", async || ends.is_refused("0")).await;
}
