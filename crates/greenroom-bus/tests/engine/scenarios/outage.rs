//! Z06: the downstream answers 503 in a millisecond, for a minute.

use std::time::Duration;

use greenroom::limits::Adaptive;
use greenroom_bus::{
    engine::{Concurrency, Control, HandlerConfig, PoolConfig, Retry},
    handler::{Failure, Outputs},
    source::generator::GeneratorOptions,
};
use tokio::time::Instant;

use super::{Meter, generator, seeds};
use crate::engine::support::{Bench, checked, handlers::handle, ms, on, pool};

const DOWN: Duration = Duration::from_secs(10);
const UP: Duration = Duration::from_secs(70);
const END: Duration = Duration::from_secs(85);

fn limit(control: &Control) -> usize {
    control.pool_views()[0].stats.limits.limit.unwrap()
}

async fn until(began: Instant, after: Duration) {
    tokio::time::sleep_until(began + after).await;
}

#[tokio::test(start_paused = true)]
async fn z06_in_an_outage_the_limit_falls_nothing_is_dead_lettered_and_throughput_comes_back() {
    for seed in seeds() {
        // Work of 100 ms by up to 40 at once, as fast as it is taken.
        let options = GeneratorOptions { seed, keys: 100_000, ..GeneratorOptions::default() };
        let meter = Meter::new(&options);
        let (began, notes) = (meter.began, meter.clone());
        let run = handle(move |event, _| {
            let notes = notes.clone();
            async move {
                if (DOWN..UP).contains(&began.elapsed()) {
                    tokio::time::sleep(ms(1)).await;
                    return Err(Failure::retry("503"));
                }
                tokio::time::sleep(ms(100)).await;
                notes.handled(&event);
                Ok(Outputs::None)
            }
        });
        let handler = HandlerConfig { retry: Some(Retry::default()), ..on(&["**"], run) };
        let concurrency = Some(Concurrency::Adaptive(Adaptive::up_to(40).enforced()));
        let bench = Bench::new().set(|engine| {
            engine
                .input(generator(&options))
                .pool("default", PoolConfig { concurrency, ..pool(50, 1_000) })
                .handler("h", handler)
        });
        let engine = bench.engine.build().await.unwrap();
        let control = engine.control();
        let run = tokio::spawn(engine.run());
        until(began, DOWN).await;
        let before = limit(&control);
        assert!(before > 30, "seed {seed}: {before} at once before the outage");
        until(began, DOWN + Duration::from_secs(10)).await;
        let taken = control.progress().taken;
        until(began, UP - ms(1)).await;
        let during = limit(&control);
        assert!(during <= 2, "seed {seed}: {during} at once at the end of the outage");
        assert_eq!(control.progress().taken, taken, "intake has paused");
        until(began, END).await;
        let second = Duration::from_secs(1);
        let usual = meter.between(DOWN - 5 * second, DOWN) / 5;
        let after = meter.between(UP + 10 * second, END) / 5;
        assert!(after * 10 >= usual * 9, "seed {seed}: {after} a second again, of {usual}");
        assert_eq!(meter.between(DOWN + second, UP), 0, "seed {seed}");
        assert_eq!(control.progress().dead_lettered, 0, "seed {seed}");
        control.drain();
        let report = checked(run.await.unwrap());
        assert_eq!((report.dead_lettered, report.refused), (0, 0), "seed {seed}: {report:?}");
    }
}
