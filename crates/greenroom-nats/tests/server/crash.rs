//! A consumer process that is killed (Z01): with an event stuck for ever, next to nothing of the
//! others is handled again. And one that is frozen, alone or beside another (N03, N06).

use std::{
    collections::HashSet,
    fs::{File, OpenOptions},
    io::Write,
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use greenroom_bus::{
    dead_letter::file::FileDeadLetterStore,
    engine::{Engine, HandlerConfig, PoolConfig},
    event::Event,
    handler::{Attempt, Handler, HandlerFactory, Handling, Outputs},
};
use greenroom_nats::{NatsInput, source::NatsSource};

use crate::server::{TestStream, until};

const EVENTS: u64 = 20_000;
const KEYS: u64 = 500;

/// Of each process: one holds back for 4.5 s, and a lease lives for 1 s.
const ACK_WAIT: Duration = Duration::from_secs(2);

/// What a consumer process is told, by its environment: stream, file, and what is stuck.
const STREAM: &str = "GREENROOM_TEST_STREAM";
const FILE: &str = "GREENROOM_TEST_FILE";
const STUCK: &str = "GREENROOM_TEST_STUCK";

/// Writes each event's id on a line, at once. One never ends.
#[derive(Clone)]
struct Writer(Arc<File>, String);

impl HandlerFactory for Writer {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(self.clone()))
    }
}

impl Handler for Writer {
    fn handle<'a>(&'a mut self, event: &'a Event, _attempt: &'a Attempt) -> Handling<'a> {
        if event.id() == self.1 {
            return Handling::Later(Box::pin(std::future::pending()));
        }
        let line = format!("{}\n", event.id());
        (&*self.0).write_all(line.as_bytes()).unwrap();
        Handling::Done(Ok(Outputs::None))
    }
}

/// No test, but the process that is killed: it reads until then.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "the process that z01 kills"]
async fn consumer_process() {
    let Ok(stream) = std::env::var(STREAM) else { return };
    let path = std::env::var(FILE).unwrap();
    let writer = Writer(Arc::new(appended(path.as_ref())), std::env::var(STUCK).unwrap());
    let options = NatsInput::new(crate::server::known().unwrap(), stream, "greenroom");
    let letters = format!("{path}.{}.dead", std::process::id());
    engine(options, writer, 4, letters).await.run().await;
}

/// A file that processes append to.
pub(crate) fn appended(path: &Path) -> File {
    OpenOptions::new().append(true).create(true).open(path).unwrap()
}

/// Of a process that handles all of a consumer, in the order of subjects.
pub(crate) async fn engine(
    options: NatsInput,
    handler: impl HandlerFactory,
    workers: usize,
    letters: String,
) -> Engine {
    let options = NatsInput { ack_wait: ACK_WAIT, ..options };
    let source = NatsSource::open(options, None).await.unwrap();
    let on = vec!["**".parse().unwrap()];
    let order_by = Some("subject".parse().unwrap());
    let handler = HandlerConfig { order_by, ..HandlerConfig::new(on, Arc::new(handler)) };
    let engine = Engine::builder()
        .input(Box::new(source))
        .pool("default", PoolConfig { workers, ..PoolConfig::default() })
        .handler("all", handler)
        .dead_letters(Arc::new(FileDeadLetterStore::open(letters).unwrap()));
    engine.build().await.unwrap()
}

/// A test of this binary as a process.
pub(crate) fn process(test: &str) -> Command {
    let mut process = Command::new(std::env::current_exe().unwrap());
    process.args([test, "--exact", "--ignored"]);
    process.stdout(Stdio::null()).stderr(Stdio::null());
    process
}

/// Killed in the end, also where a test fails.
struct Consumer(Child);

