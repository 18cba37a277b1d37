//! A broker that fails by request: errors, answers that are lost, connections that break (F02, F04,
//! F07, F10, D13). Each test has one of its own in this process.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use greenroom_bus::{
    settlement::{Outcome, Settled},
    sink::Sink,
    source::{InputState, Source},
};
use greenroom_kafka::{
    KafkaInput, KafkaOutput, commit_set,
    output::KafkaSink,
    source::{KafkaSource, StartAt},
};
use krafka::{
    error::ErrorCode,
    testing::{ApiKey, Control, FakeBroker},
};

use super::{
    fake::fake,
    output::Ends,
    support::{Publisher, event, options, positions, pull, until},
};

const HANDLED: Settled = Settled::Acknowledged(Outcome::Handled);
const TOPIC: &str = "orders";
const GROUP: &str = "billing";

/// With a topic of one partition, and so many events in it.
fn fake_with(events: u64) -> FakeBroker {
    let fake = fake();
    assert!(fake.create_topic(TOPIC, 1));
    let publisher = Publisher::new(&fake.bootstrap_servers());
    (0..events).for_each(|number| publisher.event(TOPIC, 0, &event(number, "k")));
    publisher.flush();
    fake
}

fn reads(fake: &FakeBroker) -> KafkaInput {
    let mut options = options(&fake.bootstrap_servers(), GROUP, &[TOPIC.to_owned()]);
    options.properties.set("reconnect.backoff.max.ms", "200");
    options
}

/// What the group has committed: the offset, and the text beside it.
fn stored(fake: &FakeBroker) -> Option<(i64, String)> {
    fake.with_state(|state| {
        let of = state.groups.get(GROUP)?.offsets.get(&(TOPIC.to_owned(), 0))?;
        Some((of.offset, of.metadata.clone().unwrap_or_default()))
    })
}

#[tokio::test]
async fn f02_a_commit_that_failed_is_not_taken_for_done() {
    let fake = fake_with(10);
    let mut source = KafkaSource::open(reads(&fake), None).unwrap();
    let commits = source.committer().unwrap();
    pull(&mut source, 10).await;
    let receipts = source.receipts().unwrap();
    (0..10).for_each(|at| receipts.settled(at, HANDLED));
    fake.on(ApiKey::OffsetCommit, |_| Control::Error(ErrorCode::UnknownServerError));
    commits.commit().await.unwrap();
    assert_eq!((stored(&fake), commits.standing().repeated_at_most), (None, 10));
    fake.clear_hooks();
    commits.commit().await.unwrap();
    assert_eq!(
        (stored(&fake), commits.standing().repeated_at_most),
        (Some((10, String::new())), 0)
    );
}

/// What is in hand when its run is told to stop ends later than its source.
#[tokio::test]
async fn f02_a_source_that_is_gone_commits_as_long_as_it_is_asked() {
    let fake = fake_with(10);
    let mut source = KafkaSource::open(reads(&fake), None).unwrap();
    let commits = source.committer().unwrap();
    pull(&mut source, 10).await;
    let receipts = source.receipts().unwrap();
    drop(source);
    for at in 0..10 {
        receipts.settled(at, HANDLED);
        commits.commit().await.unwrap();
        assert_eq!(stored(&fake).unwrap().0, i64::try_from(at).unwrap() + 1);
    }
}

#[tokio::test]
async fn f02_partitions_are_committed_at_once_and_what_is_not_stored_by_itself() {
    const PARTITIONS: i32 = 8;
    let fake = Arc::new(fake());
    assert!(fake.create_topic(TOPIC, PARTITIONS));
    let publisher = Publisher::new(&fake.bootstrap_servers());
    (0..PARTITIONS).for_each(|partition| publisher.event(TOPIC, partition, &event(0, "k")));
    (0..PARTITIONS).for_each(|partition| publisher.event(TOPIC, partition, &event(1, "k")));
    publisher.flush();
    let mut source = KafkaSource::open(reads(&fake), None).unwrap();
    let commits = source.committer().unwrap();
    let mut receipts = BTreeMap::new();
    while receipts.values().map(|(_, count)| *count).sum::<usize>() < 16 {
        let mut into = Vec::new();
        source.pull(&mut into).await.unwrap();
        let entry = receipts.entry(source.partition());
        entry.or_insert_with(|| (source.receipts().unwrap(), 0)).1 += into.len();
    }
    let all = || -> Vec<i64> {
        let of = |partition| {
            fake.with_state(|state| {
                let group = state.groups.get(GROUP)?;
                Some(group.offsets.get(&(TOPIC.to_owned(), partition))?.offset)
            })
        };
        (0..PARTITIONS).filter_map(of).collect()
    };
    receipts.values().for_each(|(receipts, _)| receipts.settled(0, HANDLED));
    commits.commit().await.unwrap();
    assert_eq!((all(), fake.request_count(ApiKey::OffsetCommit)), (vec![1; 8], 1));
    // As if the broker had not taken one of them.
    let (hooked, has_lost) = (fake.clone(), AtomicBool::new(false));
    fake.on(ApiKey::OffsetFetch, move |_| {
        if !has_lost.swap(true, Ordering::Relaxed) {
            hooked.with_state(|state| {
                let group = state.groups.get_mut(GROUP).unwrap();
                group.offsets.get_mut(&(TOPIC.to_owned(), 3)).unwrap().offset = 1;
            });
        }
        Control::Pass
    });
    receipts.values().for_each(|(receipts, _)| receipts.settled(1, HANDLED));
    commits.commit().await.unwrap();
    assert_eq!((all(), fake.request_count(ApiKey::OffsetCommit)), (vec![2; 8], 3));
    assert_eq!(commits.standing().repeated_at_most, 0);
}

