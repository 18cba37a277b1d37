use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write,
    path::PathBuf,
};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use tempfile::TempDir;

use super::*;
use crate::{
    settlement::{Outcome, Refusal, Settled},
    source::{
        Place, Resumed, Standing,
        file::tests::{gzip, lines},
    },
};

const DONE: Settled = Settled::Acknowledged(Outcome::Handled);

/// A line, by its file and number.
type Line = (String, u64);

struct Stage(TempDir);

impl Stage {
    /// A directory with so many lines in each of these files.
    fn with(files: &[(&str, u32)]) -> Self {
        let stage = Self(tempfile::tempdir().unwrap());
        for (name, count) in files {
            stage.write(name, &lines(1..=*count));
        }
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: &[u8]) {
        fs::write(self.path(name), content).unwrap();
    }

    fn append(&self, name: &str, content: &[u8]) {
        fs::File::options().append(true).open(self.path(name)).unwrap().write_all(content).unwrap();
    }

    fn open(&self) -> Result<FileSetSource, SourceError> {
        self.open_as("*.ndjson")
    }

    fn open_as(&self, pattern: &str) -> Result<FileSetSource, SourceError> {
        let (path, checkpoint) = (self.path(pattern), self.path("checkpoint"));
        let set = FileSet::find(&path).unwrap().unwrap();
        FileSetSource::with_checkpoint(path, &set, checkpoint, FileSourceOptions::default())
    }

    async fn run(&self) -> Run {
        Run::of(self.open().unwrap()).await
    }

    /// What a run takes, all of which is done afterwards.
    async fn handled(&self) -> Vec<Line> {
        let mut run = self.run().await;
        let taken = run.drain().await;
        taken.iter().for_each(|line| run.settle(line));
        run.end().await;
        taken
    }
}

/// One run over a set, by hand.
struct Run {
    source: FileSetSource,
    committer: Arc<dyn Committer>,
    places: Arc<dyn Places>,
    /// Taken and not settled, each with its position and with who is to hear of it.
    open: BTreeMap<Line, (u64, Arc<dyn Receipts>)>,
    last: u64,
}

impl Run {
    async fn of(mut source: FileSetSource) -> Self {
        let (committer, places) = (source.committer().unwrap(), source.places().unwrap());
        committer.commit().await.unwrap();
        Self { source, committer, places, open: BTreeMap::new(), last: 0 }
    }

    fn standing(&self) -> Standing {
        self.committer.standing()
    }

    /// Takes what comes next, in order. Commits meanwhile, which a pull may wait for.
    async fn pull(&mut self) -> Result<(Vec<Line>, Pull), SourceError> {
        let mut items = Vec::new();
        let pulled = loop {
            tokio::select! {
                biased;
                pulled = self.source.pull(&mut items) => break pulled?,
                () = self.committer.due() => self.committer.commit().await?,
            }
        };
        let mut taken = Vec::new();
        for item in items {
            assert!(item.position > self.last, "positions rise");
            self.last = item.position;
            let Place { source, position } = self.places.place(None, item.position);
            let name = source.rsplit('/').next().unwrap().to_owned();
            let receipts = self.source.receipts().unwrap();
            self.open.insert((name.clone(), position), (item.position, receipts));
            taken.push((name, position));
        }
        Ok((taken, pulled))
    }

    /// Takes all that there is.
    async fn drain(&mut self) -> Vec<Line> {
        let mut all = Vec::new();
        loop {
            let (taken, pulled) = self.pull().await.unwrap();
            all.extend(taken);
            if pulled == Pull::End {
                return all;
            }
        }
    }

    fn settle(&mut self, line: &Line) {
        let (position, receipts) = self.open.remove(line).unwrap();
        receipts.settled(position, DONE);
    }

    async fn end(self) {
        drop(self.source);
        self.committer.commit().await.unwrap();
        self.committer.end();
    }
}

fn of(file: &str, lines: impl IntoIterator<Item = u64>) -> Vec<Line> {
    lines.into_iter().map(|line| (file.to_owned(), line)).collect()
}

#[tokio::test]
async fn b01_files_are_read_one_after_the_other_by_name() {
    let stage = Stage::with(&[("b.ndjson", 3), ("a.ndjson", 2), ("d.ndjson", 0)]);
    stage.write("c.ndjson", &gzip(&lines(1..=4)));
    let expected = [of("a.ndjson", 1..=2), of("b.ndjson", 1..=3), of("c.ndjson", 1..=4)].concat();
    let mut run = stage.run().await;
    assert_eq!(run.source.progress(), Some(0.0));
    assert_eq!(run.drain().await, expected);
    assert_eq!(run.source.progress(), Some(1.0));

    let path = stage.path("*.ndjson");
    let set = FileSet::find(&path).unwrap().unwrap();
    let mut without = FileSetSource::open(&path, &set, FileSourceOptions::default()).unwrap();
    let (mut items, mut progress) = (Vec::new(), 0.0);
    while without.pull(&mut items).await.unwrap() == Pull::More {
        assert!(without.progress().unwrap() >= progress, "it only rises");
        progress = without.progress().unwrap();
    }
    let positions: Vec<_> = items.iter().map(|item| item.position).collect();
    assert_eq!(positions, (1..=9).collect::<Vec<_>>());
    assert!(without.receipts().is_none() && without.committer().is_none());
}

