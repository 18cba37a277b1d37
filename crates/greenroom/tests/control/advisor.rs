//! Pools that are advised (H10).

use std::time::Duration;

use greenroom::{
    Overflow, PoolEvent, PoolEvents, SpawnError, Stop, Supervisor,
    advisor::{Advice, Advisor, Finding},
    autoscale::Autoscale,
    pool::Inbox,
    pool_events::{Kind, PoolEventReceiver},
    prelude::*,
    supervisor::Strategy,
    topic::Event,
};
use tokio::time::{Instant, sleep, sleep_until};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

/// Takes as long as the message says.
struct Sleeper;

impl Actor for Sleeper {
    type Message = Duration;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, time: Duration, _: &mut Context<Self>) -> Result<(), ()> {
        sleep(time).await;
        Ok(())
    }
}

fn rule(pool: &Pool<Sleeper>) -> Option<Finding> {
    pool.admin().advice().map(|advice| advice.finding)
}

fn lines(advice: &Advice) -> String {
    advice.change.map(|change| change.to_string()).unwrap_or_default()
}

/// Sends a burst of this size each second until then.
async fn bursts(pool: &Pool<Sleeper>, of: u32, each: Duration, until: Instant) {
    let mut at = Instant::now();
    while at < until {
        for _ in 0..of {
            pool.send(each).await.unwrap();
        }
        at += ms(1_000);
        sleep_until(at).await;
    }
}

fn advised(told: &mut PoolEventReceiver) -> Vec<Advice> {
    let mut advice = Vec::new();
    while let Some(Event::Item(notice)) = told.try_recv() {
        if let PoolEvent::Advised { advice: one } = notice.what {
            advice.push(*one);
        }
    }
    advice
}

#[tokio::test(start_paused = true)]
async fn h10_advice_is_given_after_five_minutes_told_when_it_changes_and_changes_nothing() {
    let notices = PoolEvents::new(10_000);
    let mut told = notices.subscribe();
    let pool = Pool::new(|_| Sleeper).workers(2).mailbox(5).pool_events(notices.clone());
    let pool = pool.advise(Advisor::default()).spawn().await.unwrap();
    let start = Instant::now();
    bursts(&pool, 30, ms(1), start + minutes(4) + ms(59_000)).await;
    assert_eq!(pool.admin().advice(), None);
    bursts(&pool, 30, ms(1), start + minutes(16)).await;
    let advice = pool.admin().advice().unwrap();
    assert_eq!((advice.finding, &*lines(&advice)), (Finding::Shallow, "inbox_size: 5 -> 10"));
    let figures = advice.figures;
    assert!((59.0..61.0).contains(&figures.full_per_minute()), "{figures}");
    assert_eq!((figures.workers, figures.inbox), (2, Inbox::PerWorker(5)));
    assert!((8_970..9_030).contains(&figures.started), "{figures}");
    assert_eq!(pool.stats().capacity, 10);

    sleep(minutes(11)).await;
    assert_eq!(rule(&pool), Some(Finding::Fine));
    let told: Vec<Finding> = advised(&mut told).iter().map(|advice| advice.finding).collect();
    assert_eq!(told, [Finding::Shallow, Finding::Fine], "once each");
    assert_eq!(notices.counts().of(Kind::Advised), 2);
    assert_eq!(notices.counts().of(Kind::CapacityChanged), 0);
}

#[tokio::test(start_paused = true)]
async fn h10_a_late_pool_with_a_long_queue_is_advised_workers_within_its_bounds() {
    let pool = Pool::new(|_| Sleeper).workers(4).mailbox(100).bounds(1..=5);
    let pool = pool.advise(Advisor::default()).spawn().await.unwrap();
    let sender = pool.address();
    tokio::spawn(async move { while sender.send(ms(50)).await.is_ok() {} });
    sleep(minutes(5) + ms(2_000)).await;
    let advice = pool.admin().advice().unwrap();
    assert_eq!(lines(&advice), "inbox_size: 100 -> 50; pool_size: 4 -> 5", "{advice}");
    assert!(advice.figures.p99 > Some(ms(4_000)) && advice.figures.busy > 0.9, "{advice}");
    assert_eq!((pool.stats().configured, pool.stats().capacity), (4, 400));
}

#[tokio::test(start_paused = true)]
async fn h10_an_oversized_inbox_is_told_and_a_quiet_pool_is_left_alone() {
    let pool = Pool::new(|_| Sleeper).workers(2).capacity(8_000);
    let pool = pool.advise(Advisor::default()).spawn().await.unwrap();
    sleep(minutes(20)).await;
    assert_eq!(rule(&pool), Some(Finding::Fine), "nothing was sent");
    bursts(&pool, 3, ms(20), Instant::now() + minutes(11)).await;
    assert_eq!(lines(&pool.admin().advice().unwrap()), "queue: 8000 -> 4000");
}

#[tokio::test(start_paused = true)]
async fn h10_messages_that_wait_behind_their_key_get_no_workers() {
    let pool = Pool::new(|_| Sleeper).workers(4).mailbox(25);
    let pool = pool.ordered_by(|_: &Duration| 7).max_per_key(1_000);
    let pool = pool.advise(Advisor::default()).spawn().await.unwrap();
    for _ in 0..100 {
        pool.send(minutes(1)).await.unwrap();
    }
    sleep(minutes(6)).await;
    let advice = pool.admin().advice().unwrap();
    assert_eq!((advice.finding, &*lines(&advice)), (Finding::LongQueue, "inbox_size: 25 -> 13"));
    assert!((0.2..0.3).contains(&advice.figures.busy), "{advice}");
}

