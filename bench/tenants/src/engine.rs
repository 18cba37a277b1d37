//! The load as events of two inputs: one has the flood, the other one the others' events.

use std::{sync::Arc, time::Duration};

use greenroom_bus::{
    dead_letter::file::FileDeadLetterStore,
    engine::{Engine, HandlerConfig, InputConfig, PoolConfig},
    event::{Event, ExtensionValue},
    handler::{Attempt, Handler, HandlerFactory, Handling, Outputs},
    source::{Pull, Pulling, Source, SourceError, Taken},
};
use tokio::sync::mpsc::{self, UnboundedReceiver};

use crate::{
    Failure,
    load::{Job, Load, Sheet},
    systems::{WORKERS, until_over},
};

/// Events per pull, at most.
const BATCH: usize = 512;

pub async fn run(load: Load, shares: bool, sheet: &Arc<Sheet>) -> Result<(), Failure> {
    let (sender, arrived) = mpsc::unbounded_channel();
    load.pace(sheet.start, move |job| {
        // Nobody takes it once the run is over.
        let _ = sender.send(job);
    });
    let flood = Feed { name: "flood", jobs: Jobs::AtOnce(Box::new(load.flood())), position: 0 };
    let others = Feed { name: "others", jobs: Jobs::Paced(arrived), position: 0 };
    let much =
        InputConfig { run_ahead: 2_000_000, in_flight_bytes: 4 << 30, ..InputConfig::default() };
    let pool = PoolConfig { workers: WORKERS, queue: 2_000_000, ..PoolConfig::default() };
    let handler = HandlerConfig {
        order_by: Some("subject".parse()?),
        share_by: if shares { Some("tenant".parse()?) } else { None },
        ..HandlerConfig::new(vec!["**".parse()?], Arc::new(Handles(sheet.clone())))
    };
    // Nothing comes there.
    let letters =
        std::env::temp_dir().join(format!("greenroom-tenants-{}.ndjson", std::process::id()));
    let engine = Engine::builder()
        .dead_letters(Arc::new(FileDeadLetterStore::open(&letters)?))
        .input_with(Box::new(flood), much.clone())
        .input_with(Box::new(others), much)
        .pool("default", pool)
        .handler("all", handler)
        .deadline(Duration::ZERO)
        .build()
        .await?;
    let control = engine.control();
    let running = tokio::spawn(engine.run());
    until_over(&load, sheet).await;
    control.stop_now();
    let report = running.await?;
    std::fs::remove_file(&letters).ok();
    match report.adds_up() && report.out_of_order == 0 {
        true => Ok(()),
        false => Err(format!("events were lost: {report:?}").into()),
    }
}

struct Handles(Arc<Sheet>);

impl HandlerFactory for Handles {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(Self(self.0.clone())))
    }
}

impl Handler for Handles {
    fn handle<'a>(&'a mut self, event: &'a Event, _attempt: &'a Attempt) -> Handling<'a> {
        let number = |name: &str| match event.extension(name) {
            Some(ExtensionValue::Integer(number)) => *number as u64,
            _ => 0,
        };
        let job = Job {
            tenant: number("tenant") as u32,
            key: 0,
            number: event.id().parse().ok(),
            takes: Duration::from_micros(number("takes")),
        };
        Handling::Later(Box::pin(async move {
            self.0.handle(job).await;
            Ok(Outputs::None)
        }))
    }
}

struct Feed {
    name: &'static str,
    jobs: Jobs,
    position: u64,
}

enum Jobs {
    AtOnce(Box<dyn Iterator<Item = Job> + Send>),
    Paced(UnboundedReceiver<Job>),
}

impl Feed {
    fn event(&self, job: Job) -> Result<Event, SourceError> {
        let id = job.number.map_or_else(|| format!("f{}", self.position), |n| n.to_string());
        let built = Event::builder(id, "bench:tenants", "job")
            .subject(job.key.to_string())
            .extension("tenant", i64::from(job.tenant))
            .extension("takes", job.takes.as_micros() as i64)
            .build();
        built.map_err(|error| SourceError::new(self.describe(), error.to_string()))
    }
}

impl Source for Feed {
    fn describe(&self) -> String {
        self.name.to_owned()
    }

    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>) -> Pulling<'a> {
        Box::pin(async move {
            let mut jobs = Vec::new();
            match &mut self.jobs {
                Jobs::AtOnce(rest) => jobs.extend(rest.take(BATCH)),
                Jobs::Paced(arrived) => drop(arrived.recv_many(&mut jobs, BATCH).await),
            }
            let ends = jobs.is_empty();
            for job in jobs {
                self.position += 1;
                into.push(Taken { position: self.position, event: Ok(self.event(job)?) });
            }
            Ok(if ends { Pull::End } else { Pull::More })
        })
    }

    fn replayable(&self) -> bool {
        false
    }
}
