use std::{
    fs,
    io::{self, Write},
    path::Path,
    sync::{Arc, mpsc},
    time::Duration,
};

use greenroom_config::table::assert_options;
use parking_lot::Mutex;

use super::*;
use crate::{
    event::{Event, ExtensionValue},
    settlement::{Settle, Settled},
    sink::Rotate,
};

/// Longer than anything here may take; a test that gets there fails.
const PATIENCE: Duration = Duration::from_secs(10);

/// Tells how each settlement ended, in order.
struct Tell(mpsc::Sender<bool>);

impl Settle for Tell {
    fn settled(&self, how: Settled) {
        let _ = self.0.send(how.is_acknowledged());
    }
}

fn outgoing(id: u32, tell: &mpsc::Sender<bool>) -> Outgoing {
    let event = Event::builder(id.to_string(), "s", "t").data_json(&id).build().unwrap();
    let ack = Ack::new(Tell(tell.clone()));
    Outgoing { event, pool: "erp".into(), attempt: 2, line: None, fence: None, ack }
}

fn large(bytes: usize, tell: &mpsc::Sender<bool>) -> Outgoing {
    let event = Event::builder("1", "s", "t").data_json(&"x".repeat(bytes)).build().unwrap();
    Outgoing { event, ..outgoing(0, tell) }
}

fn open(path: &Path) -> FileSink {
    FileSink::open(&FileOutput::new(path)).unwrap()
}

fn ids(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'));
    text.lines().map(|line| Event::parse(line.as_bytes()).unwrap().id().to_owned()).collect()
}

/// A storage whose steps are seen and can be made to wait or fail.
#[derive(Clone, Default)]
struct Fake(Arc<Mutex<FakeState>>);

#[derive(Default)]
struct FakeState {
    bytes: Vec<u8>,
    synced: usize,
    syncs: usize,
    reverts: usize,
    fail_append: bool,
    fail_sync: bool,
    gate: Option<mpsc::Receiver<()>>,
}

impl Storage for Fake {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.0.lock();
        if state.fail_append {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        state.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let gate = self.0.lock().gate.take();
        if let Some(gate) = gate {
            let _ = gate.recv();
        }
        let mut state = self.0.lock();
        if state.fail_sync {
            return Err(io::Error::other("lost the disk"));
        }
        state.syncs += 1;
        state.synced = state.bytes.len();
        Ok(())
    }

    fn revert(&mut self) -> io::Result<()> {
        let mut state = self.0.lock();
        state.reverts += 1;
        let synced = state.synced;
        state.bytes.truncate(synced);
        Ok(())
    }
}

fn fake() -> (FileSink, Fake) {
    let fake = Fake::default();
    (FileSink::start("file:fake", fake.clone()).unwrap(), fake)
}

#[tokio::test]
async fn c12_lines_are_events_with_pool_and_attempt_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("done.ndjson");
    let (tell, told) = mpsc::channel();
    let sink = open(&path);
    for id in 0..5_000 {
        sink.accept(outgoing(id, &tell)).await;
    }
    sink.finish().await.unwrap();
    assert_eq!(told.try_iter().filter(|confirmed| *confirmed).count(), 5_000);
    let expected: Vec<String> = (0..5_000).map(|id: u32| id.to_string()).collect();
    assert_eq!(ids(&path), expected);
    let text = fs::read_to_string(&path).unwrap();
    let event = Event::parse(text.lines().next().unwrap().as_bytes()).unwrap();
    assert_eq!(event.extension("greenroompool"), Some(&ExtensionValue::from("erp")));
    assert_eq!(event.extension("greenroomattempt"), Some(&ExtensionValue::Integer(2)));
}

