//! Results of handlers may come back in (G03).
//!
//! ```text
//! input ──▶ reserves room for what its handler may send back ──▶ pool ──▶ handler ──▶ output
//!                  waits here, in no pool, until there is some     ▲          │
//!                                                                  └── takes its room along
//! ```
//!
//! Each handler declares how many events it may send back for one. That much room is reserved
//! before an event from an input is handed to a pool. An event that is sent back takes its share of
//! the room along, and returns it when it is done. So the events in a full pool can be handled
//! without waiting for room.
//!
//! An event that came back, and whose handler may send back more than one, needs more room than it
//! brings. If there is none, it does not wait, because that room may be held by an event that waits
//! for it. Its attempt fails
//! ([`FailureKind::LoopbackFull`](crate::handler::FailureKind::LoopbackFull)), and in the end it is
//! a dead letter. So no cycle can deadlock.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

use crate::{event::Event, pattern::Pattern, settlement::Ack, wait::wait_until};

/// Which results come back in, and how many at once.
#[derive(Debug, Clone)]
pub struct LoopbackConfig {
    /// The events that come back, instead of going to an output.
    pub on: Vec<Pattern>,
    /// Events on their way back, and reservations, at once; 1,000 by default. At least the number
    /// that each handler declares; to keep all workers of a pool busy, that times its workers and
    /// its queue.
    pub room: usize,
}

/// The default number of events that may be on their way back: as many as a pool has in its queue.
const ROOM: usize = 1_000;

impl LoopbackConfig {
    /// These events come back.
    pub fn new(on: Vec<Pattern>) -> Self {
        Self { on, room: ROOM }
    }
}

/// The way back of one engine.
#[derive(Debug)]
pub(crate) struct Loopback {
    on: Vec<Pattern>,
    /// Its place among the inputs.
    pub(crate) place: u32,
    pub(crate) room: Arc<LoopbackRoom>,
    /// Events on their way, bounded by the room. `None` once no task takes them any more.
    queue: Mutex<Option<VecDeque<Returning>>>,
    /// Told when something is put there.
    sent: Notify,
    /// Nothing more will be sent back.
    ended: AtomicBool,
}

/// An event on its way back.
#[derive(Debug)]
pub(crate) struct Returning {
    pub(crate) event: Event,
    /// A part of the settlement of the event that it was made of.
    pub(crate) ack: Ack,
    pub(crate) reserved: Reserved,
    /// The assignment of the partition of that event.
    pub(crate) assigned: u32,
    pub(crate) taken_at: Instant,
    /// The handler that it is for, if it is a replayed dead letter.
    pub(crate) to: Option<usize>,
}

impl Loopback {
    pub(crate) fn new(config: LoopbackConfig, place: u32) -> Self {
        Self {
            on: config.on,
            place,
            room: Arc::new(LoopbackRoom::new(config.room)),
            queue: Mutex::new(Some(VecDeque::new())),
            sent: Notify::new(),
            ended: AtomicBool::new(false),
        }
    }

    pub(crate) fn takes(&self, ty: &str) -> bool {
        self.on.iter().any(|pattern| pattern.matches(ty))
    }

    /// Refused once no task takes events any more.
    pub(crate) fn send(&self, returning: Returning) {
        let mut queue = self.queue.lock();
        let Some(open) = queue.as_mut() else {
            // Settles an event: outside the lock.
            drop(queue);
            return drop(returning);
        };
        open.push_back(returning);
        drop(queue);
        self.sent.notify_one();
    }

    /// The next that comes back. `None` once it has ended and nothing is left.
    ///
    /// # Cancel safety
    /// A dropped future has taken nothing.
    pub(crate) async fn next(&self) -> Option<Returning> {
        loop {
            if let Some(returning) = self.try_next() {
                return Some(returning);
            }
            if self.ended.load(Ordering::Acquire) {
                return None;
            }
            self.sent.notified().await;
        }
    }

    pub(crate) fn try_next(&self) -> Option<Returning> {
        self.queue.lock().as_mut()?.pop_front()
    }

