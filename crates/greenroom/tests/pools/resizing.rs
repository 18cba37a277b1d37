//! A pool that changes its size while it works.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use greenroom::{
    Address, Backoff, DeadLetterReason, NotAccepted, Restarts, SendError, SpawnError, Stop,
    policy::RoundRobin, pool::AdminError, prelude::*,
};
use tokio::task::JoinHandle;

use crate::pools::{
    room::assert_room,
    sleeper::{PANIC, Sleeper},
};

const SOON: Duration = Duration::from_secs(60);
const A_MOMENT: Duration = Duration::from_millis(1);

#[tokio::test(start_paused = true)]
async fn p13_a_pool_grows_and_shrinks_while_all_its_workers_are_busy() {
    let pool = Pool::new(|_| Sleeper).workers(2).mailbox(10).spawn().await.unwrap();
    for _ in 0..4 {
        pool.send(10_000).await.unwrap();
    }
    let grown = pool.admin().resize(4).unwrap();
    assert_eq!((grown.added(), grown.size()), (&[2, 3][..], 4));
    assert_eq!(grown.done(SOON).await.started, [2, 3]);
    tokio::time::sleep(Duration::from_millis(1)).await;
    let stats = pool.stats();
    assert_eq!((stats.configured, stats.in_hand, stats.queued, stats.capacity), (4, 4, 0, 40));
    let shrunk = pool.admin().resize(1).unwrap();
    assert_eq!(shrunk.removed(), [3, 2, 1]);
    let early = shrunk.done(Duration::from_secs(1)).await;
    assert_eq!(
        (early.left.len(), early.pending.len()),
        (0, 3),
        "each finishes what it has in hand"
    );
    assert_eq!(pool.stats().capacity, 10);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(pool.stats().handled, 4);
    assert_eq!(pool.stats().live, 1);
}

#[tokio::test(start_paused = true)]
async fn p15_idle_workers_leave_first_and_more_than_there_are_is_all() {
    let pool = Pool::new(|_| Sleeper).workers(3).spawn().await.unwrap();
    pool.admin().resize(3).unwrap().done(SOON).await;
    let busy = pool.address();
    let busy = tokio::spawn(async move { busy.call(1_000).await });
    tokio::time::sleep(Duration::from_millis(1)).await;
    let removed = pool.admin().remove(2).unwrap();
    let idle = removed.removed().to_vec();
    assert_eq!(removed.done(Duration::from_millis(1)).await.left.len(), 2);
    let slot = busy.await.unwrap().unwrap();
    assert!(!idle.contains(&slot), "the busy one stays");
    let rest = pool.admin().remove(10).unwrap();
    assert_eq!((rest.removed(), rest.size()), (&[slot][..], 0));
    rest.done(SOON).await;
    assert_eq!(pool.try_send(0).unwrap_err().without_message(), NotAccepted::NoWorkers);
    pool.admin().add(1).unwrap().done(SOON).await;
    assert_eq!(pool.call(0).await, Ok(0), "the lowest slot is taken again");
}

