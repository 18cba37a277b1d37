//! Table slots of a sticky pool that move between workers, and their messages with them.
//!
//! All of it happens under the lock of the moves, one mailbox at a time; wake-ups follow after the
//! lock has been released.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use greenroom_queue::lock::MutexGuard;
use greenroom_queue::sync::yield_now;
use tokio::time::Instant;

use super::{Core, Key, Queued, assign::ByTable, withdraw::is_withdrawing_here};
use crate::{
    Actor, PoolEvent,
    pool::{
        frame::KeysTo,
        membership::{
            mailbox::{Mailbox, tags::Bundle},
            slot_state::HAND_OVER,
        },
        pool_payload::Entries,
        push::{Migrated, Tables},
        sticky::{HeldSince, LIMBO, Moves, NOBODY, PATIENCE, Sticky},
    },
    step_aside::push_aside,
};

impl<A: Actor, K: Key> Tables<A, K, Core<A, K>> for ByTable {
    fn move_keys(&self, pool: &Core<A, K>, slot: usize, to: KeysTo) -> Migrated<A, K> {
        let mut migrated = Migrated::default();
        if let Some(sticky) = &pool.routing.sticky {
            let mut moves = sticky.moves.lock();
            let changed = match to {
                KeysTo::Worker => moves.table.join(slot as u32),
                KeysTo::Others => moves.table.leave(slot as u32),
            };
            migrate(pool, sticky, &mut moves, changed, &mut migrated);
        }
        migrated
    }

    fn migrate_deferred(
        &self,
        pool: &Core<A, K>,
        moves: &mut Moves,
        migrated: &mut Migrated<A, K>,
    ) {
        let Some(sticky) = &pool.routing.sticky else { return };
        let deferred = std::mem::take(&mut moves.deferred);
        migrate(pool, sticky, moves, deferred, migrated);
    }

    fn migrated(&self, pool: &Core<A, K>, migrated: Migrated<A, K>) {
        if let Some(sticky) = pool.routing.sticky.as_ref().filter(|_| !migrated.touched.is_empty())
        {
            sticky.moved.notify_waiters();
        }
        let mut has_woken = false;
        for mailbox in migrated.touched {
            mailbox.serve_waiters();
            has_woken |= pool.queue.wake.call(mailbox.slot, &pool.frame.clock.watchdog);
        }
        // The caller may be a worker that continues with a message of its own, and its handler may
        // compute for long. The worker that was woken last would wait for that.
        if has_woken && pool.frame.telemetry.coarse.is_watched() {
            push_aside(&pool.frame.env.runtime);
        }
        if !migrated.holding.is_empty() && pool.frame.limits.is_some() {
            pool.frame.lifecycle.over.notify_waiters();
        }
        migrated.holding.into_iter().for_each(|slot| pool.frame.clock.look_at_held(slot, PATIENCE));
    }

    fn hand_over(&self, pool: &Core<A, K>, slot: usize) {
        let Some(sticky) = &pool.routing.sticky else { return };
        let mut migrated = Migrated::default();
        {
            let (mut moves, mailbox) = mailbox_at_rest(pool, sticky, slot);
            let Some(mailbox) = mailbox else {
                // Under the lock under which it is ordered.
                return pool.frame.membership.slots.at(slot).done(HAND_OVER);
            };
            moves.holds.remove(&(slot as u32));
            let let_go = mailbox.let_go(|tag| sticky.set_owner(tag, LIMBO));
            if let Some((tag, bundle)) = let_go {
                deliver(pool, sticky, &mut moves, &[tag], bundle, &mut migrated);
            }
            if !moves.table.is_member(slot as u32) {
                mailbox.retire();
            }
            migrated.touched.push(mailbox);
        }
        self.migrated(pool, migrated);
    }

    fn park(
        &self,
        pool: &Core<A, K>,
        slot: usize,
        mut entry: Queued<A, K>,
        after: Duration,
    ) -> Result<(), Queued<A, K>> {
        let mailbox = pool.mailbox_if_any(slot);
        let tag = mailbox.as_ref().and_then(|mailbox| mailbox.tag_in_hand());
        let (Some(mailbox), Some(tag)) = (mailbox, tag) else { return Err(entry) };
        entry.hash = tag;
        mailbox.park(entry)?;
        pool.frame.clock.park_tag(tag, after);
        Ok(())
    }

    fn wake_tag(&self, pool: &Core<A, K>, tag: u32) {
        let Some(sticky) = &pool.routing.sticky else { return };
        let mut moves = sticky.moves.lock();
        moves.waiting.retain(|waiting| *waiting != tag);
        let mailbox = match sticky.owner(tag) {
            NOBODY | LIMBO => None,
            slot => pool.mailbox_if_any(slot as usize),
        };
        if let Some(mailbox) = &mailbox {
            mailbox.is_due(tag);
        }
        drop(moves);
        if let Some(mailbox) = mailbox {
            pool.queue.wake.call(mailbox.slot, &pool.frame.clock.watchdog);
        }
    }

    fn notify_held(&self, pool: &Core<A, K>, slot: u32) {
        let Some(sticky) = &pool.routing.sticky else { return };
        let mut moves = sticky.moves.lock();
        let Some(held) = moves.holds.get_mut(&slot) else { return };
        let held_for = held.since.elapsed();
        if held.told || held_for < PATIENCE {
            return;
        }
        held.told = true;
        drop(moves);
        let slot = slot as usize;
        let messages = pool.mailbox_if_any(slot).map_or(0, |mailbox| mailbox.held());
        pool.frame.notify(PoolEvent::SlotHeld { slot, messages, held_for });
    }

