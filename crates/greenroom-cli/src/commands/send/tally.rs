//! Counts of sent events, while sending and at the end.

use std::{
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use greenroom_bus::source::{Partition, Place, Places};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{
    progress::{self, can_draw},
    report::grouped,
};

/// Rare enough for a log.
const LOG_EVERY: Duration = Duration::from_secs(5);

/// Counts, and the places of positions.
pub(super) struct Tally {
    started: Instant,
    stored: AtomicU64,
    repeated: AtomicU64,
    rejected: AtomicU64,
    /// In thousandths; 1,001 if it is not known.
    read: AtomicU64,
    waits: Mutex<Option<String>>,
    places: Option<Arc<dyn Places>>,
    file: String,
}

impl Tally {
    pub(super) fn new(places: Option<Arc<dyn Places>>, file: String) -> Self {
        Self {
            started: Instant::now(),
            stored: AtomicU64::new(0),
            repeated: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            read: AtomicU64::new(1_001),
            waits: Mutex::default(),
            places,
            file,
        }
    }

    pub(super) fn read(&self, part: Option<f64>) {
        let thousandths = part.map_or(1_001, |part| (part * 1_000.0) as u64);
        self.read.store(thousandths, Ordering::Relaxed);
    }

    pub(super) fn stored(&self, stored: u64, repeated: u64) {
        self.stored.fetch_add(stored, Ordering::Relaxed);
        self.repeated.fetch_add(repeated, Ordering::Relaxed);
        if let Some(why) = self.waits.lock().take() {
            tracing::info!(why, "events are accepted again");
        }
    }

    pub(super) fn rejected(&self, why: &str) {
        self.rejected.fetch_add(1, Ordering::Relaxed);
        tracing::warn!("skipped: {why}");
    }

    /// Logs once that nothing can be stored at present, and why.
    pub(super) fn waits(&self, why: &str) {
        if self.waits.lock().replace(why.to_owned()).is_none() {
            tracing::warn!("waiting to retry: {why}");
        }
    }

    /// File and line of a position.
    pub(super) fn place(&self, position: u64) -> String {
        let place =
            self.places.as_ref().map(|places| places.place(Some(Partition::ONLY), position));
        let (name, line) = match &place {
            Some(Place { source, position }) => (&**source, *position),
            None => (self.file.as_str(), position),
        };
        format!("{} line {line}", name.strip_prefix("file:").unwrap_or(name))
    }

    fn counts(&self) -> [u64; 3] {
        [&self.stored, &self.repeated, &self.rejected].map(|count| count.load(Ordering::Relaxed))
    }

    fn line(&self) -> String {
        let [stored, repeated, rejected] = self.counts();
        let took = self.started.elapsed().as_secs_f64().max(1e-3);
        let rate = ((stored + repeated) as f64 / took) as u64;
        let mut line = format!("stored {}, repeated {}", grouped(stored), grouped(repeated));
        // Writing to a string cannot fail.
        let _ = write!(line, ", rejected {} ({}/s)", grouped(rejected), grouped(rate));
        line
    }

    fn progress(&self) -> String {
        let read = self.read.load(Ordering::Relaxed);
        let part = if read <= 1_000 { format!("{}% read: ", read / 10) } else { String::new() };
        let waits = self.waits.lock().as_ref().map(|why| format!("; waiting: {why}"));
        format!("{part}{}{}", self.line(), waits.unwrap_or_default())
    }

    /// The line at the end.
    pub(super) fn summary(&self) -> String {
        format!("{} in {:.1} s\n", self.line(), self.started.elapsed().as_secs_f64())
    }

    /// Shows the progress until this is dropped: on the terminal, or as log lines.
    pub(super) async fn show(&self) {
        if can_draw() {
            progress::text(|| self.progress()).await;
        }
        let mut ticks = progress::ticks(LOG_EVERY);
        loop {
            ticks.tick().await;
            tracing::info!("{}", self.progress());
        }
    }
}
