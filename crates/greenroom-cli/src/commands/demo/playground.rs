//! `greenroom demo --playground`: one load, two pools, and a page to change it on.
//!
//! ```text
//!                       ┌──▶ a keyed pool: any worker takes the next event of any key
//! page ──▶ settings ──▶ load
//!                       └──▶ a sticky pool: the key's hash chooses the worker
//! page ◀── state (a few kilobytes, whatever the load) ◀── both
//! ```
//!
//! Both pools are those of the library, with the same number of workers and the same events at the
//! same times. A key has at most [`load::MOST_OF_KEY`] events in line at each side, so that what
//! cannot keep up loses events instead of growing.

mod load;
mod requests;
mod settings;
mod side;
mod target;
#[cfg(test)]
mod tests;
mod view;
mod window;

use std::{convert::Infallible, io::Write, process::ExitCode, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    signal,
    time::{Instant, sleep_until},
};

use self::{
    load::EventLoad,
    settings::PlaySettings,
    side::{PlaySide, Queueing},
};
use crate::{
    admin::Site,
    exit::{Exit, LAST_TASKS},
};

/// A machine that slept longer does not catch up with what it missed.
const LATEST: Duration = Duration::from_millis(500);

/// The two pools, and what they are sent.
pub(super) struct Playground {
    settings: Mutex<PlaySettings>,
    sides: [PlaySide; 2],
    started: Instant,
}

/// Runs until Ctrl-C.
pub(super) fn playground(address: &str) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Exit::CouldNotRun.because(format_args!("no threads: {error}")),
    };
    let played = runtime.block_on(async {
        tokio::select! {
            Err(why) = open(address) => Err(why),
            _ = signal::ctrl_c() => Ok(()),
        }
    });
    runtime.shutdown_timeout(LAST_TASKS);
    match played {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => Exit::CouldNotRun.because(why),
    }
}

async fn open(address: &str) -> Result<Infallible, String> {
    let site = Site::bind(address).await?;
    let playground = Arc::new(Playground::new(1).await?);
    // When standard error is closed, nothing can be reported any more.
    let _ = writeln!(
        std::io::stderr(),
        "the playground is at http://{}/ until Ctrl-C",
        site.address()?
    );
    tokio::spawn({
        let playground = playground.clone();
        async move { playground.play(1).await }
    });
    Ok(site.serve(requests::requests(playground)).await)
}

impl Playground {
    /// Starts the pools.
    async fn new(seed: u64) -> Result<Self, String> {
        let (settings, started) = (PlaySettings::default(), Instant::now());
        let lanes = PlaySide::new(Queueing::Lanes, settings, seed, started).await?;
        let hashing = PlaySide::new(Queueing::Hashing, settings, seed, started).await?;
        Ok(Self { settings: Mutex::new(settings), sides: [lanes, hashing], started })
    }

    /// Sends both sides the same events at the same times.
    async fn play(&self, seed: u64) -> Infallible {
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
    fn change(&self, settings: PlaySettings) -> Result<(), String> {
        let mut current = self.settings.lock();
        for side in &self.sides {
            side.change(settings)?;
        }
        *current = settings;
        Ok(())
    }
}
