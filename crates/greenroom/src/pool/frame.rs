//! The part of a pool that knows neither messages, keys nor actors: compiled once, for all types.
//!
//! The files in `frame/` have the functions that need several of its parts; they do not know the
//! pool's types.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use greenroom_queue::{
    permits::{Permits, Queues},
    wake::Wake,
    watchdog::Watched,
};

use super::{
    admin::change::Outcomes,
    builder::config::PoolConfig,
    clock::{Clock, ClockEntry},
    controllers::Controllers,
    env::Env,
    lifecycle::Lifecycle,
    limits::Gate,
    membership::Membership,
    shares::ShareDesk,
    stats::telemetry::Telemetry,
};
use crate::{ExitReason, PoolEvent, address::vtable::BoxFuture, any_address::Erased};

pub(crate) mod capacity;
pub(crate) mod changes;
pub(crate) mod end;
pub(crate) mod exit;
pub(crate) mod figures;
pub(crate) mod gate;
pub(crate) mod members;
pub(crate) mod notify;
pub(crate) mod ready;
pub(crate) mod rest;
pub(crate) mod shares;
pub(crate) mod snapshot;
pub(crate) mod start;
#[cfg(feature = "supervision")]
pub(crate) mod supervised;
pub(crate) mod task_guard;

/// The parts of a pool that are the same for all types of actors.
pub(crate) struct Frame {
    /// The settings from its builder. Never changes.
    pub(crate) config: PoolConfig,
    /// Present if the pool has limits, or may get some later.
    pub(crate) limits: Option<Arc<Gate>>,
    /// Present if messages have shares: then there is a gate as well.
    pub(crate) shares: Option<Box<ShareDesk>>,
    /// The type name of its actors.
    pub(crate) behavior: &'static str,
    /// The clock runs from the start: it also reports drops that are not followed by another.
    pub(crate) needs_clock: bool,
    /// A policy chooses the worker of a message.
    pub(crate) has_policy: bool,
    /// The workers: their slots, and which of them have one.
    pub(crate) membership: Membership,
    /// Whether the pool accepts messages, and whether it has ended.
    pub(crate) lifecycle: Lifecycle,
    /// Messages and keys that wait for a time.
    pub(crate) clock: Clock,
    /// Counters and measurements.
    pub(crate) telemetry: Telemetry,
    /// Its advisor, its keeper and its supervisor.
    pub(crate) controllers: Controllers,
    /// Its runtime, its threads and its random numbers.
    pub(crate) env: Env,
}

impl Frame {
    /// Whether messages have to pass a gate before they are started.
    pub(crate) fn is_limited(&self) -> bool {
        self.limits.as_deref().is_some_and(Gate::is_engaged)
    }

    /// Whether messages are started in the order of their shares. Only used at the gate.
    pub(crate) fn is_shared(&self) -> bool {
        self.limits.as_deref().is_some_and(Gate::is_shared)
    }

    /// Gives the worker in this slot a task for its work.
    pub(crate) fn spawn_worker(&self, slot: usize, work: BoxFuture<'static, ()>) {
        // Pairs with the load in `works_as`, under the lock of the slot's details: a late handle is
        // recognized as that of an earlier task. Otherwise a kill would abort a task that has
        // ended.
        let number = self.membership.slots.at(slot).tasks.fetch_add(1, Ordering::SeqCst) + 1;
        self.membership.works_as(slot, number, self.env.spawn(work).abort_handle());
    }

    pub(crate) fn notify(&self, what: PoolEvent) {
        self.config.notices.emit(&self.config.name, what);
    }

    pub(crate) fn worker_name(&self, slot: usize) -> String {
        format!("{}-{slot}", self.config.name)
    }
}

/// Work to do once no lock is held.
pub(crate) type Afterwards<'a> = Option<Box<dyn FnOnce() + 'a>>;

/// The identity of a pool.
pub(crate) fn identity(pool: &dyn AnyCore) -> usize {
    std::ptr::from_ref(pool).addr()
}

