//! What a running engine says of itself.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use greenroom_bus::{
    engine::{HandlerConfig, LoopbackConfig, PoolConfig, RunReport},
    handler::{Failure, FailureKind, HandlerFactory, HandlerResult, Outputs},
};
use tokio::time::Instant;

use crate::engine::support::{
    Bench, checked, event,
    handlers::{handle, slow},
    ms, on, pool,
    source::{Script, Step},
};

#[tokio::test(start_paused = true)]
async fn g08_progress_never_shows_more_settled_than_taken_and_ends_where_the_report_does() {
    let events = (0..200).map(|n| event(n, "t", Some(&format!("key-{n}"))));
    let bench = Bench::new().set(|engine| {
        let engine = engine.input(Box::new(Script::of(events)));
        engine.pool("default", pool(2, 10)).handler("slow", on(&["t"], slow(ms(1))))
    });
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    let mut seen = Vec::new();
    while !run.is_finished() {
        tokio::time::sleep(ms(7)).await;
        let progress = control.progress();
        assert!(progress.settled <= progress.taken, "{progress:?}");
        assert_eq!(progress.read, None, "this source cannot tell");
        seen.push(progress.settled);
    }
    assert!(seen.is_sorted() && seen.iter().any(|settled| (1..200).contains(settled)), "{seen:?}");
    let report = run.await.unwrap();
    assert_eq!((seen.last().copied(), report.handled), (Some(200), 200));
    assert!(report.peak_queued <= 12 && report.peak_queued > 0, "{}", report.peak_queued);
    assert_eq!(report.outputs[0].events, 200);
}

/// What a handler has begun, and how often it began an event that it had begun before.
#[derive(Default)]
struct Begun {
    events: std::sync::Mutex<std::collections::HashSet<String>>,
    again: AtomicU64,
}

impl Begun {
    fn begins(&self, id: &str) {
        let mut events = self.events.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !events.insert(id.to_owned()) {
            self.again.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// Notes what it begins, and does this then.
fn counted<F: Future<Output = HandlerResult> + Send + 'static>(
    begun: &Arc<Begun>,
    run: impl Fn(u32) -> F + Send + Sync + 'static,
) -> Arc<dyn HandlerFactory> {
    let (begun, run) = (begun.clone(), Arc::new(run));
    handle(move |event, attempt| {
        let (begun, run) = (begun.clone(), run.clone());
        async move {
            begun.begins(event.id());
            run(attempt).await
        }
    })
}

fn one_handler(begun: usize, config: PoolConfig, handler: HandlerConfig) -> Bench {
    let events = (0..begun).map(|n| event(n, "t", Some(&format!("key-{n}"))));
    let script = Script::of(events).then(Step::Never);
    Bench::new()
        .set(|engine| engine.input(Box::new(script)).pool("default", config).handler("h", handler))
}

async fn for_a_minute(bench: Bench) -> RunReport {
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    tokio::time::sleep(ms(60_000)).await;
    control.stop_now();
    checked(run.await.unwrap())
}

#[tokio::test(start_paused = true)]
async fn d01_attempts_whose_effect_is_not_known_are_counted_also_as_probes_of_an_outage() {
    let (begun, up) = (Arc::<Begun>::default(), Instant::now() + ms(30_000));
    let times_out = counted(&begun, move |_| async move {
        match Instant::now() < up {
            true => Err(Failure::new(FailureKind::Timeout, "no answer")),
            false => Ok(Outputs::Same),
        }
    });
    let report = for_a_minute(one_handler(50, pool(8, 100), on(&["t"], times_out))).await;
    assert_eq!((report.handled, report.dead_lettered), (50, 0));
    let again = begun.again.load(Ordering::SeqCst);
    assert!(again > 0 && again == report.retried, "{again}: {report:?}");
    assert_eq!(report.repeated_at_most, again);
}

#[tokio::test(start_paused = true)]
async fn d01_an_attempt_that_panics_or_takes_too_long_for_its_pool_is_counted() {
    let begun = Arc::<Begun>::default();
    let first_fails = counted(&begun, |attempt| async move {
        match attempt {
            1 => panic!("on purpose"),
            2 => std::future::pending().await,
            _ => Ok(Outputs::Same),
        }
    });
    let config = PoolConfig { timeout: Some(ms(100)), ..pool(4, 100) };
    let report = for_a_minute(one_handler(3, config, on(&["t"], first_fails))).await;
    assert_eq!((report.handled, begun.again.load(Ordering::SeqCst)), (3, 6), "{report:?}");
    assert_eq!(report.repeated_at_most, 6);
}

#[tokio::test(start_paused = true)]
async fn d01_an_attempt_that_a_stop_cuts_off_is_counted() {
    let begun = Arc::<Begun>::default();
    let never = counted(&begun, |_| std::future::pending());
    let report = for_a_minute(one_handler(7, pool(4, 100), on(&["t"], never))).await;
    assert_eq!((report.refused, report.repeated_at_most), (7, 4), "four were in hand");
}

#[tokio::test(start_paused = true)]
async fn d01_an_attempt_whose_outputs_have_no_way_back_is_counted() {
    let begun = Arc::<Begun>::default();
    let two = counted(&begun, |attempt| async move {
        let back = |n| event(format!("back-{n}"), "back", None);
        Ok(Outputs::Events(match attempt {
            1 => vec![back(0), back(1)],
            _ => vec![back(0)],
        }))
    });
    let handler = HandlerConfig { loopback: 1, ..on(&["t"], two) };
    let bench = one_handler(1, pool(4, 100), handler).set(|engine| {
        let back = LoopbackConfig::new(vec!["back".parse().unwrap()]);
        engine
            .loopback(back)
            .handler("back", on(&["back"], handle(|_, _| async { Ok(Outputs::None) })))
    });
    let report = for_a_minute(bench).await;
    assert_eq!((report.handled, begun.again.load(Ordering::SeqCst)), (1, 1));
    assert_eq!(report.repeated_at_most, 1);
}
