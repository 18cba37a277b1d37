use std::{fs, io::Write, path::Path, time::Duration};

use super::{
    tests::{file, gzip, line, lines, zstd},
    *,
};
use crate::{
    settlement::{Outcome, Refusal, Settled},
    source::{Partition, Resumed, Standing},
};

const DONE: Settled = Settled::Acknowledged(Outcome::Handled);

fn open(path: &Path) -> Result<FileSource, SourceError> {
    let checkpoint = path.with_file_name("checkpoint");
    FileSource::with_checkpoint(path, checkpoint, FileSourceOptions::default())
}

/// One run over a file, by hand.
struct Run {
    source: FileSource,
    committer: Arc<dyn Committer>,
    taken: Vec<u64>,
}

impl Run {
    async fn start(path: &Path) -> Self {
        let mut source = open(path).unwrap();
        let committer = source.committer().unwrap();
        committer.commit().await.unwrap();
        Self { source, committer, taken: Vec::new() }
    }

    fn standing(&self) -> Standing {
        self.committer.standing()
    }

    async fn pull(&mut self) -> Pull {
        let mut items = Vec::new();
        let pull = self.source.pull(&mut items).await.unwrap();
        self.taken.extend(items.iter().map(|item| item.position));
        self.committer.commit().await.unwrap();
        pull
    }

    /// Takes all that there is.
    async fn drain(&mut self) -> Vec<u64> {
        while self.pull().await == Pull::More {}
        std::mem::take(&mut self.taken)
    }

    fn settle(&self, lines: impl IntoIterator<Item = u64>) {
        let receipts = self.source.receipts().unwrap();
        lines.into_iter().for_each(|line| receipts.settled(line, DONE));
    }
}

/// What a run takes of this file, all of which is done afterwards.
async fn handled(path: &Path) -> Vec<u64> {
    let mut run = Run::start(path).await;
    let taken = run.drain().await;
    run.settle(taken.iter().copied());
    run.committer.commit().await.unwrap();
    taken
}

#[tokio::test]
async fn b01_a_later_run_takes_what_was_open_and_nothing_else() {
    let plain = lines(1..=10_000);
    for content in [plain.clone(), gzip(&plain), zstd(&plain)] {
        let (_directory, path) = file(&content);
        let mut first = Run::start(&path).await;
        assert_eq!(first.standing(), Standing::default());
        let taken = first.drain().await;
        assert_eq!(taken, (1..=10_000).collect::<Vec<_>>());
        let open = [5, 77, 9_000];
        first.settle(taken.into_iter().rev().filter(|line| !open.contains(line)));
        first.source.receipts().unwrap().settled(77, Settled::Refused(Refusal::NotStored));
        first.committer.commit().await.unwrap();
        assert_eq!(first.standing().repeated_at_most, 3);

        first.committer.end();
        let mut second = Run::start(&path).await;
        let resumed = Resumed { partitions: 1, files: 1, done: 9_993, again_at_most: 3 };
        assert_eq!(second.standing().resumed, Some(resumed));
        assert_eq!(second.drain().await, open);
        assert!(second.standing().skipped >= 9_993);
        second.settle(open);
        second.committer.commit().await.unwrap();
        assert_eq!(second.standing().repeated_at_most, 0);
        second.committer.end();
        assert!(Run::start(&path).await.drain().await.is_empty());
    }
}

#[tokio::test]
async fn b01_nothing_is_held_open_of_a_file_whose_positions_are_stored_no_more() {
    let (_directory, path) = file(&lines(1..=20_000));
    for to_its_end in [true, false] {
        let mut run = Run::start(&path).await;
        run.pull().await;
        if to_its_end {
            run.drain().await;
        }
        let keeper = run.source.keeper.clone().unwrap();
        assert_eq!(keeper.held_open(), 1);
        drop(run.source);
        run.committer.end();
        assert_eq!(keeper.held_open(), 0);
        assert!(run.committer.standing().repeated_at_most > 0, "the report still asks");
    }
}

#[tokio::test]
async fn d15_a_file_is_one_partition_that_says_what_is_open_longest_and_how_much_is_left() {
    let (_directory, path) = file(&lines(1..=20_000));
    let mut run = Run::start(&path).await;
    let only = |run: &Run| {
        let standings = run.committer.partitions();
        assert_eq!((standings.len(), standings[0].partition), (1, Partition::ONLY));
        standings[0]
    };
    assert_eq!((only(&run).oldest_open, only(&run).next, only(&run).lag), (1, 1, None));
    run.pull().await;
    let taken = run.taken.len() as u64;
    assert_eq!((only(&run).oldest_open, only(&run).next), (1, 1 + taken));
    assert_eq!(only(&run).lag, None, "how many lines follow is not known");
    run.settle((1..=taken).filter(|line| *line != 7));
    assert_eq!(only(&run).oldest_open, 7);
    let all = run.drain().await;
    run.settle(all.into_iter().filter(|line| *line > taken).chain([7]));
    let standing = only(&run);
    assert_eq!((standing.oldest_open, standing.next, standing.lag), (20_001, 20_001, Some(0)));
}