    fn held_for_others(&self, pool: &Core<A, K>) -> usize {
        let mailboxes = (0..pool.desks.len()).filter_map(|slot| pool.mailbox_if_any(slot));
        mailboxes.map(|mailbox| mailbox.held()).sum()
    }
}

/// The mailbox of a worker, unless a withdrawal is examining its messages.
fn mailbox_at_rest<'a, A: Actor, K: Key>(
    core: &Core<A, K>,
    sticky: &'a Sticky<A::Message>,
    slot: usize,
) -> (MutexGuard<'a, Moves>, Option<Arc<Mailbox<A, K>>>) {
    loop {
        let moves = sticky.moves.lock();
        let mailbox = core.mailbox_if_any(slot);
        let is_lifted = mailbox.as_ref().is_some_and(|mailbox| mailbox.is_lifted());
        if !is_lifted || is_withdrawing_here(core) {
            return (moves, mailbox);
        }
        drop(moves);
        yield_now();
    }
}

/// True if the worker's waiting messages are lifted. Call it under the lock of the moves.
fn is_lifted_at<A: Actor, K: Key>(core: &Core<A, K>, moves: &Moves, owner: u32) -> bool {
    match owner {
        NOBODY => moves.held_is_lifted,
        owner => {
            let mailbox = core.mailbox_if_any(owner as usize);
            mailbox.is_some_and(|mailbox| mailbox.is_lifted())
        }
    }
}

/// Moves table slots to their planned owners, except those in hand or lifted.
fn migrate<A: Actor, K: Key>(
    core: &Core<A, K>,
    sticky: &Sticky<A::Message>,
    moves: &mut Moves,
    changed: Vec<u32>,
    migrated: &mut Migrated<A, K>,
) {
    let mut by_owner: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for tag in changed {
        let owner = sticky.owner(tag);
        if owner != moves.table.to(tag) {
            by_owner.entry(owner).or_default().push(tag);
        }
    }
    for (owner, mut tags) in by_owner {
        if is_lifted_at(core, moves, owner) {
            moves.deferred.extend(tags);
            continue;
        }
        tags.sort_unstable();
        let bundle = match owner {
            NOBODY => take_over_from_nobody(core, sticky, moves, &tags),
            owner => take_over_from(core, sticky, moves, owner, &tags, migrated),
        };
        tags.retain(|tag| sticky.owner(*tag) == LIMBO);
        deliver(core, sticky, moves, &tags, bundle, migrated);
    }
}

fn take_over_from<A: Actor, K: Key>(
    core: &Core<A, K>,
    sticky: &Sticky<A::Message>,
    moves: &mut Moves,
    owner: u32,
    tags: &[u32],
    migrated: &mut Migrated<A, K>,
) -> Bundle<A, K> {
    let mailbox = core.mailbox(owner as usize);
    let (bundle, holds) = mailbox.detach(tags, |tag| sticky.set_owner(tag, LIMBO));
    if holds {
        moves.holds.insert(owner, HeldSince { since: Instant::now(), told: false });
        migrated.holding.push(owner);
    }
    migrated.touched.push(mailbox);
    bundle
}

fn take_over_from_nobody<A: Actor, K: Key>(
    core: &Core<A, K>,
    sticky: &Sticky<A::Message>,
    moves: &mut Moves,
    tags: &[u32],
) -> Bundle<A, K> {
    let is_moving = |tag: &u32| tags.binary_search(tag).is_ok();
    let (waiting, stay) = std::mem::take(&mut moves.waiting).into_iter().partition(is_moving);
    moves.waiting = stay;
    let mut held = core.routing.held.lock();
    tags.iter().for_each(|tag| sticky.set_owner(*tag, LIMBO));
    let (mut entries, mut all) = (Entries::<A, K>::new(), std::mem::take(&mut *held));
    while let Some(entry) = all.pop_front() {
        match is_moving(&entry.hash) {
            true => entries.push_back(entry),
            false => held.push_back(entry),
        }
    }
    Bundle { entries, waiting }
}

/// Gives each table slot to its planned owner if no messages of it are anywhere else.
fn deliver<A: Actor, K: Key>(
    core: &Core<A, K>,
    sticky: &Sticky<A::Message>,
    moves: &mut Moves,
    tags: &[u32],
    mut bundle: Bundle<A, K>,
    migrated: &mut Migrated<A, K>,
) {
    let mut parts: BTreeMap<u32, (Vec<u32>, Bundle<A, K>)> = BTreeMap::new();
    let to = |tag: u32| moves.table.to(tag);
    tags.iter().for_each(|tag| parts.entry(to(*tag)).or_default().0.push(*tag));
    while let Some(entry) = bundle.entries.pop_front() {
        parts.entry(to(entry.hash)).or_default().1.entries.push_back(entry);
    }
    for tag in bundle.waiting {
        parts.entry(to(tag)).or_default().1.waiting.push(tag);
    }
    for (owner, (tags, part)) in parts {
        let claim = || tags.iter().for_each(|tag| sticky.set_owner(*tag, owner));
        if owner == NOBODY {
            moves.waiting.extend(part.waiting);
            hold_entries(core, part.entries, claim);
            continue;
        }
        let mailbox = core.mailbox(owner as usize);
        if let Err(part) = mailbox.attach(part, claim) {
            debug_assert!(false, "a member has a mailbox");
            hold_entries(core, part.entries, || {});
        }
        migrated.touched.push(mailbox);
    }
}

fn hold_entries<A: Actor, K: Key>(
    core: &Core<A, K>,
    mut entries: Entries<A, K>,
    claim: impl FnOnce(),
) {
    let mut held = core.routing.held.lock();
    held.append(&mut entries);
    claim();
}
