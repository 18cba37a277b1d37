//! How a pool is stopped: as its `Stop` says, and never much longer.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::time::Instant;

use super::{
    Stop, StopReport,
    hands::{InHandSince, busy, idle},
    witness::Witness,
};
use crate::{
    Actor,
    pool::{
        clock::timed::{self, later},
        core::Core,
        frame::{
            AnyCore, Unattended,
            end::end,
            exit::end_of_life,
            figures::{figures, ledger},
            gate::close,
            identity,
        },
        handoff::reentrancy::slot_at_work,
        left_over::into_messages,
        pool_payload::Key,
        stats::PoolStats,
        withdrawal::Withdrawal,
        worker::in_flight::DeliveryOf,
    },
};

/// How long dropped handlers may take to reach their next await before they count as wedged, and
/// how long `stopped` hooks may take after the deadline.
const LET_GO: Duration = Duration::from_millis(500);

/// How long `stopped` hooks may take after [`Stop::Now`], at least.
const HOOKS: Duration = Duration::from_secs(10);

/// Stops the pool. Any number of stops may run at once; each waits as its `Stop` says, and the
/// first to reach the end gets the leftover messages.
pub(crate) async fn stop<A: Actor, K: Key>(
    core: Arc<Core<A, K>>,
    how: Stop,
) -> StopReport<A::Message> {
    let StopReport { left_over, wedged, stats } = end_and_take(&core, how).await;
    StopReport { left_over: into_messages(left_over), wedged, stats }
}

/// Like `stop`, with the calls that were not handled.
pub(crate) async fn stop_keeping_calls<A: Actor, K: Key>(
    core: Arc<Core<A, K>>,
    how: Stop,
) -> StopReport<DeliveryOf<A>> {
    let _keeper = core.left_over.keep_calls();
    end_and_take(&core, how).await
}

async fn end_and_take<A: Actor, K: Key>(
    core: &Arc<Core<A, K>>,
    how: Stop,
) -> StopReport<DeliveryOf<A>> {
    let pool = core.erased();
    let (left_over, wedged) = match see_to_its_end(&pool, how).await {
        Some(wedged) => (core.left_over.take(), wedged),
        None => (Vec::new(), Vec::new()),
    };
    StopReport { left_over, wedged, stats: figures(&*pool) }
}

/// Waits for the end of the pool. Unhandled messages are kept; wedged workers are returned by name.
/// `None` in a worker of the pool, which would wait for itself: the stop then continues in the
/// background, and unhandled messages are kept for a stop from outside of the pool.
pub(crate) async fn see_to_its_end(pool: &Arc<dyn AnyCore>, how: Stop) -> Option<Vec<String>> {
    close(&**pool);
    if slot_at_work(identity(&**pool)).is_some() {
        pool.clone().stop_behind(how);
        return None;
    }
    let mut hands = InHandSince::default();
    hands.look(&pool.frame().membership.slots);
    match how {
        Stop::Graceful { within } => drain_until(&**pool, later(within), &mut hands).await,
        Stop::Now => finish_in_hand(&**pool).await,
    }
    // Pairs with the `compare_exchange` of `TaskGuard::drop`: at 0, everything that the tasks did
    // is seen. Otherwise the report could lack their last counts, and name workers as wedged that
    // are gone.
    let wedged = match pool.frame().lifecycle.running.load(Ordering::SeqCst) {
        0 => Vec::new(),
        _ => hands.still_full(&pool.frame().membership.slots),
    };
    end_of_life(pool, &wedged);
    let wedged = wedged.into_iter().map(|(slot, _)| pool.frame().worker_name(slot)).collect();
    let withdrawal = Withdrawal(identity(&**pool));
    while withdrawal.is_on() && !withdrawal.is_here() {
        // Messages that were taken out to be examined are also left over.
        crate::step_aside().await;
    }
    pool.give_back_queued();
    check_ledger(&**pool);
    Some(wedged)
}

