use std::{fs, io::Write, path::PathBuf, sync::mpsc as std_mpsc, time::Duration};

use flate2::{Compression, write::GzEncoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tempfile::TempDir;

use super::*;

pub(super) fn line(id: u32) -> String {
    format!(r#"{{"specversion":"1.0","id":"{id}","source":"s","type":"t"}}"#)
}

pub(super) fn lines(ids: std::ops::RangeInclusive<u32>) -> Vec<u8> {
    ids.map(|id| line(id) + "\n").collect::<String>().into_bytes()
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

pub(super) fn file(bytes: &[u8]) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("in");
    fs::write(&path, bytes).unwrap();
    (dir, path)
}

async fn drain(source: &mut FileSource) -> (Vec<Taken>, Option<SourceError>) {
    let mut taken = Vec::new();
    loop {
        match source.pull(&mut taken).await {
            Ok(Pull::More) => {}
            Ok(Pull::End) => return (taken, None),
            Err(error) => return (taken, Some(error)),
        }
    }
}

async fn read_with(bytes: &[u8], max_event: usize) -> (Vec<Taken>, Option<SourceError>) {
    let (_dir, path) = file(bytes);
    drain(&mut FileSource::open(path, FileSourceOptions { max_event }).unwrap()).await
}

async fn read(bytes: &[u8]) -> Vec<Taken> {
    let (taken, error) = read_with(bytes, FileSourceOptions::default().max_event).await;
    assert!(error.is_none(), "{error:?}");
    taken
}

/// Position and id, or position and the reason why there is none.
fn shape(taken: &[Taken]) -> Vec<(u64, String)> {
    let text = |taken: &Taken| match &taken.event {
        Ok(event) => event.id().to_owned(),
        Err(malformed) => malformed.reason.clone(),
    };
    taken.iter().map(|taken| (taken.position, text(taken))).collect()
}

fn counted(count: u32) -> Vec<(u64, String)> {
    (1..=count).map(|id| (id.into(), id.to_string())).collect()
}

#[tokio::test]
async fn b01_plain_gzip_and_zstd_are_told_apart_by_their_content() {
    let plain = lines(1..=10_000);
    for bytes in [plain.clone(), gzip(&plain), zstd(&plain)] {
        assert_eq!(shape(&read(&bytes).await), counted(10_000));
    }
}

#[tokio::test]
async fn b01_all_members_and_frames_of_an_archive_are_read() {
    let (first, second) = (lines(1..=3_000), lines(3_001..=6_000));
    let (cut, rest) = second.split_at(1_000);
    let skippable = [0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, b'a', b'b', b'c'];
    let zstd = [&skippable[..], &zstd(&first), &zstd(b""), &skippable[..], &zstd(cut), &zstd(rest)]
        .concat();
    let gzip = [gzip(&first), gzip(cut), gzip(rest)].concat();
    for bytes in [gzip, zstd] {
        assert_eq!(shape(&read(&bytes).await), counted(6_000));
    }
}

#[tokio::test]
async fn b01_what_was_whole_of_a_truncated_archive_is_delivered_then_an_error() {
    let plain: Vec<u8> = (1..=50_000_u32)
        .flat_map(|id| {
            let noise = id.wrapping_mul(2_654_435_761);
            format!("{{\"specversion\":\"1.0\",\"id\":\"{id}\",\"source\":\"{noise}\",\"type\":\"t\"}}\n")
                .into_bytes()
        })
        .collect();
    for (kind, bytes) in [("gzip", gzip(&plain)), ("zstd", zstd(&plain))] {
        let (taken, error) = read_with(&bytes[..bytes.len() / 2], 1 << 20).await;
        let error = error.unwrap().to_string();
        assert!(error.contains(&format!("the {kind} archive is")), "{error}");
        let (torn, whole) = taken.split_last().unwrap();
        assert!(whole.len() > 10_000, "{}", whole.len());
        assert_eq!(shape(whole), counted(whole.len() as u32));
        if let Err(malformed) = &torn.event {
            assert!(malformed.reason.contains("cut off"), "{}", malformed.reason);
        }
    }
}

#[tokio::test]
async fn b01_a_damaged_archive_is_an_error() {
    let plain = lines(1..=1_000);
    for mut bytes in [gzip(&plain), zstd(&plain)] {
        let end = bytes.len() - 3;
        bytes[end] ^= 0xff;
        let (_, error) = read_with(&bytes, 1 << 20).await;
        assert!(error.unwrap().to_string().contains("damaged"));
    }
}

#[tokio::test]
async fn after_an_error_the_source_has_ended() {
    let bytes = gzip(&lines(1..=10));
    let (_dir, path) = file(&bytes[..bytes.len() - 4]);
    let mut source = FileSource::open(path, FileSourceOptions::default()).unwrap();
    let (taken, error) = drain(&mut source).await;
    assert!(taken.len() == 10 && error.is_some());
    assert_eq!(source.pull(&mut Vec::new()).await.unwrap(), Pull::End);
}

#[tokio::test]
async fn b01_blank_lines_count_and_are_skipped() {
    let bytes = format!("\n{}\n \t\n\n{}", line(2), line(5));
    let expected = [(2, "2".to_owned()), (5, "5".to_owned())];
    assert_eq!(shape(&read(bytes.as_bytes()).await), expected);
    assert!(read("\n".repeat(20_000).as_bytes()).await.is_empty());
}

#[tokio::test]
async fn b01_an_empty_file_ends_at_once() {
    assert!(read(b"").await.is_empty());
    assert!(read(&gzip(b"")).await.is_empty());
    assert!(read(&zstd(b"")).await.is_empty());
}

#[tokio::test]
async fn b01_a_byte_order_mark_and_carriage_returns_are_tolerated() {
    let bytes = format!("\u{feff}{}\r\n\r\n{}\r\n", line(1), line(3));
    let expected = [(1, "1".to_owned()), (3, "3".to_owned())];
    assert_eq!(shape(&read(bytes.as_bytes()).await), expected);
}

#[tokio::test]
async fn d04_malformed_lines_keep_their_bytes_and_do_not_stop_the_source() {
    let bytes = [
        &lines(1..=1)[..],
        b"{\"id\":\"\xff\"}\n{]\r\n{\"specversion\":\"1.0\",\"id\":\"4\",\"source\":\"s\"}\n",
        &lines(5..=5),
    ]
    .concat();
    let taken = read(&bytes).await;
    let expected = [
        "1",
        "invalid UTF-8 at column 8",
        "no JSON event: key must be a string at column 2",
        "required attribute `type` is missing",
        "5",
    ];
    let reasons: Vec<String> = shape(&taken).into_iter().map(|(_, text)| text).collect();
    assert_eq!(reasons, expected);
    let raw = |at: usize| taken[at].event.as_ref().unwrap_err().raw.as_slice();
    assert_eq!((raw(1), raw(2)), (&b"{\"id\":\"\xff\"}"[..], &b"{]"[..]));
}

#[tokio::test]
async fn d04_a_line_above_max_event_is_malformed_with_its_bytes() {
    let long = vec![b'x'; 20 << 20];
    let bytes = [&lines(1..=1)[..], &long, b"\n", &lines(3..=3)].concat();
    let (taken, error) = read_with(&bytes, 1 << 20).await;
    assert!(error.is_none());
    let malformed = taken[1].event.as_ref().unwrap_err();
    assert_eq!(malformed.raw.len(), long.len());
    assert_eq!(malformed.reason, "the line has 20971520 bytes, more than `max_event` (1048576)");
    assert_eq!((taken[0].position, taken[2].position, taken.len()), (1, 3, 3));
}

#[tokio::test]
async fn d04_of_a_line_without_end_the_beginning_is_kept() {
    let long = vec![b'x'; 2 << 20];
    for ended in [true, false] {
        let mut bytes = [&lines(1..=1)[..], &long].concat();
        if ended {
            bytes.extend_from_slice(&[b"\n", &lines(3..=3)[..]].concat());
        }
        let (sender, mut chunks) = mpsc::channel(100);
        Chunks::new(move |chunk| sender.blocking_send(chunk).is_ok())
            .with_raw_limit(1 << 20)
            .spawn(io::Cursor::new(bytes));
        let mut endless = None;
        while let Some(chunk) = chunks.recv().await {
            if let chunks::Chunk::NoLine { raw, reason } = chunk {
                endless = Some((raw.len(), reason));
            }
        }
        let (kept, reason) = endless.unwrap();
        assert_eq!(kept, 1 << 20);
        assert_eq!(reason, "the line has 2097152 bytes; the first 1048576 are kept");
    }
}

impl<F: FnMut(chunks::Chunk) -> bool + Send + 'static> Chunks<F> {
    fn spawn(self, input: impl Read + Send + 'static) {
        thread::spawn(move || self.read(input));
    }
}

#[test]
fn b01_a_path_that_cannot_be_read_is_an_error_at_once() {
    let dir = tempfile::tempdir().unwrap();
    for path in [dir.path().join("missing"), dir.path().to_owned()] {
        let error =
            FileSource::open(&path, FileSourceOptions::default()).err().unwrap().to_string();
        let expected = format!("file:{}: cannot be read: ", path.display());
        assert!(error.starts_with(&expected) && error.contains("check the path"), "{error}");
    }
}

#[tokio::test]
async fn progress_reaches_one_at_the_end() {
    let (_dir, path) = file(&gzip(&lines(1..=10_000)));
    let mut source = FileSource::open(path, FileSourceOptions::default()).unwrap();
    assert!(source.replayable());
    assert!(drain(&mut source).await.1.is_none());
    assert_eq!(source.progress(), Some(1.0));
}

/// Endless lines, and word when its reader is gone.
struct Endless(std_mpsc::Sender<()>);

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        buffer.fill(b'\n');
        Ok(buffer.len())
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[test]
fn dropping_the_source_ends_its_thread() {
    let (sender, ended) = std_mpsc::channel();
    let options = FileSourceOptions::default();
    let source = FileSource::start("file:x".into(), options, Endless(sender), false, None).unwrap();
    assert!(ended.try_recv().is_err());
    drop(source);
    assert_eq!(ended.recv_timeout(Duration::from_secs(10)), Ok(()));
}

/// A pipe that gives one piece at a time, when it is told to.
struct Pieces(std_mpsc::Receiver<Vec<u8>>);

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Ok(piece) = self.0.recv() else { return Ok(0) };
        buffer[..piece.len()].copy_from_slice(&piece);
        Ok(piece.len())
    }
}

#[tokio::test]
async fn b01_lines_of_a_slow_pipe_come_at_once() {
    let (feed, pieces) = std_mpsc::channel();
    let options = FileSourceOptions::default();
    let mut source =
        FileSource::start("file:-".into(), options, Pieces(pieces), false, None).unwrap();
    assert!(!source.replayable() && source.progress().is_none());
    let text = lines(1..=2);
    feed.send(text[..4].to_vec()).unwrap();
    feed.send(text[4..60].to_vec()).unwrap();
    let mut taken = Vec::new();
    assert_eq!(source.pull(&mut taken).await.unwrap(), Pull::More);
    assert_eq!(shape(&taken), counted(1));
    feed.send(text[60..].to_vec()).unwrap();
    source.pull(&mut taken).await.unwrap();
    assert_eq!(shape(&taken), counted(2));
    drop(feed);
    assert_eq!(source.pull(&mut taken).await.unwrap(), Pull::End);
}
