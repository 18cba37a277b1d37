//! Which share's message starts next: start-time fair queueing by time in hand.
//!
//! ```text
//!                     add                     pick                     end
//!  a key with messages ──▶ line of its share ──────▶ in hand of a worker ──▶ time is charged
//!                          │    ▲
//!                          ▼    │ an attempt ends, a deadline, an order
//!                   may not start: cap, rate, hold, probe, paused
//! ```
//!
//! Each share has a virtual time: the time of its attempts divided by its weight. The share with
//! the least is next (Goyal, Vin and Cheng, "Start-time fair queueing", SIGCOMM 1996). With many
//! workers, thousands of attempts may start and end during a long one, so time in hand counts as it
//! passes, and not only when the attempt is charged at its end. Each attempt in hand counts as if
//! it took as long as attempts usually do: otherwise all workers that become free at one moment
//! would go to one share, and stay there for too long. The present virtual time is that of the
//! share that was picked last. A share that had nothing to start begins there, so nothing can be
//! saved up.
//!
//! A share that may start is in the order. One that may not waits for an event
//! ([`ShareQueue::end`], an order) or for a deadline ([`ShareQueue::next_due`]), at which its owner
//! calls [`ShareQueue::wake`].
//!
//! # Price
//! A pick and an end cost a lookup in two tables and a place in a tree of the shares that may
//! start. The virtual time of shares with attempts in hand advances while their place in the tree
//! does not; so the first share is checked again before it is picked. A share that has nothing
//! waiting, in hand, held or set, and whose bucket is full, is not in memory. Only the time in hand
//! of the busiest of these is kept.
//!
//! It knows neither locks nor clocks: [`GuardedShares`] has the lock, its owner the clock.

mod bucket;
mod guarded;
mod limits;
mod past;
mod share;
#[cfg(test)]
mod tests;
mod took;

pub use bucket::ShareRate;
pub use guarded::GuardedShares;
pub use limits::Limits;
pub use share::Standing;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    hash::Hash,
};

use past::Past;
use share::{Noted, OneShare, Probe, Virtual};
use took::Took;

/// A table that uses less than one part in this many of its room gives the rest back.
const SPARSE: usize = 8;
/// A table with less room than this keeps it.
const SMALL: usize = 64;

/// After a hold, one probe is due. It is remembered for as long as the hold lasted, and at least
/// this long (in nanoseconds).
const PROBE_IS_KEPT: u64 = 1_000_000_000;

type Table<N, V> = HashMap<N, V, foldhash::fast::RandomState>;

/// The shares of one pool. `S` is the name of a share, `T` an item that waits.
pub struct ShareQueue<S, T> {
    ids: Table<S, u32>,
    all: Table<u32, OneShare<S, T>>,
    next_id: u32,
    /// The shares that may start, by the time that they will have had when they were noted: by now
    /// it may be more.
    ready: BTreeSet<(Virtual, u32)>,
    /// The shares for which something ends at a known time.
    due: BTreeSet<(u64, u32)>,
    /// The shares that are kept only because they have had more than the present virtual time.
    debts: BTreeSet<(Virtual, u32)>,
    /// The present virtual time.
    present: Virtual,
    /// The attempts of workers, by slot.
    hands: Table<usize, Hand>,
    defaults: Limits,
    /// The duration of attempts that have ended.
    took: Took,
    /// Shares that are no longer in memory.
    past: Past<S>,
    /// Shares that are held, paused, or have limits of their own.
    special: HashSet<u32, foldhash::fast::RandomState>,
}

/// The attempt of a worker.
#[derive(Debug, Clone, Copy)]
struct Hand {
    share: u32,
    since: u64,
    expected: u64,
}

/// A snapshot of a share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareView<S> {
    /// Its name.
    pub name: S,
    /// Its limits.
    pub limits: Limits,
    /// True if the limits were set for this share.
    pub is_set: bool,
    /// The number of items that wait in its line.
    pub waiting: usize,
    /// Attempts in hand.
    pub in_hand: u32,
    /// Time in hand, in nanoseconds. Time from before the share was last forgotten counts if the
    /// share is one of the busiest.
    pub held: u64,
    /// Whether it may start.
    pub standing: Standing,
}

