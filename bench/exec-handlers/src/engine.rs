//! The engine, from memory to an `exec` handler and nowhere.

use std::sync::Arc;

use greenroom_bus::{
    dead_letter::file::FileDeadLetterStore,
    engine::{Engine, HandlerConfig, PoolConfig},
    event::Event,
    handler::exec::{ExecConfig, ExecFactory},
    source::memory,
};

use crate::{Failure, PROCESSES};

/// Hands all of them to as many workers as may be in flight, those of one subject one after the
/// other where they are ordered. Returns how many were handled.
pub async fn run(
    command: &[String],
    events: Vec<Event>,
    in_flight: usize,
    is_ordered: bool,
) -> Result<u64, Failure> {
    let exec = ExecFactory::new(ExecConfig { in_flight, ..ExecConfig::new(command.to_vec()) })?;
    let workers = PROCESSES * in_flight;
    let mut handler = HandlerConfig::new(vec!["**".parse()?], Arc::new(exec));
    if is_ordered {
        handler.order_by = Some("subject".parse()?);
    }
    let (input, source) = memory::channel("bench", events.len());
    for event in events {
        input.try_send(event)?;
    }
    drop(input);
    let dead_letters = std::env::temp_dir().join(format!("exec-handlers-{}", std::process::id()));
    let engine = Engine::builder()
        .input(Box::new(source))
        .pool("default", PoolConfig { workers, ..PoolConfig::default() })
        .handler("exec", handler)
        .dead_letters(Arc::new(FileDeadLetterStore::open(&dead_letters)?))
        .build()
        .await?;
    let report = engine.run().await;
    std::fs::remove_file(&dead_letters).ok();
    match report.is_clean() && report.out_of_order == 0 && report.handled == report.taken {
        true => Ok(report.handled),
        false => Err(format!("{report:?}").into()),
    }
}
