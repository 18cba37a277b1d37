//! Parked keys: what waits behind them stops no other, and a run ends with them.

use std::{collections::HashSet, sync::Arc};

use greenroom::FinalAction;
use greenroom_bus::{
    engine::{
        Control, Decision, HandlerConfig, InputConfig, LoopbackConfig, PoolConfig, RunReport,
    },
    event::Event,
    handler::{Failure, FailureKind, HandlerFactory, Outputs},
    source::{Pulling, Source, Taken},
};
use tokio::task::JoinHandle;

use crate::engine::support::{
    Bench, checked, event,
    handlers::answer,
    ms, on, pool, sized,
    source::{Script, Step},
};

const KIB: usize = 1 << 10;

fn parking(workers: usize, queue: usize) -> PoolConfig {
    PoolConfig { on_final_failure: FinalAction::ParkKey, ..pool(workers, queue) }
}

fn is_bad(event: &Event) -> bool {
    event.subject().is_some_and(|key| key.starts_with("bad"))
}

/// Rejects the events of bad keys.
fn rejects_bad() -> Arc<dyn HandlerFactory> {
    answer(|event, _| match is_bad(&event) {
        true => Err(Failure::reject("404 Not Found")),
        false => Ok(Outputs::Same),
    })
}

/// So many events, of which one in `part` has a bad key, one of so many.
fn mixed(events: usize, part: usize, keys: usize, bytes: usize) -> Vec<Event> {
    let key = |n: usize| match n.is_multiple_of(part) {
        true => format!("bad-{}", n / part % keys),
        false => format!("good-{}", n % 100),
    };
    (0..events).map(|n| sized(n, "t", Some(&key(n)), bytes)).collect()
}

/// A script whose end is known.
struct Finite(Script);

impl Source for Finite {
    fn describe(&self) -> String {
        self.0.describe()
    }

    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>) -> Pulling<'a> {
        self.0.pull(into)
    }

    fn progress(&self) -> Option<f64> {
        Some(0.5)
    }

    fn replayable(&self) -> bool {
        true
    }
}

fn bench(source: impl Source + 'static, config: PoolConfig) -> Bench {
    bench_with(source, InputConfig::default(), config)
}

fn bench_with(source: impl Source + 'static, input: InputConfig, config: PoolConfig) -> Bench {
    Bench::new().set(|engine| {
        engine
            .input_with(Box::new(source), input)
            .pool("default", config)
            .handler("h", on(&["t"], rejects_bad()))
    })
}

async fn start(bench: Bench) -> (Control, JoinHandle<RunReport>) {
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    (control, tokio::spawn(engine.run()))
}

fn only_error(report: &RunReport) -> &str {
    assert_eq!(report.errors.len(), 1, "{report:?}");
    &report.errors[0]
}