impl<S: Hash + Eq + Clone, T> ShareQueue<S, T> {
    /// Shares that all have these limits.
    pub fn new(defaults: Limits) -> Self {
        Self {
            ids: Table::default(),
            all: Table::default(),
            next_id: 0,
            ready: BTreeSet::new(),
            due: BTreeSet::new(),
            debts: BTreeSet::new(),
            present: 0,
            hands: Table::default(),
            defaults,
            took: Took::new(),
            past: Past::new(),
            special: HashSet::default(),
        }
    }

    /// Adds an item to the line of this share, behind the others or (`first`) before them.
    pub fn add(&mut self, name: &S, what: T, first: bool, now: u64) {
        let id = self.id(name);
        if let Some(share) = self.all.get_mut(&id) {
            match first {
                true => share.line.push_front(what),
                false => share.line.push_back(what),
            }
            // Only the first item changes its standing.
            if share.line.len() > 1 {
                return;
            }
        }
        self.review(id, now);
    }

    /// True if something may start.
    pub fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The next moment at which [`wake`](Self::wake) is to be called.
    pub fn next_due(&self) -> Option<u64> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Ends everything that is due by now.
    pub fn wake(&mut self, now: u64) {
        while let Some((at, id)) = self.due.first().copied()
            && at <= now
        {
            self.review(id, now);
        }
        self.forgive(now);
    }

    /// Takes the next item, which the worker in this slot starts.
    pub fn pick(&mut self, slot: usize, now: u64) -> Option<T> {
        self.end(slot, now);
        self.wake(now);
        let id = self.next(now)?;
        let expected = self.took.typical;
        let share = self.all.get_mut(&id)?;
        self.present = self.present.max(share.had(now));
        let what = share.line.pop_front()?;
        share.started(now, expected);
        if let Some(Probe::Due { .. }) = share.probe {
            share.probe = Some(Probe::Out { slot });
        }
        self.hands.insert(slot, Hand { share: id, since: now, expected });
        self.review(id, now);
        self.forgive(now);
        Some(what)
    }

    /// Takes a further item of the share that this worker has in hand: both count as one attempt.
    pub fn pick_beside(&mut self, slot: usize, now: u64) -> Option<T> {
        let id = self.hands.get(&slot)?.share;
        let what = self.all.get_mut(&id)?.line.pop_front();
        self.review(id, now);
        what
    }

    /// The share of each attempt in hand.
    pub fn in_hand(&self) -> impl Iterator<Item = &S> {
        self.hands.values().filter_map(|hand| Some(&self.all.get(&hand.share)?.name))
    }

    /// The average time between the ends of attempts, in nanoseconds. `None` before any attempt has
    /// ended.
    pub fn turn(&self) -> Option<u64> {
        (self.took.sum > 0).then(|| self.took.typical / self.hands.len().max(1) as u64)
    }

    /// Time in hand of all shares, in nanoseconds.
    pub fn time_in_hand(&self, now: u64) -> u64 {
        let open = self.hands.values().map(|hand| now.saturating_sub(hand.since));
        open.fold(self.took.sum, u64::saturating_add)
    }

    /// The share that this worker has in hand.
    pub fn in_hand_of(&self, slot: usize) -> Option<&S> {
        let hand = self.hands.get(&slot)?;
        self.all.get(&hand.share).map(|share| &share.name)
    }

    /// The worker did not start the item that it took.
    pub fn not_started(&mut self, slot: usize, now: u64) {
        let Some(Hand { share: id, since, expected }) = self.hands.remove(&slot) else { return };
        if let Some(share) = self.all.get_mut(&id) {
            share.not_started(since, expected);
            if share.probe == Some(Probe::Out { slot }) {
                share.probe = Some(Probe::Due { until: now.saturating_add(PROBE_IS_KEPT) });
            }
        }
        self.tidy_hands();
        self.review(id, now);
        self.forgive(now);
    }

