//! Events: topics, their producers and their subscribers (A14).

use std::{sync::Arc, time::Duration};

use greenroom::{
    Actor, Context, Pool, Stop, Topic,
    topic::{Event, Notice, Receiver, TopicStats},
};
use parking_lot::Mutex;

use Event::{Item, Lagged};

const SECOND: Duration = Duration::from_secs(1);

type Seen = Arc<Mutex<Vec<Event<u32>>>>;

/// Notes each event, then takes its time.
struct Listener {
    seen: Seen,
    takes: Duration,
}

impl Actor for Listener {
    type Message = Event<u32>;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, event: Event<u32>, _cx: &mut Context<Self>) -> Result<(), ()> {
        self.seen.lock().push(event);
        if !self.takes.is_zero() {
            tokio::time::sleep(self.takes).await;
        }
        Ok(())
    }
}

async fn listeners(workers: usize, capacity: usize, takes: Duration) -> (Pool<Listener>, Seen) {
    let seen = Seen::default();
    let theirs = seen.clone();
    let pool = Pool::new(move |_| Listener { seen: theirs.clone(), takes });
    (pool.workers(workers).capacity(capacity).spawn().await.unwrap(), seen)
}

async fn listener(capacity: usize) -> (Pool<Listener>, Seen) {
    listeners(1, capacity, Duration::ZERO).await
}

/// Lets everybody handle what is queued.
async fn settle() {
    tokio::time::sleep(SECOND).await;
}

fn items(range: std::ops::RangeInclusive<u32>) -> Vec<Event<u32>> {
    range.map(Item).collect()
}

fn received(receiver: &mut Receiver<u32>) -> Vec<Event<u32>> {
    std::iter::from_fn(|| receiver.try_recv()).collect()
}

fn stats(topic: &Topic<u32>) -> (usize, u64, u64, u64) {
    let TopicStats { subscribers, published, missed, removed, .. } = topic.stats();
    (subscribers, published, missed, removed)
}

#[tokio::test(start_paused = true)]
async fn a14_events_reach_every_subscriber_in_order() {
    let (topic, mut producer) = Topic::named("numbers").open();
    let (one, seen_by_one) = listener(9).await;
    let (other, seen_by_other) = listener(9).await;
    let _subscriptions = (topic.subscribe(&one), topic.subscribe(&other));
    let mut receiver = topic.receiver(9);
    assert!((1..=3).all(|number| producer.publish(number) == 3));
    settle().await;
    assert_eq!(*seen_by_one.lock(), items(1..=3));
    assert_eq!(*seen_by_other.lock(), items(1..=3));
    assert_eq!(received(&mut receiver), items(1..=3));
    assert_eq!((topic.name(), stats(&topic)), ("numbers", (3, 3, 0, 0)));
}

#[tokio::test(start_paused = true)]
async fn a14_events_become_messages_of_the_subscribers_own_type() {
    #[derive(Debug, PartialEq)]
    enum Ask {
        Number(u32),
        Missed(u64),
    }
    impl From<Event<u32>> for Ask {
        fn from(event: Event<u32>) -> Self {
            match event {
                Item(number) => Self::Number(number),
                Lagged(missed) => Self::Missed(missed),
            }
        }
    }
    struct Desk(Arc<Mutex<Vec<Ask>>>);
    impl Actor for Desk {
        type Message = Ask;
        type Reply = ();
        type Error = ();
        async fn handle(&mut self, ask: Ask, _cx: &mut Context<Self>) -> Result<(), ()> {
            self.0.lock().push(ask);
            Ok(())
        }
    }
    let seen = Arc::new(Mutex::default());
    let theirs = seen.clone();
    let desk = Pool::new(move |_| Desk(theirs.clone())).workers(1).capacity(2).spawn();
    let desk = desk.await.unwrap();
    let (topic, mut producer) = Topic::named("numbers").open();
    let every = topic.subscribe(&desk);
    let odd = |event: Event<u32>| event.into_item().filter(|number| number % 2 == 1);
    let only_odd = topic
        .subscribe_with(&desk, move |event| odd(event).map(|number| Ask::Number(number + 100)));
    (1..=2).for_each(|number| {
        producer.publish(number);
    });
    settle().await;
    // Two have room: 1 by both; then 2 is missed by the one who wants it.
    assert_eq!(*seen.lock(), [Ask::Number(1), Ask::Number(101)]);
    assert_eq!((every.missed(), only_odd.missed()), (1, 0));
    drop(only_odd);
    seen.lock().clear();
    producer.publish(4);
    settle().await;
    assert_eq!(*seen.lock(), [Ask::Missed(1), Ask::Number(4)]);
}