#[tokio::test]
async fn b05_appends_by_default_and_truncates_by_option() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("done.ndjson");
    let (tell, _told) = mpsc::channel();
    for (truncate, expected) in [(false, vec!["1"]), (false, vec!["1", "1"]), (true, vec!["1"])] {
        let sink = FileSink::open(&FileOutput { truncate, ..FileOutput::new(&path) }).unwrap();
        sink.accept(outgoing(1, &tell)).await;
        sink.finish().await.unwrap();
        assert_eq!(ids(&path), expected);
    }
}

#[tokio::test]
async fn b05_a_torn_last_line_is_cut_when_opened() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("done.ndjson");
    let (tell, _told) = mpsc::channel();
    let whole = r#"{"specversion":"1.0","id":"0","source":"s","type":"t"}"#;
    for torn in ["", "{", r#"{"specversion":"1.0","#, &format!("{{{}", "x".repeat(200_000))] {
        fs::write(&path, format!("{whole}\n{torn}")).unwrap();
        let sink = open(&path);
        sink.accept(outgoing(1, &tell)).await;
        sink.finish().await.unwrap();
        assert_eq!(ids(&path), ["0", "1"]);
    }
    fs::write(&path, "{\"torn").unwrap();
    open(&path).finish().await.unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"");
}

#[test]
fn a_file_that_is_no_output_is_not_cut() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("letter.txt");
    fs::write(&path, "dear all").unwrap();
    let error = FileSink::open(&FileOutput::new(&path)).err().unwrap().to_string();
    assert!(error.contains("letter.txt") && error.contains("another path"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"dear all");
}

#[test]
fn a_path_that_cannot_be_opened_is_an_error_at_once() {
    let dir = tempfile::tempdir().unwrap();
    for path in [dir.path().to_owned(), dir.path().join("none/x")] {
        let error = FileSink::open(&FileOutput::new(&path)).err().unwrap().to_string();
        assert!(
            error.starts_with(&format!("file:{}: cannot be opened", path.display())),
            "{error}"
        );
    }
}

#[tokio::test]
async fn b05_nothing_is_confirmed_before_the_sync() {
    let (sink, fake) = fake();
    let (open_gate, gate) = mpsc::channel();
    fake.0.lock().gate = Some(gate);
    let (tell, told) = mpsc::channel();
    sink.accept(outgoing(1, &tell)).await;
    while fake.0.lock().gate.is_some() {
        tokio::task::yield_now().await;
    }
    assert!(!fake.0.lock().bytes.is_empty(), "written, and waiting in the sync");
    assert!(told.try_recv().is_err());
    open_gate.send(()).unwrap();
    assert_eq!(told.recv_timeout(PATIENCE), Ok(true));
    assert_eq!(fake.0.lock().syncs, 1);
}

#[tokio::test]
async fn b05_is_confirmed_when_nothing_more_comes() {
    let (sink, fake) = fake();
    let (tell, told) = mpsc::channel();
    for id in 0..3 {
        sink.accept(outgoing(id, &tell)).await;
        assert_eq!(told.recv_timeout(PATIENCE), Ok(true), "without a finish");
    }
    assert_eq!(fake.0.lock().syncs, 3);
}

#[tokio::test]
async fn b05_many_lines_share_a_sync() {
    let (sink, fake) = fake();
    let (tell, told) = mpsc::channel();
    for id in 0..10_000 {
        sink.accept(outgoing(id, &tell)).await;
    }
    sink.finish().await.unwrap();
    assert_eq!(told.try_iter().filter(|confirmed| *confirmed).count(), 10_000);
    let syncs = fake.0.lock().syncs;
    assert!(syncs < 1_000, "{syncs}");
}

