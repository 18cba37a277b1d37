//! The pools as one input sees them, each with the events that wait for room in it, in order.
//!
//! ```text
//!            ┌─ the pool is full ────────────▶ one queue
//! event ─────┤                                 (partitions take turns)
//!            ├─ its key has as many as it may ▶ behind its key; later ones of that key too, and nobody else
//!            └─ its share, as many as it may ─▶ aside, with all others of its share (Q08)
//! ```

use std::{
    collections::{HashMap, VecDeque},
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use greenroom::{NotAccepted, SendError, TrySendError, pool::Permit};
use tokio::sync::watch;

use super::{aside::Aside, held_by::HeldByShare, rotation::Rotation};
use crate::{
    BoxFuture,
    dead_letter::Reason,
    engine::{
        account::order_audit::OrderLine,
        process::{
            job::{BusError, JobAddress, PoolJob},
            share_rooms::ShareRooms,
        },
        shared::Shared,
    },
    name::Name,
};

/// All pools, and which of them are behind. An input polls only those that are behind: hundreds of
/// pools that keep up cost it nothing.
pub(crate) struct BesidePools {
    shared: Arc<Shared>,
    pools: Vec<JobAddress>,
    /// The events that wait for each pool.
    beside: Vec<Beside>,
    /// Changes when the shares of a pool have room again. Of pools with shares.
    freed: Vec<Option<watch::Receiver<()>>>,
    /// The indices of the pools that events wait for. May include some that nothing waits for any
    /// more.
    behind: Vec<usize>,
    /// Partitions take turns.
    rotates: bool,
}

#[derive(Default)]
struct Beside {
    /// In order.
    waiting: PoolOverflow,
    /// Its pool is listed as behind.
    is_listed: bool,
}

impl BesidePools {
    pub(crate) fn new(shared: Arc<Shared>, pools: Vec<JobAddress>, rotates: bool) -> Self {
        let beside = pools.iter().map(|_| Beside::default()).collect();
        let rooms = shared.process.pools.iter().map(|pool| pool.rooms.as_ref());
        let freed = rooms.map(|rooms| rooms.map(|rooms| rooms.freed())).collect();
        Self { shared, pools, beside, freed, behind: Vec::new(), rotates }
    }

    /// Direct access to the pool at this index, bypassing the events that wait for it.
    pub(crate) fn address(&self, place: usize) -> &JobAddress {
        &self.pools[place]
    }

    /// Events that wait for room in pools.
    pub(crate) fn held_back(&self) -> usize {
        self.behind.iter().map(|place| self.beside[*place].waiting.len()).sum()
    }

    /// The pool that most of them wait for.
    pub(crate) fn held_by(&self) -> Option<Name> {
        let most = self.behind.iter().max_by_key(|place| self.beside[**place].waiting.len())?;
        Some(self.shared.process.pools[*most].name)
    }

    /// The share of most of them, its pool, and their number.
    pub(crate) fn held_by_share(&self) -> Option<HeldByShare> {
        let longest = |place: &usize| {
            let (share, events) = self.beside[*place].waiting.aside.longest()?;
            Some((*place, share, events))
        };
        let longest = self.behind.iter().filter_map(longest).max_by_key(|(.., events)| *events);
        let (place, share, events) = longest?;
        let pool = self.shared.process.pools[place].name.as_str();
        Some(HeldByShare::new(pool, share.clone(), events as u64))
    }

    /// Calls this with the assignment of each of them.
    pub(crate) fn each_held_back(&self, mut each: impl FnMut(u32)) {
        self.behind.iter().for_each(|place| self.beside[*place].waiting.each(&mut each));
    }

    /// Gives up the waiting events of all assignments for which this returns true.
    pub(crate) fn give_up(&mut self, is_revoked: &dyn Fn(u32) -> bool) {
        for place in &self.behind {
            let rooms = self.shared.process.pools[*place].rooms.as_deref();
            let waiting = &mut self.beside[*place].waiting;
            if let Some(rooms) = rooms {
                waiting.aside.retain(rooms, |job| !is_revoked(job.origin.assigned));
            }
            waiting.give_up(&self.shared, &self.pools[*place], is_revoked);
        }
    }

    /// Puts an event at the end of the line for this pool, until `feed` hands it over.
    pub(crate) fn wait(&mut self, place: usize, job: PoolJob) {
        let beside = &mut self.beside[place];
        let turn = job.origin.partition().filter(|_| self.rotates);
        beside.waiting.push(self.shared.process.pools[place].rooms.as_ref(), job, turn);
        if !beside.is_listed {
            beside.is_listed = true;
            self.behind.push(place);
        }
    }

    /// Hands over as many events as there is room for.
    pub(crate) fn feed(&mut self) {
        let Self { shared, pools, beside, behind, .. } = self;
        behind.retain(|place| {
            let beside = &mut beside[*place];
            let rooms = shared.process.pools[*place].rooms.as_ref();
            beside.waiting.feed(shared, rooms, &pools[*place]);
            beside.is_listed = !beside.waiting.is_empty();
            beside.is_listed
        });
    }

    /// Waits until one of the pools that events wait for has room or has stopped, and hands it the
    /// first of them; or until an event that waited behind its key was handed over. Never resolves
    /// if nothing waits.
    ///
    /// # Cancel safety
    /// A dropped future has lost nothing.
    pub(crate) async fn hand_one_over(&mut self) {
        let Self { shared, pools, beside, freed, behind, .. } = self;
        let mut freed: Vec<BoxFuture<'_, ()>> = freed
            .iter_mut()
            .enumerate()
            .filter(|(place, _)| !beside[*place].waiting.aside.is_empty())
            .filter_map(|(_, freed)| freed.as_mut())
            .map(|freed| Box::pin(async move { drop(freed.changed().await) }) as BoxFuture<'_, _>)
            .collect();
        let wants_room = |place: &&usize| beside[**place].waiting.wants_room();
        let mut rooms: Vec<(usize, BoxFuture<'_, PoolRoom>)> = behind
            .iter()
            .filter(wants_room)
            .map(|place| (*place, Box::pin(pools[*place].reserve()) as BoxFuture<'_, _>))
            .collect();
        let room = poll_fn(|task| {
            let ready =
                |(place, room): &mut (usize, BoxFuture<'_, _>)| match room.as_mut().poll(task) {
                    Poll::Ready(room) => Some((*place, room)),
                    Poll::Pending => None,
                };
            if let Some(room) = rooms.iter_mut().find_map(ready) {
                return Poll::Ready(Some(room));
            }
            // All of them, even after one has moved: each registers this task to be woken.
            let mut moved = false;
            for place in behind.iter() {
                moved |= beside[*place].waiting.advance(shared, &pools[*place], task);
            }
            // The caller then feeds the events that have room.
            moved |= freed.iter_mut().any(|freed| freed.as_mut().poll(task).is_ready());
            if moved { Poll::Ready(None) } else { Poll::Pending }
        });
        if let Some((place, room)) = room.await {
            beside[place].waiting.hand_over(shared, &pools[place], room);
        }
    }
}

/// Room for one event in a pool, or why there will be none any more.
type PoolRoom = Result<Permit<PoolJob, (), BusError>, NotAccepted>;

/// The events that wait for one pool.
#[derive(Default)]
struct PoolOverflow {
    /// Wait for room in the pool. None of them is in a line of `behind`.
    queue: Rotation<PoolJob>,
    /// For room behind a key, by the line that they stand in.
    behind: HashMap<OrderLine, Behind>,
    /// For room of their share. None that is in `queue` or `behind` comes after one of them in its
    /// line.
    aside: Aside,
}

/// The events that wait for room behind one key.
struct Behind {
    /// The assignment of the first.
    assigned: u32,
    /// The first is being sent. Polled with the intake's waker whenever
    /// that has nothing else to do.
    first: BoxFuture<'static, Result<(), SendError<PoolJob>>>,
    rest: VecDeque<PoolJob>,
}

/// The consequence for an event that a pool does not take.
enum Then {
    /// It waits for room in the pool.
    Waits,
    /// It waits for room behind its key.
    WaitsBehindKey,
    /// It is refused: its source may deliver it again.
    Refused,
    /// The pool takes nothing any more.
    Gone,
}

impl Then {
    fn from_refusal(why: NotAccepted) -> Self {
        match why {
            NotAccepted::Full => Self::Waits,
            NotAccepted::KeyFull => Self::WaitsBehindKey,
            NotAccepted::Parked => Self::Refused,
            _ => Self::Gone,
        }
    }
}

impl PoolOverflow {
    fn len(&self) -> usize {
        let behind = self.behind.values().map(|behind| 1 + behind.rest.len()).sum::<usize>();
        self.queue.len() + behind + self.aside.len()
    }

    fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.behind.is_empty() && self.aside.is_empty()
    }

    fn each(&self, each: &mut impl FnMut(u32)) {
        self.queue.iter().chain(self.aside.iter()).for_each(|job| each(job.origin.assigned));
        for behind in self.behind.values() {
            each(behind.assigned);
            behind.rest.iter().for_each(|job| each(job.origin.assigned));
        }
    }

    fn give_up(&mut self, shared: &Shared, pool: &JobAddress, is_revoked: &dyn Fn(u32) -> bool) {
        self.queue.retain(|job| !is_revoked(job.origin.assigned));
        self.behind.retain(|_, behind| {
            behind.rest.retain(|job| !is_revoked(job.origin.assigned));
            !is_revoked(behind.assigned) || behind.goes_on(shared, pool)
        });
    }

    /// True if events wait for room in the pool.
    fn wants_room(&self) -> bool {
        !self.queue.is_empty()
    }

    fn push(&mut self, rooms: Option<&Arc<ShareRooms>>, job: PoolJob, turn: Option<u32>) {
        let job = match rooms {
            Some(rooms) => self.aside.keep(rooms, job, turn),
            None => Some(job),
        };
        if let Some(job) = job {
            self.line_up(job, turn);
        }
    }

    /// In the turn of its partition; without one, behind all that waits.
    fn line_up(&mut self, job: PoolJob, turn: Option<u32>) {
        let behind = job.line.as_ref().and_then(|line| self.behind.get_mut(line));
        match (behind, turn) {
            (Some(behind), _) => behind.rest.push_back(job),
            (None, Some(partition)) => self.queue.push_in_turn(partition, job),
            (None, None) => self.queue.push_last(job),
        }
    }

    /// Hands over as many events as there is room for.
    fn feed(&mut self, shared: &Shared, rooms: Option<&Arc<ShareRooms>>, pool: &JobAddress) {
        if let Some(rooms) = rooms.filter(|_| !self.aside.is_empty()) {
            while let Some((job, turn)) = self.aside.next(rooms) {
                self.line_up(job, turn);
            }
        }
        self.advance(shared, pool, &mut Context::from_waker(Waker::noop()));
        while !self.queue.is_empty() {
            let Err(why) = pool.try_send_many(self.queue.front()) else { continue };
            match Then::from_refusal(why) {
                Then::Waits => return,
                Then::WaitsBehindKey => self.set_first_aside(pool),
                Then::Refused => {
                    self.queue.front().pop_front().into_iter().for_each(|job| refuse(shared, job))
                }
                Then::Gone => self.queue.drain().for_each(|job| gone(shared, why, job)),
            }
        }
    }

    /// Hands over events that wait behind their keys, as far as there is room. True if any was;
    /// otherwise the task is woken when there is room.
    fn advance(&mut self, shared: &Shared, pool: &JobAddress, task: &mut Context<'_>) -> bool {
        let mut moved = false;
        self.behind.retain(|_, behind| behind.advance(shared, pool, task, &mut moved));
        moved
    }

    /// Hands over the first waiting event, in the room that was reserved for it. The room must be
    /// used: if returned, it would go to another input that waits for it, and from there back, for
    /// ever.
    fn hand_over(&mut self, shared: &Shared, pool: &JobAddress, room: PoolRoom) {
        let Some(job) = self.queue.front().pop_front() else { return };
        let sent = match room {
            Ok(permit) => permit.send(job),
            Err(why) => return gone(shared, why, job),
        };
        let Err(error) = sent else { return };
        let why = error.without_message();
        let Some(job) = error.into_message() else { return };
        match Then::from_refusal(why) {
            Then::Waits => self.queue.front().push_front(job),
            Then::WaitsBehindKey => {
                self.queue.front().push_front(job);
                self.set_first_aside(pool);
            }
            Then::Refused => refuse(shared, job),
            Then::Gone => gone(shared, why, job),
        }
    }

    /// The first, and those after it in its line, wait behind their key from here on.
    fn set_first_aside(&mut self, pool: &JobAddress) {
        let Some(first) = self.queue.front().pop_front() else { return };
        let Some(line) = first.line.clone() else { return };
        let rest = self.queue.take_all(|job| job.line.as_ref() == Some(&line));
        let assigned = first.origin.assigned;
        self.behind.insert(line, Behind { assigned, first: sent(pool, first), rest });
    }
}

impl Behind {
    /// True while some are left.
    fn advance(
        &mut self,
        shared: &Shared,
        pool: &JobAddress,
        task: &mut Context<'_>,
        moved: &mut bool,
    ) -> bool {
        while let Poll::Ready(sent) = self.first.as_mut().poll(task) {
            *moved = true;
            if let Err(error) = sent {
                not_sent(shared, error);
            }
            if !self.goes_on(shared, pool) {
                return false;
            }
        }
        true
    }

    /// The first is done: the next takes its place. False if there is none.
    fn goes_on(&mut self, shared: &Shared, pool: &JobAddress) -> bool {
        let Some(next) = self.next(shared, pool) else { return false };
        (self.assigned, self.first) = (next.origin.assigned, sent(pool, next));
        true
    }

    /// The first that there is no room for now. Those before it are sent.
    fn next(&mut self, shared: &Shared, pool: &JobAddress) -> Option<PoolJob> {
        while let Some(job) = self.rest.pop_front() {
            match pool.try_send(job) {
                Ok(()) => {}
                Err(TrySendError::Full(job) | TrySendError::KeyFull(job)) => return Some(job),
                Err(error) => not_sent(shared, error),
            }
        }
        None
    }
}

fn sent(pool: &JobAddress, job: PoolJob) -> BoxFuture<'static, Result<(), SendError<PoolJob>>> {
    let pool = pool.clone();
    Box::pin(async move { pool.send(job).await })
}

/// An event that a pool does not take, nor will: it is refused, by being dropped, or a dead letter.
fn not_sent(shared: &Shared, error: SendError<PoolJob>) {
    let why = error.without_message();
    if let Some(job) = error.into_message() {
        gone(shared, why, job);
    }
}

/// An event comes behind a parked key that may have no more: its source may deliver it again.
fn refuse(shared: &Shared, job: PoolJob) {
    shared.process.parked.refuses();
    drop(job);
}

/// A pool takes nothing any more: the event is a dead letter when its workers are
/// gone, and refused by a stop.
pub(crate) fn gone(shared: &Shared, why: NotAccepted, job: PoolJob) {
    if why == NotAccepted::Parked {
        return refuse(shared, job);
    }
    if why == NotAccepted::NoWorkers {
        let error = "every worker of its pool was disabled after too many restarts";
        shared.give_up(job, Reason::NoWorkers, error.to_owned());
    }
}