#[tokio::test(start_paused = true)]
async fn a14_a_new_subscriber_gets_the_last_n_and_then_what_follows() {
    let (topic, mut producer) = Topic::named("numbers").replay(3).open();
    for number in 1..=5 {
        producer.publish(number);
    }
    assert_eq!(topic.stats().replayable, 3);
    let (pool, seen) = listener(9).await;
    let _subscription = topic.subscribe(&pool);
    let (mut wide, mut narrow) = (topic.receiver(9), topic.receiver(2));
    producer.publish(6);
    settle().await;
    assert_eq!(*seen.lock(), items(3..=6));
    assert_eq!(received(&mut wide), items(3..=6));
    let lagged = [Lagged(1), Item(5), Item(6)];
    assert_eq!(received(&mut narrow), lagged, "of the old ones it gets as many as it has room for");
}

#[tokio::test(start_paused = true)]
async fn a14_without_replay_a_new_subscriber_gets_what_follows() {
    let (topic, mut producer) = Topic::named("numbers").open();
    assert_eq!(producer.publish(1), 0);
    let mut receiver = topic.receiver(9);
    producer.publish(2);
    assert_eq!((received(&mut receiver), topic.stats().replayable), (items(2..=2), 0));
}

#[tokio::test(start_paused = true)]
async fn a14_a_slow_subscriber_never_blocks_the_producer_and_is_told_what_it_missed() {
    let (topic, mut producer) = Topic::named("numbers").open();
    let (slow, seen) = listeners(1, 2, 10 * SECOND).await;
    let subscription = topic.subscribe(&slow);
    let mut quick = topic.receiver(9);
    for number in 1..=5 {
        // Nothing is awaited: the listener has no chance to make room.
        producer.publish(number);
    }
    assert_eq!((subscription.missed(), topic.stats().missed), (3, 3));
    settle().await;
    assert_eq!(producer.publish(6), 2, "the news take the last room, and the event is held");
    tokio::time::sleep(60 * SECOND).await;
    producer.publish(7);
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(*seen.lock(), [Item(1), Item(2), Lagged(3), Item(6), Item(7)]);
    assert_eq!(subscription.missed(), 3);
    assert_eq!(received(&mut quick), items(1..=7), "others miss nothing");
}

#[tokio::test(start_paused = true)]
async fn a14_a_mailbox_of_one_goes_on_to_get_events_after_it_has_missed_some() {
    let (topic, mut producer) = Topic::named("numbers").open();
    let (pool, seen) = listener(1).await;
    let subscription = topic.subscribe(&pool);
    for numbers in [1..=2, 3..=3, 4..=4, 5..=7, 8..=8, 9..=9, 10..=10] {
        numbers.for_each(|number| {
            producer.publish(number);
        });
        settle().await;
    }
    let expected = [Item(1), Lagged(1), Item(3), Item(4), Item(5), Lagged(3), Item(9)];
    assert_eq!(*seen.lock(), expected);
    assert_eq!(subscription.missed(), 4, "2, 6, 7 and 8; 10 is held");
}

#[tokio::test(start_paused = true)]
async fn a14_a_slow_receiver_misses_the_oldest_and_is_told_how_many() {
    let (topic, mut producer) = Topic::named("numbers").open();
    let (mut receiver, mut nothing) = (topic.receiver(2), topic.receiver(0));
    for number in 1..=5 {
        producer.publish(number);
    }
    assert_eq!(received(&mut receiver), [Lagged(3), Item(4), Item(5)]);
    producer.publish(6);
    assert_eq!(received(&mut receiver), items(6..=6), "what was told is not told again");
    assert_eq!((receiver.missed(), topic.stats().missed), (3, 9));
    assert_eq!((nothing.try_recv(), nothing.try_recv()), (Some(Lagged(6)), None));
}

