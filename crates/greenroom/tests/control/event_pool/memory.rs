//! Estimates, measurements and the ceiling (H03, H12).

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use greenroom::{
    FinalAction, PoolEvent,
    event_pool::{EventPoolConfig, MemoryReading},
    pool_events::{Holding, Kind, PoolEventReceiver},
    topic::Event,
};

use super::stage::{Do, MILLI, SECOND, clerks, sizes, told};

const MIB: u64 = 1 << 20;

/// Bytes of the process, and of a machine that has 4,000.
#[derive(Default)]
struct Reading(AtomicU64);

impl Reading {
    fn set(&self, bytes: u64) {
        self.0.store(bytes, Ordering::Relaxed);
    }
}

impl MemoryReading for Reading {
    fn process(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed))
    }

    fn machine(&self) -> Option<u64> {
        Some(4_000)
    }
}

#[tokio::test(start_paused = true)]
async fn h03_the_estimate_is_workers_times_inbox_times_the_average_size() {
    let reading = Arc::new(Reading::default());
    reading.set(77);
    let (builder, ..) = clerks(sizes(2, 10));
    let pool = builder.memory_reading(reading.clone()).spawn().await.unwrap();
    let memory = pool.stats().memory;
    assert_eq!((memory.average_message, memory.is_measured, memory.estimate), (200, false, 4_000));
    assert_eq!((memory.process, memory.machine), (Some(77), Some(4_000)));
    pool.pool().admin().resize(3).unwrap().done(SECOND).await;
    assert_eq!(pool.stats().memory.estimate, 6_000, "it follows the size");
}

#[tokio::test(start_paused = true)]
async fn h03_the_average_is_measured_once_there_are_messages_and_stands_beside_what_is_used() {
    let (builder, ..) = clerks(sizes(2, 10));
    let pool = builder.message_size(|_| 500);
    let pool = pool.spawn().await.unwrap();
    // One in 61 is measured.
    for number in 0..1_000 {
        pool.process(Some(number), Do::Reply(number)).await.unwrap();
    }
    let memory = pool.stats().memory;
    assert_eq!((memory.average_message, memory.is_measured, memory.estimate), (500, true, 10_000));
    assert_eq!((memory.queues, memory.parked, memory.dead_letters), (0, 0, 0));
    for key in [1, 2, 3, 4, 5] {
        pool.submit(Some(key), Do::Sleep(SECOND)).await.unwrap();
    }
    tokio::time::sleep(MILLI).await;
    assert_eq!(pool.stats().memory.queues, 1_500, "three of five wait");
    tokio::time::sleep(10 * SECOND).await;
    pool.submit(Some(1), Do::Fail).await.unwrap();
    tokio::time::sleep(SECOND).await;
    assert_eq!(pool.stats().memory.dead_letters, 500);
}

#[tokio::test(start_paused = true)]
async fn h03_more_than_a_quarter_of_the_machine_is_too_much() {
    for (inbox_size, too_much) in [(5, false), (6, true)] {
        let (builder, ..) = clerks(sizes(1, inbox_size));
        let pool = builder.memory_reading(Arc::new(Reading::default())).spawn().await.unwrap();
        assert_eq!(pool.stats().memory.is_too_much(), too_much, "{inbox_size}");
    }
}

