//! `greenroom send [ADDRESS] FILE`: posts the events of a file to an `http` input (C07).
//!
//! ```text
//! FILE ──▶ reader ──by subject──▶ line 1: batch ▶ POST ▶ answer ▶ batch ..
//!                 └────────────▶ line 2: ..
//! ```
//!
//! Each line has one pending request at a time, so the events of a line are stored in the order of
//! the file. A batch that may or may not have been stored is posted again: the input recognizes its
//! events by source and id.

mod line;
mod lot;
mod reader;
mod stop;
mod tally;
mod target;

use std::{process::ExitCode, sync::Arc};

use greenroom_bus::http::Poster;
use tokio::{sync::mpsc, task::JoinSet};

use self::{line::Line, reader::Reader, stop::Stop, tally::Tally};
use crate::{
    cli::SendArgs,
    exit::{self, Exit, LAST_TASKS},
};

/// Lots that may wait for each line, so that reading and posting overlap.
const AHEAD: usize = 4;

/// Sends a file.
pub fn send(args: &SendArgs) -> ExitCode {
    let poster = match target::poster(args) {
        Ok(poster) => Arc::new(poster),
        Err(why) => return Exit::BadConfiguration.because(why),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Exit::CouldNotRun.because(format_args!("no threads: {error}")),
    };
    let tally = Arc::new(Tally::new());
    let sent = runtime.block_on(async {
        let reader = match Reader::open(&args.file) {
            Ok(reader) => reader,
            Err(why) => return Err(Stop::Failed(why)),
        };
        tokio::select! {
            biased;
            sent = all(args, reader, &poster, &tally) => sent,
            () = tally::show(tally.clone()) => unreachable!("progress is shown until it is dropped"),
        }
    });
    runtime.shutdown_timeout(LAST_TASKS);
    let told = exit::answer(&tally.summary());
    match sent {
        Ok(()) => told,
        Err(Stop::BadEvent(why)) => Exit::Refused.because(why),
        Err(Stop::Failed(why)) => Exit::CouldNotRun.because(why),
    }
}

/// Reads and posts until the end of the file, or until something stops it; pending requests are
/// then still posted.
async fn all(
    args: &SendArgs,
    mut reader: Reader,
    poster: &Arc<Poster>,
    tally: &Arc<Tally>,
) -> Result<(), Stop> {
    let mut lines = JoinSet::new();
    let mut queues = Vec::new();
    for _ in 0..args.connections {
        let (queue, lots) = mpsc::channel(AHEAD);
        queues.push(queue);
        let line = Line::new(args, poster.clone(), tally.clone());
        lines.spawn(line.run(lots));
    }
    let mut posted = Ok(());
    let read = tokio::select! {
        read = reader.share_out(&queues, args, tally) => read,
        // A line ends before the file only if something stops it.
        Some(ended) = lines.join_next() => {
            posted = ended_early(ended);
            Ok(())
        }
    };
    drop(queues);
    while let Some(ended) = lines.join_next().await {
        posted = worse(posted, ended_early(ended));
    }
    // The reader is ahead: the reason that stopped a line comes before the reader's.
    posted.and(read)
}

/// A failure to send is worse than a bad event.
fn worse(first: Result<(), Stop>, second: Result<(), Stop>) -> Result<(), Stop> {
    match (&first, &second) {
        (Ok(()), _) | (Err(Stop::BadEvent(_)), Err(Stop::Failed(_))) => second,
        _ => first,
    }
}

fn ended_early(ended: Result<Result<(), Stop>, tokio::task::JoinError>) -> Result<(), Stop> {
    ended.unwrap_or_else(|error| Err(Stop::Failed(format!("a connection failed: {error}"))))
}
