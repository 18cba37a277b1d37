//! The audit in a whole engine, with pools that are made to keep no order.

use std::{sync::Arc, time::Duration};

use greenroom_config::units::DurationRange;

use crate::{
    dead_letter::file::FileDeadLetterStore,
    engine::{Engine, EngineBuilder, HandlerConfig, PoolConfig, RunReport},
    handler::simulate::{SimulateConfig, SimulateFactory},
    source::generator::{GeneratorOptions, GeneratorSource},
};

/// 200 events of one key, each handled for a random time.
async fn run(set: impl FnOnce(EngineBuilder) -> EngineBuilder) -> RunReport {
    let directory = tempfile::tempdir().unwrap();
    let letters = FileDeadLetterStore::open(directory.path().join("letters")).unwrap();
    let options = GeneratorOptions { count: Some(200), keys: 1, ..GeneratorOptions::default() };
    let latency = DurationRange { from: Duration::ZERO, to: Duration::from_millis(20) };
    let simulate = SimulateFactory::new(SimulateConfig { latency, ..SimulateConfig::default() });
    let mut handler = HandlerConfig::new(vec!["**".parse().unwrap()], Arc::new(simulate.unwrap()));
    handler.order_by = Some("subject".parse().unwrap());
    let builder = Engine::builder()
        .input(Box::new(GeneratorSource::new(options).unwrap()))
        .pool("default", PoolConfig { workers: 8, ..PoolConfig::default() })
        .handler("simulate", handler)
        .dead_letters(Arc::new(letters));
    set(builder).build().await.unwrap().run().await
}

#[tokio::test(start_paused = true)]
async fn o11_events_of_a_key_that_leave_swapped_are_out_of_order_in_the_report() {
    let report = run(EngineBuilder::without_order).await;
    assert_eq!(report.handled, 200);
    assert!(report.out_of_order > 0, "eight workers on one key, and no event overtook another");
    assert!(!report.is_clean(), "disorder ends a run with an exit code other than 0");
}

#[tokio::test(start_paused = true)]
async fn o11_in_order_none_is() {
    let report = run(|builder| builder).await;
    assert_eq!((report.handled, report.out_of_order), (200, 0));
}
