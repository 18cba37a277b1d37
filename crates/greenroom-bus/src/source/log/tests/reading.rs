use std::time::Duration;

use super::{
    super::{
        AppendError, EventLog,
        sim_disk::{Op, SimDisk},
    },
    support::*,
};
use crate::source::{Committer, Pull, Resumed, Source};

#[tokio::test]
async fn b03_what_is_appended_is_read_in_its_order_across_segments_and_runs() {
    let disk = SimDisk::new(1);
    let log = open(&disk, small());
    for n in 0..20 {
        append(&log, n * 10..n * 10 + 10).await;
    }
    assert!(log.standing().segments > 3, "{log:?}");
    let expected: Vec<_> = (0..200).map(|n| (n + 1, n.to_string())).collect();
    assert_eq!(read_all(&log).await, expected);
    log.close().await;
    drop(log);
    let log = open(&disk, small());
    assert_eq!(read_all(&log).await, expected);
}

#[tokio::test]
async fn b03_a_log_of_more_segments_than_files_may_be_open_is_opened_and_read() {
    let disk = SimDisk::new(1);
    let log = open(&disk, small());
    for n in 0..20 {
        append(&log, n * 10..n * 10 + 10).await;
    }
    assert!(log.standing().segments > 5, "{log:?}");
    log.close().await;
    drop(log);
    disk.limit_open(3);
    let log = open(&disk, small());
    assert_eq!(read_all(&log).await.len(), 200);
    assert_eq!(append(&log, 0..200).await.repeated, 200);
}

#[tokio::test]
async fn b03_appends_that_wait_share_one_sync() {
    let disk = SimDisk::new(1);
    let log = open(&disk, small());
    append(&log, 0..1).await;
    let before = log.standing().syncs;
    disk.hold_syncs();
    let first = tokio::spawn({
        let log = log.clone();
        async move { append(&log, 1..2).await }
    });
    tokio::task::spawn_blocking({
        let disk = disk.clone();
        move || disk.until_sync_is_held()
    })
    .await
    .unwrap();
    let many: Vec<_> = (2..20)
        .map(|n| {
            tokio::spawn({
                let log = log.clone();
                async move { append(&log, n..n + 1).await }
            })
        })
        .collect();
    tokio::task::yield_now().await;
    disk.release_syncs();
    assert_eq!(first.await.unwrap().stored, 1);
    for one in many {
        assert_eq!(one.await.unwrap().stored, 1);
    }
    assert_eq!(log.standing().syncs - before, 2);
}

#[tokio::test]
async fn b03_nothing_is_read_before_it_is_durable() {
    let disk = SimDisk::new(1);
    let log = open(&disk, small());
    let mut source = log.source("c").unwrap();
    disk.hold_syncs();
    let append = tokio::spawn({
        let log = log.clone();
        async move { append(&log, 0..3).await }
    });
    tokio::task::spawn_blocking({
        let disk = disk.clone();
        move || disk.until_sync_is_held()
    })
    .await
    .unwrap();
    let mut taken = Vec::new();
    let early = tokio::time::timeout(Duration::from_millis(20), source.pull(&mut taken)).await;
    assert!(early.is_err() && taken.is_empty(), "a dropped pull has taken nothing");
    disk.release_syncs();
    append.await.unwrap();
    source.pull(&mut taken).await.unwrap();
    assert_eq!(taken.len(), 3);
}

#[tokio::test]
async fn b03_a_source_ends_when_its_log_is_closed_and_all_was_given() {
    let disk = SimDisk::new(1);
    let log = open(&disk, small());
    append(&log, 0..3).await;
    let mut source = log.source("c").unwrap();
    log.close().await;
    let mut taken = Vec::new();
    assert_eq!(source.pull(&mut taken).await.unwrap(), Pull::More);
    assert_eq!(taken.len(), 3);
    assert_eq!(source.pull(&mut taken).await.unwrap(), Pull::End);
    let refused = refused(&log, 3..4).await;
    assert!(refused.to_string().contains("closed"), "{refused}");
}

