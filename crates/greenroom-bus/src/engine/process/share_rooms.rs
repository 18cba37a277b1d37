//! The room of each share in the queue of a pool, and its events beside the pool (Q08).
//!
//! An event has a place here from when its input hands it over, or keeps it back, until it is
//! dropped. While it is in hand, and behind a parked key, it takes no room.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{
    engine::account::order_audit::OrderLine,
    router::{OnFull, PoolConfig},
};

/// A share; `None` is the one of all events without one.
pub(crate) type ShareName = Option<Arc<str>>;

/// The part of a pool's queue that one share may take, unless a number is set: a quarter.
const PART: usize = 4;

/// A table with room for no more than this is left as it is.
const ROOMY: usize = 1_024;

/// A share in words.
pub(crate) fn named(share: Option<&Arc<str>>) -> String {
    share.map_or_else(|| "the common share".to_owned(), |share| format!("the share {share:?}"))
}

/// The rooms of the shares of one pool.
pub(crate) struct ShareRooms {
    /// The most events of one share in the pool.
    bound: AtomicUsize,
    /// The treatment of an event whose share has no room.
    pub(crate) on_full: OnFull,
    taken: Mutex<Rooms>,
    /// Changes when a share with events beside the pool has room again.
    freed: watch::Sender<()>,
}

#[derive(Default)]
struct Rooms {
    /// Lines with events beside the pool, and how many those are: later ones follow them, whatever
    /// their share is, so that a line stays in order.
    lines: HashMap<OrderLine, (ShareName, usize)>,
    rooms: BTreeMap<ShareName, Room>,
    /// Shares with room and with events beside the pool.
    open: BTreeSet<ShareName>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Room {
    queued: usize,
    beside: usize,
}

/// The place of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Beside the pool: its share has no room.
    Beside,
    /// In the pool, or on its way into it.
    Queued,
    /// It takes no room.
    Out,
}

/// The most events of one share in a pool with these settings.
pub(crate) fn bound(config: &PoolConfig) -> usize {
    config.share_queue.unwrap_or(config.queue.div_ceil(PART))
}

impl ShareRooms {
    /// Of a pool with these settings.
    pub(crate) fn new(config: &PoolConfig) -> Arc<Self> {
        let bound = AtomicUsize::new(bound(config));
        let on_full = config.on_share_full.unwrap_or(config.on_full);
        let (taken, freed) = (Mutex::default(), watch::channel(()).0);
        Arc::new(Self { bound, on_full, taken, freed })
    }

    pub(crate) fn bound(&self) -> usize {
        self.bound.load(Ordering::Relaxed)
    }

    /// Sets another bound. Events in the pool keep their room.
    pub(crate) fn set_bound(&self, bound: usize) {
        self.bound.store(bound, Ordering::Relaxed);
        let mut taken = self.taken.lock();
        let shares: Vec<ShareName> = taken.rooms.keys().cloned().collect();
        shares.iter().for_each(|share| taken.look(share, bound));
        drop(taken);
        self.freed.send_replace(());
    }

    /// Changes when there is room again.
    pub(crate) fn freed(&self) -> watch::Receiver<()> {
        self.freed.subscribe()
    }

    /// The shares with room and with events beside the pool.
    pub(crate) fn open(&self) -> Vec<ShareName> {
        self.taken.lock().open.iter().cloned().collect()
    }

    /// The number of events of a share beside the pool.
    pub(crate) fn beside(&self, share: &ShareName) -> usize {
        self.taken.lock().rooms.get(share).map_or(0, |room| room.beside)
    }

    /// The number of events of a share that wait in the pool or beside it.
    pub(crate) fn waiting(&self, share: &ShareName) -> usize {
        self.taken.lock().rooms.get(share).map_or(0, |room| room.queued + room.beside)
    }

    /// The share of the events of this line that are beside the pool.
    pub(crate) fn aside(&self, line: &OrderLine) -> Option<ShareName> {
        self.taken.lock().lines.get(line).map(|(share, _)| share.clone())
    }

    /// An event of this line is no longer beside the pool.
    pub(crate) fn steps_in(&self, line: &OrderLine) {
        let mut taken = self.taken.lock();
        if let Some((_, events)) = taken.lines.get_mut(line) {
            *events -= 1;
            if *events == 0 {
                taken.lines.remove(line);
                shrink(&mut taken.lines);
            }
        }
    }

    /// Gives an event of this share room in the pool, if there is some. False if not.
    pub(crate) fn enters(
        self: &Arc<Self>,
        room: &mut Option<Box<ShareRoom>>,
        share: ShareName,
    ) -> bool {
        let has_room = |room: &ShareRoom| *room.place.lock() != Place::Beside;
        room.as_deref().is_some_and(has_room) || self.place(room, share, Place::Queued)
    }

