//! Three consumer processes that share the partitions of a stream, and give them to each other
//! under load (Z02): in peace, or because one was killed.
//!
//! All append to one file: `s PROCESS ID` when an event is started, `e PROCESS ID` when it is
//! handled; the test appends `k PROCESS` when it has killed one.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::{Read as _, Write},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::Arc,
    time::Duration,
};

use async_nats::jetstream::stream::{Config, StorageType, SubjectTransform};
use greenroom_bus::{
    event::Event,
    handler::{Attempt, Handler, HandlerFactory, Handling, Outputs},
};
use greenroom_nats::{NatsInput, kinds::Partitions};

use crate::{
    crash::{appended, engine, process},
    server::{TestStream, unique, until},
};

const EVENTS: u64 = 12_000;
const KEYS: u64 = 300;
const PARTITIONS: u32 = 12;
const MEMBERS: usize = 3;

/// How often partitions change hands.
const CHANGES: u64 = 6;

/// What a process is told, by its environment.
const STREAM: &str = "GREENROOM_TEST_STREAM";
const FILE: &str = "GREENROOM_TEST_FILE";
const OWNED: &str = "GREENROOM_TEST_PARTITIONS";
const NAME: &str = "GREENROOM_TEST_NAME";

/// Writes when it starts an event and when it is done.
#[derive(Clone)]
struct Ledger(Arc<File>, String);

impl Ledger {
    fn write(&self, what: char, id: &str) {
        // One write to a file that is appended to: lines of several processes do not mix.
        let line = format!("{what} {} {id}\n", self.1);
        (&*self.0).write_all(line.as_bytes()).unwrap();
    }
}

impl HandlerFactory for Ledger {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(self.clone()))
    }
}

impl Handler for Ledger {
    fn handle<'a>(&'a mut self, event: &'a Event, _attempt: &'a Attempt) -> Handling<'a> {
        self.write('s', event.id());
        Handling::Later(Box::pin(async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            self.write('e', event.id());
            Ok(Outputs::None)
        }))
    }
}

fn partitions_of(stream: &str, partitions: Vec<u32>) -> NatsInput {
    NatsInput {
        subjects: Some(vec![format!("{stream}.{{partition}}.*")]),
        partitions: Some(Partitions(partitions)),
        ..NatsInput::new(crate::server::known().unwrap(), stream, "greenroom")
    }
}

/// No test, but one of the three. It goes on until its standard input is closed.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a process that z02 starts"]
async fn member_process() {
    let Ok(stream) = std::env::var(STREAM) else { return };
    let path = std::env::var(FILE).unwrap();
    let name = std::env::var(NAME).unwrap();
    let owned = std::env::var(OWNED).unwrap();
    let owned = owned.split(',').map(|partition| partition.parse().unwrap()).collect();
    let ledger = Ledger(Arc::new(appended(path.as_ref())), name.clone());
    let letters = format!("{path}.{name}.dead");
    let engine = engine(partitions_of(&stream, owned), ledger, 8, letters).await;
    let control = engine.control();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]);
        control.drain();
    });
    engine.run().await;
}

/// Killed in the end, also where a test fails.
struct Member {
    process: Child,
    name: String,
    owned: Vec<u32>,
}

