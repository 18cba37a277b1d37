//! Withdrawing messages that wait: all places, one after the other.
//!
//! Messages go from one place to another: from the hands of a worker that was to start them at
//! once, from a policy that has no worker for them, from the clock and from workers' own mailboxes,
//! to the shards at last. The places are gone through in that order, so a message that moves on
//! is met later.

use std::{hash::Hash, panic::resume_unwind, sync::atomic::Ordering};

use greenroom_queue::discard::discard;

use super::{
    Core, Queued,
    migrate::Migrated,
    sweep::{Predicate, sift, sift_queue},
};
use crate::{
    Actor, CallError, PoolEvent,
    pool::{
        membership::mailbox::{LiftedMail, Mailbox},
        sticky::{Moves, Sticky},
        withdrawal::Withdrawal,
    },
};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// Withdraws the waiting messages that are chosen. Returns how many. If the choice panics, no
    /// further message is withdrawn, and the panic goes on once all is in order.
    pub(crate) fn withdraw(&self, is_such: &mut dyn FnMut(&A::Message) -> bool) -> usize {
        let Some(begun) = self.withdrawal().begin() else { return 0 };
        let mut predicate = Predicate::new(is_such);
        let mut withdrawn = Vec::new();
        self.sweep_all(&mut predicate, &mut withdrawn);
        self.settle_if_over();
        drop(begun);
        let messages = withdrawn.len();
        withdrawn.into_iter().for_each(settle_withdrawn::<A, K>);
        if messages > 0 {
            self.notify(PoolEvent::Withdrawn { messages });
        }
        self.serve_waiters();
        self.lifecycle.notify_progress();
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
        let mailboxes = self.membership.mailboxes.iter().filter_map(|cell| cell.lock().clone());
        for mailbox in mailboxes.collect::<Vec<_>>() {
            self.sweep_mailbox(&mailbox, predicate, withdrawn);
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
        let handed: Vec<_> = self.take_handed().collect();
        let before = withdrawn.len();
        let stay = sift::<A, K>(handed.into(), predicate, withdrawn);
        self.re_home(stay.into());
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
        let seen = self.membership.member_changes.load(Ordering::SeqCst);
        let lifted = self.with_moves(|moves| {
            let lifted = std::mem::take(&mut *self.routing.held.lock());
            moves.into_iter().for_each(|moves| moves.held_is_lifted = !lifted.is_empty());
            lifted
        });
        if lifted.is_empty() {
            return;
        }
        let before = withdrawn.len();
        let stay = sift::<A, K>(lifted, predicate, withdrawn);
        let chosen = &withdrawn[before..];
        self.put_moved(|moves| {
            let mut held = self.routing.held.lock();
            let later = std::mem::replace(&mut *held, stay);
            held.extend(later);
            drop(held);
            if let Some(moves) = moves {
                moves.held_is_lifted = false;
                moves.waiting.retain(|tag| !tags_of_retries::<A, K>(chosen).contains(tag));
            }
        });
        self.free(chosen);
        // Workers that have started since have looked at held messages before. Pairs with the
        // `fetch_add` in `members_changed`, before `ask_again` takes the lock of held messages: the
        // new worker finds them, or this load sees the change. Otherwise they are held although a
        // worker could have them.
        if self.settings.functions.dispatch.is_some()
            && self.routing.sticky.is_none()
            && self.membership.member_changes.load(Ordering::SeqCst) != seen
        {
            self.ask_again();
        }
    }

    /// Messages without a key that wait for another attempt.
    fn sweep_clock(
        &self,
        predicate: &mut Predicate<'_, A::Message>,
        withdrawn: &mut Vec<Queued<A, K>>,
    ) {
        if predicate.has_panicked() || self.clock.messages() == 0 {
            return;
        }
        let before = withdrawn.len();
        let mut stay = Vec::new();
        for waiting in self.clock.lift() {
            match waiting.message().is_some_and(|message| predicate.withdraws(message)) {
                true => withdrawn.extend(waiting.into_entry()),
                false => stay.push(waiting),
            }
        }
        let chosen = &withdrawn[before..];
        self.clock.set_down(stay, chosen.len());
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
        let Some(lifted) = self.with_moves(|_| mailbox.lift()) else { return };
        let before = withdrawn.len();
        let LiftedMail { urgent, normal, held } = lifted;
        let stay = LiftedMail {
            urgent: sift::<A, K>(urgent, predicate, withdrawn),
            normal: sift_queue::<A, K>(normal, predicate, withdrawn),
            held: held.map(|held| sift::<A, K>(held, predicate, withdrawn)),
        };
        let chosen = &withdrawn[before..];
        let mut homeless = Vec::new();
        self.put_moved(|_| homeless.extend(mailbox.set_down(stay, chosen).err()));
        self.free(chosen);
        // Its worker has gone.
        let homeless = homeless.into_iter().flatten();
        self.re_home(homeless.map(|entry| Queued::<A, K> { hash: 0, ..entry }).collect());
        mailbox.serve_waiters();
        self.queue.wake.call(mailbox.slot, &self.clock.watchdog);
    }

    /// Messages were withdrawn that hold permits of the pool.
    fn free(&self, withdrawn: &[Queued<A, K>]) {
        if withdrawn.is_empty() {
            return;
        }
        self.count_withdrawn(withdrawn);
        if self.routing.sticky.is_some() {
            self.clock.forget_tags(&tags_of_retries::<A, K>(withdrawn));
        }
        self.queue.permits.give(withdrawn.len() as u64, self);
    }

    /// Does something while no key of a sticky pool moves. In others nothing moves.
    fn with_moves<T>(&self, work: impl FnOnce(Option<&mut Moves>) -> T) -> T {
        let mut moves = self.routing.sticky.as_ref().map(|sticky| sticky.moves.lock());
        work(moves.as_deref_mut())
    }

    /// As `with_moves`, for putting lifted messages back: then deferred moves go on.
    fn put_moved(&self, work: impl FnOnce(Option<&mut Moves>)) {
        let migrated = self.with_moves(|mut moves| {
            let mut migrated = Migrated::default();
            work(moves.as_deref_mut());
            if let (Some(moves), Some(sticky)) = (moves, &self.routing.sticky) {
                let sticky: &Sticky<A::Message> = sticky;
                self.migrate_deferred(sticky, moves, &mut migrated);
            }
            migrated
        });
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
    let retries = entries.iter().filter(|entry| entry.hash != 0 && entry.is_retry());
    retries.map(|entry| entry.hash).collect()
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