#[tokio::test]
async fn b03_a_sync_that_fails_is_final_and_ends_the_source() {
    for op in [Op::Write, Op::Sync] {
        let disk = SimDisk::new(1);
        let log = open(&disk, small());
        append(&log, 0..3).await;
        let mut source = log.source("c").unwrap();
        disk.fails_next(op, std::io::ErrorKind::Other);
        assert!(matches!(refused(&log, 3..4).await, AppendError::Failed(_)));
        let again = refused(&log, 4..5).await;
        assert!(again.to_string().contains("second try"), "{again}");
        let mut taken = Vec::new();
        source.pull(&mut taken).await.unwrap();
        assert_eq!(taken.len(), 3, "what was durable is given");
        let error = source.pull(&mut taken).await.unwrap_err();
        assert!(error.to_string().contains("stores nothing more"), "{error}");
        assert!(log.standing().failure.is_some());
    }
}

#[tokio::test]
async fn d08_a_source_says_how_far_it_is_behind_and_what_is_open() {
    let disk = SimDisk::new(1);
    let log = open(&disk, small());
    append(&log, 0..10).await;
    let mut source = log.source("c").unwrap();
    let committer = source.committer().unwrap();
    let standing = |committer: &dyn Committer| committer.partitions()[0];
    assert_eq!(standing(&*committer).lag, Some(10));
    committer.commit().await.unwrap();
    read_to(&mut source, 11).await;
    append(&log, 10..13).await;
    [1, 2, 4].iter().for_each(|position| settle(&source, *position));
    let found = standing(&*committer);
    assert_eq!((found.oldest_open, found.next, found.lag), (3, 11, Some(3)));
    assert_eq!(committer.standing().repeated_at_most, 10);
}

#[tokio::test]
async fn c16_a_consumer_resumes_behind_what_is_done_and_says_what_it_found() {
    let disk = SimDisk::new(1);
    let log = open(&disk, small());
    append(&log, 0..10).await;
    let mut source = log.source("c").unwrap();
    let committer = source.committer().unwrap();
    assert_eq!(committer.standing().resumed, None);
    committer.commit().await.unwrap();
    read_to(&mut source, 11).await;
    for position in (1..=10).filter(|position| ![3, 7].contains(position)) {
        settle(&source, position);
    }
    committer.commit().await.unwrap();
    drop((source, committer, log));
    let log = open(&disk.crash(), small());
    let mut source = log.source("c").unwrap();
    let resumed = source.committer().unwrap().standing().resumed;
    assert_eq!(resumed, Some(Resumed { partitions: 1, files: 0, done: 6, again_at_most: 2 }));
    append(&log, 10..11).await;
    let again: Vec<_> = read_to(&mut source, 12).await.into_iter().map(|item| item.0).collect();
    assert_eq!(again, [3, 7, 11]);
}

#[tokio::test]
async fn b03_a_consumer_has_one_source_and_a_name_that_a_file_can_have() {
    let disk = SimDisk::new(1);
    let log = open(&disk, small());
    let first = log.source("c").unwrap();
    let error = log.source("c").unwrap_err();
    assert!(error.to_string().contains("another source"), "{error}");
    drop(first);
    drop(log.source("c").unwrap());
    for name in ["", "../x", "a/b", ".hidden", "ä"] {
        let error = log.source(name).unwrap_err();
        assert!(error.to_string().contains("letters, digits"), "{error}");
    }
}

#[tokio::test]
async fn b03_more_than_the_log_takes_at_once_is_refused_for_good() {
    let disk = SimDisk::new(1);
    let log = open(&disk, super::super::LogOptions { max_append_bytes: 1_000, ..small() });
    assert!(matches!(refused(&log, 0..4).await, AppendError::TooLarge { limit: 1_000, .. }));
    assert!(matches!(refused(&log, 0..40).await, AppendError::TooLarge { limit: 1_000, .. }));
    append(&log, 0..2).await;
}

#[tokio::test]
async fn z11_an_append_that_is_larger_than_a_segment_and_what_may_wait_passes_alone() {
    let disk = SimDisk::new(1);
    let log = open(&disk, super::super::LogOptions { waiting_bytes: 1_000, ..small() });
    let large = crate::event::Event::builder("large", "/test", "test")
        .data_binary(vec![7; 100_000])
        .build()
        .unwrap();
    append(&log, 0..1).await;
    log.append(vec![large.clone()]).await.unwrap();
    append(&log, 1..2).await;
    let ids: Vec<_> = read_all(&log).await.into_iter().map(|item| item.1).collect();
    assert_eq!(ids, ["0", "large", "1"]);
}
