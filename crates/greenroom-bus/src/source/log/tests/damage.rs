//! On real files, which tests can cut and change.

use std::{fs, path::PathBuf, time::Duration};

use super::{
    super::{Damage, EventLog, LogError, LogOptions, SegmentLog, back_up, inspect},
    support::*,
};

fn options() -> LogOptions {
    LogOptions { segment_bytes: 16 * 1024, ..LogOptions::default() }
}

/// A log of three blocks of four events, its only segment, and where its blocks begin.
async fn three_blocks() -> (tempfile::TempDir, PathBuf, Vec<usize>) {
    let directory = tempfile::tempdir().unwrap();
    let log = SegmentLog::open(directory.path().join("log"), options()).unwrap();
    for n in 0..3 {
        append(&log, n * 4..n * 4 + 4).await;
    }
    let segment = directory.path().join("log/00000000000000000001.segment");
    let bytes = fs::read(&segment).unwrap();
    let blocks: Vec<_> = memchr::memmem::find_iter(&bytes, b"GRBK").collect();
    assert_eq!(blocks.len(), 3);
    crash(log, &segment, &bytes).await;
    (directory, segment, blocks)
}

/// As `kill -9` would leave it: without the mark of an orderly end.
async fn crash(log: SegmentLog, segment: &PathBuf, bytes: &[u8]) {
    log.close().await;
    drop(log);
    fs::write(segment, bytes).unwrap();
}

fn damage(path: &std::path::Path) -> Damage {
    match SegmentLog::open(path, options()) {
        Err(LogError::Damaged(damage)) => damage,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn b03_a_tail_that_is_torn_at_any_byte_costs_nothing_that_was_acknowledged() {
    let (directory, segment, blocks) = three_blocks().await;
    let whole = fs::read(&segment).unwrap();
    let path = directory.path().join("log");
    let end = whole.iter().rposition(|byte| *byte != 0).unwrap();
    for cut in (blocks[2]..end).step_by(7).chain([blocks[2] + 1, end]) {
        let mut torn = whole.clone();
        torn[cut..].fill(0);
        fs::write(&segment, &torn).unwrap();
        let log = SegmentLog::open(&path, options()).unwrap();
        assert_eq!(log.standing().next, 9, "cut at {cut}");
        // It goes on, and what it writes is found.
        append(&log, 100..102).await;
        assert_eq!(read_all(&log).await.len(), 10);
        log.close().await;
        drop(log);
        let log = SegmentLog::open(&path, options()).unwrap();
        assert_eq!(log.standing().next, 11);
        log.close().await;
    }
}

#[tokio::test]
async fn b03_damage_before_the_tail_refuses_the_log_and_changes_nothing() {
    let (directory, segment, blocks) = three_blocks().await;
    let whole = fs::read(&segment).unwrap();
    let path = directory.path().join("log");
    for (block, sequence) in [(0, 1), (1, 5)] {
        for at in (blocks[block]..blocks[block + 1] - 8).step_by(11) {
            let mut changed = whole.clone();
            changed[at] ^= 0x20;
            fs::write(&segment, &changed).unwrap();
            let found = damage(&path);
            assert_eq!((found.offset, found.sequence), (blocks[block] as u64, sequence), "{found}");
            assert_eq!(found.file, segment);
            assert_eq!(fs::read(&segment).unwrap(), changed);
        }
    }
    fs::write(&segment, &whole).unwrap();
    assert_eq!(SegmentLog::open(&path, options()).unwrap().standing().next, 13);
}

#[tokio::test]
async fn b03_a_segment_that_is_shorter_than_it_was_made_is_damage() {
    let (directory, segment, blocks) = three_blocks().await;
    let whole = fs::read(&segment).unwrap();
    let path = directory.path().join("log");
    for length in [0, 44, 63, 64, blocks[1], blocks[2], whole.len() - 1] {
        fs::write(&segment, &whole[..length]).unwrap();
        assert_eq!(damage(&path).file, segment, "{length} bytes");
        let copy = directory.path().join(format!("copy-{length}"));
        assert!(matches!(back_up(&path, &copy), Err(LogError::Damaged(_))), "{length} bytes");
    }
    // What is readable of it can be saved all the same.
    fs::write(&segment, &whole[..blocks[2]]).unwrap();
    let found = inspect(&path, |_, _| Ok(())).unwrap();
    assert_eq!((found.events, found.damage.len()), (8, 1), "{found:?}");
}

#[tokio::test]
async fn b03_after_an_orderly_end_damage_to_the_last_event_is_told_from_a_crash() {
    let (directory, segment, blocks) = three_blocks().await;
    let path = directory.path().join("log");
    let log = SegmentLog::open(&path, options()).unwrap();
    log.close().await;
    drop(log);
    let mut bytes = fs::read(&segment).unwrap();
    bytes[blocks[2] + 60] ^= 1;
    fs::write(&segment, bytes).unwrap();
    assert_eq!(damage(&path).sequence, 9);
}

#[tokio::test]
async fn b03_a_log_that_ends_before_what_a_consumer_has_taken_is_damaged() {
    let (directory, segment, blocks) = three_blocks().await;
    let path = directory.path().join("log");
    let log = SegmentLog::open(&path, options()).unwrap();
    consume(&log, "c").await;
    let mut bytes = fs::read(&segment).unwrap();
    crash(log, &segment, &bytes).await;
    bytes[blocks[2]..].fill(0);
    fs::write(&segment, bytes).unwrap();
    let found = damage(&path);
    assert_eq!(found.sequence, 9);
    assert!(found.what.contains("up to 12"), "{found}");
}

#[tokio::test]
async fn b03_a_segment_that_is_missing_is_damage() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let log = SegmentLog::open(&path, options()).unwrap();
    for n in 0..40 {
        append(&log, n * 4..n * 4 + 4).await;
    }
    let mut source = log.source("c").unwrap();
    read_to(&mut source, 2).await;
    drop(source);
    let segments = log.standing().segments;
    log.close().await;
    drop(log);
    assert!(segments >= 3);
    let mut names: Vec<_> = fs::read_dir(&path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "segment"))
        .collect();
    names.sort();
    let second = fs::read(&names[1]).unwrap();
    fs::remove_file(&names[1]).unwrap();
    assert!(damage(&path).what.contains("next segment begins"));
    fs::write(&names[1], second).unwrap();
    fs::remove_file(&names[0]).unwrap();
    assert!(damage(&path).what.contains("a consumer needs 1"));
}

