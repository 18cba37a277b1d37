//! Signals for a pool and its workers, and the end of those that are linked to them.

use std::{ptr, sync::Arc};

use super::{Core, Key};
use crate::{
    Actor, AnyAddress, ExitReason,
    any_address::Erased,
    life::Signal,
    pool::{
        frame::exit::stop_because,
        membership::{
            mailbox::Mailbox,
            slot_state::{KILLED, Status},
        },
        worker_sender::WorkerSender,
    },
};

impl<A: Actor, K: Key> Core<A, K> {
    /// A worker has gone and will not come back.
    pub(crate) fn end_of_worker(
        self: &Arc<Self>,
        mailbox: &Arc<Mailbox<A, K>>,
        reason: &ExitReason,
    ) {
        if !self.frame.config.handling.single {
            let me = Arc::new(WorkerSender::new(self.clone(), mailbox.clone()));
            mailbox.life().end(&me.any(), reason);
        }
    }

    /// Signals one worker. It gets the signal before its next message.
    pub(crate) fn signal_worker(&self, mailbox: &Mailbox<A, K>, signal: Signal<AnyAddress>) {
        if let Signal::Exit { from: None, reason: ExitReason::Killed } = signal {
            return kill(self, mailbox);
        }
        mailbox.push_signal(signal);
        self.queue.wake.call(mailbox.slot, &self.frame.clock.watchdog);
        if self.frame.limits.is_some() {
            self.frame.lifecycle.over.notify_waiters();
        }
    }
}

/// Signals the pool. A pool that is a single actor handles the signal itself.
pub(crate) fn take_signal<A: Actor, K: Key>(core: &Arc<Core<A, K>>, signal: Signal<AnyAddress>) {
    if core.frame.config.handling.single {
        return core.signal_worker(&core.mailbox(0), signal);
    }
    match signal {
        Signal::Exit { from: None, reason } => stop_because(&core.erased(), reason),
        Signal::Exit { reason, .. } if reason.is_abnormal() => {
            stop_because(&core.erased(), reason);
        }
        Signal::Exit { .. } | Signal::Down { .. } => {}
    }
}

/// Drops the handler of a worker at its next await. Its task starts again, to settle the message.
fn kill<A: Actor, K: Key>(core: &Core<A, K>, mailbox: &Mailbox<A, K>) {
    let slot_state = core.frame.membership.slots.at(mailbox.slot);
    let details = slot_state.details.lock();
    let cell = core.desk(mailbox.slot).mailbox.lock();
    let own = cell.as_deref().is_some_and(|cell| ptr::eq(cell, mailbox));
    drop(cell);
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