#[tokio::test]
async fn b01_each_file_has_its_record_and_a_later_run_takes_what_is_open() {
    let stage = Stage::with(&[("a.ndjson", 4), ("b.ndjson", 4), ("c.ndjson", 4)]);
    let mut first = stage.run().await;
    assert_eq!(first.standing(), Standing::default());
    let taken = first.drain().await;
    let open = [("a.ndjson".to_owned(), 2), ("c.ndjson".to_owned(), 1)];
    for line in taken.iter().filter(|line| !open.contains(line)) {
        first.settle(line);
    }
    let (position, receipts) = first.open.remove(&open[1]).unwrap();
    receipts.settled(position, Settled::Refused(Refusal::NotStored));
    assert_eq!(first.open.len(), 1, "the other one is in hand when it ends");
    first.end().await;

    let mut second = stage.run().await;
    let resumed = Resumed { partitions: 1, files: 3, done: 5, again_at_most: 2 };
    assert_eq!(second.standing().resumed, Some(resumed));
    assert_eq!(second.standing().repeated_at_most, 2);
    assert_eq!(second.drain().await, open);
    open.iter().for_each(|line| second.settle(line));
    second.end().await;
    assert!(stage.handled().await.is_empty());
}

#[tokio::test]
async fn b01_a_file_that_is_done_is_passed_over_and_one_that_has_grown_is_read_on() {
    let stage = Stage::with(&[("a.ndjson", 2), ("b.ndjson", 2)]);
    stage.write("c.ndjson", &gzip(&lines(1..=2)));
    assert_eq!(stage.handled().await.len(), 6);
    stage.append("a.ndjson", &lines(3..=3));
    stage.append("c.ndjson", &gzip(&lines(3..=4)));
    stage.write("d.ndjson", &lines(1..=1));
    let expected = [of("a.ndjson", [3]), of("c.ndjson", [3, 4]), of("d.ndjson", [1])].concat();
    assert_eq!(stage.handled().await, expected);
    let mut last = stage.run().await;
    assert!(last.drain().await.is_empty());
    assert_eq!(last.standing().skipped, 0, "no file was opened");
}

/// A line that comes between the end of a file and its last commit is not taken for done.
#[tokio::test]
async fn b01_what_is_appended_after_the_end_was_read_is_for_the_next_run() {
    let stage = Stage::with(&[("a.ndjson", 2), ("b.ndjson", 2)]);
    let mut run = stage.run().await;
    let taken = run.drain().await;
    stage.append("a.ndjson", &lines(3..=3));
    taken.iter().for_each(|line| run.settle(line));
    run.end().await;
    assert_eq!(stage.handled().await, of("a.ndjson", [3]));
}

#[tokio::test]
async fn b01_renamed_files_keep_their_records_and_those_of_removed_ones_go() {
    let stage = Stage::with(&[("a.ndjson", 2), ("b.ndjson", 3), ("c.ndjson", 1)]);
    assert_eq!(stage.handled().await.len(), 6);
    fs::rename(stage.path("b.ndjson"), stage.path("z.ndjson")).unwrap();
    fs::remove_file(stage.path("c.ndjson")).unwrap();
    stage.append("z.ndjson", &lines(4..=4));
    assert_eq!(stage.handled().await, of("z.ndjson", [4]));
    let kept = fs::read_to_string(stage.path("checkpoint")).unwrap();
    assert!(kept.contains("z.ndjson") && !kept.contains("c.ndjson"), "{kept}");
    // Another file under a name that is known.
    fs::remove_file(stage.path("a.ndjson")).unwrap();
    stage.write("new", &lines(7..=9));
    fs::rename(stage.path("new"), stage.path("a.ndjson")).unwrap();
    assert_eq!(stage.handled().await, of("a.ndjson", 1..=3));
}