#[tokio::test(start_paused = true)]
async fn h12_what_waits_for_an_operator_is_told_apart() {
    let config = EventPoolConfig { memory_ceiling: MIB, ..sizes(1, 40) };
    let reading = Reading::default();
    reading.set(2 * MIB);
    let (builder, _, mut receiver) = clerks(config);
    let builder = builder.with(|pool| pool.on_final_failure(FinalAction::ParkKey));
    let pool = builder.memory_reading(Arc::new(reading)).spawn().await.unwrap();
    for _ in 0..4 {
        pool.submit(Some(1), Do::Fail).await.unwrap();
    }
    pool.submit(Some(2), Do::Sleep(100 * SECOND)).await.unwrap();
    tokio::time::sleep(MILLI).await;
    pool.submit(Some(3), Do::Reply(1)).await.unwrap();
    let memory = pool.stats().memory;
    assert_eq!((memory.queues, memory.parked, memory.dead_letters), (200, 800, 0));
    tokio::time::sleep(10 * SECOND).await;
    let holds = vec![(Holding::Parked, 800), (Holding::Queues, 200), (Holding::DeadLetters, 0)];
    assert_eq!(alarms(&mut receiver), [(2 * MIB, MIB, holds)]);
}

/// The bytes in use, the ceiling, and the parts that the pool holds.
type Alarm = (u64, u64, Vec<(Holding, u64)>);

/// The events about memory, without others.
fn alarms(receiver: &mut PoolEventReceiver) -> Vec<Alarm> {
    let events = std::iter::from_fn(|| receiver.try_recv()).filter_map(Event::into_item);
    let alarm = |what: &PoolEvent| match what {
        PoolEvent::MemoryAboveCeiling { used, ceiling, holds } => {
            Some((*used, *ceiling, holds.clone()))
        }
        _ => None,
    };
    events.filter_map(|notice| alarm(&notice.what)).collect()
}

#[tokio::test(start_paused = true)]
async fn h12_memory_above_the_ceiling_is_told_with_the_largest_contributors() {
    let reading = Arc::new(Reading::default());
    let config = EventPoolConfig { memory_ceiling: MIB, ..sizes(1, 10) };
    let (builder, _, mut receiver) = clerks(config);
    let pool = builder.memory_reading(reading.clone()).spawn().await.unwrap();
    reading.set(MIB);
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(alarms(&mut receiver), [], "at the ceiling is not above it");

    for key in [1, 2, 3] {
        pool.submit(Some(key), Do::Fail).await.unwrap();
    }
    pool.submit(Some(4), Do::Sleep(100 * SECOND)).await.unwrap();
    tokio::time::sleep(MILLI).await;
    pool.submit(Some(5), Do::Reply(1)).await.unwrap();
    reading.set(MIB + 1);
    tokio::time::sleep(60 * SECOND).await;
    let holds = vec![(Holding::DeadLetters, 600), (Holding::Queues, 200), (Holding::Parked, 0)];
    assert_eq!(alarms(&mut receiver), [(MIB + 1, MIB, holds)], "once");

    reading.set(MIB / 2);
    tokio::time::sleep(60 * SECOND).await;
    reading.set(2 * MIB);
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(alarms(&mut receiver).len(), 1, "again, after it had fallen");
}

#[tokio::test(start_paused = true)]
async fn h12_nobody_looks_any_more_when_the_pool_has_gone() {
    let reading = Arc::new(Reading::default());
    reading.set(u64::MAX);
    let (builder, _, mut receiver) = clerks(sizes(1, 10));
    let pool = builder.memory_reading(reading.clone()).spawn().await.unwrap();
    let end = pool.pool().erase();
    drop(pool);
    end.ended().await;
    tokio::time::sleep(60 * SECOND).await;
    assert!(!told(&mut receiver).contains(&Kind::MemoryAboveCeiling));
    assert_eq!(Arc::strong_count(&reading), 1);
}

#[tokio::test(start_paused = true)]
async fn h01_without_the_event_stream_nothing_is_told() {
    let reading = Arc::new(Reading::default());
    reading.set(u64::MAX);
    let config = EventPoolConfig { enable_event_stream: false, ..sizes(1, 10) };
    let (builder, _, mut receiver) = clerks(config);
    let pool = builder.memory_reading(reading).spawn().await.unwrap();
    pool.submit(Some(1), Do::Panic).await.unwrap();
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!((told(&mut receiver), pool.stats().pool.restarts), (vec![], 1));
}
