//! The input: gives what has arrived.

use std::{
    fs,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use greenroom_bus::{
    event::Event,
    source::{Pull, Pulling, Source, SourceError, Taken},
};
use tokio::sync::mpsc::{self, UnboundedReceiver};

use crate::load::{Item, Load};

/// Events per pull, at most.
const BATCH: usize = 512;

pub struct Arrivals {
    load: Load,
    types: Vec<String>,
    feed: Feed,
    position: u64,
}

enum Feed {
    AtOnce(Box<dyn Iterator<Item = Item> + Send>),
    Paced(UnboundedReceiver<Item>),
}

impl Arrivals {
    /// Those of the load, from `start` on. A thread beside the runtime keeps the times: a timer of
    /// the runtime is a millisecond late by itself.
    pub fn new(load: Load, due: Arc<[Duration]>, start: Instant) -> Self {
        let feed = match load.rate {
            None => Feed::AtOnce(Box::new(load.items())),
            Some(_) => Feed::Paced(paced(load, due, start)),
        };
        let types = (0..load.pools).map(|pool| format!("free-{pool}")).collect();
        Self { load, types, feed, position: 0 }
    }

    fn event(&self, item: Item) -> Result<Event, SourceError> {
        let (id, ty) = match item {
            Item::Free(number) => {
                (number.to_string(), &*self.types[(number % self.load.pools) as usize])
            }
            Item::Stuck => ("stuck".to_owned(), "stuck"),
        };
        let built = Event::builder(id, "bench:isolation", ty).build();
        built.map_err(|error| SourceError::new(self.describe(), error.to_string()))
    }
}

fn paced(load: Load, due: Arc<[Duration]>, start: Instant) -> UnboundedReceiver<Item> {
    let (sender, arrived) = mpsc::unbounded_channel();
    thread::spawn(move || {
        wake_precisely();
        for item in load.items() {
            if let Item::Free(number) = item {
                let left = (start + due[number as usize]).saturating_duration_since(Instant::now());
                if !left.is_zero() {
                    thread::sleep(left);
                }
            }
            if sender.send(item).is_err() {
                return;
            }
        }
    });
    arrived
}

/// Asks for timers that are a microsecond late instead of fifty, where the system has such a thing.
fn wake_precisely() {
    let own = fs::read_link("/proc/thread-self");
    let Some(thread) = own.ok().and_then(|path| Some(path.file_name()?.to_owned())) else { return };
    // Without it, sleeping is less precise: no reason to fail.
    let _ = fs::write(std::path::Path::new("/proc").join(thread).join("timerslack_ns"), "1000");
}

impl Source for Arrivals {
    fn describe(&self) -> String {
        "isolation".to_owned()
    }

    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>) -> Pulling<'a> {
        Box::pin(async move {
            let mut items = Vec::new();
            match &mut self.feed {
                Feed::AtOnce(rest) => items.extend(rest.take(BATCH)),
                Feed::Paced(arrived) => drop(arrived.recv_many(&mut items, BATCH).await),
            }
            let ends = items.is_empty();
            for item in items {
                self.position += 1;
                into.push(Taken { position: self.position, event: Ok(self.event(item)?) });
            }
            Ok(if ends { Pull::End } else { Pull::More })
        })
    }

    fn replayable(&self) -> bool {
        false
    }
}