#[tokio::test]
async fn b03_a_log_of_a_later_version_is_refused() {
    let (directory, segment, _) = three_blocks().await;
    let mut bytes = fs::read(&segment).unwrap();
    bytes[8] = 9;
    fs::write(&segment, bytes).unwrap();
    let error = SegmentLog::open(directory.path().join("log"), options()).unwrap_err();
    let told = error.to_string();
    assert!(told.contains("later version of greenroom (form 9, this one knows up to 1)"), "{told}");
}

#[tokio::test]
async fn b03_two_daemons_on_one_log_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let log = SegmentLog::open(directory.path(), options()).unwrap();
    let error = SegmentLog::open(directory.path(), options()).unwrap_err();
    assert!(matches!(error, LogError::InUse { .. }), "{error}");
    log.close().await;
    drop(log);
    SegmentLog::open(directory.path(), options()).unwrap();
}

#[tokio::test]
async fn b03_only_its_owner_reads_a_log() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/log");
    let log = SegmentLog::open(&path, options()).unwrap();
    append(&log, 0..1).await;
    consume(&log, "c").await;
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let mut paths = vec![path];
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            assert_eq!(mode(&path), 0o700, "{}", path.display());
            paths.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
    }
}

#[test]
fn b03_options_that_contradict_each_other_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    for (options, word) in [
        (LogOptions { segment_bytes: 1, ..options() }, "segment_bytes"),
        (LogOptions { max_bytes: 20_000, ..options() }, "max_bytes"),
        (LogOptions { waiting_events: 0, ..options() }, "waiting_events"),
        (LogOptions { max_append_bytes: u64::MAX, ..options() }, "max_append_bytes"),
    ] {
        let error = SegmentLog::open(directory.path(), options).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
    }
    let _ = (Duration::ZERO, |log: SegmentLog| log.describe());
}