#[tokio::test]
async fn b01_what_cannot_be_read_is_told_once_the_others_are_read() {
    let stage = Stage::with(&[("a.ndjson", 2), ("c.ndjson", 1)]);
    std::os::unix::fs::symlink("nowhere", stage.path("b.ndjson")).unwrap();
    let mut run = stage.run().await;
    let mut all = Vec::new();
    let error = loop {
        match run.pull().await {
            Ok((taken, pulled)) => {
                assert_eq!(pulled, Pull::More);
                all.extend(taken);
            }
            Err(error) => break error.to_string(),
        }
    };
    assert_eq!(all, [of("a.ndjson", 1..=2), of("c.ndjson", 1..=1)].concat());
    assert!(
        error.contains("b.ndjson cannot be read") && error.contains("all others were read"),
        "{error}"
    );
    all.iter().for_each(|line| run.settle(line));
    run.end().await;
    // What is known of a file is kept while it cannot be read.
    let read = stage.path("a.ndjson");
    fs::rename(&read, stage.path("moved")).unwrap();
    std::os::unix::fs::symlink("a.ndjson", &read).unwrap();
    fs::rename(stage.path("moved"), stage.path("d.ndjson")).unwrap();
    assert!(stage.open().is_ok());
}

#[tokio::test]
async fn b01_a_file_that_vanishes_before_its_turn_ends_the_input_and_is_named() {
    let stage = Stage::with(&[("b.ndjson", 1), ("c.ndjson", 1)]);
    // So large that the next one is not opened ahead.
    stage.write("a.ndjson", &lines(1..=30_000));
    let mut run = stage.run().await;
    let (taken, _) = run.pull().await.unwrap();
    assert_eq!(taken[0], ("a.ndjson".to_owned(), 1));
    fs::remove_file(stage.path("b.ndjson")).unwrap();
    let error = loop {
        match run.pull().await {
            Ok((taken, _)) => assert!(taken.iter().all(|(file, _)| file == "a.ndjson")),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("b.ndjson: cannot be read"), "{error}");
    assert!(
        error.contains("was there when the run began") && error.contains("run again"),
        "{error}"
    );
}

#[tokio::test]
async fn b01_a_damaged_file_is_named_with_its_line_and_nothing_behind_it_is_read() {
    let stage = Stage::with(&[("a.ndjson", 2), ("c.ndjson", 2)]);
    let whole = gzip(&lines(1..=3));
    stage.write("b.ndjson", &whole[..whole.len() / 2]);
    let mut run = stage.run().await;
    let mut taken = Vec::new();
    let error = loop {
        match run.pull().await {
            Ok((lines, _)) => taken.extend(lines),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("b.ndjson: reading failed in line "), "{error}");
    assert!(taken.iter().all(|(file, _)| file != "c.ndjson"), "{taken:?}");
    taken.iter().for_each(|line| run.settle(line));
    run.end().await;
    stage.write("b.ndjson", &whole);
    let rest = stage.handled().await;
    assert_eq!(rest.iter().filter(|(file, _)| file == "c.ndjson").count(), 2);
    assert_eq!(rest.len() + taken.len(), 7);
}

#[tokio::test]
async fn b01_a_set_without_a_file_is_an_error() {
    let stage = Stage::with(&[]);
    let error = stage.open().err().unwrap().to_string();
    assert!(error.contains("*.ndjson: there is no file to read"), "{error}");
}

#[tokio::test]
async fn b01_a_checkpoint_of_one_file_goes_on_in_a_set_and_not_the_other_way_round() {
    let stage = Stage::with(&[("a.ndjson", 3), ("b.ndjson", 1)]);
    let (path, checkpoint) = (stage.path("a.ndjson"), stage.path("checkpoint"));
    let options = FileSourceOptions::default();
    let mut one = FileSource::with_checkpoint(&path, &checkpoint, options.clone()).unwrap();
    let committer = one.committer().unwrap();
    committer.commit().await.unwrap();
    one.pull(&mut Vec::new()).await.unwrap();
    let receipts = one.receipts().unwrap();
    [1, 2].into_iter().for_each(|line| receipts.settled(line, DONE));
    committer.commit().await.unwrap();
    drop(one);
    committer.end();
    let expected = [of("a.ndjson", [3]), of("b.ndjson", [1])].concat();
    assert_eq!(stage.handled().await, expected);
    let error = FileSource::with_checkpoint(&path, &checkpoint, options).err().unwrap().to_string();
    assert!(
        error.contains("it is of several files, ") && error.contains("name another"),
        "{error}"
    );
}

#[tokio::test]
async fn b01_a_checkpoint_of_another_input_is_refused_and_left_as_it_is() {
    let stage = Stage::with(&[("a.ndjson", 3)]);
    stage.handled().await;
    let kept = fs::read(stage.path("checkpoint")).unwrap();
    stage.write("other.json", &lines(1..=1));
    let error = stage.open_as("*.json").err().unwrap().to_string();
    assert!(error.contains("it is of another input, ") && error.contains("*.ndjson"), "{error}");
    assert_eq!(fs::read(stage.path("checkpoint")).unwrap(), kept);
    // The same files by another pattern are the same input.
    assert!(stage.open_as("a.*").is_ok());
    // New files in place of all that there were are the next ones of this input.
    fs::remove_file(stage.path("a.ndjson")).unwrap();
    stage.write("b.ndjson", &lines(5..=9));
    assert_eq!(stage.handled().await.len(), 5);
}

#[tokio::test]
async fn b01_small_files_share_a_commit_and_few_are_open() {
    let names: Vec<String> = (0..400).map(|n| format!("{n:03}.ndjson")).collect();
    let files: Vec<(&str, u32)> = names.iter().map(|name| (name.as_str(), 2)).collect();
    let stage = Stage::with(&files);
    let mut run = stage.run().await;
    let mut commits = 0;
    let mut items = Vec::new();
    loop {
        tokio::select! {
            biased;
            pulled = run.source.pull(&mut items) => if pulled.unwrap() == Pull::End { break },
            () = run.committer.due() => {
                run.committer.commit().await.unwrap();
                commits += 1;
            }
        }
    }
    assert_eq!(items.len(), 800);
    assert!(commits < 60, "{commits}");
    let keeper = run.source.files.keeper.clone().unwrap();
    assert!(keeper.held_open() <= 2 * AHEAD, "{}", keeper.held_open());
    drop((keeper, run));
    let again = stage.run().await.standing();
    assert_eq!(again.resumed.unwrap().again_at_most, 800, "nothing of it was settled");
}

/// Whatever is settled, refused or in hand when it comes to a crash, whatever is appended, renamed
/// and added: the next run takes what no commit says is done, and nothing else; in order.
#[tokio::test]
async fn b01_random_runs_over_random_files_take_every_line_until_it_is_done() {
    for seed in 0..25 {
        let mut chance = StdRng::seed_from_u64(seed);
        let stage = Stage::with(&[]);
        // The lines of each file, and those that a commit says are done.
        let mut files: BTreeMap<String, u32> = BTreeMap::new();
        let mut done: BTreeSet<Line> = BTreeSet::new();
        for _ in 0..6 {
            change(&stage, &mut chance, &mut files, &mut done);
            let expected: Vec<Line> = files
                .iter()
                .flat_map(|(file, count)| of(file, 1..=u64::from(*count)))
                .filter(|line| !done.contains(line))
                .collect();
            let mut run = stage.run().await;
            let (mut taken, mut ended) = (Vec::new(), false);
            while !ended && !chance.random_bool(0.05) {
                let (lines, pulled) = run.pull().await.unwrap();
                taken.extend(lines);
                ended = pulled == Pull::End;
                for line in run.open.keys().cloned().collect::<Vec<_>>() {
                    if chance.random_bool(0.7) {
                        run.settle(&line);
                    }
                }
                if chance.random_bool(0.5) {
                    run.committer.commit().await.unwrap();
                }
            }
            assert_eq!(taken, expected[..taken.len()], "seed {seed}");
            assert!(!ended || taken.len() == expected.len(), "seed {seed}");
            run.committer.commit().await.unwrap();
            let open: BTreeSet<_> = run.open.keys().cloned().collect();
            done.extend(taken.into_iter().filter(|line| !open.contains(line)));
            drop(run);
        }
    }
}

fn change(
    stage: &Stage,
    chance: &mut StdRng,
    files: &mut BTreeMap<String, u32>,
    done: &mut BTreeSet<Line>,
) {
    for _ in 0..chance.random_range(1..4) {
        let known: Vec<String> = files.keys().cloned().collect();
        let new = format!("{:04}.ndjson", chance.random_range(0..10_000));
        let at = chance.random_range(0..=known.len());
        match known.get(at) {
            None if !files.contains_key(&new) => {
                let count = chance.random_range(1..30);
                stage.write(&new, &lines(1..=count));
                files.insert(new, count);
            }
            Some(old) if chance.random_bool(0.3) && !files.contains_key(&new) => {
                fs::rename(stage.path(old), stage.path(&new)).unwrap();
                let count = files.remove(old).unwrap();
                files.insert(new.clone(), count);
                let (moved, rest): (BTreeSet<_>, _) =
                    std::mem::take(done).into_iter().partition(|(file, _)| file == old);
                *done = rest;
                done.extend(moved.into_iter().map(|(_, line)| (new.clone(), line)));
            }
            Some(old) => {
                let count = chance.random_range(1..10);
                stage.append(old, &lines(1..=count));
                *files.get_mut(old).unwrap() += count;
            }
            None => {}
        }
    }
    if files.is_empty() {
        stage.write("0.ndjson", &lines(1..=5));
        files.insert("0.ndjson".to_owned(), 5);
    }
}
