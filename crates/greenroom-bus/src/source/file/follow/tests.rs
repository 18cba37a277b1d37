use std::{
    fs,
    io::{Seek, SeekFrom, Write},
    path::PathBuf,
    sync::mpsc,
    thread,
};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use tempfile::TempDir;
use tokio::time::timeout;

use super::*;
use crate::{settlement::Outcome, source::file::tests::gzip};

const POLL: Duration = Duration::from_millis(200);
/// Longer than a file stays that was replaced.
const LONG: Duration = Duration::from_secs(30);

fn line(number: u64) -> String {
    format!("{{\"specversion\":\"1.0\",\"id\":\"{number}\",\"source\":\"/s\",\"type\":\"t\"}}\n")
}

fn some(numbers: std::ops::RangeInclusive<u64>) -> String {
    numbers.map(line).collect()
}

struct Stage(TempDir);

impl Stage {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn append(&self, name: &str, text: &str) {
        let file = fs::File::options().append(true).create(true).open(self.path(name));
        file.unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).unwrap();
    }

    fn follow(&self, name: &str) -> FollowSource {
        let path = self.path(name);
        FollowSource::open(path, POLL, FileSourceOptions::default()).unwrap()
    }

    fn run(&self, name: &str) -> Run {
        let (path, checkpoint) = (self.path(name), self.path("checkpoint"));
        let options = FileSourceOptions::default();
        Run::of(FollowSource::with_checkpoint(path, checkpoint, POLL, options).unwrap())
    }
}

fn ids(taken: &[Taken]) -> Vec<u64> {
    let id = |taken: &Taken| taken.event.as_ref().map_or(0, |event| event.id().parse().unwrap());
    taken.iter().map(id).collect()
}

/// All that comes until nothing has come for long.
async fn rest(source: &mut FollowSource) -> Vec<u64> {
    let mut taken = Vec::new();
    while let Ok(pulled) = timeout(LONG, source.pull(&mut taken)).await {
        if pulled.unwrap() == Pull::End {
            break;
        }
    }
    let positions: Vec<u64> = taken.iter().map(|item| item.position).collect();
    assert!(positions.is_sorted_by(|one, next| one < next), "{positions:?}");
    ids(&taken)
}

/// Waits until no step is under way: one that has just begun looks at the files while the test
/// changes them.
async fn end_steps(source: &mut FollowSource) {
    while source.steps.reader.is_none() {
        source.end_step().await;
    }
}

/// A run whose events are settled at once, or not.
struct Run {
    source: FollowSource,
    committer: Arc<dyn Committer>,
    open: Vec<(u64, Arc<dyn Receipts>)>,
}

impl Run {
    fn of(mut source: FollowSource) -> Self {
        let committer = source.committer().unwrap();
        Self { source, committer, open: Vec::new() }
    }

    /// What comes until nothing has come for long; not settled.
    async fn take(&mut self) -> Vec<u64> {
        let mut all = Vec::new();
        loop {
            let mut taken = Vec::new();
            let pulled = {
                let pull = self.source.pull(&mut taken);
                let committer = self.committer.clone();
                let commits = async {
                    loop {
                        committer.due().await;
                        committer.commit().await.unwrap();
                    }
                };
                tokio::select! {
                    pulled = timeout(LONG, pull) => pulled,
                    () = commits => unreachable!("it never ends"),
                }
            };
            let Ok(pulled) = pulled else { return all };
            assert_eq!(pulled.unwrap(), Pull::More);
            let receipts = self.source.receipts().unwrap();
            self.open.extend(taken.iter().map(|item| (item.position, receipts.clone())));
            all.extend(ids(&taken));
        }
    }

    fn settle(&mut self) {
        for (position, receipts) in self.open.drain(..) {
            receipts.settled(position, Settled::Acknowledged(Outcome::Handled));
        }
    }

    /// Takes, settles and stores all that there is.
    async fn handle(&mut self) -> Vec<u64> {
        let taken = self.take().await;
        self.settle();
        self.committer.commit().await.unwrap();
        taken
    }

    /// Ends without storing what is settled.
    fn crash(self) {
        self.committer.end();
    }

    async fn end(self) {
        let Self { source, committer, .. } = self;
        drop(source);
        committer.commit().await.unwrap();
        committer.end();
    }
}

#[tokio::test(start_paused = true)]
async fn b01_a_half_line_waits_until_it_is_finished() {
    let stage = Stage::new();
    let text = line(7).replace("\"7\"", "\"7\",\"subject\":\"grün\"");
    // In the middle of a character.
    let half = text.find('ü').unwrap() + 1;
    let write = |bytes: &[u8]| {
        let file = fs::File::options().append(true).create(true).open(stage.path("log"));
        file.unwrap().write_all(bytes).unwrap();
    };
    write(&text.as_bytes()[..half]);
    let mut source = stage.follow("log");
    assert!(rest(&mut source).await.is_empty());
    assert_eq!(source.behind(), Some(0));
    write(&text.as_bytes()[half..text.len() - 1]);
    assert!(rest(&mut source).await.is_empty());
    write(b"\n");
    let mut taken = Vec::new();
    assert_eq!(source.pull(&mut taken).await.unwrap(), Pull::More);
    let subject = taken[0].event.as_ref().unwrap().subject().map(|of| of.to_string());
    assert_eq!(subject.as_deref(), Some("grün"));
}

