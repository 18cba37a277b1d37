//! A core with what the product's `take`, `place` and `park` need of it. What senders do and how a pool ends is played
//! here, step by step as in the product's `core.rs` and `core/close.rs`; no decision of theirs is left out that other
//! threads could see.

use std::{hash::Hash, sync::Arc, time::Duration};

use super::{
    bell::Bell,
    entry::Entry,
    lanes::LaneId,
    mailbox::Mailbox,
    parcel::ParcelOf,
    permits::{Closed, Permits, Queues, Refused},
    seat::Seat,
    seats::Seats,
    shard::{Outbox, Shard, Turns},
    stamp::Stamp,
    tally::PoolTally,
    wake::Wake,
};
use crate::{
    Actor, Class, ExitReason,
    life::Signal,
    sync::{AtomicBool, Handle, Mutex, Ordering},
};

#[path = "../../crates/greenroom/src/pool/core/park.rs"]
mod park;
#[path = "../../crates/greenroom/src/pool/core/place.rs"]
mod place;
#[path = "../../crates/greenroom/src/pool/core/take.rs"]
pub(crate) mod take;

pub(crate) type Queued<A, K> =
    Entry<<A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error, K>;

pub(crate) type ShardOf<A, K> =
    Shard<<A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error, K>;

pub(crate) type OutboxOf<A, K> =
    Outbox<<A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error, K>;

pub(crate) struct Core<A: Actor, K> {
    pub(crate) shards: Box<[ShardOf<A, K>]>,
    pub(crate) permits: Permits,
    pub(crate) wake: Wake,
    pub(crate) clock: Clock<A, K>,
    pub(crate) tally: PoolTally,
    pub(crate) coarse: Coarse,
    ruined: AtomicBool,
    pub(crate) closing: AtomicBool,
    pub(crate) ended: AtomicBool,
    pub(crate) runtime: Handle,
    pub(crate) seats: Seats<Arc<Seat>>,
    pub(crate) desks: Seats<Desk<A, K>>,
    pub(crate) settings: Settings,
}

/// Where the mailbox of a worker is, once there is one.
type Desk<A, K> = Mutex<Option<Arc<Mailbox<A, K>>>>;

/// What of the product's settings is looked at.
pub(crate) struct Settings {
    /// The bound of a worker's own mailbox.
    pub(crate) mailbox: usize,
    keyed: bool,
    calls: bool,
}

/// A clock that stands still.
pub(crate) struct Coarse;

impl Coarse {
    pub(crate) fn set(&self) {}
}

/// What is parked, until the model lets it come due.
pub(crate) struct Clock<A: Actor, K> {
    pub(crate) bell: Bell,
    pub(crate) lanes: Mutex<Vec<(usize, LaneId)>>,
    pub(crate) messages: Mutex<Vec<(usize, Queued<A, K>)>>,
    pub(crate) mail: Mutex<Vec<(usize, Queued<A, K>)>>,
}

impl<A: Actor, K> Clock<A, K> {
    pub(crate) fn park_lane(&self, index: usize, id: LaneId, _after: Duration) {
        self.lanes.lock().push((index, id));
    }

    pub(crate) fn park_message(&self, index: usize, entry: Queued<A, K>, _after: Duration) {
        self.messages.lock().push((index, entry));
    }

    pub(crate) fn park_mail(&self, slot: usize, entry: Queued<A, K>, _after: Duration) {
        self.mail.lock().push((slot, entry));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lanes.lock().is_empty()
            && self.messages.lock().is_empty()
            && self.mail.lock().is_empty()
    }
}

/// What a pool is tried with.
pub(crate) struct Plan {
    pub(crate) workers: usize,
    pub(crate) shards: usize,
    pub(crate) capacity: usize,
    /// Workers that may be awake at once.
    pub(crate) awake: usize,
    pub(crate) keyed: bool,
    /// Hashes that keys have. Where they are fewer than keys, keys have to be compared.
    pub(crate) hashes: u32,
    /// Handlers are quick.
    pub(crate) quick: bool,
    /// Senders wait for replies, and may do a worker's work.
    pub(crate) calls: bool,
}

/// As in the product, for so small a pool.
const CREDIT: u64 = 1;

