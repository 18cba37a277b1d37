//! The load as events of two inputs: one has the flood, the other one the others' events.

use std::sync::Arc;

use greenroom_bus::{
    engine::{InputConfig, PoolConfig},
    event::Event,
    source::{Pull, Pulling, Source, SourceError, Taken},
};
use tokio::sync::mpsc::{self, UnboundedReceiver};

use crate::{
    Failure, engine, event,
    load::{Job, Load, Sheet},
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
    let inputs: [Box<dyn Source>; 2] = [Box::new(flood), Box::new(others)];
    let inputs = inputs.into_iter().map(|input| (input, much.clone())).collect();
    let pool = PoolConfig { queue: 2_000_000, ..engine::pool(shares)? };
    engine::run(load, inputs, pool, sheet).await.map(drop)
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
    fn event(&self, job: &Job) -> Result<Event, SourceError> {
        event::of_job(job).map_err(|error| SourceError::new(self.describe(), error.to_string()))
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
                into.push(Taken { position: self.position, event: Ok(self.event(&job)?) });
            }
            Ok(if ends { Pull::End } else { Pull::More })
        })
    }

    fn replayable(&self) -> bool {
        false
    }
}
