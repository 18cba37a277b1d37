//! `POST /events` beside the log that it appends to.
//!
//! 64 senders, each with one post under way, of one event of 1 KiB or of 100: over HTTP on
//! loopback, with sender and server in this process, and straight into the log. Both sides take
//! turns in one run, each with a new log, so that the disk is the same; either way a commit takes
//! all that waits. Then the same with a consumer, and with segments so small that some are removed
//! all the time.
//!
//! Prints of each round the rates, the 99th percentile, the longest append, the longest pause
//! between two that were answered, the syncs, and the processor time of an event: that of the
//! senders, of the server, and of the thread of the log. Then the share of the medians.
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

/// Runs and prints both sides in turn.
fn of_setting(setting: &Setting<'_>, rounds: usize) -> Result<(), Failed> {
    let mut rows: [Vec<Row>; 2] = Default::default();
    for _ in 0..rounds {
        for (side, rows) in [Side::Log, Side::Http].into_iter().zip(&mut rows) {
            let row = measured(side, setting)?;
            println!("{row}");
            rows.push(row);
        }
    }
    let [alone, posted] =
        rows.map(|rows| measure::median(&rows.iter().map(|row| row.events).collect::<Vec<_>>()));
    println!("share of the medians: {:.2}", posted / alone);
    Ok(())
}
