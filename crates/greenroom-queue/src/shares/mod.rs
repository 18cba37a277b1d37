//! Whose message is started next, among shares: start-time fair queueing by time in hand.
//!
//! ```text
//!                     add                     pick                     end
//!  a key with messages ──▶ line of its share ──────▶ in hand of a worker ──▶ time is charged
//!                          │    ▲
//!                          ▼    │ an attempt ends, a deadline, an order
//!                   may not start: cap, rate, hold, probe, paused
//! ```
//!
//! Each share has a virtual time: the time of its attempts, divided by its weight. The share
//! that has had least is next (Goyal, Vin and Cheng, "Start-time fair queueing", SIGCOMM 1996).
//! With many workers an attempt may last while thousands of others come and go, so time in hand
//! counts as it passes, and not only when it is charged at the end. Each attempt in hand counts as
//! if it went on for as long as attempts usually last: or all workers that come free at one moment
//! would go to one share, and stay there for too long. The present virtual time is that of the
//! share that was picked last. A share that had nothing to start begins there, so nothing can be
//! saved up.
//!
//! A share may start, or is in no order at all: then it waits for an event
//! ([`ShareQueue::end`], an order) or for a deadline ([`ShareQueue::next_due`]), at which its owner
//! calls [`ShareQueue::wake`].
//!
//! # Price
//! A pick and an end cost a look into two tables and a place in a tree of the shares that may
//! start. The virtual time of shares with attempts in hand moves on, so their place in the tree
//! is where they were; the first is looked at again before it is believed. A share that has nothing
//! waiting, in hand, held or set, and whose bucket is full, is not in memory. Of the busiest of
//! these, the time in hand is.
//!
//! It knows neither locks nor clocks: [`GuardedShares`] has the one, its owner the other.

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

/// A table that is used for less than a part of its room gives the rest back.
const SPARSE: usize = 8;
/// Less room than this is kept.
const SMALL: usize = 64;

/// A hold is followed by a probe that is remembered for as long as the hold was, and this long at
/// least.
const PROBE_IS_KEPT: u64 = 1_000_000_000;

type Table<N, V> = HashMap<N, V, foldhash::fast::RandomState>;

/// The shares of one pool. `S` names a share, `T` is an item that waits.
pub struct ShareQueue<S, T> {
    ids: Table<S, u32>,
    all: Table<u32, OneShare<S, T>>,
    next_id: u32,
    /// Those that may start, by the time that they will have had: by now it may be more.
    ready: BTreeSet<(Virtual, u32)>,
    /// Those that something ends for at a time.
    due: BTreeSet<(u64, u32)>,
    /// Those that have had more than the present virtual time, and are kept for that alone.
    debts: BTreeSet<(Virtual, u32)>,
    /// The present virtual time.
    present: Virtual,
    /// The attempts of workers, by their slots.
    hands: Table<usize, Hand>,
    defaults: Limits,
    /// Attempts that have ended.
    took: Took,
    /// Shares that are not here any more.
    past: Past<S>,
    /// Those that are held, paused, or have limits of their own.
    special: HashSet<u32, foldhash::fast::RandomState>,
}

/// The attempt of a worker.
#[derive(Debug, Clone, Copy)]
struct Hand {
    share: u32,
    since: u64,
    expected: u64,
}

/// A share, as it is at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareView<S> {
    /// Its name.
    pub name: S,
    /// Its limits.
    pub limits: Limits,
    /// They were set for this share.
    pub is_set: bool,
    /// How much waits in its line.
    pub waiting: usize,
    /// Attempts in hand.
    pub in_hand: u32,
    /// Time in hand, in nanoseconds. What it had before it was last in memory counts if it is one
    /// of the busiest.
    pub held: u64,
    /// Whether it may start.
    pub standing: Standing,
}

impl<S: Hash + Eq + Clone, T> ShareQueue<S, T> {
    /// Shares that may all do this.
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

    /// Something waits for this share, behind the others, or before them.
    pub fn add(&mut self, name: &S, what: T, first: bool, now: u64) {
        let id = self.id(name);
        if let Some(share) = self.all.get_mut(&id) {
            match first {
                true => share.line.push_front(what),
                false => share.line.push_back(what),
            }
            // Only the first changes its standing.
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

    /// Ends all that is due by now.
    pub fn wake(&mut self, now: u64) {
        while let Some((at, id)) = self.due.first().copied()
            && at <= now
        {
            self.review(id, now);
        }
        self.forgive(now);
    }

    /// Takes the item that the worker in this slot starts next.
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

    /// Takes a further item of the share that this worker has in hand: they are one attempt.
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

    /// How often an attempt ends, about: one in so many nanoseconds. `None` before any has.
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

    /// The worker has not started the item that it took.
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

    /// The attempt of this worker has ended, however it did. Nothing follows if it has none.
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

    /// How long attempts take on average, in nanoseconds, if they are quick.
    pub fn quick_pace(&self) -> Option<u64> {
        self.took.quick_pace()
    }

    /// Takes the line of a share that may start out of all order, for an owner that starts items in
    /// another one for a while.
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

    /// Gives this share limits of its own, or those of all again.
    pub fn set(&mut self, name: &S, limits: Option<Limits>, now: u64) {
        let defaults = self.defaults;
        self.change(name, now, |share| {
            share.is_set = limits.is_some();
            share.set(limits.unwrap_or(defaults), now);
        });
    }

    /// Nothing of this share is started before this time. Then one attempt shows how things are,
    /// and the others follow once it has ended, unless the share is held again by then.
    pub fn hold(&mut self, name: &S, until: u64, now: u64) {
        let kept = until.saturating_sub(now).max(PROBE_IS_KEPT);
        self.change(name, now, |share| {
            share.hold = Some(until);
            share.probe = Some(Probe::Due { until: until.saturating_add(kept) });
        });
    }

    /// Nothing of this share is started until it is resumed.
    pub fn pause(&mut self, name: &S, now: u64) {
        self.change(name, now, |share| share.paused = true);
    }

    /// Ends a pause, a hold and a wait for a probe.
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

    /// How many shares are in memory, and for how many there is room.
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

    /// The share that will have had least, of those that may start.
    fn next(&mut self, now: u64) -> Option<u32> {
        loop {
            let (noted, id) = *self.ready.first()?;
            let share = self.all.get_mut(&id)?;
            let by_now = share.will_have_had(now);
            let second = self.ready.range((noted, id)..).nth(1);
            if second.is_none_or(|(other, _)| by_now <= *other) {
                return Some(id);
            }
            // Its attempts in hand have gone on since it was noted.
            share.noted.ready = Some(by_now);
            self.ready.remove(&(noted, id));
            self.ready.insert((by_now, id));
        }
    }

    /// A share has changed: finds its place, or forgets it.
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

    /// Debts of up to the present are none any more; and if nothing is in hand and nothing may
    /// start, they are owed to no share.
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
