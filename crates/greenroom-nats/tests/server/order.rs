//! Order where messages are delivered again (N06).

use std::time::Duration;

use async_nats::jetstream::{AckKind, Message, consumer::PullConsumer};
use futures_util::StreamExt;
use greenroom_bus::source::{Partition, Source};
use greenroom_nats::NatsInput;

use tokio::task::JoinHandle;

use crate::{
    reader::{Read, Reader},
    server::{TestStream, until},
};

fn numbers(range: impl IntoIterator<Item = u64>) -> Vec<String> {
    range.into_iter().map(|number| number.to_string()).collect()
}

/// Takes some, settles every other one, and crashes.
fn crash(options: NatsInput, take: usize) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async {
                let mut reader = Reader::open(options).await;
                let taken = reader.some(take).await;
                taken.iter().step_by(2).for_each(Read::done);
                reader.commit().await;
            });
            runtime.shutdown_background();
        });
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn n06_after_a_crash_new_messages_wait_for_old_ones() {
    let Some(stream) = TestStream::new("n06_crash").await else { return };
    stream.publish(0..10, 1).await;
    crash(stream.options(), 10);
    stream.publish(10..20, 1).await;
    let mut reader = Reader::open(stream.options()).await;
    assert_eq!(reader.committer().standing().resumed.unwrap().again_at_most, 5);
    let expected = numbers((1..10).step_by(2).chain(10..20));
    assert_eq!(reader.ids(15).await, expected, "what was settled is not given again");
    assert_eq!(reader.probe.stats().out_of_order, 0);
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn n06_new_messages_wait_for_old_ones_after_a_pause_too() {
    let Some(stream) = TestStream::new("n06_pause").await else { return };
    let options = NatsInput { ack_wait: Duration::from_secs(4), ..stream.options() };
    stream.publish(0..5, 1).await;
    crash(options.clone(), 5);
    let mut reader = Reader::open(options).await;
    // Nothing has come back yet: there is nothing to give back.
    reader.source.set_paused(&[Partition::ONLY]);
    reader.commit().await;
    stream.publish(5..8, 1).await;
    reader.source.set_paused(&[]);
    assert_eq!(reader.ids(5).await, numbers([1, 3, 5, 6, 7]));
    assert_eq!(reader.probe.stats().out_of_order, 0);
    stream.remove().await;
}

/// Another client takes so many messages of the same consumer.
async fn steal(stream: &TestStream, count: usize) -> Vec<Message> {
    let made = stream.jetstream().await.get_stream(&stream.name).await.unwrap();
    let consumer: PullConsumer = made.get_consumer("greenroom").await.unwrap();
    let mut messages = consumer.fetch().max_messages(count).messages().await.unwrap();
    let mut stolen = Vec::new();
    while let Some(message) = messages.next().await {
        stolen.push(message.unwrap());
    }
    assert_eq!(stolen.len(), count);
    stolen
}

/// A reader that is full, so that what is published next can be stolen.
async fn full(stream: &TestStream) -> (Reader, Vec<Read>) {
    // Long enough for a slow machine to report progress in time.
    let ack_wait = Duration::from_secs(3);
    let options = NatsInput { capacity: Some(4), batch: 4, ack_wait, ..stream.options() };
    let mut reader = Reader::open(options).await;
    let taken = fill(stream, &mut reader, 0).await;
    // The server would give nothing beyond what the reader may have.
    let made = stream.jetstream().await.get_stream(&stream.name).await.unwrap();
    let mut config = stream.consumer("greenroom").await.config;
    config.max_ack_pending = 100;
    made.update_consumer(config).await.unwrap();
    (reader, taken)
}

/// Gives it as much as it takes, from this number on.
async fn fill(stream: &TestStream, reader: &mut Reader, from: u64) -> Vec<Read> {
    stream.publish(from..from + 4, 1).await;
    let taken = reader.some(4).await;
    until("nothing is asked for", async || stream.consumer("greenroom").await.num_waiting == 0)
        .await;
    taken
}

/// The next so many, each of which is done at once.
async fn handled(reader: &mut Reader, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    while ids.len() < count {
        let read = reader.next().await;
        read.done();
        ids.push(read.id);
    }
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn n06_deliveries_that_are_lost_on_the_way_are_waited_for() {
    let Some(stream) = TestStream::new("n06_lost").await else { return };
    let (mut reader, taken) = full(&stream).await;
    stream.publish(4..10, 1).await;
    // It never says anything, as if its connection had been lost.
    drop(steal(&stream, 3).await);
    taken.iter().for_each(Read::done);
    assert_eq!(handled(&mut reader, 6).await, numbers(4..10));
    assert_eq!(reader.probe.stats().out_of_order, 0);
    stream.remove().await;
}

/// It says that these are in progress, and no more.
fn keep(stolen: Vec<Message>) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            for message in &stolen {
                message.ack_with(AckKind::Progress).await.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    })
}

