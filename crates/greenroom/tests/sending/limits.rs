//! Pools with a limit on starts per second and on messages in hand (P24).

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use greenroom::{
    Actor, Backoff, Context, Pool, PoolBuilder, Restarts, SpawnError, Stop,
    limits::{Adaptive, Rate},
    pool::AdminError,
};
use tokio::time::Instant;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Deed {
    Sleep(Duration),
    Fail,
    Panic,
}

/// Records when each message was started, and its number.
#[derive(Clone, Default)]
struct Book(Arc<Mutex<Vec<(Instant, u64)>>>);

struct Desk(Book);

impl Actor for Desk {
    type Message = (u64, Deed);
    type Reply = ();
    type Error = ();

    async fn handle(
        &mut self,
        (number, deed): (u64, Deed),
        _: &mut Context<Self>,
    ) -> Result<(), ()> {
        self.0.0.lock().unwrap().push((Instant::now(), number));
        match deed {
            Deed::Sleep(time) if !time.is_zero() => tokio::time::sleep(time).await,
            Deed::Sleep(_) => {}
            Deed::Fail => return Err(()),
            Deed::Panic => panic!("on purpose"),
        }
        Ok(())
    }
}

const NOTHING: Deed = Deed::Sleep(Duration::ZERO);

fn desks(workers: usize) -> (PoolBuilder<Desk>, Book) {
    let book = Book::default();
    let pages = book.clone();
    let zero = Backoff::new(Duration::ZERO, Duration::ZERO);
    let restarts = Restarts { max: 100, backoff: zero, ..Restarts::default() };
    let pool = Pool::new(move |_| Desk(pages.clone())).workers(workers).restarts(restarts);
    (pool.mailbox(10_000), book)
}

