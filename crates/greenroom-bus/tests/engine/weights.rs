//! Pools whose handlers compute share the threads by weight (R06).

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};

use greenroom_bus::{engine::PoolConfig, handler::Outputs};

use crate::engine::support::{
    Bench, checked, event,
    handlers::answer,
    on, pool,
    source::{Script, Step},
};

/// The starts of three pools with these weights and workers, when there have been 3,000 in all.
async fn starts(weights: [Option<u32>; 3], workers: [usize; 3]) -> Vec<u64> {
    const NAMES: [&str; 3] = ["a", "b", "c"];
    let counts: Arc<[AtomicU64; 3]> = Arc::default();
    let at_end: Arc<Mutex<Vec<u64>>> = Arc::default();
    let events = (0..3_000).flat_map(|n| NAMES.map(|ty| event(format!("{ty}{n}"), ty, None)));
    let mut bench =
        Bench::new().set(|engine| engine.input(Box::new(Script::of(events).then(Step::Never))));
    for (place, name) in NAMES.into_iter().enumerate() {
        let (counts, at_end) = (counts.clone(), at_end.clone());
        let computes = answer(move |_, _| {
            counts[place].fetch_add(1, Ordering::Relaxed);
            let now: Vec<u64> = counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
            let mut at_end = at_end.lock().unwrap();
            if now.iter().sum::<u64>() >= 3_000 && at_end.is_empty() {
                *at_end = now;
            }
            Ok(Outputs::None)
        });
        let mut handler = on(&[name], computes);
        handler.pool = name.to_owned();
        let config = PoolConfig { weight: weights[place], ..pool(workers[place], 3_000) };
        bench = bench.set(|engine| engine.pool(name, config).handler(name, handler));
    }
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    // All of it is queued before the first is started.
    for pool in control.pools() {
        pool.pause();
    }
    let run = tokio::spawn(engine.run());
    while control.progress().taken < 9_000 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    for pool in control.pools() {
        pool.resume();
    }
    while control.progress().settled < 9_000 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    control.drain();
    assert_eq!(checked(run.await.unwrap()).handled, 9_000);
    std::mem::take(&mut *at_end.lock().unwrap())
}

#[tokio::test(start_paused = true)]
async fn r06_starts_of_handlers_that_compute_are_within_a_tenth_of_the_weights() {
    for workers in [[2, 2, 2], [8, 1, 2]] {
        let counts = starts([Some(1), Some(2), Some(3)], workers).await;
        for (count, expected) in counts.iter().zip([500, 1_000, 1_500]) {
            assert!(count.abs_diff(expected) <= expected / 10, "{workers:?}: {counts:?}");
        }
        let counts = starts([None, Some(4), None], workers).await;
        for (count, expected) in counts.iter().zip([500, 2_000, 500]) {
            assert!(count.abs_diff(expected) <= expected / 10, "{workers:?}: {counts:?}");
        }
    }
}
