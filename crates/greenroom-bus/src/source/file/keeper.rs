//! The checkpoint of an input: the record of its file, or one for each of its files that was begun.
//!
//! A file of several is open here while something of it is not settled. Then only its record is
//! kept, so that the open files are few, however many the input has.

use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{
    checkpoint::{Checkpoint, StoredCheckpoint, text_of_one, text_of_several},
    positions::{FilePositions, PositionsRecord},
    resume::Start,
    skip::Skip,
};
use crate::{
    BoxFuture,
    source::{Committer, LOCAL, PartitionStanding, Resumed, SourceError, Standing},
    watermark::DoneAhead,
};

/// This many files are held open because they have unsettled lines. For the others, the position to
/// read on from stays as it was last, which costs a later run some lines to skip.
const HELD_OPEN: usize = 16;

/// Shared by a source and the task that commits.
#[derive(Clone)]
pub(super) struct Keeper(Arc<Shared>);

struct Shared {
    /// The name of the source in reports.
    name: String,
    /// The progress of an earlier run.
    resumed: Option<Resumed>,
    /// Lines that it has left done, and that were skipped.
    skipped: Arc<AtomicU64>,
    /// The input may have several files.
    is_set: bool,
    /// By their index in the input; `None` for one that was never begun.
    files: Mutex<Vec<Option<Kept>>>,
    /// Locked by one commit at a time, for as long as it takes to store it.
    store: Mutex<Store>,
    due: Arc<Notify>,
}

/// The state of a file that was begun.
#[derive(Clone)]
pub(super) enum Kept {
    /// As an earlier run has left it, with the lines that are delivered again at most; or done.
    Stored(Arc<StoredCheckpoint>, u64),
    /// It is read, or something of it is not settled.
    Open(FilePositions),
    /// There is nothing to be kept of it any more.
    Forgotten,
}

struct Store {
    checkpoint: Checkpoint,
    /// The name of the files, if the input may have several.
    input: Option<String>,
    /// The last written text.
    last: String,
}

impl Keeper {
    /// Of an input that is one file.
    pub(super) fn of_one(name: String, checkpoint: Checkpoint, resumed: Option<Resumed>) -> Self {
        Self::new(name, checkpoint, None, vec![None], resumed)
    }

    /// Of an input of these files, which this names.
    pub(super) fn of_several(
        name: String,
        checkpoint: Checkpoint,
        input: String,
        files: Vec<Option<Kept>>,
        resumed: Option<Resumed>,
    ) -> Self {
        Self::new(name, checkpoint, Some(input), files, resumed)
    }

    fn new(
        name: String,
        checkpoint: Checkpoint,
        input: Option<String>,
        files: Vec<Option<Kept>>,
        resumed: Option<Resumed>,
    ) -> Self {
        Self(Arc::new(Shared {
            name,
            resumed,
            skipped: Arc::default(),
            is_set: input.is_some(),
            files: Mutex::new(files),
            store: Mutex::new(Store { checkpoint, input, last: String::new() }),
            due: Arc::default(),
        }))
    }

    /// Told when a commit should not wait.
    pub(super) fn due(&self) -> Arc<Notify> {
        self.0.due.clone()
    }

    /// The lines that the reading thread need not parse.
    pub(super) fn skip(&self, start: &Start) -> Skip {
        Skip::new(start.done.clone(), self.0.skipped.clone())
    }

    /// The file at this place is read from here on.
    pub(super) fn opened(&self, place: usize, positions: FilePositions) {
        self.0.files.lock()[place] = Some(Kept::Open(positions));
    }

    /// A new file is read, or one with this record from an earlier run. Returns its index.
    pub(super) fn add(&self, kept: Kept) -> usize {
        let mut files = self.0.files.lock();
        files.push(Some(kept));
        files.len() - 1
    }

    /// Nothing more is taken of any file.
    pub(super) fn end_all(&self) {
        for kept in self.0.files.lock().iter().flatten() {
            if let Kept::Open(positions) = kept {
                positions.end(None);
            }
        }
    }

