//! What a worker takes next.

use std::time::Instant;

use greenroom_queue::{discard::discard, entry::URGENT_RUN, sync::tuned};

use super::{InFlight, Source, Taken, WorkerContext};
use crate::{
    Actor, Class,
    pool::{
        core::{
            Core,
            take::{NextNear, QUOTA, TakenNear},
        },
        membership::{mailbox::Mailbox, slot_state::HAND_OVER},
        pool_payload::{Key, Queued, ShardOf},
    },
};

/// One run in this many is timed, with two looks at the clock.
const RUNS_PER_TIMING: u32 = 8;

/// Runs from one shard before a worker looks at the others, if handlers are quick.
const RUNS_IN_A_SHARD: u32 = 16;

/// While other filled shards have no worker, a run of more messages counts as several.
const MESSAGES_OF_A_RUN: u32 = 128;

/// Messages of one shard in a row, if handlers usually wait.
const NEAR_IN_A_SHARD: u32 = tuned(8, 3);

/// Looks at the shard of a key that gave way, before its turn: the first look may find the key
/// that it gave way to.
const LOOKS_BACK: u8 = 2;

/// As `RUNS_IN_A_SHARD`, if handlers are not quick: the caches of the shard matter less, and other
/// shards would wait long.
const LONG_RUNS_IN_A_SHARD: u32 = 2;

/// Messages from its own mailbox that a worker takes in a row while others may wait for it.
const MAIL_RUN: u32 = 64;

impl<A: Actor, K: Key> InFlight<A, K> {
    /// Takes the next message from the place of the last one; behind a lane, if handlers usually
    /// wait, from anywhere.
    pub(crate) fn take_next(&mut self) -> Taken {
        if self.is_interrupted()
            && let Some(taken) = self.take_first_of_all()
        {
            return taken;
        }
        match self.worker.source {
            Source::Shared { index, alone } => {
                self.slot_state.set_busy_since(self.worker.core.frame.telemetry.coarse.shown());
                let taken = self.take_next_shared(index, alone);
                if taken != Taken::InHand {
                    self.slot_state.set_free();
                }
                taken
            }
            Source::BetweenRuns { .. } => Taken::Nothing,
            source => {
                if let Some(taken) = self.take_next_at_head() {
                    return taken;
                }
                let stays = self.stays_in_shard(source);
                if let Some(taken) = self.take_next_near(source, stays) {
                    return taken;
                }
                self.worker.source = Source::None;
                match self.worker.core.next(self.worker.slot, source, stays) {
                    Some((source, entry)) => self.begin(source, entry),
                    None => {
                        self.look_where_a_key_gave_way(source);
                        self.take_behind_lane(source)
                    }
                }
            }
        }
    }

    /// As `take_next`, for a worker whose handler has waited: it has left the shard of its last
    /// message, and looks at the ready shards.
    pub(crate) fn take_after_wait(&mut self) -> Taken {
        match self.worker.source {
            Source::None if !self.is_interrupted() => self.take_from_shards(),
            _ => self.take_next(),
        }
    }

    /// Takes the next message if the handler of the last one has waited, as handlers here usually
    /// do, and nothing comes first. True if one is in hand; what is to be done then is done.
    pub(crate) fn take_again_after_wait(&mut self, core: &Core<A, K>) -> bool {
        if !self.worker.has_suspended || self.is_interrupted() || core.frame.is_limited() {
            return false;
        }
        let is_taken = self.take_after_wait() == Taken::InHand;
        if is_taken {
            self.worker.has_suspended = false;
            self.rounds.waits += 1;
            self.counts_again();
            if core.queue.wake.wants_more() {
                core.queue.wake.one(&core.frame.clock.watchdog);
            }
        }
        is_taken
    }

    /// Takes the next message behind the finished one, if handlers usually wait, in the case
    /// without further decisions: the next of its key, or of its shard if the worker `stays`, or
    /// of any.
    fn take_next_near(&mut self, source: Source, stays: bool) -> Option<Taken> {
        let Source::Lane { index, id, run } = source else { return None };
        let (core, worker) = (&self.worker.core, self.worker.slot);
        if !core.queue.wake.waits() {
            return None;
        }
        match core.next_near(worker, (index, id, run), stays, &mut self.delivery) {
            NextNear::InDelivery(source) => Some(self.start_near(source)),
            NextNear::Nothing => {
                self.worker.source = Source::None;
                Some(self.take_anywhere())
            }
            NextNear::Unknown => None,
        }
    }