    /// Gives up events on their way that were made of an event of such an assignment.
    pub(crate) fn withdraw(&self, is_given_up: impl Fn(u32) -> bool) {
        let gone: VecDeque<_> = {
            let mut queue = self.queue.lock();
            let Some(open) = queue.as_mut() else { return };
            let all = std::mem::take(open).into_iter();
            let (gone, stay) = all.partition(|returning| is_given_up(returning.assigned));
            *open = stay;
            gone
        };
        // Settles events: outside the lock.
        drop(gone);
    }

    /// Nothing more is sent back: the events on their way are the last.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.sent.notify_one();
    }

    /// No task takes events any more: those on their way, and later ones, are refused.
    pub(crate) fn close(&self) {
        let left = self.queue.lock().take();
        // Settles events: outside the lock.
        drop(left);
    }
}

/// Room for events on their way back.
#[derive(Debug)]
pub(crate) struct LoopbackRoom {
    state: Mutex<Free>,
    /// Told when some is given back.
    freed: Notify,
}

#[derive(Debug)]
struct Free {
    events: usize,
    /// Events that may send something back, or come back, and are not done.
    holders: usize,
}

impl LoopbackRoom {
    fn new(events: usize) -> Self {
        Self { state: Mutex::new(Free { events, holders: 0 }), freed: Notify::new() }
    }

    pub(crate) fn try_reserve(self: &Arc<Self>, events: usize) -> Option<Reserved> {
        let mut free = self.state.lock();
        free.events = free.events.checked_sub(events)?;
        free.holders += 1;
        Some(Reserved { room: self.clone(), events })
    }

    /// Waits until there is, for a moment, this much room.
    ///
    /// # Cancel safety
    /// A dropped future has done nothing.
    pub(crate) async fn has(&self, events: usize) {
        self.until(|free| free.events >= events).await;
    }

    /// Waits until nothing is on its way, nor can be.
    ///
    /// # Cancel safety
    /// A dropped future has done nothing.
    pub(crate) async fn idle(&self) {
        self.until(|free| free.holders == 0).await;
    }

    async fn until(&self, enough: impl Fn(&Free) -> bool) {
        wait_until(&self.freed, || enough(&self.state.lock()).then_some(())).await;
    }
}

/// Room for several events, held by one event until it is done. When dropped, it returns the room.
#[derive(Debug)]
pub(crate) struct Reserved {
    room: Arc<LoopbackRoom>,
    events: usize,
}

impl Reserved {
    /// Room for one of them. `None` where all of it is given away.
    pub(crate) fn split_one(&mut self) -> Option<Self> {
        self.events = self.events.checked_sub(1)?;
        self.room.state.lock().holders += 1;
        Some(Self { room: self.room.clone(), events: 1 })
    }

    /// Reserves more, up to this many. False if there is not enough.
    fn grow(&mut self, to: usize) -> bool {
        let mut free = self.room.state.lock();
        let more = to.saturating_sub(self.events);
        let Some(left) = free.events.checked_sub(more) else { return false };
        free.events = left;
        self.events += more;
        true
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut free = self.room.state.lock();
        free.events += self.events;
        free.holders -= 1;
        drop(free);
        self.room.freed.notify_waiters();
    }
}

/// Whether the reservation of an event covers all that its handler may send back. For an event from
/// an input it does.
pub(crate) fn has_room(reserved: Option<&mut Reserved>, declared: usize) -> bool {
    reserved.is_none_or(|reserved| reserved.grow(declared))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g03_room_is_given_back_whoever_drops_it() {
        let room = Arc::new(LoopbackRoom::new(5));
        let mut three = room.try_reserve(3).unwrap();
        assert!(room.try_reserve(3).is_none());
        let one = three.split_one().unwrap();
        assert_eq!((three.events, one.events), (2, 1));
        assert!(three.grow(4) && !three.grow(5));
        drop(three);
        let state = |room: &LoopbackRoom| {
            let free = room.state.lock();
            (free.events, free.holders)
        };
        assert_eq!(state(&room), (4, 1));
        drop(one);
        assert_eq!(state(&room), (5, 0));
    }

    #[test]
    fn g03_no_more_is_given_away_than_was_reserved() {
        let room = Arc::new(LoopbackRoom::new(5));
        let mut none = room.try_reserve(0).unwrap();
        assert!(none.split_one().is_none());
        let mut one = room.try_reserve(1).unwrap();
        assert!(one.split_one().is_some() && one.split_one().is_none());
    }
}
