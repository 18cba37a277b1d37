//! A core with what the product's files of it need: how messages are pushed, taken, parked, swept
//! and drained, and how a pool shuts, opens and ends. How a worker goes is played, step by step as
//! in the product's `core/members.rs`; no decision of it is left out that other threads could see.

use std::{collections::VecDeque, hash::Hash, sync::Arc, time::Duration};

use greenroom_queue::{
    backlog::KeyBounds,
    entry::Hashed,
    key_lines::KeyLines,
    lanes::LaneId,
    per_slot::PerSlot,
    permits::Queues,
    queue::WorkQueue,
    stamp::Stamp,
    sync::{AtomicUsize, Handle, Mutex, Ordering},
    watchdog_handle::WatchdogHandle,
};

use super::{
    lifecycle::{Acceptance, Lifecycle},
    membership::{
        mailbox::Mailbox,
        slot_state::{LEAVE, SlotState},
        starts::Starts,
    },
    outgoing::LendOutgoing,
    pool_payload::{InboxGuard, OutboxOf, PayloadOf, Queued, ShardOf},
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
#[path = "../../crates/greenroom/src/pool/core/end.rs"]
mod end;
#[path = "../../crates/greenroom/src/pool/core/gate.rs"]
mod gate;
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
    pub(crate) handed: Mutex<Vec<Queued<A, K>>>,
    pub(crate) membership: Membership<A, K>,
    pub(crate) lifecycle: Lifecycle<A>,
    pub(crate) clock: Clock<A, K>,
    pub(crate) telemetry: Telemetry,
    /// Messages that are dead letters.
    pub(crate) letters: Mutex<Vec<A::Message>>,
    pub(crate) env: Env,
}

/// The parts of a core, as far as they are looked at.
pub(crate) struct Routing<A: Actor, K> {
    /// No key sticks to a worker here.
    sticky: Option<Sticky>,
    /// No policy chooses, so no message waits for its choice.
    held: Mutex<VecDeque<Queued<A, K>>>,
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

pub(crate) struct Membership<A: Actor, K> {
    pub(crate) slots: PerSlot<Arc<SlotState>>,
    pub(crate) mailboxes: PerSlot<MailboxCell<A, K>>,
    pub(crate) live: AtomicUsize,
    pub(crate) starts: Starts,
}

pub(crate) struct Telemetry {
    pub(crate) counters: PoolCounters,
    pub(crate) coarse: Coarse,
    pub(crate) full: Full,
}

pub(crate) struct Env {
    pub(crate) runtime: Handle,
}

/// Where the mailbox of a worker is, once there is one.
type MailboxCell<A, K> = Mutex<Option<Arc<Mailbox<A, K>>>>;

/// The groups of the product's settings, as far as they are looked at.
pub(crate) struct PoolConfig {
    name: Arc<str>,
    size: SizeConfig,
    keys: KeyConfig,
}

struct SizeConfig {
    /// The bound of a worker's own mailbox.
    mailbox: usize,
    /// A pool without workers refuses messages.
    holds_when_empty: bool,
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
    pub(crate) config: PoolConfig,
    pub(crate) derived: Derived,
    keyed: bool,
    pub(crate) functions: Functions,
    key_of: fn(&A::Message) -> Option<K>,
}

impl<A: Actor, K> Settings<A, K> {
    /// No pool has limits here.
    #[expect(clippy::unused_self, reason = "as in the product")]
    pub(crate) fn is_limited(&self) -> bool {
        false
    }
}

/// Nobody listens for a full pool.
pub(crate) struct Full;

impl Full {
    #[expect(clippy::unused_self, reason = "as in the product")]
    pub(crate) fn is_full(&self) -> bool {
        false
    }
}

/// A clock that stands still, and that the watchdog looks after.
pub(crate) struct Coarse;

impl Coarse {
    pub(crate) fn set(&self) {}

    pub(crate) fn shown(&self) -> u64 {
        0
    }

    pub(crate) fn real(&self) -> u64 {
        0
    }

    fn stamp(&self, _number: u64, _is_late: bool) -> Stamp {
        Stamp::default()
    }

    pub(crate) fn is_watched(&self) -> bool {
        true
    }

    fn coarse_stamp(&self) -> Stamp {
        Stamp::default()
    }

    /// No message is measured.
    fn unmeasured_from(&self, _number: u64) -> u64 {
        u64::MAX
    }
}

/// What is parked, until the model lets it come due.
pub(crate) struct Clock<A: Actor, K> {
    pub(crate) watchdog: WatchdogHandle,
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