#[tokio::test(start_paused = true)]
async fn b01_what_is_written_is_taken_at_the_next_look() {
    let stage = Stage::new();
    stage.append("log", &some(1..=3));
    let mut source = stage.follow("log");
    assert_eq!(rest(&mut source).await, [1, 2, 3]);
    stage.append("log", &some(4..=4));
    let before = Instant::now();
    let mut taken = Vec::new();
    source.pull(&mut taken).await.unwrap();
    assert_eq!(ids(&taken), [4]);
    assert!(before.elapsed() <= POLL, "{:?}", before.elapsed());
    assert_eq!(source.places().unwrap().place(None, taken[0].position).position, 4);
}

#[tokio::test(start_paused = true)]
async fn b01_a_file_that_is_not_there_yet_is_waited_for() {
    let stage = Stage::new();
    let mut source = stage.follow("missing/log");
    assert!(rest(&mut source).await.is_empty());
    fs::create_dir(stage.path("missing")).unwrap();
    assert!(rest(&mut source).await.is_empty());
    stage.append("missing/log", &some(1..=2));
    assert_eq!(rest(&mut source).await, [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn b01_a_renamed_file_is_read_to_its_end_before_the_new_one() {
    let stage = Stage::new();
    stage.append("log", &some(1..=2));
    let mut source = stage.follow("log");
    assert_eq!(rest(&mut source).await, [1, 2]);
    stage.append("log", &some(3..=4));
    stage.rename("log", "log.1");
    // Its writer has it open still.
    stage.append("log.1", &some(5..=6));
    stage.append("log", &some(7..=8));
    assert_eq!(rest(&mut source).await, [3, 4, 5, 6, 7, 8]);
    // Two at once.
    stage.append("log", &some(9..=9));
    stage.rename("log", "log.2");
    stage.append("log", &some(10..=10));
    assert_eq!(rest(&mut source).await, [9, 10]);
}

#[tokio::test(start_paused = true)]
async fn b01_a_renamed_file_without_a_successor_is_still_followed() {
    let stage = Stage::new();
    stage.append("log", &some(1..=1));
    let mut source = stage.follow("log");
    assert_eq!(rest(&mut source).await, [1]);
    stage.rename("log", "log.1");
    assert!(rest(&mut source).await.is_empty());
    stage.append("log.1", &some(2..=2));
    // A new one that is empty says nothing of its writer.
    stage.append("log", "");
    assert_eq!(rest(&mut source).await, [2]);
    stage.append("log.1", line(3).trim_end());
    assert!(rest(&mut source).await.is_empty(), "its last line is not whole");
    stage.append("log", &some(4..=4));
    assert_eq!(rest(&mut source).await, [3, 4], "it has a successor: it is as whole as it will be");
}

#[tokio::test(start_paused = true)]
async fn b01_a_file_that_is_cut_is_read_from_its_start() {
    let stage = Stage::new();
    stage.append("log", &some(1..=5));
    let mut source = stage.follow("log");
    assert_eq!(rest(&mut source).await, [1, 2, 3, 4, 5]);
    fs::write(stage.path("log"), some(6..=7)).unwrap();
    assert_eq!(rest(&mut source).await, [6, 7]);
    // Longer than what was read, when it is looked at next.
    fs::write(stage.path("log"), some(8..=30)).unwrap();
    assert_eq!(rest(&mut source).await, (8..=30).collect::<Vec<_>>());
    // Cut while a line was at hand.
    stage.append("log", "{\"specv");
    assert!(rest(&mut source).await.is_empty());
    fs::write(stage.path("log"), "").unwrap();
    assert!(rest(&mut source).await.is_empty());
    stage.append("log", &some(31..=31));
    assert_eq!(rest(&mut source).await, [31]);
}

impl Stage {
    /// The same file with other content, last written to so many seconds from now: two writes may
    /// be in the same tick of the clock.
    fn rewrite(&self, name: &str, text: &str, seconds: u64) {
        fs::write(self.path(name), text).unwrap();
        self.touch(name, seconds);
    }

    fn touch(&self, name: &str, seconds: u64) {
        let at = std::time::SystemTime::now() + Duration::from_secs(seconds);
        fs::File::options().append(true).open(self.path(name)).unwrap().set_modified(at).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn b01_a_file_that_is_written_anew_with_the_same_length_is_read_from_its_start() {
    let stage = Stage::new();
    stage.append("log", &some(1..=4));
    let mut source = stage.follow("log");
    assert_eq!(rest(&mut source).await, [1, 2, 3, 4]);
    stage.rewrite("log", &some(5..=8), 10);
    assert_eq!(rest(&mut source).await, [5, 6, 7, 8]);
    stage.touch("log", 20);
    assert!(rest(&mut source).await.is_empty(), "it has the same content");
    stage.rewrite("log", &some(1..=9), 30);
    assert_eq!(rest(&mut source).await.len(), 9);
    stage.rewrite("log", &(line(9) + &some(2..=9)), 40);
    assert_eq!(rest(&mut source).await, [9, 2, 3, 4, 5, 6, 7, 8, 9], "it ends as it did");
}

#[tokio::test(start_paused = true)]
async fn b01_a_closed_file_that_is_written_anew_with_the_same_length_is_read_from_its_start() {
    let stage = Stage::new();
    fs::create_dir(stage.path("in")).unwrap();
    for number in 1..=200 {
        stage.append(&format!("in/{number:04}.ndjson"), &line(number));
    }
    let mut source = stage.follow("in");
    assert_eq!(rest(&mut source).await.len(), 200);
    stage.touch("in/0001.ndjson", 10);
    stage.rewrite("in/0002.ndjson", &line(9), 10);
    assert_eq!(rest(&mut source).await, [9]);
    end_steps(&mut source).await;
    assert!(source.steps.reader.as_ref().unwrap().open_files() <= 64);
}

#[tokio::test(start_paused = true)]
async fn b01_a_file_that_is_written_anew_while_nobody_looks_is_not_taken_for_what_it_was() {
    let stage = Stage::new();
    stage.append("log", "");
    let mut first = stage.run("log");
    assert!(first.handle().await.is_empty());
    stage.append("log", &some(1..=3));
    assert_eq!(first.handle().await, [1, 2, 3]);
    first.end().await;
    // Longer than it was.
    fs::write(stage.path("log"), some(4..=9)).unwrap();
    let mut second = stage.run("log");
    assert_eq!(second.handle().await, [4, 5, 6, 7, 8, 9]);
    stage.append("log", &some(10..=11));
    assert_eq!(second.take().await, [10, 11]);
    second.settle();
    end_steps(&mut second.source).await;
    // Between the last look and the last commit.
    fs::write(stage.path("log"), some(20..=40)).unwrap();
    second.end().await;
    let mut third = stage.run("log");
    assert_eq!(third.handle().await, (20..=40).collect::<Vec<_>>());
    third.end().await;
    assert!(stage.run("log").take().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn b01_a_file_that_vanishes_and_comes_back_is_followed_again() {
    let stage = Stage::new();
    stage.append("log", &some(1..=1));
    let mut source = stage.follow("log");
    assert_eq!(rest(&mut source).await, [1]);
    stage.append("log", &some(2..=3));
    fs::remove_file(stage.path("log")).unwrap();
    assert_eq!(rest(&mut source).await, [2, 3]);
    stage.append("log", &some(4..=4));
    assert_eq!(rest(&mut source).await, [4]);
    // What is unfinished when it vanishes will never be finished.
    stage.append("log", line(5).trim_end());
    assert!(rest(&mut source).await.is_empty());
    fs::remove_file(stage.path("log")).unwrap();
    assert_eq!(rest(&mut source).await, [5]);
}

#[tokio::test(start_paused = true)]
async fn b01_new_files_of_a_directory_are_taken_in_the_order_of_their_last_write() {
    let stage = Stage::new();
    fs::create_dir(stage.path("in")).unwrap();
    let mut source = stage.follow("in");
    assert!(rest(&mut source).await.is_empty());
    end_steps(&mut source).await;
    let aged = |name: &str, seconds: u64, numbers| {
        stage.append(name, &some(numbers));
        let at = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        fs::File::options().append(true).open(stage.path(name)).unwrap().set_modified(at).unwrap();
    };
    aged("in/a.ndjson", 2_000, 3..=4);
    aged("in/b.ndjson", 1_000, 1..=2);
    aged("in/c.ndjson", 2_000, 5..=5);
    aged("in/other.txt", 500, 9..=9);
    assert_eq!(rest(&mut source).await, [1, 2, 3, 4, 5]);
    // All of them go on.
    stage.append("in/b.ndjson", &some(6..=6));
    stage.append("in/a.ndjson", &some(7..=7));
    stage.append("in/d.ndjson", &some(8..=8));
    assert_eq!(rest(&mut source).await, [6, 7, 8]);
}

#[tokio::test(start_paused = true)]
async fn b01_of_many_files_the_quiet_ones_are_closed_and_opened_when_they_grow() {
    let stage = Stage::new();
    fs::create_dir(stage.path("in")).unwrap();
    let count = 200;
    for number in 1..=count {
        stage.append(&format!("in/{number:04}.ndjson"), &line(number));
    }
    let mut run = stage.run("in");
    assert_eq!(run.handle().await.len() as u64, count);
    assert!(run.handle().await.is_empty());
    end_steps(&mut run.source).await;
    assert!(run.source.steps.reader.as_ref().unwrap().open_files() <= 64);
    assert!(run.source.keeper.as_ref().unwrap().held_open() <= 64 + 1);
    for number in 1..=count {
        stage.append(&format!("in/{number:04}.ndjson"), &line(1_000 + number));
    }
    assert_eq!(run.handle().await.len() as u64, count);
    run.end().await;
    assert!(stage.run("in").take().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn b01_what_is_compressed_is_read_once_in_a_set_and_refused_by_itself() {
    let stage = Stage::new();
    fs::write(stage.path("one.gz"), gzip(some(1..=2).as_bytes())).unwrap();
    let refused = FollowSource::open(stage.path("one.gz"), POLL, FileSourceOptions::default());
    let refused = refused.err().unwrap().to_string();
    assert!(refused.contains("it is compressed, and such a file cannot be followed"), "{refused}");
    let mut source = stage.follow("*.gz");
    assert_eq!(rest(&mut source).await, [1, 2]);
    assert!(rest(&mut source).await.is_empty());
    let mut file = fs::File::options().append(true).open(stage.path("one.gz")).unwrap();
    file.write_all(&gzip(some(3..=3).as_bytes())).unwrap();
    let grown = source.pull(&mut Vec::new()).await.unwrap_err().to_string();
    assert!(grown.contains("a compressed file that grows cannot be followed"), "{grown}");
}

#[tokio::test(start_paused = true)]
async fn b01_a_compressed_copy_of_what_was_read_is_not_read_again() {
    let stage = Stage::new();
    stage.append("log", &some(1..=400));
    let mut run = stage.run("log*");
    assert_eq!(run.handle().await.len(), 400);
    stage.rename("log", "log.1");
    stage.append("log", &some(401..=402));
    assert_eq!(run.handle().await, [401, 402]);
    let content = fs::read(stage.path("log.1")).unwrap();
    fs::write(stage.path("log.1.gz"), gzip(&content)).unwrap();
    fs::remove_file(stage.path("log.1")).unwrap();
    assert!(run.handle().await.is_empty());
    run.end().await;
    let mut again = stage.run("log*");
    assert!(again.handle().await.is_empty());
    // Another content is another file.
    fs::write(stage.path("log.2.gz"), gzip(some(500..=501).as_bytes())).unwrap();
    assert_eq!(again.handle().await, [500, 501]);
}

#[tokio::test(start_paused = true)]
async fn b01_a_restart_goes_on_behind_what_is_done_also_after_rotations() {
    let stage = Stage::new();
    stage.append("log", &some(1..=4));
    let mut first = stage.run("log");
    assert_eq!(first.handle().await, [1, 2, 3, 4]);
    stage.append("log", &some(5..=6));
    assert_eq!(first.take().await, [5, 6]);
    first.committer.commit().await.unwrap();
    first.crash();
    // Nobody looks.
    stage.append("log", &some(7..=7));
    stage.rename("log", "log.old");
    stage.append("log", &some(8..=9));
    let mut second = stage.run("log");
    let resumed = second.committer.standing().resumed.unwrap();
    assert_eq!((resumed.partitions, resumed.files, resumed.again_at_most), (1, 1, 2));
    assert_eq!(second.handle().await, [5, 6, 7, 8, 9]);
    second.end().await;
    let mut third = stage.run("log");
    stage.append("log", &some(10..=10));
    assert_eq!(third.handle().await, [10]);
}

/// What a source that ends gives; of that it settles what has these ids.
async fn settled(mut source: Box<dyn Source>, done: &[u64]) -> Vec<u64> {
    let committer = source.committer().unwrap();
    let mut all = Vec::new();
    loop {
        let mut taken = Vec::new();
        let commits = async {
            loop {
                committer.due().await;
                committer.commit().await.unwrap();
            }
        };
        let pulled = tokio::select! {
            pulled = source.pull(&mut taken) => pulled.unwrap(),
            () = commits => unreachable!("it never ends"),
        };
        let receipts = source.receipts();
        for (item, id) in taken.iter().zip(ids(&taken)) {
            if done.contains(&id) {
                let settled = Settled::Acknowledged(Outcome::Handled);
                receipts.as_ref().unwrap().settled(item.position, settled);
            }
            all.push(id);
        }
        if pulled == Pull::End {
            break;
        }
    }
    drop(source);
    committer.commit().await.unwrap();
    committer.end();
    all
}

impl Stage {
    /// As a file that is not followed.
    fn once(&self, name: &str) -> Box<dyn Source> {
        let options = FileSourceOptions::default();
        let (path, checkpoint) = (self.path(name), self.path("checkpoint"));
        Box::new(super::super::FileSource::with_checkpoint(path, checkpoint, options).unwrap())
    }

    /// As files that are not followed.
    fn set_once(&self, name: &str) -> Box<dyn Source> {
        let options = FileSourceOptions::default();
        let (path, checkpoint) = (self.path(name), self.path("checkpoint"));
        let set = super::super::FileSet::at(&path).unwrap().unwrap();
        let source = super::super::FileSetSource::with_checkpoint(path, &set, checkpoint, options);
        Box::new(source.unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn b01_follow_is_switched_off_and_on_again_and_each_goes_on_behind_what_is_done() {
    let stage = Stage::new();
    stage.append("log", &some(1..=4));
    let mut followed = stage.run("log");
    assert_eq!(followed.handle().await, [1, 2, 3, 4]);
    followed.end().await;
    stage.append("log", &some(5..=7));
    assert_eq!(settled(stage.once("log"), &[5, 7]).await, [5, 6, 7]);
    let mut source = stage.once("log");
    let resumed = source.committer().unwrap().standing().resumed.unwrap();
    assert_eq!((resumed.files, resumed.done, resumed.again_at_most), (1, 1, 1));
    assert_eq!(settled(source, &[]).await, [6]);
    let mut followed = stage.run("log");
    assert_eq!(followed.handle().await, [6]);
    stage.append("log", &some(8..=8));
    assert_eq!(followed.handle().await, [8]);
    followed.end().await;
    assert!(settled(stage.once("log"), &[]).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn b01_what_is_open_of_a_file_that_was_replaced_waits_until_it_is_followed_again() {
    let stage = Stage::new();
    stage.append("log", &some(1..=2));
    let mut followed = stage.run("log");
    assert_eq!(followed.handle().await, [1, 2]);
    stage.append("log", &some(3..=4));
    assert_eq!(followed.take().await, [3, 4]);
    followed.end().await;
    stage.rename("log", "log.1");
    stage.append("log", &some(5..=6));
    assert_eq!(settled(stage.once("log"), &[5]).await, [5, 6]);
    stage.append("log.1", &some(10..=10));
    stage.append("log", &some(7..=7));
    assert_eq!(settled(stage.once("log"), &[6]).await, [6, 7]);
    let mut followed = stage.run("log");
    assert_eq!(followed.handle().await, [3, 4, 10, 7], "in the order in which they were begun");
    followed.end().await;
}

#[tokio::test(start_paused = true)]
async fn b01_follow_is_switched_off_and_on_again_for_several_files() {
    let stage = Stage::new();
    stage.append("log.1", &some(1..=2));
    stage.append("log.2", &some(11..=12));
    let mut followed = stage.run("log*");
    let mut all = followed.handle().await;
    all.sort_unstable();
    assert_eq!(all, [1, 2, 11, 12]);
    followed.end().await;
    stage.append("log.1", &some(3..=4));
    stage.append("log.3", &some(21..=21));
    assert_eq!(settled(stage.set_once("log*"), &[4, 21]).await, [3, 4, 21]);
    let mut followed = stage.run("log*");
    assert_eq!(followed.handle().await, [3]);
    followed.end().await;
}

#[tokio::test(start_paused = true)]
async fn b01_a_checkpoint_of_a_file_goes_on_when_it_is_followed() {
    let stage = Stage::new();
    stage.append("log", &some(1..=4));
    let (path, checkpoint) = (stage.path("log"), stage.path("checkpoint"));
    let options = FileSourceOptions::default();
    let source =
        super::super::FileSource::with_checkpoint(&path, &checkpoint, options.clone()).unwrap();
    let mut source: Box<dyn Source> = Box::new(source);
    let committer = source.committer().unwrap();
    committer.commit().await.unwrap();
    let mut taken = Vec::new();
    while source.pull(&mut taken).await.unwrap() == Pull::More {}
    let receipts = source.receipts().unwrap();
    taken[..3].iter().for_each(|item| {
        receipts.settled(item.position, Settled::Acknowledged(Outcome::Handled));
    });
    drop(source);
    committer.commit().await.unwrap();
    committer.end();
    let mut run = stage.run("log");
    assert_eq!(run.take().await, [4]);
    run.crash();
    let other = stage.path("other");
    fs::write(&other, some(1..=1)).unwrap();
    let refused = FollowSource::with_checkpoint(&other, &checkpoint, POLL, options);
    let refused = refused.err().unwrap().to_string();
    assert!(refused.contains("it is of another input"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn b01_looking_reads_what_is_there_and_ends() {
    let stage = Stage::new();
    stage.append("log", &some(1..=4));
    stage.append("log", "{\"half");
    let options = FileSourceOptions::default();
    let mut source = FollowSource::looking(stage.path("log"), None, options.clone()).unwrap();
    assert_eq!(rest(&mut source).await, [1, 2, 3, 4]);
    let mut missing = FollowSource::looking(stage.path("none"), None, options).unwrap();
    assert_eq!(missing.pull(&mut Vec::new()).await.unwrap(), Pull::End);
}

#[test]
fn b01_standard_input_and_what_is_no_file_are_refused() {
    let refused = |path: &str| {
        let source = FollowSource::open(path, POLL, FileSourceOptions::default());
        source.err().unwrap().to_string()
    };
    assert!(refused("-").contains("standard input cannot be followed"), "{}", refused("-"));
    let device = refused("/dev/null");
    assert!(device.contains("only such a file can be followed"), "{device}");
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn b01_a_file_that_may_not_be_read_is_tried_again() {
    let stage = Stage::new();
    // No user, not even root, can open a link to itself.
    std::os::unix::fs::symlink("log", stage.path("log")).unwrap();
    let refused = FollowSource::open(stage.path("log"), POLL, FileSourceOptions::default());
    assert!(refused.is_err(), "at the start, it is told");
    fs::remove_file(stage.path("log")).unwrap();
    stage.append("log", &some(1..=1));
    let mut source = stage.follow("log");
    assert_eq!(rest(&mut source).await, [1]);
    stage.rename("log", "log.1");
    std::os::unix::fs::symlink("log", stage.path("log")).unwrap();
    assert!(rest(&mut source).await.is_empty());
    fs::remove_file(stage.path("log")).unwrap();
    stage.append("log", &some(2..=2));
    assert_eq!(rest(&mut source).await, [2]);
    // The whole directory, as when a disk is gone.
    let gone = tempfile::tempdir().unwrap();
    fs::write(gone.path().join("log"), some(1..=1)).unwrap();
    let path = gone.path().join("log");
    let mut source = FollowSource::open(&path, POLL, FileSourceOptions::default()).unwrap();
    assert_eq!(rest(&mut source).await, [1]);
    drop(gone);
    assert!(rest(&mut source).await.is_empty());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, some(2..=2)).unwrap();
    assert_eq!(rest(&mut source).await, [2]);
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

impl Stage {
    /// As `logrotate` does it: each file gets the next number.
    fn rotate(&self, name: &str) {
        let numbered = |number: u32| format!("{name}.{number}");
        let mut last = 0;
        while ["", ".gz"].iter().any(|end| self.path(&(numbered(last + 1) + end)).exists()) {
            last += 1;
        }
        for number in (1..=last).rev() {
            for end in ["", ".gz"] {
                let [from, to] = [numbered(number), numbered(number + 1)].map(|name| name + end);
                if self.path(&from).exists() {
                    self.rename(&from, &to);
                }
            }
        }
        self.rename(name, &numbered(1));
    }

    /// As `gzip` does it: the time of the last write is kept.
    fn compress(&self, name: &str) {
        let (from, to) = (self.path(name), self.path(&format!("{name}.gz")));
        let modified = from.metadata().unwrap().modified().unwrap();
        fs::write(&to, gzip(&fs::read(&from).unwrap())).unwrap();
        fs::File::options().append(true).open(to).unwrap().set_modified(modified).unwrap();
        fs::remove_file(from).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn b01_a_file_that_is_replaced_several_times_between_two_looks_loses_nothing() {
    let stage = Stage::new();
    stage.append("log", &some(1..=1));
    stage.append("log.7", &some(100..=105));
    stage.append("log-errors.1", &some(200..=205));
    let mut source = stage.follow("log");
    assert_eq!(rest(&mut source).await, [1]);
    end_steps(&mut source).await;
    for number in 2..=5 {
        stage.append("log", &line(number));
        stage.rotate("log");
    }
    stage.append("log", &some(6..=6));
    assert_eq!(rest(&mut source).await, [2, 3, 4, 5, 6], "and nothing that was there before");
    end_steps(&mut source).await;
    // By other names, compressed, and in another directory.
    stage.append("log", &some(7..=7));
    stage.rename("log", "log-20260101");
    stage.append("log", &some(8..=8));
    stage.rename("log", "log-20260102");
    stage.compress("log-20260102");
    fs::create_dir(stage.path("old")).unwrap();
    stage.append("log", &some(9..=9));
    assert_eq!(rest(&mut source).await, [7, 8, 9]);
    end_steps(&mut source).await;
    stage.rename("log", "old/put-aside-1");
    stage.append("log", &some(10..=10));
    stage.rename("log", "old/put-aside-2");
    stage.append("log", &some(11..=11));
    assert_eq!(rest(&mut source).await, [10, 11]);
}

#[tokio::test(start_paused = true)]
async fn b01_what_is_replaced_and_removed_while_the_input_is_held_up_is_read() {
    let stage = Stage::new();
    stage.append("log", &some(1..=1));
    let mut source = stage.follow("log");
    assert_eq!(rest(&mut source).await, [1]);
    for number in 2..=6 {
        stage.append("log", &line(number));
        // Nobody pulls.
        assert!(timeout(LONG, source.held_up().unwrap()).await.is_err());
        end_steps(&mut source).await;
        stage.rename("log", "log.1");
    }
    stage.append("log", &some(7..=7));
    assert_eq!(rest(&mut source).await, [2, 3, 4, 5, 6, 7]);
}

#[tokio::test(start_paused = true)]
async fn b01_what_was_replaced_several_times_before_a_restart_is_read() {
    let stage = Stage::new();
    stage.append("log", &some(1..=2));
    let mut run = stage.run("log");
    assert_eq!(run.handle().await, [1, 2]);
    run.end().await;
    for number in 3..=5 {
        stage.append("log", &line(number));
        stage.rotate("log");
    }
    stage.append("log", &some(6..=6));
    let mut run = stage.run("log");
    assert_eq!(run.handle().await, [3, 4, 5, 6]);
    run.end().await;
    // Compressed, or copied and cut, before it was read to its end.
    stage.append("log", &some(7..=7));
    stage.rename("log", "log-1");
    stage.compress("log-1");
    stage.append("log", &some(8..=8));
    let mut run = stage.run("log");
    assert_eq!(run.handle().await, [7, 8]);
    run.end().await;
    stage.append("log", &some(9..=9));
    fs::copy(stage.path("log"), stage.path("log-2")).unwrap();
    fs::write(stage.path("log"), some(10..=10)).unwrap();
    let mut run = stage.run("log");
    assert_eq!(run.handle().await, [9, 10]);
    run.end().await;
    assert!(stage.run("log").handle().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn b01_an_older_compressed_file_is_read_before_the_one_that_took_its_place() {
    let stage = Stage::new();
    stage.append("log", &some(1..=3));
    stage.rename("log", "log.1");
    stage.compress("log.1");
    stage.append("log", &some(4..=5));
    let mut source = stage.follow("log*");
    assert_eq!(rest(&mut source).await, [1, 2, 3, 4, 5]);
}

#[tokio::test(start_paused = true)]
async fn b01_nuls_at_the_head_of_a_line_are_passed_over() {
    let stage = Stage::new();
    stage.append("log", &some(1..=3));
    let mut source = stage.follow("log");
    assert_eq!(rest(&mut source).await, [1, 2, 3]);
    // Cut, by a writer that goes on at its own place; and more than an event may have.
    for (size, number) in [(1_000, 4), (20 << 20, 5)] {
        let mut file = fs::File::create(stage.path("log")).unwrap();
        file.seek(SeekFrom::Start(size)).unwrap();
        file.write_all(line(number).as_bytes()).unwrap();
        assert_eq!(rest(&mut source).await, [number]);
    }
    stage.append("log", &format!("\0\0\0{}", line(6)));
    assert_eq!(rest(&mut source).await, [6]);
}

#[tokio::test(start_paused = true)]
async fn b01_a_log_that_was_allocated_before_it_is_written_is_read_once_in_order() {
    let stage = Stage::new();
    let mut file = fs::File::create(stage.path("log")).unwrap();
    file.write_all(&[0; 4_096]).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    let mut run = stage.run("log");
    assert!(run.handle().await.is_empty());
    for number in 1..=8 {
        file.write_all(line(number).as_bytes()).unwrap();
        stage.touch("log", number);
        assert_eq!(run.handle().await, [number]);
        if number % 3 == 0 {
            run.end().await;
            run = stage.run("log");
        }
    }
    assert_eq!(run.source.behind(), Some(0));
    run.end().await;
    assert!(stage.run("log").handle().await.is_empty());
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn b01_an_entry_that_cannot_be_read_keeps_no_other_from_being_followed() {
    use std::os::unix::fs::symlink;
    let stage = Stage::new();
    fs::create_dir(stage.path("in")).unwrap();
    symlink("nowhere", stage.path("in/a.ndjson")).unwrap();
    stage.append("in/b.ndjson", &some(1..=2));
    let mut run = stage.run("in");
    assert_eq!(run.handle().await, [1, 2]);
    symlink("c.ndjson", stage.path("in/c.ndjson")).unwrap();
    symlink("/dev/null", stage.path("in/d.ndjson")).unwrap();
    stage.append("in/e.ndjson", &some(3..=3));
    assert_eq!(run.handle().await, [3]);
    stage.append("in/nowhere", &some(4..=4));
    fs::remove_file(stage.path("in/c.ndjson")).unwrap();
    assert_eq!(run.handle().await, [4], "what can be read again is read");
}

/// A log that changes in every way between two looks: lines, rotations by number and by date, any
/// number of them, compression of what was put aside, a copy and a cut, and restarts.
#[tokio::test(start_paused = true)]
async fn b01_a_file_that_changes_in_every_way_between_two_looks_loses_nothing() {
    for seed in 0..40 {
        let mut random = StdRng::seed_from_u64(seed);
        let stage = Stage::new();
        let (mut written, mut dated) = (0, 0);
        let mut done = Vec::new();
        let mut run = stage.run("log");
        for _ in 0..40 {
            match random.random_range(0..12) {
                0..4 => {
                    let count = random.random_range(1..20);
                    stage.append("log", &some(written + 1..=written + count));
                    written += count;
                }
                4 | 5 if stage.path("log").exists() => stage.rotate("log"),
                6 if stage.path("log").exists() => {
                    dated += 1;
                    stage.rename("log", &format!("log-{dated:03}"));
                }
                7 if stage.path("log.2").exists() => stage.compress("log.2"),
                8 if stage.path("log").exists() => {
                    // What was read is cut: the copy is nothing new.
                    done.extend(run.handle().await);
                    let size = stage.path("log").metadata().unwrap().len();
                    let copy = stage.path(&format!("log.{}", 900 + dated));
                    fs::copy(stage.path("log"), &copy).unwrap();
                    // So that the clock of the file system tells what was written before.
                    thread::sleep(Duration::from_millis(12));
                    let mut file = fs::File::create(stage.path("log")).unwrap();
                    // With O_APPEND, or without.
                    let at = if random.random_bool(0.5) { size } else { 0 };
                    file.seek(SeekFrom::Start(at)).unwrap();
                    written += 1;
                    file.write_all(line(written).as_bytes()).unwrap();
                }
                9 => {
                    run.take().await;
                    run.crash();
                    run = stage.run("log");
                }
                10 => {
                    done.extend(run.handle().await);
                    run.end().await;
                    run = stage.run("log");
                }
                _ => done.extend(run.handle().await),
            }
            end_steps(&mut run.source).await;
        }
        stage.append("log", &some(written + 1..=written + 1));
        done.extend(run.handle().await);
        let first = done.iter().zip(1..).find(|(id, number)| **id != *number);
        assert!(
            first.is_none() && done.len() as u64 == written + 1,
            "seed {seed}: {first:?} {done:?}"
        );
    }
}

#[tokio::test]
async fn b01_nothing_is_lost_doubled_or_overtaken_by_rotations_under_load() {
    for seed in 0..4 {
        let stage = Stage::new();
        let (path, total) = (stage.path("log*"), 3_000);
        stage.append("log", "");
        let (sender, ended) = mpsc::channel();
        let directory = stage.0.path().to_owned();
        let writer = thread::spawn(move || {
            let mut random = StdRng::seed_from_u64(seed);
            let log = directory.join("log");
            let open = || fs::File::options().append(true).create(true).open(&log).unwrap();
            let (mut file, mut turn) = (open(), 0);
            for number in 1..=total {
                let text = line(number);
                let cut = random.random_range(0..text.len());
                file.write_all(&text.as_bytes()[..cut]).unwrap();
                if random.random_bool(0.02) {
                    // So that the clock of the file system tells them apart.
                    thread::sleep(Duration::from_millis(12));
                    fs::rename(&log, directory.join(format!("log.{turn:03}"))).unwrap();
                    turn += 1;
                    file.write_all(&text.as_bytes()[cut..]).unwrap();
                    file = open();
                } else {
                    file.write_all(&text.as_bytes()[cut..]).unwrap();
                }
            }
            sender.send(()).unwrap();
        });
        let poll = Duration::from_millis(1);
        let mut source = FollowSource::open(&path, poll, FileSourceOptions::default()).unwrap();
        let mut taken = Vec::new();
        while (taken.len() as u64) < total {
            let pulled = timeout(Duration::from_secs(60), source.pull(&mut taken)).await;
            assert_eq!(pulled.expect("something is lost").unwrap(), Pull::More);
        }
        ended.recv().unwrap();
        writer.join().unwrap();
        let taken = ids(&taken);
        let first = taken.iter().zip(1..).find(|(id, number)| **id != *number);
        assert!(first.is_none() && taken.len() as u64 == total, "seed {seed}: {first:?}");
    }
}

/// Random writes, rotations, cuts, restarts and crashes, one step after the other.
#[tokio::test(start_paused = true)]
async fn b01_random_rotations_and_restarts_lose_nothing_and_repeat_only_what_was_open() {
    for seed in 0..12 {
        let mut random = StdRng::seed_from_u64(seed);
        let stage = Stage::new();
        let (mut written, mut turn) = (0, 0);
        let mut done = std::collections::BTreeSet::new();
        let mut run = stage.run("log*");
        for _ in 0..30 {
            match random.random_range(0..6) {
                0 | 1 => {
                    let count = random.random_range(1..40);
                    stage.append("log", &some(written + 1..=written + count));
                    written += count;
                }
                2 if stage.path("log").exists() => {
                    stage.rename("log", &format!("log.{turn:03}"));
                    turn += 1;
                }
                3 => {
                    for number in run.handle().await {
                        assert!(done.insert(number), "seed {seed}: {number} came twice");
                    }
                }
                4 => {
                    // Not stored: it comes again.
                    run.take().await;
                    run.crash();
                    run = stage.run("log*");
                }
                _ => {
                    for number in run.handle().await {
                        assert!(done.insert(number), "seed {seed}: {number} came twice");
                    }
                    run.end().await;
                    run = stage.run("log*");
                }
            }
        }
        for number in run.handle().await {
            assert!(done.insert(number), "seed {seed}: {number} came twice");
        }
        assert!(done.iter().copied().eq(1..=written), "seed {seed}: something is lost");
    }
}