#[tokio::test(start_paused = true)]
async fn k08_a_run_of_ten_keys_that_all_fail_ends_with_everything_parked() {
    let events = (0..2_000).map(|n| event(n, "t", Some(&format!("bad-{}", n % 10))));
    let report = bench(Script::of(events), parking(8, 1_000)).run().await;
    assert_eq!((report.handled, report.dead_lettered, report.refused), (0, 0, 2_000));
    assert_eq!(report.parked, 2_000);
    let error = only_error(&report);
    assert!(error.contains("2,000 events not handled, because of 10 parked keys"), "{error}");
    assert!(error.contains("(\"bad-") && error.contains("404 Not Found"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn k08_good_keys_flow_however_many_events_wait_behind_parked_ones() {
    // A tenth of all keys is bad: far more events than the pool has room for.
    let bench = bench(Script::of(mixed(60_000, 10, 1_000, 0)), parking(4, 100));
    let sink = bench.sink.clone();
    let report = bench.run().await;
    assert_eq!((report.handled, report.refused, report.parked), (54_000, 6_000, 6_000));
    assert_eq!(sink.ids().len(), 54_000);
    assert!(report.elapsed < ms(1_000), "{:?}", report.elapsed);
}

#[tokio::test(start_paused = true)]
async fn d03_parked_keys_leave_half_of_the_bytes_in_flight_to_others() {
    // Six times as much is bad as may be in flight.
    let budget = InputConfig { in_flight_bytes: 100 * KIB as u64, ..InputConfig::default() };
    let events = mixed(6_000, 10, 10, KIB);
    let steps = events.chunks(100).flat_map(|events| {
        [Step::Batch(events.iter().cloned().map(Ok).collect()), Step::Wait(ms(500))]
    });
    let steps: Vec<_> = steps.collect();
    let bench = bench_with(Script::new("script", steps), budget, parking(4, 1_000));
    let (control, run) = start(bench).await;
    tokio::time::sleep(ms(25_000)).await;
    let view = &control.input_views()[0];
    assert!(view.refuses_parked && view.parked > 40 && !view.is_paused(), "{view:?}");
    assert!(view.in_flight_bytes <= 80 * KIB as u64, "{view:?}");
    let report = checked(run.await.unwrap());
    assert_eq!((report.handled, report.refused, report.parked), (5_400, 600, 600));
    let error = report.errors.join("; ");
    assert!(error.contains("refused, because no more may wait behind parked keys"), "{error}");
}

/// A new bad key each time: nothing can be refused in time, and all that may be in flight is
/// parked.
fn all_bad() -> Vec<Event> {
    (0..1_000).map(|n| sized(n, "t", Some(&format!("bad-{n}")), KIB)).collect()
}

#[tokio::test(start_paused = true)]
async fn k08_a_finite_run_ends_when_parked_keys_hold_all_that_may_be_in_flight() {
    let budget = InputConfig { in_flight_bytes: 100 * KIB as u64, ..InputConfig::default() };
    let source = Finite(Script::of(all_bad()));
    let report = bench_with(source, budget, parking(4, 1_000)).run().await;
    assert_eq!((report.handled, report.refused), (0, report.taken));
    assert!((80..120).contains(&report.taken) && report.parked >= 80, "{report:?}");
    let error = only_error(&report);
    assert!(error.contains("nothing goes on") && error.contains("the input \"script\""), "{error}");
    assert!(report.elapsed < ms(10_000), "{:?}", report.elapsed);
}

#[tokio::test(start_paused = true)]
async fn k08_an_endless_run_stands_still_says_so_and_goes_on_when_somebody_decides() {
    let budget = InputConfig { in_flight_bytes: 100 * KIB as u64, ..InputConfig::default() };
    let source = Script::of(all_bad()).then(Step::Never);
    let (control, run) = start(bench_with(source, budget, parking(4, 1_000))).await;
    tokio::time::sleep(ms(60_000)).await;
    assert!(!run.is_finished());
    let why = control.standstill().unwrap();
    assert!(why.contains(" parked keys with "), "{why}");
    assert!(control.input_views()[0].waits_for_parked_keys());
    let before = control.progress();
    assert!(before.parked_keys >= 80 && before.parked_events == before.parked_keys, "{before:?}");
    // Until all of them are dead letters.
    for _ in 0..100 {
        for parked in control.parked() {
            assert_eq!(control.decide(&parked.key, None, Decision::Skip).len(), 1);
        }
        tokio::time::sleep(ms(1_000)).await;
    }
    assert_eq!((control.standstill(), control.progress().parked_keys), (None, 0));
    control.drain();
    let report = checked(run.await.unwrap());
    assert_eq!((report.dead_lettered, report.refused, report.parked), (1_000, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn k08_a_drain_that_stands_still_does_not_wait_for_its_deadline() {
    let budget = InputConfig { in_flight_bytes: 100 * KIB as u64, ..InputConfig::default() };
    let source = Script::of(all_bad()).then(Step::Never);
    let (control, run) = start(bench_with(source, budget, parking(4, 1_000))).await;
    tokio::time::sleep(ms(1_000)).await;
    control.drain();
    let report = checked(run.await.unwrap());
    assert!(report.elapsed < ms(10_000), "{:?}", report.elapsed);
    assert_eq!(report.refused, report.taken);
}

#[tokio::test(start_paused = true)]
async fn g03_k08_a_run_ends_when_parked_keys_hold_all_room_on_the_way_back() {
    let bench = Bench::new().set(|engine| {
        let handler = HandlerConfig { loopback: 1, ..on(&["t"], rejects_bad()) };
        engine
            .input(Box::new(Script::of(mixed(1_000, 10, 100, 0))))
            .pool("default", parking(4, 1_000))
            .loopback(LoopbackConfig {
                room: 20,
                ..LoopbackConfig::new(vec!["back".parse().unwrap()])
            })
            .handler("h", handler)
    });
    let report = bench.run().await;
    assert_eq!(report.handled + report.refused, 1_000);
    assert!(report.errors[0].contains("nothing goes on"), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn k08_a_key_that_is_resumed_has_all_its_attempts_again() {
    let retry = Failure::new(FailureKind::Retry { after: None }, "503");
    let mended = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let attempts = mended.clone();
    let factory = answer(move |event, _| match event.id() {
        "0" if attempts.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < 5 => Err(retry.clone()),
        _ => Ok(Outputs::Same),
    });
    let first = vec![Ok(event(0, "t", Some("a"))), Ok(event(1, "t", Some("a")))];
    // Another key succeeds after the first failure: the event is to blame, not its handler.
    let second = vec![Ok(event(2, "t", Some("b")))];
    let steps = [Step::Batch(first), Step::Wait(ms(5)), Step::Batch(second), Step::Never];
    let bench = Bench::new().set(|engine| {
        engine
            .input(Box::new(Script::new("script", steps)))
            .pool("default", parking(2, 10))
            .handler("h", on(&["t"], factory))
    });
    let sink = bench.sink.clone();
    let (control, run) = start(bench).await;
    tokio::time::sleep(ms(1_000)).await;
    assert_eq!(control.parked().len(), 1, "after three attempts, as another one has succeeded");
    assert_eq!(mended.load(std::sync::atomic::Ordering::SeqCst), 3);
    assert_eq!(control.decide("a", None, Decision::Resume).len(), 1);
    // The last one waits in case that another event says who is to blame.
    tokio::time::sleep(ms(11_000)).await;
    let ids: HashSet<_> = sink.ids().into_iter().collect();
    assert_eq!(ids.len(), 3, "{ids:?}");
    control.drain();
    assert!(checked(run.await.unwrap()).is_clean());
}