    /// A message that was taken near is in the delivery.
    fn start_near(&mut self, source: Source) -> Taken {
        self.worker.source = source;
        self.rounds.urgent = match self.delivery.class {
            Class::Urgent => self.rounds.urgent.saturating_add(1),
            Class::Normal => 0,
        };
        self.start()
    }

    /// As `take_anywhere`, for a worker that has left its lane, if handlers usually wait; nothing
    /// for others: there the driver weighs first where to look.
    fn take_behind_lane(&mut self, source: Source) -> Taken {
        match source {
            Source::Lane { .. } if self.worker.core.queue.wake.waits() => self.take_anywhere(),
            _ => Taken::Nothing,
        }
    }

    /// True for the first few messages of one shard in a row: then the other shards have their turn
    /// as soon as the lane is empty, or they would wait until another worker comes round. False
    /// for a shard that is not this thread's: workers of both would meet at its lock, with every
    /// message.
    fn stays_in_shard(&mut self, source: Source) -> bool {
        let wake = &self.worker.core.queue.wake;
        if !matches!(source, Source::Lane { index, .. } if wake.waits() && wake.is_own(index)) {
            return false;
        }
        self.rounds.runs = (self.rounds.runs + 1).min(NEAR_IN_A_SHARD);
        self.rounds.runs < NEAR_IN_A_SHARD
    }

    /// A key that has had its quota gives way to others of its shard, not to those of all shards:
    /// otherwise the hottest key, which decides when all is done, would wait for as long as it
    /// takes workers to come round. So the worker looks there first, and once more after that.
    fn look_where_a_key_gave_way(&mut self, source: Source) {
        if let Source::Lane { index, run, .. } = source
            && run + 1 >= QUOTA
        {
            self.rounds.cursor = index as u32;
            self.rounds.looks_back = LOOKS_BACK;
        }
    }

