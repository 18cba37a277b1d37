use std::{sync::Arc, time::Duration};

use greenroom::{
    Actor, Context, Pool, PoolBuilder, Restarts, Stop, Topic,
    topic::{Event, Producer, Subscription},
};
use parking_lot::Mutex;

use Event::{Item, Lagged};

const SECOND: Duration = Duration::from_secs(1);

/// The events that each slot has received.
type Heard = Arc<Mutex<Vec<Vec<Event<u32>>>>>;

/// Notes its events. 1313 kills; the slow one takes a second for each event.
struct Listener {
    heard: Heard,
    slow: usize,
}

impl Actor for Listener {
    type Message = Event<u32>;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, event: Event<u32>, cx: &mut Context<Self>) -> Result<(), ()> {
        self.heard.lock()[cx.slot()].push(event);
        assert_ne!(event, Item(1313), "bad luck");
        if cx.slot() == self.slow {
            tokio::time::sleep(SECOND).await;
        }
        Ok(())
    }
}

/// Workers of which the one in slot `slow` takes a second for each event.
fn listeners(slow: usize) -> (PoolBuilder<Listener>, Heard) {
    let heard = Heard::new(Mutex::new(vec![Vec::new(); 10]));
    let theirs = heard.clone();
    let pool = Pool::new(move |_| Listener { heard: theirs.clone(), slow });
    (pool.workers(3).bounds(0..=10).capacity(1_000).quick_factory(), heard)
}

const NOBODY: usize = 9;

fn numbers() -> (Topic<u32>, Producer<u32>) {
    Topic::named("numbers").replay(2).open()
}

fn each(topic: &Topic<u32>, pool: &Pool<Listener>) -> Subscription {
    topic.subscribe_each(&pool.broadcast())
}

fn items(range: std::ops::RangeInclusive<u32>) -> Vec<Event<u32>> {
    range.map(Item).collect()
}

async fn settle() {
    tokio::time::sleep(60 * SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn a14_under_broadcast_each_worker_gets_each_event_in_order() {
    let (pool, heard) = listeners(NOBODY);
    let pool = pool.spawn().await.unwrap();
    let (topic, mut producer) = numbers();
    (1..=5).for_each(|number| assert_eq!(producer.publish(number), 0));
    let subscription = each(&topic, &pool);
    (6..=9).for_each(|number| assert_eq!(producer.publish(number), 1, "of one subscriber"));
    settle().await;
    assert_eq!(heard.lock()[..3], [items(4..=9), items(4..=9), items(4..=9)]);
    let stats = pool.stats();
    assert_eq!((stats.accepted, stats.handled, subscription.missed()), (18, 18, 0));
    drop(subscription);
    settle().await;
    assert_eq!(producer.publish(10), 0);
}

#[tokio::test(start_paused = true)]
async fn a14_under_broadcast_a_slow_worker_misses_events_and_the_others_hear_all() {
    let (pool, heard) = listeners(1);
    let pool = pool.mailbox(3).spawn().await.unwrap();
    let (topic, mut producer) = Topic::named("numbers").capacity(4).open();
    let subscription = each(&topic, &pool);
    for number in 1..=20 {
        assert_eq!(producer.publish(number), 1);
        tokio::time::sleep(SECOND / 100).await;
    }
    settle().await;
    producer.publish(21);
    settle().await;
    let heard = heard.lock().clone();
    assert_eq!((&heard[0], &heard[2]), (&items(1..=21), &items(1..=21)));
    // One in hand, three in the mailbox, one that waits for room, and the last four.
    let slow = [items(1..=5), vec![Lagged(11)], items(17..=21)].concat();
    assert_eq!((&heard[1], subscription.missed()), (&slow, 11));
    assert_eq!(topic.stats().missed, 11);
}

#[tokio::test(start_paused = true)]
async fn a14_under_broadcast_workers_come_go_and_are_restarted() {
    let (pool, heard) = listeners(NOBODY);
    let restarts = Restarts { max: 5, ..Restarts::default() };
    let pool = pool.restarts(restarts).spawn().await.unwrap();
    let (topic, mut producer) = numbers();
    let subscription = each(&topic, &pool);
    producer.publish(1);
    settle().await;
    pool.admin().remove_worker(0).unwrap().done(SECOND).await;
    let added = pool.admin().add(2).unwrap();
    let slots = added.added().to_vec();
    added.done(SECOND).await;
    // All four die of this, and later events wait for their return.
    producer.publish(1313);
    tokio::task::yield_now().await;
    producer.publish(14);
    settle().await;
    let heard = heard.lock().clone();
    assert_eq!([&heard[1], &heard[2]], [&[Item(1), Item(1313), Item(14)]; 2]);
    for slot in slots {
        let before = if slot == 0 { items(1..=1) } else { Vec::new() };
        assert_eq!(heard[slot], [before, vec![Item(1313), Item(14)]].concat(), "slot {slot}");
    }
    assert_eq!((subscription.missed(), pool.stats().accepted), (0, 3 + 4 + 4));

    pool.admin().resize(0).unwrap().done(SECOND).await;
    assert_eq!((producer.publish(15), subscription.is_active()), (1, true));
    pool.admin().resize(1).unwrap().done(SECOND).await;
    assert_eq!(producer.publish(16), 1);
    assert_eq!(subscription.missed(), 0, "who was not there has missed nothing");
}

#[tokio::test(start_paused = true)]
async fn a14_under_broadcast_a_subscription_keeps_no_pool_alive_and_ends_with_it() {
    let (topic, mut producer) = numbers();
    let (pool, _) = listeners(NOBODY);
    let pool = pool.spawn().await.unwrap();
    let (subscription, end) = (each(&topic, &pool), pool.erase());
    drop(pool);
    end.ended().await;
    producer.publish(1);
    settle().await;
    assert_eq!((producer.publish(2), subscription.is_active()), (0, false));

    let (pool, _) = listeners(NOBODY);
    let pool = pool.spawn().await.unwrap();
    let subscription = each(&topic, &pool);
    pool.stop(Stop::within(SECOND)).await;
    producer.publish(3);
    settle().await;
    assert_eq!((producer.publish(4), subscription.is_active()), (0, false));
    let subscription = each(&topic, &pool);
    settle().await;
    assert!(!subscription.is_active(), "it has stopped before");
    assert_eq!(topic.stats().removed, 3);
}

#[tokio::test(start_paused = true)]
async fn a15_a_weak_address_of_a_worker_leads_to_it_as_long_as_there_is_its_pool() {
    let (pool, heard) = listeners(NOBODY);
    let pool = pool.spawn().await.unwrap();
    let weak = pool.admin().workers()[2].downgrade();
    let any = weak.erase();
    assert_eq!((any.name(), weak.is_alive()), ("pool-2", true));
    weak.upgrade().unwrap().send(Item(7)).await.unwrap();
    settle().await;
    assert_eq!(heard.lock()[2], [Item(7)]);
    let end = pool.erase();
    drop(pool);
    end.ended().await;
    assert!(weak.upgrade().is_none() && !weak.is_alive());
    assert_eq!(weak.erase(), any);
}
