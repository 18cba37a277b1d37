//! What the senders, the workers and the clock of one pool share.

use std::{
    collections::VecDeque,
    hash::{BuildHasher, Hash},
    ops::RangeInclusive,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::{Mutex, RwLock};
use tokio::{sync::Notify, time::Instant};

use super::{
    advisor::advising::Advising,
    bytes::ByteBound,
    clock::Clock,
    coarse::CoarseClock,
    coordinator::Coordination,
    credit_map::CreditMap,
    crew_list::CrewList,
    crowd::KeyBounds,
    discard::discard,
    entry::{Hashed, Queued},
    hatch::Hatch,
    in_place,
    key_lines::KeyLines,
    lock::{Locked, locked},
    mailbox::Mailbox,
    occupied::{Inside, Occupied, OwnCalls, slot_at_work},
    overflow::Overflow,
    padded::Padded,
    parcel::{Load, ParcelOf},
    permits::{Closed, Permits, Queues, Refused},
    places::{KEYED_SHARDS, Places},
    policy::Policy,
    restart::{Escalation, Restarts, WhenExhausted},
    roster::Roster,
    seat::Seat,
    seats::Seats,
    shard::{Inbox, Outbox, Shard, Turns, Wanted},
    sketch::Sketch,
    stamp::Stamp,
    starts::Starts,
    stats::Measured,
    sticky::{Sticky, StickyBy},
    tally::PoolTally,
    threads::Threads,
    wake::Wake,
    worker::Factory,
};
use crate::{
    Actor, AnyAddress, Class, DeadLetter, DeadLetters, ExitReason, FailurePolicy, FinalAction,
    PoolEvents, RestartPolicy,
    delivery::Extra,
    life::Life,
    pool::urgency::Urgency,
    pool_events::{drop_log::DropLog, full_log::FullLog},
};

mod accept;
mod alarms;
#[cfg(test)]
mod attendance;
pub(crate) mod batch;
mod capacity;
mod carry;
mod claims;
mod close;
mod controlled;
mod coordinated;
mod crew;
pub(crate) mod crowded;
pub(crate) mod dispatch;
#[cfg(test)]
mod easy;
mod elsewhere;
mod evict;
pub(crate) mod exit;
mod figures;
#[cfg(test)]
mod interleavings;
mod keys;
mod look;
mod mail;
mod park;
mod parked;
mod place;
#[cfg(test)]
mod points;
mod ready;
pub(crate) mod serve;
mod stick;
mod sweep;
pub(crate) mod take;
mod tell;
#[cfg(test)]
mod together;
#[cfg(test)]
mod unaided;
mod withdraw;

pub(crate) type ShardOf<A, K> =
    Shard<<A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error, K>;

pub(crate) type InboxGuard<'a, A, K> =
    Locked<'a, Inbox<<A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error, K>>;

pub(crate) type OutboxOf<A, K> =
    Outbox<<A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error, K>;

/// Where a worker and its callers meet.
pub(crate) type HatchOf<A> = Hatch<<A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error>;

/// Where a worker's own mailbox lies, once there is one.
pub(crate) type Desk<A, K> = Mutex<Option<Arc<Mailbox<A, K>>>>;

/// How to tell the key of a message.
pub(crate) type KeyOf<A, K> = Box<dyn Fn(&<A as Actor>::Message) -> Option<K> + Send + Sync>;
/// How to copy a message before its first attempt.
pub(crate) type CopyOf<A> = fn(&<A as Actor>::Message) -> <A as Actor>::Message;
/// Who is told of dead letters.
pub(crate) type OnDeadLetter<A> =
    Box<dyn Fn(DeadLetter<<A as Actor>::Message, <A as Actor>::Error>) + Send + Sync>;

/// Whether a message is still to be started.
pub(crate) type StartsIf<A> = Box<dyn Fn(&<A as Actor>::Message) -> bool + Send + Sync>;

/// Who is told of messages that park their keys.
pub(crate) type OnParked<A> = Box<
    dyn Fn(Option<&mut <A as Actor>::Message>, Option<&<A as Actor>::Error>, Option<&str>)
        + Send
        + Sync,
>;

/// What the builder has settled.
pub(crate) struct Settings<A: Actor, K> {
    pub(crate) name: Arc<str>,
    pub(crate) factory: Factory<A>,
    /// How many the pool starts with, and how many it may have.
    pub(crate) workers: usize,
    pub(crate) bounds: RangeInclusive<usize>,
    /// Present where the capacity follows the size.
    pub(crate) mailbox_each: Option<usize>,
    /// Without workers, messages are accepted up to the capacity, and wait.
    pub(crate) holds_when_empty: bool,
    pub(crate) capacity: usize,
    /// How many messages may wait in a worker's own mailbox.
    pub(crate) mailbox: usize,
    pub(crate) overflow: Overflow<A::Message, A::Reply, A::Error>,
    /// `None` where workers pull.
    pub(crate) dispatch: Option<Box<dyn Policy<A::Message>>>,
    /// How to tell the key, and the number of table slots, where keys stick to workers. Taken out when the pool is made.
    pub(crate) sticky: Option<(StickyBy<A::Message>, usize)>,
    /// Present where a policy may choose several workers.
    pub(crate) copy_for_several: Option<CopyOf<A>>,
    /// `None` for a pool without order.
    pub(crate) key_of: Option<KeyOf<A, K>>,
    /// A message without a key is refused.
    pub(crate) key_required: bool,
    /// How many messages may wait behind one key.
    pub(crate) key_bounds: KeyBounds,
    /// Present where bytes are bounded.
    pub(crate) bytes: Option<Box<ByteBound<A::Message>>>,
    /// A policy chooses, or bytes are bounded: a message is not simply queued.
    pub(crate) is_weighed: bool,
    /// Present where the bound of one key follows the capacity: the part of it.
    pub(crate) key_share: Option<usize>,
    /// What follows when no further attempt is made, where that was said.
    pub(crate) finally: Option<FinalAction>,
    pub(crate) policy: Box<dyn FailurePolicy<A::Error>>,
    /// Present where another attempt may be asked for.
    pub(crate) copy: Option<CopyOf<A>>,
    /// Is asked before each attempt. In a box of its own, as `on_parked`.
    pub(crate) starts_if: Option<Box<StartsIf<A>>>,
    /// There is one of the two: a message is not simply started.
    pub(crate) looks_at_start: bool,
    pub(crate) poison_limit: u32,
    pub(crate) restarts: Restarts,
    pub(crate) restart_policy: RestartPolicy,
    /// What follows when a slot's budget is used up.
    pub(crate) when_exhausted: WhenExhausted,
    /// The pool is one actor: it ends with it.
    pub(crate) single: bool,
    /// Present where it is said, instead of measured, whether handlers are quick.
    pub(crate) quick: Option<bool>,
    /// Present where several messages are handled together.
    pub(crate) batches: Option<super::batches::Batches>,
    /// Present where a batch is full by its size, too.
    pub(crate) batch_bytes: Option<super::batch_bytes::BatchBytes<A::Message>>,
    /// Callers may do the work of a worker that they have woken.
    pub(crate) calls_in_place: bool,
    /// Callers may give a worker the message, past the queue: nothing is to be done with that but to handle it.
    pub(crate) serves_at_hatch: bool,
    /// Present where the pool sizes itself; in range.
    pub(crate) autoscale: Option<super::autoscale::Autoscale>,
    /// Present where the pool is advised; in range.
    pub(crate) advisor: Option<Box<super::advisor::Advisor>>,
    /// Present where the pool has limits, or may come to have some.
    pub(crate) gate: Option<Arc<super::limits::Gate>>,
    /// How long a handler may take.
    pub(crate) time_limit: Option<Duration>,
    pub(crate) on_dead_letter: Option<OnDeadLetter<A>>,
    /// Is told of each message that parks its key. In a box of its own: hardly any pool has one,
    /// and actors are many.
    pub(crate) on_parked: Option<Box<OnParked<A>>>,
    /// How many dead letters the pool keeps, where no hook takes them.
    pub(crate) dead_letters: usize,
    /// Who is told what happens.
    pub(crate) notices: PoolEvents,
    pub(crate) seed: u64,
    /// The seed was said: what is random comes out the same each time.
    pub(crate) is_seeded: bool,
}

impl<A: Actor, K> Settings<A, K> {
    /// Whether messages pass a gate now, before they are started.
    pub(crate) fn is_limited(&self) -> bool {
        self.gate.as_deref().is_some_and(super::limits::Gate::is_engaged)
    }
}

/// Whether a pool accepts messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    /// It does. Left when the last worker goes, or by a stop.
    Open,
    /// It has no worker. Left when one joins, or by a stop.
    Deserted,
    /// It never will again.
    Closed,
}

