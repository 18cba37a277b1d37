//! A core with what the product's files of it need: how messages are pushed, taken, parked, swept
//! and drained, and how a pool shuts, opens and ends. How a worker goes is played, step by step as
//! in the product's `frame/members.rs`; no decision of it is left out that other threads could see.

use std::{sync::Arc, time::Duration};

use greenroom_queue::{
    backlog::KeyBounds,
    entry::Hashed,
    key_lines::KeyLines,
    per_slot::PerSlot,
    permits::{Permits, Queues},
    queue::WorkQueue,
    stamp::Stamp,
    sync::{AtomicUsize, Handle, Mutex, Ordering},
    wake::Wake,
};

use super::{
    frame::{
        AnyCore, Clock, Coarse, Env, Frame, Full, Membership, Telemetry, end,
        gate::{self, dead_letter_deserted, one_less, revive, settle_if_over, settle_what_is_left},
    },
    left_over::LeftOver,
    lifecycle::{Acceptance, Lifecycle},
    membership::{mailbox::Mailbox, slot_state::LEAVE, starts::Starts},
    outgoing::LendOutgoing,
    pool_payload::{Entries, InboxGuard, Key, OutboxOf, PayloadOf, Queued, ShardOf},
    stats::counters::PoolCounters,
};
use crate::{
    Actor, AnyAddress, Class, DeadLetter, ExitReason, PoolEvent,
    delivery::{Delivery, Extra},
    life::Signal,
};

#[path = "../../crates/greenroom/src/pool/core/backlog.rs"]
mod backlog;
#[path = "../../crates/greenroom/src/pool/core/drain.rs"]
mod drain;
#[path = "../../crates/greenroom/src/pool/core/mail.rs"]
mod mail;
#[path = "../../crates/greenroom/src/pool/core/park.rs"]
mod park;
#[path = "../../crates/greenroom/src/pool/core/parked.rs"]
mod parked;
#[path = "../../crates/greenroom/src/pool/core/place.rs"]
mod place;
#[path = "../../crates/greenroom/src/pool/core/push.rs"]
mod push;
#[path = "../../crates/greenroom/src/pool/core/room.rs"]
mod room;
mod shares;
#[path = "../../crates/greenroom/src/pool/core/shut.rs"]
mod shut;
#[path = "../../crates/greenroom/src/pool/core/sweep.rs"]
pub(crate) mod sweep;
#[path = "../../crates/greenroom/src/pool/core/take/mod.rs"]
pub(crate) mod take;
#[path = "../../crates/greenroom/src/pool/core/waiters.rs"]
mod waiters;

pub(crate) type ExtraOf<A> = Extra<<A as Actor>::Reply, <A as Actor>::Error>;

pub(crate) struct Core<A: Actor, K> {
    pub(crate) settings: Settings<A, K>,
    pub(crate) queue: WorkQueue<PayloadOf<A>, K>,
    pub(crate) routing: Routing<A, K>,
    /// Messages that were handed to workers which have not come for them. Where one lies, and how
    /// its worker takes it, is tried in `handoff.rs`.
    pub(crate) handed: Mutex<Entries<A, K>>,
    pub(crate) desks: PerSlot<Desk<A, K>>,
    /// Messages that are dead letters.
    pub(crate) letters: Mutex<Vec<A::Message>>,
    pub(crate) left_over: LeftOver<A::Message, A::Reply, A::Error>,
    sharing: Option<shares::Sharing>,
    pub(crate) frame: Frame,
}

/// The parts of a core, as far as they are looked at.
pub(crate) struct Routing<A: Actor, K> {
    /// No key sticks to a worker here.
    sticky: Option<Sticky>,
    /// No policy chooses, so no message waits for its choice.
    held: Mutex<Entries<A, K>>,
    key_lines: KeyLines,
    max_per_key: AtomicUsize,
    hash_of: fn(&K) -> u32,
    /// So many hashes are told apart.
    hashes: u32,
}

/// The owners of keys.
struct Sticky {
    moves: Mutex<()>,
}

impl<A: Actor, K> Routing<A, K> {
    pub(crate) fn hash(&self, key: &K) -> u32 {
        (self.hash_of)(key) % self.hashes
    }
}

/// What a worker has of its own, as far as it is looked at: its mailbox, once there is one.
pub(crate) struct Desk<A: Actor, K> {
    pub(crate) mailbox: Mutex<Option<Arc<Mailbox<A, K>>>>,
}

impl<A: Actor, K> Default for Desk<A, K> {
    fn default() -> Self {
        Self { mailbox: Mutex::default() }
    }
}

/// The groups of the product's settings, as far as they are looked at.
pub(crate) struct PoolConfig {
    pub(crate) name: Arc<str>,
    pub(crate) size: SizeConfig,
    keys: KeyConfig,
}

pub(crate) struct SizeConfig {
    /// The bound of a worker's own mailbox.
    mailbox: usize,
    /// A pool without workers refuses messages.
    pub(crate) holds_when_empty: bool,
}

struct KeyConfig {
    key_required: bool,
}

