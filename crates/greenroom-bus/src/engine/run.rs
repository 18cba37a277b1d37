//! A run, from its first event to its report.
//!
//! ```text
//! read:  inputs run                      ── all ended, or drain, or stop now ──▶
//! drain: pools handle what was taken     ── all handled, or the deadline, an outage too long, stop now ──▶
//! flush: outputs and dead letters store what they accepted ──▶ report
//! ```

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use greenroom::{PoolStats, Stop};
use tokio::{
    sync::watch,
    task::{JoinError, JoinSet},
    time::{Instant, MissedTickBehavior},
};

use super::{
    Control, Engine, OutputReport, Phase, PoolReport, RunReport, SlowKey,
    intake::{Intake, JobAddress},
    report::peak_rss_bytes,
};
use crate::source::SourceError;

/// How often the engine looks at its queues, its outputs and its handlers' health.
const LOOK: Duration = Duration::from_millis(50);

/// How long outputs may take to store what they have accepted once the run was told to stop now.
const FLUSH: Duration = Duration::from_millis(400);

/// A deadline that is never reached: a hundred years.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3_600);

impl Engine {
    /// Runs until every input has ended and all is settled, or until it is stopped. Never fails: what went wrong is in
    /// the report.
    ///
    /// # Cancel safety
    /// Dropping the future drops the inputs and the pools; what was not settled is refused.
    pub async fn run(mut self) -> RunReport {
        let mut run = Run::new(&self);
        run.read(&mut self).await;
        let stats = run.drain(&self).await;
        run.flush(&self).await;
        run.report(&self, stats)
    }
}

struct Run {
    control: Control,
    phase: watch::Receiver<Phase>,
    started: Instant,
    /// When the drain was asked for and has to be over.
    deadline: Option<Instant>,
    inputs_ended: bool,
    errors: Vec<String>,
}

impl Run {
    fn new(engine: &Engine) -> Self {
        Self {
            control: engine.control(),
            phase: engine.phase.subscribe(),
            started: Instant::now(),
            deadline: None,
            inputs_ended: false,
            errors: Vec::new(),
        }
    }

    async fn read(&mut self, engine: &mut Engine) {
        let mut intakes = JoinSet::new();
        for (place, source) in std::mem::take(&mut engine.sources).into_iter().enumerate() {
            let pools: Vec<JobAddress> = engine.pools.iter().map(|pool| pool.address()).collect();
            let progress = engine.read[place].clone();
            let intake = Intake::new(engine.shared.clone(), place as u32, source, pools, progress);
            intakes.spawn(intake.run(engine.phase.subscribe()));
        }
        let mut look = ticks();
        loop {
            tokio::select! {
                ended = intakes.join_next() => match ended {
                    Some(ended) => self.input_ended(ended),
                    None => break,
                },
                _ = self.phase.changed() => self.phase_changed(engine),
                _ = look.tick() => self.look(engine),
            }
        }
        self.inputs_ended = true;
    }

