//! Pools that change their size by themselves (P23).

use std::time::Duration;

use greenroom::{Actor, Context, Pool, SpawnError, Stop, autoscale::Autoscale, pool::AdminError};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Sleeps for the given time.
struct Sleeper;

impl Actor for Sleeper {
    type Message = Duration;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, time: Duration, _: &mut Context<Self>) -> Result<(), ()> {
        tokio::time::sleep(time).await;
        Ok(())
    }
}

async fn sleepers(workers: usize, settings: Autoscale) -> Pool<Sleeper> {
    let pool = Pool::new(|_| Sleeper).workers(workers).capacity(100_000);
    pool.autoscale(settings).spawn().await.unwrap()
}

fn size(pool: &Pool<Sleeper>) -> usize {
    pool.stats().configured
}

#[tokio::test(start_paused = true)]
async fn p23_a_queue_that_is_late_makes_the_pool_grow_in_one_step_and_no_further_than_its_maximum()
{
    let pool = sleepers(2, Autoscale::between(2, 40)).await;
    for _ in 0..2_000 {
        pool.send(ms(50)).await.unwrap();
    }
    tokio::time::sleep(ms(990)).await;
    assert_eq!(size(&pool), 2, "it has not been looked at");
    tokio::time::sleep(ms(200)).await;
    assert_eq!(size(&pool), 40);
    let asked = pool.admin().add(1).unwrap_err();
    assert_eq!(asked, AdminError::OutOfBounds { asked: 41, bounds: 2..=40 });
    for _ in 0..40 {
        tokio::time::sleep(ms(100)).await;
        assert!(pool.stats().busy <= 40);
    }
    assert_eq!(pool.stats().handled, 2_000);
}

#[tokio::test(start_paused = true)]
async fn p23_busy_is_not_idle_and_idle_workers_go_after_the_cool_down() {
    let settings = Autoscale { down_cooldown: ms(10_000), ..Autoscale::between(2, 40) };
    let pool = sleepers(20, settings).await;
    for _ in 0..20 {
        pool.send(ms(120_000)).await.unwrap();
    }
    tokio::time::sleep(ms(119_000)).await;
    assert_eq!(size(&pool), 20, "nothing is finished for minutes, and nobody is idle");
    assert_eq!(pool.stats().busy, 20);
    tokio::time::sleep(ms(9_000)).await;
    assert_eq!(size(&pool), 20, "within the cool-down");
    tokio::time::sleep(ms(5_000)).await;
    assert_eq!(size(&pool), 2);
    assert_eq!(pool.stats().handled, 20);
}

#[tokio::test(start_paused = true)]
async fn p23_between_a_change_and_the_next_growth_there_is_a_cool_down() {
    let settings = Autoscale { up_cooldown: ms(5_000), ..Autoscale::between(1, 64) };
    let pool = sleepers(1, settings).await;
    for _ in 0..100 {
        pool.send(ms(60_000)).await.unwrap();
    }
    let mut sizes = Vec::new();
    for _ in 0..16 {
        tokio::time::sleep(ms(1_000)).await;
        sizes.push(size(&pool));
    }
    sizes.dedup();
    assert_eq!(sizes, [1, 2, 4, 8], "nothing is measured yet, so it doubles, each five seconds");
}

#[tokio::test(start_paused = true)]
async fn p23_a_size_that_was_set_by_hand_is_where_it_goes_on_from() {
    let settings = Autoscale { down_cooldown: ms(10_000), ..Autoscale::between(2, 40) };
    let pool = sleepers(4, settings).await;
    pool.admin().resize(30).unwrap().done(ms(1_000)).await;
    tokio::time::sleep(ms(5_000)).await;
    assert_eq!(size(&pool), 30);
    assert!(pool.admin().resize(1).is_err());
    tokio::time::sleep(ms(10_000)).await;
    assert_eq!(size(&pool), 2);
    let report = pool.stop(Stop::within(ms(1_000))).await;
    assert!(report.wedged.is_empty(), "the task that looks at it has ended, too");
}

#[tokio::test(start_paused = true)]
async fn p23_messages_that_wait_behind_their_key_get_no_workers() {
    let pool = Pool::new(|_| Sleeper).workers(4).ordered_by(|_: &Duration| 7_u8);
    let pool = pool.autoscale(Autoscale::between(4, 40)).spawn().await.unwrap();
    for _ in 0..100 {
        pool.send(ms(1_000)).await.unwrap();
    }
    tokio::time::sleep(ms(20_000)).await;
    assert_eq!(size(&pool), 4);
    assert!(pool.stats().oldest > Some(ms(10_000)));
}

#[tokio::test]
async fn p23_settings_out_of_range_are_refused() {
    let pool = Pool::new(|_| Sleeper).autoscale(Autoscale::between(3, 2)).spawn().await;
    assert!(matches!(pool, Err(SpawnError::OutOfRange { setting: "autoscale.max", .. })));
    let pool = Pool::new(|_| Sleeper).autoscale(Autoscale::between(3, 1_000_000)).spawn().await;
    assert!(matches!(pool, Err(SpawnError::OutOfRange { setting: "workers", .. })));
}
