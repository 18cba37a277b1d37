//! From one stream to another by an engine, with dead letters on a third (D13, D06, Z03, Z12).

use std::sync::Arc;

use async_nats::{HeaderMap, jetstream::stream::StorageType};
use greenroom_bus::{
    dead_letter::redrive::LetterChoice,
    engine::{Control, Engine, HandlerConfig, RunReport},
    event::Event,
    handler::pass::PassFactory,
};
use greenroom_nats::{
    NatsLetters, NatsOutput,
    output::{NatsDeadLetters, NatsSink},
    redrive,
    source::NatsSource,
};
use tokio::task::JoinHandle;

use crate::server::{TestStream, unique, until};

struct Running {
    control: Control,
    letters: Arc<NatsDeadLetters>,
    report: JoinHandle<RunReport>,
}

/// All of one stream goes to the other, and dead letters to a subject.
async fn run(from: &TestStream, to: &TestStream, dead: &str) -> Running {
    let source = NatsSource::open(from.options(), None).await.unwrap();
    let subject = format!("{}.{{subject}}", to.name).parse().unwrap();
    let sink = NatsSink::open(NatsOutput::new(&to.address, subject)).await.unwrap();
    let letters = NatsLetters::new(&to.address, dead.parse().unwrap());
    let letters = NatsDeadLetters::open(&letters).await.unwrap();
    let letters = Arc::new(letters);
    let all = || vec!["**".parse().unwrap()];
    let order_by = Some("subject".parse().unwrap());
    let handler = HandlerConfig { order_by, ..HandlerConfig::new(all(), Arc::new(PassFactory)) };
    let engine = Engine::builder()
        .input(Box::new(source))
        .handler("pass", handler)
        .output("out", all(), Arc::new(sink))
        .dead_letters(letters.clone())
        .build()
        .await
        .unwrap();
    let control = engine.control();
    Running { control, letters, report: tokio::spawn(engine.run()) }
}

async fn publish(to: &TestStream, number: u64, bytes: usize) {
    let event =
        Event::builder(number.to_string(), "/test", "made").subject((number % 3).to_string());
    let mut json = Vec::new();
    event.data_json(&"x".repeat(bytes)).build().unwrap().write_json(&mut json);
    to.publish_bytes(json).await;
}

async fn all_settled(stream: &TestStream) {
    let settled = async || {
        let consumer = stream.consumer("greenroom").await;
        (consumer.num_pending, consumer.num_ack_pending) == (0, 0)
    };
    until("all is settled", settled).await;
}

/// The messages of a stream: headers and payloads.
async fn messages(stream: &TestStream) -> Vec<(HeaderMap, String)> {
    let on_it = stream.jetstream().await.get_stream(&stream.name).await.unwrap();
    let last = on_it.get_info().await.unwrap().state.last_sequence;
    let mut messages = Vec::new();
    for sequence in 1..=last {
        let message = on_it.get_raw_message(sequence).await.unwrap();
        messages.push((message.headers, String::from_utf8(message.payload.to_vec()).unwrap()));
    }
    messages
}

