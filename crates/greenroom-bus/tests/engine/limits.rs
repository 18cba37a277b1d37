//! Limits that a pool finds out, sizes that it chooses, and threads of its
//! own, in a run (R06, P30).

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use greenroom::{autoscale::Autoscale, limits::Adaptive};
use greenroom_bus::{
    engine::{Concurrency, Control, PoolConfig, RunReport},
    event::Event,
    handler::{Failure, HandlerFactory, Outputs},
};

use crate::engine::support::{
    Bench, HANG, checked, event,
    handlers::{answer, handle, pass},
    ms, on, pool,
    source::{Script, Step},
};

/// How many attempts are in hand, and the most that there were.
#[derive(Clone, Default)]
struct InHand {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl InHand {
    /// A handler that takes 20 ms, and fails where more than `bears` are in hand at once.
    fn handler(&self, bears: usize) -> Arc<dyn HandlerFactory> {
        let Self { now, most } = self.clone();
        handle(move |_, _| {
            let (now, most) = (now.clone(), most.clone());
            async move {
                let here = now.fetch_add(1, Ordering::Relaxed) + 1;
                most.fetch_max(here, Ordering::Relaxed);
                if here <= bears {
                    tokio::time::sleep(ms(20)).await;
                }
                now.fetch_sub(1, Ordering::Relaxed);
                if here <= bears { Ok(Outputs::None) } else { Err(Failure::retry("too many")) }
            }
        })
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }
}

fn events(count: usize) -> impl Iterator<Item = Event> {
    (0..count).map(|n| event(n, "t", None))
}

/// Runs these steps through a pool of this configuration.
async fn run(
    script: Script,
    config: PoolConfig,
    factory: Arc<dyn HandlerFactory>,
) -> (Control, RunReport) {
    let mut handler = on(&["t"], factory);
    handler.retry = Some(greenroom_bus::engine::Retry { attempts: 1_000, ..Default::default() });
    let bench = Bench::new()
        .set(|engine| engine.input(Box::new(script)).pool("default", config).handler("h", handler));
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let report = tokio::time::timeout(HANG, engine.run()).await.expect("the run did not end");
    (control, checked(report))
}

fn limited(limit: Adaptive) -> PoolConfig {
    PoolConfig { concurrency: Some(Concurrency::Adaptive(limit)), ..pool(64, 10_000) }
}

#[tokio::test(start_paused = true)]
async fn r06_an_adaptive_limit_holds_workers_back_and_grows_while_the_target_bears_it() {
    let limit = Adaptive { initial: 4, ..Adaptive::up_to(64) };
    let (first, all) = (InHand::default(), InHand::default());
    // Fewer than end in a window: nothing has been decided yet.
    run(Script::of(events(8)), limited(limit.enforced()), first.handler(64)).await;
    assert_eq!(first.most(), 4, "its beginning holds");
    let script = Script::of(events(10_000));
    let (control, report) = run(script, limited(limit.enforced()), all.handler(64)).await;
    assert_eq!((report.handled, report.retried), (10_000, 0));
    assert!(all.most() > 16, "{}", all.most());
    let now = control.pool("default").unwrap().stats().limits.limit.unwrap();
    assert!((16..=64).contains(&now), "{now}");
}

#[tokio::test(start_paused = true)]
async fn r06_an_adaptive_limit_shrinks_to_what_the_target_bears() {
    let (held, free) = (InHand::default(), InHand::default());
    let limit = Adaptive { initial: 40, ..Adaptive::up_to(64).enforced() };
    let script = || Script::of(events(800));
    let (control, report) = run(script(), limited(limit), held.handler(8)).await;
    assert_eq!(report.handled, 800);
    let now = control.pool("default").unwrap().stats().limits.limit.unwrap();
    assert!(now < 40, "{now}");
    let (_, unlimited) = run(script(), pool(64, 10_000), free.handler(8)).await;
    assert!(report.retried < unlimited.retried, "{} {}", report.retried, unlimited.retried);
}

#[tokio::test(start_paused = true)]
async fn r06_an_adaptive_limit_that_is_only_observed_holds_nobody_back() {
    let in_hand = InHand::default();
    let limit = Adaptive { initial: 4, ..Adaptive::up_to(64) };
    run(Script::of(events(1_000)), limited(limit), in_hand.handler(64)).await;
    assert_eq!(in_hand.most(), 64);
}

#[tokio::test(start_paused = true)]
async fn r06_a_pool_scales_with_what_waits_and_back_again() {
    let in_hand = InHand::default();
    let factory = in_hand.handler(64);
    let config = PoolConfig { autoscale: Some(Autoscale::between(1, 20)), ..pool(1, 10_000) };
    let script = Script::of(events(6_000)).then(Step::Wait(ms(180_000)));
    let bench = Bench::new().set(|engine| {
        engine.input(Box::new(script)).pool("default", config).handler("h", on(&["t"], factory))
    });
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    let workers = || control.pool("default").unwrap().stats().configured;
    assert_eq!(workers(), 1);
    tokio::time::sleep(ms(60_000)).await;
    // One worker would have handled 3,000 by now.
    assert_eq!(control.progress().settled, 6_000);
    assert_eq!(in_hand.most(), 20, "as many as it may have, and no more");
    tokio::time::sleep(ms(60_000)).await;
    assert_eq!(workers(), 1, "nothing has come for a minute");
    control.drain();
    checked(run.await.unwrap());
}

/// A handler that tells on which threads it ran, and blocks them until the test lets it go.
fn blocking(threads: &Arc<Mutex<BTreeSet<String>>>) -> (Arc<dyn HandlerFactory>, mpsc::Sender<()>) {
    let (go, wait) = mpsc::channel();
    let (wait, threads) = (Arc::new(Mutex::new(wait)), threads.clone());
    let factory = answer(move |_, _| {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        threads.lock().unwrap().insert(name);
        match wait.lock().unwrap().recv_timeout(Duration::from_secs(20)) {
            Ok(()) => Ok(Outputs::None),
            Err(error) => Err(Failure::reject(format!("nobody lets it go: {error}"))),
        }
    });
    (factory, go)
}

/// On one thread, which the first handler that blocks would take away from everybody else.
#[tokio::test]
async fn p30_handlers_that_block_on_threads_of_their_pool_hold_nobody_up() {
    let threads: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let (blocks, go) = blocking(&threads);
    let mut blocks = on(&["block"], blocks);
    blocks.pool = "crunch".to_owned();
    let own = PoolConfig { dedicated_threads: Some(2), ..pool(2, 100) };
    let mixed =
        (0..50).flat_map(|n| ["block", "pass"].map(|ty| event(format!("{ty}{n}"), ty, None)));
    let bench = Bench::new().set(|engine| {
        let engine = engine.input(Box::new(Script::of(mixed))).pool("crunch", own);
        engine.handler("blocks", blocks).handler("passes", on(&["pass"], pass()))
    });
    let sink = bench.sink.clone();
    let engine = bench.engine.build().await.unwrap();
    let run = tokio::spawn(engine.run());
    let others = async {
        while sink.ids().len() < 50 {
            tokio::time::sleep(ms(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), others).await.expect("the others were held up");
    for _ in 0..50 {
        go.send(()).unwrap();
    }
    let report = checked(run.await.unwrap());
    assert_eq!((report.handled, report.dead_lettered), (100, 0));
    let threads = threads.lock().unwrap();
    assert!(threads.iter().all(|name| name == "crunch"), "{threads:?}");
}