    /// The attempt of this worker has ended, in whatever way. Does nothing if it has none.
    pub fn end(&mut self, slot: usize, now: u64) {
        let Some(Hand { share: id, since, expected }) = self.hands.remove(&slot) else { return };
        let took = now.saturating_sub(since).max(1);
        self.took.note(took);
        if let Some(share) = self.all.get_mut(&id) {
            share.ended(since, expected, now);
            if share.probe == Some(Probe::Out { slot }) {
                share.probe = None;
            }
        }
        self.tidy_hands();
        self.review(id, now);
        self.forgive(now);
    }

    /// Changes the limits of shares that have none of their own.
    pub fn set_defaults(&mut self, limits: Limits, now: u64) {
        self.defaults = limits;
        for id in self.ids.values().copied().collect::<Vec<_>>() {
            if let Some(share) = self.all.get_mut(&id)
                && !share.is_set
            {
                share.set(limits, now);
                self.review(id, now);
            }
        }
    }

    /// True if all shares are alike, and nothing stops any of them.
    pub fn is_even(&self) -> bool {
        self.special.is_empty() && self.defaults.in_hand.is_none() && self.defaults.rate.is_none()
    }

    /// The average duration of attempts in nanoseconds, if they are quick.
    pub fn quick_pace(&self) -> Option<u64> {
        self.took.quick_pace()
    }

    /// Takes the line of a share that may start, regardless of the order, for an owner that starts
    /// items in a different order for a while.
    pub fn take_line(&mut self, now: u64) -> Option<Vec<T>> {
        let (_, id) = *self.ready.first()?;
        let line = std::mem::take(&mut self.all.get_mut(&id)?.line);
        self.review(id, now);
        self.forgive(now);
        Some(line.into())
    }

    /// The limits of shares that have none of their own.
    pub fn defaults(&self) -> Limits {
        self.defaults
    }

    /// Gives this share limits of its own, or (`None`) the default limits again.
    pub fn set(&mut self, name: &S, limits: Option<Limits>, now: u64) {
        let defaults = self.defaults;
        self.change(name, now, |share| {
            share.is_set = limits.is_some();
            share.set(limits.unwrap_or(defaults), now);
        });
    }

    /// Nothing of this share starts before this time. After that one attempt goes first as a probe,
    /// and the others follow once it has ended, unless the share is held again by then.
    pub fn hold(&mut self, name: &S, until: u64, now: u64) {
        let kept = until.saturating_sub(now).max(PROBE_IS_KEPT);
        self.change(name, now, |share| {
            share.hold = Some(until);
            share.probe = Some(Probe::Due { until: until.saturating_add(kept) });
        });
    }

    /// Nothing of this share starts until it is resumed.
    pub fn pause(&mut self, name: &S, now: u64) {
        self.change(name, now, |share| share.paused = true);
    }

    /// Ends a pause, a hold and the wait for a probe.
    pub fn resume(&mut self, name: &S, now: u64) {
        self.change(name, now, |share| {
            (share.paused, share.hold, share.probe) = (false, None, None);
        });
    }

    /// The shares that are in memory, in no order.
    pub fn views(&self, now: u64) -> impl Iterator<Item = ShareView<S>> {
        self.all.values().map(move |share| view(share, now))
    }

    /// A share, if it is in memory.
    pub fn view(&self, name: &S, now: u64) -> Option<ShareView<S>> {
        self.all.get(self.ids.get(name)?).map(|share| view(share, now))
    }

    /// The number of shares in memory, and the number that there is room for.
    pub fn memory(&self) -> (usize, usize) {
        (self.all.len(), self.all.capacity().max(self.ids.capacity()))
    }

    fn change(&mut self, name: &S, now: u64, change: impl FnOnce(&mut OneShare<S, T>)) {
        let id = self.id(name);
        if let Some(share) = self.all.get_mut(&id) {
            change(share);
        }
        self.review(id, now);
    }

