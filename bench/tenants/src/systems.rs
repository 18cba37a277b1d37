//! The ways of handling the load.

use std::{sync::Arc, time::Duration};

use greenroom::{Stop, prelude::*};
use tokio::sync::{Semaphore, mpsc};

use crate::{
    Failure,
    load::{Figures, Job, Load, Sheet},
    memory,
};

pub const WORKERS: usize = 64;
/// What a semaphore lets a tenant have at once: half of the workers.
const PERMITS: usize = WORKERS / 2;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum System {
    Pool { shares: bool },
    Engine { shares: bool },
    Semaphores,
    Queues,
}

impl System {
    pub fn name(self) -> &'static str {
        match self {
            Self::Pool { shares: true } => "pool, shares",
            Self::Pool { shares: false } => "pool, no shares",
            Self::Engine { shares: true } => "engine, shares",
            Self::Engine { shares: false } => "engine, no shares",
            Self::Semaphores => "semaphores by tenant",
            Self::Queues => "a queue and a task per tenant",
        }
    }

    /// Runs the load, and looks at what was done when its time is over.
    pub fn run(self, load: Load) -> Result<Figures, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let sheet = Arc::new(Sheet::new(&load));
        runtime.block_on(async {
            match self {
                Self::Pool { shares } => pool(load, shares, &sheet).await,
                Self::Engine { shares } => memory::run(load, shares, &sheet).await,
                Self::Semaphores => semaphores(load, &sheet).await,
                Self::Queues => queues(load, &sheet).await,
            }
        })?;
        let figures = sheet.figures(&load);
        runtime.shutdown_background();
        Ok(figures)
    }
}

pub async fn until_over(load: &Load, sheet: &Sheet) {
    tokio::time::sleep_until((sheet.start + load.during).into()).await;
}

struct Clerk(Arc<Sheet>);

impl Actor for Clerk {
    type Message = Job;
    type Reply = ();
    type Error = std::convert::Infallible;

    async fn handle(&mut self, job: Job, _: &mut Context<Self>) -> Result<(), Self::Error> {
        self.0.handle(job).await;
        Ok(())
    }
}

async fn pool(load: Load, shares: bool, sheet: &Arc<Sheet>) -> Result<(), Failure> {
    let own = sheet.clone();
    let builder = Pool::new(move |_| Clerk(own.clone()))
        .workers(WORKERS)
        .capacity(2_000_000)
        .ordered_by(|job: &Job| job.key);
    let pool = match shares {
        true => builder.shared_by(|job: &Job| job.tenant).spawn().await?,
        false => builder.spawn().await?,
    };
    let address = pool.address();
    load.pace(sheet.start, move |job| drop(address.try_send(job)));
    for job in load.flood() {
        pool.try_send(job).map_err(|error| error.to_string())?;
    }
    until_over(&load, sheet).await;
    pool.stop(Stop::within(Duration::ZERO)).await;
    Ok(())
}

/// A task a message. It waits for its tenant first, so that no tenant has all of the workers.
async fn semaphores(load: Load, sheet: &Arc<Sheet>) -> Result<(), Failure> {
    let all = Arc::new(Semaphore::new(WORKERS));
    let own: Arc<[Semaphore]> = (0..load.tenants()).map(|_| Semaphore::new(PERMITS)).collect();
    let (handle, sheet_of_each) = (tokio::runtime::Handle::current(), sheet.clone());
    let send = move |job: Job| {
        let (all, own, sheet) = (all.clone(), own.clone(), sheet_of_each.clone());
        handle.spawn(async move {
            let _own = own[job.tenant as usize].acquire().await;
            let _all = all.acquire().await;
            sheet.handle(job).await;
        });
    };
    load.pace(sheet.start, send.clone());
    load.flood().for_each(send);
    until_over(&load, sheet).await;
    Ok(())
}

/// Each tenant has its part of the workers, one at least.
async fn queues(load: Load, sheet: &Arc<Sheet>) -> Result<(), Failure> {
    let queue = |_| {
        let (sender, mut jobs) = mpsc::unbounded_channel::<Job>();
        let sheet = sheet.clone();
        tokio::spawn(async move {
            while let Some(job) = jobs.recv().await {
                sheet.handle(job).await;
            }
        });
        sender
    };
    let queues: Vec<_> = (0..load.tenants()).map(queue).collect();
    let send = move |job: Job| {
        let _ = queues[job.tenant as usize].send(job);
    };
    load.pace(sheet.start, send.clone());
    load.flood().for_each(send);
    until_over(&load, sheet).await;
    Ok(())
}
