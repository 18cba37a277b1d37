//! Handlers that note when they were done, and handlers that never are.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use greenroom_bus::{
    event::Event,
    handler::{Attempt, Failure, Handler, HandlerFactory, Handling, Outputs},
};

/// When each free event was handled.
pub struct Sheet {
    pub start: Instant,
    /// In nanoseconds from the start; 0 while it is not.
    done: Box<[AtomicU64]>,
}

impl Sheet {
    pub fn new(events: u64) -> Self {
        Self { start: Instant::now(), done: (0..events).map(|_| AtomicU64::new(0)).collect() }
    }

    fn note(&self, number: usize) {
        let nanos = self.start.elapsed().as_nanos() as u64;
        self.done[number].store(nanos.max(1), Ordering::Release);
    }

    /// Of each, where all were handled from this one on.
    pub fn all_from(&self, first: usize) -> Result<Vec<u64>, usize> {
        let nanos = |done: &AtomicU64| done.load(Ordering::Acquire);
        match self.done[first..].iter().position(|done| nanos(done) == 0) {
            Some(missing) => Err(first + missing),
            None => Ok(self.done.iter().map(nanos).collect()),
        }
    }
}

pub struct Notes(pub Arc<Sheet>);

impl HandlerFactory for Notes {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(Self(self.0.clone())))
    }
}

impl Handler for Notes {
    fn handle<'a>(&'a mut self, event: &'a Event, _attempt: &'a Attempt) -> Handling<'a> {
        Handling::Done(match event.id().parse() {
            Ok(number) => {
                self.0.note(number);
                Ok(Outputs::None)
            }
            Err(_) => Err(Failure::reject("no number")),
        })
    }
}

/// Suspended for ever.
pub struct Never;

impl HandlerFactory for Never {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(Self))
    }
}

impl Handler for Never {
    fn handle<'a>(&'a mut self, _event: &'a Event, _attempt: &'a Attempt) -> Handling<'a> {
        Handling::Later(Box::pin(std::future::pending()))
    }
}
