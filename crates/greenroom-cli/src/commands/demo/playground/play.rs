//! The load and the two pools.

use std::{convert::Infallible, time::Duration};

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

use super::{
    load::EventLoad,
    settings::PlaySettings,
    side::{PlaySide, Queueing},
};

/// Events that are overdue by more than this (the machine was suspended) are skipped.
const LATEST: Duration = Duration::from_millis(500);

/// The two pools and their load.
pub(super) struct Playground {
    settings: Mutex<PlaySettings>,
    sides: [PlaySide; 2],
    started: Instant,
}

impl Playground {
    /// Starts the pools.
    pub(super) async fn new(seed: u64) -> Result<Self, String> {
        let (settings, started) = (PlaySettings::default(), Instant::now());
        let lanes = PlaySide::new(Queueing::Lanes, settings, seed, started).await?;
        let hashing = PlaySide::new(Queueing::Hashing, settings, seed, started).await?;
        Ok(Self { settings: Mutex::new(settings), sides: [lanes, hashing], started })
    }

    /// Sends both sides the same events at the same times.
    pub(super) async fn play(&self, seed: u64) -> Infallible {
        let mut load = EventLoad::new(seed);
        let mut due = Instant::now();
        loop {
            let settings = *self.settings.lock();
            let (after, event) = load.next(&settings);
            due = (due + after).max(Instant::now() - LATEST);
            sleep_until(due).await;
            for side in &self.sides {
                side.offer(event, due - self.started);
            }
        }
    }

    /// Applies other settings to the load and to both pools.
    ///
    /// # Errors
    /// A pool refuses its new size.
    pub(super) fn change(&self, settings: PlaySettings) -> Result<(), String> {
        let mut current = self.settings.lock();
        for side in &self.sides {
            side.change(settings)?;
        }
        *current = settings;
        Ok(())
    }

    /// The settings as they are now.
    pub(super) fn settings(&self) -> PlaySettings {
        *self.settings.lock()
    }

    /// Lanes, and hashing.
    pub(super) fn sides(&self) -> &[PlaySide; 2] {
        &self.sides
    }
}
