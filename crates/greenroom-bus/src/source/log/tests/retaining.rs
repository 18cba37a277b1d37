use std::{io::ErrorKind, path::Path, time::Duration};

use super::{
    super::{
        EventLog, LogOptions, SegmentLog,
        sim_disk::{Op, SimDisk},
    },
    support::*,
};

const HOUR: Duration = Duration::from_secs(3_600);

async fn filled(log: &SegmentLog, from: u32) -> u64 {
    let before = log.standing().segments;
    let mut n = from;
    while log.standing().segments < before + 3 {
        append(log, n..n + 10).await;
        n += 10;
    }
    log.standing().next
}

/// Waits until retention has been through.
async fn retained(log: &SegmentLog) {
    // An append that is answered was written after what was asked for before it.
    log.handle_for_tests().waiting.retain();
    let id = rand::random_range(1 << 31..u32::MAX);
    append(log, id..id + 1).await;
}

#[tokio::test]
async fn b03_whole_segments_go_when_they_are_old_and_every_consumer_is_done() {
    let (disk, hands) = (SimDisk::new(1), Hands::default());
    let log = try_open(&disk, small(), &hands).unwrap();
    filled(&log, 0).await;
    let mut slow = log.source("slow").unwrap();
    consume(&log, "quick").await;
    hands.pass(2 * HOUR);
    retained(&log).await;
    assert_eq!(log.standing().first, 1, "`slow` needs everything");
    let first = read_to(&mut slow, 2).await;
    assert_eq!(first[0], (1, "0".to_owned()));
    drop(slow);
    consume(&log, "slow").await;
    retained(&log).await;
    let standing = log.standing();
    assert!(standing.first > 1 && standing.segments < 4, "{standing:?}");
}

#[tokio::test]
async fn b03_what_is_young_is_kept_though_everybody_is_done() {
    let (disk, hands) = (SimDisk::new(1), Hands::default());
    let log = try_open(&disk, small(), &hands).unwrap();
    filled(&log, 0).await;
    consume(&log, "c").await;
    hands.pass(HOUR / 2);
    retained(&log).await;
    assert_eq!(log.standing().first, 1);
}

#[tokio::test]
async fn b03_a_log_that_is_never_idle_removes_what_is_old_as_well() {
    let (disk, hands) = (SimDisk::new(1), Hands::default());
    let log = try_open(&disk, small(), &hands).unwrap();
    filled(&log, 0).await;
    consume(&log, "c").await;
    retained(&log).await;
    hands.pass(2 * HOUR);
    // The second one is written after the look.
    append(&log, 5_000..5_001).await;
    append(&log, 5_001..5_002).await;
    assert!(log.standing().first > 1, "{:?}", log.standing());
}

#[tokio::test]
async fn b03_without_a_consumer_nothing_is_removed() {
    let (disk, hands) = (SimDisk::new(1), Hands::default());
    let log = try_open(&disk, LogOptions { keep_for: Duration::ZERO, ..small() }, &hands).unwrap();
    filled(&log, 0).await;
    hands.pass(24 * HOUR);
    retained(&log).await;
    assert_eq!(log.standing().first, 1);
}

#[tokio::test]
async fn b03_a_file_that_is_not_needed_any_more_becomes_the_next_segment() {
    let (disk, hands) = (SimDisk::new(1), Hands::default());
    let log = try_open(&disk, LogOptions { keep_for: Duration::ZERO, ..small() }, &hands).unwrap();
    filled(&log, 0).await;
    let before = log.standing().next;
    consume(&log, "c").await;
    retained(&log).await;
    let spare = Path::new(DIRECTORY).join("spare");
    assert!(disk.names().contains(&spare), "{:?}", disk.names());
    let end = filled(&log, 10_000).await;
    let read = consume(&log, "c").await;
    assert_eq!(read.len() as u64, end - before);
    drop(log);
    // What the file had before is never taken for a part of the log.
    let log = try_open(&disk.crash(), small(), &hands).unwrap();
    assert_eq!(log.standing().next, end);
}

#[tokio::test]
async fn b03_a_file_whose_removal_may_not_last_is_not_written_again() {
    // Without ids to remember, a removal syncs the directory once.
    let options = LogOptions { keep_for: Duration::ZERO, remember_events: 0, ..small() };
    let mut given_back = 0;
    for seed in 0..40 {
        let (disk, hands) = (SimDisk::new(seed), Hands::default());
        let log = try_open(&disk, options.clone(), &hands).unwrap();
        let mut n = 0;
        while log.standing().segments < 2 {
            append(&log, n..n + 10).await;
            n += 10;
        }
        consume(&log, "c").await;
        disk.fails_next(Op::SyncDirectory, ErrorKind::Other);
        retained(&log).await;
        // Of the next segment, which would be in the same file.
        disk.fails_next(Op::SyncDirectory, ErrorKind::Other);
        while log.append(events(n..n + 10)).await.is_ok() {
            n += 10;
        }
        drop(log);
        let log = try_open(&disk.crash(), small(), &hands);
        given_back += u32::from(log.unwrap().standing().first == 1);
    }
    assert!(given_back > 0, "no crash has undone the removal");
}

#[tokio::test]
async fn z10_a_wall_clock_that_jumps_makes_nothing_older() {
    // Between two runs an hour back: the log goes on where its own time was.
    let (disk, hands) = (SimDisk::new(1), Hands::default());
    let log = try_open(&disk, small(), &hands).unwrap();
    hands.pass(10 * HOUR);
    filled(&log, 0).await;
    consume(&log, "c").await;
    log.close().await;
    drop(log);
    let log = try_open(&disk, small(), &Hands::default()).unwrap();
    retained(&log).await;
    assert_eq!(log.standing().first, 1, "nothing is removed at once");
    // While it is open, time is what passes; the wall clock is not asked.
    let clock = super::super::clock::LogClock::after(u64::MAX / 2);
    assert!(clock.now() - u64::MAX / 2 < 60_000);
}
