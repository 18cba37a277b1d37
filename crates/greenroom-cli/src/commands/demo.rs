//! `greenroom demo`: what order per key is worth, in ten seconds and without a configuration (C14).
//!
//! ```text
//! seed ──▶ arrivals: skewed keys, Poisson ──▶ a keyed pool ──▶ target: checks each key's numbers
//!                                        └──▶ channels by hash ──▶ target          (--slow-key)
//! ```
//!
//! Without options the target is flaky, and what it refuses is tried again in order. With `--slow-key` one key takes 200 ms a
//! message, and the same arrivals go to a pool and to what is usually written: a channel and a task for each worker, chosen by the
//! key's hash.

mod arrivals;
mod ledger;
mod screen;
mod side;
mod table;
mod target;
#[cfg(test)]
mod tests;

use std::{process::ExitCode, sync::Arc, time::Duration};

use tokio::time::Instant;

use self::{
    arrivals::Arrivals,
    side::{Kind, Side},
};
use crate::{
    cli::DemoArgs,
    exit::{self, Exit},
};

/// Workers of the pool, and tasks beside it.
const WORKERS: usize = 16;
/// How long the last messages may take.
const DRAIN: Duration = Duration::from_secs(60);
/// How long tasks that outlive the demo may hold up the exit.
const LAST_TASKS: Duration = Duration::from_millis(100);

/// Plays, shows and counts.
pub fn demo(args: &DemoArgs) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Exit::CouldNotRun.because(format_args!("no threads: {error}")),
    };
    let played = runtime.block_on(async {
        let show = Show::new(args.slow_key, args.seed, args.seconds.0);
        tokio::select! {
            biased;
            played = show.play() => played.map(|()| show.conclude()),
            () = screen::show(&show) => unreachable!("the screen is shown until it is dropped"),
        }
    });
    runtime.shutdown_timeout(LAST_TASKS);
    match played {
        Ok((table, defects)) => conclude(&table, &defects),
        Err(why) => Exit::CouldNotRun.because(why),
    }
}

fn conclude(table: &str, defects: &[String]) -> ExitCode {
    let printed = exit::answer(table);
    match defects {
        [] => printed,
        defects => Exit::Refused
            .because(format_args!("{} (a defect: please report it)", defects.join(", "))),
    }
}

/// One demonstration.
struct Show {
    /// What both sides are sent.
    arrivals: Arc<Arrivals>,
    /// When the first message could arrive.
    started: Instant,
    /// The pool, and with `--slow-key` hashing beside it.
    sides: Vec<Arc<Side>>,
}

impl Show {
    /// Draws what is sent. The clock runs from now on.
    fn new(slow_key: bool, seed: u64, length: Duration) -> Self {
        let started = Instant::now();
        let kinds: &[Kind] =
            if slow_key { &[Kind::Lanes, Kind::Hashing] } else { &[Kind::Flaky { seed }] };
        let side = |kind: &Kind| Arc::new(Side::new(*kind, started));
        Self {
            arrivals: Arc::new(Arrivals::draw(seed, length, slow_key)),
            started,
            sides: kinds.iter().map(side).collect(),
        }
    }

    fn has_slow_key(&self) -> bool {
        self.sides.len() > 1
    }

    /// Sends everything when it is due, and waits until all of it has been handled.
    async fn play(&self) -> Result<(), String> {
        let play = |side: &Arc<Side>| {
            let (side, arrivals) = (side.clone(), self.arrivals.clone());
            tokio::spawn(async move { side.play(&arrivals).await })
        };
        let playing: Vec<_> = self.sides.iter().map(play).collect();
        for side in playing {
            side.await.map_err(|error| error.to_string())??;
        }
        Ok(())
    }

    /// The last table, and what should not have happened.
    fn conclude(&self) -> (String, Vec<String>) {
        let defects = self.sides.iter().flat_map(|side| side.defects()).collect();
        (table::last(self), defects)
    }
}
