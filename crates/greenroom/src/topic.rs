//! Topics: one producer, any number of subscribers, and no wait for the slowest.
//!
//! ```text
//!                               ┌─▶ feed ──send──▶ actor or pool
//! producer ──publish──▶ ring ───┼─▶ feed ──send──▶ worker, and a feed for each other one
//!                │              └────────recv────▶ any task
//!                └─▶ replay: the last n, for later subscribers
//! ```
//!
//! A [`Topic`] is the handle for subscribers, a [`Producer`] the only right to publish to it. One
//! ring, that of [`tokio::sync::broadcast`], holds the events, and each subscriber reads it at its
//! own pace. A task per subscription feeds actors and pools, and waits for room in the mailbox.
//! Publishing waits for no one: a subscriber that is further behind than the ring
//! [holds](TopicBuilder::capacity) misses the oldest events, and an [`Event::Lagged`] before the
//! next one says how many. A subscriber that is gone is removed at the next event.
//!
//! The price: an allocation for each event, which stays until the ring has wrapped around (the
//! event itself is dropped once all have it). For each event and subscriber, a copy (an event is
//! `Clone`; large ones are an `Arc` of something) and a task that is woken. For each topic, some 50
//! bytes per place in the ring.
//!
//! Use something else if no event may be missed (send to each address, and wait for room), or if
//! there are several publishers (a pool in front of the producer, or a topic each).

use std::{
    marker::PhantomData,
    sync::{Arc, atomic::Ordering},
};

use crate::Address;
pub use crate::event::Event;

mod feed;
#[cfg(feature = "gather")]
mod feed_each;
mod hub;
mod producer;
mod receiver;
mod subscription;

use self::{feed::feed, hub::Hub};
pub use self::{
    producer::{Notice, Producer},
    receiver::Receiver,
    subscription::Subscription,
};

/// The default number of events in the ring: enough for a burst that comes before a busy runtime
/// gets to the feeds, in 50 KB.
const CAPACITY: usize = 1024;

/// The producer of a topic exists: there can be only one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the topic {topic} has a producer")]
#[non_exhaustive]
pub struct ProducerTaken {
    /// The topic's name.
    pub topic: String,
}

/// A named topic: the handle for subscribers. A clone is the same topic.
///
/// ```
/// use greenroom::{Topic, topic::Event, prelude::*};
///
/// struct Display;
///
/// impl Actor for Display {
///     type Message = Event<u32>; // or any type that is `From<Event<u32>>`
///     type Reply = ();
///     type Error = std::convert::Infallible;
///
///     async fn handle(&mut self, event: Event<u32>, _cx: &mut Context<Self>) -> Result<(), Self::Error> {
///         match event {
///             Event::Item(degrees) => println!("{degrees} degrees"),
///             Event::Lagged(missed) => println!("{missed} readings were missed"),
///         }
///         Ok(())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (temperature, mut producer) = Topic::named("temperature").replay(1).open();
/// producer.publish(20);
///
/// let display = Pool::new(|_slot| Display).workers(1).spawn().await?;
/// let subscription = temperature.subscribe(&display); // gets 20 first
/// producer.publish(21);
/// drop(subscription); // ends it
/// # Ok(()) }
/// ```
pub struct Topic<E> {
    hub: Arc<Hub<E>>,
}

/// The figures of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopicStats {
    /// Subscriptions that have not ended.
    pub subscribers: usize,
    /// Events published so far.
    pub published: u64,
    /// Events that subscribers have missed, including former subscribers. Each subscriber counts
    /// its own when it reaches the next event.
    pub missed: u64,
    /// Subscribers that were removed because they were gone.
    pub removed: u64,
    /// Events kept for later subscribers.
    pub replayable: usize,
}

/// A topic that is being set up.
#[derive(Debug)]
#[must_use = "a topic exists once it is opened"]
pub struct TopicBuilder<E> {
    name: Arc<str>,
    capacity: usize,
    replay: usize,
    event: PhantomData<fn(E)>,
}

impl<E> Topic<E> {
    /// Sets up a topic.
    pub fn named(name: impl Into<Arc<str>>) -> TopicBuilder<E> {
        TopicBuilder { name: name.into(), capacity: CAPACITY, replay: 0, event: PhantomData }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.hub.name
    }

    /// Takes the right to publish, after its producer was dropped. To hand it over without a gap,
    /// move the producer.
    ///
    /// # Errors
    /// If it is already taken.
    pub fn producer(&self) -> Result<Producer<E>, ProducerTaken> {
        if self.hub.produced.swap(true, Ordering::AcqRel) {
            return Err(ProducerTaken { topic: self.name().to_owned() });
        }
        Ok(Producer::new(&self.hub))
    }

