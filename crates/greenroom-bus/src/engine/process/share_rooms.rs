//! The room of each share in the queue of a pool, and its events beside the pool (Q08).
//!
//! An event has a place here from when its input hands it over, or keeps it back, until it is
//! dropped. While it is in hand, and behind a parked key, it takes no room.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
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
    /// The treatment of an event whose share has no room.
    pub(crate) on_full: OnFull,
    taken: Mutex<Rooms>,
    /// An event had a share.
    any_named: AtomicBool,
    /// The events without a share.
    nameless: AtomicU64,
    /// Changes when a share with events beside the pool has room again.
    freed: watch::Sender<()>,
}

struct Rooms {
    bound: Bound,
    /// The events of all shares in the pool.
    queued: usize,
    /// Lines with events beside the pool, and how many those are: later ones follow them, whatever
    /// their share is, so that a line stays in order.
    lines: HashMap<OrderLine, (ShareName, usize)>,
    rooms: BTreeMap<ShareName, Room>,
    /// Shares with events beside the pool, the ones with the fewest in the pool first.
    beside: BTreeSet<(usize, ShareName)>,
}

/// The most events of one share in a pool.
#[derive(Clone, Copy)]
struct Bound {
    /// However empty the pool is.
    share: usize,
    queue: usize,
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

impl Bound {
    fn new(config: &PoolConfig) -> Self {
        let share = config.share_queue.unwrap_or(config.queue.div_ceil(PART));
        Self { share, queue: config.queue }
    }

    /// While this many events of all shares are in the pool. It falls with the room that is left,
    /// so that many floods leave room for others: with `n` of them each has `queue / (n + 3)`,
    /// where one alone has a quarter. A dynamic threshold, after Choudhury and Hahne (1998).
    fn now(self, queued: usize) -> usize {
        let others = self.queue.saturating_sub(self.share);
        if others == 0 {
            return self.share;
        }
        let left = self.queue.saturating_sub(queued);
        (self.share.saturating_mul(left) / others).clamp(1, self.share)
    }
}

impl ShareRooms {
    /// Of a pool with these settings.
    pub(crate) fn new(config: &PoolConfig) -> Arc<Self> {
        let on_full = config.on_share_full.unwrap_or(config.on_full);
        let taken = Rooms {
            bound: Bound::new(config),
            queued: 0,
            lines: HashMap::new(),
            rooms: BTreeMap::new(),
            beside: BTreeSet::new(),
        };
        let (taken, freed) = (Mutex::new(taken), watch::channel(()).0);
        let (any_named, nameless) = (AtomicBool::new(false), AtomicU64::new(0));
        Arc::new(Self { on_full, taken, any_named, nameless, freed })
    }

    /// How many events there were, if none of them had a share.
    pub(crate) fn all_nameless(&self) -> Option<u64> {
        let any_named = self.any_named.load(Ordering::Relaxed);
        (!any_named).then(|| self.nameless.load(Ordering::Relaxed))
    }

    /// The most events that one share may have in the pool, however empty it is.
    pub(crate) fn bound(&self) -> usize {
        self.taken.lock().bound.share
    }

    /// Sets the bound of these settings. Events in the pool keep their room.
    pub(crate) fn set_bound(&self, config: &PoolConfig) {
        self.taken.lock().bound = Bound::new(config);
        self.freed.send_replace(());
    }

    /// Changes when there is room again.
    pub(crate) fn freed(&self) -> watch::Receiver<()> {
        self.freed.subscribe()
    }

    /// Of these shares, the one that has room, events beside the pool, and the fewest in it.
    pub(crate) fn open(&self, is_one: impl Fn(&ShareName) -> bool) -> Option<ShareName> {
        let taken = self.taken.lock();
        let bound = taken.bound.now(taken.queued);
        let open = taken.beside.iter().take_while(|(queued, _)| *queued < bound);
        open.map(|(_, share)| share).find(|share| is_one(share)).cloned()
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
        let new = || {
            match share {
                None => drop(self.nameless.fetch_add(1, Ordering::Relaxed)),
                Some(_) => self.any_named.store(true, Ordering::Relaxed),
            }
            Box::new(ShareRoom { rooms: self.clone(), share, place: Mutex::new(Place::Out) })
        };
        room.get_or_insert_with(new).goes(place, place == Place::Queued)
    }

    /// False if it is `bounded`, and the share has no room.
    fn moves(&self, share: &ShareName, (from, to): (Place, Place), bounded: bool) -> bool {
        let mut taken = self.taken.lock();
        let room = taken.rooms.get(share).copied().unwrap_or_default();
        if bounded && room.queued >= taken.bound.now(taken.queued) {
            return false;
        }
        taken.moves(share, room, from, to);
        let is_open = from == Place::Queued && taken.is_open();
        drop(taken);
        if is_open {
            self.freed.send_replace(());
        }
        true
    }
}

impl Rooms {
    fn moves(&mut self, share: &ShareName, was: Room, from: Place, to: Place) {
        let events = |is: usize, place| is + usize::from(to == place) - usize::from(from == place);
        let room = Room {
            queued: events(was.queued, Place::Queued),
            beside: events(was.beside, Place::Beside),
        };
        self.queued = events(self.queued, Place::Queued);
        if was.beside > 0 {
            self.beside.remove(&(was.queued, share.clone()));
        }
        if room.beside > 0 {
            self.beside.insert((room.queued, share.clone()));
        }
        if room.beside + room.queued > 0 {
            self.rooms.insert(share.clone(), room);
        } else {
            self.rooms.remove(share);
        }
    }

    /// True if a share with events beside the pool has room.
    fn is_open(&self) -> bool {
        self.beside.first().is_some_and(|(queued, _)| *queued < self.bound.now(self.queued))
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
    fn q08_many_floods_leave_room_and_one_alone_has_its_part() {
        for (share_queue, floods, each, left) in [
            (None, 1, 250, 750),
            (None, 4, 142, 430),
            (None, 100, 9, 29),
            (Some(1_000), 1, 1_000, 0),
        ] {
            let rooms =
                ShareRooms::new(&PoolConfig { queue: 1_000, share_queue, ..PoolConfig::default() });
            let mut all = Vec::new();
            for _ in 0..1_000 {
                for flood in 0..floods {
                    let mut room = None;
                    if rooms.enters(&mut room, Some(flood.to_string().into())) {
                        all.push(room);
                    }
                }
            }
            let waiting = rooms.waiting(&Some("0".into()));
            assert!(waiting.abs_diff(each) <= 1, "{floods} floods: {waiting} each");
            let is_left = 1_000 - all.len();
            assert!(is_left.abs_diff(left) <= floods, "{floods} floods leave {is_left}");
        }
    }

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
        assert!(taken.rooms.is_empty() && taken.beside.is_empty() && taken.lines.is_empty());
        assert_eq!(taken.queued, 0);
        assert!(taken.lines.capacity() <= 2 * ROOMY, "{}", taken.lines.capacity());
    }
}