/// What has to be known of a message before it is queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WayIn {
    /// Nothing.
    Plain,
    /// Its key.
    ByKey,
    /// Its weight, and its key where there are keys.
    Weighed,
}

impl WayIn {
    fn of<A: Actor, K>(settings: &Settings<A, K>) -> Self {
        match (settings.is_weighed, &settings.key_of) {
            (true, _) => Self::Weighed,
            (false, Some(_)) => Self::ByKey,
            (false, None) => Self::Plain,
        }
    }
}

pub(crate) struct Core<A: Actor, K> {
    pub(crate) settings: Settings<A, K>,
    pub(crate) way_in: WayIn,
    pub(crate) shards: Box<[ShardOf<A, K>]>,
    pub(crate) permits: Permits,
    /// How many permits a shard takes at once. Changes with the capacity.
    credit: AtomicU64,
    /// Which shards may have some.
    credit_map: CreditMap,
    /// For how many messages of each worker there is room; 0 where the capacity was given in all. Written under the lock of
    /// `roster`.
    mailbox_each: AtomicUsize,
    pub(crate) wake: Wake,
    pub(crate) clock: Clock<A, K>,
    /// One per worker there has been at the same time.
    pub(crate) seats: Seats<Arc<Seat>>,
    pub(crate) roster: Mutex<Roster>,
    /// Where callers give single workers a message, in a pool where they may.
    pub(crate) hatches: Seats<OnceLock<Arc<HatchOf<A>>>>,
    /// A caller has given a message to a worker and had it woken.
    hands: AtomicBool,
    /// The mailboxes of single workers, where they have one.
    pub(crate) desks: Seats<Desk<A, K>>,
    /// Who may be chosen by a policy.
    crew: RwLock<Arc<CrewList<A, K>>>,
    /// How often somebody has come or gone: `crew` is of one such moment.
    crew_changes: AtomicU64,
    /// Where senders wait for room behind a key.
    key_lines: KeyLines,
    /// How many messages may wait behind one key. Written under the roster's lock.
    max_per_key: AtomicUsize,
    /// Who has which keys, in a sticky pool.
    pub(crate) sticky: Option<Box<Sticky<A::Message>>>,
    /// Messages that the policy has given to nobody yet, or of keys that nobody has.
    held: Mutex<VecDeque<Queued<A, K>>>,
    /// Whether messages are accepted; held while that changes.
    gate: Mutex<Gate>,
    /// The last slot was disabled: what is queued are dead letters.
    ruined: AtomicBool,
    pub(crate) tally: PoolTally,
    /// The time for whatever need not know it exactly.
    pub(crate) coarse: Padded<CoarseClock>,
    /// How long messages took.
    pub(crate) measured: Measured,
    /// What was advised last, and by which advisor, where the pool is advised.
    pub(crate) advising: Mutex<Advising>,
    /// The keys with the most work.
    pub(crate) sketch: Option<Box<Sketch<K>>>,
    /// From its spawn to its end, and who is told of that.
    pub(crate) life: Arc<Life<AnyAddress>>,
    /// Why it ends, where it is not simply stopped. The first reason counts.
    cause: OnceLock<ExitReason>,
    /// Whom a worker's end is told when its budget is used up, where the pool is to leave it to others.
    pub(crate) escalation: Mutex<Option<Escalation>>,
    /// It has a supervisor: slots whose budget is used up rest, and what is queued is kept.
    supervised: AtomicBool,
    /// Set before the first worker starts, where the pool has a coordinator.
    pub(crate) coordination: OnceLock<Coordination<A>>,
    /// Workers that wait for their own pool.
    pub(crate) calls: OwnCalls,
    /// What could not be handled, where no hook takes it.
    pub(crate) letters: DeadLetters<A::Message, A::Error>,
    /// Whether it was told that the pool is full.
    full: FullLog,
    /// Messages dropped because there was no room, as far as they were not told.
    pub(crate) drops: DropLog,
    /// The end was told.
    told_end: AtomicBool,
    /// Messages given back because the pool stopped while they were in hand.
    pub(crate) left_over: Mutex<Vec<A::Message>>,
    /// The pool accepts nothing any more.
    pub(crate) closing: AtomicBool,
    /// All is done: idle workers end.
    pub(crate) ended: AtomicBool,
    /// Told whoever stops the pool: a worker found nothing to do while the pool was closing, or a task has ended.
    pub(crate) progress: Notify,
    /// Told once, when `ended` is set, to workers between restarts.
    pub(crate) over: Notify,
    /// Workers that start, for whoever waits for them.
    pub(crate) starts: Starts,
    /// Workers whose slot is not disabled.
    pub(crate) live: AtomicUsize,
    /// Addresses in existence; the last one dropped drains and stops the pool.
    pub(crate) handles: AtomicUsize,
    /// Which shards addresses send to, where messages have no key.
    pub(crate) places: Places,
    /// Tasks of the pool that have not ended: workers, and the clock.
    pub(crate) running: AtomicUsize,
    /// Where the pool's tasks run.
    pub(crate) runtime: tokio::runtime::Handle,
    /// Threads of its own, where it has some.
    _threads: Option<Threads>,
    hasher: foldhash::quality::SeedableRandomState,
    chance: AtomicU64,
}

