use greenroom_bus::{
    event::Event,
    settlement::{Outcome, Refusal, Settled},
    source::{Pull, Source, Taken},
};

use super::*;

const DONE: Settled = Settled::Acknowledged(Outcome::Handled);

fn events(count: usize) -> Vec<Event> {
    let event = |n: usize| Event::builder(n.to_string(), "test", "made").build().unwrap();
    (0..count).map(event).collect()
}

/// Everything that there is now.
async fn all(source: &mut dyn Source) -> Vec<Taken> {
    let mut taken = Vec::new();
    while let Some(Ok(Pull::More)) = now(std::pin::pin!(source.pull(&mut taken))).await {}
    taken
}

/// What a future has to say without waiting.
async fn now<F: Future>(mut future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    std::future::poll_fn(|task| match future.as_mut().poll(task) {
        std::task::Poll::Ready(output) => std::task::Poll::Ready(Some(output)),
        std::task::Poll::Pending => std::task::Poll::Ready(None),
    })
    .await
}

fn positions(taken: &[Taken]) -> Vec<u64> {
    taken.iter().map(|taken| taken.position).collect()
}

fn settle(source: &dyn Source, positions: impl IntoIterator<Item = u64>) {
    let receipts = source.receipts().unwrap();
    positions.into_iter().for_each(|position| receipts.settled(position, DONE));
}

#[tokio::test]
async fn d15_another_source_goes_on_with_what_is_committed() {
    let broker = Broker::default();
    broker.publish(0, events(6));
    let mut first = broker.source();
    assert_eq!(positions(&all(&mut *first).await), [1, 2, 3, 4, 5, 6]);
    settle(&*first, [1, 2, 4]);
    first.committer().unwrap().commit().await.unwrap();
    settle(&*first, [6]);
    let mut second = broker.source();
    assert_eq!(positions(&all(&mut *second).await), [3, 5, 6], "6 was done and not committed");
    assert_eq!(now(std::pin::pin!(first.pull(&mut Vec::new()))).await.unwrap().unwrap(), Pull::End);
    settle(&*first, [3]);
    first.committer().unwrap().commit().await.unwrap();
    assert_eq!(broker.committed(0).lowest(), 3, "what comes of the first is fenced");
    assert_eq!(second.committer().unwrap().standing().resumed.unwrap().again_at_most, 3);
}

#[tokio::test]
async fn d15_what_is_repeated_is_skipped_where_it_is_done_or_in_hand() {
    let broker = Broker::default();
    broker.publish(0, events(4));
    let mut source = broker.source();
    all(&mut *source).await;
    settle(&*source, [1]);
    source.receipts().unwrap().settled(3, Settled::Refused(Refusal::Dropped));
    broker.repeat(0, 4);
    assert_eq!(positions(&all(&mut *source).await), [3], "1 is done, 2 and 4 are in hand");
    assert_eq!((broker.given(0), broker.open(0)), (5, 3));
}

#[tokio::test]
async fn d15_a_partition_that_is_taken_away_gives_nothing_until_it_is_given_back() {
    let broker = Broker::default();
    broker.publish(0, events(3));
    let mut source = broker.source();
    let taken = all(&mut *source).await;
    let delivery = *taken[0].event.as_ref().unwrap().local::<Delivery>().unwrap();
    settle(&*source, [2]);
    broker.revoke(0);
    let mut none = Vec::new();
    assert_eq!(source.pull(&mut none).await.unwrap(), Pull::Revoke);
    assert!(broker.is_assigned(&delivery), "until the engine has answered");
    for partition in source.revoking() {
        source.revoked(partition);
    }
    assert_eq!((broker.revoked(), broker.is_assigned(&delivery)), (vec![0], false));
    assert!(all(&mut *source).await.is_empty());
    broker.assign(0);
    assert_eq!(positions(&all(&mut *source).await), [1, 3], "2 was committed with the answer");
    assert_eq!(broker.undone(0), [1, 3]);
}

#[tokio::test]
async fn d15_the_same_seed_gives_the_same_batches_and_gaps() {
    let options = BrokerOptions { seed: 11, batch: 9, gaps: 0.4, repeats: 0.4 };
    let mut runs = Vec::new();
    for _ in 0..2 {
        let broker = Broker::new(options);
        broker.publish(0, events(50));
        broker.publish(1, events(50));
        broker.end();
        let (mut source, mut given) = (broker.source(), Vec::new());
        loop {
            let mut taken = Vec::new();
            let pull = source.pull(&mut taken).await.unwrap();
            given.push((source.partition(), positions(&taken)));
            if pull == Pull::End {
                break;
            }
        }
        runs.push(given);
    }
    assert_eq!(runs[0], runs[1]);
    let given: usize = runs[0].iter().map(|(_, positions)| positions.len()).sum();
    assert_eq!(given, 100, "a repeat gives nothing that is in hand");
    assert!(
        runs[0].iter().any(|(_, positions)| positions.windows(2).any(|two| two[1] > two[0] + 1))
    );
}

#[tokio::test]
async fn d15_what_an_engine_may_not_do_is_told() {
    let broker = Broker::default();
    broker.publish(0, events(1));
    let mut source = broker.source();
    all(&mut *source).await;
    settle(&*source, [1, 1]);
    source.revoked(greenroom_bus::source::Partition(0));
    let misuse = broker.misuse();
    assert!(misuse[0].contains("settled more often than given"), "{misuse:?}");
    assert!(misuse[1].contains("is not taken away"), "{misuse:?}");
}
