//! Pools that are advised, and that follow their advice (H10).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use greenroom::{
    Overflow, PoolEvent, PoolEvents, SpawnError, Stop, Supervisor,
    advisor::{Advice, Advisor, Finding},
    autoscale::Autoscale,
    policy::RoundRobin,
    pool::Inbox,
    pool_events::{Kind, PoolEventReceiver, ResizeReason},
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

/// Takes as long as the message says, and notes it.
#[derive(Clone, Default)]
struct Sleeper(Arc<Mutex<HashMap<u8, Vec<u32>>>>);

impl Actor for Sleeper {
    type Message = (u8, u32, Duration);
    type Reply = ();
    type Error = ();

    async fn handle(
        &mut self,
        (key, number, time): Self::Message,
        _: &mut Context<Self>,
    ) -> Result<(), ()> {
        sleep(time).await;
        self.0.lock().expect("nobody panics").entry(key).or_default().push(number);
        Ok(())
    }
}

fn rule(pool: &Pool<Sleeper>) -> Option<Finding> {
    pool.admin().advice().map(|advice| advice.finding)
}

fn lines(advice: &Advice) -> String {
    advice.change.map(|change| change.to_string()).unwrap_or_default()
}

/// Sends a burst of so many each second until then.
async fn bursts(pool: &Pool<Sleeper>, of: u32, each: Duration, until: Instant) {
    let mut at = Instant::now();
    while at < until {
        for number in 0..of {
            pool.send((0, number, each)).await.unwrap();
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
    let pool = Pool::new(|_| Sleeper::default()).workers(2).mailbox(5).pool_events(notices.clone());
    let pool = pool.advise(Advisor::default()).spawn().await.unwrap();
    let start = Instant::now();
    bursts(&pool, 30, ms(1), start + minutes(4) + ms(59_000)).await;
    assert_eq!(pool.admin().advice(), None);
    bursts(&pool, 30, ms(1), start + minutes(16)).await;
    let advice = pool.admin().advice().unwrap();
    assert_eq!(
        (advice.finding, advice.acted, &*lines(&advice)),
        (Finding::Shallow, false, "inbox_size: 5 -> 10")
    );
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
async fn h10_a_pool_that_acts_grows_its_inbox_until_bursts_fit_in() {
    let notices = PoolEvents::new(10_000);
    let mut told = notices.subscribe();
    let pool = Pool::new(|_| Sleeper::default()).workers(2).mailbox(5).pool_events(notices);
    let pool = pool.advise(Advisor::default().act()).spawn().await.unwrap();
    bursts(&pool, 30, ms(1), Instant::now() + minutes(31)).await;
    assert_eq!(pool.stats().capacity, 40, "30 in a burst");
    assert_eq!(rule(&pool), Some(Finding::Fine), "what it needs it keeps");
    let mut changes = Vec::new();
    while let Some(Event::Item(notice)) = told.try_recv() {
        if let PoolEvent::CapacityChanged { from, to, reason } = notice.what {
            assert_eq!(reason, ResizeReason::Advised);
            changes.push((from, to));
        }
    }
    assert_eq!(changes, [(10, 20), (20, 40)]);
    assert!(pool.stats().ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn h10_a_late_pool_with_a_long_queue_gets_a_shorter_one_and_workers_within_its_bounds() {
    let pool = Pool::new(|_| Sleeper::default()).workers(4).mailbox(100).bounds(1..=7);
    let pool = pool.advise(Advisor::default().act()).spawn().await.unwrap();
    let sender = pool.address();
    let flood = tokio::spawn(async move {
        for number in 0.. {
            if sender.send((0, number, ms(50))).await.is_err() {
                return number;
            }
        }
        0
    });
    sleep(minutes(5) + ms(2_000)).await;
    let advice = pool.admin().advice().unwrap();
    assert_eq!(lines(&advice), "inbox_size: 100 -> 50; pool_size: 4 -> 6", "{advice}");
    assert!(advice.acted && advice.figures.p99 > Some(ms(4_000)) && advice.figures.busy > 0.9);
    assert_eq!((pool.stats().configured, pool.stats().capacity), (6, 300));
    sleep(minutes(5)).await;
    assert_eq!((pool.stats().configured, pool.stats().capacity), (7, 175));
    let report = pool.stop(Stop::within(minutes(10))).await;
    assert!(report.left_over.is_empty() && pool.stats().ledger_holds());
    assert_eq!(pool.stats().handled, u64::from(flood.await.unwrap()));
}

#[tokio::test(start_paused = true)]
async fn h10_each_key_keeps_its_order_and_nothing_is_lost_while_the_pool_acts() {
    const KEYS: u8 = 40;
    const EACH: u32 = 1_500;
    let seen = Sleeper::default();
    let worker = seen.clone();
    let pool = Pool::new(move |_| worker.clone()).workers(4).mailbox(64);
    let pool = pool.ordered_by(|message: &(u8, u32, Duration)| message.0);
    let settings = Advisor::default().period(ms(10_000)).act();
    let pool = pool.bounds(1..=64).advise(settings).spawn().await.unwrap();
    let senders = (0..KEYS).map(|key| {
        let address = pool.address();
        tokio::spawn(async move {
            for number in 0..EACH {
                address.send((key, number, ms(u64::from(number % 7)))).await.unwrap();
            }
        })
    });
    for sender in senders.collect::<Vec<_>>() {
        sender.await.unwrap();
    }
    let (workers, capacity) = (pool.stats().configured, pool.stats().capacity);
    assert!(workers > 4 && capacity / workers < 64, "it acts: {workers}, {capacity}");
    let report = pool.stop(Stop::within(minutes(10))).await;
    assert!(report.left_over.is_empty() && pool.stats().ledger_holds());
    assert_eq!(pool.stats().handled, u64::from(KEYS) * u64::from(EACH));
    let seen = seen.0.lock().unwrap();
    assert!((0..KEYS).all(|key| seen[&key] == (0..EACH).collect::<Vec<_>>()));
}

#[tokio::test(start_paused = true)]
async fn h10_an_oversized_inbox_is_halved_and_a_quiet_pool_is_left_alone() {
    let pool = Pool::new(|_| Sleeper::default()).workers(2).capacity(8_000);
    let pool = pool.advise(Advisor::default().act()).spawn().await.unwrap();
    sleep(minutes(20)).await;
    assert_eq!(
        (rule(&pool), pool.stats().capacity),
        (Some(Finding::Fine), 8_000),
        "nothing was sent"
    );
    let mut capacities = Vec::new();
    for _ in 0..4 {
        bursts(&pool, 3, ms(20), Instant::now() + minutes(5)).await;
        capacities.push(pool.stats().capacity);
    }
    let first: &[usize] = if capacities[0] == 8_000 { &capacities[1..] } else { &capacities };
    assert_eq!(first[..3], [4_000, 2_000, 1_000]);
    let advice = pool.admin().advice().unwrap();
    assert!(lines(&advice).starts_with("queue: "), "{advice}");
}

#[tokio::test(start_paused = true)]
async fn h10_messages_that_wait_behind_their_key_get_no_workers() {
    let pool = Pool::new(|_| Sleeper::default()).workers(4).mailbox(25);
    let pool = pool.ordered_by(|message: &(u8, u32, Duration)| message.0).max_per_key(1_000);
    let pool = pool.advise(Advisor::default()).spawn().await.unwrap();
    for number in 0..100 {
        pool.send((7, number, minutes(1))).await.unwrap();
    }
    sleep(minutes(6)).await;
    let advice = pool.admin().advice().unwrap();
    assert_eq!((advice.finding, &*lines(&advice)), (Finding::LongQueue, "inbox_size: 25 -> 13"));
    assert!((0.2..0.3).contains(&advice.figures.busy), "{advice}");
}

#[tokio::test(start_paused = true)]
async fn h10_a_pool_that_finishes_nothing_is_late_by_its_oldest_message() {
    let pool = Pool::new(|_| Sleeper::default()).workers(1).mailbox(1_000);
    let pool = pool.advise(Advisor::default()).spawn().await.unwrap();
    for number in 0..10 {
        pool.send((0, number, minutes(60))).await.unwrap();
    }
    sleep(minutes(5) + ms(1)).await;
    let advice = pool.admin().advice().unwrap();
    assert_eq!(advice.finding, Finding::SlowHandler);
    assert!(advice.figures.p99 > Some(minutes(4)), "{advice}");
}

#[tokio::test(start_paused = true)]
async fn h10_the_autoscaler_keeps_the_number_of_workers_to_itself() {
    let pool = Pool::new(|_| Sleeper::default()).workers(2).mailbox(10);
    let never_late = Autoscale::between(2, 8).target_age(minutes(60));
    let pool = pool.autoscale(never_late).overflow(Overflow::Reject);
    let pool = pool.advise(Advisor::default().act()).spawn().await.unwrap();
    let end = Instant::now() + minutes(6);
    while Instant::now() < end {
        let _ = pool.try_send((0, 0, ms(200)));
        sleep(ms(10)).await;
    }
    let advice = pool.admin().advice().unwrap();
    assert_eq!((advice.finding, &*lines(&advice)), (Finding::LongQueue, "inbox_size: 10 -> 5"));
    assert_eq!((pool.stats().configured, pool.stats().capacity), (2, 10));
}

#[tokio::test(start_paused = true)]
async fn h10_where_each_worker_has_a_mailbox_of_its_own_nothing_is_changed() {
    let pool = Pool::new(|_| Sleeper::default()).workers(2).mailbox(5).dispatch(RoundRobin::new());
    let pool = pool.advise(Advisor::default().act()).spawn().await.unwrap();
    bursts(&pool, 30, ms(1), Instant::now() + minutes(6)).await;
    let advice = pool.admin().advice().unwrap();
    assert_eq!((advice.finding, advice.acted), (Finding::Shallow, false), "{advice}");
    assert_eq!((lines(&advice), pool.stats().capacity), ("inbox_size: 5 -> 10".to_owned(), 10));
}

#[tokio::test(start_paused = true)]
async fn h10_a_pool_that_is_stopped_is_not_looked_at_any_more() {
    let pool = Pool::new(|_| Sleeper::default()).advise(Advisor::default().act());
    let pool = pool.spawn().await.unwrap();
    sleep(minutes(1)).await;
    let report = pool.stop(Stop::within(ms(1_000))).await;
    assert!(report.wedged.is_empty(), "its task has ended, too");
    sleep(minutes(10)).await;
    assert_eq!(pool.admin().advice(), None);
}

#[tokio::test(start_paused = true)]
async fn h10_a_supervised_pool_is_advised_from_its_start() {
    let pool = Pool::new(|_| Sleeper::default()).workers(2).mailbox(5);
    let (pool, child) = pool.advise(Advisor::default()).supervised().unwrap();
    let root = Supervisor::new(Strategy::OneForOne).child(child).spawn().await.unwrap();
    bursts(&pool, 30, ms(1), Instant::now() + minutes(6)).await;
    assert_eq!(rule(&pool), Some(Finding::Shallow));
    root.stop(Stop::within(ms(1_000))).await;
}

#[tokio::test]
async fn h10_an_advisor_out_of_range_is_refused() {
    let pool = Pool::new(|_| Sleeper::default()).advise(Advisor::default().period(ms(1)));
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
    let pool = Pool::new(|_| Sleeper::default()).workers(2).mailbox(5).pool_events(notices.clone());
    let pool = pool.spawn().await.unwrap();
    bursts(&pool, 30, ms(1), Instant::now() + minutes(6)).await;
    assert_eq!(rule(&pool), None, "it has none");

    pool.admin().set_advisor(Advisor::default()).unwrap();
    bursts(&pool, 30, ms(1), Instant::now() + minutes(6)).await;
    assert_eq!((rule(&pool), pool.stats().capacity), (Some(Finding::Shallow), 10), "it says so");

    // The one before has looked for a minute at a period, and must not end it.
    pool.admin().set_advisor(Advisor::default().act()).unwrap();
    assert_eq!(rule(&pool), None, "the new one has seen nothing");
    bursts(&pool, 30, ms(1), Instant::now() + ms(290_000)).await;
    assert_eq!((rule(&pool), pool.stats().capacity), (None, 10));
    bursts(&pool, 30, ms(1), Instant::now() + ms(20_000)).await;
    assert_eq!((rule(&pool), pool.stats().capacity), (Some(Finding::Shallow), 20), "it acts");

    pool.admin().set_advisor(None).unwrap();
    bursts(&pool, 30, ms(1), Instant::now() + minutes(21)).await;
    assert_eq!((rule(&pool), pool.stats().capacity), (None, 20), "nobody acts any more");
    let told: Vec<bool> = advised(&mut told).iter().map(|advice| advice.acted).collect();
    assert_eq!(told, [false, true]);

    let wrong = pool.admin().set_advisor(Advisor::default().period(ms(1)));
    assert!(wrong.unwrap_err().to_string().contains("advisor.period"));
    pool.stop(Stop::Now).await;
    assert!(pool.admin().set_advisor(Advisor::default()).is_err(), "it has stopped");
}

#[tokio::test(start_paused = true)]
async fn h10_a_pool_that_was_always_fine_has_nothing_to_tell() {
    let notices = PoolEvents::new(1_000);
    let pool = Pool::new(|_| Sleeper::default()).workers(2).pool_events(notices.clone());
    let pool = pool.advise(Advisor::default()).spawn().await.unwrap();
    sleep(minutes(11)).await;
    assert_eq!(rule(&pool), Some(Finding::Fine));
    assert_eq!(notices.counts().of(Kind::Advised), 0);
}

#[tokio::test(start_paused = true)]
async fn h10_bounds_of_workers_change_while_the_pool_runs() {
    let pool = Pool::new(|_| Sleeper::default()).workers(4).spawn().await.unwrap();
    pool.admin().set_bounds(5..=6).unwrap();
    assert_eq!(pool.stats().configured, 4, "those that there are stay");
    for (workers, possible) in [(7, false), (5, true), (4, false), (6, true)] {
        assert_eq!(pool.admin().resize(workers).is_ok(), possible, "{workers}");
    }
    assert!(pool.admin().set_bounds(1..=65_537).is_err());
    let scaled = Pool::new(|_| Sleeper::default()).autoscale(Autoscale::between(1, 3));
    let scaled = scaled.spawn().await.unwrap();
    assert!(scaled.admin().set_bounds(1..=9).is_err(), "it has bounds of its own");
}
