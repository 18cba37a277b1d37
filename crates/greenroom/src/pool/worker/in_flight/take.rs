//! Taking a worker's next message.

use std::time::Instant;

use greenroom_queue::{discard::discard, sync::tuned};

use super::{InFlight, Source, Taken, WorkerContext, rounds::Rounds};
use crate::{
    Actor, Class,
    pool::{
        core::{
            Core,
            mail::forget_mail,
            pushes::hand_over,
            take::{
                NextNear, QUOTA, TakenNear, budget, take_at_head, take_behind, take_behind_near,
                take_ready, take_ready_near, take_ready_normal, take_ready_urgent,
            },
        },
        membership::{mailbox::Mailbox, slot_state::HAND_OVER},
        pool_payload::{Key, Queued, ShardOf},
    },
};

/// The runs from one shard before a worker looks at the others, if handlers are quick.
const RUNS_IN_A_SHARD: u32 = 16;

/// A run of more messages than this counts as several while other filled shards have no worker.
const MESSAGES_OF_A_RUN: u32 = 128;

/// The messages of one shard in a row, if handlers usually wait.
const NEAR_IN_A_SHARD: u32 = tuned(8, 3);

/// The number of looks at the shard of a key that yielded, before its turn: the first look may find
/// the key that it yielded to.
const LOOKS_BACK: u8 = 2;

/// Like `RUNS_IN_A_SHARD`, if handlers are not quick: the caches of the shard matter less, and
/// other shards would wait for long.
const LONG_RUNS_IN_A_SHARD: u32 = 2;

/// Messages from its own mailbox that a worker takes in a row while others may wait for it.
const MAIL_RUN: u32 = 64;

impl<A: Actor, K: Key> InFlight<A, K> {
    /// Takes the next message from the place of the last one. After a lane, if handlers usually
    /// wait, it takes one from anywhere.
    pub(crate) fn take_next(&mut self) -> Taken {
        if self.is_interrupted()
            && let Some(taken) = take_first_of_all(self)
        {
            return taken;
        }
        match self.worker.source {
            Source::Shared { index, alone } => {
                self.slot_state.set_busy_since(self.worker.core.frame.telemetry.coarse.shown());
                let taken = take_next_shared(self, index, alone);
                if taken != Taken::InHand {
                    self.slot_state.set_free();
                }
                taken
            }
            Source::BetweenRuns { .. } => Taken::Nothing,
            source => {
                if let Some(taken) = take_next_at_head(self) {
                    return taken;
                }
                let stays = stays_in_shard(self, source);
                if let Some(taken) = take_next_near(self, source, stays) {
                    return taken;
                }
                self.worker.source = Source::None;
                match take_behind(&self.worker.core, self.worker.slot, source, stays) {
                    Some((source, entry)) => self.begin(source, entry),
                    None => {
                        look_where_a_key_gave_way(&mut self.rounds, source);
                        take_behind_lane(self, source)
                    }
                }
            }
        }
    }

    /// Like `take_next`, for a worker whose handler has waited: it has left the shard of its last
    /// message, and looks at the ready shards.
    pub(crate) fn take_after_wait(&mut self) -> Taken {
        match self.worker.source {
            Source::None if !self.is_interrupted() => take_from_shards(self),
            _ => self.take_next(),
        }
    }

    /// Takes the next message if the handler of the last one has waited, as handlers here usually
    /// do, and nothing comes first. Returns true if one is in hand; all other duties are done then.
    pub(crate) fn take_again_after_wait(&mut self, core: &Core<A, K>) -> bool {
        if !self.worker.has_suspended || self.is_interrupted() || core.frame.is_limited() {
            return false;
        }
        let is_taken = self.take_after_wait() == Taken::InHand;
        if is_taken {
            self.worker.has_suspended = false;
            self.rounds.waits += 1;
            self.worker.counts_again();
            if core.queue.wake.wants_more() {
                core.queue.wake.one(&core.frame.clock.watchdog);
            }
        }
        is_taken
    }

