//! Pools that are advised, and that follow their advice, while events go through them (H10, O13).

use std::{collections::HashMap, sync::Arc, time::Duration};

use greenroom::{
    advisor::{Advice, Advisor, Finding},
    autoscale::Autoscale,
};
use greenroom_bus::{
    engine::{Control, PoolConfig, RunReport},
    event::Event,
};
use tokio::task::JoinHandle;

use crate::engine::support::{
    Bench, HANG, checked, event,
    handlers::slow,
    ms, on, pool,
    sink::MemorySink,
    source::{Script, Step},
};

const MINUTE: Duration = Duration::from_secs(60);
const KEYS: usize = 50;

/// Looks at a minute at a time.
fn advisor() -> Advisor {
    Advisor::default().period(MINUTE)
}

struct Running {
    control: Control,
    sink: Arc<MemorySink>,
    run: JoinHandle<RunReport>,
}

fn numbered(numbers: std::ops::Range<usize>) -> Vec<Result<Event, Vec<u8>>> {
    let event = |n: usize| Ok(event(n, "t", Some(&format!("key-{}", n % KEYS))));
    numbers.map(event).collect()
}

/// So many events each second, for so many seconds.
fn bursts(of: usize, seconds: usize) -> Script {
    let burst = |second| Step::Batch(numbered(second * of..(second + 1) * of));
    Script::new("bursts", (0..seconds).flat_map(|n| [burst(n), Step::Wait(ms(1_000))]))
}

impl Running {
    async fn start(source: Script, config: PoolConfig, latency: Duration) -> Self {
        let bench = Bench::new().set(|engine| {
            let engine = engine.input(Box::new(source)).pool("default", config);
            engine.handler("h", on(&["t"], slow(latency)))
        });
        let sink = bench.sink.clone();
        let engine = bench.engine.build().await.unwrap();
        Self { control: engine.control(), sink, run: tokio::spawn(engine.run()) }
    }

    fn advice(&self) -> Option<Advice> {
        self.control.pool("default").unwrap().advice()
    }

    /// Workers, and how many events may wait.
    fn size(&self) -> (usize, usize) {
        let stats = self.control.pool("default").unwrap().stats();
        (stats.configured, stats.capacity)
    }

    /// The run ends by itself: all of it was handled, and each key in order.
    async fn ends_with(self, events: usize) {
        let report = tokio::time::timeout(HANG, self.run).await.expect("the run did not end");
        assert_eq!(checked(report.unwrap()).handled as usize, events);
        let mut last: HashMap<usize, usize> = HashMap::new();
        let ids = self.sink.ids();
        assert_eq!(ids.len(), events, "nothing is lost, nothing comes twice");
        for id in ids {
            let n: usize = id.parse().unwrap();
            let before = last.insert(n % KEYS, n);
            assert!(before < Some(n), "{n} after {before:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn h10_o13_a_pool_that_acts_grows_its_queue_within_its_bounds_loses_nothing_and_keeps_order()
{
    let acts = advisor().act().queue_within(20, 70);
    let config = PoolConfig { advisor: Some(acts), ..pool(2, 20) };
    let running = Running::start(bursts(100, 400), config, ms(1)).await;
    tokio::time::sleep(MINUTE - ms(1_000)).await;
    assert_eq!((running.advice(), running.size()), (None, (2, 20)), "not before a whole period");
    tokio::time::sleep(ms(2_000)).await;
    let advice = running.advice().unwrap();
    assert_eq!((advice.finding, advice.acted), (Finding::Shallow, true), "{advice}");
    assert!(advice.to_string().contains("queue: 20 -> 40"), "{advice}");
    assert_eq!(running.size(), (2, 40));
    tokio::time::sleep(MINUTE).await;
    assert_eq!(running.size(), (2, 70), "no further than its bounds");
    tokio::time::sleep(2 * MINUTE).await;
    assert_eq!(running.size(), (2, 70));
    running.ends_with(40_000).await;
}

#[tokio::test(start_paused = true)]
async fn h10_o13_a_pool_that_acts_shrinks_a_long_queue_and_adds_workers_within_its_bounds() {
    let acts = advisor().act().queue_within(60, 1_000);
    let config = PoolConfig { advisor: Some(acts), bounds: Some((2, 4)), ..pool(2, 200) };
    let flood = Script::new("flood", [Step::Batch(numbered(0..20_000))]);
    let running = Running::start(flood, config, ms(50)).await;
    let mut sizes = Vec::new();
    for _ in 0..3 {
        tokio::time::sleep(MINUTE + ms(10)).await;
        sizes.push(running.size());
    }
    assert_eq!(sizes, [(3, 100), (4, 60), (4, 60)]);
    let refused = running.control.pool("default").unwrap().resize(5);
    assert!(refused.is_err(), "nobody else goes beyond the bounds either");
    running.ends_with(20_000).await;
}

#[tokio::test(start_paused = true)]
async fn o13_one_that_only_says_so_changes_nothing_and_without_one_nothing_is_said() {
    for advises in [Some(advisor()), None] {
        let config = PoolConfig { advisor: advises, ..pool(2, 20) };
        let running = Running::start(bursts(100, 200), config, ms(1)).await;
        tokio::time::sleep(3 * MINUTE).await;
        let found = running.advice().map(|advice| (advice.finding, advice.acted));
        assert_eq!(found, advises.map(|_| (Finding::Shallow, false)));
        assert_eq!(running.size(), (2, 20));
        running.ends_with(20_000).await;
    }
}

#[tokio::test(start_paused = true)]
async fn o13_advisor_and_bounds_change_while_the_engine_runs() {
    let running = Running::start(bursts(100, 400), pool(2, 20), ms(1)).await;
    let apply = |config: PoolConfig| {
        let handlers = [("h", on(&["t"], slow(ms(1))))];
        running.control.apply(&[("default", config)], &handlers).unwrap()
    };
    let acts = PoolConfig { advisor: Some(advisor().act()), bounds: Some((2, 8)), ..pool(2, 20) };
    assert_eq!(apply(acts), ["pools.default.bounds", "pools.default.advisor"]);
    let default = running.control.pool("default").unwrap();
    assert_eq!(default.config(), acts);
    assert!(default.resize(9).is_err());
    tokio::time::sleep(MINUTE + ms(10)).await;
    assert_eq!(running.size(), (2, 40));
    // Bounds and a size that is only within the new ones come at once.
    let wider = PoolConfig { bounds: Some((9, 10)), workers: 9, advisor: None, ..acts };
    let changed = ["pools.default.bounds", "pools.default.workers", "pools.default.advisor"];
    assert_eq!(apply(wider), changed);
    assert_eq!((running.size(), running.advice()), ((9, 40), None));
    assert_eq!(apply(PoolConfig { bounds: None, ..wider }), ["pools.default.bounds"]);
    drop(default.resize(11).unwrap());
    running.ends_with(40_000).await;
}

#[tokio::test(start_paused = true)]
async fn o13_a_pool_that_scales_keeps_its_own_bounds() {
    let config = PoolConfig {
        autoscale: Some(Autoscale::between(2, 3)),
        bounds: Some((1, 9)),
        ..pool(2, 20)
    };
    let running = Running::start(bursts(10, 5), config, ms(1)).await;
    let default = running.control.pool("default").unwrap();
    assert!(default.resize(4).is_err() && default.set_bounds(None).is_err());
    running.ends_with(50).await;
}
