//! What a broker takes beside an offset, and what others have left there.

use base64::{Engine, engine::general_purpose::STANDARD};
use greenroom_bus::{
    settlement::{Outcome, Settled},
    source::{Committer, Source},
    watermark::Positions,
};
use greenroom_kafka::{
    commit_set::{self, Alphabet, Limit},
    source::{FormerConsumer, KafkaSource},
};
use rdkafka::{
    error::{KafkaError, RDKafkaErrorCode},
    producer::{BaseProducer, BaseRecord, Producer},
};

use super::fake::broker;
use super::support::{
    PATIENCE, Publisher, commit, committed, config, create_topic, event, group, options, positions,
    pull, real_broker, remove_below, unique, until,
};

const HANDLED: Settled = Settled::Acknowledged(Outcome::Handled);

fn publish(broker: &str, topic: &str, partitions: i32, events: u64) {
    create_topic(broker, topic, partitions);
    let publisher = Publisher::new(broker);
    for number in 0..events {
        for partition in 0..partitions {
            publisher.event(topic, partition, &event(number, "k"));
        }
    }
    publisher.flush();
}

#[test]
fn f12_the_broker_counts_utf16_units_and_gives_back_what_it_took() {
    let Some(broker) = real_broker() else { return };
    let name = unique("f12");
    publish(&broker, &name, 1, 1);
    let group = group(&broker, &name);
    let take = |text: &str| match commit(&group, &name, 0, 0, text) {
        Ok(()) => {
            assert_eq!(committed(&group, &name, 0).unwrap().1, text);
            true
        }
        Err(KafkaError::ConsumerCommit(RDKafkaErrorCode::OffsetMetadataTooLarge)) => false,
        Err(error) => panic!("{error}"),
    };
    assert!(take(&"\u{4e00}".repeat(4_096)));
    assert!(!take(&"a".repeat(4_097)));
    assert!(take(&"\u{1f600}".repeat(2_048)));
    assert!(!take(&"\u{1f600}".repeat(2_049)));
    // Every character that a set can have.
    let all: Vec<char> = (0x800..0x8800).filter_map(char::from_u32).collect();
    assert_eq!(all.len(), 1 << 15);
    all.chunks(4_096).for_each(|chunk| assert!(take(&chunk.iter().collect::<String>())));
    // The largest set that fits.
    let open = (0..30_500).map(|at| at * 2..at * 2 + 1);
    let largest = Positions::new(61_000, open).unwrap();
    let encoded = commit_set::encode(&largest, Limit { units: 4_096, alphabet: Alphabet::Wide });
    assert!(encoded.is_whole && take(&encoded.text));
}

#[tokio::test]
async fn f03_the_metadata_of_others_is_ignored() {
    let broker = broker();
    let name = unique("f03");
    publish(&broker, &name, 5, 10);
    let client = group(&broker, &name);
    // From offset 2 on: open 2, done 3 and 4, open 5 and 6, done 7 to 9.
    let theirs = STANDARD.encode([b'l', 0, 8, 0b1110_0110]);
    let beyond = STANDARD.encode([b'l', 0, 9, 0, 0b1]);
    let ours = Positions::new(9, [2..3, 5..6]).unwrap();
    let ours = commit_set::encode(&ours, Limit { units: 4_096, alphabet: Alphabet::Ascii }).text;
    for (partition, text) in [(0, "hello"), (1, &*theirs), (2, "Gx"), (3, &*beyond), (4, &*ours)] {
        commit(&client, &name, partition, 2, text).unwrap();
    }
    let mut source =
        KafkaSource::open(options(&broker, &name, std::slice::from_ref(&name)), None).unwrap();
    let taken = pull(&mut source, 8 + 8 + 8 + 8 + 3).await;
    for partition in [0, 1, 2, 3] {
        assert!(positions(&taken, partition).into_iter().eq(2..10), "{partition}");
    }
    assert_eq!(positions(&taken, 4), [2, 5, 9]);
}

/// A source of what parallel-consumer has read before.
fn after_parallel_consumer(broker: &str, name: &str) -> KafkaSource {
    let mut options = options(broker, name, &[name.to_owned()]);
    options.from = Some(FormerConsumer::ParallelConsumer);
    KafkaSource::open(options, None).unwrap()
}

#[tokio::test]
async fn f03_the_sets_of_the_parallel_consumer_are_read_where_a_group_moves_and_only_once() {
    let broker = broker();
    let name = unique("f03-moves");
    publish(&broker, &name, 3, 10);
    let client = group(&broker, &name);
    // From offset 2 on: open 2, done 3 and 4, open 5 and 6, done 7 to 9.
    let theirs = STANDARD.encode([b'l', 0, 8, 0b1110_0110]);
    let other = STANDARD.encode("log processor of team a");
    for (partition, text) in [(0, &*theirs), (1, &*other), (2, "")] {
        commit(&client, &name, partition, 2, text).unwrap();
    }
    let mut first = after_parallel_consumer(&broker, &name);
    let commits = first.committer().unwrap();
    let taken = pull(&mut first, 3 + 8 + 8).await;
    assert_eq!(positions(&taken, 0), [2, 5, 6]);
    assert!([1, 2].iter().all(|of| positions(&taken, *of).into_iter().eq(2..10)));
    // What was read of theirs is ours from the first commit on, although nothing was settled.
    commits.commit().await.unwrap();
    let (offset, text) = committed(&client, &name, 0).unwrap();
    let ours = commit_set::decode(offset, &text).unwrap();
    assert!([3, 4, 7, 8, 9].iter().all(|at| ours.is_done(*at)) && !ours.is_done(5));
    drop((first, commits));
    // So this is no first start any more, and a text that looks like theirs is none.
    until("a group without members", || commit(&client, &name, 2, 2, &theirs).is_ok());
    let mut second = after_parallel_consumer(&broker, &name);
    let taken = pull(&mut second, 3 + 8 + 8).await;
    assert_eq!(positions(&taken, 0), [2, 5, 6]);
    assert!(positions(&taken, 2).into_iter().eq(2..10));
}

