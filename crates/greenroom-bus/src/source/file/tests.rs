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

fn form(options: FileSourceOptions) -> Form {
    Form::new(options.max_event, options.records, Path::new("x"), None)
}

async fn drain(source: &mut FileSource) -> (Vec<Taken>, Option<SourceError>) {
    let mut taken = Vec::new();
    loop {
        match source.pull(&mut taken).await {
            Ok(Pull::More) => {}
            Ok(Pull::End) => return (taken, None),
            Ok(Pull::Revoke) => unreachable!("a file is one partition"),
            Err(error) => return (taken, Some(error)),
        }
    }
}

async fn read_with(bytes: &[u8], max_event: usize) -> (Vec<Taken>, Option<SourceError>) {
    let (_dir, path) = file(bytes);
    drain(
        &mut FileSource::open(
            path,
            FileSourceOptions { max_event, ..FileSourceOptions::default() },
        )
        .unwrap(),
    )
    .await
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
        assert!(taken.len() > 10_000, "{}", taken.len());
        assert_eq!(shape(&taken), counted(taken.len() as u32));
        let next = format!("in line {}, from byte ", taken.len() + 1);
        assert!(error.contains(&next) && error.contains("run again"), "{error}");
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

/// The letter's words for a line of so many bytes, all of them the same.
fn cut(line: &[u8], max_event: usize) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA256, line);
    let hash: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "the line has {} bytes, more than `max_event` ({max_event}): it is cut, and its first {max_event} bytes are kept; \
         sha256 of the whole line: {hash}",
        line.len()
    )
}

#[tokio::test]
async fn d04_of_a_line_above_max_event_the_beginning_is_kept_with_its_length_and_hash() {
    const MOST: usize = 1 << 20;
    for (length, end) in [(20 << 20, "\n"), (MOST + 1, "\n"), (MOST + 1, "\r\n"), (2 << 20, "")] {
        let long: Vec<u8> = (0..length).map(|n: usize| b'a' + (n % 26) as u8).collect();
        let mut bytes = [&lines(1..=1)[..], &long, end.as_bytes()].concat();
        if !end.is_empty() {
            bytes.extend(lines(3..=3));
        }
        let (taken, error) = read_with(&bytes, MOST).await;
        assert!(error.is_none(), "{error:?}");
        let no_event = taken[1].event.as_ref().unwrap_err();
        assert!(no_event.too_large && no_event.raw == long[..MOST]);
        let whole = [&long[..], end.strip_suffix('\n').unwrap_or(end).as_bytes()].concat();
        assert_eq!(no_event.reason, cut(&whole, MOST));
        let after = taken.get(2).map(|taken| taken.position);
        assert_eq!(after, (!end.is_empty()).then_some(3));
    }
}

#[tokio::test]
async fn d04_of_lines_above_max_event_the_next_one_is_read_and_no_further_one() {
    const LINE: usize = 2 << 20;
    let line = [&vec![b'x'; LINE - 1][..], b"\n"].concat();
    let input = io::Cursor::new(line.repeat(40));
    let options = FileSourceOptions { max_event: 1 << 20, ..FileSourceOptions::default() };
    let mut source = FileSource::start("file:x".into(), form(options), input, true, None).unwrap();
    let mut taken = Vec::new();
    source.pull(&mut taken).await.unwrap();
    // Gives the thread the time in which it would read a quarter of the input.
    ring::digest::digest(&ring::digest::SHA256, &line.repeat(10));
    let read = source.read.load(Ordering::Relaxed) as usize;
    assert!(read < 3 * LINE, "{read}");
    let (rest, error) = drain(&mut source).await;
    assert_eq!((taken.len() + rest.len(), error.is_none()), (40, true));
}

#[tokio::test]
async fn d04_lines_of_exactly_max_event_are_read_whole_with_whatever_line_end() {
    let line = line(1);
    for end in ["\n", "\r\n", "", "\r"] {
        let (taken, error) = read_with((line.clone() + end).as_bytes(), line.len()).await;
        assert!(error.is_none() && taken[0].event.is_ok(), "{end:?}: {taken:?}");
        let (taken, _) = read_with((line.clone() + end).as_bytes(), line.len() - 1).await;
        let no_event = taken[0].event.as_ref().unwrap_err();
        assert!(no_event.too_large && no_event.raw.len() == line.len() - 1, "{end:?}");
    }
}