/// The bound of a worker's own mailbox.
const MAILBOX: usize = 1;

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    pub(crate) fn tell_pace(&self, each: Duration) {
        self.wake.tell_pace(each);
    }

    pub(crate) fn new(plan: &Plan) -> Self {
        let bell = Bell::silent();
        let (lanes, messages) = (Mutex::default(), Mutex::new(Vec::new()));
        let mail = Mutex::new(Vec::new());
        let wake = Wake::new(plan.workers, plan.awake);
        if plan.quick {
            wake.tell_pace(Duration::ZERO);
        }
        Self {
            shards: (0..plan.shards).map(|_| Shard::new(Turns::OF_A_SENDER)).collect(),
            permits: Permits::new(plan.capacity),
            wake,
            clock: Clock { bell, lanes, messages, mail },
            tally: PoolTally::default(),
            coarse: Coarse,
            ruined: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            runtime: Handle,
            seats: Seats::new(plan.workers),
            desks: Seats::new(plan.workers),
            settings: Settings { mailbox: MAILBOX, keyed: plan.keyed, calls: plan.calls },
        }
    }

    fn keyed(&self) -> bool {
        self.settings.keyed
    }

    /// The product's, without sticky keys.
    fn park_mail(&self, slot: usize, entry: Queued<A, K>, after: Duration) {
        self.clock.park_mail(slot, entry, after);
    }

    fn bury_queued(&self) {
        unreachable!("no model loses its last worker");
    }

    /// The product's `take_and_push`, `search_and_push` and `give_credit`.
    pub(crate) fn take_and_push(
        &self,
        index: usize,
        parcel: &mut ParcelOf<A>,
        key: (Option<K>, u32),
    ) -> Result<(), Refused> {
        let mut inbox = self.shards[index].inbox.lock();
        if inbox.credit == 0 && !inbox.closed {
            inbox.credit = self.permits.take_known(CREDIT);
        }
        if inbox.credit == 0 {
            drop(inbox);
            let taken = self.permits.try_take(CREDIT, self)?;
            self.push(index, parcel, key).map_err(|Closed| Refused::Closed)?;
            self.give_credit(index, taken - 1);
            return Ok(());
        }
        inbox.credit -= 1;
        let first = inbox.push(parcel, key, |number| self.stamp(number));
        if parcel.class == Class::Urgent {
            self.wake.urge(index);
        }
        let invited = std::mem::take(&mut inbox.invite);
        drop(inbox);
        if first && self.settings.calls && self.wake.is_quick() {
            self.announce_in_place(index);
        } else if first {
            self.announce(index);
        } else if invited {
            self.wake.invite(index, &self.clock.bell);
        }
        Ok(())
    }

    pub(crate) fn give_credit(&self, index: usize, permits: u64) {
        if permits == 0 {
            return;
        }
        let mut inbox = self.shards[index].inbox.lock();
        if inbox.closed || self.permits.is_starved() {
            drop(inbox);
            return self.permits.give(permits, self);
        }
        inbox.credit += permits;
    }

    pub(crate) fn push(
        &self,
        index: usize,
        parcel: &mut ParcelOf<A>,
        key: (Option<K>, u32),
    ) -> Result<(), Closed> {
        let mut inbox = self.shards[index].inbox.lock();
        if inbox.closed {
            return Err(Closed);
        }
        let first = inbox.push(parcel, key, |number| self.stamp(number));
        if parcel.class == Class::Urgent {
            self.wake.urge(index);
        }
        drop(inbox);
        if first {
            self.announce(index);
        }
        Ok(())
    }

    pub(crate) fn stamp(&self, _number: u64) -> Stamp {
        Stamp::default()
    }

    pub(crate) fn serve_waiters(&self) {
        if self.permits.is_starved() {
            self.permits.grant(self);
        }
    }

    pub(crate) fn announce(&self, index: usize) {
        self.wake.mark(index);
        if self.keyed() {
            self.wake.one(&self.clock.bell);
        } else {
            self.wake.one_for(index, &self.clock.bell);
        }
    }

    /// The product's, where somebody else polls the worker; what becomes of it otherwise is tried in `in_place.rs`.
    fn announce_in_place(&self, index: usize) {
        self.wake.mark(index);
        let shard = (!self.keyed()).then_some(index);
        if let Some(worker) = self.wake.pick_for(shard, &self.clock.bell) {
            self.wake.rouse(worker);
        }
    }

    /// Without the gate: no model loses its last worker.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
        let room = self.permits.refuse_later();
        self.shut();
        room.close();
        self.desks.iter().filter_map(|desk| desk.lock().clone()).for_each(|mailbox| mailbox.shut());
    }

    fn shut(&self) {
        for shard in &self.shards {
            let mut inbox = shard.inbox.lock();
            inbox.closed = true;
            let unused = std::mem::take(&mut inbox.credit);
            drop(inbox);
            self.permits.return_unused(unused);
        }
    }

    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        self.wake.all();
    }

    /// The product's `signal_worker`, for signals that do not kill.
    pub(crate) fn signal_worker(&self, mailbox: &Mailbox<A, K>, signal: Signal) {
        mailbox.push_signal(signal);
        self.wake.call(mailbox.slot, &self.clock.bell);
    }

    pub(crate) fn end_of_worker(
        self: &Arc<Self>,
        mailbox: &Arc<Mailbox<A, K>>,
        reason: &ExitReason,
    ) {
        mailbox.life().end(reason);
    }
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Queues for Core<A, K> {
    fn started(&self) -> u64 {
        self.seats.iter().map(|seat| seat.started.load(Ordering::Relaxed)).sum()
    }

    fn reclaim(&self) -> u64 {
        self.shards.iter().map(|shard| std::mem::take(&mut shard.inbox.lock().credit)).sum()
    }
}