    /// An event waits beside the pool, as one of this share.
    pub(crate) fn waits(
        self: &Arc<Self>,
        room: &mut Option<Box<ShareRoom>>,
        share: ShareName,
        line: Option<&OrderLine>,
    ) {
        if let Some(line) = line {
            let mut taken = self.taken.lock();
            taken.lines.entry(line.clone()).or_insert_with(|| (share.clone(), 0)).1 += 1;
        }
        self.place(room, share, Place::Beside);
    }

    fn place(
        self: &Arc<Self>,
        room: &mut Option<Box<ShareRoom>>,
        share: ShareName,
        place: Place,
    ) -> bool {
        let new =
            || Box::new(ShareRoom { rooms: self.clone(), share, place: Mutex::new(Place::Out) });
        room.get_or_insert_with(new).goes(place, place == Place::Queued)
    }

    /// False if it is `bounded`, and the share has no room.
    fn moves(&self, share: &ShareName, (from, to): (Place, Place), bounded: bool) -> bool {
        let bound = self.bound();
        let mut taken = self.taken.lock();
        if bounded && taken.rooms.get(share).is_some_and(|room| room.queued >= bound) {
            return false;
        }
        let room = taken.rooms.entry(share.clone()).or_default();
        match from {
            Place::Beside => room.beside -= 1,
            Place::Queued => room.queued -= 1,
            Place::Out => {}
        }
        match to {
            Place::Beside => room.beside += 1,
            Place::Queued => room.queued += 1,
            Place::Out => {}
        }
        taken.look(share, bound);
        let is_open = from == Place::Queued && taken.open.contains(share);
        drop(taken);
        if is_open {
            self.freed.send_replace(());
        }
        true
    }
}

impl Rooms {
    /// A room has changed.
    fn look(&mut self, share: &ShareName, bound: usize) {
        let Some(room) = self.rooms.get(share).copied() else { return };
        if room.beside > 0 && room.queued < bound {
            self.open.insert(share.clone());
        } else {
            self.open.remove(share);
        }
        if room.beside == 0 && room.queued == 0 {
            self.rooms.remove(share);
        }
    }
}

/// Gives back the memory of a table that is nearly empty.
pub(crate) fn shrink<K: Eq + Hash, V>(table: &mut HashMap<K, V>) {
    if table.capacity() > ROOMY && table.len() < table.capacity() / 8 {
        table.shrink_to(ROOMY.max(table.len() * 2));
    }
}

/// The place of one event.
pub(crate) struct ShareRoom {
    rooms: Arc<ShareRooms>,
    /// The share that it counts for: that of the event before it in its line, if that waits.
    share: ShareName,
    place: Mutex<Place>,
}

impl ShareRoom {
    fn goes(&self, to: Place, bounded: bool) -> bool {
        let mut place = self.place.lock();
        let moved = *place == to || self.rooms.moves(&self.share, (*place, to), bounded);
        if moved {
            *place = to;
        }
        moved
    }

    /// It is attempted, or behind a parked key.
    pub(crate) fn leaves(&self) {
        self.goes(Place::Out, false);
    }

    /// It waits for another attempt.
    pub(crate) fn returns(&self) {
        self.goes(Place::Queued, false);
    }
}

impl Drop for ShareRoom {
    fn drop(&mut self) {
        self.leaves();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::account::order_audit::OrderAudit;

    #[test]
    fn q10_many_shares_beside_a_pool_leave_nothing() {
        let rooms = ShareRooms::new(&PoolConfig { share_queue: Some(1), ..PoolConfig::default() });
        let audit = OrderAudit::default();
        let line = |n: u32| audit.line(0, 0, n.to_string().into());
        let all: Vec<_> = (0..100_000)
            .map(|n| {
                let (mut first, mut second) = (None, None);
                let share: ShareName = Some(n.to_string().into());
                assert!(rooms.enters(&mut first, share.clone()));
                rooms.waits(&mut second, share, Some(&line(n)));
                (first, second)
            })
            .collect();
        assert_eq!(rooms.taken.lock().rooms.len(), 100_000);
        drop(all);
        (0..100_000).for_each(|n| rooms.steps_in(&line(n)));
        let taken = rooms.taken.lock();
        assert!(taken.rooms.is_empty() && taken.open.is_empty() && taken.lines.is_empty());
        assert!(taken.lines.capacity() <= 2 * ROOMY, "{}", taken.lines.capacity());
    }
}