    /// Nothing is stored any more of the file at this place.
    pub(super) fn forget(&self, place: usize) {
        self.0.files.lock()[place] = Some(Kept::Forgotten);
    }

    /// The file at this index has more data. `Ok`: its positions are at hand; otherwise its stored
    /// record.
    pub(super) fn reopened(
        &self,
        place: usize,
    ) -> Result<Option<FilePositions>, Arc<StoredCheckpoint>> {
        match &self.0.files.lock()[place] {
            Some(Kept::Stored(stored, _)) => Err(stored.clone()),
            Some(Kept::Open(positions)) => {
                positions.set_followed(true);
                Ok(Some(positions.clone()))
            }
            Some(Kept::Forgotten) | None => Ok(None),
        }
    }

    /// The record of an earlier run for the file at this index.
    pub(super) fn stored(&self, place: usize) -> Option<Arc<StoredCheckpoint>> {
        match &self.0.files.lock()[place] {
            Some(Kept::Stored(stored, _)) => Some(stored.clone()),
            _ => None,
        }
    }

    /// Files that are open.
    pub(super) fn held_open(&self) -> usize {
        let files = self.0.files.lock();
        let is_open =
            |kept: &&Kept| matches!(kept, Kept::Open(positions) if positions.holds_file());
        files.iter().flatten().filter(is_open).count()
    }

    /// The content of the file differs from its record.
    pub(super) fn tell_other_content(&self, path: &Path, why: &str) {
        self.0.store.lock().checkpoint.tell_other_content(path, why);
    }
}

impl Shared {
    /// Stores the positions settled so far. Takes as long as the disk takes.
    fn write(&self) -> io::Result<()> {
        let store = &mut *self.store.lock();
        let files = self.files.lock().clone();
        let mut open = Vec::new();
        let mut records = Vec::new();
        for (place, kept) in files.into_iter().enumerate() {
            match kept {
                None | Some(Kept::Forgotten) => {}
                Some(Kept::Stored(stored, _)) => records.push(stored),
                Some(Kept::Open(positions)) => {
                    let Some(record) = positions.record()? else { continue };
                    records.push(record.stored.clone());
                    open.push((place, positions, record));
                }
            }
        }
        store.write(&records)?;
        open.iter().for_each(|(_, positions, record)| positions.is_stored(record));
        if store.input.is_some() {
            self.close(open);
        }
        Ok(())
    }

    /// Closes files whose lines are all settled and stored, and those beyond the limit.
    fn close(&self, open: Vec<(usize, FilePositions, PositionsRecord)>) {
        let (done, rest): (Vec<_>, Vec<_>) =
            open.into_iter().partition(|(_, _, record)| record.stored.is_complete());
        {
            let mut files = self.files.lock();
            for (place, positions, record) in done {
                let is_open =
                    matches!(&files[place], Some(Kept::Open(open)) if open.are_same(&positions));
                if is_open && !positions.is_followed() {
                    // Its source may know it still.
                    positions.close_file();
                    files[place] = Some(Kept::Stored(record.stored, 0));
                }
            }
        }
        let rest: Vec<_> =
            rest.into_iter().filter(|(_, positions, _)| !positions.is_followed()).collect();
        for (_, positions, _) in rest.iter().rev().skip(HELD_OPEN) {
            positions.let_go_of_file();
        }
    }

    fn failed(&self, error: impl std::fmt::Display) -> SourceError {
        let checkpoint = self.store.lock().checkpoint.path().display().to_string();
        let reason = format!(
            "its checkpoint {checkpoint} cannot be stored: {error}; mend that (free space, a writable directory, one run at a \
             time), then run again: it goes on from the last one that was stored"
        );
        SourceError::new(self.name.clone(), reason)
    }
}

impl Store {
    fn write(&mut self, records: &[Arc<StoredCheckpoint>]) -> io::Result<()> {
        let text = match (&self.input, records) {
            (None, [one]) => text_of_one(one)?,
            (None, _) => return Ok(()),
            (Some(input), records) => text_of_several(input, records)?,
        };
        if text != self.last {
            self.checkpoint.write(&text)?;
            self.last = text;
        }
        Ok(())
    }
}