#[tokio::test(flavor = "multi_thread")]
async fn d13_what_the_other_stream_never_takes_is_a_letter_on_a_third() {
    let Some(from) = TestStream::new("d13_engine").await else { return };
    let to = TestStream::at(from.address.clone(), StorageType::Memory).await;
    let dead = TestStream::at(from.address.clone(), StorageType::Memory).await;
    to.change(|config| config.max_message_size = 2_000).await;
    for number in 0..50 {
        publish(&from, number, if number == 20 { 5_000 } else { 10 }).await;
    }
    from.publish_bytes("{ no").await;
    let running = run(&from, &to, &format!("{}.dead", dead.name)).await;
    all_settled(&from).await;
    running.control.drain();
    let report = running.report.await.unwrap();
    assert_eq!((report.handled, report.dead_lettered), (49, 2));
    assert_eq!(messages(&to).await.len(), 49);
    let mut letters = messages(&dead).await;
    letters.sort_by_key(|(headers, _)| headers.get("greenroom-position").unwrap().to_string());
    let header = |letter: usize, name: &str| letters[letter].0.get(name).unwrap().to_string();
    let source = format!("nats:{}/greenroom", from.name);
    assert_eq!([0, 1].map(|letter| header(letter, "greenroom-position")), ["21", "51"]);
    assert_eq!([0, 1].map(|letter| header(letter, "greenroom-source")), [&source[..]; 2]);
    assert_eq!(header(0, "greenroom-reason"), "output_rejected");
    assert!(letters[0].1.contains("xxxxx") && letters[0].1.contains(r#""output":"out""#));
    assert_eq!(header(1, "greenroom-reason"), "malformed");
    assert!(letters[1].1.contains(r#""raw_base64":"eyBubw==""#), "{}", letters[1].1);
    for stream in [from, to, dead] {
        stream.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d06_letters_go_back_to_the_subjects_that_their_messages_had() {
    let Some(from) = TestStream::new("d06_redrive").await else { return };
    let to = TestStream::at(from.address.clone(), StorageType::Memory).await;
    let dead = TestStream::at(from.address.clone(), StorageType::Memory).await;
    let subject = format!("{}.dead", dead.name);
    to.change(|config| config.max_message_size = 2_000).await;
    for number in 0..3 {
        publish(&from, number, if number == 1 { 5_000 } else { 10 }).await;
    }
    let running = run(&from, &to, &subject).await;
    all_settled(&from).await;
    running.control.drain();
    assert_eq!(running.report.await.unwrap().dead_lettered, 1);
    // It is mended. A letter of something else stays.
    to.change(|config| config.max_message_size = -1).await;
    let jetstream = from.jetstream().await;
    jetstream.publish(subject.clone(), "no letter".into()).await.unwrap().await.unwrap();
    dead.publish_bytes("of another subject").await;
    let letters = NatsLetters::new(&from.address, subject.parse().unwrap());
    let redrives =
        async |choice: LetterChoice| redrive(&letters, &[], &choice, |_| {}).await.unwrap();
    let counted = redrives(LetterChoice { counts_only: true, ..LetterChoice::default() }).await;
    assert_eq!((counted.published, counted.left), ([(from.name.clone(), 1)].into(), 1));
    let of =
        |reason: &str| LetterChoice { reason: Some(reason.to_owned()), ..LetterChoice::default() };
    let others = redrives(of("poisoned")).await;
    assert_eq!((others.count(), others.passed_over, others.left), (0, 2, 0));
    let (inputs, all) = ([("another".to_owned(), from.options())], LetterChoice::default());
    let elsewhere = redrive(&letters, &inputs, &all, |_| {}).await.unwrap();
    assert_eq!((elsewhere.count(), elsewhere.left), (0, 2));
    assert!(elsewhere.left_because[0].contains("which is not known here"), "{elsewhere:?}");
    assert_eq!(messages(&from).await.len(), 3, "nothing was published");
    let redriven = redrives(of("output_rejected")).await;
    assert_eq!((redriven.count(), redriven.passed_over), (1, 1));
    let again = redrives(all).await;
    let [why] = again.left_because.as_slice() else { panic!("{again:?}") };
    assert!(
        again.count() == 0 && why.starts_with("letter 2: ") && why.contains("no stream"),
        "{why}"
    );
    let on_it = from.jetstream().await.get_stream(&from.name).await.unwrap();
    assert_eq!(
        on_it.get_raw_message(4).await.unwrap().subject.as_str(),
        format!("{}.in", from.name)
    );
    let running = run(&from, &to, &subject).await;
    all_settled(&from).await;
    running.control.drain();
    assert_eq!(running.report.await.unwrap().handled, 1);
    assert_eq!(messages(&to).await.len(), 3);
    for stream in [from, to, dead] {
        stream.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d06_a_letter_whose_stream_was_made_anew_stays() {
    let Some(from) = TestStream::new("d06_anew").await else { return };
    let to = TestStream::at(from.address.clone(), StorageType::Memory).await;
    let dead = TestStream::at(from.address.clone(), StorageType::Memory).await;
    let subject = format!("{}.dead", dead.name);
    from.publish_bytes("{ no").await;
    let running = run(&from, &to, &subject).await;
    all_settled(&from).await;
    running.control.drain();
    assert_eq!(running.report.await.unwrap().dead_lettered, 1);
    from.remove().await;
    from.make(StorageType::Memory).await;
    from.publish_bytes("another").await;
    let letters = NatsLetters::new(&from.address, subject.parse().unwrap());
    let redriven = redrive(&letters, &[], &LetterChoice::default(), |_| {}).await.unwrap();
    let [why] = redriven.left_because.as_slice() else { panic!("{redriven:?}") };
    assert!(redriven.count() == 0 && why.contains("is another one"), "{why}");
    assert_eq!(messages(&from).await.len(), 1, "nothing was published");
    assert_eq!(messages(&dead).await.len(), 1, "the letter stays");
    for stream in [from, to, dead] {
        stream.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn z03_while_dead_letters_have_no_place_their_events_stay_open_and_others_go_on() {
    let Some(from) = TestStream::new("z03_letters").await else { return };
    let to = TestStream::at(from.address.clone(), StorageType::Memory).await;
    let dead = TestStream { address: from.address.clone(), name: unique("dead") };
    from.publish_bytes("{ no").await;
    let running = run(&from, &to, &format!("{}.dead", dead.name)).await;
    until("a pause", async || running.letters_are_paused()).await;
    for number in 0..50 {
        publish(&from, number, 10).await;
    }
    let one_is_open = async || {
        let consumer = from.consumer("greenroom").await;
        (consumer.num_pending, consumer.num_ack_pending) == (0, 1)
    };
    until("all but the letter's is settled", one_is_open).await;
    assert!(running.letters_are_paused());
    dead.make(StorageType::Memory).await;
    all_settled(&from).await;
    running.control.drain();
    let report = running.report.await.unwrap();
    assert_eq!((report.handled, report.dead_lettered), (50, 1));
    assert_eq!(messages(&dead).await.len(), 1);
    for stream in [from, to, dead] {
        stream.remove().await;
    }
}

impl Running {
    fn letters_are_paused(&self) -> bool {
        use greenroom_bus::dead_letter::DeadLetterStore;
        self.letters.trouble().is_some_and(|trouble| trouble.paused)
    }
}
