use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::super::{
    AppendError, Appended, EventLog, LogError, LogOptions, LogSource, SegmentLog, clock::LogClock,
    sim_disk::SimDisk,
};
use crate::{
    event::Event,
    settlement::{Outcome, Settled},
    source::{Pull, Source},
};

pub(super) const DIRECTORY: &str = "log";

/// Begins so that nothing is older than any time.
const BEGIN: u64 = 1_000_000_000;

pub(super) fn small() -> LogOptions {
    LogOptions {
        segment_bytes: 8 * 1024,
        max_bytes: 1024 * 1024,
        keep_for: Duration::from_secs(3_600),
        remember_for: Duration::from_secs(1_000_000),
        ..LogOptions::default()
    }
}

pub(super) fn event(id: &str) -> Event {
    Event::builder(id, "/test", "test").subject("s").data_json(&"x".repeat(200)).build().unwrap()
}

pub(super) fn events(ids: std::ops::Range<u32>) -> Vec<Event> {
    ids.map(|id| event(&id.to_string())).collect()
}

/// The clock of a machine on which tests turn the hands.
#[derive(Clone, Default)]
pub(super) struct Hands(Arc<AtomicU64>);

impl Hands {
    pub(super) fn pass(&self, time: Duration) {
        self.0.fetch_add(time.as_millis() as u64, Ordering::Relaxed);
    }

    pub(super) fn clock(&self, last: u64) -> LogClock {
        let (hands, begun) = (self.clone(), self.0.load(Ordering::Relaxed));
        let begin = (BEGIN + begun).max(last);
        LogClock::with_elapsed(begin, move || {
            Duration::from_millis(hands.0.load(Ordering::Relaxed) - begun)
        })
    }
}

pub(super) fn open(disk: &SimDisk, options: LogOptions) -> SegmentLog {
    try_open(disk, options, &Hands::default()).unwrap()
}

pub(super) fn try_open(
    disk: &SimDisk,
    options: LogOptions,
    hands: &Hands,
) -> Result<SegmentLog, LogError> {
    let disk = Arc::new(disk.clone());
    SegmentLog::open_on(disk, Path::new(DIRECTORY), options, |last| hands.clock(last))
}

pub(super) async fn append(log: &SegmentLog, ids: std::ops::Range<u32>) -> Appended {
    log.append(events(ids)).await.unwrap()
}

pub(super) async fn refused(log: &SegmentLog, ids: std::ops::Range<u32>) -> AppendError {
    log.append(events(ids)).await.unwrap_err()
}

/// All that the source has now: positions and ids. `end`: of the log.
pub(super) async fn read_to(source: &mut LogSource, end: u64) -> Vec<(u64, String)> {
    let mut taken = Vec::new();
    while taken.last().is_none_or(|(position, _)| position + 1 < end) {
        let mut more = Vec::new();
        let pulled = source.pull(&mut more).await.unwrap();
        taken.extend(
            more.into_iter().map(|item| (item.position, item.event.unwrap().id().to_owned())),
        );
        if pulled == Pull::End {
            break;
        }
    }
    taken
}

/// Every event that the log has, read by a consumer of its own.
pub(super) async fn read_all(log: &SegmentLog) -> Vec<(u64, String)> {
    let standing = log.standing();
    if standing.first == standing.next {
        return Vec::new();
    }
    let mut source = log.source("reads-all").unwrap();
    let all = read_to(&mut source, standing.next).await;
    drop(source);
    log.remove_consumer("reads-all").unwrap();
    all
}

pub(super) fn settle(source: &LogSource, position: u64) {
    source.receipts().unwrap().settled(position, Settled::Acknowledged(Outcome::Handled));
}

/// Reads and settles everything, and commits.
pub(super) async fn consume(log: &SegmentLog, consumer: &str) -> Vec<(u64, String)> {
    let mut source = log.source(consumer).unwrap();
    let next = log.standing().next;
    let committer = source.committer().unwrap();
    committer.commit().await.unwrap();
    let all = read_to(&mut source, next).await;
    all.iter().for_each(|(position, _)| settle(&source, *position));
    committer.commit().await.unwrap();
    all
}
