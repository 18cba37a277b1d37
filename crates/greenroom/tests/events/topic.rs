//! Events: topics, their producers and their subscribers (A14).

use std::{sync::Arc, time::Duration};

use greenroom::{
    Actor, Context, Overflow, Pool, Stop, Topic,
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

/// Lets all actors handle what is queued.
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
    let mut receiver = topic.receiver();
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
    let desk = Pool::new(move |_| Desk(theirs.clone())).workers(1).spawn().await.unwrap();
    let (topic, mut producer) = Topic::named("numbers").capacity(2).open();
    let every = topic.subscribe(&desk);
    let odd = |event: Event<u32>| event.into_item().filter(|number| number % 2 == 1);
    let only_odd = topic
        .subscribe_with(&desk, move |event| odd(event).map(|number| Ask::Number(number + 100)));
    (1..=3).for_each(|number| {
        producer.publish(number);
    });
    settle().await;
    let by_odd = |ask: &Ask| matches!(ask, Ask::Number(100..));
    let (odd, all): (Vec<_>, Vec<_>) = seen.lock().drain(..).partition(by_odd);
    assert_eq!((odd, every.missed()), (vec![Ask::Number(103)], 1));
    assert_eq!((all, only_odd.missed()), (vec![Ask::Missed(1), Ask::Number(2), Ask::Number(3)], 1));
}

#[tokio::test(start_paused = true)]
async fn a14_news_that_panic_cost_no_event() {
    let (topic, mut producer) = Topic::named("numbers").capacity(1).open();
    let (pool, seen) = listener(9).await;
    let subscription = topic.subscribe_with(&pool, |event| match event {
        Item(_) => Some(event),
        Lagged(_) => panic!("on purpose"),
    });
    for numbers in [1..=3, 4..=4, 5..=6] {
        numbers.for_each(|number| {
            producer.publish(number);
        });
        settle().await;
    }
    assert_eq!((seen.lock().clone(), subscription.missed()), ([3, 4, 6].map(Item).to_vec(), 3));
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
    let mut receiver = topic.receiver();
    producer.publish(6);
    settle().await;
    assert_eq!(*seen.lock(), items(3..=6));
    assert_eq!(received(&mut receiver), items(3..=6));
}

#[tokio::test(start_paused = true)]
async fn a14_replayed_events_take_no_room_in_the_ring() {
    let (topic, mut producer) = Topic::named("numbers").capacity(2).replay(3).open();
    let mut publish = |numbers: std::ops::RangeInclusive<u32>| {
        numbers.for_each(|number| {
            producer.publish(number);
        });
    };
    publish(1..=5);
    let mut receiver = topic.receiver();
    publish(6..=9);
    let expected = [items(3..=5), vec![Lagged(2)], items(8..=9)].concat();
    assert_eq!(received(&mut receiver), expected);
}

#[tokio::test(start_paused = true)]
async fn a14_without_replay_a_new_subscriber_gets_what_follows() {
    let (topic, mut producer) = Topic::named("numbers").open();
    assert_eq!(producer.publish(1), 0);
    let mut receiver = topic.receiver();
    producer.publish(2);
    assert_eq!((received(&mut receiver), topic.stats().replayable), (items(2..=2), 0));
}

#[tokio::test(start_paused = true)]
async fn a14_a_slow_subscriber_never_blocks_the_producer_and_is_told_what_it_missed() {
    let (topic, mut producer) = Topic::named("numbers").capacity(2).open();
    let (slow, seen) = listeners(1, 2, 10 * SECOND).await;
    let subscription = topic.subscribe(&slow);
    let (mut quick, mut heard) = (topic.receiver(), Vec::new());
    for number in 1..=4 {
        producer.publish(number);
        heard.append(&mut received(&mut quick));
        settle().await;
    }
    // One is in hand, two are in the mailbox, and the fourth waits for room.
    for number in 5..=9 {
        assert_eq!(producer.publish(number), 2);
        heard.append(&mut received(&mut quick));
    }
    tokio::time::sleep(200 * SECOND).await;
    let expected = [items(1..=4), vec![Lagged(3)], items(8..=9)].concat();
    assert_eq!(*seen.lock(), expected);
    assert_eq!((subscription.missed(), topic.stats().missed), (3, 3));
    assert_eq!(heard, items(1..=9), "others miss nothing");
}

