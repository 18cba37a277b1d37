//! Topics: one producer, any number of subscribers, and no wait for the slowest.
//!
//! ```text
//!                       ┌─▶ feed ──try_send──▶ actor or pool   full: the event is missed and counted
//!                       ├─▶ feeds ─try_send──▶ each worker     the same, for each by itself
//! producer ──publish──▶ topic
//!                │      └─▶ buffer ──recv──▶ any task          full: the oldest is missed and counted
//!                └─ replay: the last n, for who comes later
//! ```
//!
//! A [`Topic`] is the handle for subscribers, a [`Producer`] the one right to publish to it.
//! Publishing never waits: a subscriber that is too slow misses events, and is told how many by an
//! [`Event::Lagged`] before the next one that it gets. A subscriber that is gone is removed.
//!
//! The price: an allocation per event, and per subscriber a copy (an event is `Clone`;
//! large ones are an `Arc` of something). Publishing takes time in proportion to the
//! subscribers, in the producer.
//!
//! Use something else if no event may be missed (send to each address, and wait for room), or if
//! there are several publishers (a pool in front of the producer, or a topic each).

use std::{fmt, marker::PhantomData, sync::Arc};

use crate::{Address, gather::BroadcastAddress};

pub(crate) mod buffer;
mod event;
mod feed;
mod feeds;
mod hub;
mod producer;
pub(crate) mod receiver;
pub(crate) mod subscriber;
mod subscription;

pub use self::{
    event::Event,
    hub::TopicStats,
    producer::{Notice, Producer},
    receiver::Receiver,
    subscription::Subscription,
};
use self::{feed::Feed, feeds::Feeds, hub::Hub, subscriber::Missed};

/// The producer of a topic exists: there is one at a time.
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
/// let subscription = temperature.subscribe(&display); // is told 20 at once
/// producer.publish(21);
/// drop(subscription); // ends it
/// # Ok(()) }
/// ```
pub struct Topic<E> {
    hub: Arc<Hub<E>>,
}

/// A topic that is being set up.
#[must_use = "a topic exists once it is opened"]
pub struct TopicBuilder<E> {
    name: Arc<str>,
    replay: usize,
    event: PhantomData<fn(E)>,
}

impl<E> Topic<E> {
    /// Sets up a topic.
    pub fn named(name: impl Into<Arc<str>>) -> TopicBuilder<E> {
        TopicBuilder { name: name.into(), replay: 0, event: PhantomData }
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.hub.name()
    }

    /// Takes the right to publish, after the producer that had it was dropped. To hand it over
    /// without a gap, move the producer.
    ///
    /// # Errors
    /// If it is already taken.
    pub fn producer(&self) -> Result<Producer<E>, ProducerTaken> {
        if !self.hub.take_right() {
            return Err(ProducerTaken { topic: self.name().to_owned() });
        }
        Ok(Producer::new(&self.hub))
    }

    /// The figures of this moment.
    pub fn stats(&self) -> TopicStats {
        self.hub.stats()
    }
}

impl<E: Clone + Send + Sync + 'static> Topic<E> {
    /// Delivers events to an actor or a pool, beginning with the replayed ones, until the
    /// subscription is dropped or the pool is gone. A pool handles each event once, by one of its
    /// workers; to deliver it to each of them, use [`subscribe_each`](Self::subscribe_each).
    ///
    /// The subscription does not keep the pool alive. A full mailbox misses the event; when the
    /// next one is published and there is room, it gets [`Event::Lagged`] before that. If the
    /// `Lagged` takes the last room, the event is held until another one is published. (In a pool
    /// with several workers, "before" is the order in which the two are accepted.)
    pub fn subscribe<M, R, F>(&self, address: &Address<M, R, F>) -> Subscription<E>
    where
        M: From<Event<E>> + Send + 'static,
        R: 'static,
        F: 'static,
    {
        self.subscribe_with(address, |event| Some(M::from(event)))
    }

    /// As [`subscribe`](Self::subscribe), with a function that makes messages of events, and none
    /// of those that the actor does not want. It runs in the producer, under no lock. If it panics,
    /// the event is missed.
    pub fn subscribe_with<M, R, F>(
        &self,
        address: &Address<M, R, F>,
        convert: impl Fn(Event<E>) -> Option<M> + Send + Sync + 'static,
    ) -> Subscription<E>
    where
        M: Send + 'static,
        R: 'static,
        F: 'static,
    {
        let feed = Feed::new(address.downgrade(), convert, Missed::new(self.hub.missed()));
        Subscription::new(&self.hub, Arc::new(feed))
    }

    /// Delivers events to each live worker of a pool, a message for each, beginning
    /// with the replayed ones.
    ///
    /// Each worker is a subscriber of its own, with its own order and its own misses: one with a
    /// full mailbox gets [`Event::Lagged`], and the others get everything. The subscription
    /// counts the misses of all together. The events of a restarted worker wait in its mailbox; a
    /// worker that joins later gets the events published from then on. While there is no worker,
    /// events reach nobody.
    ///
    /// The subscription does not keep the pool alive. Publishing to it takes two
    /// allocations per worker.
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
    /// assert_eq!(caches.stats().accepted, 3);
    /// # Ok(()) }
    /// ```
    pub fn subscribe_each<M, R, F>(&self, workers: &BroadcastAddress<M, R, F>) -> Subscription<E>
    where
        M: From<Event<E>> + Send + 'static,
        R: 'static,
        F: 'static,
    {
        let feeds = Feeds::new(workers.weak_group(), self.hub.missed());
        Subscription::new(&self.hub, Arc::new(feeds))
    }

    /// Events for code that is no actor, beginning with the replayed ones. Up to `buffer`
    /// events wait; when another one comes, the oldest is missed and counted. (With a buffer
    /// of 0 all of them are.)
    pub fn receiver(&self, buffer: usize) -> Receiver<E> {
        Receiver::new(&self.hub, buffer)
    }
}

impl<E> TopicBuilder<E> {
    /// How many of the last events a new subscriber gets first; none unless said otherwise. A
    /// receiver gets no more of them than its buffer holds.
    pub fn replay(mut self, events: usize) -> Self {
        self.replay = events;
        self
    }

    /// The topic, and the right to publish to it.
    pub fn open(self) -> (Topic<E>, Producer<E>) {
        let hub = Arc::new(Hub::new(self.name, self.replay));
        let producer = Producer::new(&hub);
        (Topic { hub }, producer)
    }
}

impl<E> Clone for Topic<E> {
    fn clone(&self) -> Self {
        Self { hub: self.hub.clone() }
    }
}

impl<E> fmt::Debug for Topic<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Topic").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl<E> fmt::Debug for TopicBuilder<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut builder = f.debug_struct("TopicBuilder");
        builder.field("name", &self.name).field("replay", &self.replay).finish_non_exhaustive()
    }
}
