//! The engine with a Kafka source.

use std::{sync::Arc, time::Instant};

use greenroom_bus::{
    engine::{Engine, HandlerConfig, PoolConfig},
    event::{Event, ExtensionValue, PARTITION_KEY},
    handler::{Attempt, Handler, HandlerFactory, Handling, Outputs},
};
use greenroom_kafka::{KafkaInput, source::KafkaSource};
use tokio::sync::Notify;

use crate::{Failure, letters::NoLetters, run::Run, side::Task, tally::Tally};

#[derive(Clone)]
struct Works {
    task: Arc<Task>,
    tally: Arc<Tally>,
    is_done: Arc<Notify>,
}

impl HandlerFactory for Works {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(self.clone()))
    }
}

impl Handler for Works {
    fn handle<'a>(&'a mut self, event: &'a Event, _attempt: &'a Attempt) -> Handling<'a> {
        self.tally.begins();
        if self.task.work.is_zero() {
            self.handled();
            return Handling::Done(Ok(Outputs::None));
        }
        Handling::Later(Box::pin(async move {
            let from = Instant::now();
            tokio::time::sleep(self.task.work).await;
            self.tally.was_busy(key(event), from.elapsed());
            self.handled();
            Ok(Outputs::None)
        }))
    }
}

impl Works {
    fn handled(&self) {
        if self.tally.handled() {
            self.is_done.notify_one();
        }
    }
}

pub fn key(event: &Event) -> &str {
    match event.extension(PARTITION_KEY) {
        Some(ExtensionValue::Text(key)) => key,
        _ => "",
    }
}

pub async fn run(task: Task) -> Result<Run, Failure> {
    let input = KafkaInput::new(&task.broker, &task.group, [&task.topic]);
    let (workers, tally) = (task.workers, Arc::new(Tally::new(task.events)));
    let is_done = Arc::new(Notify::new());
    let works = Works { task: Arc::new(task), tally: tally.clone(), is_done: is_done.clone() };
    let handler = HandlerConfig {
        order_by: Some(PARTITION_KEY.parse()?),
        ..HandlerConfig::new(vec!["**".parse()?], Arc::new(works))
    };
    let engine = Engine::builder()
        .input(Box::new(KafkaSource::open(input, None)?))
        .pool("default", PoolConfig { workers, ..PoolConfig::default() })
        .handler("all", handler)
        .dead_letters(Arc::new(NoLetters))
        .build()
        .await?;
    let control = engine.control();
    let ran = tokio::spawn(engine.run());
    is_done.notified().await;
    control.drain();
    let report = ran.await?;
    if !report.is_clean() || report.out_of_order > 0 {
        return Err(format!("{report:?}").into());
    }
    Ok(tally.run())
}
