//! `greenroom send [ADDRESS] FILE`: posts the events of a file to an `http` input (C07).
//!
//! ```text
//! FILE ──▶ reader ──▶ lot ▶ POST ▶ answer ▶ lot ..
//! ```
//!
//! There is one pending request at a time, so events are stored in the order of the file. A lot
//! that may or may not have been stored is posted again: the input recognizes its events by source
//! and id.

mod lot;
mod posting;
mod reader;
mod stop;
mod tally;
mod target;

use std::process::ExitCode;

use greenroom_bus::http::Poster;

use self::{posting::Posting, reader::Reader, stop::Stop, tally::Tally};
use crate::{
    cli::SendArgs,
    exit::{self, Exit, LAST_TASKS},
};

/// Sends a file.
pub fn send(args: &SendArgs) -> ExitCode {
    let poster = match target::poster(args) {
        Ok(poster) => poster,
        Err(why) => return Exit::BadConfiguration.because(why),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Exit::CouldNotRun.because(format_args!("no threads: {error}")),
    };
    let opened = runtime.block_on(async { Reader::open(&args.file) });
    let mut reader = match opened {
        Ok(reader) => reader,
        Err(why) => return Exit::CouldNotRun.because(why),
    };
    let tally = reader.tally();
    let sent = runtime.block_on(async {
        tokio::select! {
            biased;
            sent = all(args, &mut reader, &poster, &tally) => sent,
            () = tally.show() => unreachable!("progress is shown until it is dropped"),
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

/// Reads and posts until the end of the file, or until something stops it. Events before a bad line
/// are posted first.
async fn all(
    args: &SendArgs,
    reader: &mut Reader,
    poster: &Poster,
    tally: &Tally,
) -> Result<(), Stop> {
    let posting = Posting { args, poster, tally };
    loop {
        let (mut events, end) = reader.read(args.skip_bad, tally).await;
        posting.send(&mut events).await?;
        if let Some(end) = end {
            return end;
        }
    }
}