#[tokio::test(start_paused = true)]
async fn a14_a_subscriber_that_is_gone_is_removed() {
    struct Fragile;
    impl Actor for Fragile {
        type Message = Event<u32>;
        type Reply = ();
        type Error = ();
        async fn handle(&mut self, _: Event<u32>, _cx: &mut Context<Self>) -> Result<(), ()> {
            panic!("boom")
        }
    }
    let (topic, mut producer) = Topic::named("numbers").open();
    let (stopped, dropped) = (listener(9).await.0, listener(9).await.0);
    let restarts = greenroom::Restarts { max: 0, ..Default::default() };
    let fragile = Pool::new(|_| Fragile).workers(1).restarts(restarts).spawn().await.unwrap();
    let subscriptions =
        (topic.subscribe(&stopped), topic.subscribe(&dropped), topic.subscribe(&fragile));
    let mut receiver = topic.receiver(9);
    stopped.stop(Stop::Now).await;
    drop(dropped);
    assert_eq!(producer.publish(1), 2);
    assert_eq!(stats(&topic), (2, 1, 0, 2));
    settle().await;
    assert_eq!(producer.publish(2), 1, "no worker of the fragile one is left");
    assert_eq!(stats(&topic), (1, 2, 0, 3));
    assert_eq!(received(&mut receiver), items(1..=2));
    let (one, two, three) = &subscriptions;
    assert!([one, two, three].iter().all(|subscription| !subscription.is_active()));
}

