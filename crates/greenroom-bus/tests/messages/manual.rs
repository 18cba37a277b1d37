//! Handlers that settle their events themselves, in layers.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use greenroom_bus::{
    engine::{AckWhen, HandlerConfig},
    event::Event,
    handler::{Attempt, Handler, HandlerFactory, Handling, Outputs, Settlement},
    layer::{Deduplication, Layers, Traced},
};

use crate::messages::support::{Bench, event, ms, on, source::Script};

/// Refuses events whose id begins with an r, acknowledges others a while later, from another task.
#[derive(Clone, Default)]
struct Settles(Arc<Mutex<Vec<String>>>);

impl HandlerFactory for Settles {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(self.clone()))
    }

    fn settles(&self) -> bool {
        true
    }
}

impl Handler for Settles {
    fn handle<'a>(&'a mut self, _: &'a Event, _: &'a Attempt) -> Handling<'a> {
        unreachable!("it is run with `ack: manual` only")
    }

    fn handle_and_settle<'a>(
        &'a mut self,
        event: &'a Event,
        _: &'a Attempt,
        settlement: Settlement,
    ) -> Handling<'a> {
        self.0.lock().unwrap().push(event.id().to_owned());
        let refuses = event.id().starts_with('r');
        tokio::spawn(async move {
            tokio::time::sleep(ms(300)).await;
            match refuses {
                true => settlement.refuse(),
                false => settlement.acknowledge(),
            }
        });
        Handling::Done(Ok(Outputs::None))
    }
}

#[tokio::test(start_paused = true)]
async fn r07_r09_a_handler_settles_its_events_itself_through_layers() {
    let deduplication = Deduplication::within(Duration::from_secs(60));
    let layers = Layers::new().layer(Traced).layer(deduplication.clone());
    let handler = Settles::default();
    let ids = [("a", "x"), ("r", "y"), ("a", "z"), ("r", "w"), ("b", "v")];
    let events = ids.map(|(id, key)| event(id, "t", Some(key)));
    let bench = Bench::new().set(|engine| {
        let config = on(&["t"], Arc::new(handler.clone()));
        let config = HandlerConfig { ack: AckWhen::Manual, ..config };
        engine.input(Box::new(Script::of(events))).handler("h", config).layers(&layers)
    });
    let report = bench.run().await;
    assert_eq!((report.taken, report.handled, report.refused), (5, 3, 2));
    assert_eq!(deduplication.skipped(), 1, "of the one that was acknowledged");
    let mut handled = handler.0.lock().unwrap().clone();
    handled.sort();
    assert_eq!(handled, ["a", "b", "r", "r"], "what was refused is handled again");
}