pub(crate) struct Derived {
    /// Nothing is handed past the queues.
    pub(crate) uses_handoff: bool,
    key_bounds: KeyBounds,
    /// No capacity changes here.
    key_share: Option<usize>,
    /// No bytes are counted here.
    bytes: Option<Bytes>,
}

enum Bytes {}

impl Bytes {
    fn close(&self) {
        match *self {}
    }
}

pub(crate) struct Functions {
    pub(crate) overflow: Overflow,
}

/// Every sender waits.
pub(crate) struct Overflow;

impl Overflow {
    #[expect(clippy::unused_self, reason = "as in the product")]
    pub(crate) fn waits(&self) -> bool {
        true
    }
}

/// What of the product's settings is looked at.
pub(crate) struct Settings<A: Actor, K> {
    pub(crate) derived: Derived,
    keyed: bool,
    pub(crate) functions: Functions,
    key_of: fn(&A::Message) -> Option<K>,
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
    /// How many may wait behind a key.
    pub(crate) bounds: KeyBounds,
    /// Permits that a shard takes at once; one in the product, in so small a pool.
    pub(crate) credit: u64,
}

/// The bound of a worker's own mailbox.
const MAILBOX: usize = 1;

impl<A: Actor, K: Key> Core<A, K> {
    pub(crate) fn close(&self) {
        gate::close(self);
    }

    pub(crate) fn end(&self) {
        end::end(self);
    }

    pub(crate) async fn over(&self, slot: usize) {
        end::over(self, slot).await;
    }

    pub(crate) fn notify_key_parked(&self) {
        self.frame.notify(PoolEvent::KeyParked);
    }

    /// The pace of handlers is the plan's.
    #[expect(clippy::unused_self, reason = "as in the product")]
    pub(crate) fn note_pace(&self, _each: Duration) {}

    /// The clock stands still.
    #[expect(clippy::unused_self, reason = "as in the product")]
    pub(crate) fn note_time(&self) {}

    pub(crate) fn wait_usually(&self, waits: bool) {
        self.queue.wake.set_waits(waits);
    }

    /// The product's, of any worker: what it was handed and does not take goes to others.
    pub(crate) fn take_back_handed(&self, _worker: usize) {
        let handed = self.handed.lock().pop_front();
        if let Some(entry) = handed {
            self.re_home(Entries::<A, K>::only(entry));
            settle_if_over(self);
        }
    }

    /// All of them: so many are wanted here.
    fn take_handed(&self, _most: usize) -> Entries<A, K> {
        std::mem::take(&mut *self.handed.lock())
    }

    /// No key sticks to a worker here.
    #[expect(clippy::unused_self, reason = "as in the product")]
    pub(crate) fn hand_over(&self, _worker: usize) {}

    pub(crate) fn new(
        plan: &Plan,
        key_of: fn(&A::Message) -> Option<K>,
        hash_of: fn(&K) -> u32,
    ) -> Self {
        let (bounds, capacity) = (plan.bounds, plan.capacity);
        let queue =
            WorkQueue::new(plan.shards, plan.keyed, bounds, capacity, plan.workers, plan.awake);
        queue.credit.store(plan.credit, Ordering::Relaxed);
        if plan.quick {
            queue.wake.note_pace(Duration::ZERO);
        }
        Self {
            queue,
            routing: Routing {
                sticky: None,
                held: Mutex::default(),
                key_lines: KeyLines::default(),
                max_per_key: AtomicUsize::new(plan.bounds.waiting),
                hash_of,
                hashes: plan.hashes,
            },
            handed: Mutex::default(),
            desks: PerSlot::new(plan.workers),
            letters: Mutex::new(Vec::new()),
            left_over: LeftOver::new(),
            sharing: None,
            frame: Frame {
                config: PoolConfig {
                    name: "model".into(),
                    size: SizeConfig { mailbox: MAILBOX, holds_when_empty: false },
                    keys: KeyConfig { key_required: false },
                },
                membership: Membership {
                    slots: PerSlot::new(plan.workers),
                    live: AtomicUsize::new(plan.workers),
                    starts: Starts::default(),
                },
                lifecycle: Lifecycle::new(),
                clock: Clock::new(),
                telemetry: Telemetry {
                    counters: PoolCounters::default(),
                    coarse: Coarse,
                    full: Full,
                },
                env: Env { runtime: Handle },
            },
            settings: Settings {
                derived: Derived {
                    uses_handoff: false,
                    key_bounds: plan.bounds,
                    key_share: None,
                    bytes: None,
                },
                keyed: plan.keyed,
                functions: Functions { overflow: Overflow },
                key_of,
            },
        }
    }

    pub(crate) fn desk(&self, slot: usize) -> &Desk<A, K> {
        self.desks.at(slot)
    }

    pub(crate) fn keyed(&self) -> bool {
        self.settings.keyed
    }

    /// The product's, without sticky keys.
    fn park_mail(&self, slot: usize, entry: Queued<A, K>, after: Duration) {
        self.frame.clock.park_mail(slot, entry, after);
    }

