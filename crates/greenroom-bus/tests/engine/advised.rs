//! Pools that are advised while events go through them (H10, O13).

use std::{collections::HashMap, sync::Arc, time::Duration};

use greenroom::advisor::{Advice, Advisor, Finding};
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
    Advisor { period: MINUTE, ..Advisor::default() }
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
async fn o13_one_that_only_says_so_changes_nothing_and_without_one_nothing_is_said() {
    for advises in [Some(advisor()), None] {
        let config = PoolConfig { advisor: advises, ..pool(2, 20) };
        let running = Running::start(bursts(100, 200), config, ms(1)).await;
        tokio::time::sleep(3 * MINUTE).await;
        let found = running.advice().map(|advice| advice.finding);
        assert_eq!(found, advises.map(|_| Finding::Shallow));
        assert_eq!(running.size(), (2, 20));
        running.ends_with(20_000).await;
    }
}

#[tokio::test(start_paused = true)]
async fn o13_the_advisor_changes_while_the_engine_runs() {
    let running = Running::start(bursts(100, 400), pool(2, 20), ms(1)).await;
    let apply = |config: PoolConfig| {
        let handlers = [("h", on(&["t"], slow(ms(1))))];
        running.control.apply(&[("default", config)], &handlers).unwrap()
    };
    let advised = PoolConfig { advisor: Some(advisor()), ..pool(2, 20) };
    assert_eq!(apply(advised), ["pools.default.advisor"]);
    assert_eq!(running.control.pool("default").unwrap().config(), advised);
    tokio::time::sleep(MINUTE + ms(10)).await;
    assert!(running.advice().is_some());
    let wider = PoolConfig { workers: 9, advisor: None, ..advised };
    assert_eq!(apply(wider), ["pools.default.workers", "pools.default.advisor"]);
    assert_eq!((running.size(), running.advice()), ((9, 20), None));
    running.ends_with(40_000).await;
}
