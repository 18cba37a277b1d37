//! An engine that handles the load.

use std::{sync::Arc, time::Duration};

use greenroom_bus::{
    dead_letter::file::FileDeadLetterStore,
    engine::{Control, Engine, HandlerConfig, InputConfig, PoolConfig},
    event::Event,
    handler::{Attempt, Handler, HandlerFactory, Handling, Outputs},
    source::Source,
};

use crate::{
    Failure, event,
    load::{Load, Sheet},
    systems::{WORKERS, until_over},
};

/// How often it is asked which share stops its inputs.
const LOOKS: Duration = Duration::from_millis(100);

/// The pool of a run.
pub fn pool(shares: bool) -> Result<PoolConfig, Failure> {
    let share_by = if shares { Some("tenant".parse()?) } else { None };
    let order_by = Some("subject".parse()?);
    Ok(PoolConfig { workers: WORKERS, order_by, share_by, ..PoolConfig::default() })
}

/// What was seen of a share that stops an input.
#[derive(Debug, Clone, Default)]
pub struct Stopping {
    /// At how many of the looks.
    pub seen: u32,
    pub looks: u32,
    /// What was said of it last.
    pub said: String,
}

impl Stopping {
    fn look(&mut self, control: &Control) {
        self.looks += 1;
        let views = control.input_views();
        if let Some(held) = views.iter().find_map(|view| view.stands_for_share()) {
            self.seen += 1;
            self.said = held.to_string();
        }
    }
}

/// Runs until the time of the load is over.
pub async fn run(
    load: Load,
    inputs: Vec<(Box<dyn Source>, InputConfig)>,
    pool: PoolConfig,
    sheet: &Arc<Sheet>,
) -> Result<Stopping, Failure> {
    // Nothing comes there.
    let letters =
        std::env::temp_dir().join(format!("greenroom-tenants-{}.ndjson", std::process::id()));
    let handler = HandlerConfig::new(vec!["**".parse()?], Arc::new(Handles(sheet.clone())));
    let builder = inputs
        .into_iter()
        .fold(Engine::builder(), |builder, (input, config)| builder.input_with(input, config));
    let engine = builder
        .dead_letters(Arc::new(FileDeadLetterStore::open(&letters)?))
        .pool("default", pool)
        .handler("all", handler)
        .deadline(Duration::ZERO)
        .build()
        .await?;
    let control = engine.control();
    let running = tokio::spawn(engine.run());
    let mut stopping = Stopping::default();
    let mut over = std::pin::pin!(until_over(&load, sheet));
    while tokio::time::timeout(LOOKS, over.as_mut()).await.is_err() {
        stopping.look(&control);
    }
    control.stop_now();
    let report = running.await?;
    std::fs::remove_file(&letters).ok();
    match report.adds_up() && report.out_of_order == 0 && report.dead_lettered == 0 {
        true => Ok(stopping),
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
        let job = event::job(event);
        Handling::Later(Box::pin(async move {
            self.0.handle(job).await;
            Ok(Outputs::None)
        }))
    }
}
