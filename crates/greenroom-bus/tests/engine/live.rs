//! Changes while the engine runs, and what cannot change (R02).

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use greenroom::{
    Backoff, event_pool,
    limits::{Adaptive, Rate},
};
use greenroom_bus::{
    engine::{ChangeError, Concurrency, Control, HandlerConfig, PoolConfig, Retry, RunReport},
    event::Event,
    handler::{Failure, HandlerFactory, Outputs},
};
use tokio::task::JoinHandle;

use crate::engine::support::{
    Bench, HANG, checked, event,
    handlers::{answer, handle, pass, slow},
    ms, on, pool,
    sink::MemorySink,
    source::{Script, Step},
};

fn events(ty: &str, count: usize) -> impl Iterator<Item = Event> {
    (0..count).map(move |n| event(format!("{ty}-{n}"), ty, Some(&format!("key-{n}"))))
}

struct Running {
    control: Control,
    sink: Arc<MemorySink>,
    run: JoinHandle<RunReport>,
}

impl Running {
    async fn start(bench: Bench) -> Self {
        let sink = bench.sink.clone();
        let engine = bench.engine.build().await.unwrap();
        Self { control: engine.control(), sink, run: tokio::spawn(engine.run()) }
    }

    fn handled(&self, ty: &str) -> usize {
        self.sink.ids().iter().filter(|id| id.starts_with(ty)).count()
    }

    async fn end(self) -> RunReport {
        checked(tokio::time::timeout(HANG, self.run).await.expect("the run did not end").unwrap())
    }
}

/// A source that does not end by itself.
fn one(factory: Arc<dyn HandlerFactory>, config: PoolConfig, count: usize) -> Bench {
    Bench::new().set(|engine| {
        let source = Script::of(events("t", count)).then(Step::Wait(ms(60_000)));
        let engine = engine.input(Box::new(source));
        engine.pool("default", config).handler("h", on(&["t"], factory))
    })
}