#[tokio::test(start_paused = true)]
async fn p24_no_stretch_of_time_starts_more_than_its_rate_and_nothing_overtakes() {
    for workers in [1, 4] {
        let (pool, book) = desks(workers);
        let pool = pool.rate(Rate::per_second(100)).ordered_by(|_| 1).spawn().await.unwrap();
        let start = Instant::now();
        for number in 0..500 {
            pool.send((number, NOTHING)).await.unwrap();
        }
        assert!(pool.stop(Stop::within(ms(60_000))).await.left_over.is_empty());
        assert_eq!(start.elapsed(), ms(4_900), "500, but for the 10 of the burst, at 100 a second");
        let pages = book.0.lock().unwrap();
        for (place, (first, number)) in pages.iter().enumerate() {
            assert_eq!(*number, place as u64);
            let within = pages[place..].iter().filter(|(at, _)| *at <= *first + ms(1_000)).count();
            assert!(within <= 110, "{within} within a second");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn p24_workers_that_find_nothing_use_no_token() {
    let (pool, book) = desks(5);
    let pool = pool.rate(Rate::new(1, ms(60_000))).spawn().await.unwrap();
    let start = Instant::now();
    for number in 0..4 {
        pool.call((number, NOTHING)).await.unwrap();
    }
    assert_eq!(start.elapsed(), ms(180_000));
    tokio::time::sleep(ms(600_000)).await;
    let later = Instant::now();
    pool.call((4, NOTHING)).await.unwrap();
    assert_eq!(later.elapsed(), Duration::ZERO, "there is a token, and no more than one");
    pool.call((5, NOTHING)).await.unwrap();
    assert_eq!(later.elapsed(), ms(60_000));
    assert_eq!(book.0.lock().unwrap().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn p24_who_waits_for_a_token_leaves_and_ends_at_once() {
    let (pool, _) = desks(3);
    let pool = pool.rate(Rate::new(1, ms(3_600_000))).spawn().await.unwrap();
    for number in 0..10 {
        pool.send((number, NOTHING)).await.unwrap();
    }
    tokio::time::sleep(ms(1_000)).await;
    let start = Instant::now();
    let report = pool.admin().remove(1).unwrap().done(ms(10_000)).await;
    assert_eq!(report.left.len(), 1);
    assert_eq!(pool.stats().busy, 0, "nobody has anything in hand meanwhile");
    let report = pool.stop(Stop::Now).await;
    assert_eq!((report.left_over.len(), report.stats.handled), (9, 1));
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn p24_no_more_than_so_many_are_in_hand_at_once() {
    let (pool, _) = desks(10);
    let pool = pool.concurrency(3).spawn().await.unwrap();
    let start = Instant::now();
    for number in 0..10 {
        pool.send((number, Deed::Sleep(ms(1_000)))).await.unwrap();
    }
    for _ in 0..35 {
        tokio::time::sleep(ms(100)).await;
        assert!(pool.stats().busy <= 3);
    }
    let stats = pool.stats();
    assert_eq!((stats.limits.limit, stats.limits.would_be_limit), (Some(3), None));
    assert!(stats.limits.held_back > 0);
    pool.stop(Stop::within(ms(60_000))).await;
    assert_eq!(start.elapsed(), ms(4_000));
}

#[tokio::test(start_paused = true)]
async fn p24_a_place_comes_back_from_handlers_that_fail_panic_or_are_killed() {
    let (pool, book) = desks(2);
    let pool = pool.concurrency(1).spawn().await.unwrap();
    for number in 0..10 {
        pool.send((number, if number % 2 == 0 { Deed::Panic } else { Deed::Fail })).await.unwrap();
    }
    tokio::time::sleep(ms(1_000)).await;
    assert_eq!(book.0.lock().unwrap().len(), 10);
    pool.send((10, Deed::Sleep(ms(3_600_000)))).await.unwrap();
    tokio::time::sleep(ms(1_000)).await;
    let busy = pool.admin().worker_stats().into_iter().find(|worker| worker.busy_for.is_some());
    let slot = busy.unwrap().slot;
    let worker = pool.admin().workers().into_iter().find(|worker| worker.slot() == slot).unwrap();
    worker.address().erase().exit(greenroom::ExitReason::Killed);
    tokio::time::sleep(ms(1_000)).await;
    let call = tokio::time::timeout(ms(1_000), pool.call((11, NOTHING))).await;
    assert!(call.is_ok(), "the place of the one that was killed is free");
}

#[tokio::test(start_paused = true)]
async fn p24_a_limit_that_is_observed_holds_nothing_back_and_says_what_it_would_do() {
    let (pool, _) = desks(20);
    let pool = pool.adaptive(Adaptive { initial: 2, ..Adaptive::up_to(50) }).spawn().await.unwrap();
    for number in 0..20 {
        pool.send((number, Deed::Sleep(ms(1_000)))).await.unwrap();
    }
    tokio::time::sleep(ms(500)).await;
    let stats = pool.stats();
    assert_eq!((stats.busy, stats.limits.limit), (20, None));
    assert_eq!(stats.limits.would_be_limit, Some(2));
    assert!(stats.limits.held_back >= 18);
}

#[tokio::test(start_paused = true)]
async fn p24_fast_failures_make_an_enforced_limit_smaller() {
    let (pool, _) = desks(20);
    let pool = pool
        .adaptive(Adaptive { initial: 16, ..Adaptive::up_to(50).enforced() })
        .spawn()
        .await
        .unwrap();
    let limit = || pool.stats().limits.limit.unwrap();
    assert_eq!(limit(), 16);
    for round in 0..100 {
        for number in 0..20 {
            pool.send((round * 20 + number, Deed::Fail)).await.unwrap();
        }
        tokio::time::sleep(ms(50)).await;
    }
    assert!(limit() <= 2, "{}", limit());
    let limit = limit();
    for number in 0..20 {
        pool.send((number, Deed::Sleep(ms(100)))).await.unwrap();
    }
    tokio::time::sleep(ms(50)).await;
    assert!(pool.stats().busy <= limit);
}

#[tokio::test]
async fn p24_limits_out_of_range_are_refused() {
    let setting = |spawned: Result<Pool<Desk>, SpawnError>| match spawned {
        Err(SpawnError::OutOfRange { setting, .. }) => setting,
        other => panic!("{other:?}"),
    };
    assert_eq!(setting(desks(1).0.concurrency(0).spawn().await), "concurrency");
    assert_eq!(setting(desks(1).0.rate(Rate::per_second(0)).spawn().await), "rate.messages");
    assert_eq!(setting(desks(1).0.adaptive(Adaptive::up_to(0)).spawn().await), "limit.max");
}

#[tokio::test(start_paused = true)]
async fn p24_a_rate_is_changed_while_the_pool_runs() {
    let (pool, book) = desks(4);
    let pool = pool.rate(Rate::new(1, ms(60_000))).spawn().await.unwrap();
    for number in 0..21 {
        pool.send((number, NOTHING)).await.unwrap();
    }
    tokio::time::sleep(ms(1_000)).await;
    assert_eq!(book.0.lock().unwrap().len(), 1, "the next token is a minute away");
    pool.admin().set_rate(Rate::per_second(10)).unwrap();
    tokio::time::sleep(ms(2_050)).await;
    assert_eq!(book.0.lock().unwrap().len(), 21, "who waited for it waits at the new rate");
}

#[tokio::test(start_paused = true)]
async fn p24_a_concurrency_limit_is_changed_while_the_pool_runs() {
    let (pool, _) = desks(20);
    let pool = pool.concurrency(2).spawn().await.unwrap();
    for number in 0..60 {
        pool.send((number, Deed::Sleep(ms(1_000)))).await.unwrap();
    }
    tokio::time::sleep(ms(10)).await;
    assert_eq!(pool.stats().in_hand, 2);
    pool.admin().set_concurrency(10).unwrap();
    tokio::time::sleep(ms(10)).await;
    assert_eq!(pool.stats().in_hand, 10);
    pool.admin().set_concurrency(3).unwrap();
    tokio::time::sleep(ms(1_500)).await;
    assert_eq!(pool.stats().in_hand, 3);
}

#[tokio::test]
async fn p24_a_pool_that_was_built_without_limits_has_none_to_change() {
    let plain = desks(1).0.spawn().await.unwrap();
    let rated = desks(1).0.rate(Rate::per_second(5)).concurrency(1).spawn().await.unwrap();
    let rate = Rate::per_second(1);
    assert_eq!(plain.admin().set_rate(rate), Err(AdminError::NoSuchLimit("rate")));
    assert!(matches!(plain.admin().set_concurrency(1), Err(AdminError::NoSuchLimit(_))));
    assert!(matches!(rated.admin().set_concurrency(0), Err(AdminError::LimitOutOfRange(_))));
    let none = rated.admin().set_rate(Rate::per_second(0));
    assert!(matches!(none, Err(AdminError::LimitOutOfRange(_))));
}

#[tokio::test(start_paused = true)]
async fn p24_a_rate_comes_and_goes_while_the_pool_runs() {
    let (pool, book) = desks(4);
    let pool = pool.adjustable_limits().spawn().await.unwrap();
    let started = || book.0.lock().unwrap().len();
    for number in 0..400 {
        pool.send((number, Deed::Sleep(ms(10)))).await.unwrap();
    }
    tokio::time::sleep(ms(1)).await;
    assert_eq!(started(), 4, "nothing but the workers holds them back");
    pool.admin().set_rate(Rate::per_second(10)).unwrap();
    tokio::time::sleep(ms(1_000)).await;
    // One token at once, then ten a second.
    assert_eq!(started(), 4 + 1 + 9);
    pool.admin().set_rate(None).unwrap();
    tokio::time::sleep(ms(105)).await;
    assert_eq!(started(), 14 + 11 * 4, "who waited for a token goes on, and so do all others");
    pool.admin().set_rate(Rate::new(1, ms(60_000))).unwrap();
    tokio::time::sleep(ms(1_000)).await;
    assert_eq!(started(), 58 + 1);
}

#[tokio::test(start_paused = true)]
async fn p24_a_rate_that_comes_holds_for_the_next_message_where_handlers_wait() {
    let (pool, book) = desks(4);
    let pool = pool.adjustable_limits().spawn().await.unwrap();
    let started = || book.0.lock().unwrap().len();
    for number in 0..400 {
        pool.send((number, Deed::Sleep(ms(10)))).await.unwrap();
    }
    // By now the pool knows that its handlers wait.
    tokio::time::sleep(ms(505)).await;
    assert_eq!(started(), 51 * 4);
    pool.admin().set_rate(Rate::new(1, ms(60_000))).unwrap();
    tokio::time::sleep(ms(1_000)).await;
    assert_eq!(started(), 51 * 4 + 1);
}

#[tokio::test(start_paused = true)]
async fn p24_a_concurrency_limit_comes_and_goes_while_the_pool_runs() {
    for rounds in [1, 5] {
        let (pool, _) = desks(20);
        let pool = pool.adjustable_limits().spawn().await.unwrap();
        for number in 0..900 {
            pool.send((number, Deed::Sleep(ms(1_000)))).await.unwrap();
        }
        let in_hand = async || {
            tokio::time::sleep(ms(10)).await;
            pool.stats().in_hand
        };
        for _ in 0..rounds {
            assert_eq!((in_hand().await, pool.stats().limits.limit), (20, None));
            pool.admin().set_concurrency(3).unwrap();
            assert_eq!(in_hand().await, 20, "what is in hand goes on");
            tokio::time::sleep(ms(2_000)).await;
            assert_eq!((in_hand().await, pool.stats().limits.limit), (3, Some(3)));
            pool.admin().set_concurrency(None).unwrap();
        }
        assert_eq!(in_hand().await, 20);
    }
}

#[tokio::test(start_paused = true)]
async fn p24_limits_come_and_go_together_and_nothing_is_lost() {
    let (pool, book) = desks(8);
    let pool = pool.adjustable_limits().spawn().await.unwrap();
    for number in 0..500 {
        pool.send((number, Deed::Sleep(ms(number % 7)))).await.unwrap();
    }
    let mut random = 7_u64;
    for _ in 0..200 {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let number = random >> 33;
        match number % 4 {
            0 => pool.admin().set_rate(None).unwrap(),
            1 => pool.admin().set_rate(Rate::per_second(1 + number % 300)).unwrap(),
            2 => pool.admin().set_concurrency(None).unwrap(),
            _ => pool.admin().set_concurrency(1 + number as usize % 8).unwrap(),
        }
        tokio::time::sleep(ms(number % 20)).await;
    }
    pool.admin().set_rate(None).unwrap();
    pool.admin().set_concurrency(None).unwrap();
    let report = pool.stop(greenroom::Stop::within(ms(60_000))).await;
    assert!(report.left_over.is_empty() && report.wedged.is_empty());
    assert_eq!(book.0.lock().unwrap().len(), 500);
}