impl Committer for Keeper {
    fn commit<'a>(&'a self) -> BoxFuture<'a, Result<(), SourceError>> {
        let shared = self.0.clone();
        Box::pin(async move {
            let written = tokio::task::spawn_blocking(move || shared.write()).await;
            match written {
                Ok(written) => written.map_err(|error| self.0.failed(error)),
                Err(panicked) => Err(self.0.failed(panicked)),
            }
        })
    }

    fn due<'a>(&'a self) -> BoxFuture<'a, ()> {
        Box::pin(self.0.due.notified())
    }

    fn every(&self) -> Duration {
        LOCAL
    }

    fn end(&self) {
        // This lives on for the report, which comes at the end of the run.
        for kept in self.0.files.lock().iter().flatten() {
            if let Kept::Open(positions) = kept {
                positions.close_file();
            }
        }
        self.0.store.lock().checkpoint.let_go();
    }

    fn standing(&self) -> Standing {
        let files = self.0.files.lock();
        let again = files.iter().flatten().map(|kept| match kept {
            Kept::Stored(_, again) => *again,
            Kept::Open(positions) => positions.repeated_at_most(),
            Kept::Forgotten => 0,
        });
        Standing {
            resumed: self.0.resumed,
            skipped: self.0.skipped.load(Ordering::Relaxed),
            repeated_at_most: again.sum(),
        }
    }

    fn partitions(&self) -> Vec<PartitionStanding> {
        let is_set = self.0.is_set;
        let files = self.0.files.lock();
        let open = files.iter().flatten().filter_map(|kept| match kept {
            Kept::Open(positions) if !is_set || positions.has_begun() => Some(positions.standing()),
            _ => None,
        });
        let all_begun = files.iter().all(Option::is_some);
        together(open)
            .map(|all| PartitionStanding { lag: all.lag.filter(|_| all_begun), ..all })
            .into_iter()
            .collect()
    }
}

/// Files that are read one after the other form one partition. The last one begun determines how
/// far it has come; the first with open lines determines the longest open position.
fn together(files: impl Iterator<Item = PartitionStanding>) -> Option<PartitionStanding> {
    files.reduce(|all, file| {
        let (first, last) = if all.next <= file.next { (all, file) } else { (file, all) };
        let is_open = first.oldest_open < first.next;
        let lag = first.lag.and(last.lag);
        let ahead = DoneAhead {
            positions: first.ahead.positions + last.ahead.positions,
            stored: first.ahead.stored + last.ahead.stored,
            not_stored: first.ahead.not_stored + last.ahead.not_stored,
            set_bytes: None,
        };
        PartitionStanding {
            oldest_open: if is_open { first.oldest_open } else { last.oldest_open },
            lag,
            ahead,
            ..last
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        source::Partition,
        watermark::{Positions, Watermark},
    };

    fn standing(oldest_open: u64, next: u64, lag: Option<u64>) -> PartitionStanding {
        let epoch = Watermark::default().assign(&Positions::default());
        PartitionStanding {
            partition: Partition::ONLY,
            epoch,
            next,
            oldest_open,
            lag,
            ahead: DoneAhead::default(),
        }
    }

    #[test]
    fn d15_files_that_are_one_partition_say_together_how_far_they_have_come() {
        let of = |files: &[PartitionStanding]| {
            let all = together(files.iter().copied()).unwrap();
            (all.oldest_open, all.next, all.lag)
        };
        let (done, open, reading) =
            (standing(11, 11, Some(0)), standing(14, 21, Some(0)), standing(30, 35, None));
        assert_eq!(of(&[done, open, reading]), (14, 35, None));
        assert_eq!(of(&[reading, done]), (30, 35, None));
        assert_eq!(of(&[done, open]), (14, 21, Some(0)));
        assert_eq!(together([].into_iter()), None);
    }
}