#[tokio::test]
async fn b05_a_full_sink_gives_back_and_waiting_is_cancel_safe() {
    let (sink, fake) = fake();
    let (open_gate, gate) = mpsc::channel();
    fake.0.lock().gate = Some(gate);
    let (tell, told) = mpsc::channel();
    sink.accept(outgoing(0, &tell)).await;
    while fake.0.lock().gate.is_some() {
        tokio::task::yield_now().await;
    }
    let mut accepted = 1;
    let given_back = loop {
        match sink.try_accept(large(1 << 20, &tell)) {
            Ok(()) => accepted += 1,
            Err(given_back) => break given_back,
        }
        assert!(accepted < 20, "unbounded");
    };
    let mut waiting = sink.accept(given_back);
    assert!(futures_poll(&mut waiting).is_none());
    drop(waiting);
    assert_eq!(told.try_recv(), Ok(false), "what was cancelled is refused");
    open_gate.send(()).unwrap();
    sink.finish().await.unwrap();
    assert_eq!(told.try_iter().filter(|confirmed| *confirmed).count(), accepted);
}

fn futures_poll<T>(future: &mut BoxFuture<'_, T>) -> Option<T> {
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut cx) {
        std::task::Poll::Ready(value) => Some(value),
        std::task::Poll::Pending => None,
    }
}

#[tokio::test]
async fn an_event_larger_than_the_queue_passes_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("done.ndjson");
    let (tell, told) = mpsc::channel();
    let sink = open(&path);
    sink.accept(large(20 << 20, &tell)).await;
    sink.accept(outgoing(2, &tell)).await;
    sink.finish().await.unwrap();
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [true, true]);
    assert_eq!(ids(&path), ["1", "2"]);
}

#[tokio::test]
async fn a_failed_write_refuses_all_and_cuts_back_to_what_was_confirmed() {
    let (sink, fake) = fake();
    let (tell, told) = mpsc::channel();
    sink.accept(outgoing(1, &tell)).await;
    assert_eq!(told.recv_timeout(PATIENCE), Ok(true));
    let confirmed = fake.0.lock().bytes.clone();
    fake.0.lock().fail_append = true;
    sink.accept(outgoing(2, &tell)).await;
    assert_eq!(told.recv_timeout(PATIENCE), Ok(false));
    assert!(sink.failure().unwrap().to_string().contains("file:fake: cannot be written"));
    assert!(sink.try_accept(outgoing(3, &tell)).is_ok());
    sink.accept(outgoing(4, &tell)).await;
    assert_eq!(told.recv_timeout(PATIENCE), Ok(false));
    assert_eq!(told.recv_timeout(PATIENCE), Ok(false));
    assert!(sink.finish().await.is_err());
    assert_eq!(fake.0.lock().bytes, confirmed);
}

#[tokio::test]
async fn a_failed_sync_takes_the_lines_back() {
    let (sink, fake) = fake();
    let (tell, told) = mpsc::channel();
    fake.0.lock().fail_sync = true;
    sink.accept(outgoing(1, &tell)).await;
    assert_eq!(told.recv_timeout(PATIENCE), Ok(false));
    assert!(sink.failure().unwrap().to_string().contains("lost the disk"));
    assert!(sink.finish().await.is_err());
    let state = fake.0.lock();
    assert!(state.bytes.is_empty() && state.reverts == 1);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_refuses_and_is_told() {
    let (tell, told) = mpsc::channel();
    let sink = open(Path::new("/dev/full"));
    sink.accept(outgoing(1, &tell)).await;
    assert_eq!(told.recv_timeout(PATIENCE), Ok(false));
    let error = sink.finish().await.unwrap_err().to_string();
    assert!(error.contains("/dev/full") && error.contains("No space left"), "{error}");
}

struct PanicOnSettle;

impl Settle for PanicOnSettle {
    fn settled(&self, _: Settled) {
        panic!("a settlement that panics");
    }
}

#[tokio::test]
async fn m03_a_panic_of_who_is_told_does_not_stop_the_writer() {
    let (sink, _fake) = fake();
    let (tell, told) = mpsc::channel();
    let (unheard, _) = mpsc::channel();
    let ack = Ack::new(PanicOnSettle);
    sink.accept(Outgoing { ack, ..outgoing(1, &unheard) }).await;
    sink.accept(outgoing(2, &tell)).await;
    sink.finish().await.unwrap();
    assert_eq!(told.recv_timeout(PATIENCE), Ok(true));
}

/// Accepts an event and waits until it is confirmed.
async fn confirmed(sink: &FileSink, id: u32) {
    let (tell, told) = mpsc::channel();
    sink.accept(outgoing(id, &tell)).await;
    assert_eq!(told.recv_timeout(PATIENCE), Ok(true), "{:?}", sink.failure());
}

#[tokio::test]
async fn two_writers_of_one_file_are_refused_before_the_second_cuts_anything() {
    let dir = tempfile::tempdir().unwrap();
    let (path, link) = (dir.path().join("done"), dir.path().join("link"));
    let sink = open(&path);
    confirmed(&sink, 1).await;
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"under way").unwrap();
    fs::hard_link(&path, &link).unwrap();
    let before = fs::read(&path).unwrap();
    for name in [&path, &link] {
        for truncate in [false, true] {
            let error =
                FileSink::open(&FileOutput { truncate, ..FileOutput::new(name) }).err().unwrap();
            assert!(error.reason.contains("writes it; wait for its end"), "{error}");
        }
    }
    assert_eq!(fs::read(&path).unwrap(), before);
    sink.finish().await.unwrap();
    open(&link).finish().await.unwrap();
}