#[tokio::test]
async fn f02_a_commit_whose_answer_is_lost_is_made_again() {
    let fake = fake_with(10);
    let mut source = KafkaSource::open(reads(&fake), None).unwrap();
    let commits = source.committer().unwrap();
    pull(&mut source, 10).await;
    let receipts = source.receipts().unwrap();
    (0..5).for_each(|at| receipts.settled(at, HANDLED));
    let lost = Control::ApplyThen(Box::new(Control::Disconnect));
    fake.on_once(ApiKey::OffsetCommit, move |_| lost.clone());
    while commits.standing().repeated_at_most > 5 {
        commits.commit().await.unwrap();
    }
    assert_eq!(stored(&fake), Some((5, String::new())));
    assert!(fake.request_count(ApiKey::OffsetCommit) > 1);
}

#[tokio::test]
async fn f01_a_broker_that_refuses_the_text_gets_one_in_ascii() {
    let fake = fake_with(100);
    let mut source = KafkaSource::open(reads(&fake), None).unwrap();
    let commits = source.committer().unwrap();
    pull(&mut source, 100).await;
    let receipts = source.receipts().unwrap();
    (1..100).filter(|at| at % 3 != 0).for_each(|at| receipts.settled(at, HANDLED));
    fake.on_once(ApiKey::OffsetCommit, |_| Control::Error(ErrorCode::OffsetMetadataTooLarge));
    commits.commit().await.unwrap();
    let (offset, text) = stored(&fake).unwrap();
    assert!(text.is_ascii() && text.starts_with('g'), "{text}");
    let positions = commit_set::decode(offset.unsigned_abs(), &text).unwrap();
    assert!((0..98).all(|at| positions.is_done(at) == (at % 3 != 0)));
}

#[tokio::test]
async fn f10_where_to_begin_is_asked_until_the_coordinator_answers() {
    let fake = fake_with(10);
    fake.on_times(ApiKey::FindCoordinator, 3, |_| {
        Control::Error(ErrorCode::CoordinatorNotAvailable)
    });
    fake.on_once(ApiKey::OffsetFetch, |_| Control::Error(ErrorCode::UnknownServerError));
    fake.on_once(ApiKey::ListOffsets, |_| Control::Disconnect);
    let mut source = KafkaSource::open(reads(&fake), None).unwrap();
    assert!(positions(&pull(&mut source, 10).await, 0).into_iter().eq(0..10));
}

#[tokio::test]
async fn f10_what_is_refused_for_want_of_a_right_is_read_once_that_is_there() {
    let fake = fake_with(10);
    let is_refused = Arc::new(AtomicBool::new(false));
    let told = is_refused.clone();
    fake.on_times(ApiKey::Fetch, 3, move |_| {
        told.store(true, Ordering::SeqCst);
        Control::Error(ErrorCode::TopicAuthorizationFailed)
    });
    let mut source = KafkaSource::open(reads(&fake), None).unwrap();
    assert!(positions(&pull(&mut source, 10).await, 0).into_iter().eq(0..10));
    assert!(is_refused.load(Ordering::SeqCst));
}

#[tokio::test]
async fn z07_a_broker_that_was_away_is_gone_on_with_from_where_it_was() {
    let fake = fake_with(10);
    let mut source = KafkaSource::open(reads(&fake), None).unwrap();
    let commits = source.committer().unwrap();
    let first = pull(&mut source, 10).await;
    assert_eq!(first.len(), 10);
    fake.crash(0);
    let receipts = source.receipts().unwrap();
    (0..10).for_each(|at| receipts.settled(at, HANDLED));
    assert_eq!((stored(&fake), commits.standing().repeated_at_most), (None, 10));
    fake.restart(0);
    let publisher = Publisher::new(&fake.bootstrap_servers());
    (10..20).for_each(|number| publisher.event(TOPIC, 0, &event(number, "k")));
    publisher.flush();
    assert!(positions(&pull(&mut source, 10).await, 0).into_iter().eq(10..20));
    while commits.standing().repeated_at_most > 10 {
        commits.commit().await.unwrap();
    }
    assert_eq!(stored(&fake), Some((10, String::new())));
}