/// How long another party inside the pool may take to leave it: another stop, or a sender for which
/// another message made room.
const INSIDE: Duration = Duration::from_secs(1);

/// Once all workers have gone, every message is accounted for (P26). In builds
/// with debug assertions.
fn check_ledger(pool: &dyn AnyCore) {
    // Pairs with the `compare_exchange` of `TaskGuard::drop`: at 0, the last counts of all workers
    // are seen. Otherwise the ledger would be checked without them, and seem not to hold.
    if !cfg!(debug_assertions) || pool.frame().lifecycle.running.load(Ordering::SeqCst) > 0 {
        return;
    }
    let since = std::time::Instant::now();
    while !ledger(pool).ledger_holds() {
        let stats = ledger(pool);
        debug_assert!(since.elapsed() < INSIDE, "messages are not accounted for: {stats:?}");
        std::thread::yield_now();
    }
}

/// Handles the queued messages, then lets the workers end. At the deadline handlers are dropped.
async fn drain_until(pool: &dyn AnyCore, deadline: Instant, hands: &mut InHandSince) {
    // Held messages wait for a worker to join, and none will. Messages behind a parked key wait for
    // an operator.
    let stuck = || {
        let Unattended { parked, held } = pool.unattended();
        parked + held
    };
    let but_stuck = |stats: PoolStats| stats.accepted == stats.settled() + stuck();
    let done = |stats: PoolStats| stats.is_settled() || but_stuck(stats);
    let over = || {
        // `ended` pairs with the store of `end` (another stop, or the last task), and `live`
        // with the `fetch_sub` of `one_less` and `lay_off`. `end` and the end of
        // a task notify `progress` after that. A value that stayed old would be waited for until
        // the deadline.
        pool.frame().lifecycle.ended.load(Ordering::SeqCst)
            || pool.frame().membership.live.load(Ordering::SeqCst) == 0
    };
    let mut witness = Witness::default();
    let mut drained =
        || !witness.sees_one_busy(&pool.frame().membership.slots) && done(ledger(pool));
    let _ = wait_until(pool, deadline, || over() || drained()).await;
    end(pool);
    if all_gone(pool, deadline).await {
        return;
    }
    hands.look(&pool.frame().membership.slots);
    // Twice: a worker may have taken its last message in hand just when the pool ended.
    for _ in 0..2 {
        pool.frame().membership.abort(&busy(&pool.frame().membership.slots));
        if all_gone(pool, Instant::now() + LET_GO / 2).await {
            return;
        }
    }
    pool.frame().membership.abort_all();
}

/// Starts nothing more, and waits for the messages in hand. `stopped` hooks that take
/// too long are dropped.
async fn finish_in_hand(pool: &dyn AnyCore) {
    end(pool);
    let slots = &pool.frame().membership.slots;
    let mut had_time = idle(slots);
    while !all_gone(pool, Instant::now() + HOOKS).await {
        had_time.retain(|worker| !slots.at(*worker).is_busy());
        pool.frame().membership.abort(&had_time);
        pool.frame().membership.abort_parting();
        had_time = idle(slots);
    }
}

/// Waits until every task of the pool has ended. False at the deadline.
async fn all_gone(pool: &dyn AnyCore, deadline: Instant) -> bool {
    // Pairs with the `compare_exchange` of `TaskGuard::drop`, which notifies `progress` next:
    // either this load sees 0, or it is repeated. Otherwise the end of the last task could be
    // missed.
    wait_until(pool, deadline, || pool.frame().lifecycle.running.load(Ordering::SeqCst) == 0).await
}

/// Checks after each notification, until `done` says so (true) or the deadline has come (false).
pub(in crate::pool) async fn wait_until(
    pool: &dyn AnyCore,
    deadline: Instant,
    mut done: impl FnMut() -> bool,
) -> bool {
    loop {
        let progress = pool.frame().lifecycle.next_progress();
        if done() {
            return true;
        }
        if timed::until(&pool.frame().env.runtime, deadline, progress).await.is_err() {
            return done();
        }
    }
}