#[tokio::test(start_paused = true)]
async fn h10_a_pool_that_finishes_nothing_is_late_by_its_oldest_message() {
    let pool = Pool::new(|_| Sleeper).workers(1).mailbox(1_000);
    let pool = pool.advise(Advisor::default()).spawn().await.unwrap();
    for _ in 0..10 {
        pool.send(minutes(60)).await.unwrap();
    }
    sleep(minutes(5) + ms(1)).await;
    let advice = pool.admin().advice().unwrap();
    assert_eq!(advice.finding, Finding::SlowHandler);
    assert!(advice.figures.p99 > Some(minutes(4)), "{advice}");
}

#[tokio::test(start_paused = true)]
async fn h10_the_autoscaler_keeps_the_number_of_workers_to_itself() {
    let pool = Pool::new(|_| Sleeper).workers(2).mailbox(10);
    let never_late = Autoscale { target_age: minutes(60), ..Autoscale::between(2, 8) };
    let pool = pool.autoscale(never_late).overflow(Overflow::Reject);
    let pool = pool.advise(Advisor::default()).spawn().await.unwrap();
    let end = Instant::now() + minutes(6);
    while Instant::now() < end {
        let _ = pool.try_send(ms(200));
        sleep(ms(10)).await;
    }
    let advice = pool.admin().advice().unwrap();
    assert_eq!((advice.finding, &*lines(&advice)), (Finding::LongQueue, "inbox_size: 10 -> 5"));
    assert_eq!(pool.stats().configured, 2);
}

#[tokio::test(start_paused = true)]
async fn h10_a_pool_that_is_stopped_is_not_looked_at_any_more() {
    let pool = Pool::new(|_| Sleeper).advise(Advisor::default()).spawn().await.unwrap();
    sleep(minutes(1)).await;
    let report = pool.stop(Stop::within(ms(1_000))).await;
    assert!(report.wedged.is_empty(), "its task has ended, too");
    sleep(minutes(10)).await;
    assert_eq!(pool.admin().advice(), None);
}

#[tokio::test(start_paused = true)]
async fn h10_a_supervised_pool_is_advised_from_its_start() {
    let pool = Pool::new(|_| Sleeper).workers(2).mailbox(5);
    let (pool, child) = pool.advise(Advisor::default()).supervised().unwrap();
    let root = Supervisor::new(Strategy::OneForOne).child(child).spawn().await.unwrap();
    bursts(&pool, 30, ms(1), Instant::now() + minutes(6)).await;
    assert_eq!(rule(&pool), Some(Finding::Shallow));
    root.stop(Stop::within(ms(1_000))).await;
}

#[tokio::test]
async fn h10_an_advisor_out_of_range_is_refused() {
    let pool = Pool::new(|_| Sleeper).advise(Advisor { period: ms(1), ..Advisor::default() });
    let refused = pool.spawn().await;
    assert!(matches!(
        refused,
        Err(SpawnError::OutOfRange { setting: "advisor.period (in ms)", value: 1, .. })
    ));
}

#[tokio::test(start_paused = true)]
async fn h10_a_running_pool_is_given_an_advisor_another_one_or_none() {
    let notices = PoolEvents::new(10_000);
    let mut told = notices.subscribe();
    let pool = Pool::new(|_| Sleeper).workers(2).mailbox(5).pool_events(notices.clone());
    let pool = pool.spawn().await.unwrap();
    bursts(&pool, 30, ms(1), Instant::now() + minutes(6)).await;
    assert_eq!(rule(&pool), None, "it has none");

    pool.admin().set_advisor(Advisor::default()).unwrap();
    bursts(&pool, 30, ms(1), Instant::now() + minutes(6)).await;
    assert_eq!(rule(&pool), Some(Finding::Shallow));

    // The former one looks only once in a long period, and must not end this one.
    pool.admin().set_advisor(Advisor { shallow: 5, ..Advisor::default() }).unwrap();
    assert_eq!(rule(&pool), None, "the new one has seen nothing");
    bursts(&pool, 30, ms(1), Instant::now() + ms(290_000)).await;
    assert_eq!(rule(&pool), None);
    bursts(&pool, 30, ms(1), Instant::now() + ms(20_000)).await;
    assert_eq!(rule(&pool), Some(Finding::SlowToDrain), "5 are not shallow to it");

    pool.admin().set_advisor(None).unwrap();
    bursts(&pool, 30, ms(1), Instant::now() + minutes(21)).await;
    assert_eq!(rule(&pool), None, "nobody looks any more");
    let told: Vec<Finding> = advised(&mut told).iter().map(|advice| advice.finding).collect();
    assert_eq!(told, [Finding::Shallow, Finding::SlowToDrain]);

    let wrong = pool.admin().set_advisor(Advisor { period: ms(1), ..Advisor::default() });
    assert!(wrong.unwrap_err().to_string().contains("advisor.period"));
    pool.stop(Stop::Now).await;
    assert!(pool.admin().set_advisor(Advisor::default()).is_err(), "it has stopped");
}

#[tokio::test(start_paused = true)]
async fn h10_a_pool_that_was_always_fine_has_nothing_to_tell() {
    let notices = PoolEvents::new(1_000);
    let pool = Pool::new(|_| Sleeper).workers(2).pool_events(notices.clone());
    let pool = pool.advise(Advisor::default()).spawn().await.unwrap();
    sleep(minutes(11)).await;
    assert_eq!(rule(&pool), Some(Finding::Fine));
    assert_eq!(notices.counts().of(Kind::Advised), 0);
}