#[tokio::test]
async fn f04_what_comes_late_of_a_partition_that_was_lost_changes_nothing() {
    let fake = fake_with(10);
    let mut source = KafkaSource::open(reads(&fake), None).unwrap();
    let commits = source.committer().unwrap();
    pull(&mut source, 10).await;
    let before = source.receipts().unwrap();
    (0..3).for_each(|at| before.settled(at, HANDLED));
    commits.commit().await.unwrap();
    before.settled(3, HANDLED);
    // The broker has forgotten this member.
    fake.on_once(ApiKey::Heartbeat, |_| Control::Error(ErrorCode::UnknownMemberId));
    // What was not committed comes again, also what was settled since.
    assert!(positions(&pull(&mut source, 7).await, 0).into_iter().eq(3..10));
    (4..10).for_each(|at| before.settled(at, HANDLED));
    commits.commit().await.unwrap();
    assert_eq!(stored(&fake), Some((3, String::new())));
    let after = source.receipts().unwrap();
    (3..10).for_each(|at| after.settled(at, HANDLED));
    commits.commit().await.unwrap();
    assert_eq!(stored(&fake), Some((10, String::new())));
}

fn sink(fake: &FakeBroker) -> (KafkaSink, Ends) {
    let mut options = KafkaOutput::new(fake.bootstrap_servers(), TOPIC);
    options.properties.set("reconnect.backoff.max.ms", "200").set("retry.backoff.ms", "50");
    (KafkaSink::open(options).unwrap(), Ends::default())
}

#[tokio::test]
async fn f07_what_was_written_without_an_answer_is_in_the_topic_once() {
    let fake = fake_with(0);
    let (sink, ends) = sink(&fake);
    let lost = Control::ApplyThen(Box::new(Control::Disconnect));
    fake.on_once(ApiKey::Produce, move |_| lost.clone());
    for number in 0..20 {
        sink.accept(ends.outgoing(event(number, "k"))).await;
    }
    sink.finish().await.unwrap();
    assert_eq!((ends.stored(), fake.next_offset(TOPIC, 0)), (20, Some(20)));
    assert!(fake.request_count(ApiKey::Produce) > 1);
    let mut source = KafkaSource::open(reads(&fake), None).unwrap();
    let taken = pull(&mut source, 20).await;
    let ids = taken.into_iter().map(|(_, taken)| taken.event.unwrap().id().parse::<u64>().unwrap());
    assert!(ids.eq(0..20), "in the order in which they were accepted");
}

#[tokio::test]
async fn f07_nothing_is_settled_before_the_broker_has_it() {
    let fake = fake_with(0);
    let (sink, ends) = sink(&fake);
    fake.on(ApiKey::Produce, |_| Control::Error(ErrorCode::NotEnoughReplicas));
    sink.accept(ends.outgoing(event(1, "k"))).await;
    until("an attempt", || fake.request_count(ApiKey::Produce) > 1);
    assert!(ends.of("1").is_empty());
    fake.clear_hooks();
    sink.finish().await.unwrap();
    assert_eq!(ends.stored(), 1);
}

#[tokio::test]
async fn d13_a_record_that_is_too_large_for_the_topic_is_rejected() {
    let fake = fake_with(0);
    let (sink, ends) = sink(&fake);
    fake.on(ApiKey::Produce, |_| Control::Error(ErrorCode::MessageTooLarge));
    sink.accept(ends.outgoing(event(1, "k"))).await;
    until("an end", || !ends.of("1").is_empty());
    let end = ends.of("1");
    let is_told = matches!(&end[0], Err(why) if why.contains("does not take it"));
    assert!(is_told, "{end:?}");
    fake.clear_hooks();
    sink.accept(ends.outgoing(event(2, "k"))).await;
    sink.finish().await.unwrap();
    assert!(matches!(ends.of("2")[..], [Ok(end)] if end.is_acknowledged()));
}

#[tokio::test]
async fn d13_an_output_without_the_right_to_write_pauses_until_it_has_it() {
    let fake = fake_with(0);
    let (sink, ends) = sink(&fake);
    fake.on(ApiKey::Produce, |_| Control::Error(ErrorCode::TopicAuthorizationFailed));
    sink.accept(ends.outgoing(event(1, "k"))).await;
    until("a pause", || sink.trouble().is_some_and(|trouble| trouble.paused));
    assert!(ends.of("1").is_empty());
    fake.clear_hooks();
    assert!(sink.resume());
    sink.finish().await.unwrap();
    assert_eq!(ends.stored(), 1);
}