    /// The current figures.
    pub fn stats(&self) -> TopicStats {
        let (kept, counts) = (self.hub.kept.lock(), &self.hub.counts);
        TopicStats {
            subscribers: *counts.subscribers.borrow(),
            published: kept.published,
            missed: counts.missed.load(Ordering::Relaxed),
            removed: counts.removed.load(Ordering::Relaxed),
            replayable: kept.replay.len(),
        }
    }
}

impl<E: Clone + Send + Sync + 'static> Topic<E> {
    /// Delivers events to an actor or a pool, beginning with the replayed ones, until the
    /// subscription is dropped, or the pool is gone or without workers for good. A pool handles
    /// each event once, by one of its workers; to deliver it to each of them, use
    /// [`subscribe_each`](Self::subscribe_each).
    ///
    /// A task on the pool's runtime sends one event after the other, and waits for room in the
    /// mailbox like any sender; while an event waits for room, it keeps the pool alive. An event
    /// that the pool refuses without a wait is missed. (In a pool with several workers,
    /// [`Event::Lagged`] comes before the next event in the order in which the two are accepted.)
    pub fn subscribe<M, R, F>(&self, address: &Address<M, R, F>) -> Subscription
    where
        M: From<Event<E>> + Send + 'static,
        R: Send + 'static,
        F: Send + 'static,
    {
        self.subscribe_with(address, |event| Some(M::from(event)))
    }

    /// Like [`subscribe`](Self::subscribe), with a function that turns events into messages, or
    /// into none if the actor does not want them. If it panics, the event is missed.
    pub fn subscribe_with<M, R, F>(
        &self,
        address: &Address<M, R, F>,
        convert: impl Fn(Event<E>) -> Option<M> + Send + Sync + 'static,
    ) -> Subscription
    where
        M: Send + 'static,
        R: Send + 'static,
        F: Send + 'static,
    {
        let (mut events, to) = (Receiver::new(&self.hub), address.downgrade());
        Subscription::spawn(address.runtime(), events.counter(), async move {
            if feed(&mut events, &to, convert).await {
                events.remove();
            }
        })
    }

    /// Delivers events to each live worker of a pool, one message for each, beginning with the
    /// replayed ones.
    ///
    /// A separate task feeds each worker, with its own order and its own misses: one that falls too
    /// far behind gets [`Event::Lagged`], and the others get everything. The subscription counts
    /// the misses of all together. The events of a restarted worker wait in its mailbox; a worker
    /// that joins later gets the events published from then on. While there is no worker, events
    /// reach no one.
    ///
    /// The subscription keeps the pool alive only while an event waits for room.
    ///
    /// ```
    /// # use greenroom::{Topic, topic::Event, prelude::*};
    /// # struct Cache; impl Actor for Cache { type Message = Event<u32>; type Reply = (); type Error = ();
    /// # async fn handle(&mut self, _: Event<u32>, _: &mut Context<Self>) -> Result<(), ()> { Ok(()) } }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let caches = Pool::new(|_slot| Cache).workers(3).quick_factory().spawn().await?;
    /// let (outdated, mut producer) = Topic::named("outdated").open();
    /// let subscription = outdated.subscribe_each(&caches.broadcast());
    /// producer.publish(17);
    /// # while caches.stats().accepted < 3 { tokio::task::yield_now().await; }
    /// assert_eq!(caches.stats().accepted, 3);
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "gather")]
    pub fn subscribe_each<M, R, F>(
        &self,
        workers: &crate::gather::BroadcastAddress<M, R, F>,
    ) -> Subscription
    where
        M: From<Event<E>> + Send + 'static,
        R: Send + 'static,
        F: Send + 'static,
    {
        let (mut events, pool) = (Receiver::new(&self.hub), workers.address.downgrade());
        Subscription::spawn(workers.address.runtime(), events.counter(), async move {
            let live_workers = crate::gather::live_workers::live_workers;
            if feed_each::feed_each(&mut events, &pool, live_workers).await {
                events.remove();
            }
        })
    }

    /// Events for code that is no actor, beginning with the replayed ones.
    pub fn receiver(&self) -> Receiver<E> {
        Receiver::new(&self.hub)
    }
}

impl<E> TopicBuilder<E> {
    /// How many events a subscriber may be behind before it misses the oldest; 1,024 by default.
    /// Rounded up to a power of two. Choose the number of events published while the slowest
    /// subscriber that must miss nothing is delayed.
    pub fn capacity(mut self, events: usize) -> Self {
        self.capacity = events;
        self
    }

    /// How many of the last events a new subscriber gets first; none by default. They take no room
    /// in the ring.
    pub fn replay(mut self, events: usize) -> Self {
        self.replay = events;
        self
    }

    /// The topic, and the right to publish to it.
    pub fn open(self) -> (Topic<E>, Producer<E>) {
        let hub = Arc::new(Hub::new(self.name, self.replay, self.capacity));
        let producer = Producer::new(&hub);
        (Topic { hub }, producer)
    }
}

impl_clone!([E] Topic<E>: hub);

impl_debug!([E] Topic<E>, |this| name: this.name());