    pub(crate) fn key(
        &self,
        payload: &impl LendOutgoing<A::Message, A::Reply, A::Error>,
    ) -> Hashed<K> {
        if !self.keyed() {
            return (None, 0);
        }
        let key = payload.message().and_then(self.settings.key_of);
        let hash = key.as_ref().map_or(0, |key| self.routing.hash(key));
        (key, hash)
    }

    /// The one that the model names, also with keys.
    fn shard_of(&self, _key: &Hashed<K>, sender: u32) -> usize {
        sender as usize & (self.queue.shards.len() - 1)
    }

    /// The clock does not stand still for anybody.
    #[expect(clippy::unused_self, reason = "as in the product")]
    fn is_timely(&self) -> bool {
        true
    }

    #[expect(clippy::unused_self, reason = "as in the product")]
    fn is_late(&self) -> bool {
        false
    }

    pub(crate) fn stamp(&self, _number: u64) -> Stamp {
        Stamp::default()
    }

    #[expect(clippy::unused_self, reason = "as in the product")]
    fn delivery_of(&self, entry: Queued<A, K>) -> Delivery<A::Message, A::Reply, A::Error> {
        let Queued::<A, K> { message, extra, stamp, .. } = entry;
        Delivery { message: Some(message), extra, class: Class::Normal, stamp }
    }

    pub(crate) fn age_of(&self, _entry: &Queued<A, K>) -> Option<Duration> {
        None
    }

    pub(crate) fn report_dead_letter(&self, letter: DeadLetter<A::Message, A::Error>) {
        self.letters.lock().extend(letter.message);
    }

    /// Messages that a key may have more, where they are counted; none where somebody waits.
    pub(crate) fn room_behind(&self, index: usize, hash: u32) -> Option<usize> {
        let mut outbox = self.queue.shards[index].outbox.lock();
        let backlog = outbox.backlog.as_mut()?;
        let admitted = (0..1_000).take_while(|_| backlog.admit(hash, false).is_ok());
        Some(admitted.count())
    }

    /// No choice comes back to the pool.
    fn is_withdrawing_here(&self) -> bool {
        false
    }

    /// Nothing is handed past the queues here: that is tried in `handoff.rs`.
    fn take_back_what_is_left(&self) -> u64 {
        0
    }

    /// The product's `hire`, of one worker, whose slot is there.
    pub(crate) fn hire(&self) {
        self.frame.membership.live.fetch_add(1, Ordering::SeqCst);
        self.serve_waiters();
        revive(self);
    }

    /// The product's: the worker of a slot has ended, and is not started again.
    pub(crate) fn disable(self: &Arc<Self>, slot: usize, reason: &ExitReason) {
        if let Some(taken) = self.take_mailbox(slot) {
            self.clear_mailbox(taken, reason);
        }
        if one_less(&**self) {
            dead_letter_deserted(&**self);
        }
    }

    /// The product's `let_leave`: a worker is told to leave.
    pub(crate) fn let_leave(&self, slot: usize) {
        self.frame.membership.slots.at(slot).order(LEAVE);
        one_less(self);
        self.queue.wake.call(slot, &self.frame.clock.watchdog);
        self.frame.lifecycle.over.notify_waiters();
    }

    /// The product's: a worker that was told to leave has gone.
    pub(crate) fn left(self: &Arc<Self>, slot: usize, reason: &ExitReason) {
        self.frame.membership.slots.at(slot).forget_orders();
        if let Some(taken) = self.take_mailbox(slot) {
            self.clear_mailbox(taken, reason);
        }
        settle_what_is_left(&**self, false);
    }

    /// The product's `signal_worker`, for signals that do not kill.
    pub(crate) fn signal_worker(&self, mailbox: &Mailbox<A, K>, signal: Signal<AnyAddress>) {
        mailbox.push_signal(signal);
        self.queue.wake.call(mailbox.slot, &self.frame.clock.watchdog);
    }

    pub(crate) fn end_of_worker(
        self: &Arc<Self>,
        mailbox: &Arc<Mailbox<A, K>>,
        reason: &ExitReason,
    ) {
        mailbox.life().end(reason);
    }
}

impl<A: Actor, K: Key> AnyCore for Core<A, K> {
    fn frame(&self) -> &Frame {
        &self.frame
    }

    fn permits(&self) -> &Permits {
        &self.queue.permits
    }

    fn wake(&self) -> &Wake {
        &self.queue.wake
    }

    fn set_shut(&self, shut: bool) {
        self.set_shards_shut(shut);
    }

    fn tell_shut(&self, for_good: bool) {
        Self::tell_shut(self, for_good);
    }

    fn dead_letter_queued(&self) {
        Self::dead_letter_queued(self);
    }

    fn give_back_queued(&self) {
        Self::give_back_queued(self);
    }
}

impl<A: Actor, K: Key> Queues for Core<A, K> {
    fn started(&self) -> u64 {
        self.frame
            .membership
            .slots
            .iter()
            .map(|slot_state| slot_state.started.load(Ordering::Relaxed))
            .sum()
    }

    fn reclaim(&self) -> u64 {
        self.queue.credit_map.reclaim(|shard| self.queue.shards[shard].inbox.lock().take_credit())
    }
}