    /// True if something may come before the next message of the queue.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn is_interrupted(&self) -> bool {
        self.slot_state.has_orders() || self.worker.core.queue.wake.has_urgent()
    }

    /// The shard of the run, and the number of messages, up to `most`, that
    /// [`take_in_run`](Self::take_in_run) may still take there.
    pub(crate) fn left_of_run<'a>(
        &self,
        core: &'a Core<A, K>,
        most: u32,
    ) -> Option<(&'a ShardOf<A, K>, u32)> {
        let (index, run) = match self.worker.source {
            Source::Shared { index, .. } => (index, self.rounds.run),
            Source::Head { index, run, .. } => (index, run),
            _ => return None,
        };
        Some((core.queue.shards.get(index)?, self.rounds.longest_run.saturating_sub(run).min(most)))
    }

    /// Counts this many messages of [`take_in_run`](Self::take_in_run), which does not count them
    /// itself; `last` is its last result.
    pub(crate) fn count_in_run(&mut self, messages: u32, last: Option<Taken>) {
        let messages = messages + u32::from(last.is_some());
        match &mut self.worker.source {
            Source::Head { run, .. } => *run += messages,
            Source::Shared { index, alone } => {
                let (index, alone) = (*index, *alone);
                self.rounds.run += messages;
                if last == Some(Taken::Nothing) {
                    end_run(self, index, alone);
                }
            }
            _ => {}
        }
    }

    /// Like `take_next`, in the middle of a run in this shard and while nothing else comes first.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn take_in_run(
        &mut self,
        core: &Core<A, K>,
        shard: &ShardOf<A, K>,
    ) -> Option<Taken> {
        // The end of the pool is an order as well.
        if self.is_interrupted() {
            return None;
        }
        match &mut self.worker.source {
            Source::Shared { index, .. } => {
                let more = core.queue.pop_in_run(*index, shard, &mut self.delivery);
                Some(if more { self.start_next() } else { Taken::Nothing })
            }
            Source::Head { epoch, hash, .. } => {
                *hash = take_at_head(core, shard, *epoch, &mut self.delivery)?;
                Some(self.start_next())
            }
            _ => None,
        }
    }

    /// The worker's own mailbox, once it has been used.
    pub(crate) fn own_mailbox(&mut self) -> Option<&Mailbox<A, K>> {
        if self.mailbox.as_ref().is_none_or(|mailbox| mailbox.has_left()) {
            self.mailbox = self.worker.core.mailbox_if_any(self.worker.slot);
        }
        self.mailbox.as_deref()
    }

    /// The next message of its own mailbox, unless others should have a turn.
    pub(super) fn take_own_mail(&mut self) -> Option<Taken> {
        let taken = match self.rounds.mail < MAIL_RUN {
            true => take_mail(self, false),
            false => None,
        };
        if taken.is_none() {
            self.rounds.mail = 0;
        }
        taken
    }

    /// Takes the next message from any shard; the worker has no place. It may have stepped aside,
    /// and the pool may have ended.
    pub(crate) fn take_anywhere(&mut self) -> Taken {
        if self.is_over() {
            return Taken::Nothing;
        }
        if (self.slot_state.has_orders() || self.worker.core.queue.wake.has_urgent())
            && let Some(taken) = take_first(self)
        {
            return taken;
        }
        let taken = take_from_shards(self);
        if taken != Taken::Nothing || self.rounds.urgent.max(self.rounds.mail) == 0 {
            return taken;
        }
        // Others have had their turn, and there was nothing.
        (self.rounds.urgent, self.rounds.mail) = (0, 0);
        take_first(self).unwrap_or(Taken::Nothing)
    }

    pub(super) fn begin(&mut self, source: Source, entry: Queued<A, K>) -> Taken {
        self.worker.source = source;
        self.delivery.message = Some(entry.message);
        self.delivery.extra = entry.extra;
        self.delivery.class = Class::of(entry.urgent);
        self.delivery.stamp = entry.stamp;
        self.rounds.urgent = match entry.urgent {
            true => self.rounds.urgent.saturating_add(1),
            false => 0,
        };
        let taken = self.start();
        discard(entry.key);
        taken
    }
}