/// A line that never ends, as large as anybody reads.
struct OneLine {
    left: usize,
}

impl Read for OneLine {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = buffer.len().min(self.left);
        buffer[..count].fill(b'x');
        self.left -= count;
        Ok(count)
    }
}

#[test]
fn d04_a_line_of_any_length_takes_no_more_memory_than_an_event_may() {
    const MOST: usize = 4 << 20;
    let mut given = 0;
    let mut capacity = 0;
    let mut chunks = Chunks::new(MOST, |chunk| {
        if let chunks::Chunk::TooLong(line) = chunk {
            capacity = line.malformed().raw.capacity();
            given += 1;
        }
        true
    });
    chunks.observe(&mut OneLine { left: 40 << 20 }, |pending| {
        assert!(pending.capacity() <= MOST + 2 * 256 * 1024, "{}", pending.capacity());
    });
    drop(chunks);
    assert_eq!(given, 1);
    assert!(capacity <= MOST + 2 * 256 * 1024, "{capacity}");
}

#[tokio::test]
async fn a_truncated_archive_never_settles_the_line_it_cut() {
    let plain = lines(1..=3);
    for whole in [gzip(&plain), zstd(&plain)] {
        for cut in 5..whole.len() {
            let (taken, error) = read_with(&whole[..cut], 1 << 20).await;
            assert!(error.is_some(), "cut at {cut}");
            let events = taken.iter().filter(|taken| taken.event.is_ok()).count();
            assert_eq!(shape(&taken), counted(events as u32), "cut at {cut}");
        }
    }
}

/// Gives some bytes, and then fails.
struct Failing(io::Cursor<Vec<u8>>);

impl Read for Failing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::Error::other("the disk is gone")),
            count => Ok(count),
        }
    }
}

#[tokio::test]
async fn a_line_that_a_read_error_cut_is_not_taken() {
    let mut bytes = lines(1..=2);
    let at = bytes.len();
    bytes.extend_from_slice(line(3).as_bytes());
    for more in [0, 3 << 20] {
        let mut bytes = bytes.clone();
        bytes.resize(bytes.len() + more, b' ');
        let options = FileSourceOptions { max_event: 1 << 20, ..FileSourceOptions::default() };
        let input = Failing(io::Cursor::new(bytes));
        let mut source =
            FileSource::start("file:x".into(), form(options), input, true, None).unwrap();
        let (taken, error) = drain(&mut source).await;
        assert_eq!(shape(&taken), counted(2));
        let error = error.unwrap().to_string();
        let place =
            format!("file:x: reading failed in line 3, from byte {at} on: the disk is gone");
        assert!(error.starts_with(&place) && error.contains("run again"), "{error}");
    }
}

#[tokio::test]
async fn an_input_that_is_cut_while_it_is_read_ends_with_an_error() {
    let bytes = lines(1..=50_000);
    let (_dir, path) = file(&bytes);
    let mut source = FileSource::open(&path, FileSourceOptions::default()).unwrap();
    let mut taken = Vec::new();
    source.pull(&mut taken).await.unwrap();
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(10).unwrap();
    let (rest, error) = drain(&mut source).await;
    let error = error.unwrap().to_string();
    let expected = format!("it has 10 bytes, and had {}", bytes.len());
    assert!(error.contains("cut while it was read") && error.contains(&expected), "{error}");
    taken.extend(rest);
    assert_eq!(shape(&taken), counted(taken.len() as u32), "no line was torn");
}

#[tokio::test]
async fn what_else_follows_a_gzip_archive_is_an_error_after_its_lines() {
    let archive = gzip(&lines(1..=10));
    for garbage in [&b"garbage garbage"[..], b"\0\0garbage garbage", b"\x1fgarbage garbage"] {
        let (taken, error) = read_with(&[&archive[..], garbage].concat(), 1 << 20).await;
        assert_eq!(shape(&taken), counted(10));
        let error = error.unwrap().to_string();
        assert!(error.contains("the gzip archive is damaged: "), "{error}");
    }
}