#[tokio::test(start_paused = true)]
async fn a14_subscribing_somebody_who_is_gone_is_harmless() {
    let (topic, mut producer) = Topic::named("numbers").replay(1).open();
    producer.publish(1);
    let (pool, _seen) = listener(9).await;
    pool.stop(Stop::Now).await;
    let subscription = topic.subscribe(&pool);
    assert!(!subscription.is_active());
    assert_eq!(stats(&topic), (0, 1, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn a14_a_subscription_does_not_keep_its_pool_alive() {
    let (topic, mut producer) = Topic::named("numbers").open();
    let (pool, seen) = listener(9).await;
    let _subscription = topic.subscribe(&pool);
    producer.publish(1);
    let weak = pool.downgrade();
    drop(pool);
    assert!(!weak.is_alive());
    settle().await;
    assert_eq!(*seen.lock(), items(1..=1), "it is drained");
    assert_eq!(producer.publish(2), 0);
    assert_eq!(Arc::strong_count(&seen), 1, "nothing of the pool is left");
}

#[tokio::test(start_paused = true)]
async fn a14_dropping_a_subscription_ends_it_and_detaching_does_not() {
    struct Held(#[expect(dead_code, reason = "held to see it dropped")] Arc<()>);
    let (topic, mut producer) = Topic::named("numbers").open();
    let (pool, seen) = listener(9).await;
    let alive = Arc::new(());
    let held = Held(alive.clone());
    let subscription = topic.subscribe_with(&pool, move |event| {
        let _ = &held;
        Some(event)
    });
    topic.subscribe(&pool).detach();
    producer.publish(1);
    assert!(subscription.is_active());
    drop(subscription);
    assert_eq!(Arc::strong_count(&alive), 1, "nothing is left of it");
    producer.publish(2);
    settle().await;
    assert_eq!(*seen.lock(), [Item(1), Item(1), Item(2)]);
    assert_eq!(stats(&topic), (1, 2, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a14_a_pool_gives_each_event_to_one_worker() {
    let (topic, mut producer) = Topic::named("numbers").open();
    let (pool, seen) = listeners(4, 99, SECOND).await;
    let _subscription = topic.subscribe(&pool);
    (1..=8).for_each(|number| {
        producer.publish(number);
    });
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    let mut seen: Vec<_> = seen.lock().iter().filter_map(|event| event.into_item()).collect();
    seen.sort_unstable();
    assert_eq!(seen, (1..=8).collect::<Vec<_>>(), "eight in two seconds: four at a time");
}

#[tokio::test(start_paused = true)]
async fn a14_there_is_one_producer_and_its_right_can_be_handed_over() {
    let (topic, mut producer) = Topic::named("numbers").open();
    let mut receiver = topic.receiver(9);
    let taken = topic.producer().unwrap_err();
    assert_eq!(taken.to_string(), "the topic numbers has a producer");
    let moved = tokio::spawn(async move {
        producer.publish(1);
        producer
    });
    drop(moved.await.unwrap());
    let mut next = topic.producer().unwrap();
    assert!(topic.producer().is_err());
    next.publish(2);
    assert_eq!(received(&mut receiver), items(1..=2));
}

#[tokio::test(start_paused = true)]
async fn a14_the_producer_is_told_of_the_first_and_the_last_subscriber() {
    let (topic, mut producer) = Topic::<u32>::named("numbers").open();
    let nothing = tokio::time::timeout(SECOND, producer.notice());
    assert!(nothing.await.is_err());
    let (one, other) = (topic.receiver(1), topic.receiver(1));
    assert_eq!((producer.notice().await, producer.is_wanted()), (Notice::Start, true));
    drop(one);
    let nothing = tokio::time::timeout(SECOND, producer.notice());
    assert!(nothing.await.is_err(), "one is left");
    drop(other);
    assert_eq!((producer.notice().await, producer.is_wanted()), (Notice::Stop, false));
    drop(topic.receiver(1));
    let nothing = tokio::time::timeout(SECOND, producer.notice());
    assert!(nothing.await.is_err(), "it came and went before anybody asked");
}

#[tokio::test(start_paused = true)]
async fn a14_a_subscriber_that_dies_counts_as_gone_with_the_next_event() {
    let (topic, mut producer) = Topic::named("numbers").open();
    let (pool, _seen) = listener(9).await;
    topic.subscribe(&pool).detach();
    assert_eq!(producer.notice().await, Notice::Start);
    pool.stop(Stop::Now).await;
    producer.publish(1);
    assert_eq!(producer.notice().await, Notice::Stop);
}

#[tokio::test(start_paused = true)]
async fn a14_a_new_producer_is_told_that_there_are_subscribers() {
    let (topic, mut producer) = Topic::<u32>::named("numbers").open();
    let _receiver = topic.receiver(1);
    assert_eq!(producer.notice().await, Notice::Start);
    drop(producer);
    assert_eq!(topic.producer().unwrap().notice().await, Notice::Start);
}

#[tokio::test(start_paused = true)]
async fn a14_a_panic_where_messages_are_made_is_a_miss_of_that_subscriber_alone() {
    let (topic, mut producer) = Topic::named("numbers").open();
    let (pool, seen) = listener(9).await;
    let bad = topic.subscribe_with(&pool, |event| match event {
        Item(2) => panic!("no message of 2"),
        event => Some(event),
    });
    let mut good = topic.receiver(9);
    assert_eq!((1..=3).map(|number| producer.publish(number)).sum::<usize>(), 5);
    settle().await;
    assert_eq!(*seen.lock(), [Item(1), Lagged(1), Item(3)]);
    assert_eq!((received(&mut good), bad.missed()), (items(1..=3), 1));
}

#[tokio::test(start_paused = true)]
async fn a14_a_receiver_waits_and_ends_when_nobody_can_publish_any_more() {
    let (topic, mut producer) = Topic::named("numbers").open();
    let mut receiver = topic.receiver(9);
    let waiting = tokio::time::timeout(SECOND, receiver.recv());
    assert!(waiting.await.is_err(), "a cancelled wait has taken nothing");
    let receive = tokio::spawn(async move { (receiver.recv().await, receiver.recv().await) });
    settle().await;
    drop(topic);
    producer.publish(1);
    settle().await;
    assert!(!receive.is_finished(), "the producer is left");
    drop(producer);
    assert_eq!(receive.await.unwrap(), (Some(Item(1)), None));
}

#[tokio::test(start_paused = true)]
async fn a14_replayed_events_are_dropped_when_newer_ones_take_their_place() {
    let (topic, mut producer) = Topic::named("objects").replay(2).open();
    let object = Arc::new(());
    for _ in 0..9 {
        producer.publish(object.clone());
    }
    assert_eq!(Arc::strong_count(&object), 3);
    drop((topic, producer));
    assert_eq!(Arc::strong_count(&object), 1);
}

/// A subscriber is held up by its own function while the first replayed event becomes a message;
/// meanwhile these numbers are published. Returns what it got, and how many it missed.
async fn published_during_replay(numbers: std::ops::RangeInclusive<u32>) -> (Vec<Event<u32>>, u64) {
    let (topic, mut producer) = Topic::named("numbers").replay(9).open();
    producer.publish(1);
    let (pool, seen) = listener(9_999).await;
    let (begun, begins) = std::sync::mpsc::channel();
    let (go_on, held) = std::sync::mpsc::channel::<()>();
    let held = Mutex::new(held);
    let address = pool.address();
    let of = topic.clone();
    let subscribe = std::thread::spawn(move || {
        of.subscribe_with(&address, move |event| {
            if event == Item(1) {
                begun.send(()).unwrap();
                held.lock().recv().unwrap();
            }
            Some(event)
        })
    });
    begins.recv().unwrap();
    numbers.for_each(|number| {
        producer.publish(number);
    });
    go_on.send(()).unwrap();
    let subscription = subscribe.join().unwrap();
    producer.publish(100_000);
    settle().await;
    (std::mem::take(&mut seen.lock()), subscription.missed())
}

#[tokio::test(start_paused = true)]
async fn a14_what_is_published_during_a_replay_follows_it_and_nobody_waits() {
    let (seen, missed) = published_during_replay(2..=5).await;
    assert_eq!((seen, missed), ([items(1..=5), vec![Item(100_000)]].concat(), 0));
}

#[tokio::test(start_paused = true)]
async fn a14_what_is_published_during_a_replay_is_bounded_and_the_rest_is_told() {
    let (seen, missed) = published_during_replay(2..=2_001).await;
    let kept = seen.len() as u32 - 2;
    assert_eq!(seen[..kept as usize], items(1..=kept));
    assert_eq!(seen[kept as usize..], [Lagged(missed), Item(100_000)]);
    assert_eq!((u64::from(kept) + missed, missed > 900), (2_001, true));
}

/// Subscribers come while events are published from another thread: each sees an unbroken sequence.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a14_between_replay_and_what_follows_nothing_is_lost_doubled_or_out_of_order() {
    const EVENTS: u32 = 20_000;
    let (topic, mut producer) = Topic::named("numbers").replay(50).open();
    let publish = std::thread::spawn(move || {
        for number in 1..=EVENTS {
            producer.publish(number);
            if number % 64 == 0 {
                std::thread::yield_now();
            }
        }
        producer
    });
    let mut subscribers = Vec::new();
    for _ in 0..20 {
        let (pool, seen) = listeners(1, EVENTS as usize + 9, Duration::ZERO).await;
        let subscription = topic.subscribe(&pool);
        subscribers.push((pool, seen, subscription, topic.receiver(EVENTS as usize + 1)));
    }
    let mut producer = publish.join().unwrap();
    // Who was held up in its replay may have missed the end, of which it is told with the next
    // event.
    producer.publish(EVENTS + 1);
    for (pool, seen, subscription, mut receiver) in subscribers {
        pool.stop(Stop::within(60 * SECOND)).await;
        assert_eq!(subscription.missed(), told(&seen.lock()));
        assert_eq!(told(&received(&mut receiver)), 0);
    }
    drop(producer);
}

/// How many misses were told in a sequence up to the last event that is unbroken but for them.
fn told(events: &[Event<u32>]) -> u64 {
    let mut lagged = 0;
    let mut next = None;
    for event in events {
        match event {
            Item(number) => {
                assert!(next.is_none_or(|next| next == *number), "{number} instead of {next:?}");
                next = Some(number + 1);
            }
            Lagged(missed) => {
                lagged += missed;
                next = next.map(|next| next + *missed as u32);
            }
        }
    }
    assert!(events.is_empty() || next == Some(20_002), "ends before {next:?}");
    lagged
}
