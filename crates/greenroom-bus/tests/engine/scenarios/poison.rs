//! Z03: one event always fails. The others do not notice; without a place for it, it
//! stays open, and that shows.

use std::time::Duration;

use greenroom_bus::{
    engine::{Control, HandlerConfig, Retry, RunReport},
    event::Event,
    handler::{Failure, HandlerResult, Outputs},
    source::generator::{GeneratorOptions, Rate},
};

use super::{Meter, generator, seeds};
use crate::engine::support::{
    Bench, checked,
    handlers::handle,
    letters::MemoryLetters,
    ms, on, pool,
    sink::{Behaviour, MemorySink},
};

const COUNT: u64 = 4_000;

/// What becomes of the poisoned event.
type Poison = fn() -> HandlerResult;

fn error() -> HandlerResult {
    Err(Failure::retry("it always fails"))
}

fn panic() -> HandlerResult {
    panic!("it always panics");
}

fn harmless() -> HandlerResult {
    Ok(Outputs::Same)
}

/// 400 events a second for 8 workers that take 5 ms for each, and the 500th of them poisoned.
fn bench(seed: u64, poison: Poison, letters: MemoryLetters) -> (Bench, Meter) {
    let options = GeneratorOptions {
        seed,
        count: Some(COUNT),
        rate: Some(Rate { per_second: 400.0 }),
        ..GeneratorOptions::default()
    };
    let meter = Meter::new(&options);
    let (poisoned, notes) = (format!("{seed}-500"), meter.clone());
    let run = move |event: Event, _| {
        let (poisoned, notes) = (poisoned.clone(), notes.clone());
        async move {
            tokio::time::sleep(ms(5)).await;
            if event.id() == poisoned {
                return poison();
            }
            notes.handled(&event);
            Ok(Outputs::Same)
        }
    };
    let handler = HandlerConfig { retry: Some(Retry::default()), ..on(&["**"], handle(run)) };
    let bench = Bench::with(MemorySink::default(), letters).set(|engine| {
        engine.input(generator(&options)).pool("default", pool(8, 1_000)).handler("h", handler)
    });
    (bench, meter)
}

async fn figures(seed: u64, poison: Poison) -> (Duration, RunReport) {
    let (bench, meter) = bench(seed, poison, MemoryLetters::default());
    let report = bench.run().await;
    (meter.p99(|_| true), report)
}

#[tokio::test(start_paused = true)]
async fn z03_one_event_that_always_fails_leaves_the_p99_of_the_others() {
    for seed in seeds() {
        let (alone, report) = figures(seed, harmless).await;
        assert_eq!(report.handled, COUNT);
        for poison in [error as Poison, panic] {
            let (beside, report) = figures(seed, poison).await;
            assert_eq!((report.handled, report.dead_lettered), (COUNT - 1, 1), "seed {seed}");
            assert!(beside <= alone.mul_f64(1.1), "seed {seed}: {beside:?}, without it {alone:?}");
        }
    }
}

/// What can be seen of a run after a minute of it, and its report.
async fn seen_after_a_minute(
    letters: MemoryLetters,
) -> (Control, tokio::task::JoinHandle<RunReport>) {
    let (bench, _) = bench(1, error, letters);
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    assert_eq!(control.progress().dead_letters_open, 0);
    let run = tokio::spawn(engine.run());
    tokio::time::sleep(Duration::from_secs(60)).await;
    (control, run)
}

#[tokio::test(start_paused = true)]
async fn z03_while_the_place_of_the_dead_letters_does_not_answer_the_event_stays_open_and_an_alarm_rises()
 {
    let down = Behaviour { latency: Duration::from_secs(600), ..Behaviour::default() };
    let (control, run) = seen_after_a_minute(MemoryLetters::new(down)).await;
    let progress = control.progress();
    assert_eq!((progress.dead_letters_open, progress.dead_letters_lost), (1, 0));
    assert_eq!((progress.taken, progress.settled), (COUNT, COUNT - 1), "all others are settled");
    assert_eq!(progress.dead_lettered, 0);
    let report = checked(run.await.unwrap());
    assert_eq!((report.handled, report.dead_lettered), (COUNT - 1, 1), "once it answers again");
    assert!(report.elapsed > Duration::from_secs(600), "{:?}", report.elapsed);
    assert_eq!(control.progress().dead_letters_open, 0);
}

#[tokio::test(start_paused = true)]
async fn z03_a_dead_letter_that_cannot_be_stored_refuses_its_event_and_counts() {
    let broken = Behaviour { fails_after: Some(0), ..Behaviour::default() };
    let (control, run) = seen_after_a_minute(MemoryLetters::new(broken)).await;
    let report = checked(run.await.unwrap());
    assert_eq!((report.dead_lettered, control.progress().dead_letters_lost), (0, 1));
    assert!(report.refused >= 1 && report.errors[0].contains("it is full for good"), "{report:?}");
}
