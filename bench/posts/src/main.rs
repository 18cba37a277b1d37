//! `POST /events` beside the log that it appends to.
//!
//! 64 senders, each with one post under way, of one event of 1 KiB or of 100: over HTTP on
//! loopback, with sender and server in this process, and straight into the log. A third side has
//! only so many writers that a commit of the log takes as many events as it does over HTTP, where
//! most of the 64 posts are on their way at any time. The sides take turns in one run, each with a
//! new log, so that the disk is the same; a commit takes all that waits. Then the same with a
//! consumer, and with segments so small that some are removed all the time.
//!
//! Prints of each round the rates, the 99th percentile, the longest append, the longest pause
//! between two that were answered, the syncs, the events of a sync, and the processor time of an
//! event: that of the senders, of the server, and of the thread of the log. Then the shares of the
//! medians.
//!
//! ```text
//! cargo run --release --manifest-path bench/Cargo.toml -p posts -- [SECONDS] [ROUNDS] [DIRECTORY]
//! ```

mod consumer;
mod request;
mod row;
mod senders;
mod side;

use std::{env, error::Error, path::PathBuf, time::Duration};

use crate::{
    row::Row,
    side::{Setting, Side, measured},
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SENDERS: usize = 64;

/// Bytes of an event as JSON.
const SIZE: usize = 1_024;

type Failed = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failed> {
    let mut words = env::args().skip(1);
    let seconds = words.next().map_or(Ok(3), |word| word.parse())?;
    let rounds = words.next().map_or(Ok(3), |word| word.parse())?;
    let directory = words.next().map_or_else(env::temp_dir, PathBuf::from);
    println!("{}", Row::HEADINGS);
    for is_retained in [false, true] {
        for batch in [1, 100] {
            let length = Duration::from_secs(seconds);
            let setting = Setting { batch, is_retained, length, directory: &directory };
            of_setting(&setting, rounds)?;
        }
    }
    Ok(())
}

/// Runs and prints all sides in turn.
fn of_setting(setting: &Setting<'_>, rounds: usize) -> Result<(), Failed> {
    let (mut alone, mut posted, mut alike) = (Vec::new(), Vec::new(), Vec::new());
    let run = |side, senders, rates: &mut Vec<f64>| -> Result<Row, Failed> {
        let row = measured(side, senders, setting)?;
        println!("{row}");
        rates.push(row.events);
        Ok(row)
    };
    for _ in 0..rounds {
        run(Side::Log, SENDERS, &mut alone)?;
        let http = run(Side::Http, SENDERS, &mut posted)?;
        let writers = (http.group() / setting.batch as f64).round().max(1.0);
        run(Side::Log, writers as usize, &mut alike)?;
    }
    let posted = measure::median(&posted);
    println!(
        "share of the medians: {:.2} of as many writers, {:.2} of the same group commits",
        posted / measure::median(&alone),
        posted / measure::median(&alike),
    );
    Ok(())
}