/// Takes the next message after the finished one, if handlers usually wait, in the simple case: the
/// next of its key, or of its shard if the worker `stays`, or of any.
fn take_next_near<A: Actor, K: Key>(
    in_flight: &mut InFlight<A, K>,
    source: Source,
    stays: bool,
) -> Option<Taken> {
    let Source::Lane { index, id, run } = source else { return None };
    let (core, worker) = (&in_flight.worker.core, in_flight.worker.slot);
    if !core.queue.wake.waits() {
        return None;
    }
    match take_behind_near(core, worker, (index, id, run), stays, &mut in_flight.delivery) {
        NextNear::InDelivery(source) => Some(start_near(in_flight, source)),
        NextNear::Nothing => {
            in_flight.worker.source = Source::None;
            Some(in_flight.take_anywhere())
        }
        NextNear::Unknown => None,
    }
}

/// A message that was taken nearby is in the delivery.
fn start_near<A: Actor, K: Key>(in_flight: &mut InFlight<A, K>, source: Source) -> Taken {
    in_flight.worker.source = source;
    in_flight.rounds.urgent = match in_flight.delivery.class {
        Class::Urgent => in_flight.rounds.urgent.saturating_add(1),
        Class::Normal => 0,
    };
    in_flight.start()
}

/// Like `take_anywhere`, for a worker that has left its lane, if handlers usually wait. Otherwise
/// it takes nothing: then the driver decides first where to look.
fn take_behind_lane<A: Actor, K: Key>(in_flight: &mut InFlight<A, K>, source: Source) -> Taken {
    match source {
        Source::Lane { .. } if in_flight.worker.core.queue.wake.waits() => {
            in_flight.take_anywhere()
        }
        _ => Taken::Nothing,
    }
}

/// True for the first few messages of one shard in a row. After those, the other shards have their
/// turn as soon as the lane is empty; otherwise they would wait until another worker comes round.
/// False for a shard of another thread: workers of both threads would meet at its lock with every
/// message.
fn stays_in_shard<A: Actor, K: Key>(in_flight: &mut InFlight<A, K>, source: Source) -> bool {
    let wake = &in_flight.worker.core.queue.wake;
    if !matches!(source, Source::Lane { index, .. } if wake.waits() && wake.is_own(index)) {
        return false;
    }
    in_flight.rounds.runs = (in_flight.rounds.runs + 1).min(NEAR_IN_A_SHARD);
    in_flight.rounds.runs < NEAR_IN_A_SHARD
}

fn take_next_shared<A: Actor, K: Key>(
    in_flight: &mut InFlight<A, K>,
    index: usize,
    alone: bool,
) -> Taken {
    in_flight.rounds.run += 1;
    let core = &in_flight.worker.core;
    let shard = &core.queue.shards[index];
    if in_flight.rounds.run <= in_flight.rounds.longest_run
        && core.queue.pop_in_run(index, shard, &mut in_flight.delivery)
    {
        return in_flight.start_next();
    }
    end_run(in_flight, index, alone);
    Taken::Nothing
}

/// The next message of a keyed shard, in the simple case: straight into its place, since each
/// further move of a large message costs time. If handlers are quick, most were taken as a run
/// before.
fn take_next_at_head<A: Actor, K: Key>(in_flight: &mut InFlight<A, K>) -> Option<Taken> {
    let WorkerContext { core, source: Source::Head { index, epoch, hash, run }, .. } =
        &mut in_flight.worker
    else {
        return None;
    };
    if core.queue.wake.is_quick()
        || *run >= budget(&core.queue.wake)
        || core.queue.wake.has_urgent_at(*index)
    {
        return None;
    }
    *hash = take_at_head(core, &core.queue.shards[*index], *epoch, &mut in_flight.delivery)?;
    *run += 1;
    in_flight.rounds.urgent = 0;
    Some(in_flight.start())
}

