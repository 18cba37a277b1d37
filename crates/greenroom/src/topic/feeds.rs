//! A subscriber that is all live workers of a pool.
//!
//! Each worker has a [`Feed`] of its own: it gets its events in order, and if its mailbox is
//! full, it is told how many it has missed, independent of the others. New workers are
//! looked up with each event.

use std::{
    collections::{HashSet, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use greenroom_queue::discard::discard;
use greenroom_queue::lock::Mutex;

use super::{
    event::Event,
    feed::Feed,
    subscriber::{Missed, Offered, Subscriber},
};
use crate::pool::{Worker, gather::group::WeakGroup};

pub(super) struct Feeds<E, M, R, F> {
    group: Box<dyn WeakGroup<M, R, F>>,
    /// Each with the life of its worker. Runs no user code: removed feeds are
    /// dropped after the lock.
    feeds: Mutex<Vec<WorkersFeed<E>>>,
    /// Of all workers there were.
    missed: Missed,
}

struct WorkersFeed<E> {
    /// Of the worker.
    life: u64,
    feed: Arc<dyn Subscriber<E>>,
    /// It hands out from here on, begun once: by the producer with an event, or by the subscription
    /// itself, whichever is first.
    begun: Arc<AtomicBool>,
}

impl<E> WorkersFeed<E> {
    fn begin(&self) -> Offered {
        match self.begun.swap(true, Ordering::AcqRel) {
            true => Offered::Taken,
            false => self.feed.begin(),
        }
    }
}

impl<E> Clone for WorkersFeed<E> {
    fn clone(&self) -> Self {
        Self { life: self.life, feed: self.feed.clone(), begun: self.begun.clone() }
    }
}

impl<E, M, R, F> Feeds<E, M, R, F>
where
    E: Clone + Send + Sync + 'static,
    M: From<Event<E>> + Send + 'static,
    R: 'static,
    F: 'static,
{
    /// The replayed events go to the workers that live now.
    pub(super) fn new(group: Box<dyn WeakGroup<M, R, F>>, all: Arc<AtomicU64>) -> Self {
        let feeds = Self { group, feeds: Mutex::default(), missed: Missed::new(all) };
        let live = feeds.group.members().unwrap_or_default();
        *feeds.feeds.lock() = live.iter().map(|worker| feeds.feed(worker)).collect();
        feeds
    }

    fn feed(&self, worker: &Worker<M, R, F>) -> WorkersFeed<E> {
        let convert = |event: Event<E>| Some(M::from(event));
        let feed = Feed::new(worker.address().downgrade(), convert, self.missed.clone());
        let life = worker.address().vtable.life_id();
        WorkersFeed { life, feed: Arc::new(feed), begun: Arc::default() }
    }

    fn known(&self) -> Vec<WorkersFeed<E>> {
        self.feeds.lock().clone()
    }

    /// Adds workers that have joined. For the producer alone.
    fn add_joined(&self, live: &[Worker<M, R, F>]) {
        let known: HashSet<u64> = self.feeds.lock().iter().map(|known| known.life).collect();
        let is_new =
            |worker: &&Worker<M, R, F>| !known.contains(&worker.address().vtable.life_id());
        let joined: Vec<_> = live.iter().filter(is_new).map(|worker| self.feed(worker)).collect();
        for new in &joined {
            new.begin();
        }
        self.feeds.lock().extend(joined);
    }

    /// Hands something to each, forgets those that are gone, and returns whether any has taken it.
    fn each(&self, hand: impl Fn(&WorkersFeed<E>) -> Offered) -> Offered {
        let mut taken = Offered::Missed;
        let mut gone = Vec::new();
        for one in self.known() {
            match hand(&one) {
                Offered::Taken => taken = Offered::Taken,
                Offered::Missed => {}
                Offered::Gone => gone.push(one.life),
            }
        }
        if !gone.is_empty() {
            self.forget(&gone);
        }
        taken
    }

    fn forget(&self, gone: &[u64]) {
        let gone: Vec<_> = {
            let mut feeds = self.feeds.lock();
            feeds.extract_if(.., |one| gone.contains(&one.life)).collect()
        };
        discard(gone);
    }
}

impl<E, M, R, F> Subscriber<E> for Feeds<E, M, R, F>
where
    E: Clone + Send + Sync + 'static,
    M: From<Event<E>> + Send + 'static,
    R: 'static,
    F: 'static,
{
    fn prepare(&self, replay: &VecDeque<Arc<E>>) {
        self.feeds.lock().iter().for_each(|one| one.feed.prepare(replay));
    }

    fn begin(&self) -> Offered {
        let taken = self.each(WorkersFeed::begin);
        if self.group.members().is_none() { Offered::Gone } else { taken }
    }

    /// If no worker is alive, the event counts neither as missed nor as taken.
    fn offer(&self, item: &Arc<E>) -> Offered {
        let Some(live) = self.group.members() else { return Offered::Gone };
        self.add_joined(&live);
        drop(live);
        self.each(|one| one.feed.offer(item))
    }

    fn topic_ended(&self) {}

    fn missed(&self) -> u64 {
        self.missed.so_far()
    }
}