#[tokio::test]
async fn f01_what_is_done_beyond_the_lowest_open_offset_outlives_the_source() {
    let broker = broker();
    let name = unique("f01");
    publish(&broker, &name, 1, 100);
    let topics = [name.clone()];
    let mut before = KafkaSource::open(options(&broker, &name, &topics), None).unwrap();
    let commits = before.committer().unwrap();
    let taken = pull(&mut before, 100).await;
    let receipts = before.receipts().unwrap();
    let is_done = |position: u64| position % 7 != 3;
    let settled = positions(&taken, 0).into_iter().filter(|position| is_done(*position));
    settled.for_each(|position| receipts.settled(position, HANDLED));
    assert_eq!(commits.standing().repeated_at_most, 100);
    commits.commit().await.unwrap();
    assert_eq!(commits.standing().repeated_at_most, 14);
    let (offset, text) = committed(&group(&broker, &name), &name, 0).unwrap();
    let stored = commit_set::decode(offset, &text).unwrap();
    assert_eq!(offset, 3);
    assert!(
        (0..100).all(|position| stored.is_done(position) == is_done(position) || position > 94)
    );
    drop((before, commits));
    let mut after = KafkaSource::open(options(&broker, &name, &topics), None).unwrap();
    let taken = pull(&mut after, 14).await;
    assert!(positions(&taken, 0).into_iter().eq((0..100).filter(|position| !is_done(*position))));
    // A result that comes when its source is gone changes nothing.
    receipts.settled(3, HANDLED);
}

#[tokio::test]
async fn d08_a_partition_says_how_far_it_is_behind() {
    let broker = broker();
    let name = unique("d08");
    publish(&broker, &name, 1, 50);
    let mut source =
        KafkaSource::open(options(&broker, &name, std::slice::from_ref(&name)), None).unwrap();
    let commits = source.committer().unwrap();
    let taken = pull(&mut source, 50).await;
    assert_eq!(taken.len(), 50);
    source.receipts().unwrap().settled(0, HANDLED);
    let standing = |commits: &dyn Committer| commits.partitions().pop().unwrap();
    super::support::until("a figure of the broker", || standing(&*commits).lag.is_some());
    let standing = standing(&*commits);
    assert_eq!((standing.next, standing.oldest_open, standing.lag), (50, 1, Some(0)));
}

/// Records of a transaction that is aborted.
fn abort(broker: &str, topic: &str, records: u64) {
    let producer: BaseProducer =
        config(broker).set("transactional.id", unique("aborts")).create().unwrap();
    producer.init_transactions(PATIENCE).unwrap();
    producer.begin_transaction().unwrap();
    for number in 0..records {
        let value = number.to_string();
        let record = BaseRecord::to(topic).partition(0).key("k").payload(&value);
        producer.send(record).map_err(|(error, _)| error).unwrap();
    }
    producer.flush(PATIENCE).unwrap();
    producer.abort_transaction(PATIENCE).unwrap();
}

#[tokio::test]
async fn f01_behind_an_aborted_transaction_lag_reaches_nothing_and_is_stored() {
    let Some(broker) = real_broker() else { return };
    let name = unique("aborted");
    create_topic(&broker, &name, 1);
    let publisher = Publisher::new(&broker);
    (0..5).for_each(|number| publisher.event(&name, 0, &event(number, "k")));
    publisher.flush();
    abort(&broker, &name, 100);
    let open =
        || KafkaSource::open(options(&broker, &name, std::slice::from_ref(&name)), None).unwrap();
    let mut source = open();
    let commits = source.committer().unwrap();
    pull(&mut source, 5).await;
    let receipts = source.receipts().unwrap();
    (0..4).for_each(|at| receipts.settled(at, HANDLED));
    until("no lag", || commits.partitions().first().is_some_and(|part| part.lag == Some(0)));
    commits.commit().await.unwrap();
    assert_eq!(committed(&group(&broker, &name), &name, 0).unwrap().0, 4, "one is in hand");
    receipts.settled(4, HANDLED);
    commits.commit().await.unwrap();
    // Five records, a hundred that were aborted, and the marker that says so.
    assert_eq!(committed(&group(&broker, &name), &name, 0), Some((106, String::new())));
    commits.end();
    drop((source, commits));
    remove_below(&broker, &name, 106);
    publisher.event(&name, 0, &event(5, "k"));
    publisher.flush();
    let taken = pull(&mut open(), 1).await;
    assert_eq!(positions(&taken, 0), [106]);
}