/// Takes the first of the things that come before the queue, if there are any.
#[cold]
fn take_first_of_all<A: Actor, K: Key>(in_flight: &mut InFlight<A, K>) -> Option<Taken> {
    count_runs(in_flight);
    if let Some(taken) = take_first(in_flight) {
        return Some(taken);
    }
    if in_flight.rounds.is_normal_due() && matches!(in_flight.worker.source, Source::Head { .. }) {
        // There may be only urgent ones here.
        in_flight.worker.give_up_place();
        return Some(Taken::Nothing);
    }
    None
}

/// Ends the run of urgent messages, or of mail, if the last message was of another class or queue.
fn count_runs<A: Actor, K: Key>(in_flight: &mut InFlight<A, K>) {
    if in_flight.delivery.class == Class::Normal {
        in_flight.rounds.urgent = 0;
    }
    match in_flight.worker.source {
        Source::Mailbox => in_flight.worker.source = Source::None,
        _ => in_flight.rounds.mail = 0,
    }
}

/// Takes the things that come before the queue: urgent messages, and the worker's own mailbox.
/// After a run of urgent messages, and after one of its own, the others have a turn.
#[cold]
fn take_first<A: Actor, K: Key>(in_flight: &mut InFlight<A, K>) -> Option<Taken> {
    if in_flight.is_over() {
        return None;
    }
    if !in_flight.rounds.is_normal_due()
        && let Some(taken) = take_urgent(in_flight)
    {
        return Some(taken);
    }
    match in_flight.rounds.mail < MAIL_RUN {
        true => take_mail(in_flight, false),
        false => None,
    }
}

fn take_urgent<A: Actor, K: Key>(in_flight: &mut InFlight<A, K>) -> Option<Taken> {
    if let Some(taken) = take_mail(in_flight, true) {
        return Some(taken);
    }
    if !in_flight.worker.core.queue.wake.has_urgent() {
        return None;
    }
    if !in_flight.worker.core.keyed() {
        let entry = in_flight.worker.core.queue.take_urgent()?;
        return Some(in_flight.begin(in_flight.worker.source, entry));
    }
    let own = match in_flight.worker.source {
        Source::Head { index, .. } => Some(index),
        _ => None,
    };
    let (source, entry) = take_ready_urgent(&in_flight.worker.core, in_flight.worker.slot, own)?;
    in_flight.worker.give_up_place();
    Some(in_flight.begin(source, entry))
}

fn take_mail<A: Actor, K: Key>(in_flight: &mut InFlight<A, K>, urgent_only: bool) -> Option<Taken> {
    if !in_flight.slot_state.has_orders() {
        return None;
    }
    if in_flight.slot_state.has(HAND_OVER) {
        hand_over(&in_flight.worker.core, in_flight.worker.slot);
    }
    if in_flight.own_mailbox().is_none() {
        forget_mail(&in_flight.worker.core, in_flight.worker.slot);
    }
    let entry = in_flight.own_mailbox()?.pop(urgent_only)?;
    in_flight.worker.give_up_place();
    in_flight.rounds.mail += 1;
    Some(in_flight.begin(Source::Mailbox, entry))
}

fn take_from_shards<A: Actor, K: Key>(in_flight: &mut InFlight<A, K>) -> Taken {
    if !in_flight.worker.core.keyed() {
        return take_shared(in_flight);
    }
    let is_normal_due = in_flight.rounds.is_normal_due();
    if in_flight.worker.core.queue.wake.waits()
        && !is_normal_due
        && in_flight.rounds.looks_back == 0
    {
        return take_near(in_flight);
    }
    let (core, worker, from) =
        (&in_flight.worker.core, in_flight.worker.slot, in_flight.rounds.cursor);
    let taken = match is_normal_due {
        true => take_ready_normal(core, worker, &mut in_flight.rounds.cursor),
        false => take_ready(core, worker, &mut in_flight.rounds.cursor),
    };
    if in_flight.rounds.looks_back > 0 {
        in_flight.rounds.looks_back -= 1;
        in_flight.rounds.cursor = from;
    }
    match taken {
        Some((source, entry)) => {
            in_flight.rounds.longest_run = budget(&in_flight.worker.core.queue.wake);
            in_flight.begin(source, entry)
        }
        None => Taken::Nothing,
    }
}

