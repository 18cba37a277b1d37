//! One engine, one load, and what came of it.

use std::{path::Path, sync::Arc, time::Duration};

use greenroom_bus::{
    dead_letter::file::FileDeadLetterStore,
    engine::{Engine, HandlerConfig, OnFull, PoolConfig, RunReport},
};
use measure::median;

use crate::{
    Failure,
    handlers::{Never, Notes, Sheet},
    load::Load,
    source::Arrivals,
};

/// Of each free pool.
const WORKERS: usize = 4;
/// Of the stuck pool: all of these are suspended.
const STUCK_WORKERS: usize = 4;
const STUCK_QUEUE: usize = 100;
/// A run that takes longer hangs.
const HANGS_AFTER: Duration = Duration::from_secs(120);

/// Latencies are looked at in windows of this length.
const WINDOW: Duration = Duration::from_millis(100);
/// The windows in which everything starts.
const START: usize = 5;

/// What a run came to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Figures {
    /// Free events per second, from the start to the last of them.
    pub per_second: f64,
    /// From arrival to handled, of free events, in microseconds: of each window's, and the
    /// median of the windows. One in which the machine was elsewhere then counts as one,
    /// and does not stand for all.
    pub p99: f64,
}

/// Runs the load beside a stuck pool that does this when it is full. Fails where an event is lost.
pub fn run(load: Load, on_full: OnFull, scratch: &Path) -> Result<Figures, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let letters = scratch.join("dead-letters.ndjson");
    let store = Arc::new(FileDeadLetterStore::open(&letters)?);
    let due: Arc<[Duration]> = load.due().into();
    let figures = runtime.block_on(async {
        let sheet = Arc::new(Sheet::new(load.free));
        let source = Arrivals::new(load, due.clone(), sheet.start);
        let mut engine = Engine::builder().input(Box::new(source)).dead_letters(store);
        let stuck = PoolConfig {
            workers: STUCK_WORKERS,
            queue: STUCK_QUEUE,
            on_full,
            ..PoolConfig::default()
        };
        engine = engine.pool("stuck", stuck).handler("stuck", handler("stuck", Arc::new(Never))?);
        for pool in 0..load.pools {
            let name = format!("free-{pool}");
            let notes = handler(&name, Arc::new(Notes(sheet.clone())))?;
            let config = PoolConfig { workers: WORKERS, ..PoolConfig::default() };
            engine = engine.pool(&name, config).handler(&name, notes);
        }
        let engine = engine.build().await?;
        let control = engine.control();
        let running = tokio::spawn(engine.run());
        let done = tokio::time::timeout(HANGS_AFTER, all_done(&sheet)).await;
        control.stop_now();
        let report = running.await?;
        let done = done.map_err(|_| format!("free events are not handled: {report:?}"))?;
        check(load, on_full, &report)?;
        Ok::<_, Failure>(figures(&due, &done))
    })?;
    std::fs::remove_file(&letters).ok();
    Ok(figures)
}

fn handler(
    name: &str,
    factory: Arc<dyn greenroom_bus::handler::HandlerFactory>,
) -> Result<HandlerConfig, Failure> {
    Ok(HandlerConfig { pool: name.to_owned(), ..HandlerConfig::new(vec![name.parse()?], factory) })
}

async fn all_done(sheet: &Sheet) -> Vec<u64> {
    let mut first = 0;
    loop {
        match sheet.all_from(first) {
            Ok(done) => return done,
            Err(missing) => first = missing,
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Free events were handled, stuck ones were not, and nothing else happened.
fn check(load: Load, on_full: OnFull, report: &RunReport) -> Result<(), Failure> {
    let beyond = load.stuck.saturating_sub((STUCK_WORKERS + STUCK_QUEUE) as u64);
    let letters = if on_full == OnFull::DeadLetter { beyond } else { 0 };
    // What the stop leaves of the dead letters is refused; all of it was the stuck pool's.
    let whole = report.adds_up()
        && report.out_of_order == 0
        && report.handled == load.free
        && report.dead_lettered + report.refused == load.stuck
        && report.dead_lettered <= letters
        && (letters == 0 || report.dead_lettered > 0);
    if whole { Ok(()) } else { Err(format!("{load:?}, {on_full:?}: {report:?}").into()) }
}

fn figures(due: &[Duration], done: &[u64]) -> Figures {
    let last = done.iter().copied().max().unwrap_or(1);
    let whole = due.last().map_or(0, window);
    let mut windows = vec![Vec::new(); whole + 1];
    for (due, done) in due.iter().zip(done) {
        windows[window(due)].push(done.saturating_sub(due.as_nanos() as u64));
    }
    // The first ones are the start's, the last one is cut short.
    let counted = windows.get_mut(START..whole).unwrap_or_default();
    let p99s: Vec<f64> = counted.iter_mut().map(|took| p99(took)).collect();
    Figures { per_second: done.len() as f64 / last as f64 * 1e9, p99: median(&p99s) }
}

fn window(due: &Duration) -> usize {
    (due.as_nanos() / WINDOW.as_nanos()) as usize
}

/// In microseconds.
fn p99(took: &mut [u64]) -> f64 {
    took.sort_unstable();
    took.get(took.len() * 99 / 100).copied().unwrap_or_default() as f64 / 1e3
}