#[tokio::test]
async fn an_output_that_was_removed_goes_on_in_a_new_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("done");
    let sink = open(&path);
    confirmed(&sink, 1).await;
    assert_eq!(sink.remark(), None);
    fs::remove_file(&path).unwrap();
    confirmed(&sink, 2).await;
    confirmed(&sink, 3).await;
    assert_eq!(ids(&path), ["2", "3"]);
    let remark = sink.remark().unwrap();
    assert!(remark.starts_with("it was removed while it was written"), "{remark}");
    sink.finish().await.unwrap();
}

#[tokio::test]
async fn rotated_files_hold_together_what_was_confirmed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("done");
    let sink = Arc::new(open(&path));
    let (tell, told) = mpsc::channel();
    let mut rotated = Vec::new();
    for id in 0..20_000 {
        if id % 1_000 == 999 && path.exists() {
            rotated.push(dir.path().join(format!("done.{}", rotated.len())));
            fs::rename(&path, rotated.last().unwrap()).unwrap();
            if id % 2_000 == 999 {
                sink.reopen();
            }
        }
        sink.accept(outgoing(id, &tell)).await;
    }
    sink.finish().await.unwrap();
    assert_eq!(told.try_iter().filter(|confirmed| *confirmed).count(), 20_000);
    let found: Vec<_> = rotated.iter().chain([&path]).flat_map(|path| ids(path)).collect();
    let expected: Vec<String> = (0..20_000).map(|id: u32| id.to_string()).collect();
    assert_eq!(found, expected);
    assert!(rotated.len() > 1);
}

#[tokio::test]
async fn reopening_makes_the_new_file_though_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let (path, old) = (dir.path().join("done"), dir.path().join("done.1"));
    let sink = open(&path);
    confirmed(&sink, 1).await;
    sink.reopen();
    confirmed(&sink, 2).await;
    assert_eq!(sink.remark(), None);
    fs::rename(&path, &old).unwrap();
    sink.reopen();
    sink.finish().await.unwrap();
    assert_eq!((ids(&old), ids(&path)), (vec!["1".to_owned(), "2".to_owned()], Vec::new()));
    assert!(sink.remark().unwrap().contains("renamed or replaced"));
}

#[tokio::test]
async fn an_output_that_was_cut_while_it_is_written_is_told_and_gets_no_hole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("done");
    let sink = open(&path);
    confirmed(&sink, 1).await;
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
    confirmed(&sink, 2).await;
    assert_eq!(ids(&path), ["2"]);
    assert!(sink.remark().unwrap().contains("it was cut to"));
    sink.finish().await.unwrap();
}