    fn input_ended(&mut self, ended: Result<Result<(), SourceError>, JoinError>) {
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.error(error.to_string()),
            Err(error) => self.error(format!("an input failed: {error}")),
        }
    }

    fn error(&mut self, error: String) {
        tracing::error!("{error}");
        self.errors.push(error);
    }

    fn phase_changed(&mut self, engine: &Engine) {
        if *self.phase.borrow_and_update() == Phase::Drain && self.deadline.is_none() {
            self.deadline = Some(Instant::now() + engine.deadline);
        }
    }

    /// Looks at what may end a run early.
    fn look(&mut self, engine: &Engine) {
        let stats = engine.pools.iter().map(|pool| pool.stats());
        let queued = stats.map(|stats| stats.queued + stats.waiting).sum();
        let ledger = &engine.shared.ledger;
        ledger.queued.store(queued, Ordering::Relaxed);
        ledger.peak_queued.fetch_max(queued, Ordering::Relaxed);
        if *self.phase.borrow() == Phase::Now {
            return;
        }
        let reason = self.stuck_output(engine).or_else(|| self.long_outage(engine));
        if let Some(reason) = reason {
            self.error(reason);
            self.control.stop_now();
        } else if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            tracing::warn!("the deadline has passed; what is left is refused");
            self.control.stop_now();
        }
    }

    /// An output or the dead letters that cannot store any more: whatever is handled from now on would be refused.
    fn stuck_output(&self, engine: &Engine) -> Option<String> {
        let outputs = engine.shared.outputs.iter().map(|output| output.sink.failure());
        let dead_letters = engine.shared.dead_letters.failure();
        outputs.chain([dead_letters]).flatten().next().map(|error| error.to_string())
    }

    fn long_outage(&self, engine: &Engine) -> Option<String> {
        if !self.inputs_ended {
            return None;
        }
        engine.shared.handlers.iter().find_map(|handler| {
            let (since, error) = handler.outage.down_since()?;
            let down = since.elapsed();
            (down >= engine.outage_limit).then(|| {
                let name = &handler.name;
                format!("the handler {name:?} has been in outage for {} s: {error}", down.as_secs())
            })
        })
    }

    /// Waits until the pools have handled what was taken. A second stop, with no patience, overtakes the first when the
    /// run has to end.
    async fn drain(&mut self, engine: &Engine) -> Vec<PoolStats> {
        let mut stops = JoinSet::new();
        for pool in &engine.pools {
            let pool = pool.clone();
            stops.spawn(async move { pool.stop(Stop::within(FOREVER)).await });
        }
        let mut look = ticks();
        let mut overtaken = false;
        loop {
            if !overtaken && *self.phase.borrow_and_update() == Phase::Now {
                overtaken = true;
                for pool in &engine.pools {
                    let pool = pool.clone();
                    stops.spawn(async move { pool.stop(Stop::within(Duration::ZERO)).await });
                }
            }
            tokio::select! {
                stopped = stops.join_next() => match stopped {
                    Some(Ok(report)) => report.wedged.into_iter().for_each(|worker| self.wedged(worker)),
                    Some(Err(error)) => self.error(format!("a pool could not be stopped: {error}")),
                    None => break,
                },
                _ = self.phase.changed() => self.phase_changed(engine),
                _ = look.tick() => self.look(engine),
            }
        }
        engine.pools.iter().map(|pool| pool.stats()).collect()
    }

    fn wedged(&mut self, worker: String) {
        let error = format!("the worker {worker} blocks its thread and did not stop");
        if !self.errors.contains(&error) {
            self.error(error);
        }
    }

    async fn flush(&mut self, engine: &Engine) {
        let now = *self.phase.borrow() == Phase::Now;
        let patience = if now { FLUSH } else { FOREVER };
        let until = Instant::now() + patience;
        let outputs = engine.shared.outputs.iter().map(|output| output.sink.finish());
        let finishes = outputs.chain([engine.shared.dead_letters.finish()]);
        for finish in finishes {
            match tokio::time::timeout_at(until, finish).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) if self.errors.contains(&error.to_string()) => {}
                Ok(Err(error)) => self.error(error.to_string()),
                Err(_) => {
                    self.error("an output did not store in time what it had accepted".to_owned())
                }
            }
        }
    }

    fn report(self, engine: &Engine, stats: Vec<PoolStats>) -> RunReport {
        let shared = &engine.shared;
        let ledger = &shared.ledger;
        let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Acquire);
        let taken = load(&ledger.taken);
        // What a wedged worker or an output that gave up still holds counts as refused: nothing has confirmed it.
        let unsettled = taken - ledger.all_settled();
        let processes: u64 =
            shared.handlers.iter().map(|handler| handler.config.factory.restarts()).sum();
        let slowest_keys = ledger.slowest().into_iter().map(|(line, longest)| SlowKey {
            key: line.key.to_string(),
            handler: shared.handlers[line.handler as usize].name.to_string(),
            longest,
        });
        let crashes: u64 =
            shared.handlers.iter().map(|handler| handler.config.factory.crashes()).sum();
        let outputs = shared.outputs.iter().map(|output| OutputReport {
            name: output.name.clone(),
            target: output.sink.describe(),
            events: load(&output.events),
        });
        RunReport {
            taken,
            handled: load(&ledger.handled),
            ignored: load(&ledger.ignored),
            dead_lettered: load(&ledger.dead_lettered),
            refused: load(&ledger.refused) + unsettled,
            retried: stats.iter().map(|stats| stats.retries).sum(),
            repeated_at_most: load(&ledger.timed_out) + crashes,
            restarts: stats.iter().map(|stats| stats.restarts).sum::<u64>() + processes,
            out_of_order: load(&ledger.out_of_order),
            elapsed: self.started.elapsed(),
            latency: ledger.latency([0.5, 0.99, 0.999]).map(Duration::from_micros),
            peak_queued: load(&ledger.peak_queued),
            peak_rss_bytes: peak_rss_bytes(),
            slowest_keys: slowest_keys.collect(),
            dead_letters_by_reason: ledger.reasons.lock().clone(),
            pools: shared
                .pools
                .iter()
                .zip(stats)
                .map(|(pool, stats)| PoolReport {
                    name: pool.name.to_string(),
                    workers: stats.configured,
                    handled: stats.handled,
                    failed_attempts: load(&pool.failed_attempts),
                    dead_lettered: stats.dead_lettered,
                    restarts: stats.restarts,
                })
                .collect(),
            outputs: outputs.collect(),
            dead_letters: shared.dead_letters.describe(),
            errors: self.errors,
        }
    }
}

fn ticks() -> tokio::time::Interval {
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Used by the run to hold pools while they stop.
pub(super) type SharedPool = Arc<greenroom::Pool<super::worker::BusWorker>>;
