//! What an input may have under way: events beside full pools, and bytes in flight (D03, Z11).

use std::{
    io::Write,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use greenroom_bus::{
    dead_letter::Reason,
    engine::{Control, Engine, InputConfig, InputView, OnFull, PoolConfig, RunReport},
    event::Event,
    handler::{HandlerFactory, Outputs},
    source::{
        Source,
        file::{FileSource, FileSourceOptions},
        generator::{GeneratorOptions, GeneratorSource},
    },
};

use crate::engine::support::{
    Bench, checked, event,
    handlers::{handle, never, pass, slow},
    ms, on, pool, sized,
    source::{Script, Step},
};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

fn budget(bytes: usize) -> InputConfig {
    InputConfig { in_flight_bytes: bytes as u64, ..InputConfig::default() }
}

/// So many events of a KiB, each with a key of its own.
fn small(count: usize) -> Vec<Event> {
    (0..count).map(|n| sized(n, "small", Some(&n.to_string()), KIB)).collect()
}

fn view(control: &Control, name: &str) -> InputView {
    let views = control.input_views();
    views.into_iter().find(|view| view.name == name).unwrap()
}

/// Lets it run for a minute, hands what can be seen then to the test, and stops it.
async fn a_minute(bench: Bench, look: impl FnOnce(&Control)) -> RunReport {
    let engine: Engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    tokio::time::sleep(ms(60_000)).await;
    look(&control);
    control.stop_now();
    checked(run.await.unwrap())
}

#[tokio::test(start_paused = true)]
async fn d03_an_input_pauses_at_its_bytes_in_flight_and_another_goes_on() {
    let (stuck, free) =
        (Script::of(small(10_000)), Script::of((0..500).map(|n| event(n, "free", None))));
    let given = stuck.given();
    let bench = Bench::new().set(|engine| {
        engine
            .input_with(Box::new(stuck.named("stuck")), budget(100 * KIB))
            .input(Box::new(free.named("free").then(Step::Never)))
            .pool("default", pool(2, 10_000))
            .pool("free", pool(1, 10))
            .handler("stuck", on(&["small"], never()))
            .handler(
                "free",
                greenroom_bus::engine::HandlerConfig {
                    pool: "free".to_owned(),
                    ..on(&["free"], pass())
                },
            )
    });
    let sink = bench.sink.clone();
    let report = a_minute(bench, |control| {
        let stuck = view(control, "stuck");
        assert!(stuck.is_paused() || stuck.in_flight_bytes > 98 * KIB as u64, "{stuck:?}");
        assert!(stuck.in_flight_bytes <= 100 * KIB as u64, "{stuck:?}");
        assert_eq!(control.progress().in_flight_bytes, stuck.in_flight_bytes);
        assert!(!view(control, "free").is_paused());
    })
    .await;
    // What fits, and a batch of seven that does not.
    let given = given.load(Ordering::Relaxed);
    assert!((80..=107).contains(&given), "{given}");
    assert_eq!(sink.ids().len(), 500);
    assert!(report.peak_in_flight_bytes <= 100 * KIB as u64);
    assert_eq!((report.handled, report.refused), (500, given));
}

#[tokio::test(start_paused = true)]
async fn d03_an_input_goes_on_as_events_are_settled() {
    for bytes in [1, 3 * KIB, 100 * KIB] {
        let bench = Bench::new().set(|engine| {
            engine
                .input_with(Box::new(Script::of(small(300))), budget(bytes))
                .pool("default", pool(8, 1_000))
                .handler("h", on(&["small"], slow(ms(5))))
        });
        let report = bench.run().await;
        assert_eq!(report.handled, 300);
        // An event counts for a little more than its data.
        assert!(report.peak_in_flight_bytes <= bytes.max(2 * KIB) as u64, "{report:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn d03_how_far_an_input_runs_ahead_of_a_full_pool_is_set_for_each() {
    let source = Script::of(small(5_000));
    let given = source.given();
    let config = InputConfig { run_ahead: 100, ..InputConfig::default() };
    let bench = Bench::new().set(|engine| {
        engine
            .input_with(Box::new(source), config)
            .pool("default", PoolConfig { on_full: OnFull::Pause, ..pool(2, 10) })
            .handler("stuck", on(&["small"], never()))
    });
    a_minute(bench, |control| {
        let view = view(control, "script");
        assert!(view.is_paused() && (100..107).contains(&view.held_back), "{view:?}");
        assert_eq!(view.held_by.as_deref(), Some("default"), "{view:?}");
    })
    .await;
    // Two in hand, ten queued, and those beside the pool.
    assert!((112..126).contains(&given.load(Ordering::Relaxed)));
}

#[tokio::test(start_paused = true)]
async fn d03_what_waits_for_room_when_a_run_drains_is_handled_and_when_it_stops_is_refused() {
    for (stop_now, handled) in [(false, 70), (true, 0)] {
        let events = small(70);
        let bench = Bench::new().set(|engine| {
            engine
                .input_with(
                    Box::new(Script::new(
                        "batch",
                        [Step::Batch(events.into_iter().map(Ok).collect()), Step::Never],
                    )),
                    budget(8 * KIB),
                )
                .pool("default", pool(1, 1_000))
                .handler("h", on(&["small"], slow(ms(100))))
        });
        let engine = bench.engine.build().await.unwrap();
        let control = engine.control();
        let run = tokio::spawn(engine.run());
        tokio::time::sleep(ms(50)).await;
        if stop_now {
            control.stop_now()
        } else {
            control.drain()
        }
        let report = checked(run.await.unwrap());
        assert_eq!((report.taken, report.handled), (70, handled), "{report:?}");
    }
}

/// Counts events in hand, by size, and notes what was in hand beside a huge one.
#[derive(Default)]
struct InHand {
    small: AtomicUsize,
    huge: AtomicUsize,
    beside_huge: AtomicUsize,
}

impl InHand {
    fn handler(self: &Arc<Self>) -> Arc<dyn HandlerFactory> {
        let state = self.clone();
        handle(move |event, _| {
            let state = state.clone();
            async move {
                let count = if event.ty() == "huge" { &state.huge } else { &state.small };
                count.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(ms(10)).await;
                if event.ty() == "huge" {
                    let beside = state.small.load(Ordering::Relaxed);
                    state.beside_huge.fetch_add(beside, Ordering::Relaxed);
                }
                count.fetch_sub(1, Ordering::Relaxed);
                Ok(Outputs::None)
            }
        })
    }
}

/// Small events with a huge one among them, that many times.
fn with_huge(times: usize) -> Vec<Event> {
    let group = |n: usize| {
        let small =
            (0..100).map(move |m| sized(format!("{n}-{m}"), "small", Some(&m.to_string()), KIB));
        small.chain([sized(format!("huge-{n}"), "huge", None, 20 * MIB)])
    };
    (0..times).flat_map(group).chain(small(100)).collect()
}

async fn huge_among_small(bytes: usize) -> (Arc<InHand>, RunReport) {
    let state = Arc::new(InHand::default());
    let bench = Bench::new().set(|engine| {
        engine
            .input_with(Box::new(Script::of(with_huge(5))), budget(bytes))
            .pool("default", pool(8, 1_000))
            .handler("h", on(&["**"], state.handler()))
    });
    let report = bench.run().await;
    assert_eq!((report.handled, report.refused), (605, 0));
    (state, report)
}

#[tokio::test(start_paused = true)]
async fn z11_a_huge_event_passes_among_small_ones_within_the_budget() {
    let (state, report) = huge_among_small(64 * MIB).await;
    assert!(state.beside_huge.load(Ordering::Relaxed) > 0, "the others flow beside it");
    let peak = report.peak_in_flight_bytes as usize;
    assert!((20 * MIB..64 * MIB).contains(&peak), "{peak}");
}

#[tokio::test(start_paused = true)]
async fn z11_an_event_larger_than_the_budget_passes_alone() {
    let (state, report) = huge_among_small(8 * MIB).await;
    assert_eq!(state.beside_huge.load(Ordering::Relaxed), 0);
    let peak = report.peak_in_flight_bytes as usize;
    assert!((20 * MIB..20 * MIB + KIB).contains(&peak), "{peak}: the event, and nothing beside it");
}

#[tokio::test(start_paused = true)]
async fn z11_an_event_that_waits_to_pass_alone_holds_up_its_own_input_only() {
    let huge = [sized(0, "stuck", None, KIB), sized(1, "huge", None, 20 * MIB)];
    let flowing = GeneratorSource::new(GeneratorOptions {
        count: Some(5_000),
        payload: KIB,
        types: vec!["small".to_owned()],
        ..GeneratorOptions::default()
    });
    let bench = Bench::new().set(|engine| {
        engine
            .input_with(Box::new(Script::of(huge).named("huge").then(Step::Never)), budget(8 * MIB))
            .input(Box::new(flowing.unwrap()))
            .pool("default", pool(8, 1_000))
            .handler("never", on(&["stuck"], never()))
            .handler("h", on(&["small", "huge"], pass()))
    });
    let report = a_minute(bench, |control| {
        assert_eq!(control.progress().settled, 5_000);
        assert!(view(control, "huge").in_flight_bytes < 2 * KIB as u64);
    })
    .await;
    // The stuck event and the one that waited behind it.
    assert_eq!((report.handled, report.refused), (5_000, 2));
}

/// Lines of a KiB, with a line of 20 MiB after the tenth.
fn lines(path: &Path, count: usize) {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    let mut line = |id: usize, bytes: usize| {
        let data = "x".repeat(bytes);
        writeln!(file, r#"{{"specversion":"1.0","id":"{id}","source":"s","type":"t","subject":"{id}","data":"{data}"}}"#).unwrap();
    };
    for n in 1..=count {
        line(n, if n == 10 { 20 * MIB } else { KIB });
    }
}

async fn from_file(
    max_event: usize,
    bytes: usize,
) -> (RunReport, Vec<crate::engine::support::letters::Letter>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.ndjson");
    lines(&path, 2_000);
    let source: Box<dyn Source> = Box::new(
        FileSource::open(&path, FileSourceOptions { max_event, ..FileSourceOptions::default() })
            .unwrap(),
    );
    let bench = Bench::new().set(|engine| {
        engine
            .input_with(source, budget(bytes))
            .pool("default", pool(8, 1_000))
            .handler("h", on(&["t"], pass()))
    });
    let letters = bench.letters.clone();
    (bench.run().await, letters.stored())
}

#[tokio::test]
async fn z11_a_line_above_what_its_source_takes_is_a_dead_letter_with_its_beginning() {
    let (report, letters) = from_file(16 * MIB, 64 * MIB).await;
    assert_eq!((report.handled, report.dead_lettered), (1_999, 1));
    assert_eq!((letters[0].reason, letters[0].position), (Reason::TooLarge, 10));
    assert_eq!(letters[0].raw.as_ref().unwrap().len(), 16 * MIB);
    assert_eq!(report.dead_letters_by_reason, [("too_large", 1)].into());
}

#[tokio::test]
async fn z11_a_line_below_that_is_handled_whatever_the_budget() {
    for bytes in [64 * MIB, MIB] {
        let (report, _) = from_file(32 * MIB, bytes).await;
        assert_eq!((report.handled, report.dead_lettered), (2_000, 0));
        let peak = report.peak_in_flight_bytes as usize;
        assert!((20 * MIB..bytes.max(21 * MIB)).contains(&peak), "{peak}");
    }
}

#[tokio::test(start_paused = true)]
async fn z11_what_is_no_event_counts_by_its_bytes() {
    let raw = (0..50).map(|_| Err(vec![b'x'; MIB])).collect();
    let bench = Bench::with(
        crate::engine::support::sink::MemorySink::default(),
        crate::engine::support::letters::MemoryLetters::new(
            crate::engine::support::sink::Behaviour { latency: ms(10), ..Default::default() },
        ),
    )
    .set(|engine| {
        engine
            .input_with(Box::new(Script::new("raw", [Step::Batch(raw)])), budget(4 * MIB))
            .handler("h", on(&["t"], pass()))
    });
    let letters = bench.letters.clone();
    let report = bench.run().await;
    assert_eq!(report.dead_lettered, 50);
    assert_eq!(report.peak_in_flight_bytes, 4 * MIB as u64);
    assert!(letters.most() <= 4, "{} letters on their way", letters.most());
}