#[tokio::test(start_paused = true)]
async fn a14_a_mailbox_of_one_goes_on_to_get_events_after_it_has_missed_some() {
    let (topic, mut producer) = Topic::named("numbers").capacity(1).open();
    let (pool, seen) = listener(1).await;
    let subscription = topic.subscribe(&pool);
    for numbers in [1..=2, 3..=3, 4..=7, 8..=8] {
        numbers.for_each(|number| {
            producer.publish(number);
        });
        settle().await;
    }
    let expected = [Lagged(1), Item(2), Item(3), Lagged(3), Item(7), Item(8)];
    assert_eq!(*seen.lock(), expected);
    assert_eq!(subscription.missed(), 4, "1, 4, 5 and 6");
}

/// A pool whose senders may not wait refuses events, which are then missed.
#[tokio::test(start_paused = true)]
async fn a14_an_event_that_is_refused_is_missed_and_told_once_there_is_room() {
    let (topic, mut producer) = Topic::named("numbers").open();
    let seen = Seen::default();
    let theirs = seen.clone();
    let pool = Pool::new(move |_| Listener { seen: theirs.clone(), takes: 10 * SECOND });
    let pool = pool.workers(1).capacity(2).overflow(Overflow::Reject).spawn().await.unwrap();
    let subscription = topic.subscribe(&pool);
    for number in 1..=6 {
        producer.publish(number);
        settle().await;
    }
    assert_eq!(subscription.missed(), 3, "4, 5 and 6: one is in hand and two wait");
    tokio::time::sleep(60 * SECOND).await;
    producer.publish(7);
    settle().await;
    assert_eq!(*seen.lock(), [items(1..=3), vec![Lagged(3)]].concat());
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(*seen.lock(), [items(1..=3), vec![Lagged(3), Item(7)]].concat());
}

