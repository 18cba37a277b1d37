//! Withdrawing messages that wait: all places, one after the other.
//!
//! Messages move from one place to another: from a worker that was to start them at once, from a
//! policy that has no worker for them, from the clock and from workers' own mailboxes, and at last
//! to the shards. The places are visited in that order, so a message that moves on is met later.

use std::{panic::resume_unwind, sync::atomic::Ordering};

use greenroom_queue::{discard::discard, lock::MutexGuard};

use super::{
    Core, Key, Queued,
    mail::re_home,
    pushes::ask_again,
    serve::take_handed,
    sweep::{Sieve, count_withdrawn, sweep},
};
use crate::pool::frame::gate::settle_if_over;
use crate::{
    Actor, CallError, PoolEvent,
    pool::{
        membership::mailbox::Mailbox, pool_payload::Entries, push::Migrated, sticky::Moves,
        withdrawal::Withdrawal,
    },
};

/// True if this thread is withdrawing messages: the user code that selects them is calling the
/// pool.
pub(super) fn is_withdrawing_here<A: Actor, K: Key>(core: &Core<A, K>) -> bool {
    withdrawal(core).is_here()
}

/// Whether a withdrawal is in progress, and on which thread.
pub(crate) fn withdrawal<A: Actor, K: Key>(core: &Core<A, K>) -> Withdrawal {
    Withdrawal(core.identity())
}

/// Withdraws the selected waiting messages. Returns how many. If the selection panics, no further
/// message is withdrawn, and the panic resumes once everything is in order.
pub(crate) fn withdraw<A: Actor, K: Key>(
    core: &Core<A, K>,
    is_such: &mut dyn FnMut(&A::Message) -> bool,
) -> usize {
    let Some(begun) = withdrawal(core).begin() else { return 0 };
    let mut sieve = Sieve::<A, K>::new(is_such);
    sweep_all(core, &mut sieve);
    settle_if_over(core);
    drop(begun);
    let messages = sieve.withdrawn.len();
    while let Some(entry) = sieve.withdrawn.pop_front() {
        settle_withdrawn::<A, K>(entry);
    }
    if messages > 0 {
        core.frame.notify(PoolEvent::Withdrawn { messages });
    }
    core.serve_waiters();
    core.frame.lifecycle.notify_progress();
    match sieve.panic {
        Some(panic) => resume_unwind(panic),
        None => messages,
    }
}

fn sweep_all<A: Actor, K: Key>(core: &Core<A, K>, sieve: &mut Sieve<'_, A, K>) {
    sweep_handed(core, sieve);
    sweep_held(core, sieve);
    sweep_clock(core, sieve);
    for slot in 0..core.desks.len() {
        if let Some(mailbox) = core.mailbox_if_any(slot) {
            sweep_mailbox(core, &mailbox, sieve);
        }
    }
    for index in 0..core.queue.shards.len() {
        if sieve.panic.is_none() {
            sweep(core, index, sieve);
        }
    }
}

/// Messages that were handed to workers that have not come for them. Those that stay go the usual
/// way.
fn sweep_handed<A: Actor, K: Key>(core: &Core<A, K>, sieve: &mut Sieve<'_, A, K>) {
    let (mut handed, mut chosen) = (take_handed(core, usize::MAX), Entries::<A, K>::new());
    sieve.sift(&mut handed, &mut chosen);
    re_home(core, handed);
    free(core, chosen, sieve);
}

/// Messages for which a policy has no worker.
fn sweep_held<A: Actor, K: Key>(core: &Core<A, K>, sieve: &mut Sieve<'_, A, K>) {
    if sieve.panic.is_some() {
        return;
    }
    // Pairs with the `fetch_add` in `members_changed`, like the load below: a worker that joins
    // from here on may find nothing held.
    let seen = core.frame.membership.member_changes.load(Ordering::SeqCst);
    let mut moves = lock_moves(core);
    let mut lifted = std::mem::take(&mut *core.routing.held.lock());
    if let Some(moves) = &mut moves {
        moves.held_is_lifted = !lifted.is_empty();
    }
    drop(moves);
    if lifted.is_empty() {
        return;
    }
    let mut chosen = Entries::<A, K>::new();
    sieve.sift(&mut lifted, &mut chosen);
    let mut moves = lock_moves(core);
    let mut held = core.routing.held.lock();
    lifted.append(&mut held);
    *held = lifted;
    // Pairs with the load in `choose_in_turn`: new messages of a policy do not overtake these.
    core.routing.asking.holds.store(true, Ordering::SeqCst);
    drop(held);
    if let Some(moves) = &mut moves {
        moves.held_is_lifted = false;
        moves.forget(&tags_of_retries::<A, K>(&chosen));
    }
    go_on(core, moves);
    free(core, chosen, sieve);
    // Workers that have started since have already checked held messages. Pairs with the
    // `fetch_add` in `members_changed`, before `ask_again` takes the lock of held messages: the new
    // worker finds them, or this load sees the change. Otherwise they would be held although a
    // worker could have them.
    if core.frame.membership.member_changes.load(Ordering::SeqCst) != seen {
        ask_again(core);
    }
}