#[tokio::test]
async fn b01_a_plain_file_is_read_from_near_the_first_open_line() {
    let (_directory, path) = file(&lines(1..=60_000));
    let length = path.metadata().unwrap().len();
    let mut first = Run::start(&path).await;
    first.drain().await;
    first.settle(1..54_000);
    first.committer.commit().await.unwrap();
    first.committer.end();
    let mut second = Run::start(&path).await;
    let skipped_bytes = second.source.read.load(Ordering::Relaxed);
    assert!(skipped_bytes > length * 7 / 10, "{skipped_bytes} of {length}");
    assert_eq!(second.drain().await, (54_000..=60_000).collect::<Vec<_>>());
}

#[tokio::test]
async fn b01_a_file_that_has_grown_or_moved_is_read_on() {
    let (directory, path) = file(&lines(1..=3));
    assert_eq!(handled(&path).await, [1, 2, 3]);
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(&lines(4..=5)).unwrap();
    assert_eq!(handled(&path).await, [4, 5]);
    file.write_all(&lines(6..=6)).unwrap();
    let moved = directory.path().join("moved");
    fs::rename(&path, &moved).unwrap();
    assert_eq!(handled(&moved).await, [6]);
}

#[tokio::test]
async fn b01_a_file_that_is_another_one_is_read_from_its_start() {
    let changes: [fn(&Path); 4] = [
        |path| {
            let beside = path.with_extension("new");
            fs::copy(path, &beside).unwrap();
            fs::rename(&beside, path).unwrap();
        },
        |path| fs::write(path, lines(1..=9_000)).unwrap(),
        |path| fs::write(path, lines(2..=20_000)).unwrap(),
        |path| {
            // Its beginning is the same, and what was read last is not.
            let mut content = lines(1..=10_000);
            let changed = content.iter().rposition(|byte| *byte == b's').unwrap();
            let middle = content.len() / 2 + 8_192;
            for byte in &mut content[middle..changed] {
                *byte = if *byte == b's' { b'S' } else { *byte };
            }
            fs::write(path, content).unwrap();
        },
    ];
    for (case, change) in changes.into_iter().enumerate() {
        let (_directory, path) = file(&lines(1..=10_000));
        assert_eq!(handled(&path).await.len(), 10_000);
        change(&path);
        let mut again = Run::start(&path).await;
        assert_eq!(again.standing().resumed, None, "case {case}");
        assert_eq!(again.drain().await.first(), Some(&1), "case {case}");
    }
}

#[tokio::test]
async fn b01_a_checkpoint_that_cannot_be_used_is_told_and_what_to_do() {
    let (directory, path) = file(&lines(1..=3));
    handled(&path).await;
    let checkpoint = directory.path().join("checkpoint");
    let whole = fs::read(&checkpoint).unwrap();
    let other = directory.path().join("other");
    fs::write(&other, lines(1..=3)).unwrap();
    let error = open(&other).err().unwrap().to_string();
    assert!(error.contains("it is of another input") && error.contains("remove it"), "{error}");
    for (content, why) in [
        (&whole[..whole.len() / 2], "it is damaged"),
        (&b"my shopping list\n"[..], "it is not a checkpoint of greenroom"),
        (&b""[..], "it is not a checkpoint of greenroom"),
    ] {
        fs::write(&checkpoint, content).unwrap();
        let error = open(&path).err().unwrap().to_string();
        assert!(error.contains(why) && error.contains("remove it to read the input"), "{error}");
        assert!(error.contains(&checkpoint.display().to_string()), "{error}");
        assert_eq!(fs::read(&checkpoint).unwrap(), content, "it is left as it was");
    }
    fs::remove_file(&checkpoint).unwrap();
    assert_eq!(handled(&path).await, [1, 2, 3]);
}

#[tokio::test]
async fn b01_only_a_regular_file_can_be_read_on() {
    let (directory, _) = file(b"");
    let checkpoint = directory.path().join("checkpoint");
    let options = FileSourceOptions::default();
    let error = FileSource::with_checkpoint("/dev/null", checkpoint, options).err().unwrap();
    assert!(error.to_string().contains("leave its checkpoint out"), "{error}");
}

/// Of what is taken after a commit, a later run knows only that there may be some.
#[tokio::test]
async fn d01_no_more_is_taken_than_the_checkpoint_says_may_be() {
    let (_directory, path) = file(&lines(1..=100_000));
    let mut source = open(&path).unwrap();
    let committer = source.committer().unwrap();
    let mut items = Vec::new();
    let patience = Duration::from_millis(200);
    assert!(tokio::time::timeout(patience, source.pull(&mut items)).await.is_err());
    assert!(items.is_empty(), "nothing was announced yet");
    committer.commit().await.unwrap();
    assert_eq!(source.pull(&mut items).await.unwrap(), Pull::More);
    while tokio::time::timeout(patience, source.pull(&mut items)).await.is_ok() {}
    let taken = items.len() as u64;
    assert!((1..=16_384).contains(&taken), "{taken}");

    let checkpoint = path.with_file_name("checkpoint");
    let after = FileSource::looking(&path, checkpoint, FileSourceOptions::default());
    let resumed = after.unwrap().committer().unwrap().standing().resumed.unwrap();
    assert!((taken..=16_384).contains(&resumed.again_at_most), "{taken} of {resumed:?}");
    committer.commit().await.unwrap();
    assert_eq!(source.pull(&mut items).await.unwrap(), Pull::More);
}

