use std::{io::ErrorKind, time::Duration};

use super::{
    super::{
        AppendError, LogOptions, SegmentLog,
        sim_disk::{Op, SimDisk},
    },
    support::*,
};
use crate::source::Source;

#[tokio::test]
async fn d03_what_waits_is_bounded_and_more_is_answered_full() {
    for options in [
        LogOptions { waiting_events: 5, ..small() },
        LogOptions { waiting_bytes: 1_500, ..small() },
    ] {
        let disk = SimDisk::new(1);
        let log = open(&disk, options);
        disk.hold_syncs();
        let first = tokio::spawn({
            let log = log.clone();
            async move { append(&log, 0..1).await }
        });
        tokio::task::spawn_blocking({
            let disk = disk.clone();
            move || disk.until_sync_is_held()
        })
        .await
        .unwrap();
        let second = tokio::spawn({
            let log = log.clone();
            async move { append(&log, 1..5).await }
        });
        tokio::task::yield_now().await;
        match refused(&log, 5..9).await {
            AppendError::Full { reason, .. } => assert!(reason.contains("waiting_"), "{reason}"),
            other => panic!("{other}"),
        }
        disk.release_syncs();
        assert_eq!((first.await.unwrap().stored, second.await.unwrap().stored), (1, 4));
        assert_eq!(append(&log, 5..9).await.stored, 4);
        assert_eq!(read_all(&log).await.len(), 9);
    }
}

#[tokio::test]
async fn b03_a_log_of_its_greatest_size_is_full_until_a_consumer_is_done() {
    let disk = SimDisk::new(1);
    let log = open(&disk, LogOptions { max_bytes: 24 * 1024, ..small() });
    drop(log.source("slow").unwrap());
    let mut stored = 0;
    let reason = loop {
        match log_append(&log, stored).await {
            Ok(()) => stored += 10,
            Err(AppendError::Full { reason, .. }) => break reason,
            Err(other) => panic!("{other}"),
        }
    };
    assert!(stored > 50, "{stored}");
    for part in ["max_bytes", "`slow`", "event 1 on", "nothing reads"] {
        assert!(reason.contains(part), "{part}: {reason}");
    }
    assert_eq!(consume(&log, "slow").await.len(), stored as usize);
    log_append(&log, stored).await.unwrap();
    assert!(log.standing().bytes <= 24 * 1024);
}

async fn log_append(log: &SegmentLog, first: u32) -> Result<(), AppendError> {
    use super::super::EventLog;
    log.append(events(first..first + 10)).await.map(drop)
}

#[tokio::test]
async fn b03_a_disk_that_is_full_when_a_segment_is_begun_is_full_and_no_failure() {
    let disk = SimDisk::new(1);
    let log = open(&disk, small());
    let mut stored = 0;
    disk.fails_next(Op::Create, ErrorKind::StorageFull);
    let reason = loop {
        match log_append(&log, stored).await {
            Ok(()) => stored += 10,
            Err(AppendError::Full { reason, .. }) => break reason,
            Err(other) => panic!("{other}"),
        }
    };
    assert!(reason.contains("free some space"), "{reason}");
    log_append(&log, stored).await.unwrap();
    assert_eq!(read_all(&log).await.len(), stored as usize + 10);
    log.close().await;
    drop(log);
    assert_eq!(read_all(&open(&disk.crash(), small())).await.len(), stored as usize + 10);
}

#[tokio::test(start_paused = true)]
async fn b03_a_position_that_finds_no_room_is_stored_once_there_is_some() {
    let disk = SimDisk::new(1);
    let log = open(&disk, small());
    append(&log, 0..10).await;
    let mut source = log.source("c").unwrap();
    let committer = source.committer().unwrap();
    committer.commit().await.unwrap();
    let taken = read_to(&mut source, 11).await;
    taken.iter().for_each(|(position, _)| settle(&source, *position));
    disk.fill();
    let commit = tokio::spawn({
        let committer = committer.clone();
        async move { committer.commit().await }
    });
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(!commit.is_finished(), "a full disk ends no input");
    // Now: the clock runs on by itself while an append waits for its thread.
    let tries = disk.refused();
    assert!((5..60).contains(&tries), "the pauses grow up to half a minute: {tries}");
    assert_eq!(log.standing().consumers[0].oldest_open, 1);
    append(&log, 10..12).await;
    disk.clear();
    commit.await.unwrap().unwrap();
    assert_eq!(log.standing().consumers[0].oldest_open, 11);
    assert_eq!(read_to(&mut source, 13).await.len(), 2, "the source goes on");
}

