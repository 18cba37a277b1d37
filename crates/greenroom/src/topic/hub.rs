//! What the handles of a topic share.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use greenroom_queue::discard::discard;
use greenroom_queue::lock::Mutex;
use tokio::sync::watch;

use super::subscriber::{Offered, Subscriber};

/// The figures of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopicStats {
    /// Subscriptions that have not ended.
    pub subscribers: usize,
    /// Events published so far.
    pub published: u64,
    /// Events that did not fit in, of all subscribers there were.
    pub missed: u64,
    /// Subscribers that were removed because they were gone.
    pub removed: u64,
    /// Events kept for later subscribers.
    pub replayable: usize,
}

/// Held by topics and the producer. When the last of these is dropped, nothing can be published
/// again, and subscribers are told so; they themselves hold it weakly.
pub(super) struct Hub<E> {
    name: Arc<str>,
    replay: usize,
    /// Whether there are subscribers, as the producer is told.
    wanted: watch::Sender<bool>,
    /// The right to publish is taken.
    produced: AtomicBool,
    missed: Arc<AtomicU64>,
    /// Runs no user code: removed members are dropped after the lock.
    state: Mutex<State<E>>,
}

struct State<E> {
    /// The last events, oldest first; never more than `Hub::replay`.
    replay: VecDeque<Arc<E>>,
    /// In the order of their numbers. Copied on a change while an event is being published.
    members: Arc<Vec<HubMember<E>>>,
    /// The number of the next subscriber.
    next: u64,
    published: u64,
    removed: u64,
}

struct HubMember<E> {
    number: u64,
    subscriber: Arc<dyn Subscriber<E>>,
}

impl<E> Clone for HubMember<E> {
    fn clone(&self) -> Self {
        Self { number: self.number, subscriber: self.subscriber.clone() }
    }
}

impl<E> State<E> {
    fn remove(&mut self, number: u64) -> Option<HubMember<E>> {
        let place = self.members.binary_search_by_key(&number, |member| member.number).ok()?;
        Some(Arc::make_mut(&mut self.members).remove(place))
    }
}

impl<E> Hub<E> {
    /// The right to publish is taken, for the first producer.
    pub(super) fn new(name: Arc<str>, replay: usize) -> Self {
        let state = State {
            replay: VecDeque::new(),
            members: Arc::default(),
            next: 0,
            published: 0,
            removed: 0,
        };
        Self {
            name,
            replay,
            wanted: watch::Sender::new(false),
            produced: AtomicBool::new(true),
            missed: Arc::default(),
            state: Mutex::new(state),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether there are subscribers, at each time.
    pub(super) fn wanted(&self) -> watch::Receiver<bool> {
        self.wanted.subscribe()
    }

    /// The counter of missed events.
    pub(super) fn missed(&self) -> Arc<AtomicU64> {
        self.missed.clone()
    }

    /// Takes the right to publish. False if it is taken already.
    pub(super) fn take_right(&self) -> bool {
        !self.produced.swap(true, Ordering::AcqRel)
    }

    pub(super) fn give_right(&self) {
        self.produced.store(false, Ordering::Release);
    }

    /// Adds a subscriber and returns its number. It gets the replayed events and every event after
    /// that: the replayed ones are set aside under the same lock under which later events find it.
    pub(super) fn add(&self, subscriber: &Arc<dyn Subscriber<E>>) -> u64 {
        let number = {
            let mut state = self.state.lock();
            let number = state.next;
            state.next += 1;
            subscriber.prepare(&state.replay);
            let member = HubMember { number, subscriber: subscriber.clone() };
            Arc::make_mut(&mut state.members).push(member);
            number
        };
        self.tell_demand();
        if subscriber.begin() == Offered::Gone {
            self.remove_gone(&[number]);
        }
        number
    }

    /// Ends a subscription, if it has not ended.
    pub(super) fn remove(&self, number: u64) {
        let removed = self.state.lock().remove(number);
        discard(removed);
        self.tell_demand();
    }

    pub(super) fn contains(&self, number: u64) -> bool {
        let state = self.state.lock();
        state.members.binary_search_by_key(&number, |member| member.number).is_ok()
    }

    /// Offers an event to every subscriber and returns how many took it. For the producer alone.
    pub(super) fn publish(&self, event: E) -> usize {
        let item = Arc::new(event);
        let members = self.keep(&item);
        let mut gone = Vec::new();
        let mut taken = 0;
        for member in members.iter() {
            match member.subscriber.offer(&item) {
                Offered::Taken => taken += 1,
                Offered::Missed => {}
                Offered::Gone => gone.push(member.number),
            }
        }
        if !gone.is_empty() {
            self.remove_gone(&gone);
        }
        // This may be the last hold on a member that has unsubscribed.
        discard(members);
        taken
    }

    /// Keeps the event for later subscribers, and returns the present ones.
    fn keep(&self, item: &Arc<E>) -> Arc<Vec<HubMember<E>>> {
        let mut state = self.state.lock();
        state.published += 1;
        state.replay.push_back(item.clone());
        let excess = state.replay.len() > self.replay;
        let forgotten = if excess { state.replay.pop_front() } else { None };
        let members = state.members.clone();
        drop(state);
        discard(forgotten);
        members
    }

    fn remove_gone(&self, numbers: &[u64]) {
        let removed: Vec<_> = {
            let mut state = self.state.lock();
            let removed: Vec<_> = numbers.iter().filter_map(|gone| state.remove(*gone)).collect();
            state.removed += removed.len() as u64;
            removed
        };
        removed.into_iter().for_each(discard);
        self.tell_demand();
    }

    /// Tells the producer whether there are subscribers. Each change of these ends in a call here,
    /// and each call looks at them under the lock of what it tells: the last one tells the truth.
    fn tell_demand(&self) {
        self.wanted.send_if_modified(|told| {
            let wanted = !self.state.lock().members.is_empty();
            std::mem::replace(told, wanted) != wanted
        });
    }

    pub(super) fn stats(&self) -> TopicStats {
        let state = self.state.lock();
        TopicStats {
            subscribers: state.members.len(),
            published: state.published,
            missed: self.missed.load(Ordering::Relaxed),
            removed: state.removed,
            replayable: state.replay.len(),
        }
    }
}

impl<E> Drop for Hub<E> {
    fn drop(&mut self) {
        let members = std::mem::take(&mut self.state.get_mut().members);
        members.iter().for_each(|member| member.subscriber.topic_ended());
    }
}
