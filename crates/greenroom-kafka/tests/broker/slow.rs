//! A handler that takes longer than `max.poll.interval.ms` (Z13, D11, F05).

use std::{sync::Arc, time::Duration};

use greenroom_bus::{
    engine::{Engine, HandlerConfig, InputConfig, PoolConfig},
    event::Event,
    handler::{Attempt, Handler, HandlerFactory, Handling, Outputs},
    source::Partition,
};
use greenroom_kafka::source::KafkaSource;
use tokio::sync::{Semaphore, mpsc};

use super::fake::broker;
use super::support::{NoLetters, PATIENCE, Publisher, create_topic, event, options, unique};

#[derive(Clone)]
struct Gated {
    gate: Arc<Semaphore>,
    done: mpsc::UnboundedSender<(String, u64)>,
}

impl HandlerFactory for Gated {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(self.clone()))
    }
}

impl Handler for Gated {
    fn handle<'a>(&'a mut self, event: &'a Event, _attempt: &'a Attempt) -> Handling<'a> {
        Handling::Later(Box::pin(async move {
            let key = event.subject().map_or(String::new(), ToString::to_string);
            if key == "slow" {
                self.gate.acquire().await.unwrap().forget();
            }
            self.done.send((key, event.id().parse().unwrap())).unwrap();
            Ok(Outputs::None)
        }))
    }
}

#[tokio::test]
async fn z13_a_handler_slower_than_the_poll_interval_costs_no_membership_and_holds_up_no_other() {
    let broker = broker();
    let name = unique("z13");
    create_topic(&broker, &name, 2);
    let publisher = Publisher::new(&broker);
    let (slow, quick) = (400, 5_000);
    for number in 0..slow {
        publisher.event(&name, 0, &event(number, "slow"));
    }
    for number in 0..quick {
        publisher.event(&name, 1, &event(number, &format!("quick-{}", number % 50)));
    }
    publisher.flush();
    let mut source_options = options(&broker, &name, std::slice::from_ref(&name));
    source_options.properties.set("max.poll.interval.ms", "6000");
    let source = KafkaSource::open(source_options, None).unwrap();
    let (gate, (done, mut came)) = (Arc::new(Semaphore::new(0)), mpsc::unbounded_channel());
    let handler = Arc::new(Gated { gate: gate.clone(), done });
    let config = HandlerConfig {
        order_by: Some("subject".parse().unwrap()),
        ..HandlerConfig::new(vec!["**".parse().unwrap()], handler)
    };
    let input = InputConfig { run_ahead: 200, ..InputConfig::default() };
    let pool = PoolConfig { workers: 8, queue: 16, ..PoolConfig::default() };
    let engine = Engine::builder()
        .input_named("input", input, Box::new(source))
        .pool("default", pool)
        .handler("all", config)
        .dead_letters(Arc::new(NoLetters))
        .build();
    let engine = engine.await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    for _ in 0..quick {
        let (key, _) = tokio::time::timeout(PATIENCE, came.recv()).await.unwrap().unwrap();
        assert_ne!(key, "slow");
    }
    // Twice as long as a member may go without a poll.
    tokio::time::sleep(Duration::from_secs(12)).await;
    let view = control.input_views().remove(0);
    let of = |number: u32| {
        view.partitions.iter().find(|of| of.partition == Partition(number)).unwrap().clone()
    };
    assert!(of(0).is_paused && !of(1).is_paused, "{view:?}");
    assert_eq!(
        of(0).standing.unwrap().epoch.to_string(),
        "1",
        "it is still of the first assignment"
    );
    gate.add_permits(slow as usize);
    let mut last = None;
    for _ in 0..slow {
        let (key, id) = tokio::time::timeout(PATIENCE, came.recv()).await.unwrap().unwrap();
        assert!(key == "slow" && last < Some(id), "{key} {id} after {last:?}");
        last = Some(id);
    }
    control.drain();
    let report = run.await.unwrap();
    assert_eq!((report.handled, report.out_of_order), (slow + quick, 0));
}