impl Drop for Consumer {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn consumer(stream: &str, file: &Path, stuck: &str) -> Consumer {
    let mut process = process("crash::consumer_process");
    Consumer(process.env(STREAM, stream).env(FILE, file).env(STUCK, stuck).spawn().unwrap())
}

impl Consumer {
    fn signal(&self, signal: &str) {
        let mut kill = Command::new("kill");
        assert!(kill.args([signal, &self.0.id().to_string()]).status().unwrap().success());
    }
}

/// How many of these came again. First deliveries of a key come in order.
fn repeated(ids: &[u64]) -> u64 {
    let (mut seen, mut last) = (HashSet::new(), vec![None; KEYS as usize]);
    for id in ids {
        let of_key = &mut last[(id % KEYS) as usize];
        assert!(!seen.insert(id) || *of_key < Some(*id), "{id} after {of_key:?}");
        *of_key = (*of_key).max(Some(*id));
    }
    (ids.len() - seen.len()) as u64
}

fn ids(file: &Path) -> Vec<u64> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    // The last line may be half of one.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| line.parse().unwrap()).collect()
}

/// Waits until so many events were handled.
async fn handled(file: &Path, count: u64) {
    let are_handled = async || ids(file).iter().collect::<HashSet<_>>().len() as u64 >= count;
    until("so many are handled", are_handled).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn z01_a_killed_process_repeats_little_although_an_event_is_stuck() {
    let Some(stream) = TestStream::new("z01_kill").await else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("handled");
    stream.publish(0..EVENTS, KEYS).await;
    // The very first event is stuck, and its key with it.
    let first = consumer(&stream.name, &file, "0");
    handled(&file, EVENTS / 2).await;
    drop(first);
    let before = ids(&file).len() as u64;
    let second = consumer(&stream.name, &file, "none");
    handled(&file, EVENTS).await;
    drop(second);

    let repeated = repeated(&ids(&file));
    assert!(repeated * 10 <= before, "{repeated} of {before} were handled again");
    println!("{repeated} of {before} were handled again");
    stream.remove().await;
}

/// Longer than a process holds back, and than a lease lives.
const FROZEN: Duration = Duration::from_secs(6);

#[tokio::test(flavor = "multi_thread")]
async fn n06_a_process_that_was_frozen_while_it_held_back_goes_on_in_order() {
    let Some(stream) = TestStream::new("n06_frozen").await else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("handled");
    stream.publish(0..EVENTS, KEYS).await;
    let first = consumer(&stream.name, &file, "0");
    handled(&file, EVENTS / 2).await;
    drop(first);
    let before = ids(&file).len();
    let second = consumer(&stream.name, &file, "none");
    // It holds back what is new, since what the first had in hand comes later.
    let asks = async || stream.consumer("greenroom").await.num_waiting > 0;
    until("it has begun to read", asks).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    second.signal("-STOP");
    assert_eq!(ids(&file).len(), before, "it holds back");
    tokio::time::sleep(FROZEN).await;
    second.signal("-CONT");
    handled(&file, EVENTS).await;
    repeated(&ids(&file));
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn n03_a_frozen_process_gives_up_what_it_has_to_the_one_that_took_its_place() {
    let Some(stream) = TestStream::new("n03_frozen").await else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("handled");
    stream.publish(0..EVENTS, KEYS).await;
    let first = consumer(&stream.name, &file, "none");
    handled(&file, EVENTS / 4).await;
    first.signal("-STOP");
    let second = consumer(&stream.name, &file, "none");
    handled(&file, EVENTS).await;
    let done = ids(&file).len() as u64;
    first.signal("-CONT");
    stream.publish(EVENTS..EVENTS + KEYS, KEYS).await;
    handled(&file, EVENTS + KEYS).await;
    drop(second);
    let (ids, again) = (ids(&file), repeated(&ids(&file)));
    let woken = ids.len() as u64 - done - KEYS;
    println!("{again} were handled again, of which {woken} by the process that was frozen");
    assert!(again * 10 <= EVENTS, "{again} of {EVENTS} were handled again");
    // What its workers started before it had asked for its lease.
    assert!(woken <= EVENTS / 100, "{woken} were handled by the process that was frozen");
    stream.remove().await;
}
