//! What a member does: it handles events, says so, and drains when its input is closed.

use std::{
    io::{self, Write},
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use greenroom_bus::{
    engine::{Engine, HandlerConfig, PoolConfig},
    event::{Event, PARTITION_KEY},
    handler::{Attempt, Handler, HandlerFactory, Handling, Outputs},
    source::{Committer, Partition, Pulling, Receipts, Source, Taken},
};
use greenroom_kafka::{KafkaInput, source::KafkaSource};

use crate::{Failure, broker::PARTITIONS, engine::key, letters::NoLetters, made};

const WORKERS: usize = 64;

pub fn run(args: &[&str]) -> Result<ExitCode, Failure> {
    let [broker, topic, name] = args else { return Err("a member needs three arguments".into()) };
    let mut input = KafkaInput::new(*broker, *topic, [*topic]);
    input.properties.set("session.timeout.ms", "6000").set("heartbeat.interval.ms", "500");
    if *name != "-" {
        input.instance_id = Some((*name).to_owned());
    }
    let owned = Arc::new(Owned::default());
    let source = Watched { source: KafkaSource::open(input, None)?, owned: owned.clone() };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(consume(source, owned))
}

async fn consume(source: Watched, owned: Arc<Owned>) -> Result<ExitCode, Failure> {
    let handler = HandlerConfig {
        order_by: Some(PARTITION_KEY.parse()?),
        ..HandlerConfig::new(vec!["**".parse()?], Arc::new(Works(owned)))
    };
    let engine = Engine::builder()
        .input(Box::new(source))
        .pool("default", PoolConfig { workers: WORKERS, ..PoolConfig::default() })
        .handler("all", handler)
        .dead_letters(Arc::new(NoLetters))
        .deadline(Duration::from_secs(60))
        .build()
        .await?;
    let control = engine.control();
    thread::spawn(move || {
        // Until it is closed.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        control.drain();
    });
    let report = engine.run().await;
    if !report.adds_up() || report.out_of_order > 0 {
        return Err(format!("{report:?}").into());
    }
    Ok(ExitCode::SUCCESS)
}

/// How often each partition was taken away.
#[derive(Default)]
struct Owned([AtomicU32; PARTITIONS as usize]);

/// The source, watched for partitions that are taken away: nothing of one is started from then on
/// that was given before.
struct Watched {
    source: KafkaSource,
    owned: Arc<Owned>,
}

impl Source for Watched {
    fn describe(&self) -> String {
        self.source.describe()
    }

    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>) -> Pulling<'a> {
        self.source.pull(into)
    }

    fn replayable(&self) -> bool {
        self.source.replayable()
    }

    fn committer(&mut self) -> Option<Arc<dyn Committer>> {
        self.source.committer()
    }

    fn receipts(&self) -> Option<Arc<dyn Receipts>> {
        self.source.receipts()
    }

    fn is_partitioned(&self) -> bool {
        self.source.is_partitioned()
    }

    fn partition(&self) -> Partition {
        self.source.partition()
    }

    fn set_paused(&mut self, paused: &[Partition]) {
        self.source.set_paused(paused);
    }

    fn revoking(&mut self) -> Vec<Partition> {
        self.source.revoking()
    }

    fn revoked(&mut self, partition: Partition) {
        self.owned.0[partition.0 as usize].fetch_add(1, Ordering::SeqCst);
        self.source.revoked(partition);
    }
}

#[derive(Clone)]
struct Works(Arc<Owned>);

impl HandlerFactory for Works {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(self.clone()))
    }
}

impl Handler for Works {
    fn handle<'a>(&'a mut self, event: &'a Event, _attempt: &'a Attempt) -> Handling<'a> {
        let (from, ownership) = (now(), self.ownership(event));
        Handling::Later(Box::pin(async move {
            tokio::time::sleep(latency(event.id())).await;
            // In one piece, so that a kill leaves no half of a line that looks like a whole one.
            let line = format!("done {} {ownership} {from} {} .\n", event.id(), now());
            let mut stdout = io::stdout().lock();
            if let Err(error) = stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush()) {
                eprintln!("error: nobody listens: {error}");
                std::process::exit(1);
            }
            Ok(Outputs::None)
        }))
    }
}

impl Works {
    fn ownership(&self, event: &Event) -> u32 {
        let key = key(event).strip_prefix("key-").and_then(|key| key.parse().ok()).unwrap_or(0);
        self.0.0[made::partition(key) as usize].load(Ordering::SeqCst)
    }
}

/// Most events are quick, some are not, and few hold their key up for as long as seconds.
fn latency(id: &str) -> Duration {
    let number: u64 = id.parse().unwrap_or(0);
    let drawn = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    Duration::from_millis(match drawn % 10_000 {
        0 => 2_000,
        1..100 => 50,
        other => other % 3,
    })
}

/// By the machine's clock, which all processes share.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_nanos() as u64
}
