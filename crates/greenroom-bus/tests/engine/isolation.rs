//! A pool that does not move keeps no other pool from moving (R05).

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use greenroom_bus::{
    dead_letter::Reason,
    engine::{OnFull, PoolConfig},
    event::Event,
    handler::Outputs,
};
use tokio::time::Instant;

use crate::engine::support::{
    Bench, checked, event,
    handlers::{handle, never, pass},
    ms, on, pool,
    source::{Script, Step},
};

/// Alternately for the stuck pool and for the other.
fn mixed(count: usize) -> Vec<Event> {
    let ty = |n: usize| if n.is_multiple_of(2) { "stuck" } else { "free" };
    (0..count).map(|n| event(n, ty(n), Some(&n.to_string()))).collect()
}

fn bench(on_full: OnFull, source: Script) -> Bench {
    let (mut stuck, mut free) = (on(&["stuck"], never()), on(&["free"], pass()));
    stuck.pool = "stuck".to_owned();
    free.pool = "free".to_owned();
    Bench::new().set(|engine| {
        engine
            .input(Box::new(source))
            .pool("stuck", PoolConfig { on_full, ..pool(2, 10) })
            .pool("free", pool(2, 1_000))
            .handler("stuck", stuck)
            .handler("free", free)
    })
}

/// How many events of the other pool were handled while one was stuck, and the report.
async fn run(bench: Bench) -> (usize, greenroom_bus::engine::RunReport) {
    let sink = bench.sink.clone();
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    tokio::time::sleep(ms(60_000)).await;
    let handled = sink.ids().len();
    control.stop_now();
    (handled, checked(run.await.unwrap()))
}

#[tokio::test(start_paused = true)]
async fn r05_beside_a_stuck_pool_another_handles_all_until_the_run_ahead_bound() {
    let (handled, report) = run(bench(OnFull::Pause, Script::of(mixed(20_000)))).await;
    assert_eq!(handled, 10_000);
    assert_eq!((report.handled, report.refused), (10_000, 10_000));
}

#[tokio::test(start_paused = true)]
async fn r05_only_at_the_run_ahead_bound_does_the_source_pause() {
    let source = Script::of(mixed(22_000)).then(Step::Never);
    let given = source.given();
    let (handled, _) = run(bench(OnFull::Pause, source)).await;
    let given = given.load(std::sync::atomic::Ordering::Relaxed) as usize;
    // Two in hand, ten queued, 10,000 beside the pool, and at most one batch of seven more.
    assert!((20_000..20_040).contains(&given), "{given}");
    assert!(handled >= 10_000, "{handled}");
}

#[tokio::test(start_paused = true)]
async fn r05_with_reject_another_pool_goes_on_for_ever() {
    let (handled, report) = run(bench(OnFull::Reject, Script::of(mixed(24_000)))).await;
    assert_eq!(handled, 12_000);
    assert_eq!((report.handled, report.refused), (12_000, 12_000));
}

#[tokio::test(start_paused = true)]
async fn r05_with_dead_letter_another_pool_goes_on_for_ever() {
    let bench = bench(OnFull::DeadLetter, Script::of(mixed(24_000)));
    let letters = bench.letters.clone();
    let (handled, report) = run(bench).await;
    assert_eq!(handled, 12_000);
    // Two in hand, ten in the queue.
    assert_eq!((report.dead_lettered, report.refused), (12_000 - 12, 12));
    assert!(letters.stored().iter().all(|letter| letter.reason == Reason::PoolFull));
    let stuck = report.pools.iter().find(|pool| pool.name == "stuck").unwrap();
    assert_eq!(stuck.dead_lettered, report.dead_lettered);
}

/// Groups of events for the free pool, one group each [`PACE`].
const GROUPS: u64 = 500;
const GROUP: u64 = 4;
const PACE: u64 = 6;

/// How long the free pool took for all, and the 99th percentile of the time from taken to handled.
async fn figures(beside_stuck: Option<OnFull>) -> (Duration, Duration) {
    let began = Instant::now();
    let group = |n: u64| {
        let free = (0..GROUP).map(move |m| Ok(event(n * GROUP + m, "free", None)));
        let stuck = (0..GROUP).map(move |m| Ok(event(format!("s-{n}-{m}"), "stuck", None)));
        let stuck = stuck.filter(|_| beside_stuck.is_some());
        [Step::Batch(stuck.chain(free).collect()), Step::Wait(ms(PACE))]
    };
    let took: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let notes = took.clone();
    let free = handle(move |event, _| {
        let notes = notes.clone();
        async move {
            let group = event.id().parse::<u64>().unwrap() / GROUP;
            tokio::time::sleep(ms(5)).await;
            notes.lock().unwrap().push(began.elapsed().saturating_sub(ms(group * PACE)));
            Ok(Outputs::None)
        }
    });
    let (mut stuck, mut free) = (on(&["stuck"], never()), on(&["free"], free));
    (stuck.pool, free.pool) = ("stuck".to_owned(), "free".to_owned());
    let on_full = beside_stuck.unwrap_or(OnFull::Pause);
    let bench = Bench::new().set(|engine| {
        engine
            .input(Box::new(Script::new("groups", (0..GROUPS).flat_map(group)).then(Step::Never)))
            .pool("stuck", PoolConfig { on_full, ..pool(2, 10) })
            .pool("free", pool(GROUP as usize, 100))
            .handler("stuck", stuck)
            .handler("free", free)
    });
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    while (took.lock().unwrap().len() as u64) < GROUPS * GROUP {
        tokio::time::sleep(ms(1)).await;
    }
    let all = began.elapsed();
    control.stop_now();
    checked(run.await.unwrap());
    let mut took = std::mem::take(&mut *took.lock().unwrap());
    took.sort();
    (all, took[took.len() * 99 / 100])
}

#[tokio::test(start_paused = true)]
async fn r05_beside_a_suspended_pool_throughput_and_p99_stay_within_a_tenth() {
    let (alone, p99_alone) = figures(None).await;
    for on_full in [OnFull::Pause, OnFull::Reject, OnFull::DeadLetter] {
        let (beside, p99) = figures(Some(on_full)).await;
        assert!(beside <= alone.mul_f64(1.1), "{on_full:?}: {beside:?}, alone {alone:?}");
        assert!(p99 <= p99_alone.mul_f64(1.1), "{on_full:?}: {p99:?}, alone {p99_alone:?}");
    }
}
