//! Z04: one key takes 2 s for each of its events, 1,000 keys take 5 ms. The others hardly notice.

use std::time::Duration;

use greenroom_bus::{
    handler::Outputs,
    source::generator::{GeneratorOptions, Rate},
};

use super::{Meter, generator, seeds};
use crate::engine::support::{Bench, handlers::handle, ms, on, pool};

const SLOW: &str = "key-1";
const EVENTS: u64 = 8_000;

/// The p99 of the other keys, for 8 workers at about half of their capacity.
async fn p99(seed: u64, slow: Duration) -> Duration {
    let options = GeneratorOptions {
        seed,
        count: Some(EVENTS),
        rate: Some(Rate { per_second: 800.0 }),
        keys: 1_001,
        ..GeneratorOptions::default()
    };
    let meter = Meter::new(&options);
    let notes = meter.clone();
    let run = handle(move |event, _| {
        let notes = notes.clone();
        async move {
            let is_slow = event.subject().is_some_and(|key| **key == *SLOW);
            tokio::time::sleep(if is_slow { slow } else { ms(5) }).await;
            notes.handled(&event);
            Ok(Outputs::Same)
        }
    });
    let bench = Bench::new().set(|engine| {
        engine
            .input(generator(&options))
            .pool("default", pool(8, 1_000))
            .handler("h", on(&["**"], run))
    });
    assert_eq!(bench.run().await.handled, EVENTS, "seed {seed}");
    meter.p99(|key| key != SLOW)
}

#[tokio::test(start_paused = true)]
async fn z04_a_slow_key_leaves_the_p99_of_the_others_within_one_and_a_half() {
    for seed in seeds() {
        let without = p99(seed, ms(5)).await;
        let with = p99(seed, ms(2_000)).await;
        assert!(with <= without.mul_f64(1.5), "seed {seed}: {with:?}, without it {without:?}");
    }
}
