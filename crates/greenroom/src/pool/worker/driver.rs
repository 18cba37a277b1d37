//! A worker's next step: a state machine that runs no handler and awaits nothing.
//!
//! ```text
//!              ┌───────────────────────── a message is in hand ─────────────────────▶ Run
//!              │                             │ and another worker was woken ────▶ Defer
//!  next ──▶ its own shard ── nothing ──▶ every shard ── nothing ────────────────────▶ Park
//!              │                             ▲
//!              └───────── Search ────────────┘
//! ```
//!
//! Before a worker looks for messages, the following come in this order: the end, signals, an exit
//! that the actor has requested, a pass of the pool's limits, and the turn of others. Of these,
//! only the end and signals come again before the look that follows a search. The shell carries out
//! each step and asks again. In the product, the shell is the loop in `worker.rs`; in the models, a
//! checker runs it. A step is taken once a run, and carries no message.

use std::mem;

use greenroom_queue::pacing::{Pacing, Patience};

use super::in_flight::{InFlight, RunState, Source, Taken};
use crate::{
    Actor,
    pool::{builder::settings::Settings, membership::slot_state::SIGNAL, pool_payload::Key},
};

/// The worker's next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It starts nothing more.
    End,
    /// Signals wait.
    Hear,
    /// The actor has requested its end.
    Exit,
    /// The worker needs a pass of the pool's limits. The shell reports whether it came.
    Pass,
    /// Others have a turn.
    Yield,
    /// The pass is there, and the next message is that of the share whose turn it is. The shell
    /// reports that it may be taken.
    Fair,
    /// The worker steps aside once, and counts as one that is about to look.
    Search,
    /// There is nothing: the worker parks. The shell reports when it is up again.
    Park,
    /// A message is in hand, and another worker was woken for others. The runtime queues that
    /// worker where only this thread looks, so this one yields once before it may compute for long.
    Defer,
    /// A message is in hand. The shell reports how many were attempted.
    Run,
}

/// The step that was just done, if the next one depends on it.
#[derive(Debug, Default)]
enum After {
    #[default]
    Anything,
    Hear,
    Search,
    Defer,
    Fair,
}

/// A worker's state between two steps.
pub(crate) struct Driver {
    pacing: Pacing,
    after: After,
    /// A pass is there for the next message.
    has_pass: bool,
}

impl Driver {
    pub(crate) fn new<A: Actor, K>(settings: &Settings<A, K>) -> Self {
        let patience = Patience::new(settings.derived.uses_handoff);
        Self { pacing: Pacing::new(patience), after: After::Anything, has_pass: false }
    }

    /// The next step. `exits` is true if the actor has requested its end.
    #[inline]
    pub(crate) fn next<A: Actor, K: Key>(
        &mut self,
        in_flight: &mut InFlight<A, K>,
        exits: bool,
    ) -> Step {
        loop {
            let looked = match mem::take(&mut self.after) {
                before @ (After::Anything | After::Hear) => {
                    let has_heard = matches!(before, After::Hear);
                    if has_heard {
                        // A hook may have suspended, which says nothing about handlers.
                        in_flight.worker.has_suspended = false;
                    }
                    match self.comes_first(in_flight, exits, has_heard) {
                        Some(step) => return step,
                        None => self.look(in_flight),
                    }
                }
                After::Search => self.look_after_search(in_flight),
                After::Fair => Ok(in_flight.take_of_shares()),
                After::Defer if in_flight.still_starts() => return Step::Run,
                After::Defer => Ok(Taken::Skipped),
            };
            let taken = match looked {
                Ok(taken) => taken,
                Err(step) => return step,
            };
            self.pacing.looked();
            match taken {
                Taken::InHand => return self.begin(in_flight),
                Taken::Skipped => {}
                Taken::Nothing if in_flight.is_over() => return Step::End,
                Taken::Nothing => return Step::Park,
            }
        }
    }

    /// Returns the step that comes before the next message, if there is one.
    #[inline]
    fn comes_first<A: Actor, K: Key>(
        &mut self,
        in_flight: &InFlight<A, K>,
        exits: bool,
        has_heard: bool,
    ) -> Option<Step> {
        if in_flight.is_over() {
            return Some(Step::End);
        }
        // Only once: without a mailbox the order stays, and the following look clears it.
        if !has_heard && let Some(step) = self.hears(in_flight) {
            return Some(step);
        }
        if exits {
            return Some(Step::Exit);
        }
        // Limits come and go while the pool runs.
        if in_flight.worker.core.frame.is_limited() {
            if !self.has_pass {
                return Some(Step::Pass);
            }
            if in_flight.worker.core.frame.is_shared() {
                return Some(self.turn_of_shares(in_flight));
            }
        }
        if self.pacing.turn_is_over(&in_flight.worker.core.queue.wake) {
            self.pacing.begin_turn();
            return Some(Step::Yield);
        }
        None
    }