/// A log whose segments were of 64 KiB and are of 8 KiB now, in a log of 24 KiB.
async fn with_less_room(disk: &SimDisk) -> SegmentLog {
    let log = open(disk, LogOptions { segment_bytes: 64 * 1024, ..small() });
    drop(log.source("c").unwrap());
    append(&log, 0..10).await;
    log.close().await;
    drop(log);
    open(disk, LogOptions { max_bytes: 24 * 1024, ..small() })
}

#[tokio::test]
async fn b03_a_log_that_is_given_less_room_goes_on_once_its_consumer_is_done() {
    let log = with_less_room(&SimDisk::new(1)).await;
    let mut stored = 10;
    for _ in 0..3 {
        while log_append(&log, stored).await.is_ok() {
            stored += 10;
        }
        consume(&log, "c").await;
        log_append(&log, stored).await.unwrap();
        stored += 10;
        assert!(log.standing().bytes <= 24 * 1024, "{:?}", log.standing());
    }
    assert_eq!(log.standing().next, u64::from(stored) + 1);
}

#[tokio::test]
async fn b03_a_log_that_is_given_less_room_uses_what_it_has_while_the_disk_is_full() {
    let disk = SimDisk::new(1);
    let log = with_less_room(&disk).await;
    disk.fill();
    append(&log, 10..20).await;
    assert_eq!(log.standing().segments, 1);
    disk.clear();
    append(&log, 20..30).await;
    assert_eq!(log.standing().segments, 2);
    assert_eq!(read_all(&log).await.len(), 30);
}

#[tokio::test]
async fn b02_what_never_has_room_in_the_log_is_too_large_and_not_for_later() {
    let log = open(&SimDisk::new(1), LogOptions { max_bytes: 16 * 1024, ..small() });
    match refused(&log, 0..40).await {
        AppendError::TooLarge { bytes, limit } => assert!(bytes > limit && limit < 8 * 1024),
        other => panic!("{other}"),
    }
    assert_eq!(append(&log, 0..20).await.stored, 20);
}

#[tokio::test]
async fn b03_appends_that_have_room_one_after_the_other_are_not_refused_together() {
    let disk = SimDisk::new(1);
    let log = open(&disk, LogOptions { max_bytes: 48 * 1024, ..small() });
    disk.hold_syncs();
    let mut all = vec![tokio::spawn(append_ten(log.clone(), 0))];
    tokio::task::spawn_blocking({
        let disk = disk.clone();
        move || disk.until_sync_is_held()
    })
    .await
    .unwrap();
    all.extend((1..24).map(|n| tokio::spawn(append_ten(log.clone(), n * 10))));
    tokio::task::yield_now().await;
    disk.release_syncs();
    let mut stored = 0;
    for one in all {
        stored += one.await.unwrap().is_ok() as usize;
    }
    assert!(stored > 5, "{stored}");
}

async fn append_ten(log: SegmentLog, first: u32) -> Result<(), AppendError> {
    log_append(&log, first).await
}

/// Fills a log until an append finds no room, and returns how many events it has.
async fn fill(log: &SegmentLog) -> u32 {
    let mut stored = 0;
    while log_append(log, stored).await.is_ok() {
        stored += 10;
    }
    stored
}

#[tokio::test]
async fn b02_a_log_of_its_greatest_size_says_so_until_its_consumer_is_done() {
    use super::super::EventLog;
    let disk = SimDisk::new(1);
    let log = open(&disk, LogOptions { max_bytes: 24 * 1024, ..small() });
    drop(log.source("slow").unwrap());
    assert!(!log.is_full() && log.trouble().is_none());
    let stored = fill(&log).await;
    assert!(log.is_full() && log.trouble().unwrap().contains("max_bytes"), "{:?}", log.trouble());
    // One that finds room in the segment at hand changes nothing.
    let small = log.append(events(stored..stored + 1)).await;
    assert!(log.is_full(), "{small:?}");
    consume(&log, "slow").await;
    // No post is needed: whoever asks for the health of a full log may send none.
    while log.is_full() {
        tokio::task::yield_now().await;
    }
    assert_eq!(log.trouble(), None);
    log_append(&log, stored + 10).await.unwrap();
}

#[tokio::test]
async fn b02_a_full_disk_is_told_until_a_look_finds_room() {
    use super::super::EventLog;
    let disk = SimDisk::new(1);
    let log = open(&disk, small());
    disk.fill();
    let stored = fill(&log).await;
    assert!(log.trouble().unwrap().contains("free some space"), "{:?}", log.trouble());
    disk.clear();
    log.handle_for_tests().waiting.retain();
    while log.is_full() {
        tokio::task::yield_now().await;
    }
    log_append(&log, stored).await.unwrap();
}