    /// True if something may come before the next message of the queue.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn is_interrupted(&self) -> bool {
        self.slot_state.has_orders() || self.worker.core.queue.wake.has_urgent()
    }

    fn take_next_shared(&mut self, index: usize, alone: bool) -> Taken {
        self.rounds.run += 1;
        let core = &self.worker.core;
        let shard = &core.queue.shards[index];
        if self.rounds.run <= self.rounds.longest_run
            && core.pop_in_run(index, shard, &mut self.delivery)
        {
            return self.start_next();
        }
        self.end_run(index, alone);
        Taken::Nothing
    }

    /// The next message of a keyed shard, in the case without further decisions: straight into its
    /// place, since each further move of a large message costs. If handlers are quick, most were
    /// taken as a run before.
    fn take_next_at_head(&mut self) -> Option<Taken> {
        let WorkerContext { core, source: Source::Head { index, epoch, hash, run }, .. } =
            &mut self.worker
        else {
            return None;
        };
        if core.queue.wake.is_quick()
            || *run >= core.budget()
            || core.queue.wake.has_urgent_at(*index)
        {
            return None;
        }
        *hash = core.step(&core.queue.shards[*index], *epoch, &mut self.delivery)?;
        *run += 1;
        self.rounds.urgent = 0;
        Some(self.start())
    }

    /// The shard of the run, and how many more messages [`take_in_run`](Self::take_in_run) may take
    /// there, up to `most`.
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
                    self.end_run(index, alone);
                }
            }
            _ => {}
        }
    }

    /// As `take_next`, in the middle of a run in this shard and for as long as
    /// nothing else comes first.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn take_in_run(
        &mut self,
        core: &Core<A, K>,
        shard: &ShardOf<A, K>,
    ) -> Option<Taken> {
        // That the pool has ended is an order as well.
        if self.is_interrupted() {
            return None;
        }
        match &mut self.worker.source {
            Source::Shared { index, .. } => {
                let more = core.pop_in_run(*index, shard, &mut self.delivery);
                Some(if more { self.start_next() } else { Taken::Nothing })
            }
            Source::Head { epoch, hash, .. } => {
                *hash = core.step(shard, *epoch, &mut self.delivery)?;
                Some(self.start_next())
            }
            _ => None,
        }
    }

    /// Takes the first of the things that come before the queue, if there are any.
    #[cold]
    fn take_first_of_all(&mut self) -> Option<Taken> {
        self.count_runs();
        if let Some(taken) = self.take_first() {
            return Some(taken);
        }
        if self.is_normal_due() && matches!(self.worker.source, Source::Head { .. }) {
            // Perhaps there are only urgent ones here.
            self.give_up_place();
            return Some(Taken::Nothing);
        }
        None
    }

    /// Ends the run of urgent messages, or of mail, if the last message was of
    /// another class or queue.
    fn count_runs(&mut self) {
        if self.delivery.class == Class::Normal {
            self.rounds.urgent = 0;
        }
        match self.worker.source {
            Source::Mailbox => self.worker.source = Source::None,
            _ => self.rounds.mail = 0,
        }
    }

    /// True after a run of urgent messages.
    fn is_normal_due(&self) -> bool {
        self.rounds.urgent >= URGENT_RUN
    }

    /// Takes the things that come before the queue: urgent messages, and the worker's own mailbox.
    /// After a run of urgent messages, and after one of its own, the others have a turn.
    #[cold]
    fn take_first(&mut self) -> Option<Taken> {
        if self.is_over() {
            return None;
        }
        if !self.is_normal_due()
            && let Some(taken) = self.take_urgent()
        {
            return Some(taken);
        }
        match self.rounds.mail < MAIL_RUN {
            true => self.take_mail(false),
            false => None,
        }
    }

    fn take_urgent(&mut self) -> Option<Taken> {
        if let Some(taken) = self.take_mail(true) {
            return Some(taken);
        }
        if !self.worker.core.queue.wake.has_urgent() {
            return None;
        }
        if !self.worker.core.keyed() {
            let entry = self.worker.core.take_urgent()?;
            return Some(self.begin(self.worker.source, entry));
        }
        let own = match self.worker.source {
            Source::Head { index, .. } => Some(index),
            _ => None,
        };
        let (source, entry) = self.worker.core.take_from_urgent_shard(self.worker.slot, own)?;
        self.give_up_place();
        Some(self.begin(source, entry))
    }

    /// The worker's own mailbox, if there has been anything for it.
    pub(crate) fn own_mailbox(&mut self) -> Option<&Mailbox<A, K>> {
        if self.mailbox.as_ref().is_none_or(|mailbox| mailbox.has_left()) {
            self.mailbox = self.worker.core.mailbox_if_any(self.worker.slot);
        }
        self.mailbox.as_deref()
    }

    /// The next message of its own mailbox, unless others are to have a turn.
    pub(super) fn take_own_mail(&mut self) -> Option<Taken> {
        let taken = match self.rounds.mail < MAIL_RUN {
            true => self.take_mail(false),
            false => None,
        };
        if taken.is_none() {
            self.rounds.mail = 0;
        }
        taken
    }

    fn take_mail(&mut self, urgent_only: bool) -> Option<Taken> {
        if !self.slot_state.has_orders() {
            return None;
        }
        if self.slot_state.has(HAND_OVER) {
            self.worker.core.hand_over(self.worker.slot);
        }
        if self.own_mailbox().is_none() {
            self.worker.core.forget_mail(self.worker.slot);
        }
        let entry = self.own_mailbox()?.pop(urgent_only)?;
        self.give_up_place();
        self.rounds.mail += 1;
        Some(self.begin(Source::Mailbox, entry))
    }

    /// Takes the next message from any shard; the worker has no place. It may have stood aside, and
    /// the pool may have ended.
    pub(crate) fn take_anywhere(&mut self) -> Taken {
        if self.is_over() {
            return Taken::Nothing;
        }
        if (self.slot_state.has_orders() || self.worker.core.queue.wake.has_urgent())
            && let Some(taken) = self.take_first()
        {
            return taken;
        }
        let taken = self.take_from_shards();
        if taken != Taken::Nothing || self.rounds.urgent.max(self.rounds.mail) == 0 {
            return taken;
        }
        // Others have had their turn, and there was nothing.
        (self.rounds.urgent, self.rounds.mail) = (0, 0);
        self.take_first().unwrap_or(Taken::Nothing)
    }

    fn take_from_shards(&mut self) -> Taken {
        if !self.worker.core.keyed() {
            return self.take_shared();
        }
        let is_normal_due = self.is_normal_due();
        if self.worker.core.queue.wake.waits() && !is_normal_due && self.rounds.looks_back == 0 {
            return self.take_near();
        }
        let (core, worker, from) = (&self.worker.core, self.worker.slot, self.rounds.cursor);
        let taken = match is_normal_due {
            true => core.take_normal(worker, &mut self.rounds.cursor),
            false => core.take(worker, &mut self.rounds.cursor),
        };
        if self.rounds.looks_back > 0 {
            self.rounds.looks_back -= 1;
            self.rounds.cursor = from;
        }
        match taken {
            Some((source, entry)) => {
                self.rounds.longest_run = self.worker.core.budget();
                self.begin(source, entry)
            }
            None => Taken::Nothing,
        }
    }

    /// As `take_from_shards` with keys, if handlers usually wait.
    fn take_near(&mut self) -> Taken {
        (self.rounds.runs, self.rounds.longest_run) = (0, self.worker.core.budget());
        let (core, worker) = (&self.worker.core, self.worker.slot);
        match core.take_near(worker, &mut self.delivery) {
            Some(TakenNear::InDelivery(source)) => self.start_near(source),
            Some(TakenNear::Entry(source, entry)) => self.begin(source, entry),
            None => Taken::Nothing,
        }
    }

    /// A run without keys is at its end. If the run was timed, its pace is noted.
    #[cold]
    fn end_run(&mut self, index: usize, alone: bool) {
        self.worker.source = Source::BetweenRuns { index, alone };
        if let Some(since) = self.rounds.timed_since.take() {
            self.worker.core.note_pace(since.elapsed() / self.rounds.run);
        }
    }

    /// True for one run in a few, or one message that was handed to this worker.
    #[inline]
    pub(crate) fn times_this(&mut self) -> bool {
        let times = self.rounds.timed.is_multiple_of(RUNS_PER_TIMING);
        self.rounds.timed = self.rounds.timed.wrapping_add(1);
        times
    }

    /// The first message of a run is in the delivery.
    fn begin_run(&mut self, index: usize, alone: bool) -> Taken {
        // A run of one message, and the wait of its handler, tell no pace.
        let times = !self.worker.core.queue.wake.waits() && self.times_this();
        self.rounds.timed_since = times.then(Instant::now);
        self.worker.source = Source::Shared { index, alone };
        (self.rounds.run, self.rounds.longest_run) = (0, self.worker.core.budget());
        self.start()
    }

    /// Begins another run in the shard that the worker keeps to, whose senders are likely to share
    /// its caches; from time to time, and if there is nothing, goes to the next one.
    fn take_shared(&mut self) -> Taken {
        if let Source::BetweenRuns { index, alone } = self.worker.source {
            self.rounds.runs += 1;
            let quick = self.worker.core.queue.wake.is_quick();
            let most = if quick { RUNS_IN_A_SHARD } else { LONG_RUNS_IN_A_SHARD };
            if quick && self.worker.core.queue.wake.is_any_free() {
                self.rounds.runs += self.rounds.run / MESSAGES_OF_A_RUN;
            }
            if !self.worker.core.queue.wake.is_ready_at(index) {
                // There is nothing.
            } else if self.rounds.runs < most
                && self.worker.core.pop_shared(index, &mut self.delivery)
            {
                return self.begin_run(index, alone);
            }
            self.rounds.cursor = (index as u32 + 1) % 64;
            self.give_up_place();
        }
        self.rounds.runs = 0;
        let join = std::mem::take(&mut self.rounds.join);
        match self.worker.core.take_shared(self.rounds.cursor, join, &mut self.delivery) {
            Some((index, alone)) => {
                // In whatever way it leaves: a handler may suspend.
                self.rounds.cursor = (index as u32 + 1) % 64;
                self.begin_run(index, alone)
            }
            None => Taken::Nothing,
        }
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