/// Messages without a key that wait for a retry.
fn sweep_clock<A: Actor, K: Key>(core: &Core<A, K>, sieve: &mut Sieve<'_, A, K>) {
    if sieve.panic.is_some() || core.frame.clock.messages() == 0 {
        return;
    }
    let (mut stay, mut chosen) = (Vec::new(), Entries::<A, K>::new());
    for waiting in core.frame.clock.lift() {
        if !waiting.message::<A, K>().is_some_and(|message| sieve.withdraws(message)) {
            stay.push(waiting);
        } else if let Some(entry) = waiting.into_entry::<A, K>() {
            chosen.push_back(entry);
        }
    }
    core.frame.clock.set_down(stay, chosen.len());
    free(core, chosen, sieve);
}

/// Messages that wait for one particular worker.
fn sweep_mailbox<A: Actor, K: Key>(
    core: &Core<A, K>,
    mailbox: &Mailbox<A, K>,
    sieve: &mut Sieve<'_, A, K>,
) {
    if sieve.panic.is_some() {
        return;
    }
    // Under the lock of the moves, so that no move finds only half of the messages here.
    let moves = lock_moves(core);
    let lifted = mailbox.lift();
    drop(moves);
    let Some(mut lifted) = lifted else { return };
    let mut chosen = Entries::<A, K>::new();
    sieve.sift(&mut lifted.urgent, &mut chosen);
    sieve.sift_queue(&mut lifted.normal, &mut chosen);
    for held in &mut lifted.held {
        sieve.sift(held, &mut chosen);
    }
    let moves = lock_moves(core);
    let set_down = mailbox.set_down(lifted, &chosen);
    go_on(core, moves);
    free(core, chosen, sieve);
    if let Err(mut homeless) = set_down {
        // Its worker has gone.
        let mut place = 0;
        while let Some(entry) = homeless.get_mut(place) {
            entry.hash = 0;
            place += 1;
        }
        re_home(core, homeless);
    }
    mailbox.serve_waiters();
    core.queue.wake.call(mailbox.slot, &core.frame.clock.watchdog);
}

/// Frees the permits of withdrawn messages.
fn free<A: Actor, K: Key>(
    core: &Core<A, K>,
    mut chosen: Entries<A, K>,
    sieve: &mut Sieve<'_, A, K>,
) {
    if chosen.is_empty() {
        return;
    }
    count_withdrawn(core, &chosen);
    if core.routing.sticky.is_some() {
        core.frame.clock.forget_tags(&tags_of_retries::<A, K>(&chosen));
    }
    core.queue.permits.give(chosen.len() as u64, core);
    sieve.withdrawn.append(&mut chosen);
}

/// While this is held, no key of a sticky pool moves. In other pools nothing moves anyway.
fn lock_moves<A: Actor, K: Key>(core: &Core<A, K>) -> Option<MutexGuard<'_, Moves>> {
    core.routing.sticky.as_ref().map(|sticky| sticky.moves.lock())
}

/// The lifted messages are back: continues the deferred moves.
fn go_on<A: Actor, K: Key>(core: &Core<A, K>, moves: Option<MutexGuard<'_, Moves>>) {
    let (Some(mut moves), Some(tables)) = (moves, core.tables()) else { return };
    let mut migrated = Migrated::default();
    tables.migrate_deferred(core, &mut moves, &mut migrated);
    drop(moves);
    tables.migrated(core, migrated);
}

/// The table slots of messages that wait for a retry.
fn tags_of_retries<A: Actor, K>(entries: &Entries<A, K>) -> Vec<u32> {
    let mut tags = Vec::new();
    for entry in entries.iter() {
        if entry.hash != 0 && entry.is_retry() {
            tags.push(entry.hash);
        }
    }
    tags
}

/// Settles a withdrawn message that has been counted.
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