/// Permits that lie unused in all shards together are at most this part of the capacity, so that they need not be searched
/// for while the pool is far from full.
const CREDIT_SHARE: usize = 8;

/// The most messages that are queued under one hold of a lock.
const RUN: usize = 64;

/// The most bytes of a deque that is left where it is: a few of that size are kept when they are empty.
const RUN_BYTES: usize = 64 << 10;

/// True where messages may be left where their sender has them: enough to be worth it, not so many that an empty deque of that size
/// is too much to keep, and with little room unused that would count against the memory of a full queue.
fn is_run<M>(messages: &VecDeque<M>) -> bool {
    let (few, many) = (16, (4 * RUN).min(RUN_BYTES / size_of::<M>().max(1)));
    (few..=many).contains(&messages.len())
        && messages.capacity().saturating_mul(4) <= messages.len() * 5
}

/// Messages that an actor which stands alone has handled before any is measured.
const FEW: u64 = 64;

/// More would not make a permit noticeably cheaper.
const MAX_CREDIT: usize = 64;

/// How many permits a shard takes at once.
fn credit_for(capacity: usize, shards: usize) -> u64 {
    (capacity / shards / CREDIT_SHARE).clamp(1, MAX_CREDIT) as u64
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    pub(crate) fn new(
        mut settings: Settings<A, K>,
        awake_limit: usize,
        runtime: tokio::runtime::Handle,
        threads: Option<Threads>,
    ) -> Self {
        let shards = match settings.key_of {
            Some(_) if settings.workers > 1 => KEYED_SHARDS,
            _ => Places::shards(settings.workers, settings.batches.is_some()),
        };
        // Of very many actors that handle a few messages each, none has room for measurements.
        let unmeasured = if settings.single { FEW } else { 0 };
        let turns = match settings.key_of {
            Some(_) => Turns::OF_KEYS,
            None => Turns::OF_A_SENDER,
        };
        let turns = turns.of_messages_of(size_of::<A::Message>());
        let now = Instant::now();
        let sticky = settings
            .sticky
            .take()
            .map(|(by, slots)| Box::new(Sticky::new(by, slots, settings.workers, settings.seed)));
        let core = Self {
            way_in: WayIn::of(&settings),
            shards: (0..shards).map(|_| Shard::new(turns, settings.key_bounds)).collect(),
            permits: Permits::new(settings.capacity),
            credit: AtomicU64::new(credit_for(settings.capacity, shards)),
            credit_map: CreditMap::new(),
            mailbox_each: AtomicUsize::new(settings.mailbox_each.unwrap_or(0)),
            wake: Wake::new(settings.workers, awake_limit),
            clock: Clock::new(),
            seats: Seats::new(settings.workers),
            roster: Mutex::new(Roster::new(settings.workers, settings.bounds.clone())),
            hatches: Seats::new(settings.workers),
            hands: AtomicBool::new(false),
            desks: Seats::new(settings.workers),
            crew: RwLock::default(),
            crew_changes: AtomicU64::new(0),
            sticky,
            key_lines: KeyLines::default(),
            max_per_key: AtomicUsize::new(settings.key_bounds.waiting),
            held: Mutex::default(),
            gate: Mutex::new(Gate::Open),
            ruined: AtomicBool::new(false),
            tally: PoolTally::default(),
            coarse: Padded(CoarseClock::new(is_watched(&runtime), unmeasured)),
            measured: Measured::default(),
            advising: Mutex::default(),
            sketch: settings.key_of.is_some().then(|| Box::new(Sketch::new())),
            life: Arc::default(),
            cause: OnceLock::new(),
            escalation: Mutex::default(),
            supervised: AtomicBool::new(false),
            coordination: OnceLock::new(),
            calls: OwnCalls::default(),
            letters: DeadLetters::new(settings.dead_letters),
            full: FullLog::new(now),
            drops: DropLog::new(now),
            told_end: AtomicBool::new(false),
            left_over: Mutex::default(),
            closing: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            progress: Notify::new(),
            over: Notify::new(),
            starts: Starts::default(),
            live: AtomicUsize::new(settings.workers),
            handles: AtomicUsize::new(0),
            places: Places::new(settings.workers),
            running: AtomicUsize::new(0),
            hasher: foldhash::quality::SeedableRandomState::with_seed(
                settings.seed,
                match settings.is_seeded {
                    true => foldhash::SharedSeed::global_fixed(),
                    false => foldhash::SharedSeed::global_random(),
                },
            ),
            chance: AtomicU64::new(settings.seed),
            runtime,
            _threads: threads,
            settings,
        };
        if let Some(quick) = core.settings.quick {
            core.wake.set_quick(quick);
            core.coarse.tell_pace(if quick { Duration::ZERO } else { Duration::MAX });
        }
        core
    }

    /// Tells how long a handler took, on average over a few.
    pub(crate) fn tell_pace(&self, each: Duration) {
        if self.settings.quick.is_none() {
            self.wake.tell_pace(each);
        }
    }

    /// True where only the holder of a shard's token may take from its queue.
    pub(crate) fn keyed(&self) -> bool {
        self.settings.key_of.is_some()
    }

    /// A random number between 0 and 1, for jitter (Steele, Lea, Flood: SplitMix64, OOPSLA 2014).
    pub(crate) fn chance(&self) -> f64 {
        let mut z = self.chance.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The key of a message and the hash of that key. Runs user code: call it before admission, under no lock.
    #[inline]
    pub(crate) fn key(&self, load: &impl Load<A::Message, A::Reply, A::Error>) -> Hashed<K> {
        self.key_of(load.message())
    }

    /// As `key`, for a message that lies elsewhere.
    #[inline]
    pub(crate) fn key_of(&self, message: Option<&A::Message>) -> Hashed<K> {
        let Some(key_of) = &self.settings.key_of else { return (None, 0) };
        let key = message.and_then(key_of);
        let hash = key.as_ref().map_or(0, |key| self.hash(key));
        (key, hash)
    }

    /// The hash of a key: user code.
    #[inline]
    pub(crate) fn hash(&self, key: &K) -> u32 {
        (self.hasher.hash_one(key) >> 32) as u32
    }

    #[inline]
    pub(crate) fn shard_of(&self, (key, hash): &Hashed<K>, sender: u32) -> usize {
        let place = if key.is_some() { *hash } else { sender };
        place as usize & (self.shards.len() - 1)
    }

    /// Takes a permit and queues a message, or says why not.
    #[inline(always)]
    pub(crate) fn take_and_push(
        &self,
        load: &mut impl Load<A::Message, A::Reply, A::Error>,
        key: Hashed<K>,
        sender: u32,
        urgency: Urgency,
    ) -> Result<(), Refused> {
        if self.lacks_key(&key) {
            return Err(Refused::KeyRequired);
        }
        let index = self.shard_of(&key, sender);
        let mut inbox = locked(&self.shards[index].inbox);
        if inbox.is_easy() && load.class() == Class::Normal && self.is_timely() {
            inbox.push_easily(load, key, self.coarse.coarse_stamp());
            return Ok(());
        }
        self.look_and_push(index, inbox, load, key, urgency)
    }

    /// As `take_and_push`, with a look at all that may have to be seen to.
    #[inline(never)]
    fn look_and_push(
        &self,
        index: usize,
        mut inbox: InboxGuard<'_, A, K>,
        load: &mut impl Load<A::Message, A::Reply, A::Error>,
        key: Hashed<K>,
        urgency: Urgency,
    ) -> Result<(), Refused> {
        inbox.look_again();
        if inbox.step_aside && urgency == Urgency::CanStepAside {
            inbox.step_aside = false;
            drop(inbox);
            // The key is made again when the message comes back; how it is dropped is the user's code.
            discard(key);
            return Err(Refused::NotNow);
        }
        if inbox.credit == 0 && !inbox.closed {
            let credit = self.credit.load(Ordering::Relaxed);
            self.credit_map.note(index);
            inbox.credit = self.permits.take_known(credit.min(inbox.headroom()));
        }
        if inbox.credit == 0 {
            let wanted = self.credit.load(Ordering::Relaxed).min(inbox.headroom()).max(1);
            drop(inbox);
            let in_blocks = urgency == Urgency::CanStepAside
                && self.settings.overflow.waits()
                && self.wakes_by_search();
            return load.lent(|parcel| self.search_and_push(index, wanted, parcel, key, in_blocks));
        }
        inbox.credit -= 1;
        let is_late = self.is_late();
        let urgent = load.class() == Class::Urgent;
        let first = inbox.push(load, key, |number| self.coarse.stamp(number, is_late));
        if urgent {
            self.wake.urge(index);
        }
        let invited = inbox.take_invite();
        if !invited {
            let unmeasured = self.coarse.unmeasured_from(inbox.accepted);
            inbox.take_it_easy(unmeasured);
        }
        drop(inbox);
        if first && urgency == Urgency::InPlace && self.may_drive() {
            self.announce_in_place(index);
        } else if first {
            self.announce(index);
        } else if invited {
            self.wake.invite(index, &self.clock.bell);
        }
        Ok(())
    }

    /// As `announce`, for somebody who then waits: does the work of the worker that is taken for it.
    fn announce_in_place(&self, index: usize) {
        self.wake.mark(index);
        let shard = (!self.keyed()).then_some(index);
        let Some(picked) = self.wake.pick_for(shard, &self.clock.bell) else { return };
        match in_place::lend(&self.seats.at(picked.worker).bench) {
            Some(lent) => self.drive(lent, || {}),
            None => picked.rouse(),
        }
    }

    /// True where the caller, here and now, may do a worker's work.
    pub(super) fn may_drive(&self) -> bool {
        let here = || {
            let current = tokio::runtime::Handle::try_current();
            current.is_ok_and(|current| current.id() == self.runtime.id())
        };
        self.settings.calls_in_place && self.wake.is_quick() && in_place::may_drive() && here()
    }

    #[cold]
    fn search_and_push(
        &self,
        index: usize,
        wanted: u64,
        parcel: &mut ParcelOf<A>,
        key: Hashed<K>,
        in_blocks: bool,
    ) -> Result<(), Refused> {
        let taken = match in_blocks {
            true => self.permits.try_take_block(wanted, self)?,
            false => self.permits.try_take(wanted, self)?,
        };
        let pushed = self.push(index, parcel, key);
        let unused = if pushed.is_ok() { taken - 1 } else { taken };
        self.give_credit(index, unused);
        pushed
    }

    /// Leaves permits in a shard, unless somebody waits for them.
    fn give_credit(&self, index: usize, permits: u64) {
        if permits == 0 {
            return;
        }
        let mut inbox = self.shards[index].inbox.lock();
        self.credit_map.note(index);
        // Whoever starts to wait says so first and then takes back what lies where it is noted, under this lock.
        let has_headroom = inbox.headroom() >= permits;
        if inbox.closed || self.permits.is_starved() || !has_headroom {
            drop(inbox);
            return self.permits.give(permits, self);
        }
        inbox.credit += permits;
    }

    /// Queues a message whose permit has been taken, unless the pool is closing, or its key may have no more.
    pub(crate) fn push(
        &self,
        index: usize,
        parcel: &mut ParcelOf<A>,
        key: Hashed<K>,
    ) -> Result<(), Refused> {
        self.push_in_line(index, parcel, key, false)
    }

    /// As `push`. `waited` where its sender has stood in line behind its key.
    pub(crate) fn push_in_line(
        &self,
        index: usize,
        parcel: &mut ParcelOf<A>,
        key: Hashed<K>,
        waited: bool,
    ) -> Result<(), Refused> {
        if self.push_quietly(index, parcel, key, waited)? {
            self.announce(index);
        }
        Ok(())
    }

    /// As `push`, but leaves it to the caller to announce the shard where that is needed (true), whatever happens.
    pub(crate) fn push_quietly(
        &self,
        index: usize,
        parcel: &mut ParcelOf<A>,
        key: Hashed<K>,
        waited: bool,
    ) -> Result<bool, Refused> {
        if self.lacks_key(&key) {
            return Err(Refused::KeyRequired);
        }
        let mut inbox = self.shards[index].inbox.lock();
        if inbox.headroom() == 0 {
            drop(inbox);
            return self.push_counted(index, parcel, key, waited);
        }
        if inbox.closed {
            return Err(Refused::Closed);
        }
        let first = inbox.push(parcel, key, |number| self.stamp(number));
        if parcel.class == Class::Urgent {
            self.wake.urge(index);
        }
        Ok(first)
    }

    /// Queues messages without keys whose permits have been taken, up to `most` of them from the front, under one hold of
    /// the lock. Returns how many, and what must be done, whatever happens.
    pub(crate) fn push_run(
        &self,
        messages: &mut VecDeque<A::Message>,
        most: usize,
        sender: u32,
    ) -> Result<(usize, Wanted), Closed> {
        let (most, is_late) = (most.min(messages.len()), self.is_late());
        let mut inbox = self.shards[self.shard_of(&(None, 0), sender)].inbox.lock();
        if inbox.closed {
            return Err(Closed);
        }
        let stamp = |number| self.coarse.stamp(number, is_late);
        if most == messages.len() && is_run(messages) && self.coarse.measures_few() {
            let unmeasured = self.coarse.unmeasured_from(inbox.accepted);
            let of_most = self.coarse.timely_stamp(is_late);
            return Ok((most, inbox.push_run(messages, of_most, unmeasured, stamp)));
        }
        let each = most.min(RUN);
        Ok((each, inbox.push_each(messages.drain(..each), stamp)))
    }

    /// False where the coarse clock may have stood still since the last look at a shard that is scheduled: without the watch,
    /// where every worker waits.
    #[inline(always)]
    pub(super) fn is_timely(&self) -> bool {
        self.coarse.is_timely(|| self.wake.awake())
    }

    /// The stamp for the message with this number, of those that were counted together.
    #[inline]
    pub(crate) fn stamp(&self, number: u64) -> Stamp {
        self.coarse.stamp(number, self.is_late())
    }

    /// True when the coarse clock may have stood still for long (see there).
    #[inline]
    fn is_late(&self) -> bool {
        self.coarse.is_late(|| !self.clock.bell.is_watched(), || self.wake.awake())
    }

    /// A worker is woken: sets the coarse clock where the watch does not do so. Before the worker counts as awake.
    #[inline]
    pub(crate) fn note_time(&self) {
        if !self.coarse.is_watched() || !self.clock.bell.is_watched() {
            self.coarse.set();
        }
    }

    /// Handlers have come to wait for something, or to do so rarely. Where it was said that they are quick, that holds. Batches
    /// are collected from the queue, so that a key stays at its head until one is.
    #[cold]
    pub(crate) fn wait_usually(&self, waits: bool) {
        if self.settings.quick != Some(true) && self.settings.batches.is_none() {
            self.wake.set_waits(waits);
        }
    }

    /// Grants permits to senders that wait for them. Call it after messages have been started, behind a fence where the
    /// caller then rests for long (see [`Permits`]).
    pub(crate) fn serve_waiters(&self) {
        self.grant_waiters();
        if self.full.is_full() {
            self.look_now_and_then();
        }
    }

    /// As `serve_waiters`, for a worker that has just been suspended: in blocks. Who waits for less
    /// than a block is served by the watch, or where nobody watches, by the last worker awake.
    pub(crate) fn serve_waiters_in_blocks(&self) {
        let is_starved = self.permits.is_starved();
        let has_block = is_starved && self.permits.take_block();
        let is_unwatched = !self.coarse.is_watched();
        if has_block || (is_starved && is_unwatched && self.wake.awake() == 0) {
            self.permits.grant(self);
        }
        self.serve_key_lines();
        // That costs a look at the clock, and the watch does it with each tick.
        if (has_block || (!is_starved && is_unwatched)) && self.full.is_full() {
            self.look_now_and_then();
        }
    }

    /// A message was taken from this shard, to be started: now and then, that makes a block of
    /// permits for those who wait.
    #[inline]
    pub(crate) fn note_taken(&self, index: usize, outbox: &OutboxOf<A, K>) {
        self.permits.note_taken(index as u64, outbox.taken);
    }

    /// True where a worker that goes on after a wait does not count as awake. On one thread they
    /// do: there the count says whether the clock is looked after.
    #[inline]
    pub(crate) fn wakes_by_search(&self) -> bool {
        self.wake.waits() && self.coarse.is_watched()
    }

    /// As `serve_waiters`, for a worker that lies down or serves where it lies: it looks whether the pool is drained as well.
    #[inline]
    pub(crate) fn serve_waiters_at_rest(&self) {
        self.grant_waiters();
        self.look_if_drained();
    }

    #[inline]
    fn grant_waiters(&self) {
        if self.permits.is_starved() {
            self.permits.grant(self);
        }
        self.serve_key_lines();
    }

    /// Marks a shard as ready and wakes a worker for it. Not for workers that go on to look for work themselves.
    pub(crate) fn announce(&self, index: usize) {
        self.wake.mark(index);
        if self.keyed() {
            self.wake.one(&self.clock.bell);
        } else {
            self.wake.one_for(index, &self.clock.bell);
        }
    }

    /// Messages that lie in a queue or wait for another attempt.
    pub(crate) fn depth(&self) -> usize {
        let shards = self.shards.iter();
        let queued: usize = shards
            .map(|shard| {
                let outbox = shard.outbox.lock();
                outbox.queued() + shard.inbox.lock().queued()
            })
            .sum();
        let desks = self.desks.iter().filter_map(|desk| desk.lock().clone());
        let private: usize = desks.map(|mailbox| mailbox.waiting()).sum();
        queued + private + self.handed() + self.held.lock().len() + self.clock.messages()
    }

    pub(crate) fn accepted(&self) -> u64 {
        let shared: u64 = self.shards.iter().map(|shard| shard.inbox.lock().accepted).sum();
        let desks = self.desks.iter().filter_map(|desk| desk.lock().clone());
        let private: u64 = desks.map(|mailbox| mailbox.accepted()).sum();
        shared + private + self.tally.accepted.load(Ordering::Relaxed)
    }

    pub(crate) fn worker_name(&self, slot: usize) -> String {
        format!("{}-{slot}", self.settings.name)
    }

    /// Which pool this is.
    pub(crate) fn identity(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Somebody is about to wait for a reply of this pool.
    #[inline]
    pub(crate) fn enter_own_call(&self, parcel: &ParcelOf<A>) -> Result<Option<Inside>, Occupied> {
        match slot_at_work(self.identity()) {
            Some(slot) => self.enter_call_of(slot, parcel),
            None => Ok(None),
        }
    }

    #[cold]
    fn enter_call_of(&self, slot: usize, parcel: &ParcelOf<A>) -> Result<Option<Inside>, Occupied> {
        if self.has_key_in_hand(parcel, slot) {
            return Err(Occupied);
        }
        self.calls.enter(self.identity(), self.live.load(Ordering::SeqCst))
    }

    /// True where a worker is the owner of this message's key.
    pub(crate) fn has_key_in_hand(&self, parcel: &ParcelOf<A>, slot: usize) -> bool {
        if !self.keyed() {
            return self.would_stick_to(parcel, slot);
        }
        let key = self.key(parcel);
        let index = self.shard_of(&key, 0);
        let own = key.0.is_some() && self.shards[index].outbox.lock().is_owner(key.1, slot);
        discard(key);
        own
    }
}

/// On one thread nobody could take what a handler holds up, so only pools on several are watched.
pub(crate) fn is_watched(runtime: &tokio::runtime::Handle) -> bool {
    runtime.runtime_flavor() != tokio::runtime::RuntimeFlavor::CurrentThread
}

pub(crate) type ExtraOf<A> = Extra<<A as Actor>::Reply, <A as Actor>::Error>;

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Queues for Core<A, K> {
    fn started(&self) -> u64 {
        self.seats.iter().map(|seat| seat.tally.started.load(Ordering::Relaxed)).sum()
    }

    fn reclaim(&self) -> u64 {
        self.credit_map.reclaim(|shard| self.shards[shard].inbox.lock().take_credit())
    }
}