#[tokio::test(start_paused = true)]
async fn r02_a_paused_pool_starts_nothing_until_it_is_resumed() {
    for engine in [event_pool::Engine::Shared, event_pool::Engine::Keyed] {
        let config = PoolConfig { engine, ..pool(4, 50) };
        let running = Running::start(one(slow(ms(10)), config, 100)).await;
        let default = running.control.pool("default").unwrap();
        tokio::time::sleep(ms(35)).await;
        assert!(default.pause() && !default.pause() && default.is_paused());
        tokio::time::sleep(ms(1_000)).await;
        let before = running.handled("t");
        tokio::time::sleep(ms(60_000)).await;
        assert_eq!(running.handled("t"), before, "what was under way ended, and nothing began");
        assert!((4..=20).contains(&before), "{before}");
        assert!(default.resume() && !default.resume() && !default.is_paused());
        tokio::time::sleep(ms(15)).await;
        assert!(running.handled("t") >= before + 4, "it goes on at once");
        let report = running.end().await;
        assert_eq!((report.handled, report.retried), (100, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn r02_a_paused_handler_waits_while_the_others_of_its_pool_go_on() {
    for order_by in [None, Some("subject".parse().unwrap())] {
        let bench = Bench::new().set(|engine| {
            let mixed = events("a", 100).zip(events("b", 100)).flat_map(|(a, b)| [a, b]);
            let with = |handler: HandlerConfig| HandlerConfig { order_by, ..handler };
            let engine = engine.input(Box::new(Script::of(mixed))).pool("default", pool(2, 500));
            let engine = engine.handler("a", with(on(&["a"], pass())));
            engine.handler("b", with(on(&["b"], pass())))
        });
        let engine = bench.engine.build().await.unwrap();
        let control = engine.control();
        let a = control.handler("a").unwrap();
        a.pause();
        let running = Running { control, sink: bench.sink, run: tokio::spawn(engine.run()) };
        tokio::time::sleep(ms(60_000)).await;
        assert_eq!((running.handled("a"), running.handled("b")), (0, 100));
        a.resume();
        tokio::time::sleep(ms(1_050)).await;
        assert_eq!(running.handled("a"), 100);
        let report = running.end().await;
        assert_eq!((report.handled, report.retried), (200, 0), "no attempt was counted");
    }
}

#[tokio::test(start_paused = true)]
async fn r02_the_events_of_a_paused_handler_do_not_fill_the_memory() {
    for order_by in [None, Some("subject".parse().unwrap())] {
        let source = Script::of(events("t", 30_000));
        let given = source.given();
        let bench = Bench::new().set(|engine| {
            let handler = HandlerConfig { order_by, ..on(&["t"], pass()) };
            engine.input(Box::new(source)).pool("default", pool(2, 100)).handler("h", handler)
        });
        let engine = bench.engine.build().await.unwrap();
        let control = engine.control();
        control.handler("h").unwrap().pause();
        let run = tokio::spawn(engine.run());
        tokio::time::sleep(ms(5_000)).await;
        // The queue, the run-ahead bound of R05, what is in hand and a batch.
        let taken = given.load(Ordering::Relaxed);
        assert!(taken <= 10_000 + 100 + 2 + 256, "{taken} were taken");
        control.stop_now();
        assert_eq!(checked(run.await.unwrap()).handled, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn r02_a_pool_that_is_paused_when_the_run_drains_refuses_what_it_holds() {
    let bench = one(pass(), pool(2, 50), 100).set(|engine| engine.deadline(ms(500)));
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    control.pool("default").unwrap().pause();
    let run = tokio::spawn(engine.run());
    tokio::time::sleep(ms(100)).await;
    control.drain();
    let report = checked(run.await.unwrap());
    assert_eq!((report.handled, report.refused), (0, 100));
    assert!(report.elapsed < ms(1_600), "{:?}", report.elapsed);
}

/// Notes how many are in hand at once.
fn counted(in_hand: &Arc<AtomicUsize>) -> Arc<dyn HandlerFactory> {
    let in_hand = in_hand.clone();
    handle(move |_, _| {
        let in_hand = in_hand.clone();
        async move {
            in_hand.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(ms(100)).await;
            in_hand.fetch_sub(1, Ordering::Relaxed);
            Ok(Outputs::Same)
        }
    })
}

#[tokio::test(start_paused = true)]
async fn r02_workers_are_added_and_removed() {
    let in_hand = Arc::new(AtomicUsize::new(0));
    let running = Running::start(one(counted(&in_hand), pool(2, 500), 500)).await;
    let default = running.control.pool("default").unwrap();
    for workers in [2, 8, 3, 1, 16] {
        let report = default.resize(workers).unwrap().done(ms(1_000)).await;
        assert!(report.is_complete(), "{report:?}");
        tokio::time::sleep(ms(50)).await;
        assert_eq!(in_hand.load(Ordering::Relaxed), workers);
        assert_eq!(default.config().workers, workers);
    }
    assert_eq!(running.end().await.handled, 500);
}

#[tokio::test(start_paused = true)]
async fn r02_limits_are_changed() {
    let in_hand = Arc::new(AtomicUsize::new(0));
    let concurrency = Some(Concurrency::Fixed(2));
    let config = PoolConfig { concurrency, ..pool(16, 500) };
    let running = Running::start(one(counted(&in_hand), config, 200)).await;
    tokio::time::sleep(ms(250)).await;
    assert_eq!(in_hand.load(Ordering::Relaxed), 2);
    running.control.pool("default").unwrap().set_concurrency(7).unwrap();
    tokio::time::sleep(ms(150)).await;
    assert_eq!(in_hand.load(Ordering::Relaxed), 7);
    assert_eq!(running.end().await.handled, 200);
}

#[tokio::test(start_paused = true)]
async fn r02_a_rate_and_a_queue_are_changed() {
    let config = PoolConfig { rate: Some(Rate::per_second(10)), ..pool(4, 20) };
    let running = Running::start(one(pass(), config, 300)).await;
    let default = running.control.pool("default").unwrap();
    tokio::time::sleep(ms(10_050)).await;
    let slowly = running.handled("t");
    assert!((100..=103).contains(&slowly), "{slowly}");
    default.set_queue(100).unwrap();
    tokio::time::sleep(ms(10)).await;
    assert_eq!((default.stats().capacity, default.stats().queued), (100, 100));
    default.set_rate(Rate::per_second(100)).unwrap();
    tokio::time::sleep(ms(2_050)).await;
    assert_eq!(running.handled("t"), 300);
    running.end().await;
}

#[tokio::test(start_paused = true)]
async fn r02_retries_are_changed() {
    let running =
        Running::start(one(answer(|_, _| Err(Failure::retry("no"))), pool(1, 50), 1)).await;
    let handler = running.control.handler("h").unwrap();
    let wait = Backoff::new(ms(50), ms(50));
    handler.set_retry(Retry { attempts: 10, backoff: wait, total: None }).unwrap();
    let report = running.end().await;
    assert_eq!((report.dead_lettered, report.retried), (1, 9));
}

#[tokio::test(start_paused = true)]
async fn r02_what_cannot_change_is_named_and_nothing_has_changed() {
    let before = PoolConfig { rate: Some(Rate::per_second(10)), ..pool(2, 20) };
    let running = Running::start(one(pass(), before, 10)).await;
    let control = running.control.clone();
    let handler = on(&["t"], pass());
    let already = |pools: &[(&str, PoolConfig)], handlers: &[(&str, HandlerConfig)]| match control
        .apply(pools, handlers)
    {
        Err(ChangeError::AlreadyStarted { what }) => what,
        other => panic!("{other:?}"),
    };
    let same = [("h", handler.clone())];
    let shared = PoolConfig { engine: event_pool::Engine::Shared, workers: 7, ..before };
    assert_eq!(already(&[("default", shared)], &same), "pools.default.engine");
    let adaptive = Some(Concurrency::Adaptive(Adaptive::up_to(9)));
    let adaptive = PoolConfig { concurrency: adaptive, ..before };
    let named = "pools.default.concurrency (an adaptive one)";
    assert_eq!(already(&[("default", adaptive)], &same), named);
    let more = [("default", PoolConfig { workers: 7, ..before }), ("erp", before)];
    assert_eq!(already(&more, &same), "pools.erp (which is new)");
    assert_eq!(already(&[("default", before)], &[]), "handlers.h (which is gone)");
    let two = [("h", handler.clone()), ("g", handler.clone())];
    assert_eq!(already(&[("default", before)], &two), "handlers.g (which is new)");
    let unordered = [("h", HandlerConfig { order_by: None, ..handler.clone() })];
    assert_eq!(already(&[("default", before)], &unordered), "handlers.h.order_by");
    assert_eq!(control.pool("default").unwrap().config(), before);
    let none = Retry { attempts: 0, ..Retry::default() };
    let never = [("h", HandlerConfig { retry: Some(none), ..handler })];
    let refused = control.apply(&[("default", before)], &never);
    assert!(matches!(refused, Err(ChangeError::Unusable { .. })), "{refused:?}");
    assert!(matches!(control.pool("erp"), Err(ChangeError::NoSuchPool { .. })));
    assert!(matches!(control.handler("erp"), Err(ChangeError::NoSuchHandler { .. })));
    assert_eq!(running.end().await.handled, 10);
}

#[tokio::test(start_paused = true)]
async fn r02_a_whole_configuration_is_applied_and_says_what_has_changed() {
    let before = PoolConfig { rate: Some(Rate::per_second(10)), ..pool(2, 20) };
    let running = Running::start(one(pass(), before, 100)).await;
    let rate = Some(Rate::per_second(1_000));
    let after = PoolConfig { workers: 5, queue: 90, rate, ..before };
    let mut handler = on(&["t"], pass());
    handler.retry = Some(Retry { attempts: 9, ..Retry::default() });
    let changed = running.control.apply(&[("default", after)], &[("h", handler.clone())]).unwrap();
    let expected =
        ["pools.default.workers", "pools.default.queue", "pools.default.rate", "handlers.h.retry"];
    assert_eq!(changed, expected);
    let default = running.control.pool("default").unwrap();
    assert_eq!((default.config(), default.stats().configured), (after, 5));
    assert_eq!(running.control.handler("h").unwrap().retry().attempts, 9);
    let again = running.control.apply(&[("default", after)], &[("h", handler)]).unwrap();
    assert!(again.is_empty(), "{again:?}");
    assert_eq!(running.end().await.handled, 100);
}

#[tokio::test(start_paused = true)]
async fn r02_a_control_outlives_its_run_and_then_changes_nothing() {
    let running = Running::start(one(pass(), pool(2, 20), 10)).await;
    let control = running.control.clone();
    assert_eq!(running.end().await.handled, 10);
    let resized = control.pool("default").unwrap().resize(4);
    assert!(matches!(resized, Err(ChangeError::Refused { .. })), "{resized:?}");
    control.pool("default").unwrap().pause();
}

#[tokio::test(start_paused = true)]
async fn r06_an_attempt_that_takes_longer_than_its_pool_allows_has_failed() {
    let config = PoolConfig { timeout: Some(ms(100)), ..pool(2, 20) };
    let late_once = handle(|_, attempt| async move {
        tokio::time::sleep(if attempt == 1 { ms(1_000) } else { ms(10) }).await;
        Ok(Outputs::Same)
    });
    let running = Running::start(one(late_once, config, 4)).await;
    tokio::time::sleep(ms(500)).await;
    assert_eq!(running.handled("t"), 4);
    let report = running.end().await;
    assert_eq!((report.handled, report.retried, report.repeated_at_most), (4, 4, 4));
}

#[tokio::test(start_paused = true)]
async fn r02_a_rate_comes_and_goes_where_there_was_none() {
    for engine in [event_pool::Engine::Shared, event_pool::Engine::Keyed] {
        let config = PoolConfig { engine, ..pool(4, 1_000) };
        let running = Running::start(one(slow(ms(10)), config, 1_000)).await;
        let default = running.control.pool("default").unwrap();
        tokio::time::sleep(ms(105)).await;
        assert_eq!(running.handled("t"), 40);
        default.set_rate(Rate::per_second(10)).unwrap();
        tokio::time::sleep(ms(1_000)).await;
        assert_eq!(running.handled("t"), 40 + 4 + 10, "what was under way, a token, nine more");
        assert_eq!(default.config().rate, Some(Rate::per_second(10)));
        default.set_rate(None).unwrap();
        tokio::time::sleep(ms(105)).await;
        assert!(running.handled("t") >= 54 + 36, "{}", running.handled("t"));
        assert_eq!(default.config(), config);
        assert_eq!(running.end().await.handled, 1_000);
    }
}

#[tokio::test(start_paused = true)]
async fn r02_a_concurrency_limit_comes_and_goes_where_there_was_none() {
    let in_hand = Arc::new(AtomicUsize::new(0));
    let running = Running::start(one(counted(&in_hand), pool(16, 500), 500)).await;
    let default = running.control.pool("default").unwrap();
    for limit in [Some(3), None, Some(1), Some(7), None] {
        default.set_concurrency(limit).unwrap();
        tokio::time::sleep(ms(250)).await;
        assert_eq!(in_hand.load(Ordering::Relaxed), limit.unwrap_or(16));
        assert_eq!(default.config().concurrency, limit.map(Concurrency::Fixed));
    }
    assert!(matches!(default.set_concurrency(0), Err(ChangeError::Refused { .. })));
    assert_eq!(running.end().await.handled, 500);
}

#[tokio::test(start_paused = true)]
async fn r02_limits_that_come_and_go_are_applied_with_a_whole_configuration() {
    let running = Running::start(one(pass(), pool(2, 20), 100)).await;
    let handlers = [("h", on(&["t"], pass()))];
    let limited = PoolConfig {
        rate: Some(Rate::per_second(10)),
        concurrency: Some(Concurrency::Fixed(1)),
        ..pool(2, 20)
    };
    for to in [limited, pool(2, 20)] {
        let changed = running.control.apply(&[("default", to)], &handlers).unwrap();
        assert_eq!(changed, ["pools.default.rate", "pools.default.concurrency"]);
        assert_eq!(running.control.pool("default").unwrap().config(), to);
    }
    assert_eq!(running.end().await.handled, 100);
}