    fn id(&mut self, name: &S) -> u32 {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        while self.all.contains_key(&self.next_id) {
            self.next_id = self.next_id.wrapping_add(1);
        }
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        self.ids.insert(name.clone(), id);
        let time = self.past.time(name);
        self.all.insert(id, OneShare::new(name.clone(), self.defaults, self.present, time));
        id
    }

    /// The share that will have had least, among those that may start.
    fn next(&mut self, now: u64) -> Option<u32> {
        loop {
            let (noted, id) = *self.ready.first()?;
            let share = self.all.get_mut(&id)?;
            let by_now = share.will_have_had(now);
            let second = self.ready.range((noted, id)..).nth(1);
            if second.is_none_or(|(other, _)| by_now <= *other) {
                return Some(id);
            }
            // The time of its attempts in hand has grown since it was noted.
            share.noted.ready = Some(by_now);
            self.ready.remove(&(noted, id));
            self.ready.insert((by_now, id));
        }
    }

    /// Finds the place of a share that has changed, or forgets the share.
    fn review(&mut self, id: u32, now: u64) {
        let Some(share) = self.all.get_mut(&id) else { return };
        let Noted { ready, due, debt } = share.noted;
        ready.map(|had| self.ready.remove(&(had, id)));
        due.map(|at| self.due.remove(&(at, id)));
        debt.map(|had| self.debts.remove(&(had, id)));
        let standing = share.standing(now);
        let ends_at = share.ends_at(now);
        let mut noted = Noted::default();
        match standing {
            Standing::Startable => {
                if ready.is_none() {
                    share.begin_at(self.present, now);
                }
                noted.ready = Some(share.will_have_had(now));
            }
            Standing::Held(until) | Standing::Spent(until) => noted.due = Some(until),
            Standing::Idle => noted.due = ends_at,
            Standing::Paused | Standing::Probing | Standing::Full => {}
        }
        if share.is_forgettable() && noted.due.is_none() {
            let had = share.had(now);
            if had <= self.present {
                return self.forget(id);
            }
            noted.debt = Some(had);
        }
        share.noted = noted;
        match share.is_special() {
            true => self.special.insert(id),
            false => self.special.remove(&id),
        };
        noted.ready.map(|had| self.ready.insert((had, id)));
        noted.due.map(|at| self.due.insert((at, id)));
        noted.debt.map(|had| self.debts.insert((had, id)));
    }

    /// Drops debts up to the present time. If nothing is in hand and nothing may start, no share is
    /// owed anything, so all debts are dropped.
    fn forgive(&mut self, now: u64) {
        if self.hands.is_empty()
            && self.ready.is_empty()
            && let Some((last, _)) = self.debts.last()
        {
            self.present = self.present.max(*last);
        }
        while let Some((had, id)) = self.debts.first().copied()
            && had <= self.present
        {
            self.review(id, now);
        }
    }

    fn forget(&mut self, id: u32) {
        self.special.remove(&id);
        if let Some(share) = self.all.remove(&id) {
            self.ids.remove(&share.name);
            self.past.keep(&share.name, share.time_charged());
        }
        tidy(&mut self.all);
        tidy(&mut self.ids);
    }

    fn tidy_hands(&mut self) {
        tidy(&mut self.hands);
    }
}

fn tidy<N: Hash + Eq, V>(table: &mut Table<N, V>) {
    let room = table.capacity();
    if room > SMALL && table.len() < room / SPARSE {
        table.shrink_to(table.len() * 2);
    }
}

fn view<S: Clone, T>(share: &OneShare<S, T>, now: u64) -> ShareView<S> {
    ShareView {
        name: share.name.clone(),
        limits: share.limits,
        is_set: share.is_set,
        waiting: share.line.len(),
        in_hand: share.hand.count,
        held: share.time_in_hand(now),
        standing: share.standing(now),
    }
}