/// A checkpoint says that 16,384 lines more may have been taken, however few there are.
#[tokio::test]
async fn d01_no_more_is_announced_to_come_again_than_the_file_has() {
    for done in [0, 40, 100] {
        let (_directory, path) = file(&lines(1..=100));
        let mut run = Run::start(&path).await;
        if done > 0 {
            run.pull().await;
            run.settle(1..=done);
            run.committer.commit().await.unwrap();
        }
        run.committer.end();
        let after = Run::start(&path).await;
        let again = after.standing().resumed.unwrap().again_at_most;
        assert_eq!(again, 100 - done, "of 100 lines, with {done} done");
    }
}

#[tokio::test]
async fn d01_a_commit_is_due_when_much_was_settled() {
    let (_directory, path) = file(&lines(1..=10_000));
    let mut run = Run::start(&path).await;
    run.drain().await;
    let due = |run: &Run| {
        let committer = run.committer.clone();
        async move { tokio::time::timeout(Duration::from_millis(50), committer.due()).await }
    };
    // What taking has made due.
    let _ = due(&run).await;
    run.committer.commit().await.unwrap();
    run.settle(1..4_096);
    assert!(due(&run).await.is_err());
    run.settle(4_096..4_097);
    due(&run).await.unwrap();
}

#[tokio::test]
async fn b01_a_checkpoint_that_cannot_be_stored_is_an_error_that_says_what_to_do() {
    let (directory, path) = file(&lines(1..=3));
    let checkpoint = directory.path().join("no/such/directory");
    let options = FileSourceOptions::default();
    let mut source = FileSource::with_checkpoint(&path, checkpoint, options).unwrap();
    let error = source.committer().unwrap().commit().await.unwrap_err().to_string();
    assert!(error.contains("cannot be stored") && error.contains("run again"), "{error}");
}

#[tokio::test]
async fn b01_lines_without_an_event_keep_their_numbers() {
    let content = format!("\n{}\n\n\nnonsense\n{}\n\n", line(1), line(2));
    let (_directory, path) = file(content.as_bytes());
    let mut run = Run::start(&path).await;
    assert_eq!(run.drain().await, [2, 5, 6]);
    run.settle([2, 6]);
    run.committer.commit().await.unwrap();
    drop(run);
    assert_eq!(Run::start(&path).await.drain().await, [5]);
}

#[tokio::test]
async fn a_checkpoint_is_used_by_one_run_at_a_time() {
    let (directory, path) = file(&lines(1..=3));
    let (first, late) = (open(&path).unwrap(), open(&path).unwrap());
    let mut committers = [first, late].map(|mut source| source.committer().unwrap()).into_iter();
    let (first, late) = (committers.next().unwrap(), committers.next().unwrap());
    first.commit().await.unwrap();
    let error = late.commit().await.unwrap_err().to_string();
    assert!(error.contains("cannot be stored: another"), "{error}");
    let error = open(&path).err().unwrap().to_string();
    assert!(error.contains("is in use: another") && error.contains("name another"), "{error}");
    drop(first);
    let error = late.commit().await.unwrap_err().to_string();
    assert!(error.contains("another run has stored its own"), "{error}");
    assert!(!directory.path().join("checkpoint.tmp").exists());
    drop(late);
    assert_eq!(handled(&path).await, [1, 2, 3]);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "nothing is left beside it");
}

/// The archive is cut, and restored in place.
#[tokio::test]
async fn the_line_that_a_truncated_archive_cut_is_taken_once_it_is_restored() {
    let noise = |n: u32| line(n.wrapping_mul(2_654_435_761)) + "\n";
    let plain: String = (1..=20_000).map(noise).collect();
    for whole in [gzip(plain.as_bytes()), zstd(plain.as_bytes())] {
        let (_directory, path) = file(&whole[..whole.len() / 2]);
        let mut run = Run::start(&path).await;
        let mut items = Vec::new();
        let error = loop {
            match run.source.pull(&mut items).await {
                Ok(_) => run.committer.commit().await.unwrap(),
                Err(error) => break error.to_string(),
            }
        };
        let last = items.last().unwrap().position;
        let next = format!("in line {}, ", last + 1);
        assert!(error.contains(&next) && error.contains("goes on with this line"), "{error}");
        run.settle(1..=last);
        run.committer.commit().await.unwrap();
        drop(run);
        fs::write(&path, &whole).unwrap();
        let rest = handled(&path).await;
        assert_eq!((rest.first(), rest.last()), (Some(&(last + 1)), Some(&20_000)));
    }
}
