//! Workload W: handlers that wait, as almost all real ones do. Each gives way once, awaits a reply
//! from another task, or sleeps; a row says for how many workers, with which keys, on how many
//! threads, and whether senders wait for room.
//!
//! Beside a pool stand what people write by hand: a bounded channel and a task for each worker;
//! `for_each_concurrent`, which reads from an iterator, without senders or a queue, and so is a
//! lower bound rather than a peer; and a task for each message behind a semaphore. Two figures
//! each: messages per second, and the processor time that a message took, which says more where
//! waiting sets the pace.

mod handler;
mod sides;
mod table;

use std::{fmt, time::Duration};

use crate::{Failure, stage::Threads};

pub use self::{
    handler::Wait,
    table::{Options, run},
};

/// How many may wait for each worker where senders are to wait for room.
const SCARCE: usize = 100;

/// What waits beside the workers, at most, where senders are not to wait: as many as there are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Room {
    Scarce,
    Plenty,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Pool,
    /// A bounded channel and a task for each worker, in turn or by the key's hash.
    Channels,
    /// `for_each_concurrent`.
    Concurrent,
    /// A task for each message, behind a semaphore.
    Spawned,
}

impl Side {
    pub const ALL: [Self; 4] = [Self::Pool, Self::Channels, Self::Concurrent, Self::Spawned];

    pub fn name(self) -> &'static str {
        match self {
            Self::Pool => "pool",
            Self::Channels => "channels",
            Self::Concurrent => "for_each_concurrent",
            Self::Spawned => "a task each",
        }
    }
}

/// A row of the table.
#[derive(Clone, Copy)]
pub struct Shape {
    pub wait: Wait,
    pub workers: usize,
    /// Distinct keys, where messages have keys.
    pub keys: Option<u64>,
    pub room: Room,
    pub threads: Threads,
}

const WORKERS: [usize; 5] = [4, 16, 64, 256, 1_024];
const KEYS: [Option<u64>; 3] = [None, Some(1_000_000), Some(1_000)];

impl Shape {
    /// Every row.
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for threads in [Threads::Two, Threads::One] {
            for room in [Room::Scarce, Room::Plenty] {
                for keys in KEYS {
                    for wait in Wait::ALL {
                        let of = |workers| Self { wait, workers, keys, room, threads };
                        all.extend(WORKERS.map(of));
                    }
                }
            }
        }
        all
    }

    /// Sides that say something about this row: by hand, order per key is kept by a channel for
    /// each worker alone.
    pub fn sides(&self) -> &'static [Side] {
        match self.keys {
            None => &Side::ALL,
            Some(_) => &[Side::Pool, Side::Channels],
        }
    }

    /// Messages of a repetition that takes about a second: as many as can be handled, or as waiting
    /// lets through.
    pub fn messages(&self, per_second: u64) -> u64 {
        let workers = self.workers as u64;
        match self.wait {
            Wait::Yields => per_second,
            Wait::Replies => per_second / 2,
            Wait::Sleeps => (workers * 500).min(per_second / 2),
            Wait::Sometimes => (workers * 5_000).min(per_second),
        }
    }

    /// Messages that may wait for each worker, of so many in all.
    fn mailbox(&self, messages: u64) -> usize {
        match self.room {
            Room::Scarce => SCARCE,
            // Keys are not spread evenly over channels: each must hold what comes.
            Room::Plenty => messages as usize,
        }
    }

    /// Runs one side once.
    pub fn measure(&self, side: Side, messages: u64) -> Result<Cost, Failure> {
        sides::measure(self, side, messages)
    }
}

impl fmt::Display for Shape {
    /// `sleep-64`, `yield-1024-1M-plenty-1t`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.wait.name(), self.workers)?;
        match self.keys {
            None => {}
            Some(1_000_000) => f.write_str("-1M")?,
            Some(keys) => write!(f, "-{}k", keys / 1_000)?,
        }
        if self.room == Room::Plenty {
            f.write_str("-plenty")?;
        }
        if self.threads != Threads::Two {
            f.write_str("-1t")?;
        }
        Ok(())
    }
}

/// What one repetition took.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    pub messages: u64,
    pub time: Duration,
    /// Of all threads of the process.
    pub processor: Duration,
}

impl Cost {
    /// In millions.
    pub fn per_second(&self) -> f64 {
        self.messages as f64 / self.time.as_secs_f64() / 1e6
    }

    /// In nanoseconds.
    pub fn processor_each(&self) -> f64 {
        self.processor.as_nanos() as f64 / self.messages as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_a_name_of_its_own() {
        let mut names: Vec<_> = Shape::all().iter().map(Shape::to_string).collect();
        assert_eq!(names.len(), 240);
        assert_eq!(
            (names[0].as_str(), names[239].as_str()),
            ("yield-4", "sometimes-1024-1k-plenty-1t")
        );
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 240);
    }

    #[test]
    fn every_side_handles_every_message_once() {
        for wait in Wait::ALL {
            for (keys, room) in [(None, Room::Scarce), (Some(1_000), Room::Plenty)] {
                let shape = Shape { wait, workers: 4, keys, room, threads: Threads::Two };
                for side in shape.sides() {
                    let cost = shape.measure(*side, 400).unwrap();
                    assert_eq!(cost.messages, 400);
                }
            }
        }
    }
}