#[test]
fn what_was_not_confirmed_is_not_left_in_a_file_that_was_renamed() {
    let dir = tempfile::tempdir().unwrap();
    let (path, old) = (dir.path().join("done"), dir.path().join("old"));
    let mut file = AppendFile::open(&path, false).unwrap();
    file.append(b"{1}\n").unwrap();
    file.sync().unwrap();
    file.append(b"{2}\n").unwrap();
    fs::rename(&path, &old).unwrap();
    file.append(b"{3}\n").unwrap();
    file.sync().unwrap();
    assert_eq!(fs::read(&old).unwrap(), b"{1}\n");
    assert_eq!(fs::read(&path).unwrap(), b"{2}\n{3}\n");
    file.append(b"{4}\n").unwrap();
    file.revert().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"{2}\n{3}\n");
    file.append(b"{5}\n").unwrap();
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
    let error = file.sync().unwrap_err().to_string();
    assert!(error.contains("4 bytes that were not confirmed are lost"), "{error}");
}

#[tokio::test]
async fn c12_a_rotated_output_holds_whole_lines_in_order_over_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("done.ndjson");
    let rotate = Rotate { size: Some(2_000), ..Rotate::default() };
    let options = FileOutput { rotate: Some(rotate), ..FileOutput::new(&path) };
    let (tell, told) = mpsc::channel();
    for run in 0..2 {
        let sink = FileSink::open(&options).unwrap();
        for id in 0..500 {
            sink.accept(outgoing(run * 500 + id, &tell)).await;
        }
        sink.finish().await.unwrap();
        assert_eq!(sink.remark(), None, "that it rotates is no warning");
    }
    assert_eq!(told.try_iter().filter(|confirmed| *confirmed).count(), 1_000);
    let mut files: Vec<_> =
        fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.pop(), Some(path.clone()), "the file that is written sorts last");
    for file in &files {
        let length = file.metadata().unwrap().len();
        assert!((2_000..2_400).contains(&length), "{length}");
    }
    let found: Vec<_> = files.iter().chain([&path]).flat_map(|file| ids(file)).collect();
    assert_eq!(found, (0..1_000).map(|id: u32| id.to_string()).collect::<Vec<_>>());
    assert!(files.len() > 30, "{}", files.len());
}

#[tokio::test]
async fn b05_a_rotation_that_fails_refuses_what_comes_later_and_nothing_before() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("done");
    let rotate = Rotate { size: Some(1), ..Rotate::default() };
    let options = FileOutput { rotate: Some(rotate), ..FileOutput::new(&path) };
    // Whatever number follows, there is none.
    fs::write(dir.path().join(format!("done.{}", u64::MAX)), "").unwrap();
    let sink = FileSink::open(&options).unwrap();
    confirmed(&sink, 1).await;
    let error = sink.finish().await.unwrap_err().to_string();
    assert!(error.contains("rotating it: no number is left"), "{error}");
    let (tell, told) = mpsc::channel();
    sink.accept(outgoing(2, &tell)).await;
    assert_eq!(told.recv_timeout(PATIENCE), Ok(false));
    assert_eq!(ids(&path), ["1"]);
}

#[test]
fn what_is_no_regular_file_cannot_rotate() {
    let rotate = Some(Rotate::default());
    let options = FileOutput { rotate, ..FileOutput::new("/dev/null") };
    let error = FileSink::open(&options).err().unwrap().to_string();
    assert!(error.contains("only a regular file can be rotated"), "{error}");
}

#[test]
fn c02_each_option_takes_what_it_should_and_refuses_the_rest() {
    assert_options::<FileOutput>(
        &[("path", "x")],
        &[
            ("path", "'-'", &["5", "'-', truncate: true", "'-', rotate: { every: 1d }"]),
            ("truncate", "true", &["1"]),
            (
                "rotate",
                "{ size: 100MiB, every: 1d, keep: 10 }",
                &["{}", "{ size: 0 }", "{ every: daily }", "{ every: 1d, keep: 0 }"],
            ),
        ],
    );
}
