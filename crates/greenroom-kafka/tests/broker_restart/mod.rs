//! A broker that goes away under load (Z07, F10). It is killed and started again, so that no other
//! test may use it meanwhile: run this by itself, on a broker that `scripts/kafka` has started.
//!
//! ```sh
//! GREENROOM_KAFKA=$(scripts/kafka up 12092) GREENROOM_KAFKA_MAY_RESTART=1 \
//!     cargo test -p greenroom-kafka --test kafka restart
//! ```

use std::{
    collections::HashSet,
    env,
    io::{self, Write},
    path::Path,
    process::Command,
    sync::{Arc, Mutex},
    time::Duration,
};

use greenroom_bus::{
    engine::{Engine, HandlerConfig, InputConfig, PoolConfig},
    event::Event,
    handler::{Attempt, Handler, HandlerFactory, Handling, Outputs},
};
use greenroom_kafka::{KafkaOutput, output::KafkaSink, source::KafkaSource};
use tokio::sync::Notify;

use crate::broker::support::{
    NoLetters, PATIENCE, Publisher, committed, create_topic, event, group, options, pull,
    real_broker, unique, until,
};

const EVENTS: u64 = 3_000;
/// How long the broker is away.
const AWAY: Duration = Duration::from_secs(10);

/// What was handled, by the ids: what was in hand when the broker went is handled again.
#[derive(Clone, Default)]
struct Works {
    done: Arc<Mutex<HashSet<String>>>,
    more: Arc<Notify>,
}

impl HandlerFactory for Works {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(self.clone()))
    }
}

impl Handler for Works {
    fn handle<'a>(&'a mut self, event: &'a Event, _attempt: &'a Attempt) -> Handling<'a> {
        Handling::Later(Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            self.done.lock().unwrap().insert(event.id().to_owned());
            self.more.notify_one();
            Ok(Outputs::Events(vec![event.clone()]))
        }))
    }
}

impl Works {
    fn done(&self) -> u64 {
        self.done.lock().unwrap().len() as u64
    }

    async fn until(&self, done: u64) {
        let comes = async {
            while self.done() < done {
                self.more.notified().await;
            }
        };
        let came = tokio::time::timeout(PATIENCE, comes).await;
        came.unwrap_or_else(|_| panic!("{} of {done}", self.done()));
    }
}

fn script(command: &str, broker: &str) {
    let port = broker.rsplit(':').next().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/kafka");
    assert!(Command::new(script).args([command, port]).status().unwrap().success());
}

/// Seconds of processor time that this process has used.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<f64> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(|ticks| ticks.parse().unwrap())
        .collect();
    fields.iter().sum::<f64>() / 100.0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn z07_a_broker_that_was_away_is_gone_on_with_and_nothing_is_lost() {
    let Some(broker) = real_broker() else { return };
    if env::var_os("GREENROOM_KAFKA_MAY_RESTART").is_none() {
        // Past the capture of test output.
        let _ = writeln!(
            io::stderr(),
            "NOT RUN: the test that kills its broker. To run it, on a broker for nothing else: \
             GREENROOM_KAFKA=$(scripts/kafka up 12092) GREENROOM_KAFKA_MAY_RESTART=1 cargo test -p \
             greenroom-kafka --test kafka restart"
        );
        return;
    }
    let (name, out) = (unique("z07"), unique("z07-out"));
    create_topic(&broker, &name, 3);
    create_topic(&broker, &out, 3);
    let publisher = Publisher::new(&broker);
    for number in 0..EVENTS {
        let key = number % 40;
        publisher.event(&name, (key % 3) as i32, &event(number, &format!("k{key}")));
    }
    publisher.flush();
    let mut source_options = options(&broker, &name, std::slice::from_ref(&name));
    source_options.properties.set("reconnect.backoff.max.ms", "500");
    let source = KafkaSource::open(source_options, None).unwrap();
    let sink = KafkaSink::open(KafkaOutput::new(&broker, &out)).unwrap();
    let works = Works::default();
    let on = || vec!["**".parse().unwrap()];
    let config = HandlerConfig {
        order_by: Some("subject".parse().unwrap()),
        ..HandlerConfig::new(on(), Arc::new(works.clone()))
    };
    let engine = Engine::builder()
        .input_named(
            "input",
            InputConfig { run_ahead: 100, ..InputConfig::default() },
            Box::new(source),
        )
        .pool("default", PoolConfig { workers: 8, queue: 16, ..PoolConfig::default() })
        .handler("all", config)
        .output("out", on(), Arc::new(sink))
        .dead_letters(Arc::new(NoLetters))
        .build();
    let engine = engine.await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    works.until(EVENTS / 4).await;
    script("kill", &broker);
    let before = processor_seconds();
    tokio::time::sleep(AWAY).await;
    let used = processor_seconds() - before;
    assert!(
        used < AWAY.as_secs_f64() / 4.0,
        "{used} s of processor time while nothing could be done"
    );
    script("up", &broker);
    works.until(EVENTS).await;
    // The partitions were lost meanwhile, and come back: what was not committed is handled again.
    let all_is_settled = || {
        let standings = control.input_views().into_iter().flat_map(|view| view.partitions);
        let settled = standings.filter_map(|of| of.standing).filter(|of| of.oldest_open == of.next);
        settled.map(|of| of.next).sum::<u64>() == EVENTS
    };
    tokio::task::block_in_place(|| until("everything settled", all_is_settled));
    control.drain();
    let report = tokio::time::timeout(PATIENCE, run).await.unwrap().unwrap();
    assert!(report.adds_up() && report.errors.is_empty(), "{report:?}");
    assert_eq!(report.out_of_order, 0);
    let group = group(&broker, &name);
    let stored = (0..3).map(|of| committed(&group, &name, of).unwrap());
    let (offsets, texts): (Vec<u64>, Vec<String>) = stored.unzip();
    assert_eq!(offsets.iter().sum::<u64>(), EVENTS, "everything is committed");
    assert!(texts.iter().all(String::is_empty));
    let mut read =
        KafkaSource::open(options(&broker, &out, std::slice::from_ref(&out)), None).unwrap();
    let mut ids = HashSet::new();
    while (ids.len() as u64) < EVENTS {
        let made = pull(&mut read, 1).await;
        ids.extend(made.into_iter().map(|(_, taken)| taken.event.unwrap().id().to_owned()));
    }
}