#[tokio::test(start_paused = true)]
async fn p15_a_pool_without_workers_holds_messages_where_it_is_told_to() {
    let pool =
        Pool::new(|_| Sleeper).workers(0).capacity(2).hold_when_empty().spawn().await.unwrap();
    pool.try_send(0).unwrap();
    pool.try_send(0).unwrap();
    assert_eq!(pool.try_send(0).unwrap_err().without_message(), NotAccepted::Full);
    pool.admin().add(1).unwrap().done(SOON).await;
    let report = pool.stop(Stop::within(SOON)).await;
    assert_eq!((report.stats.handled, report.left_over.len()), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn p05_an_empty_pool_rejects_and_is_revived_by_its_first_worker() {
    let pool = Pool::new(|_| Sleeper).workers(0).spawn().await.unwrap();
    assert_eq!(pool.try_send(0).unwrap_err().without_message(), NotAccepted::NoWorkers);
    assert_eq!(pool.send(0).await.unwrap_err().without_message(), NotAccepted::NoWorkers);
    pool.admin().add(2).unwrap().done(SOON).await;
    assert!(pool.call(0).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn p16_starts_that_fail_are_told_and_the_bounds_hold() {
    let broken = Arc::new(AtomicBool::new(false));
    let fails = broken.clone();
    let factory = move |slot| match slot == 2 && fails.load(Ordering::SeqCst) {
        true => Err("no connection"),
        false => Ok(Sleeper),
    };
    let pool = Pool::try_new(factory).workers(1).bounds(1..=4).spawn().await.unwrap();
    let beyond = pool.admin().add(4).unwrap_err();
    assert_eq!(beyond, AdminError::OutOfBounds { asked: 5, bounds: 1..=4 });
    assert!(matches!(pool.admin().remove(1), Err(AdminError::OutOfBounds { asked: 0, .. })));
    broken.store(true, Ordering::SeqCst);
    let report = pool.admin().add(3).unwrap().done(SOON).await;
    assert_eq!(report.started, [1, 3]);
    assert_eq!(report.failed, [(2, "no connection".to_owned())]);
    broken.store(false, Ordering::SeqCst);
    tokio::time::sleep(SOON).await;
    let stats = pool.stats();
    assert_eq!((stats.configured, stats.idle), (4, 4), "the size recovers");
}

#[tokio::test(start_paused = true)]
async fn p19_a_disabled_slot_is_brought_back_by_enable() {
    let restarts = Restarts { max: 0, ..Restarts::default() };
    let pool = Pool::new(|_| Sleeper).workers(2).restarts(restarts).spawn().await.unwrap();
    pool.admin().resize(2).unwrap().done(SOON).await;
    assert_eq!(pool.admin().enable(0).unwrap_err(), AdminError::NotDisabled(0));
    for _ in 0..2 {
        assert!(pool.call(PANIC).await.is_err());
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(pool.try_send(0).unwrap_err().without_message(), NotAccepted::NoWorkers);
    assert_eq!(pool.stats().live, 0);
    pool.admin().enable(1).unwrap().done(SOON).await;
    assert_eq!(pool.call(0).await, Ok(1));
    assert_eq!(pool.admin().enable(7).unwrap_err(), AdminError::NoSuchSlot(7));
}

#[tokio::test(start_paused = true)]
async fn p22_after_a_stop_management_says_that_the_pool_is_not_running() {
    let pool = Pool::new(|_| Sleeper).spawn().await.unwrap();
    let admin = pool.admin();
    admin.stop(Stop::Now).await;
    for refused in [admin.add(1), admin.remove(1), admin.resize(9), admin.enable(0)] {
        assert_eq!(refused.unwrap_err(), AdminError::NotRunning);
    }
}

#[tokio::test(start_paused = true)]
async fn p15_a_worker_leaves_between_restarts_and_while_it_starts() {
    let restarts =
        Restarts { max: 9, backoff: greenroom::Backoff::new(SOON, SOON), ..Restarts::default() };
    let pool = Pool::new(|_| Sleeper).workers(1).restarts(restarts).spawn().await.unwrap();
    for _ in 0..2 {
        assert!(pool.call(PANIC).await.is_err());
    }
    let left = pool.admin().remove(1).unwrap().done(Duration::from_millis(10)).await;
    assert_eq!(left.left, [0], "it does not wait for the end of its backoff");
}

/// A sender in its own task.
fn sends(address: &Address<u64, usize, ()>, ms: u64) -> JoinHandle<Result<(), NotAccepted>> {
    let address = address.clone();
    tokio::spawn(async move { address.send(ms).await.map_err(|error| error.without_message()) })
}

#[tokio::test(start_paused = true)]
async fn p13_a_worker_can_be_addressed_alone_within_its_bound_and_the_pools() {
    let pool = Pool::new(|_| Sleeper).workers(2).mailbox(2).capacity(3).spawn().await.unwrap();
    pool.admin().resize(2).unwrap().done(SOON).await;
    let crew = pool.admin().workers();
    assert_eq!(crew.iter().map(|worker| worker.slot()).collect::<Vec<_>>(), [0, 1]);
    assert_eq!((crew[0].call(0).await, crew[1].call(0).await), (Ok(0), Ok(1)));
    crew[1].send(1_000).await.unwrap();
    tokio::time::sleep(A_MOMENT).await;
    crew[1].send(0).await.unwrap();
    crew[1].send(0).await.unwrap();
    assert_eq!(crew[1].try_send(0).unwrap_err().without_message(), NotAccepted::Full);
    assert_eq!(crew[0].call(0).await, Ok(0), "another has room");
    crew[0].send(1_000).await.unwrap();
    tokio::time::sleep(A_MOMENT).await;
    crew[0].send(0).await.unwrap();
    assert_eq!(crew[0].try_send(0).unwrap_err().without_message(), NotAccepted::Full);
    assert_eq!(pool.stats().queued, 3, "the pool is full, though the mailbox is not");
    assert!(pool.stats().ledger_holds());
    tokio::time::sleep(SOON).await;
    assert_room(&pool, 3);
    for worker in &crew {
        let places: Vec<_> = (0..2).map(|_| worker.try_reserve()).collect();
        assert!(places.iter().all(Result::is_ok) && worker.try_reserve().is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn p13_who_waits_for_one_worker_is_served_in_turn_and_a_cancelled_one_is_passed_over() {
    let pool = Pool::new(|_| Sleeper).workers(1).mailbox(1).spawn().await.unwrap();
    let worker = pool.admin().workers().remove(0);
    worker.send(100).await.unwrap();
    tokio::time::sleep(A_MOMENT).await;
    worker.send(100).await.unwrap();
    let first = sends(&worker, 100);
    tokio::task::yield_now().await;
    let cancelled = sends(&worker, 100);
    tokio::task::yield_now().await;
    let last = sends(&worker, 0);
    tokio::task::yield_now().await;
    cancelled.abort();
    tokio::time::sleep(Duration::from_millis(110)).await;
    assert!(first.is_finished() && !last.is_finished());
    assert_eq!(worker.try_send(0).unwrap_err().without_message(), NotAccepted::Full);
    last.await.unwrap().unwrap();
    tokio::time::sleep(SOON).await;
    assert_eq!(pool.stats().handled, 4);
    assert_room(&pool, 1);
}

#[tokio::test(start_paused = true)]
async fn p13_a_worker_that_was_removed_is_refused_and_whoever_takes_its_slot_is_another() {
    let pool = Pool::new(|_| Sleeper).workers(2).mailbox(1).spawn().await.unwrap();
    let gone = pool.admin().workers().remove(1);
    gone.send(1_000).await.unwrap();
    tokio::time::sleep(A_MOMENT).await;
    gone.send(0).await.unwrap();
    let waiting = sends(&gone, 0);
    tokio::task::yield_now().await;
    let kept = gone.try_reserve();
    assert!(kept.is_err());
    let change = pool.admin().remove_worker(1).unwrap();
    assert_eq!(change.done(SOON).await.left, [1]);
    assert_eq!(waiting.await.unwrap(), Err(NotAccepted::NoWorkers));
    assert_eq!(gone.try_send(0).unwrap_err().without_message(), NotAccepted::NoWorkers);
    assert_eq!(gone.call(0).await, Err(SendError::NoWorkers(0).into()));
    assert_eq!(gone.reserve().await.err(), Some(NotAccepted::NoWorkers));
    assert_eq!(pool.admin().add(1).unwrap().added(), [1]);
    tokio::time::sleep(SOON).await;
    assert_eq!(gone.send(0).await.unwrap_err().without_message(), NotAccepted::NoWorkers);
    assert_eq!(pool.admin().workers()[1].call(0).await, Ok(1));
    assert_eq!((pool.stats().handled, pool.stats().ledger_holds()), (3, true));
    assert_room(&pool, 2);
}

#[tokio::test(start_paused = true)]
async fn p15_what_a_worker_had_queued_is_handled_by_others_when_it_leaves_or_is_disabled() {
    for (leaves, keyed) in [(true, false), (true, true), (false, false), (false, true)] {
        let restarts = Restarts { max: 0, ..Restarts::default() };
        let builder = Pool::new(|_| Sleeper).workers(2).capacity(10).restarts(restarts);
        let pool = match keyed {
            true => builder.ordered_by(|ms: &u64| *ms).spawn().await.unwrap(),
            false => builder.spawn().await.unwrap(),
        };
        pool.admin().resize(2).unwrap().done(SOON).await;
        let one = pool.admin().workers().remove(1);
        one.send(100).await.unwrap();
        tokio::time::sleep(A_MOMENT).await;
        if !leaves {
            one.send(PANIC).await.unwrap();
        }
        let calls: Vec<_> = (0..5)
            .map(|_| {
                let one = one.address().clone();
                tokio::spawn(async move { one.call(1).await })
            })
            .collect();
        tokio::time::sleep(A_MOMENT).await;
        let permits: Vec<_> = (0..4 + usize::from(leaves)).map(|_| pool.try_reserve()).collect();
        assert!(permits.iter().all(Result::is_ok) && pool.try_reserve().is_err());
        if leaves {
            pool.admin().remove_worker(1).unwrap().done(SOON).await;
        }
        for call in calls {
            assert_eq!(call.await.unwrap(), Ok(0), "by the other one");
        }
        drop(permits);
        tokio::time::sleep(SOON).await;
        let stats = pool.stats();
        assert!(stats.ledger_holds() && stats.queued == 0, "{stats:?}");
        assert_room(&pool, 10);
    }
}

/// Sleeps for this many milliseconds and fails; panics at [`PANIC`].
struct Failing;

impl Actor for Failing {
    type Message = u64;
    type Reply = ();
    type Error = &'static str;

    async fn handle(&mut self, ms: u64, _cx: &mut Context<Self>) -> Result<(), &'static str> {
        assert!(ms != PANIC, "on purpose");
        tokio::time::sleep(Duration::from_millis(ms)).await;
        Err("not yet")
    }
}

#[tokio::test(start_paused = true)]
async fn p15_p19_a_pool_that_shrinks_lets_go_of_disabled_workers_first() {
    let restarts = Restarts { max: 0, ..Restarts::default() };
    let pool = Pool::new(|_| Sleeper).workers(3).capacity(10).restarts(restarts);
    let pool = pool.ordered_by(|ms: &u64| *ms).spawn().await.unwrap();
    pool.admin().workers()[0].send(PANIC).await.unwrap();
    tokio::time::sleep(A_MOMENT).await;
    assert_eq!(pool.stats().live, 2);
    for ms in [100, 101, 102, 103] {
        pool.send(ms).await.unwrap();
    }
    let shrunk = pool.admin().resize(1).unwrap();
    assert!(shrunk.removed().contains(&0), "{:?}", shrunk.removed());
    shrunk.done(SOON).await;
    tokio::time::sleep(SOON).await;
    let stats = pool.stats();
    assert_eq!((stats.live, stats.handled, stats.queued), (1, 4, 0), "{stats:?}");
}

/// The last worker is disabled while another one, which is leaving, has a message in hand that is
/// then to be retried.
#[tokio::test(start_paused = true)]
async fn p15_p19_what_a_leaving_worker_leaves_to_nobody_is_a_dead_letter() {
    let a_while = Duration::from_millis(50);
    for keyed in [false, true] {
        let builder = Pool::new(|_| Failing)
            .workers(2)
            .capacity(10)
            .retry(5, Backoff::new(a_while, a_while))
            .restarts(Restarts { max: 0, ..Restarts::default() });
        let pool = match keyed {
            true => builder.ordered_by(|ms: &u64| *ms).spawn().await.unwrap(),
            false => builder.spawn().await.unwrap(),
        };
        let [stays, leaves] = &*pool.admin().workers() else { panic!("two workers") };
        leaves.send(100).await.unwrap();
        tokio::time::sleep(A_MOMENT).await;
        let _leaving = pool.admin().remove_worker(1).unwrap();
        stays.send(PANIC).await.unwrap();
        tokio::time::sleep(a_while).await;
        assert_eq!((pool.stats().live, pool.stats().in_hand), (0, 1), "keyed: {keyed}");
        tokio::time::sleep(SOON).await;
        let stats = pool.stats();
        assert_eq!((stats.waiting, stats.queued, stats.in_hand), (0, 0, 0), "keyed: {keyed}");
        assert_eq!(stats.dead_letters.of(DeadLetterReason::NoWorkers), 2, "keyed: {keyed}");
        assert!(stats.ledger_holds(), "{stats:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn p15_a_pool_that_shrank_below_what_is_queued_accepts_nothing_until_it_is_drained() {
    let pool = Pool::new(|_| Sleeper).workers(3).mailbox(2).spawn().await.unwrap();
    pool.admin().resize(3).unwrap().done(SOON).await;
    for _ in 0..3 {
        pool.send(1_000).await.unwrap();
    }
    tokio::time::sleep(A_MOMENT).await;
    for _ in 0..6 {
        pool.send(100).await.unwrap();
    }
    let _shrinks = pool.admin().resize(1).unwrap();
    assert_eq!((pool.stats().queued, pool.stats().capacity), (6, 2));
    let waiting = sends(&pool, 0);
    for _ in 0..40 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let stats = pool.stats();
        if stats.queued >= 2 {
            assert_eq!(pool.try_send(0).unwrap_err().without_message(), NotAccepted::Full);
            assert!(stats.queued == 2 || !waiting.is_finished(), "{stats:?}");
        }
    }
    waiting.await.unwrap().unwrap();
    tokio::time::sleep(SOON).await;
    assert_room(&pool, 2);
    let _grows = pool.admin().resize(4).unwrap();
    assert_room(&pool, 8); // workers x mailbox, as P06 says
    assert_eq!(pool.stats().handled, 10);
}

#[tokio::test(start_paused = true)]
async fn p06_a_total_capacity_stays_what_it_is_and_a_grown_pool_lets_waiters_in() {
    let pool = Pool::new(|_| Sleeper).workers(1).capacity(2).spawn().await.unwrap();
    let _grows = pool.admin().resize(5).unwrap();
    assert_room(&pool, 2);
    let pool = Pool::new(|_| Sleeper).workers(1).mailbox(1).spawn().await.unwrap();
    let permit = pool.try_reserve().unwrap();
    let waiting: Vec<_> = (0..4).map(|_| sends(&pool, 0)).collect();
    tokio::time::sleep(A_MOMENT).await;
    assert!(waiting.iter().all(|sender| !sender.is_finished()));
    let _grows = pool.admin().resize(2).unwrap();
    tokio::time::sleep(A_MOMENT).await;
    for sender in waiting {
        sender.await.unwrap().unwrap();
    }
    drop(permit);
    assert_room(&pool, 2);
}

#[tokio::test(start_paused = true)]
async fn p15_what_is_queued_when_the_last_worker_leaves_waits_for_the_next_one() {
    for holds in [true, false] {
        let builder = Pool::new(|_| Sleeper).workers(1).capacity(4);
        let builder = if holds { builder.hold_when_empty() } else { builder };
        let pool = builder.spawn().await.unwrap();
        pool.send(1_000).await.unwrap();
        tokio::time::sleep(A_MOMENT).await;
        pool.admin().workers()[0].send(0).await.unwrap();
        pool.send(0).await.unwrap();
        let address = pool.address();
        let called = tokio::spawn(async move { address.call(0).await });
        tokio::task::yield_now().await;
        pool.admin().resize(0).unwrap().done(SOON).await;
        assert_eq!((pool.stats().queued, pool.stats().handled), (3, 1));
        let more = pool.try_send(0).map_err(|error| error.without_message());
        assert_eq!(more, if holds { Ok(()) } else { Err(NotAccepted::NoWorkers) });
        pool.admin().resize(2).unwrap().done(SOON).await;
        assert!(called.await.unwrap().is_ok());
        tokio::time::sleep(SOON).await;
        let stats = pool.stats();
        assert_eq!((stats.handled, stats.ledger_holds()), (if holds { 5 } else { 4 }, true));
        assert_room(&pool, 4);
    }
}

#[tokio::test(start_paused = true)]
async fn p15_who_waits_for_room_is_refused_when_the_last_worker_goes_unless_messages_are_held() {
    for holds in [true, false] {
        let builder = Pool::new(|_| Sleeper).workers(1).capacity(1);
        let builder = if holds { builder.hold_when_empty() } else { builder };
        let pool = builder.spawn().await.unwrap();
        let permit = pool.try_reserve().unwrap();
        let waiting = sends(&pool, 0);
        tokio::time::sleep(A_MOMENT).await;
        pool.admin().remove(1).unwrap().done(SOON).await;
        tokio::time::sleep(A_MOMENT).await;
        assert_eq!(waiting.is_finished(), !holds);
        // An older permit is honoured only if messages are accepted.
        assert_eq!(permit.send(0).is_ok(), holds);
        let _comes = pool.admin().add(1).unwrap();
        let sent = waiting.await.unwrap();
        assert_eq!(sent, if holds { Ok(()) } else { Err(NotAccepted::NoWorkers) });
        tokio::time::sleep(SOON).await;
        assert!(pool.stats().ledger_holds());
        assert_room(&pool, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn p22_a_permit_that_is_used_after_a_stop_gives_its_message_back_whatever_the_policy() {
    for dispatched in [false, true] {
        let builder = Pool::new(|_| Sleeper).workers(2);
        let pool = match dispatched {
            true => builder.dispatch(RoundRobin::new()).spawn().await.unwrap(),
            false => builder.spawn().await.unwrap(),
        };
        let permits = [pool.try_reserve().unwrap(), pool.try_reserve().unwrap()];
        let worker = pool.admin().workers().remove(0);
        let own = worker.try_reserve().unwrap();
        let [early, late] = permits;
        let stopping = pool.stop(Stop::Now);
        stopping.await;
        for permit in [early, late, own] {
            assert_eq!(permit.send(7).unwrap_err().without_message(), NotAccepted::Stopped);
        }
        assert_eq!(pool.stats().accepted, 0);
        assert!(pool.admin().workers().iter().all(|worker| worker.try_send(0).is_err()));
    }
}

#[tokio::test(start_paused = true)]
async fn p22_stops_race_with_starts_changes_and_each_other_and_everybody_is_told() {
    for (turns, how) in [(0, Stop::Now), (1, Stop::within(SOON)), (2, Stop::Now), (3, Stop::Now)] {
        let pool = Pool::new(|_| Sleeper).workers(3).spawn().await.unwrap();
        for _ in 0..6 {
            pool.send(500).await.unwrap();
        }
        let changes = [pool.admin().resize(6), pool.admin().remove(2), pool.admin().resize(1)];
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        let (one, other) = tokio::join!(pool.stop(how), pool.stop(Stop::within(SOON)));
        let left_over = one.left_over.len() + other.left_over.len();
        let stats = pool.stats();
        assert!(stats.ledger_holds() && stats.queued == 0 && stats.in_hand == 0, "{stats:?}");
        assert_eq!((stats.returned as usize, stats.accepted), (left_over, 6));
        for change in changes {
            // Changes that ended with the pool are reported at once.
            let begun = tokio::time::Instant::now();
            let report = change.unwrap().done(SOON).await;
            assert!(begun.elapsed() < SOON, "{report:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn p22_a_worker_that_is_stopped_alone_is_gone_also_where_the_pool_ends_first() {
    let pool = Pool::new(|_| Sleeper).workers(1).spawn().await.unwrap();
    let worker = pool.admin().workers().remove(0);
    worker.send(1_000_000).await.unwrap();
    tokio::time::sleep(A_MOMENT).await;
    let alone = worker.downgrade().erase();
    let alone = tokio::spawn(async move { alone.stop(Stop::Now).await });
    let leaves = pool.admin();
    tokio::time::sleep(A_MOMENT).await;
    assert!(leaves.remove(1).unwrap().removed().is_empty(), "it is on its way already");
    pool.stop(Stop::within(A_MOMENT)).await;
    assert!(tokio::time::timeout(SOON, alone).await.is_ok(), "it would wait for ever");
}

#[tokio::test(start_paused = true)]
async fn p13_bad_input_is_a_typed_error() {
    let of = |builder: greenroom::PoolBuilder<Sleeper>| async { builder.spawn().await.err() };
    for mailbox in [0, usize::MAX] {
        let sizes = [of(Pool::new(|_| Sleeper).mailbox(mailbox)).await];
        let more = [of(Pool::new(|_| Sleeper).mailbox(mailbox).capacity(5)).await];
        for error in sizes.into_iter().chain(more) {
            assert!(matches!(error, Some(SpawnError::OutOfRange { setting: "mailbox", .. })));
        }
    }
    for bounds in [4..=9, 0..=2, 0..=usize::MAX] {
        let error = of(Pool::new(|_| Sleeper).workers(3).bounds(bounds)).await;
        assert!(matches!(error, Some(SpawnError::OutOfRange { setting: "workers", .. })));
    }
    let pool = Pool::new(|_| Sleeper).workers(1).bounds(0..=3).spawn().await.unwrap();
    let admin = pool.admin();
    for refused in [admin.add(usize::MAX), admin.resize(usize::MAX), admin.resize(4)] {
        assert!(matches!(refused, Err(AdminError::OutOfBounds { .. })));
    }
    assert_eq!(admin.remove_worker(9).unwrap_err(), AdminError::NoSuchSlot(9));
    assert_eq!(admin.remove_worker(usize::MAX).unwrap_err(), AdminError::NoSuchSlot(usize::MAX));
    assert_eq!(admin.enable(usize::MAX).unwrap_err(), AdminError::NoSuchSlot(usize::MAX));
    assert_eq!(admin.remove(usize::MAX).unwrap().removed(), [0]);
    assert!(admin.remove(3).unwrap().removed().is_empty());
    assert!(admin.add(0).unwrap().done(SOON).await.is_complete());
}

#[tokio::test(start_paused = true)]
async fn p13_a_flood_for_one_worker_does_not_shut_out_the_pools_own_messages() {
    let order = Arc::new(Mutex::new(Vec::new()));
    struct Diary(Arc<Mutex<Vec<u64>>>);
    impl Actor for Diary {
        type Message = u64;
        type Reply = ();
        type Error = ();
        async fn handle(&mut self, number: u64, _: &mut Context<Self>) -> Result<(), ()> {
            self.0.lock().unwrap().push(number);
            Ok(())
        }
    }
    for keyed in [false, true] {
        let diary = order.clone();
        let builder = Pool::new(move |_| Diary(diary.clone())).workers(1);
        let pool = match keyed {
            true => builder.ordered_by(|number: &u64| *number).spawn().await.unwrap(),
            false => builder.spawn().await.unwrap(),
        };
        let worker = pool.admin().workers().remove(0);
        pool.try_send(1).unwrap();
        for _ in 0..500 {
            worker.try_send(0).unwrap();
        }
        pool.try_send(2).unwrap();
        pool.stop(Stop::within(SOON)).await;
        let order = std::mem::take(&mut *order.lock().unwrap());
        assert_eq!(order.len(), 502);
        let place = order.iter().position(|number| *number == 2).unwrap();
        assert!(place < 200, "it was handled after {place} others");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn p13_a_pool_that_several_resize_at_once_has_the_size_that_they_ask_for() {
    const TIMES: usize = 5_000;
    let pool = Pool::new(|_| Sleeper).workers(1).spawn().await.unwrap();
    let (admin, both) = (pool.admin(), std::sync::Barrier::new(2));
    let resize = || {
        let is_wrong = |size: &usize| {
            both.wait();
            let resized = admin.resize(*size);
            both.wait();
            resized.is_err() || pool.stats().configured != *size
        };
        [1, 3].into_iter().cycle().take(TIMES).filter(is_wrong).count()
    };
    let wrong = std::thread::scope(|threads| {
        let other = threads.spawn(resize);
        resize() + other.join().unwrap()
    });
    assert_eq!(wrong, 0);
}

/// A woken task may call the pool immediately.
struct Asks(Mutex<Option<Pool<Sleeper>>>, AtomicUsize);

impl std::task::Wake for Asks {
    fn wake(self: Arc<Self>) {
        let Some(pool) = &*self.0.lock().unwrap() else { return };
        drop((pool.admin().workers(), pool.stats(), pool.try_reserve().is_ok()));
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

/// Runs this on a thread of its own: it may wait forever for a lock that it holds.
fn finishes(work: impl AsyncFnOnce() + Send + 'static) {
    let (done, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(work());
        done.send(()).unwrap();
    });
    assert!(told.recv_timeout(SOON).is_ok(), "it waits for its own lock, or was not woken");
}

#[test]
fn p13_no_waker_of_a_sender_runs_under_a_lock_of_the_pool() {
    finishes(async || {
        let pool = Pool::new(|_| Sleeper).workers(1).mailbox(1).spawn().await.unwrap();
        let (admin, address) = (pool.admin(), pool.address());
        let asks = Arc::new(Asks(Mutex::new(Some(pool)), AtomicUsize::new(0)));
        let waker = std::task::Waker::from(asks.clone());
        let mut task = std::task::Context::from_waker(&waker);
        let permits = [address.try_reserve().unwrap()];
        let mut waits = [Box::pin(address.reserve()), Box::pin(address.reserve())];
        waits.iter_mut().for_each(|wait| assert!(wait.as_mut().poll(&mut task).is_pending()));
        drop(admin.add(1).unwrap());
        assert_eq!(asks.1.load(Ordering::SeqCst), 1, "it grows");
        drop(admin.remove(2).unwrap());
        assert_eq!(asks.1.load(Ordering::SeqCst), 2, "it is deserted");
        drop(permits);
        drop(admin.add(1).unwrap());
        let more: Vec<_> = std::iter::from_fn(|| address.try_reserve().ok()).collect();
        let mut last = Box::pin(address.reserve());
        assert!(last.as_mut().poll(&mut task).is_pending());
        admin.stop(Stop::Now).await;
        assert_eq!(asks.1.load(Ordering::SeqCst), 3, "it is stopped");
        drop((waits, last, more));
        asks.0.lock().unwrap().take();
    });
}

#[test]
fn p13_k10_no_waker_of_a_sender_behind_a_key_runs_under_a_lock_of_the_pool() {
    finishes(async || {
        let pool = Pool::new(|_| Sleeper).workers(1).mailbox(4).ordered_by(|_: &u64| 0);
        let pool = pool.spawn().await.unwrap();
        let (admin, address) = (pool.admin(), pool.address());
        let asks = Arc::new(Asks(Mutex::new(Some(pool)), AtomicUsize::new(0)));
        let waker = std::task::Waker::from(asks.clone());
        address.try_send(0).unwrap();
        let mut waits = Box::pin(address.send(1));
        let mut task = std::task::Context::from_waker(&waker);
        assert!(waits.as_mut().poll(&mut task).is_pending(), "a key has a quarter of the room");
        drop(admin.add(1).unwrap());
        assert_eq!(asks.1.load(Ordering::SeqCst), 1, "it grows");
        assert!(waits.as_mut().poll(&mut task).is_ready());
        asks.0.lock().unwrap().take();
    });
}