    pub(crate) fn forget_lane(&self, index: usize, id: LaneId) {
        self.lanes.lock().retain(|lane| *lane != (index, id));
    }

    /// The model looks by itself whether the pool has ended.
    #[expect(clippy::unused_self, reason = "as in the product")]
    fn notify(&self) {}

    #[expect(clippy::extra_unused_type_parameters, reason = "as in the product")]
    fn drain<B, L>(&self) -> Vec<Queued<A, K>> {
        self.lanes.lock().clear();
        let parked = [&self.messages, &self.mail].map(|parked| std::mem::take(&mut *parked.lock()));
        parked.into_iter().flatten().map(|(_, entry)| entry).collect()
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
    /// How many may wait behind a key.
    pub(crate) bounds: KeyBounds,
    /// Permits that a shard takes at once; one in the product, in so small a pool.
    pub(crate) credit: u64,
}

/// The bound of a worker's own mailbox.
const MAILBOX: usize = 1;

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
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
        let handed = self.handed.lock().pop();
        if let Some(entry) = handed {
            self.re_home(vec![entry]);
            self.settle_if_over();
        }
    }

    /// All of them: so many are wanted here.
    fn take_handed(&self, _most: usize) -> Vec<Queued<A, K>> {
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
        let watchdog = WatchdogHandle::none();
        let (lanes, messages) = (Mutex::default(), Mutex::new(Vec::new()));
        let mail = Mutex::new(Vec::new());
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
            membership: Membership {
                slots: PerSlot::new(plan.workers),
                mailboxes: PerSlot::new(plan.workers),
                live: AtomicUsize::new(plan.workers),
                starts: Starts::default(),
            },
            handed: Mutex::default(),
            lifecycle: Lifecycle::new(),
            clock: Clock { watchdog, lanes, messages, mail },
            telemetry: Telemetry { counters: PoolCounters::default(), coarse: Coarse, full: Full },
            letters: Mutex::new(Vec::new()),
            env: Env { runtime: Handle },
            settings: Settings {
                config: PoolConfig {
                    name: "model".into(),
                    size: SizeConfig { mailbox: MAILBOX, holds_when_empty: false },
                    keys: KeyConfig { key_required: false },
                },
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

    pub(crate) fn keyed(&self) -> bool {
        self.settings.keyed
    }

    /// The product's, without sticky keys.
    fn park_mail(&self, slot: usize, entry: Queued<A, K>, after: Duration) {
        self.clock.park_mail(slot, entry, after);
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

    /// Nobody is told that the pool is full, or drained.
    #[expect(clippy::unused_self, reason = "as in the product")]
    fn look_now_and_then(&self) {}

    #[expect(clippy::unused_self, reason = "as in the product")]
    fn look_if_drained(&self) {}

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

    /// Nobody listens.
    fn notify(&self, _happening: PoolEvent) {}

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
        self.membership.live.fetch_add(1, Ordering::SeqCst);
        self.serve_waiters();
        self.revive();
    }

    /// The product's: the worker of a slot has ended, and is not started again.
    pub(crate) fn disable(self: &Arc<Self>, slot: usize, reason: &ExitReason) {
        let mailbox = self.take_mailbox(slot);
        self.clear_mailbox(mailbox, reason);
        if self.one_less() {
            self.dead_letter_deserted();
        }
    }

    /// The product's `let_leave`: a worker is told to leave.
    pub(crate) fn let_leave(&self, slot: usize) {
        self.membership.slots.at(slot).order(LEAVE);
        self.one_less();
        self.queue.wake.call(slot, &self.clock.watchdog);
        self.lifecycle.over.notify_waiters();
    }

    /// The product's: a worker that was told to leave has gone.
    pub(crate) fn left(self: &Arc<Self>, slot: usize, reason: &ExitReason) {
        self.membership.slots.at(slot).forget_orders();
        let mailbox = self.take_mailbox(slot);
        self.clear_mailbox(mailbox, reason);
        self.settle_what_is_left(false);
    }

    /// The product's `signal_worker`, for signals that do not kill.
    pub(crate) fn signal_worker(&self, mailbox: &Mailbox<A, K>, signal: Signal<AnyAddress>) {
        mailbox.push_signal(signal);
        self.queue.wake.call(mailbox.slot, &self.clock.watchdog);
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
        self.membership
            .slots
            .iter()
            .map(|slot_state| slot_state.started.load(Ordering::Relaxed))
            .sum()
    }

    fn reclaim(&self) -> u64 {
        self.queue.credit_map.reclaim(|shard| self.queue.shards[shard].inbox.lock().take_credit())
    }
}
