//! Exits: of a worker, and of the pool because of one.

use std::{
    hash::Hash,
    ptr,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::time::Instant;

use super::Core;
use crate::{
    Actor, AnyAddress, ExitReason, PoolEvent, Stop,
    any_address::Erased,
    life::Signal,
    pool::membership::{
        mailbox::Mailbox,
        restart::WhenExhausted,
        slot_state::{KILLED, REST, Status},
    },
};

/// What becomes of a slot whose worker has ended.
pub(crate) enum Sequel {
    /// It is started again after this wait.
    Restart(Duration),
    /// Its task ends.
    Over,
    /// Its task ends, and its slot is not its own any more.
    GivenUp,
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// A worker has ended by itself. It holds nothing any more.
    pub(crate) fn sequel(self: &Arc<Self>, slot: usize, reason: &ExitReason) -> Sequel {
        let slot_state = self.membership.slots.at(slot);
        // Pairs with the store in `end`. If the end is missed, the worker finds it in `over`,
        // before it is built again.
        let over = self.lifecycle.ended.load(Ordering::SeqCst);
        if over || slot_state.status() == Status::Leaving || slot_state.has(REST) {
            return Sequel::Over;
        }
        if std::mem::take(&mut self.membership.slots.at(slot).details.lock().up) {
            self.controllers.notify_down(slot, reason);
        }
        if !self.settings.config.failure.restart_policy.starts_again(reason.is_normal()) {
            return self.rest_slot(slot, reason);
        }
        let wait = {
            let mut details = self.membership.slots.at(slot).details.lock();
            details.restarts.next(
                &self.settings.config.failure.restarts,
                Instant::now(),
                self.env.chance(),
            )
        };
        match wait {
            Some(wait) => Sequel::Restart(wait),
            None => self.exceeded(slot, reason),
        }
    }

    /// A worker that is not to be started again has ended. An actor that stands alone ends with it.
    fn rest_slot(self: &Arc<Self>, slot: usize, reason: &ExitReason) -> Sequel {
        // Pairs with the store in `rest_from_the_start`, before the pool's first task: a supervised
        // pool never misses it.
        match self.controllers.supervised.load(Ordering::SeqCst) {
            true => self.escalate(slot, reason),
            false if self.settings.config.handling.single => self.end_with(reason),
            false => self.give_up(slot, reason),
        }
    }

    fn exceeded(self: &Arc<Self>, slot: usize, reason: &ExitReason) -> Sequel {
        self.notify(PoolEvent::BudgetExceeded { slot });
        match self.settings.config.failure.when_exhausted {
            WhenExhausted::StopPool => self.end_with(reason),
            WhenExhausted::Escalate => self.escalate(slot, reason),
            WhenExhausted::Disable => self.give_up(slot, reason),
        }
    }

    fn end_with(self: &Arc<Self>, reason: &ExitReason) -> Sequel {
        self.stop_because(reason.clone());
        Sequel::Over
    }

    fn give_up(self: &Arc<Self>, slot: usize, reason: &ExitReason) -> Sequel {
        if self.disable(slot, reason) { Sequel::GivenUp } else { Sequel::Over }
    }

    fn escalate(self: &Arc<Self>, slot: usize, reason: &ExitReason) -> Sequel {
        // Pairs with the store in `rest_from_the_start`, as in `rest_slot`.
        if !self.controllers.supervised.load(Ordering::SeqCst) {
            return self.give_up(slot, reason);
        }
        if !self.lay_off(slot) {
            return Sequel::Over;
        }
        self.notify(PoolEvent::Escalated { slot });
        self.controllers.notify_supervisor(reason);
        Sequel::GivenUp
    }

    /// Its spawn has failed, or was given up: those tied to it in its start are told. Its start was
    /// never reported, so there is no notice of its end, and none for a keeper.
    pub(crate) fn end_unheard(self: &Arc<Self>, reason: ExitReason) {
        // Pairs with the `swap` in `notify_end`: the end of a pool is not reported if its
        // start was not.
        self.lifecycle.told_end.store(true, Ordering::SeqCst);
        self.end_lives(self.lifecycle.cause.get_or_init(|| reason));
    }

    /// Ends the pool after the messages in hand, for this reason, in the background.
    pub(crate) fn stop_because(self: &Arc<Self>, reason: ExitReason) {
        let how = match reason {
            ExitReason::Killed => Stop::within(Duration::ZERO),
            _ => Stop::Now,
        };
        self.lifecycle.ends_because(reason);
        self.clone().stop_behind(how);
    }

    /// The pool has ended, and all that are tied to it or to its workers are told. So are listeners
    /// to notices, also about workers that did not let go, and how long these have been busy. Later
    /// calls do nothing.
    pub(crate) fn end_of_life(self: &Arc<Self>, wedged: &[(usize, Duration)]) {
        let reason = self.lifecycle.cause.get_or_init(|| ExitReason::Shutdown);
        self.notify_end(reason, wedged);
        self.end_lives(reason);
        self.controllers.notify_supervisor(reason);
    }

    fn end_lives(self: &Arc<Self>, reason: &ExitReason) {
        // Before the workers: a caller that makes a worker's mailbox from here on sees that this
        // life is over.
        self.lifecycle.life.end(&self.clone().any(), reason);
        for slot in 0..self.membership.mailboxes.len() {
            if let Some(mailbox) = self.mailbox_if_any(slot) {
                self.end_of_worker(&mailbox, reason);
            }
        }
    }

    /// A worker has gone, and will not come back.
    pub(crate) fn end_of_worker(
        self: &Arc<Self>,
        mailbox: &Arc<Mailbox<A, K>>,
        reason: &ExitReason,
    ) {
        if !self.settings.config.handling.single {
            let me = Arc::new(crate::pool::worker_sender::WorkerSender::new(
                self.clone(),
                mailbox.clone(),
            ));
            mailbox.life().end(&me.any(), reason);
        }
    }

    /// A signal for the pool. A pool that is a single actor hears it itself.
    pub(crate) fn take_signal(self: &Arc<Self>, signal: Signal<AnyAddress>) {
        if self.settings.config.handling.single {
            return self.signal_worker(&self.mailbox(0), signal);
        }
        match signal {
            Signal::Exit { from: None, reason } => self.stop_because(reason),
            Signal::Exit { reason, .. } if reason.is_abnormal() => self.stop_because(reason),
            Signal::Exit { .. } | Signal::Down { .. } => {}
        }
    }

    /// A signal for one worker. It hears it before its next message.
    pub(crate) fn signal_worker(&self, mailbox: &Mailbox<A, K>, signal: Signal<AnyAddress>) {
        if let Signal::Exit { from: None, reason: ExitReason::Killed } = signal {
            return self.kill(mailbox);
        }
        mailbox.push_signal(signal);
        self.queue.wake.call(mailbox.slot, &self.clock.watchdog);
        if self.settings.derived.gate.is_some() {
            self.lifecycle.over.notify_waiters();
        }
    }

    /// Drops what a worker does at its next await. Its task is begun again, to settle what follows.
    fn kill(&self, mailbox: &Mailbox<A, K>) {
        let slot_state = self.membership.slots.at(mailbox.slot);
        let details = slot_state.details.lock();
        let own = self
            .membership
            .mailboxes
            .at(mailbox.slot)
            .lock()
            .as_deref()
            .is_some_and(|cell| ptr::eq(cell, mailbox));
        match details.status {
            Status::Live | Status::Starting | Status::Leaving if own => slot_state.order(KILLED),
            _ => return,
        }
        let abort = details.abort.clone();
        drop(details);
        if let Some(abort) = abort {
            abort.abort();
        }
    }
}