#[tokio::test(start_paused = true)]
async fn a14_a_slow_receiver_misses_the_oldest_and_is_told_how_many() {
    let (topic, mut producer) = Topic::named("numbers").capacity(2).open();
    let (mut receiver, mut slower) = (topic.receiver(), topic.receiver());
    for number in 1..=5 {
        producer.publish(number);
    }
    assert_eq!(received(&mut receiver), [Lagged(3), Item(4), Item(5)]);
    producer.publish(6);
    assert_eq!(received(&mut receiver), items(6..=6), "what was told is not told again");
    assert_eq!(received(&mut slower), [Lagged(4), Item(5), Item(6)]);
    assert_eq!((receiver.missed(), slower.missed(), topic.stats().missed), (3, 4, 7));
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
    let mut receiver = topic.receiver();
    stopped.stop(Stop::Now).await;
    drop(dropped);
    assert_eq!(producer.publish(1), 4);
    settle().await;
    assert_eq!(stats(&topic), (2, 1, 0, 2));
    assert_eq!(producer.publish(2), 2, "no worker of the fragile one is left");
    settle().await;
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
    settle().await;
    assert!(!subscription.is_active());
    assert_eq!(stats(&topic), (0, 1, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn a14_a_subscription_does_not_keep_its_pool_alive() {
    let (topic, mut producer) = Topic::named("numbers").open();
    let (pool, seen) = listener(9).await;
    let _subscription = topic.subscribe(&pool);
    producer.publish(1);
    settle().await;
    let weak = pool.downgrade();
    drop(pool);
    assert!(!weak.is_alive());
    producer.publish(2);
    settle().await;
    assert_eq!(*seen.lock(), items(1..=1));
    assert_eq!(producer.publish(3), 0);
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
    settle().await;
    assert!(subscription.is_active());
    drop(subscription);
    producer.publish(2);
    settle().await;
    assert_eq!(Arc::strong_count(&alive), 1, "nothing is left of it");
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
    let mut receiver = topic.receiver();
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
    let (one, other) = (topic.receiver(), topic.receiver());
    assert_eq!((producer.notice().await, producer.is_wanted()), (Notice::Start, true));
    drop(one);
    let nothing = tokio::time::timeout(SECOND, producer.notice());
    assert!(nothing.await.is_err(), "one is left");
    drop(other);
    assert_eq!((producer.notice().await, producer.is_wanted()), (Notice::Stop, false));
    drop(topic.receiver());
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
    let _receiver = topic.receiver();
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
    let mut good = topic.receiver();
    assert_eq!((1..=3).map(|number| producer.publish(number)).sum::<usize>(), 6);
    settle().await;
    assert_eq!(*seen.lock(), [Item(1), Lagged(1), Item(3)]);
    assert_eq!((received(&mut good), bad.missed()), (items(1..=3), 1));
}

#[tokio::test(start_paused = true)]
async fn a14_a_receiver_waits_and_ends_when_nobody_can_publish_any_more() {
    let (topic, mut producer) = Topic::named("numbers").open();
    let mut receiver = topic.receiver();
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

/// An event that reads its topic when it is dropped, and panics.
#[derive(Clone)]
struct Nasty(Topic<Nasty>);

impl Drop for Nasty {
    fn drop(&mut self) {
        let subscribers = self.0.stats().subscribers;
        drop(self.0.receiver());
        panic!("dropped on purpose, of {subscribers}");
    }
}

#[tokio::test(start_paused = true)]
async fn a14_an_event_that_is_missed_is_dropped_under_no_lock_and_its_panic_ends_there() {
    let (topic, mut producer) = Topic::named("nasty").capacity(1).open();
    let receiver = topic.receiver();
    // The second displaces the first.
    (0..2).for_each(|_| assert_eq!(producer.publish(Nasty(topic.clone())), 1));
    drop(receiver);
    assert_eq!(producer.publish(Nasty(topic.clone())), 0, "it is dropped where nobody listens");
}

/// A subscriber starts with the first of these numbers as a replay; the rest is published before it
/// gets its turn. Returns the events that it got, and how many it missed.
async fn published_during_replay(numbers: std::ops::RangeInclusive<u32>) -> (Vec<Event<u32>>, u64) {
    let (topic, mut producer) = Topic::named("numbers").replay(9).open();
    let (pool, seen) = listener(9_999).await;
    producer.publish(*numbers.start());
    let subscription = topic.subscribe(&pool);
    numbers.skip(1).for_each(|number| {
        producer.publish(number);
    });
    settle().await;
    (std::mem::take(&mut seen.lock()), subscription.missed())
}

#[tokio::test(start_paused = true)]
async fn a14_what_is_published_during_a_replay_follows_it_and_nobody_waits() {
    assert_eq!(published_during_replay(1..=5).await, (items(1..=5), 0));
}

#[tokio::test(start_paused = true)]
async fn a14_what_is_published_during_a_replay_is_bounded_and_the_rest_is_told() {
    let (seen, missed) = published_during_replay(1..=2_001).await;
    assert_eq!(missed, 2_000 - 1_024);
    assert_eq!(seen, [items(1..=1), vec![Lagged(missed)], items(978..=2_001)].concat());
}

/// Subscribers arrive while events are published from another thread: each sees an unbroken
/// sequence.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a14_between_replay_and_what_follows_nothing_is_lost_doubled_or_out_of_order() {
    const EVENTS: u32 = 20_000;
    let (topic, mut producer) = Topic::named("numbers").capacity(EVENTS as usize).replay(50).open();
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
        let (pool, seen) = listeners(1, 1_000, Duration::ZERO).await;
        let subscription = topic.subscribe(&pool);
        subscribers.push((pool, seen, subscription, topic.receiver()));
    }
    let producer = publish.join().unwrap();
    for (pool, seen, subscription, mut receiver) in subscribers {
        let is_last = |event: &Event<u32>| *event == Item(EVENTS);
        let all_came = async {
            while !seen.lock().last().is_some_and(is_last) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(60 * SECOND, all_came).await.unwrap();
        pool.stop(Stop::within(60 * SECOND)).await;
        assert_eq!((subscription.missed(), told(&seen.lock())), (0, 0));
        assert_eq!(told(&received(&mut receiver)), 0);
    }
    drop(producer);
}

/// The number of misses reported in a sequence up to the last event that is otherwise unbroken.
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
    assert_eq!(next, Some(20_001), "the last one is missing");
    lagged
}