/// A log of several segments, of which a consumer has read everything where that is wanted.
async fn several_segments(path: &std::path::Path, first: u32, consumed: bool) -> Vec<PathBuf> {
    let log = SegmentLog::open(path, options()).unwrap();
    for n in 0..60 {
        append(&log, first + n * 4..first + n * 4 + 4).await;
    }
    if consumed {
        consume(&log, "c").await;
    }
    log.close().await;
    drop(log);
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|it| it == "segment");
    let mut segments: Vec<_> = entries.filter(is_segment).collect();
    segments.sort();
    segments
}

/// What opens a log, looks at it and copies it say the same of a segment of another log, and that
/// segment is the one that they blame, whichever it is.
#[tokio::test]
async fn b03_a_segment_of_another_log_is_blamed_by_a_start_a_look_and_a_copy() {
    let directory = tempfile::tempdir().unwrap();
    let other = several_segments(&directory.path().join("other"), 10_000, false).await;
    let last = other.len() - 1;
    for place in 0..=last {
        let path = directory.path().join(format!("log-{place}"));
        let own = several_segments(&path, 0, true).await;
        assert_eq!(own.len(), other.len());
        fs::copy(&other[place], &own[place]).unwrap();
        is_blamed_by_all(&path, &own[place]);
    }
    // Of one segment and more foreign ones behind it, the consumer says which are foreign.
    let path = directory.path().join("two");
    let own = several_segments(&path, 0, true).await;
    assert!(last >= 2);
    for (to, from) in own.iter().zip(&other).skip(1) {
        fs::copy(from, to).unwrap();
    }
    is_blamed_by_all(&path, &own[1]);
    // With no consumer, and as many of both: those behind the first.
    own[1..last].iter().for_each(|segment| fs::remove_file(segment).unwrap());
    fs::remove_file(path.join("consumers/c.checkpoint")).unwrap();
    is_blamed_by_all(&path, &own[last]);
    fs::remove_file(&own[last]).unwrap();
    SegmentLog::open(&path, options()).unwrap().close().await;
}

fn is_blamed_by_all(log: &std::path::Path, foreign: &PathBuf) {
    let found = damage(log);
    assert!(found.file == *foreign && found.what.contains("another log"), "{found}");
    let mut ids = Vec::new();
    let each = |_, event: &crate::event::Event| {
        ids.push(event.id().parse::<u32>().unwrap());
        Ok(())
    };
    let looked = inspect(log, each).unwrap();
    assert_eq!(looked.damage[0], found);
    assert!(!ids.is_empty() && ids.iter().all(|id| *id < 10_000), "{ids:?}");
    let copy = log.with_extension("copy");
    match back_up(log, &copy) {
        Err(LogError::Damaged(copied)) => assert_eq!(copied, found),
        other => panic!("{other:?}"),
    }
    fs::remove_dir_all(copy).unwrap();
}

fn all_files(directory: &std::path::Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(all_files(&path)),
            false => all.push((path.clone(), fs::read(&path).unwrap())),
        }
    }
    all.sort();
    all
}

/// "nothing was changed" is true: no segment is made, no tail is cut, nothing is cleared away.
#[tokio::test]
async fn b03_a_log_that_is_refused_is_as_it_was() {
    let (directory, segment, blocks) = three_blocks().await;
    let path = directory.path().join("log");
    let log = SegmentLog::open(&path, options()).unwrap();
    consume(&log, "c").await;
    log.close().await;
    drop(log);
    let whole = fs::read(&segment).unwrap();
    let refused = || {
        let before = all_files(&path);
        damage(&path);
        assert_eq!(all_files(&path), before);
    };
    // The consumer has taken what a torn tail has lost.
    let mut torn = whole.clone();
    torn[blocks[2] + 60..].fill(0);
    fs::write(&segment, torn).unwrap();
    fs::write(path.join("next.tmp"), "begun").unwrap();
    fs::write(path.join("spare"), "of another size").unwrap();
    refused();
    // Every segment is missing.
    fs::remove_file(&segment).unwrap();
    refused();
}
