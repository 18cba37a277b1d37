//! Lines that are no CloudEvents (M05).

use std::{fs, path::Path};

use super::{
    tests::{file, gzip},
    *,
};
use crate::{
    event::Event,
    record::{Pick, RecordPart},
    settlement::{Outcome, Settled},
};

fn options() -> FileSourceOptions {
    let kind = Pick::part(RecordPart::Pointer("/kind".parse().unwrap())).or("line");
    let mapping = Mapping::new(kind, Pick::part(RecordPart::Path))
        .content_type(Pick::literal("application/json"));
    FileSourceOptions { records: Some(Arc::new(mapping)), ..FileSourceOptions::default() }
}

async fn all(mut source: FileSource) -> Vec<Taken> {
    let mut taken = Vec::new();
    while source.pull(&mut taken).await.unwrap() == Pull::More {}
    taken
}

async fn read(path: &Path) -> Vec<Taken> {
    all(FileSource::open(path, options()).unwrap()).await
}

fn events(taken: &[Taken]) -> Vec<(u64, &Event)> {
    taken.iter().map(|taken| (taken.position, taken.event.as_ref().unwrap())).collect()
}

fn ids(taken: &[Taken]) -> Vec<String> {
    events(taken).iter().map(|(_, event)| event.id().to_owned()).collect()
}

const LINES: &[u8] = b"{\"kind\":\"a\"}\r\n\n{\"n\" : 1.0}\n{\"n\" : 1.0}";

#[tokio::test]
async fn m05_lines_become_events_by_the_rule() {
    let (_directory, path) = file(LINES);
    let taken = read(&path).await;
    let events = events(&taken);
    let shape: Vec<_> = events.iter().map(|(line, event)| (*line, event.ty())).collect();
    assert_eq!(shape, [(1, "a"), (3, "line"), (4, "line")], "blank lines count, and are skipped");
    assert_eq!(events[1].1.source(), path.display().to_string());
    assert_eq!(events[1].1.data_bytes().unwrap(), &b"{\"n\" : 1.0}"[..]);
    assert_ne!(events[1].1.id(), events[2].1.id(), "the same bytes on another line");
}

#[tokio::test]
async fn m05_ids_are_the_same_whenever_a_line_is_read_again() {
    let (directory, path) = file(LINES);
    let first = ids(&read(&path).await);
    fs::write(&path, [LINES, b"\n{\"kind\":\"more\"}\n"].concat()).unwrap();
    let grown = ids(&read(&path).await);
    assert_eq!((grown.len(), &grown[..3]), (4, &first[..]));
    let moved = directory.path().join("moved");
    fs::rename(&path, &moved).unwrap();
    assert_eq!(ids(&read(&moved).await), grown, "it is the same file");
    // With a checkpoint, what is read on has the ids that it would have had from the start.
    let checkpoint = directory.path().join("checkpoint");
    let mut source = FileSource::with_checkpoint(&moved, &checkpoint, options()).unwrap();
    let (committer, receipts) = (source.committer().unwrap(), source.receipts().unwrap());
    committer.commit().await.unwrap();
    let mut taken = Vec::new();
    source.pull(&mut taken).await.unwrap();
    for done in &taken[..2] {
        receipts.settled(done.position, Settled::Acknowledged(Outcome::Handled));
    }
    committer.commit().await.unwrap();
    committer.end();
    drop((source, committer, receipts));
    let resumed = FileSource::with_checkpoint(&moved, &checkpoint, options()).unwrap();
    let looking = FileSource::looking(&moved, &checkpoint, options()).unwrap();
    assert_eq!(ids(&all(looking).await), grown[2..]);
    drop(resumed);
}

#[tokio::test]
async fn m05_a_file_that_is_rewritten_has_other_ids() {
    let (_directory, path) = file(LINES);
    let before = ids(&read(&path).await);
    fs::write(&path, b"{\"kind\":\"b\"}\n\n{\"n\" : 2.0}\n").unwrap();
    let after = ids(&read(&path).await);
    assert!(after.iter().all(|id| !before.contains(id)), "{before:?} {after:?}");
}

#[tokio::test]
async fn m05_compressed_lines_are_numbered_as_they_are_read() {
    let (_directory, path) = file(&gzip(LINES));
    let taken = read(&path).await;
    let lines: Vec<_> = events(&taken).iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [1, 3, 4]);
    assert_eq!(ids(&taken), ids(&read(&path).await));
}

#[tokio::test]
async fn m05_a_line_that_cannot_be_mapped_keeps_its_bytes_and_says_why() {
    let (_directory, path) = file(b"plain text\n{\"kind\":[]}\n\xff{}\n{}\n");
    let taken = read(&path).await;
    let told: Vec<_> = taken.iter().filter_map(|taken| taken.event.as_ref().err()).collect();
    let raw: Vec<_> = told.iter().map(|malformed| &malformed.raw[..]).collect();
    assert_eq!(raw, [&b"plain text"[..], b"{\"kind\":[]}", b"\xff{}"]);
    for malformed in &told {
        assert!(malformed.reason.starts_with("attribute `type`: "), "{}", malformed.reason);
        assert!(malformed.reason.contains("`/kind`"), "{}", malformed.reason);
    }
    assert!(taken[3].event.is_ok());
}

#[tokio::test]
async fn m05_a_line_that_is_too_long_is_cut_as_any() {
    let (_directory, path) = file(&[&b"{}\n"[..], &[b'x'; 5_000], b"\n{}\n"].concat());
    let options = FileSourceOptions { max_event: 1_024, ..options() };
    let taken = all(FileSource::open(path, options).unwrap()).await;
    let too_large: Vec<_> =
        taken.iter().map(|taken| taken.event.as_ref().is_err_and(|m| m.too_large)).collect();
    assert_eq!(too_large, [false, true, false]);
}
