//! Withdrawing messages that wait: all places, one after the other.
//!
//! Messages go from one place to another: from the hands of a worker that was to start them at
//! once, from a policy that has no worker for them, from the clock and from workers' own mailboxes,
//! to the shards at last. The places are gone through in that order, so a message that moves on
//! is met later.

use std::{collections::VecDeque, hash::Hash, panic::resume_unwind, sync::atomic::Ordering};

use greenroom_queue::{discard::discard, lock::MutexGuard};

use super::{
    Core, Queued,
    sweep::{Predicate, sift, sift_queue},
};
use crate::pool::frame::gate::settle_if_over;
use crate::{
    Actor, CallError, PoolEvent,
    pool::{membership::mailbox::Mailbox, push::Migrated, sticky::Moves, withdrawal::Withdrawal},
};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// Withdraws the waiting messages that are chosen. Returns how many. If the choice panics, no
    /// further message is withdrawn, and the panic goes on once all is in order.
    pub(crate) fn withdraw(&self, is_such: &mut dyn FnMut(&A::Message) -> bool) -> usize {
        let Some(begun) = self.withdrawal().begin() else { return 0 };
        let mut predicate = Predicate::new(is_such);
        let mut withdrawn = Vec::new();
        self.sweep_all(&mut predicate, &mut withdrawn);
        settle_if_over(self);
        drop(begun);
        let messages = withdrawn.len();
        for entry in withdrawn {
            settle_withdrawn::<A, K>(entry);
        }
        if messages > 0 {
            self.frame.notify(PoolEvent::Withdrawn { messages });
        }
        self.serve_waiters();
        self.frame.lifecycle.notify_progress();
        match predicate.into_panic() {
            Some(panic) => resume_unwind(panic),
            None => messages,
        }
    }

    fn sweep_all(
        &self,
        predicate: &mut Predicate<'_, A::Message>,
        withdrawn: &mut Vec<Queued<A, K>>,
    ) {
        self.sweep_handed(predicate, withdrawn);
        self.sweep_held(predicate, withdrawn);
        self.sweep_clock(predicate, withdrawn);
        for slot in 0..self.mailboxes.len() {
            if let Some(mailbox) = self.mailbox_if_any(slot) {
                self.sweep_mailbox(&mailbox, predicate, withdrawn);
            }
        }
        for index in 0..self.queue.shards.len() {
            if !predicate.has_panicked() {
                self.sweep(index, predicate, withdrawn);
            }
        }
    }

    /// Messages that were handed to workers that have not come for them. Those that stay go
    /// the usual way.
    fn sweep_handed(
        &self,
        predicate: &mut Predicate<'_, A::Message>,
        withdrawn: &mut Vec<Queued<A, K>>,
    ) {
        let mut handed = VecDeque::from(self.take_handed(usize::MAX));
        let before = withdrawn.len();
        sift::<A, K>(&mut handed, predicate, withdrawn);
        self.re_home(handed.into());
        self.free(&withdrawn[before..]);
    }

    /// Messages for which a policy has no worker.
    fn sweep_held(
        &self,
        predicate: &mut Predicate<'_, A::Message>,
        withdrawn: &mut Vec<Queued<A, K>>,
    ) {
        if predicate.has_panicked() {
            return;
        }
        // Pairs with the `fetch_add` in `members_changed`, as the load below: a worker that comes
        // from here on may find nothing held.
        let seen = self.frame.membership.member_changes.load(Ordering::SeqCst);
        let mut moves = self.moves();
        let mut lifted = std::mem::take(&mut *self.routing.held.lock());
        if let Some(moves) = &mut moves {
            moves.held_is_lifted = !lifted.is_empty();
        }
        drop(moves);
        if lifted.is_empty() {
            return;
        }
        let before = withdrawn.len();
        sift::<A, K>(&mut lifted, predicate, withdrawn);
        let chosen = &withdrawn[before..];
        let mut moves = self.moves();
        let mut held = self.routing.held.lock();
        lifted.append(&mut held);
        *held = lifted;
        // Pairs with the load in `choose_in_turn`: new messages of a policy do not overtake these.
        self.routing.asking.holds.store(true, Ordering::SeqCst);
        drop(held);
        if let Some(moves) = &mut moves {
            moves.held_is_lifted = false;
            let tags = tags_of_retries::<A, K>(chosen);
            moves.waiting.retain(|tag| !tags.contains(tag));
        }
        self.go_on(moves);
        self.free(chosen);
        // Workers that have started since have looked at held messages before. Pairs with the
        // `fetch_add` in `members_changed`, before `ask_again` takes the lock of held messages: the
        // new worker finds them, or this load sees the change. Otherwise they are held although a
        // worker could have them.
        if self.frame.membership.member_changes.load(Ordering::SeqCst) != seen {
            self.ask_again();
        }
    }

    /// Messages without a key that wait for another attempt.
    fn sweep_clock(
        &self,
        predicate: &mut Predicate<'_, A::Message>,
        withdrawn: &mut Vec<Queued<A, K>>,
    ) {
        if predicate.has_panicked() || self.frame.clock.messages() == 0 {
            return;
        }
        let before = withdrawn.len();
        let mut stay = Vec::new();
        for waiting in self.frame.clock.lift() {
            if !waiting.message::<A, K>().is_some_and(|message| predicate.withdraws(message)) {
                stay.push(waiting);
            } else if let Some(entry) = waiting.into_entry::<A, K>() {
                withdrawn.push(entry);
            }
        }
        let chosen = &withdrawn[before..];
        self.frame.clock.set_down(stay, chosen.len());
        self.free(chosen);
    }

    /// Messages that wait for one worker.
    fn sweep_mailbox(
        &self,
        mailbox: &Mailbox<A, K>,
        predicate: &mut Predicate<'_, A::Message>,
        withdrawn: &mut Vec<Queued<A, K>>,
    ) {
        if predicate.has_panicked() {
            return;
        }
        // Under the lock of the moves, so that a move does not meet one half of the messages here.
        let moves = self.moves();
        let lifted = mailbox.lift();
        drop(moves);
        let Some(mut lifted) = lifted else { return };
        let before = withdrawn.len();
        sift::<A, K>(&mut lifted.urgent, predicate, withdrawn);
        sift_queue::<A, K>(&mut lifted.normal, predicate, withdrawn);
        for held in &mut lifted.held {
            sift::<A, K>(held, predicate, withdrawn);
        }
        let chosen = &withdrawn[before..];
        let moves = self.moves();
        let set_down = mailbox.set_down(lifted, chosen);
        self.go_on(moves);
        self.free(chosen);
        if let Err(mut homeless) = set_down {
            // Its worker has gone.
            for entry in &mut homeless {
                entry.hash = 0;
            }
            self.re_home(homeless);
        }
        mailbox.serve_waiters();
        self.queue.wake.call(mailbox.slot, &self.frame.clock.watchdog);
    }

    /// Messages were withdrawn that hold permits of the pool.
    fn free(&self, withdrawn: &[Queued<A, K>]) {
        if withdrawn.is_empty() {
            return;
        }
        self.count_withdrawn(withdrawn);
        if self.routing.sticky.is_some() {
            self.frame.clock.forget_tags(&tags_of_retries::<A, K>(withdrawn));
        }
        self.queue.permits.give(withdrawn.len() as u64, self);
    }

    /// While it is held, no key of a sticky pool moves. In others nothing moves.
    fn moves(&self) -> Option<MutexGuard<'_, Moves>> {
        self.routing.sticky.as_ref().map(|sticky| sticky.moves.lock())
    }

    /// Lifted messages are back: deferred moves go on.
    fn go_on(&self, moves: Option<MutexGuard<'_, Moves>>) {
        let (Some(mut moves), Some(push)) = (moves, &self.push) else { return };
        let mut migrated = Migrated::default();
        push.migrate_deferred(self, &mut moves, &mut migrated);
        drop(moves);
        self.migrated(migrated);
    }

    /// True if this thread withdraws messages: user code that chooses them asks the pool.
    pub(super) fn is_withdrawing_here(&self) -> bool {
        self.withdrawal().is_here()
    }

    /// Whether a withdrawal is on, and on which thread.
    pub(crate) fn withdrawal(&self) -> Withdrawal {
        Withdrawal(self.identity())
    }
}

/// The table slots of messages that wait for another attempt.
fn tags_of_retries<A: Actor, K>(entries: &[Queued<A, K>]) -> Vec<u32> {
    let mut tags = Vec::new();
    for entry in entries {
        if entry.hash != 0 && entry.is_retry() {
            tags.push(entry.hash);
        }
    }
    tags
}

/// A message that was withdrawn, and counted, has its outcome.
fn settle_withdrawn<A: Actor, K>(entry: Queued<A, K>) {
    let Queued::<A, K> { message, extra, key, .. } = entry;
    discard(key);
    if let Some(mut extra) = extra {
        let port = extra.port.take();
        discard(extra);
        if let Some(port) = port {
            port.resolve(CallError::Withdrawn);
        }
    }
    discard(message);
}
