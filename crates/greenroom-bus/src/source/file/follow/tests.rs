mod compressed;
mod growing;
mod nuls;
mod random;
mod replaced;
mod restarts;
mod rewritten;
mod sets;

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
use crate::{
    settlement::{Outcome, Settled},
    source::file::tests::gzip,
};

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
        let set = super::super::FileSet::find(&path).unwrap().unwrap();
        let source = super::super::FileSetSource::with_checkpoint(path, &set, checkpoint, options);
        Box::new(source.unwrap())
    }

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