#[tokio::test]
async fn errors_of_zstd_are_sentences() {
    let whole = zstd(&lines(1..=1_000));
    for at in 4..whole.len().min(200) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        let (_, Some(error)) = read_with(&bytes, 1 << 20).await else { continue };
        let error = error.to_string();
        let debug = ["{", "Error", "Failed to", "::"];
        assert!(!debug.iter().any(|mark| error.contains(mark)), "{error}");
    }
}

#[tokio::test]
async fn b01_a_zstd_window_that_is_too_large_is_no_damage() {
    // A frame whose window has 512 MiB.
    let bytes = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 19 << 3, 0, 0, 0, 0];
    let (_, error) = read_with(&bytes, 1 << 20).await;
    let error = error.unwrap().to_string();
    assert!(error.contains("needs a window of 512 MiB, and at most 128 MiB is given"), "{error}");
    assert!(!error.contains("damaged") && !error.contains("restore"), "{error}");
}

#[tokio::test]
async fn b01_nuls_at_the_head_of_a_line_are_no_part_of_it() {
    let bytes =
        [&vec![0; 3 << 20], &lines(1..=2)[..], &[0; 9], &lines(3..=3), &[0; 5_000]].concat();
    let (taken, error) = read_with(&bytes, 1 << 20).await;
    assert!(error.is_none());
    assert_eq!(shape(&taken), counted(3));
}

#[tokio::test]
async fn a_pipe_without_a_writer_holds_up_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    let mut source = FileSource::open(&path, FileSourceOptions::default()).unwrap();
    let mut taken = Vec::new();
    {
        let mut pull = source.pull(&mut taken);
        let polled =
            std::future::poll_fn(|context| std::task::Poll::Ready(pull.as_mut().poll(context)));
        assert!(polled.await.is_pending());
    }
    let writer = thread::spawn(move || fs::write(path, lines(1..=2)).unwrap());
    let (taken, error) = drain(&mut source).await;
    writer.join().unwrap();
    assert!(error.is_none());
    assert_eq!(shape(&taken), counted(2));
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
    let source =
        FileSource::start("file:x".into(), form(options), Endless(sender), false, None).unwrap();
    assert!(ended.try_recv().is_err());
    drop(source);
    assert_eq!(ended.recv_timeout(Duration::from_secs(10)), Ok(()));
}

#[tokio::test]
async fn b01_what_several_threads_parse_comes_in_the_order_of_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("large.ndjson");
    let padding = "x".repeat(4_000);
    let line = |number: u64| match number % 1_000 {
        500 => "\n".to_owned(),
        700 => format!("{{\"id\":\"{padding}\n"),
        _ => {
            let (event, data) = (r#"{"specversion":"1.0","source":"/","type":"t","id":"#, &padding);
            format!("{event}\"{number}\",\"data\":[\"{data}\"]}}\n")
        }
    };
    // As many chunks again as pass before others help.
    let lines = 3_000;
    fs::write(&path, (1..=lines).map(line).collect::<String>()).unwrap();
    let mut source = FileSource::open(&path, FileSourceOptions::default()).unwrap();
    let mut taken = Vec::new();
    while source.pull(&mut taken).await.unwrap() == Pull::More {}
    let expected: Vec<u64> = (1..=lines).filter(|number| number % 1_000 != 500).collect();
    assert_eq!(taken.iter().map(|item| item.position).collect::<Vec<_>>(), expected);
    for item in &taken {
        match &item.event {
            Ok(event) => assert_eq!(event.id(), item.position.to_string()),
            Err(malformed) => {
                assert_eq!(item.position % 1_000, 700);
                assert_eq!(malformed.raw.len(), line(item.position).len() - 1);
            }
        }
    }
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
        FileSource::start("file:-".into(), form(options), Pieces(pieces), false, None).unwrap();
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