/// Like `take_from_shards` with keys, if handlers usually wait.
fn take_near<A: Actor, K: Key>(in_flight: &mut InFlight<A, K>) -> Taken {
    (in_flight.rounds.runs, in_flight.rounds.longest_run) =
        (0, budget(&in_flight.worker.core.queue.wake));
    let (core, worker) = (&in_flight.worker.core, in_flight.worker.slot);
    match take_ready_near(core, worker, &mut in_flight.delivery) {
        Some(TakenNear::InDelivery(source)) => start_near(in_flight, source),
        Some(TakenNear::Entry(source, entry)) => in_flight.begin(source, entry),
        None => Taken::Nothing,
    }
}

/// A run without keys has ended. If it was timed, its pace is noted.
#[cold]
fn end_run<A: Actor, K: Key>(in_flight: &mut InFlight<A, K>, index: usize, alone: bool) {
    in_flight.worker.source = Source::BetweenRuns { index, alone };
    if let Some(since) = in_flight.rounds.timed_since.take() {
        in_flight.worker.core.note_pace(since.elapsed() / in_flight.rounds.run);
    }
}

/// The first message of a run is in the delivery.
fn begin_run<A: Actor, K: Key>(in_flight: &mut InFlight<A, K>, index: usize, alone: bool) -> Taken {
    // A run of one message, with the wait of its handler, says nothing about the pace.
    let times = !in_flight.worker.core.queue.wake.waits() && in_flight.rounds.times_this();
    in_flight.rounds.timed_since = times.then(Instant::now);
    in_flight.worker.source = Source::Shared { index, alone };
    (in_flight.rounds.run, in_flight.rounds.longest_run) =
        (0, budget(&in_flight.worker.core.queue.wake));
    in_flight.start()
}

/// Starts another run in the shard that the worker keeps to, whose senders are likely to share its
/// caches; from time to time, and if there is nothing, it goes to the next one.
fn take_shared<A: Actor, K: Key>(in_flight: &mut InFlight<A, K>) -> Taken {
    if let Source::BetweenRuns { index, alone } = in_flight.worker.source {
        in_flight.rounds.runs += 1;
        let quick = in_flight.worker.core.queue.wake.is_quick();
        let most = if quick { RUNS_IN_A_SHARD } else { LONG_RUNS_IN_A_SHARD };
        if quick && in_flight.worker.core.queue.wake.is_any_free() {
            in_flight.rounds.runs += in_flight.rounds.run / MESSAGES_OF_A_RUN;
        }
        if !in_flight.worker.core.queue.wake.is_ready_at(index) {
            // There is nothing.
        } else if in_flight.rounds.runs < most
            && in_flight.worker.core.queue.pop_shared(index, &mut in_flight.delivery)
        {
            return begin_run(in_flight, index, alone);
        }
        in_flight.rounds.cursor = (index as u32 + 1) % 64;
        in_flight.worker.give_up_place();
    }
    in_flight.rounds.runs = 0;
    let join = std::mem::take(&mut in_flight.rounds.join);
    match in_flight.worker.core.queue.take_shared(
        in_flight.rounds.cursor,
        join,
        &mut in_flight.delivery,
    ) {
        Some((index, alone)) => {
            // However the worker leaves: a handler may suspend.
            in_flight.rounds.cursor = (index as u32 + 1) % 64;
            begin_run(in_flight, index, alone)
        }
        None => Taken::Nothing,
    }
}

/// A key that has used up its quota yields to others of its shard, not to those of all shards.
/// Otherwise the hottest key, which decides when all work is done, would wait until workers come
/// round again. So the worker looks there first, and once more after that.
fn look_where_a_key_gave_way(rounds: &mut Rounds, source: Source) {
    if let Source::Lane { index, run, .. } = source
        && run + 1 >= QUOTA
    {
        rounds.cursor = index as u32;
        rounds.looks_back = LOOKS_BACK;
    }
}
