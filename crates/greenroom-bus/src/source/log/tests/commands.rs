//! Looks, copies and compaction, on real files.

use std::{fs, path::Path, time::Duration};

use super::{
    super::{EventLog, LogOptions, SegmentLog, back_up, inspect, is_log},
    support::*,
};

fn options() -> LogOptions {
    LogOptions { segment_bytes: 16 * 1024, ..LogOptions::default() }
}

async fn filled(path: &Path) -> SegmentLog {
    let log = SegmentLog::open(path, options()).unwrap();
    for n in 0..40 {
        append(&log, n * 4..n * 4 + 4).await;
    }
    log
}

#[tokio::test]
async fn b03_a_look_at_a_log_says_what_is_in_it() {
    let directory = tempfile::tempdir().unwrap();
    assert!(!is_log(directory.path()));
    let log = filled(directory.path()).await;
    consume(&log, "c").await;
    append(&log, 200..205).await;
    let mut ids = Vec::new();
    let each = |sequence, event: &crate::event::Event| {
        ids.push((sequence, event.id().to_owned()));
        Ok(())
    };
    let found = inspect(directory.path(), each).unwrap();
    assert!(is_log(directory.path()));
    assert_eq!(ids, read_all(&log).await);
    assert_eq!((found.events, found.first, found.next), (165, 1, 166));
    assert_eq!((found.consumers[0].name.as_str(), found.consumers[0].oldest_open), ("c", 161));
    assert!(found.is_in_use && !found.is_torn && found.damage.is_empty(), "{found:?}");
    assert!(found.oldest <= found.youngest && found.oldest.is_some());
}

#[tokio::test]
async fn b03_what_is_readable_of_a_damaged_log_can_be_saved() {
    let directory = tempfile::tempdir().unwrap();
    let log = filled(directory.path()).await;
    log.close().await;
    drop(log);
    let segment = directory.path().join("00000000000000000001.segment");
    let mut bytes = fs::read(&segment).unwrap();
    let blocks: Vec<_> = memchr::memmem::find_iter(&bytes, b"GRBK").collect();
    bytes[blocks[1] + 50] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let mut sequences = Vec::new();
    let each = |sequence, _: &crate::event::Event| {
        sequences.push(sequence);
        Ok(())
    };
    let found = inspect(directory.path(), each).unwrap();
    let expected: Vec<u64> = (1..=160).filter(|n| !(5..9).contains(n)).collect();
    assert_eq!(sequences, expected);
    assert_eq!(found.damage.len(), 1, "{:?}", found.damage);
    assert_eq!((found.damage[0].sequence, found.damage[0].offset), (5, blocks[1] as u64));
}

#[tokio::test]
async fn b03_a_copy_of_a_log_that_is_written_is_a_log() {
    let directory = tempfile::tempdir().unwrap();
    let (path, to) = (directory.path().join("log"), directory.path().join("copy"));
    let log = filled(&path).await;
    consume(&log, "c").await;
    let writes = tokio::spawn({
        let log = log.clone();
        async move {
            for n in 100..160 {
                append(&log, n * 4..n * 4 + 4).await;
            }
        }
    });
    let copied = {
        let (path, to) = (path.clone(), to.clone());
        tokio::task::spawn_blocking(move || back_up(&path, &to)).await.unwrap().unwrap()
    };
    writes.await.unwrap();
    assert!(copied >= 161);
    let copy = SegmentLog::open(&to, options()).unwrap();
    let all = read_all(&log).await;
    assert_eq!(read_all(&copy).await, all[..copied as usize - 1]);
    assert_eq!(copy.standing().consumers[0].oldest_open, 161);
    assert_eq!(append(&copy, 0..160).await.repeated, 160);
    let error = back_up(&path, &to).unwrap_err();
    assert!(error.to_string().contains("empty"), "{error}");
}

#[tokio::test]
async fn b03_compaction_removes_what_everybody_is_done_with() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let log = filled(path).await;
    let in_use = SegmentLog::compact(path, Duration::ZERO).unwrap_err();
    assert!(in_use.to_string().contains("in use"), "{in_use}");
    drop(log.source("c").unwrap());
    log.close().await;
    drop(log);
    let (before, after) = SegmentLog::compact(path, Duration::ZERO).unwrap();
    assert_eq!((before.segments, before.first), (after.segments, after.first));
    let log = SegmentLog::open(path, options()).unwrap();
    consume(&log, "c").await;
    log.close().await;
    drop(log);
    let (_, kept) = SegmentLog::compact(path, Duration::from_secs(3_600)).unwrap();
    assert_eq!(kept.first, 1);
    let (_, after) = SegmentLog::compact(path, Duration::ZERO).unwrap();
    assert_eq!((after.segments, after.next), (1, 161));
    assert!(!path.join("spare").exists());
    let log = SegmentLog::open(path, options()).unwrap();
    assert_eq!(append(&log, 0..160).await.repeated, 160, "{}", log.describe());
}