pub(crate) fn follow(afterwards: Afterwards<'_>) {
    if let Some(then) = afterwards {
        then();
    }
}

/// A pool, for code that knows neither its messages nor its keys nor its actors.
pub(crate) trait AnyCore: Erased + Queues + Watched {
    fn frame(&self) -> &Frame;

    fn permits(&self) -> &Permits;

    fn wake(&self) -> &Wake;

    /// The numbers of messages that its queues and mailboxes have accepted and hold.
    fn counts(&self) -> Counts;

    /// The number of messages in a queue or waiting for a retry.
    fn depth(&self) -> usize;

    /// For how long the oldest waiting message has waited. Messages that wait for a retry do not
    /// count, nor does the time before a message's last attempt.
    fn oldest(&self) -> Option<Duration>;

    /// Messages that no worker will handle at present: in the lines of parked keys, and held.
    fn unattended(&self) -> Unattended;

    /// The counts of a worker's own mailbox, if it has one.
    fn mail(&self, slot: usize) -> Option<MailCounts>;

    /// Makes sure that there are this many slots.
    fn grow_to(&self, slots: usize);

    /// Changes the capacity. Called under the lock of the members; the caller serves waiters after
    /// releasing it.
    fn hold_at_most(&self, capacity: usize);

    /// Grants permits to senders that wait for them, and room behind keys.
    fn serve_waiters(&self);

    /// Lets the queues refuse messages, or accept them again. Called under the gate.
    fn set_shut(&self, shut: bool);

    /// The pool refuses messages: notifies those that wait for room, under no lock. If `for_good`,
    /// mailboxes refuse as well.
    fn tell_shut(&self, for_good: bool);

    /// Starts a worker in this slot, apart from the paths of messages.
    fn start_worker(self: Arc<Self>, slot: usize, beginning: Beginning);

    /// Gives a worker its share of the keys, unless it has it, or gives its keys to others. Workers
    /// and senders that the move concerns are woken afterwards.
    fn move_keys(&self, slot: usize, to: KeysTo) -> Afterwards<'_>;

    /// The worker in this slot has nothing in hand: continues the waiting moves.
    fn hand_over(&self, slot: usize);

    /// Workers have joined: held messages may get one.
    fn ask_again(&self);

    /// Takes the mailbox away from a worker that is leaving for this reason. Its messages go to
    /// others afterwards.
    fn take_mail(self: Arc<Self>, slot: usize, reason: &ExitReason) -> Afterwards<'_>;

    /// The worker in this slot has gone with its pool.
    fn end_worker(self: Arc<Self>, slot: usize, reason: &ExitReason);

    /// Makes a dead letter of every waiting message, if no worker is left and nothing is accepted.
    fn dead_letter_queued(&self);

    /// Gives back every waiting message. Only after `close`.
    fn give_back_queued(&self);

    /// An entry of the clock is due.
    fn ring(&self, alarm: ClockEntry);
}

/// Why the task of a worker is started.
pub(crate) enum Beginning {
    /// The slot was vacant; waiting callers learn the outcome.
    First(Outcomes),
    /// The worker there was killed.
    AfterKill,
}

/// Where the keys of a worker go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeysTo {
    Worker,
    Others,
}

/// The numbers of messages that a pool has accepted and holds.
pub(crate) struct Counts {
    pub(crate) accepted: u64,
    /// Messages that wait to go to another worker once a worker has finished its message in hand.
    pub(crate) held_for_others: usize,
    /// The bytes of waiting messages, if they are bounded.
    pub(crate) bytes: Option<u64>,
}

/// Messages that no worker will handle at present.
pub(crate) struct Unattended {
    pub(crate) parked: u64,
    /// The policy has no worker for them, or their key has no owner.
    pub(crate) held: u64,
}

/// The counts of a worker's own mailbox.
pub(crate) struct MailCounts {
    pub(crate) waiting: usize,
    /// The number of them that are to go to another worker.
    pub(crate) held: usize,
    pub(crate) capacity: usize,
}