impl Drop for Member {
    fn drop(&mut self) {
        // One that has ended cannot be killed any more.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The processes, and what they have written.
struct Group {
    stream: String,
    file: PathBuf,
    members: Vec<Member>,
    started: usize,
}

impl Group {
    fn start(&mut self, owned: Vec<u32>) {
        let name = format!("m{}", self.started);
        self.started += 1;
        let mut process = process("members::member_process");
        let list: Vec<String> = owned.iter().map(u32::to_string).collect();
        process.env(STREAM, &self.stream).env(FILE, &self.file);
        process.env(NAME, &name).env(OWNED, list.join(","));
        let process = process.stdin(Stdio::piped()).spawn().unwrap();
        self.members.push(Member { process, name, owned });
    }

    /// It drains, and is gone.
    fn leave(&mut self, member: usize) -> Vec<u32> {
        let mut member = self.members.remove(member);
        drop(member.process.stdin.take());
        assert!(member.process.wait().unwrap().success());
        std::mem::take(&mut member.owned)
    }

    fn kill(&mut self, member: usize) -> Vec<u32> {
        let mut member = self.members.remove(member);
        member.process.kill().unwrap();
        member.process.wait().unwrap();
        appended(&self.file).write_all(format!("k {}\n", member.name).as_bytes()).unwrap();
        std::mem::take(&mut member.owned)
    }

    /// Two leave, or are killed; two others divide what they had, each another part of it.
    fn change(&mut self, number: u64) {
        let mut free = match number % 2 {
            0 => [self.leave(0), self.leave(0)],
            _ => [self.kill(0), self.kill(0)],
        }
        .concat();
        free.sort_by_key(|partition| (partition % 2, *partition));
        let second = free.split_off(free.len() / 2);
        self.start(free);
        self.start(second);
    }
}

fn text(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_default()
}

/// The numbers that were handled, each as often as it was.
fn handled(text: &str) -> Vec<u64> {
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    let ended = whole.lines().filter(|line| line.starts_with('e'));
    ended.map(|line| line.rsplit_once(' ').unwrap().1.parse().unwrap()).collect()
}

/// No key is in hand twice, and none goes back to an event that was not done before.
fn check(text: &str) {
    let mut in_hand: HashMap<u64, (String, u64)> = HashMap::new();
    let (mut done, mut last) = (HashSet::new(), vec![None; KEYS as usize]);
    for line in text.lines() {
        let mut words = line.split(' ');
        let (what, process) = (words.next().unwrap(), words.next().unwrap());
        let id = words.next().map_or(0, |id| id.parse::<u64>().unwrap());
        let key = id % KEYS;
        match what {
            "s" => {
                let before = in_hand.insert(key, (process.to_owned(), id));
                assert!(before.is_none(), "{line}: key {key} is in hand already: {before:?}");
                let last = &mut last[key as usize];
                // The last one itself comes back if its process was killed in it.
                assert!(done.contains(&id) || *last <= Some(id), "{line}: after {last:?}");
                *last = (*last).max(Some(id));
            }
            "e" => {
                assert_eq!(in_hand.remove(&key), Some((process.to_owned(), id)), "{line}");
                done.insert(id);
            }
            _ => in_hand.retain(|_, (by, _)| by != process),
        }
    }
}

async fn partitioned(address: String) -> TestStream {
    let stream = TestStream { address, name: unique("z02") };
    let name = &stream.name;
    let config = Config {
        name: name.clone(),
        subjects: vec![format!("{name}.*")],
        storage: StorageType::Memory,
        subject_transform: Some(SubjectTransform {
            source: format!("{name}.*"),
            destination: format!("{name}.{{{{partition({PARTITIONS},1)}}}}.{{{{wildcard(1)}}}}"),
        }),
        ..Config::default()
    };
    stream.jetstream().await.create_stream(config).await.unwrap();
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn z02_three_processes_that_come_and_go_lose_nothing_and_share_no_key() {
    let Some(address) = crate::server::address("z02_members") else { return };
    let stream = partitioned(address).await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ledger");
    let (name, members) = (stream.name.clone(), Vec::new());
    let mut group = Group { stream: name, file: file.clone(), members, started: 0 };
    for member in 0..MEMBERS as u32 {
        group.start((0..PARTITIONS).filter(|of| of % MEMBERS as u32 == member).collect());
    }
    let count = async || handled(&text(&file)).iter().collect::<HashSet<_>>().len() as u64;
    let step = EVENTS / CHANGES;
    for change in 0..CHANGES {
        // Under load: the next ones come while the last are handled.
        stream.publish(change * step..(change + 1) * step, KEYS).await;
        until("half of them handled", async || count().await >= change * step + step / 2).await;
        group.change(change);
    }
    until("all handled", async || count().await == EVENTS).await;
    for _ in 0..MEMBERS {
        group.leave(0);
    }
    let text = text(&file);
    check(&text);
    let repeated = handled(&text).len() as u64 - EVENTS;
    println!("{repeated} of {EVENTS} were handled again");
    // What a killed process had handled since its last commit, a second ago, and no more.
    assert!(repeated * 10 <= EVENTS, "{repeated} of {EVENTS} were handled again");
    stream.remove().await;
}
