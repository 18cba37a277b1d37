//! A source that follows a script.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use greenroom_bus::{
    event::Event,
    source::{Malformed, Pull, Pulling, Source, SourceError, Taken},
};

/// What a source does next.
#[derive(Debug)]
pub(crate) enum Step {
    /// Gives these at once.
    Batch(Vec<Result<Event, Vec<u8>>>),
    Wait(Duration),
    Fail,
    Panic,
    /// Gives nothing more, and does not end.
    Never,
}

/// Follows its script, then ends.
pub(crate) struct Script {
    name: String,
    steps: VecDeque<Step>,
    /// When the wait that the script stands at is over.
    until: Option<tokio::time::Instant>,
    /// Items given so far; also the position of the last.
    given: Arc<AtomicU64>,
}

impl Script {
    pub(crate) fn new(name: &str, steps: impl IntoIterator<Item = Step>) -> Self {
        let (steps, given) = (steps.into_iter().collect(), Arc::default());
        Self { name: name.to_owned(), steps, until: None, given }
    }

    /// Gives these events in batches of seven.
    pub(crate) fn of(events: impl IntoIterator<Item = Event>) -> Self {
        let events: Vec<Event> = events.into_iter().collect();
        let batches = events.chunks(7).map(|batch| batch.iter().cloned().map(Ok).collect());
        Self::new("script", batches.map(Step::Batch))
    }

    /// Does this after the script so far.
    pub(crate) fn then(mut self, step: Step) -> Self {
        self.steps.push_back(step);
        self
    }

    pub(crate) fn named(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    /// How many items it has given, also after it was handed to an engine.
    pub(crate) fn given(&self) -> Arc<AtomicU64> {
        self.given.clone()
    }

    fn give(&mut self, items: Vec<Result<Event, Vec<u8>>>, into: &mut Vec<Taken>) {
        for item in items {
            let position = self.given.fetch_add(1, Ordering::Relaxed) + 1;
            let event = item.map_err(|raw| Malformed::new(raw, "no event"));
            into.push(Taken { position, event });
        }
    }
}

impl Source for Script {
    fn describe(&self) -> String {
        self.name.clone()
    }

    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>) -> Pulling<'a> {
        Box::pin(async move {
            while let Some(Step::Wait(wait)) = self.steps.front() {
                let until = *self.until.get_or_insert_with(|| tokio::time::Instant::now() + *wait);
                tokio::time::sleep_until(until).await;
                self.until = None;
                self.steps.pop_front();
            }
            match self.steps.pop_front() {
                Some(Step::Batch(items)) => self.give(items, into),
                Some(Step::Fail) => return Err(SourceError::new(self.describe(), "it broke")),
                Some(Step::Panic) => panic!("a source that panics"),
                Some(Step::Never) => std::future::pending().await,
                Some(Step::Wait(_)) => unreachable!("waits come first"),
                None => return Ok(Pull::End),
            }
            Ok(if self.steps.is_empty() { Pull::End } else { Pull::More })
        })
    }

    fn replayable(&self) -> bool {
        true
    }
}
