//! What is done and no longer fits in a commit (F01).

use std::time::Duration;

use greenroom_bus::{
    settlement::{Outcome, Settled},
    source::Source,
};
use greenroom_kafka::{commit_set, source::KafkaSource};

use super::fake::broker;
use super::support::{
    Publisher, committed, create_topic, event, group, options, positions, pull, unique,
};

const HANDLED: Settled = Settled::Acknowledged(Outcome::Handled);

fn publish(broker: &str, topic: &str, events: u64) {
    create_topic(broker, topic, 1);
    let publisher = Publisher::new(broker);
    (0..events).for_each(|number| publisher.event(topic, 0, &event(number, "k")));
    publisher.flush();
}

/// Takes as long as anything comes. Of that, the first and every other one stays open. Returns how
/// many came.
async fn take_until_full(source: &mut KafkaSource) -> u64 {
    let mut received = 0;
    loop {
        let mut taken = Vec::new();
        let pulled = tokio::time::timeout(Duration::from_secs(2), source.pull(&mut taken)).await;
        let Ok(pulled) = pulled else { return received };
        pulled.unwrap();
        received += taken.len() as u64;
        let receipts = source.receipts().unwrap();
        let odd = taken.iter().filter(|taken| taken.position % 2 == 1);
        odd.for_each(|taken| receipts.settled(taken.position, HANDLED));
    }
}

#[tokio::test]
async fn f01_intake_stops_while_what_is_done_would_not_fit_and_goes_on_when_it_does() {
    let broker = broker();
    let name = unique("full");
    publish(&broker, &name, 5_000);
    let mut source_options = options(&broker, &name, std::slice::from_ref(&name));
    source_options.metadata_limit = 64;
    let mut source = KafkaSource::open(source_options, None).unwrap();
    let commits = source.committer().unwrap();
    let received = take_until_full(&mut source).await;
    assert!((500..1_500).contains(&received), "{received} came before it stopped");
    commits.commit().await.unwrap();
    let (offset, text) = committed(&group(&broker, &name), &name, 0).unwrap();
    let stored = commit_set::decode(offset, &text).unwrap();
    assert!(text.encode_utf16().count() <= 64);
    let all_are_stored =
        (0..received).all(|at| stored.is_done(at) == (at % 2 == 1) || at + 1 == received);
    assert!(all_are_stored, "all that is done is in the commit");
    let receipts = source.receipts().unwrap();
    let even = (0..received).filter(|at| at % 2 == 0);
    even.for_each(|at| receipts.settled(at, HANDLED));
    let mut next = received;
    while next < 5_000 {
        let taken = pull(&mut source, 1).await;
        let receipts = source.receipts().unwrap();
        for position in positions(&taken, 0) {
            assert_eq!(position, next);
            next += 1;
            receipts.settled(position, HANDLED);
        }
    }
}

#[tokio::test]
async fn f01_a_partition_that_was_full_is_read_on_after_a_restart() {
    let broker = broker();
    let name = unique("again");
    publish(&broker, &name, 5_000);
    let mut source_options = options(&broker, &name, std::slice::from_ref(&name));
    source_options.metadata_limit = 64;
    let open = || KafkaSource::open(source_options.clone(), None).unwrap();
    let mut source = open();
    let commits = source.committer().unwrap();
    let received = take_until_full(&mut source).await;
    commits.commit().await.unwrap();
    drop((source, commits));
    let mut source = open();
    let open_ones = (received / 2) as usize;
    let again = positions(&pull(&mut source, open_ones).await, 0);
    assert!(again.iter().copied().eq((0..received).filter(|at| at % 2 == 0)), "{again:?}");
    let receipts = source.receipts().unwrap();
    again.iter().for_each(|at| receipts.settled(*at, HANDLED));
    assert_eq!(positions(&pull(&mut source, 1).await, 0)[0], received);
}

#[tokio::test]
async fn f01_a_broker_that_takes_less_than_was_thought_gets_less() {
    let broker = broker();
    let name = unique("less");
    publish(&broker, &name, 70_000);
    let mut source_options = options(&broker, &name, std::slice::from_ref(&name));
    source_options.metadata_limit = 100_000;
    let mut source = KafkaSource::open(source_options, None).unwrap();
    let commits = source.committer().unwrap();
    let taken = pull(&mut source, 70_000).await;
    let receipts = source.receipts().unwrap();
    // As good as random: its entropy is more than the broker takes.
    let is_done = |at: u64| at > 0 && at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 1;
    let done = positions(&taken, 0).into_iter().filter(|at| is_done(*at));
    done.for_each(|at| receipts.settled(at, HANDLED));
    commits.commit().await.unwrap();
    let (offset, text) = committed(&group(&broker, &name), &name, 0).unwrap();
    let stored = commit_set::decode(offset, &text).unwrap();
    assert!((2_000..=4_096).contains(&text.encode_utf16().count()));
    assert!((0..stored.next()).all(|at| stored.is_done(at) == is_done(at)));
    assert!(stored.next() > 30_000, "{}", stored.next());
}
