//! One run of the engine over a place.

use std::{sync::Arc, time::Duration};

use greenroom_bus::{
    engine::{
        Control, Engine, HandlerConfig, InputConfig, InputView, PoolConfig, Retry, RunReport,
    },
    source::{Partition, Source},
};
use tokio::{task::JoinHandle, time::timeout};

use super::{
    connector::{Clock, Item, Place},
    ledger::{Book, Ledger},
    letters::Letters,
    plan::Plan,
    recorder::Recorder,
    watched::Watched,
};

/// The name of the input.
const INPUT: &str = "input";

/// How long to watch that nothing happens.
const QUIET: [Duration; 2] = [Duration::from_millis(500), Duration::from_millis(80)];

/// How long to wait for an expected event. On a busy machine, a check takes many times its usual
/// real time.
const PATIENCE: [Duration; 2] = [Duration::from_secs(60); 2];

/// The setting of a run.
pub(super) struct Setting {
    pub(super) plan: Plan,
    pub(super) clock: Clock,
    /// The first partition is paused before anything is read.
    pub(super) is_paused: bool,
    /// Why the connector keeps no positions, if it says so.
    pub(super) lacks_positions: Option<&'static str>,
}

/// A running engine. Dropping it with its runtime is a crash.
pub(super) struct Running<'a> {
    place: &'a mut dyn Place,
    ledger: Arc<Ledger>,
    clock: Clock,
    control: Control,
    /// `None` once it was awaited.
    run: Option<JoinHandle<RunReport>>,
}

fn of_clock([for_virtual, for_real]: [Duration; 2], clock: Clock) -> Duration {
    match clock {
        Clock::Virtual => for_virtual,
        Clock::Real => for_real,
    }
}

impl<'a> Running<'a> {
    /// Begins to read from `source`.
    pub(super) async fn begin(
        place: &'a mut dyn Place,
        source: Box<dyn Source>,
        ledger: &Arc<Ledger>,
        setting: Setting,
    ) -> Result<Self, String> {
        let Setting { plan, clock, is_paused, lacks_positions } = setting;
        let source = Watched::new(source, ledger, place.stored(), lacks_positions);
        let handler = Arc::new(Recorder::new(ledger, plan.clone()));
        let on = vec!["**".parse().map_err(|error| format!("a pattern: {error}"))?];
        let order_by = Some("subject".parse().map_err(|error| format!("a key: {error}"))?);
        let backoff = greenroom::Backoff::new(Duration::from_millis(1), Duration::from_millis(5));
        let retry = Some(Retry { attempts: 4, backoff, total: None });
        let config = InputConfig { run_ahead: plan.run_ahead, ..InputConfig::default() };
        let pool = PoolConfig { workers: plan.workers, queue: plan.queue, ..PoolConfig::default() };
        let engine = Engine::builder()
            .input_named(INPUT, config, Box::new(source))
            .pool("default", pool)
            .handler("all", HandlerConfig { order_by, retry, ..HandlerConfig::new(on, handler) })
            .dead_letters(Arc::new(Letters(ledger.clone())))
            .deadline(of_clock(PATIENCE, clock))
            .build();
        let engine = engine.await.map_err(|error| format!("no engine: {error}"))?;
        let control = engine.control();
        if is_paused {
            let paused = control.pause_partition(INPUT, Partition::ONLY);
            paused.map_err(|error| error.to_string())?;
        }
        let run = Some(tokio::spawn(engine.run()));
        Ok(Self { place, ledger: ledger.clone(), clock, control, run })
    }

    pub(super) fn look<T>(&self, look: impl FnOnce(&Book) -> T) -> T {
        self.ledger.look(look)
    }

    /// Waits until the condition holds.
    pub(super) async fn until(
        &self,
        what: &str,
        is_so: impl Fn(&Book) -> bool,
    ) -> Result<(), String> {
        self.ledger.until(what, of_clock(PATIENCE, self.clock), is_so).await
    }

    /// Waits until everything is acknowledged.
    pub(super) async fn until_done(&self) -> Result<(), String> {
        self.until("everything acknowledged", Book::is_done).await
    }

    /// Waits until a stored commit has begun after the last acknowledgement.
    pub(super) async fn until_committed(&self) -> Result<(), String> {
        self.until("committed", |book| book.uncovered() == 0).await
    }

    /// Lets some time pass in which nothing more should happen.
    pub(super) async fn quiet(&self) {
        tokio::time::sleep(of_clock(QUIET, self.clock)).await;
    }

    pub(super) async fn publish(&mut self, items: &[Item]) -> Result<(), String> {
        self.ledger.publishes(items);
        self.place.publish(items).await
    }

    pub(super) fn pause(&self, partition: Partition) -> Result<(), String> {
        self.control.pause_partition(INPUT, partition).map_err(|error| error.to_string())
    }

    pub(super) fn resume(&self, partition: Partition) -> Result<(), String> {
        self.control.resume_partition(INPUT, partition).map_err(|error| error.to_string())
    }

    /// Takes a partition away, and waits until the engine has answered.
    pub(super) async fn revoke(&mut self, partition: Partition) -> Result<(), String> {
        self.place.revoke(partition).await?;
        let what = format!("an answer that partition {partition} is given up");
        self.until(&what, |book| book.is_revoked(partition)).await
    }

    pub(super) async fn assign(&mut self, partition: Partition) -> Result<(), String> {
        self.ledger.assigns(partition);
        self.place.assign(partition).await
    }

    /// The state of the input.
    pub(super) fn view(&self) -> Result<InputView, String> {
        let views = self.control.input_views();
        views.into_iter().next().ok_or_else(|| "the engine has no input".to_owned())
    }

    /// Handles the events that it has read, and ends.
    pub(super) async fn drain(&mut self) -> Result<RunReport, String> {
        self.control.drain();
        self.ended().await
    }

    /// Drops the events in progress, and ends.
    pub(super) async fn stop_now(&mut self) -> Result<RunReport, String> {
        self.control.stop_now();
        self.ended().await
    }

    async fn ended(&mut self) -> Result<RunReport, String> {
        let Some(run) = self.run.take() else { return Err("the run has ended before".to_owned()) };
        let ended = timeout(of_clock(PATIENCE, self.clock), run).await;
        let ended = ended.map_err(|_| {
            let (progress, summary) = (self.control.progress(), self.look(Book::summary));
            format!("the run does not end: {summary}; {progress:?}")
        })?;
        let report = ended.map_err(|error| format!("the run broke: {error}"))?;
        self.ledger.verdict()?;
        if !report.adds_up() {
            return Err(format!("the report does not add up: {report:?}"));
        }
        if report.out_of_order > 0 || !report.errors.is_empty() {
            return Err(format!("the run was not clean: {report:?}"));
        }
        match self.look(Book::count_unsettled) {
            0 => Ok(report),
            unsettled => {
                Err(format!("{unsettled} events were given and never settled: {report:?}"))
            }
        }
    }
}