    /// With shares, a worker takes messages only from there. Others have their turn before.
    fn turn_of_shares<A: Actor, K: Key>(&mut self, in_flight: &InFlight<A, K>) -> Step {
        match self.pacing.turn_is_over(&in_flight.worker.core.queue.wake) {
            true => {
                self.pacing.begin_turn();
                Step::Yield
            }
            false => Step::Fair,
        }
    }

    /// Returns the step for waiting signals, if there are any.
    #[inline]
    fn hears<A: Actor, K: Key>(&mut self, in_flight: &InFlight<A, K>) -> Option<Step> {
        if in_flight.slot_state.has_orders() && in_flight.slot_state.has(SIGNAL) {
            self.after = After::Hear;
            return Some(Step::Hear);
        }
        None
    }

    /// Looks for the next message where the last one was, and then everywhere; or returns a step
    /// that comes in between.
    #[inline]
    fn look<A: Actor, K: Key>(&mut self, in_flight: &mut InFlight<A, K>) -> Result<Taken, Step> {
        let from_lane = matches!(in_flight.worker.source, Source::Lane { .. });
        let taken = match in_flight.worker.run_state {
            RunState::Uncounted => in_flight.take_after_wait(),
            _ => in_flight.take_next(),
        };
        if taken != Taken::Nothing {
            return Ok(taken);
        }
        let core = &in_flight.worker.core;
        // With keys, a sender's messages go to all shards: the ready ones come first. A handler
        // that has waited has left its shard, and others are most likely ready.
        let goes_on = (core.keyed() || self.pacing.has_waited()) && core.queue.wake.any_ready();
        let may_search = !from_lane && !goes_on && in_flight.worker.run_state == RunState::Awake;
        if may_search && self.pacing.searches() {
            self.after = After::Search;
            return Err(Step::Search);
        }
        self.pacing.begin_row();
        Ok(in_flight.take_anywhere())
    }

    fn look_after_search<A: Actor, K: Key>(
        &mut self,
        in_flight: &mut InFlight<A, K>,
    ) -> Result<Taken, Step> {
        self.pacing.begin_turn();
        self.pacing.begin_row();
        if let Some(step) = self.hears(in_flight) {
            return Err(step);
        }
        let taken = in_flight.take_anywhere();
        self.pacing.has_searched(taken != Taken::Nothing);
        Ok(taken)
    }

    /// A message is in hand.
    #[inline]
    fn begin<A: Actor, K: Key>(&mut self, in_flight: &mut InFlight<A, K>) -> Step {
        self.pacing.found(in_flight.delivery.is_call());
        // Before the handler is polled, because it may compute for long.
        in_flight.worker.counts_again();
        // If handlers usually wait, this worker makes room as soon as its own handler suspends.
        let (wake, watchdog) =
            (&in_flight.worker.core.queue.wake, &in_flight.worker.core.frame.clock.watchdog);
        let wakes = wake.wants_more() && wake.one(watchdog);
        if wakes && !wake.waits() {
            self.after = After::Defer;
            return Step::Defer;
        }
        Step::Run
    }

    /// The wait for a pass is over; `is_there` if it came.
    pub(crate) fn passed(&mut self, is_there: bool) {
        self.has_pass = is_there;
    }

    /// The worker takes a message of the share whose turn it is.
    pub(crate) fn takes_fairly(&mut self) {
        self.after = After::Fair;
    }

    /// The message in hand and those behind it in the same run have been attempted, `attempts` in
    /// total. Their pass is used up.
    #[inline]
    pub(crate) fn ran<A: Actor, K: Key>(&mut self, in_flight: &mut InFlight<A, K>, attempts: u32) {
        self.has_pass = false;
        let has_waited = mem::take(&mut in_flight.worker.has_suspended);
        let usual = in_flight.worker.core.queue.wake.waits();
        let changes = match mem::take(&mut in_flight.rounds.waits) {
            0 => self.pacing.attempted(attempts, has_waited, usual),
            waits => self.pacing.attempted_after(waits, has_waited, usual),
        };
        if let Some(waits) = changes {
            in_flight.worker.core.wait_usually(waits);
        }
    }

    /// The worker was parked, and is up. Its pass was given back, and others had a turn.
    pub(crate) fn unparked(&mut self) {
        self.has_pass = false;
        self.pacing.begin_turn();
    }
}
