//! Policies that choose a worker for each message.

use std::{
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use greenroom::{
    CallError, Envelope, NotAccepted, PoolBuilder, PoolStats, Restarts, SendError,
    policy::{About, Choice, Crew, LeastLoaded, Policy, Random, RoundRobin},
    prelude::*,
};

use crate::pools::{
    room::assert_room,
    sleeper::{PANIC, Sleeper},
};

const SOON: Duration = Duration::from_secs(60);
const A_MOMENT: Duration = Duration::from_millis(1);

/// A policy made from a function.
struct By<F>(F);

impl<F> Policy<u64> for By<F>
where
    F: Fn(u64, &Crew<'_>) -> Choice + Send + Sync + 'static,
{
    fn choose(&self, message: &u64, _about: &About<'_>, crew: &Crew<'_>) -> Choice {
        (self.0)(*message, crew)
    }
}

fn sleepers(workers: usize) -> PoolBuilder<Sleeper> {
    Pool::new(|_| Sleeper).workers(workers).restarts(Restarts { max: 0, ..Restarts::default() })
}

async fn slots(pool: &Pool<Sleeper>, calls: usize) -> Vec<usize> {
    let mut slots = Vec::new();
    for _ in 0..calls {
        slots.push(pool.call(0).await.unwrap());
    }
    slots
}

/// Like `slots`, but starting where the first worker answers.
async fn a_round(pool: &Pool<Sleeper>, calls: usize) -> Vec<usize> {
    let mut slots = slots(pool, calls).await;
    let first = slots.iter().position(|slot| *slot == 0).unwrap();
    slots.rotate_left(first);
    slots
}

fn is_untouched(stats: &PoolStats) -> bool {
    stats.accepted == 0 && stats.queued == 0 && stats.ledger_holds()
}

/// Sleeps for a moment, and reports the slot.
struct Listed(Arc<Mutex<Vec<usize>>>);

impl Actor for Listed {
    type Message = usize;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, sender: usize, _: &mut Context<Self>) -> Result<(), ()> {
        tokio::time::sleep(A_MOMENT).await;
        self.0.lock().unwrap().push(sender);
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn p07_a_sender_of_one_message_does_not_wait_for_all_of_those_who_sent_many() {
    for workers in [2, 3, 4, 8] {
        let order = Arc::<Mutex<Vec<usize>>>::default();
        let of_actor = order.clone();
        let pool = Pool::new(move |_| Listed(of_actor.clone())).workers(workers).capacity(10_000);
        let pool = pool.spawn().await.unwrap();
        let senders: Vec<_> = (0..2 * workers).map(|_| pool.address()).collect();
        let (rare, eager) = senders.split_last().unwrap();
        for _ in 0..200 {
            (0..eager.len()).for_each(|sender| eager[sender].try_send(sender).unwrap());
        }
        rare.try_send(usize::MAX).unwrap();
        assert!(pool.stop(Stop::within(SOON)).await.left_over.is_empty());
        let place = order.lock().unwrap().iter().position(|sender| *sender == usize::MAX).unwrap();
        assert!(place <= 16 * workers, "{workers} workers: behind {place} others");
    }
}

#[tokio::test(start_paused = true)]
async fn p09_five_workers_answer_in_turn_and_a_sixth_stands_behind_them() {
    let pool = sleepers(5).dispatch(RoundRobin::new()).spawn().await.unwrap();
    assert_eq!(slots(&pool, 10).await, [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
    pool.admin().add(1).unwrap().done(SOON).await;
    let after = a_round(&pool, 12).await;
    assert_eq!(after, [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]);
    pool.admin().remove_worker(2).unwrap().done(SOON).await;
    let after = a_round(&pool, 10).await;
    assert_eq!(after, [0, 1, 3, 4, 5, 0, 1, 3, 4, 5], "one that was removed is gone");
    // The slot is taken again, by a worker that comes after all others.
    assert_eq!(pool.admin().add(1).unwrap().added(), [2]);
    tokio::time::sleep(SOON).await;
    let after = a_round(&pool, 6).await;
    assert_eq!(after, [0, 1, 3, 4, 5, 2]);
}

#[tokio::test(start_paused = true)]
async fn p08_round_robin_passes_over_workers_that_are_full_disabled_or_being_restarted() {
    let pool = sleepers(3).mailbox(1).dispatch(RoundRobin::new()).spawn().await.unwrap();
    let crew = pool.admin().workers();
    crew[1].try_send(50_000).unwrap();
    tokio::time::sleep(A_MOMENT).await;
    crew[1].try_send(0).unwrap();
    assert!(!slots(&pool, 6).await.contains(&1), "the second one is full");
    assert!(matches!(crew[0].call(PANIC).await, Err(CallError::Panicked(_))));
    tokio::time::sleep(A_MOMENT).await;
    assert_eq!(slots(&pool, 3).await, [2, 2, 2], "the first one is disabled");

    let backoff = greenroom::Backoff::new(SOON, SOON);
    let restarts = Restarts { max: 9, backoff, ..Restarts::default() };
    let pool = Pool::new(|_| Sleeper).workers(2).restarts(restarts);
    let pool = pool.dispatch(RoundRobin::new()).spawn().await.unwrap();
    for _ in 0..2 {
        // The first restart is immediate.
        assert!(pool.admin().workers()[0].call(PANIC).await.is_err());
        tokio::time::sleep(A_MOMENT).await;
    }
    assert_eq!(slots(&pool, 3).await, [1, 1, 1], "the first one is being restarted");
    tokio::time::sleep(2 * SOON).await;
    let mut again = slots(&pool, 2).await;
    again.sort_unstable();
    assert_eq!(again, [0, 1]);
}

#[tokio::test(start_paused = true)]
async fn p08_random_and_least_loaded_spread_evenly() {
    async fn counts(policy: impl Policy<u64>) -> Vec<usize> {
        let pool = sleepers(4).mailbox(10_000).dispatch(policy).spawn().await.unwrap();
        for _ in 0..4_000 {
            pool.try_send(1).unwrap();
        }
        let mut counts = [0; 4];
        // How many messages were assigned to each: nothing has been started yet.
        for worker in pool.admin().workers() {
            while worker.try_reserve().map(std::mem::forget).is_ok() {
                counts[worker.slot()] += 1;
            }
        }
        counts.iter().map(|room| 10_000 - room).collect()
    }
    for seed in [1, 2, 3] {
        let random = counts(Random::seeded(seed)).await;
        assert_eq!(random.iter().sum::<usize>(), 4_000);
        assert!(random.iter().all(|count| (900..1_100).contains(count)), "{random:?}");
        let least = counts(LeastLoaded::seeded(seed)).await;
        assert_eq!(least.iter().sum::<usize>(), 4_000);
        assert!(least.iter().all(|count| (980..1_020).contains(count)), "{least:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn p08_the_least_loaded_of_two_is_never_the_busier_one() {
    let pool = sleepers(2).dispatch(LeastLoaded::seeded(7)).spawn().await.unwrap();
    let busy = pool.call(10_000);
    tokio::pin!(busy);
    assert!(tokio::time::timeout(A_MOMENT, &mut busy).await.is_err());
    let idle = slots(&pool, 20).await;
    assert!(idle.iter().all(|slot| *slot == idle[0]));
    assert_ne!(busy.await.unwrap(), idle[0]);
}

#[tokio::test(start_paused = true)]
async fn p08_of_sixteen_workers_an_idle_one_gets_the_message_beside_any_that_are_stuck() {
    let pool = sleepers(16).dispatch(LeastLoaded::seeded(7)).spawn().await.unwrap();
    for worker in pool.admin().workers().iter().filter(|worker| worker.slot() != 11) {
        worker.try_send(1_000_000).unwrap();
    }
    tokio::time::sleep(A_MOMENT).await;
    assert_eq!(slots(&pool, 50).await, [11; 50]);
}

#[tokio::test(start_paused = true)]
async fn p09_a_worker_that_leaves_costs_no_other_its_turn() {
    for (removed, expected) in [
        // Before the one with the last turn, that one itself, and the next one.
        (0, [2, 3, 4, 1, 2]),
        (1, [2, 3, 4, 0, 2]),
        (2, [3, 4, 0, 1, 3]),
        (4, [2, 3, 0, 1, 2]),
    ] {
        let pool = sleepers(5).dispatch(RoundRobin::new()).spawn().await.unwrap();
        assert_eq!(slots(&pool, 2).await, [0, 1]);
        pool.admin().remove_worker(removed).unwrap().done(SOON).await;
        assert_eq!(slots(&pool, 5).await, expected, "without {removed}");
    }
}

#[tokio::test(start_paused = true)]
async fn p08_a_policy_of_ones_own_chooses_by_place_and_by_slot() {
    let by = |message: u64, crew: &Crew<'_>| match message {
        0 => Choice::At(crew.len() - 1),
        _ => Choice::Slot(1),
    };
    let pool = sleepers(3).dispatch(By(by)).spawn().await.unwrap();
    assert_eq!((pool.call(0).await, pool.call(1).await), (Ok(2), Ok(1)));
    pool.admin().remove_worker(2).unwrap().done(SOON).await;
    assert_eq!((pool.call(0).await, pool.call(1).await), (Ok(1), Ok(1)));
}

#[tokio::test(start_paused = true)]
async fn p08_a_policy_sees_class_sender_and_load() {
    struct Look(Arc<Mutex<Vec<String>>>);
    impl Policy<u64> for Look {
        fn choose(&self, _: &u64, about: &About<'_>, crew: &Crew<'_>) -> Choice {
            let loads: Vec<_> = crew.iter().map(|m| (m.slot, m.waiting, m.in_hand)).collect();
            let sender = about.sender.map(|sender| sender.name().to_string());
            let seen = format!("{:?} {} {sender:?} {loads:?}", about.class, about.is_call);
            self.0.lock().unwrap().push(seen);
            Choice::At(0)
        }
    }
    let look: Arc<Mutex<Vec<String>>> = Arc::default();
    let pool = sleepers(2).name("desk").dispatch(Look(look.clone())).spawn().await.unwrap();
    pool.send(100).await.unwrap();
    tokio::time::sleep(A_MOMENT).await;
    let sender = pool.downgrade().erase();
    pool.send_with(0, Envelope::urgent().sender(sender)).await.unwrap();
    pool.call(0).await.unwrap();
    let seen = look.lock().unwrap().clone();
    assert_eq!(
        seen,
        [
            "Normal false None [(0, 0, 0), (1, 0, 0)]",
            "Urgent false Some(\"desk\") [(0, 0, 1), (1, 0, 0)]",
            "Normal true None [(0, 1, 1), (1, 0, 0)]",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn p08_several_get_a_copy_each_all_or_none() {
    let all = |_, crew: &Crew<'_>| Choice::Several(crew.iter().map(|m| m.slot).collect());
    let pool = sleepers(3).mailbox(1).dispatch_copies(By(all)).spawn().await.unwrap();
    pool.try_send(1_000).unwrap();
    tokio::time::sleep(A_MOMENT).await;
    assert_eq!((pool.stats().accepted, pool.stats().in_hand), (3, 3));
    pool.admin().workers()[1].try_send(0).unwrap();
    assert_eq!(pool.try_send(0).unwrap_err().without_message(), NotAccepted::Full);
    assert_eq!(pool.stats().accepted, 4, "none of them has got a copy");
    tokio::time::sleep(SOON).await;
    assert!(pool.call(0).await.is_ok(), "one of them answers");
    tokio::time::sleep(SOON).await;
    assert_eq!((pool.stats().handled, pool.stats().ledger_holds()), (7, true));
    assert_room(&pool, 3);
    // A reserved permit is one of the three that are needed, and is used or given back.
    let permit = pool.try_reserve().unwrap();
    permit.send(0).unwrap();
    assert_eq!(pool.stats().queued, 3);
    pool.try_send(0).unwrap_err();
    tokio::time::sleep(SOON).await;
    assert_room(&pool, 3);
}

#[tokio::test(start_paused = true)]
async fn p08_several_without_copies_is_the_least_loaded_of_them_and_a_slot_named_twice_is_one() {
    let by = |_, _: &Crew<'_>| Choice::Several(vec![1, 2, 1]);
    let pool = sleepers(3).dispatch(By(by)).spawn().await.unwrap();
    pool.admin().workers()[1].send(100).await.unwrap();
    tokio::time::sleep(A_MOMENT).await;
    assert_eq!(pool.call(0).await, Ok(2));
    let pool = sleepers(3).dispatch_copies(By(by)).spawn().await.unwrap();
    pool.send(0).await.unwrap();
    assert_eq!(pool.stats().accepted, 2);
}

/// A message whose clone may panic.
#[derive(Debug)]
struct Rare(bool);

impl Clone for Rare {
    fn clone(&self) -> Self {
        assert!(!self.0, "there is only one");
        Self(false)
    }
}

struct Keeper;

impl Actor for Keeper {
    type Message = Rare;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, _: Rare, _: &mut Context<Self>) -> Result<(), ()> {
        Ok(())
    }
}

struct Everybody;

impl<M> Policy<M> for Everybody {
    fn choose(&self, _: &M, _: &About<'_>, crew: &Crew<'_>) -> Choice {
        Choice::Several(crew.iter().map(|member| member.slot).collect())
    }
}

#[tokio::test]
async fn p02_copying_that_panics_unwinds_in_the_sender_and_takes_no_permit() {
    let pool = Pool::new(|_| Keeper).workers(2).mailbox(2).dispatch_copies(Everybody);
    let pool = pool.spawn().await.unwrap();
    let address = pool.address();
    let sent = tokio::spawn(async move { address.send(Rare(true)).await }).await;
    assert!(sent.unwrap_err().is_panic());
    assert_eq!(pool.stats().accepted, 0);
    let permits: Vec<_> = (0..4).map(|_| pool.try_reserve()).collect();
    assert!(permits.iter().all(Result::is_ok), "a permit was lost");
}

#[tokio::test(start_paused = true)]
async fn p08_what_is_held_waits_for_a_worker_to_start_and_keeps_its_permit() {
    let last = |_, crew: &Crew<'_>| match crew.get(2) {
        Some(_) => Choice::At(2),
        None => Choice::Hold,
    };
    let pool = sleepers(2).capacity(2).dispatch(By(last)).spawn().await.unwrap();
    let address = pool.address();
    let held = tokio::spawn(async move { address.call(0).await });
    pool.send(0).await.unwrap();
    tokio::time::sleep(SOON).await;
    assert_eq!((pool.stats().queued, pool.stats().in_hand), (2, 0));
    assert_eq!(pool.try_send(0).unwrap_err().without_message(), NotAccepted::Full);
    let waiting = pool.address();
    let waiting = tokio::spawn(async move { waiting.send(0).await });
    pool.admin().add(1).unwrap().done(SOON).await;
    assert_eq!(held.await.unwrap(), Ok(2));
    waiting.await.unwrap().unwrap();
    tokio::time::sleep(SOON).await;
    assert_eq!((pool.stats().handled, pool.stats().ledger_holds()), (3, true));
    assert_room(&pool, 2);
}

#[tokio::test(start_paused = true)]
async fn p22_a_stop_gives_back_what_is_held_and_does_not_wait_for_it() {
    let pool = sleepers(2).dispatch(By(|_, _: &Crew<'_>| Choice::Hold)).spawn().await.unwrap();
    pool.send(7).await.unwrap();
    let permit = pool.try_reserve().unwrap();
    let begun = tokio::time::Instant::now();
    let report = pool.stop(Stop::within(SOON)).await;
    assert_eq!((report.left_over, begun.elapsed() < SOON), (vec![7], true));
    assert_eq!(permit.send(8).unwrap_err().without_message(), NotAccepted::Stopped);
    assert!(pool.stats().ledger_holds());

    let pool = sleepers(2).dispatch(By(|_, _: &Crew<'_>| Choice::Hold)).spawn().await.unwrap();
    let admin = pool.admin();
    let address = pool.address();
    let held = tokio::spawn(async move { address.call(0).await });
    tokio::time::sleep(A_MOMENT).await;
    held.abort();
    drop(pool);
    tokio::time::sleep(A_MOMENT).await;
    assert_eq!(admin.stats().queued, 0, "the pool has ended");
}

#[tokio::test(start_paused = true)]
async fn p08_what_a_policy_refuses_comes_back() {
    let pool = sleepers(2).dispatch(By(|_, _: &Crew<'_>| Choice::Refuse)).spawn().await.unwrap();
    let refused = NotAccepted::Refused;
    assert_eq!(pool.send(7).await.unwrap_err().into_message(), Some(7));
    assert_eq!(pool.try_send(7).unwrap_err().without_message(), refused);
    assert_eq!(pool.call(7).await, Err(SendError::Refused(7).into()));
    assert_eq!(pool.send_many(&mut [1, 2].into()).await, Err(refused));
    let permit = pool.reserve().await.unwrap();
    assert_eq!(permit.send(7).unwrap_err().without_message(), refused);
    assert!(is_untouched(&pool.stats()));
    assert_eq!(pool.stats().rejected, 5);
    assert_room(&pool, 2_000);
}

#[tokio::test(start_paused = true)]
async fn p08_a_policy_that_names_somebody_who_is_not_there_is_asked_three_times_and_then_anybody() {
    for choice in [Choice::Slot(77), Choice::At(77), Choice::Several(vec![77, 78])] {
        let asked = Arc::new(AtomicUsize::new(0));
        let (count, named) = (asked.clone(), choice.clone());
        let by = move |_, _: &Crew<'_>| {
            count.fetch_add(1, Ordering::SeqCst);
            named.clone()
        };
        let pool = sleepers(2).capacity(1).dispatch(By(by)).spawn().await.unwrap();
        assert!(pool.call(0).await.is_ok(), "{choice:?}");
        assert_eq!(asked.swap(0, Ordering::SeqCst), 3);
        // The same if it has to wait for room.
        for _ in 0..4 {
            tokio::time::timeout(SOON, pool.send(10)).await.unwrap().unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn p07_whoever_is_for_anybody_or_is_held_waits_for_room_as_others_do() {
    for choice in [Choice::Any, Choice::Hold] {
        let named = choice.clone();
        let by = move |_, crew: &Crew<'_>| match crew.len() {
            2 => named.clone(),
            _ => Choice::At(0),
        };
        let pool = sleepers(2).capacity(1).dispatch(By(by)).spawn().await.unwrap();
        let senders: Vec<_> = (0..4)
            .map(|_| {
                let address = pool.address();
                tokio::spawn(async move { address.send(10).await })
            })
            .collect();
        tokio::time::sleep(A_MOMENT).await;
        pool.admin().add(1).unwrap().done(SOON).await;
        for sender in senders {
            assert!(sender.await.unwrap().is_ok(), "{choice:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn p02_a_policy_that_panics_unwinds_in_the_sender_with_nothing_accepted() {
    let by = |message: u64, _: &Crew<'_>| match message {
        13 => panic!("on purpose"),
        _ => Choice::At(0),
    };
    let pool = sleepers(1).capacity(3).dispatch(By(by)).spawn().await.unwrap();
    macro_rules! panics {
        ($address:ident, $sends:expr) => {{
            let $address = pool.address();
            assert!(
                tokio::spawn(async move { $sends.map(|_| ()).is_ok() })
                    .await
                    .unwrap_err()
                    .is_panic()
            );
        }};
    }
    panics!(pool, pool.send(13).await);
    panics!(pool, pool.try_send(13));
    panics!(pool, pool.call(13).await);
    panics!(pool, pool.send_many(&mut [13, 1].into()).await);
    panics!(pool, pool.reserve().await.unwrap().send(13));
    panics!(pool, pool.try_reserve().unwrap().send(13));
    assert!(is_untouched(&pool.stats()));
    assert_room(&pool, 3);
    assert_eq!(pool.call(0).await, Ok(0));
}

#[test]
fn p02_a_slow_policy_holds_up_nobody_else() {
    let runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = { runtime }.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        // Two senders are in the policy at once; otherwise neither gets out of it.
        let (both, quick) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
        let (inside, released) = (both.clone(), quick.clone());
        let by = move |message: u64, _: &Crew<'_>| {
            if message == 0 {
                inside.wait();
                released.wait();
            }
            Choice::At(0)
        };
        let pool = sleepers(1).dispatch(By(by)).spawn().await.unwrap();
        let address = pool.address();
        let slow = std::thread::spawn(move || address.try_send(0));
        both.wait();
        assert_eq!(pool.call(1).await, Ok(0), "others are accepted meanwhile");
        assert_eq!(pool.admin().workers().len(), 1, "and management answers");
        quick.wait();
        slow.join().unwrap().unwrap();
    });
}

#[test]
fn p08_a_policy_is_asked_from_the_first_message_on() {
    let runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = { runtime }.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        for _ in 0..1_000 {
            let pool = sleepers(1).dispatch(By(|_, _: &Crew<'_>| Choice::Refuse));
            let pool = pool.spawn().await.unwrap();
            let refused = pool.try_send(0).map_err(|error| error.without_message());
            assert_eq!(refused, Err(NotAccepted::Refused), "the workers were not there yet");
        }
    });
}

#[tokio::test]
async fn p08_no_worker_stays_parked_beside_a_waiting_message() {
    let pool = sleepers(3).spawn().await.unwrap();
    pool.admin().resize(3).unwrap().done(SOON).await;
    for _ in 0..50 {
        for _ in 0..3 {
            pool.try_send(1).unwrap();
        }
        // One scheduling turn for each worker that has to wake up, and one for its waker.
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
        let stats = pool.stats();
        assert!(stats.queued == 0 || stats.idle == 0, "{stats:?}");
        while pool.stats().in_hand > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn p27_one_sender_one_worker_one_order_per_class() {
    struct Diary(Arc<Mutex<Vec<u64>>>);
    impl Actor for Diary {
        type Message = u64;
        type Reply = ();
        type Error = ();
        async fn handle(&mut self, number: u64, _: &mut Context<Self>) -> Result<(), ()> {
            self.0.lock().unwrap().push(number);
            if number.is_multiple_of(3) {
                tokio::time::sleep(Duration::from_millis(number % 5)).await;
            }
            Ok(())
        }
    }
    let diary = Arc::new(Mutex::new(Vec::new()));
    let of_workers = diary.clone();
    let by = |number: u64, _: &Crew<'_>| Choice::At((number % 2) as usize);
    let pool = Pool::new(move |_| Diary(of_workers.clone())).workers(2).mailbox(3);
    let pool = pool.dispatch(By(by)).spawn().await.unwrap();
    for number in 0..200 {
        match number % 10 {
            // To one worker, bypassing the policy.
            8 | 9 => pool.send_many(&mut [number].into()).await.unwrap(),
            _ => pool.send(number).await.unwrap(),
        }
    }
    pool.stop(Stop::within(SOON)).await;
    let diary = diary.lock().unwrap();
    assert_eq!(diary.len(), 200);
    for parity in [0, 1] {
        let one: Vec<_> = diary.iter().filter(|number| *number % 2 == parity).collect();
        assert!(one.is_sorted(), "{one:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn p07_a_sender_that_finds_every_mailbox_full_waits_also_where_the_pool_has_room() {
    let pool = sleepers(2).mailbox(1).capacity(100).dispatch(RoundRobin::new());
    let pool = pool.spawn().await.unwrap();
    for _ in 0..2 {
        pool.send(1_000).await.unwrap();
    }
    tokio::time::sleep(A_MOMENT).await;
    for _ in 0..2 {
        pool.send(0).await.unwrap();
    }
    assert_eq!(pool.try_send(0).unwrap_err().without_message(), NotAccepted::Full);
    assert!(tokio::time::timeout(A_MOMENT, pool.send(0)).await.is_err());
    assert_eq!(pool.stats().queued, 2, "mailboxes are bounded");
    tokio::time::timeout(SOON, pool.send(0)).await.unwrap().unwrap();
}

#[test]
fn p08_the_search_for_room_begins_at_any_place() {
    struct Odd(Arc<Mutex<Vec<usize>>>);
    impl Policy<u64> for Odd {
        fn choose(&self, message: &u64, _: &About<'_>, crew: &Crew<'_>) -> Choice {
            let place = crew.with_room_from(*message as usize);
            self.0.lock().unwrap().push(place);
            Choice::At(place)
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let places = Arc::new(Mutex::new(Vec::new()));
        let pool = sleepers(3).mailbox(1).dispatch(Odd(places.clone())).spawn().await.unwrap();
        for _ in 0..3 {
            pool.try_send(u64::MAX - 1).unwrap();
        }
        let mut places = places.lock().unwrap().clone();
        places.sort_unstable();
        assert_eq!(places, [0, 1, 2]);
    });
}

#[tokio::test(start_paused = true)]
async fn p05_a_spawn_that_is_given_up_leaves_nothing_running() {
    let alive = Arc::new(());
    let of_workers = alive.clone();
    let factory = move |slot| {
        // The second one never finishes starting, and the spawn of a pool with a policy waits for
        // its first attempt.
        Starter { slow: slot == 1, _alive: of_workers.clone() }
    };
    let spawn = Pool::new(factory).workers(2).dispatch(RoundRobin::new()).spawn();
    assert!(tokio::time::timeout(SOON, spawn).await.is_err());
    tokio::time::sleep(SOON).await;
    assert_eq!(Arc::strong_count(&alive), 1, "a worker is still there");
}

struct Starter {
    slow: bool,
    _alive: Arc<()>,
}

impl Actor for Starter {
    type Message = u64;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, _: u64, _: &mut Context<Self>) -> Result<(), ()> {
        Ok(())
    }

    async fn started(&mut self, _: &mut Context<Self>) -> Result<(), ()> {
        if self.slow {
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

/// Notes messages in the order in which they are handled.
struct Notes(Arc<Mutex<Vec<u64>>>);

impl Actor for Notes {
    type Message = u64;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, number: u64, _: &mut Context<Self>) -> Result<(), ()> {
        self.0.lock().unwrap().push(number);
        Ok(())
    }
}

/// A function that a policy runs when it is asked again, for a pool that is made after the policy.
type Asked<T> = Arc<Mutex<Option<T>>>;

fn notes<F>(by: F) -> (PoolBuilder<Notes>, Arc<Mutex<Vec<u64>>>)
where
    F: Fn(u64, &Crew<'_>) -> Choice + Send + Sync + 'static,
{
    let order = Arc::<Mutex<Vec<u64>>>::default();
    let noted = order.clone();
    (Pool::new(move |_| Notes(noted.clone())).workers(1).dispatch_copies(By(by)), order)
}

/// A message that was sent while the policy was asked about others overtook them.
#[tokio::test(start_paused = true)]
async fn p32_what_is_held_goes_before_what_is_sent_while_the_policy_is_asked_again() {
    let address: Asked<greenroom::Address<u64, (), ()>> = Arc::default();
    let sends = address.clone();
    let (pool, order) = notes(move |message, crew: &Crew<'_>| {
        if crew.len() < 2 {
            return Choice::Hold;
        }
        let address = if message == 1 { sends.lock().unwrap().take() } else { None };
        if let Some(address) = address {
            address.try_send(4).unwrap();
        }
        Choice::At(1)
    });
    let pool = pool.spawn().await.unwrap();
    for message in 1..=3 {
        pool.send(message).await.unwrap();
    }
    *address.lock().unwrap() = Some(pool.address());
    pool.admin().add(1).unwrap().done(SOON).await;
    tokio::time::sleep(A_MOMENT).await;
    assert_eq!(*order.lock().unwrap(), [1, 2, 3, 4]);
    assert!(pool.stats().ledger_holds());
}

/// A message that arrived in between got a place before those that were held again.
#[tokio::test(start_paused = true)]
async fn p32_what_is_held_again_keeps_its_place() {
    let address: Asked<greenroom::Address<u64, (), ()>> = Arc::default();
    let sends = address.clone();
    let (pool, order) = notes(move |_, crew: &Crew<'_>| match crew.len() {
        1 => Choice::Hold,
        2 => {
            let address = sends.lock().unwrap().take();
            if let Some(address) = address {
                address.try_send(3).unwrap();
            }
            Choice::Hold
        }
        _ => Choice::At(2),
    });
    let pool = pool.spawn().await.unwrap();
    pool.send(1).await.unwrap();
    pool.send(2).await.unwrap();
    *address.lock().unwrap() = Some(pool.address());
    for _ in 0..2 {
        pool.admin().add(1).unwrap().done(SOON).await;
    }
    tokio::time::sleep(A_MOMENT).await;
    assert_eq!(*order.lock().unwrap(), [1, 2, 3]);
}

/// One of the workers got it, and the others got nothing.
#[tokio::test(start_paused = true)]
async fn p32_a_held_message_for_several_workers_reaches_all_of_them() {
    let (pool, order) = notes(|_, crew: &Crew<'_>| match crew.len() {
        1 => Choice::Hold,
        _ => Choice::Several(vec![0, 1]),
    });
    let pool = pool.capacity(10).spawn().await.unwrap();
    pool.send(1).await.unwrap();
    pool.admin().add(1).unwrap().done(SOON).await;
    tokio::time::sleep(A_MOMENT).await;
    assert_eq!(*order.lock().unwrap(), [1, 1]);
    assert!(pool.stats().ledger_holds());
    assert_room(&pool, 10);
}

/// The stop had checked while the policy had the message, and waited until its deadline.
#[tokio::test(start_paused = true)]
async fn p22_a_stop_that_begins_while_the_policy_is_asked_again_does_not_wait_for_what_is_held() {
    type Stopping = std::pin::Pin<Box<dyn Future<Output = Vec<u64>> + Send>>;
    let (admin, stopping): (Asked<greenroom::PoolAdmin<Notes>>, Asked<Stopping>) =
        Default::default();
    let (stops, begun) = (admin.clone(), stopping.clone());
    let (pool, _) = notes(move |_, crew: &Crew<'_>| {
        let admin = if crew.len() == 2 { stops.lock().unwrap().take() } else { None };
        if let Some(admin) = admin {
            let stop = async move { admin.stop(Stop::within(SOON)).await.left_over };
            let mut stop: Stopping = Box::pin(stop);
            let mut task = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(stop.as_mut().poll(&mut task).is_pending());
            *begun.lock().unwrap() = Some(stop);
        }
        Choice::Hold
    });
    let pool = pool.spawn().await.unwrap();
    pool.send(1).await.unwrap();
    *admin.lock().unwrap() = Some(pool.admin());
    pool.admin().add(1).unwrap().done(SOON).await;
    let (begun, stop) = (tokio::time::Instant::now(), stopping.lock().unwrap().take());
    assert_eq!(stop.unwrap().await, [1]);
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert!(pool.stats().ledger_holds());
}
