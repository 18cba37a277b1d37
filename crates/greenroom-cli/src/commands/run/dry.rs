//! `greenroom run --dry-run`: describes the events of the inputs without handling them (C15).
//!
//! Inputs are read and routed as in a run. Nothing is handled, written or settled, so a later run
//! reads the same events again, except from standard input, which can be read only once. Nothing is
//! taken from a consumer or a consumer group.

mod moment;
mod tally;

use std::{process::ExitCode, sync::Arc, time::Duration};

use greenroom_bus::source::{Pull, Source};
use parking_lot::Mutex;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until},
};

use self::tally::DryTally;
use crate::{
    config::Config,
    exit::{self, Exit, LAST_TASKS},
    run::assemble,
};

/// Inputs may have no end; this is long enough to characterize most of them.
const LONGEST: Duration = Duration::from_secs(10);

/// Why reading ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The inputs ended.
    Inputs,
    Time,
    Signal,
}

/// Reads the inputs and prints statistics of their events.
pub(super) fn run(config: &Config) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Exit::CouldNotRun.because(format_args!("no threads: {error}")),
    };
    let read = runtime.block_on(read(config));
    runtime.shutdown_timeout(LAST_TASKS);
    match read {
        Ok(text) => exit::answer(&text),
        Err(why) => Exit::CouldNotRun.because(why),
    }
}

async fn read(config: &Config) -> Result<String, String> {
    let tally = Arc::new(Mutex::new(DryTally::new(config)?));
    let mut sources = Vec::new();
    for input in &config.inputs {
        let within = |why| format!("input `{}`: {why}", input.name);
        sources.push(assemble::looking(input, config).await.map_err(within)?);
    }
    let (started, mut reading) = (Instant::now(), JoinSet::new());
    for (place, source) in sources.into_iter().enumerate() {
        reading.spawn(read_all(place as u32, source, tally.clone()));
    }
    let end = until_the_end(&mut reading, started + LONGEST).await?;
    let elapsed = started.elapsed();
    // Nothing is counted any more that the figures lack.
    reading.shutdown().await;
    let mut text = tally.lock().render(elapsed);
    text.push_str(match end {
        End::Inputs => "the inputs were read to their end; nothing was handled or settled\n",
        End::Time => "more may follow: reading ended after 10 s; nothing was handled or settled\n",
        End::Signal => "more may follow: reading was interrupted; nothing was handled or settled\n",
    });
    let mut looked: Vec<_> = config.inputs.iter().filter_map(|input| input.kind.looked()).collect();
    looked.sort_unstable();
    looked.dedup();
    for looked in looked {
        text.push_str(looked);
        text.push('\n');
    }
    Ok(text)
}

async fn until_the_end(
    reading: &mut JoinSet<Result<(), String>>,
    latest: Instant,
) -> Result<End, String> {
    loop {
        tokio::select! {
            ended = reading.join_next() => match ended {
                Some(Ok(read)) => read?,
                Some(Err(error)) => return Err(format!("an input failed: {error}")),
                None => return Ok(End::Inputs),
            },
            () = sleep_until(latest) => return Ok(End::Time),
            signal = tokio::signal::ctrl_c() => {
                return signal.map(|()| End::Signal).map_err(|error| format!("cannot handle signals: {error}"));
            }
        }
    }
}

async fn read_all(
    place: u32,
    mut source: Box<dyn Source>,
    tally: Arc<Mutex<DryTally>>,
) -> Result<(), String> {
    let mut batch = Vec::new();
    loop {
        let pull = source.pull(&mut batch).await.map_err(|error| error.to_string())?;
        tally.lock().add((place, source.partition()), batch.drain(..));
        match pull {
            Pull::End => return Ok(()),
            // None of their events is started anyway.
            Pull::Revoke => {
                for partition in source.revoking() {
                    source.revoked(partition);
                }
            }
            Pull::More => {}
        }
        // Sources that never wait get their turns, and so does the clock.
        tokio::task::yield_now().await;
    }
}
