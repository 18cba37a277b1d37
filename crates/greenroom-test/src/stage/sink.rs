//! An output in memory.

use std::sync::Arc;

use greenroom_bus::{
    BoxFuture,
    event::Event,
    sink::{Outgoing, Sink, SinkError},
};
use parking_lot::Mutex;
use tokio::{sync::watch, time::sleep};

use super::chaos::Chaos;

/// Keeps events, in the order in which they were accepted.
pub(super) struct StageSink {
    chaos: Option<Chaos>,
    pub(super) events: Mutex<Vec<Event>>,
    /// Events that are accepted and not stored.
    open: watch::Sender<usize>,
}

impl StageSink {
    pub(super) fn new(chaos: Option<Chaos>) -> Arc<Self> {
        Arc::new(Self { chaos, events: Mutex::default(), open: watch::Sender::new(0) })
    }
}

impl Sink for StageSink {
    fn describe(&self) -> String {
        "stage".to_owned()
    }

    fn try_accept(&self, outgoing: Outgoing) -> Result<(), Outgoing> {
        let Outgoing { event, ack, .. } = outgoing;
        let after = self.chaos.map(|chaos| chaos.stores_after(event.id()));
        self.events.lock().push(event);
        let Some(after) = after else {
            ack.confirm();
            return Ok(());
        };
        self.open.send_modify(|open| *open += 1);
        let open = self.open.clone();
        tokio::spawn(async move {
            sleep(after).await;
            ack.confirm();
            open.send_modify(|open| *open -= 1);
        });
        Ok(())
    }

    fn accept<'a>(&'a self, outgoing: Outgoing) -> BoxFuture<'a, ()> {
        // It has room for all of them.
        let _ = self.try_accept(outgoing);
        Box::pin(async {})
    }

    fn finish<'a>(&'a self) -> BoxFuture<'a, Result<(), SinkError>> {
        let mut open = self.open.subscribe();
        Box::pin(async move {
            // The sender lives as long as this sink.
            let _ = open.wait_for(|open| *open == 0).await;
            Ok(())
        })
    }

    fn failure(&self) -> Option<SinkError> {
        None
    }
}