/// Another process that keeps two messages is waited for in vain.
async fn waits_in_vain(stream: &TestStream) -> (Reader, JoinHandle<()>) {
    let (mut reader, taken) = full(stream).await;
    stream.publish(4..10, 1).await;
    let thief = keep(steal(stream, 2).await);
    taken.iter().for_each(Read::done);
    let first = reader.some(4).await;
    let ids: Vec<&str> = first.iter().map(|read| read.id.as_str()).collect();
    assert_eq!(ids, ["6", "7", "8", "9"], "it is not waited for ever");
    first.iter().for_each(Read::done);
    (reader, thief)
}

#[tokio::test(flavor = "multi_thread")]
async fn n06_what_cannot_be_waited_for_is_counted_as_out_of_order() {
    let Some(stream) = TestStream::new("n06_bounded").await else { return };
    let (mut reader, thief) = waits_in_vain(&stream).await;
    thief.abort();
    let mut late = reader.ids(2).await;
    late.sort();
    assert_eq!(late, ["4", "5"], "they come, late");
    assert_eq!(reader.probe.stats().out_of_order, 2);
    stream.remove().await;
}

/// Messages that are lost while others were waited for in vain cannot be told from those. Once
/// these have come, or were acknowledged by the process that had them, they can.
async fn loses_after_a_wait_in_vain(stream: &TestStream, reader: &mut Reader) {
    let taken = fill(stream, reader, 10).await;
    stream.publish(14..20, 1).await;
    drop(steal(stream, 3).await);
    taken.iter().for_each(Read::done);
    assert_eq!(handled(reader, 6).await, numbers(14..20));
}

#[tokio::test(flavor = "multi_thread")]
async fn n06_after_what_was_waited_for_in_vain_has_come_lost_deliveries_are_waited_for_again() {
    let Some(stream) = TestStream::new("n06_late").await else { return };
    let (mut reader, thief) = waits_in_vain(&stream).await;
    thief.abort();
    let mut late = handled(&mut reader, 2).await;
    late.sort();
    assert_eq!(late, ["4", "5"]);
    loses_after_a_wait_in_vain(&stream, &mut reader).await;
    assert_eq!(reader.probe.stats().out_of_order, 2);
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn n06_after_what_was_waited_for_in_vain_is_done_elsewhere_lost_deliveries_are_waited_for() {
    let Some(stream) = TestStream::new("n06_elsewhere").await else { return };
    let (mut reader, taken) = full(&stream).await;
    stream.publish(4..10, 1).await;
    let (stolen, mut done) = (steal(&stream, 2).await, Vec::new());
    for message in &stolen {
        done.push(message.reply.clone().unwrap());
    }
    let thief = keep(stolen);
    taken.iter().for_each(Read::done);
    assert_eq!(handled(&mut reader, 4).await, numbers(6..10));
    thief.abort();
    let client = async_nats::connect(&stream.address).await.unwrap();
    for reply in done {
        client.request(reply, "+ACK".into()).await.unwrap();
    }
    // It asks the server eight times in that time.
    tokio::time::sleep(Duration::from_secs(3)).await;
    loses_after_a_wait_in_vain(&stream, &mut reader).await;
    assert_eq!(reader.probe.stats().out_of_order, 0);
    stream.remove().await;
}