#[tokio::test]
async fn f10_a_partition_without_a_leader_holds_up_no_other() {
    let fake = fake();
    assert!(fake.create_topic(TOPIC, 2));
    let publisher = Publisher::new(&fake.bootstrap_servers());
    for number in 0..10 {
        (0..2).for_each(|partition| publisher.event(TOPIC, partition, &event(number, "k")));
    }
    publisher.flush();
    assert!(fake.set_leader(TOPIC, 0, -1));
    let mut source = KafkaSource::open(reads(&fake), None).unwrap();
    assert!(positions(&pull(&mut source, 10).await, 1).into_iter().eq(0..10));
    assert!(fake.set_leader(TOPIC, 0, 0));
    assert!(positions(&pull(&mut source, 10).await, 0).into_iter().eq(0..10));
}

/// librdkafka reads nothing at all until it is answered.
#[tokio::test]
async fn f10_a_partition_without_a_leader_holds_up_no_other_after_a_question_that_failed() {
    const LATER: &str = "later";
    let fake = fake_with(10);
    let mut options = reads(&fake);
    options.topics.push(LATER.to_owned());
    options.properties.set("topic.metadata.refresh.interval.ms", "500");
    let mut source = KafkaSource::open(options, None).unwrap();
    assert!(positions(&pull(&mut source, 10).await, 0).into_iter().eq(0..10));
    let asked = fake.request_count(ApiKey::OffsetFetch);
    fake.on_once(ApiKey::OffsetFetch, |_| Control::Error(ErrorCode::UnknownServerError));
    assert!(fake.create_topic(LATER, 1) && fake.set_leader(LATER, 0, -1));
    until("the second question", || fake.request_count(ApiKey::OffsetFetch) > asked + 1);
    let publisher = Publisher::new(&fake.bootstrap_servers());
    (10..15).for_each(|number| publisher.event(TOPIC, 0, &event(number, "k")));
    publisher.flush();
    assert!(positions(&pull(&mut source, 5).await, 0).into_iter().eq(10..15));
}

#[tokio::test]
async fn f04_what_goes_before_it_is_assigned_leaves_the_rest_to_be_read() {
    let fake = fake_with(10);
    assert!(fake.create_topic("gone", 1));
    fake.on(ApiKey::ListOffsets, |_| Control::Error(ErrorCode::UnknownServerError));
    let mut options = reads(&fake);
    options.topics.push("gone".to_owned());
    let mut source = KafkaSource::open(options, None).unwrap();
    until("a question", || fake.request_count(ApiKey::ListOffsets) > 0);
    let joined = fake.request_count(ApiKey::JoinGroup);
    assert!(fake.delete_topic("gone"));
    // The client does not wait for ever for what it was never given.
    until("another generation", || fake.request_count(ApiKey::JoinGroup) > joined);
    fake.clear_hooks();
    assert!(positions(&pull(&mut source, 10).await, 0).into_iter().eq(0..10));
}

#[tokio::test]
async fn f10_latest_leaves_out_nothing_of_a_partition_that_comes_later() {
    let fake = fake_with(10);
    let mut options = reads(&fake);
    options.start = StartAt::Latest;
    // There are records before it is found.
    options.properties.set("topic.metadata.refresh.interval.ms", "2000");
    let mut source = KafkaSource::open(options, None).unwrap();
    // Nobody asks for this commit.
    until("its beginning", || stored(&fake) == Some((10, String::new())));
    assert_eq!(fake.add_partitions(TOPIC, 2), 1);
    let publisher = Publisher::new(&fake.bootstrap_servers());
    (0..5).for_each(|number| publisher.event(TOPIC, 1, &event(number, "k")));
    publisher.flush();
    assert!(positions(&pull(&mut source, 5).await, 1).into_iter().eq(0..5));
}

#[tokio::test]
async fn o17_f10_a_broker_that_is_gone_is_a_state_and_the_last_commit_does_not_wait_for_it() {
    let fake = fake_with(3);
    let mut source = KafkaSource::open(reads(&fake), None).unwrap();
    let (commits, status) = (source.committer().unwrap(), source.status().unwrap());
    pull(&mut source, 3).await;
    let receipts = source.receipts().unwrap();
    (0..3).for_each(|at| receipts.settled(at, HANDLED));
    until("the input is assigned", || status.get().state == InputState::Assigned);
    assert_eq!(status.get().detail, "group billing: orders/0");
    drop(fake);
    until("the input is lost", || status.get().state == InputState::Lost);
    let detail = status.get().detail;
    assert!(detail.starts_with("no broker answers: ") && detail.contains("refused"), "{detail}");
    // A third of what a broker that can be reached may take.
    let commit = tokio::time::timeout(Duration::from_secs(10), commits.commit());
    assert!(commit.await.is_ok(), "it waits as if a broker could answer");
}
