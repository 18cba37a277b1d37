//! Several files that are one input: a directory, or the matches of a pattern (B01).
//!
//! They are read one after the other, in the order of their names. So they are one partition, and
//! order per key holds from file to file:
//!
//! ```text
//! positions     1 2 3 4 5 6 7 8 9 …          rise over all files; for the engine alone
//! a.ndjson      1 2 3 4                      lines, as letters, errors and the checkpoint have them
//! b.ndjson              1 2
//! c.ndjson                  1 2 3 …
//! ```
//!
//! The list of files is made once, before the first is read. A file that appears later is for the
//! next run.
//!
//! With a checkpoint, no line of a file is taken before the checkpoint has a record of the file.
//! Small files are therefore opened several at a time: so one commit is enough for all of them.

use std::{collections::VecDeque, fmt, path::Path, sync::Arc};

use tokio::task::JoinHandle;

use super::{
    FileSource, FileSourceOptions, OpenedFile, PreparedFile, Resume,
    checkpoint::Checkpoint,
    keeper::Keeper,
    known::Known,
    plan::{Plan, Planned},
    resume::{NoStart, Start},
    select::{FileSet, UnreadableEntry},
    turns::{OfTurn, Turns},
};
use crate::source::{Committer, Places, Pull, Pulling, Receipts, Source, SourceError, Taken};

/// At most this many files are opened ahead.
const AHEAD: usize = 16;

/// Files are opened ahead up to this many bytes, which hold about as many lines as may be taken
/// before a commit.
const AHEAD_BYTES: u64 = 1 << 20;

/// Reads the files that a directory or a pattern names, in order, each like a [`FileSource`].
///
/// A file that cannot be read when the run begins is reported, and the others are read; then the
/// input ends with an error that names it. A file that cannot be read any more when its turn comes
/// ends the input at once, and the files after it are not read: their events may depend on its own.
/// A file that has grown is read to its present end.
pub struct FileSetSource {
    name: String,
    files: Arc<Files>,
    /// The first one that was not opened yet.
    next: usize,
    opening: Option<JoinHandle<Result<Opened, SourceError>>>,
    /// Opened, in order, and not read yet.
    ready: VecDeque<Ready>,
    current: Option<CurrentFile>,
    /// The last position that was given.
    last: u64,
    places: Arc<Turns>,
    is_committed: bool,
    /// Files that could not be read when the run began, until they are reported at the end.
    unread: Vec<UnreadableEntry>,
}

/// The files to read.
struct Files {
    files: Vec<Planned>,
    /// Of all of them together, in bytes.
    length: u64,
    options: FileSourceOptions,
    keeper: Option<Keeper>,
}

/// The result of opening the next files.
struct Opened {
    ready: VecDeque<Ready>,
    /// The first that was not looked at.
    next: usize,
}

struct Ready {
    place: usize,
    prepared: PreparedFile,
}

struct CurrentFile {
    place: usize,
    source: FileSource,
    /// The position before its first line.
    base: u64,
    receipts: Option<Arc<dyn Receipts>>,
}

impl FileSetSource {
    /// Opens the files of this set, which `path` names.
    ///
    /// # Errors
    /// There is none; or one of them cannot be read.
    pub fn open(
        path: impl AsRef<Path>,
        set: &FileSet,
        options: FileSourceOptions,
    ) -> Result<Self, SourceError> {
        Self::build(path.as_ref(), |name| {
            Ok(Self::new(name.clone(), Plan::new(set, &name)?, options, None))
        })
    }

    /// Like [`open`](Self::open), with the settled lines of each file kept in `checkpoint`. A file
    /// is identified by its inode and its content, as in [`FileSource::with_checkpoint`], so a
    /// renamed file is read on. Records of files that do not exist any more are dropped.
    ///
    /// # Errors
    /// Like there; or the checkpoint is damaged, belongs to another input or is not a checkpoint,
    /// and the next step.
    pub fn with_checkpoint(
        path: impl AsRef<Path>,
        set: &FileSet,
        checkpoint: impl AsRef<Path>,
        options: FileSourceOptions,
    ) -> Result<Self, SourceError> {
        let checkpoint = Checkpoint::at_path(checkpoint.as_ref());
        Self::build(path.as_ref(), |name| Self::go_on(name, set, checkpoint.claimed()?, options))
    }

    /// Like [`with_checkpoint`](Self::with_checkpoint), for a read-only caller: another run may be
    /// using the checkpoint, and nothing may be committed.
    ///
    /// # Errors
    /// As there.
    pub fn looking(
        path: impl AsRef<Path>,
        set: &FileSet,
        checkpoint: impl AsRef<Path>,
        options: FileSourceOptions,
    ) -> Result<Self, SourceError> {
        let checkpoint = Checkpoint::at_path(checkpoint.as_ref());
        Self::build(path.as_ref(), |name| Self::go_on(name, set, checkpoint, options))
    }

    fn build(
        path: &Path,
        open: impl FnOnce(String) -> Result<Self, String>,
    ) -> Result<Self, SourceError> {
        let name = format!("file:{}", path.display());
        open(name.clone()).map_err(|reason| SourceError::new(name, reason))
    }

    fn go_on(
        name: String,
        set: &FileSet,
        checkpoint: Checkpoint,
        options: FileSourceOptions,
    ) -> Result<Self, String> {
        let plan = Plan::new(set, &name)?;
        let input = set.absolute().display().to_string();
        let Known { kept, resumed } = Known::find(&checkpoint, &input, &plan)?;
        let keeper = Keeper::of_several(name.clone(), checkpoint, input, kept, resumed);
        Ok(Self::new(name, plan, options, Some(keeper)))
    }

    fn new(
        name: String,
        Plan { files, unread }: Plan,
        options: FileSourceOptions,
        keeper: Option<Keeper>,
    ) -> Self {
        let places = Turns::new(&name);
        Self {
            name,
            files: Arc::new(Files { length: Planned::length_of(&files), files, options, keeper }),
            next: 0,
            opening: None,
            ready: VecDeque::new(),
            current: None,
            last: 0,
            places,
            is_committed: false,
            unread,
        }
    }

    /// Begins with the next file. False if there is none.
    ///
    /// # Cancel safety
    /// A dropped future has done nothing that the next call does not find.
    async fn begin(&mut self) -> Result<bool, SourceError> {
        if self.ready.is_empty() && self.next < self.files.files.len() {
            let (files, from) = (self.files.clone(), self.next);
            let opening = self
                .opening
                .get_or_insert_with(|| tokio::task::spawn_blocking(move || files.open(from)));
            let opened = opening.await;
            self.opening = None;
            let opened = opened.map_err(|error| self.failed(&error))??;
            (self.ready, self.next) = (opened.ready, opened.next);
        }
        let Some(Ready { place, prepared }) = self.ready.pop_front() else { return Ok(false) };
        let (base, name) = (self.last, Arc::from(prepared.name.as_str()));
        let positions = prepared.resume.as_ref().map(|resume| resume.positions.clone());
        positions.iter().for_each(|positions| positions.begins_behind(base));
        let read = prepared.read(self.files.options.clone());
        let mut source = read.map_err(|error| self.failed(&error))?;
        source.is_committed = self.is_committed;
        // The list is made once: all of it is remembered.
        self.places.begin(base, base, name, Some(0));
        let receipts = positions.map(|positions| Arc::new(OfTurn { base, positions }) as _);
        self.current = Some(CurrentFile { place, source, base, receipts });
        Ok(true)
    }

    /// All was read that could be.
    fn end(&mut self) -> Result<Pull, SourceError> {
        let unread = std::mem::take(&mut self.unread);
        let Some(UnreadableEntry { path, why }) = unread.first() else { return Ok(Pull::End) };
        let others = match unread.len() - 1 {
            0 => String::new(),
            others => format!(" (and {others} more)"),
        };
        let reason = format!(
            "{}{others} {why}; all others were read: mend that or narrow the pattern, then run again",
            path.display()
        );
        Err(SourceError::new(self.name.clone(), reason))
    }

    fn failed(&self, error: &dyn fmt::Display) -> SourceError {
        SourceError::new(self.name.clone(), format!("its next file cannot be opened: {error}"))
    }
}

impl Files {
    /// Opens the next files from this one on: one, or several that are small.
    fn open(&self, from: usize) -> Result<Opened, SourceError> {
        let (mut ready, mut bytes, mut next) = (VecDeque::new(), 0, from);
        let most = if self.keeper.is_some() { AHEAD } else { 1 };
        while let Some(file) = self.files.get(next)
            && ready.len() < most
            && bytes < AHEAD_BYTES
        {
            match self.prepare(next) {
                Ok(Some(prepared)) => {
                    bytes += file.length;
                    ready.push_back(Ready { place: next, prepared });
                }
                // All of it is done.
                Ok(None) => {}
                // It is reported when its turn comes.
                Err(_) if !ready.is_empty() => break,
                Err(why) => {
                    let name = format!("file:{}", file.path.display());
                    let reason = format!(
                        "{why}; it was there when the run began. Neither it nor the files behind it were read: restore it, \
                         then run again"
                    );
                    return Err(SourceError::new(name, reason));
                }
            }
            next += 1;
        }
        Ok(Opened { ready, next })
    }

    fn prepare(&self, place: usize) -> Result<Option<PreparedFile>, String> {
        let path = &self.files[place].path;
        let name = format!("file:{}", path.display());
        let mut opened = OpenedFile::open(path)?;
        let Some(keeper) = &self.keeper else {
            return Ok(Some(PreparedFile { name, path: path.clone(), opened, resume: None }));
        };
        let start = match keeper.stored(place) {
            None => Start::at_the_beginning(),
            Some(stored) => match Start::after(&stored, &mut opened.beside, opened.is_plain) {
                Ok(_) if stored.is_complete() && stored.read == Some(opened.length) => {
                    return Ok(None);
                }
                Ok(start) => start,
                Err(NoStart::Differs(why)) => {
                    keeper.tell_other_content(path, &why);
                    Start::at_the_beginning()
                }
                Err(NoStart::Unusable(why)) => return Err(why.to_string()),
                Err(NoStart::Unreadable(error)) => return Err(super::unreadable(&error)),
            },
        };
        let resume = Resume::new(path, &mut opened, start, keeper)?;
        keeper.opened(place, resume.positions.clone());
        Ok(Some(PreparedFile { name, path: path.clone(), opened, resume: Some(resume) }))
    }
}

impl Source for FileSetSource {
    fn describe(&self) -> String {
        self.name.clone()
    }

    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>) -> Pulling<'a> {
        Box::pin(async move {
            loop {
                let Some(CurrentFile { source, base, .. }) = &mut self.current else {
                    match self.begin().await? {
                        true => continue,
                        false => return self.end(),
                    }
                };
                let before = into.len();
                let pulled = source.pull(into).await?;
                for item in &mut into[before..] {
                    item.position = base.wrapping_add(item.position);
                    self.last = item.position;
                }
                match pulled {
                    Pull::End => self.current = None,
                    pulled => return Ok(pulled),
                }
            }
        })
    }

    fn progress(&self) -> Option<f64> {
        let Files { files, length, .. } = &*self.files;
        let next = self.ready.front().map_or(self.next, |ready| ready.place);
        let read = match &self.current {
            Some(CurrentFile { place, source, .. }) => {
                let file = &files[*place];
                file.behind as f64 + file.length as f64 * source.progress()?
            }
            None => files.get(next).map_or(*length, |file| file.behind) as f64,
        };
        Some(if *length > 0 { read / *length as f64 } else { 1.0 })
    }

    fn replayable(&self) -> bool {
        true
    }

    fn places(&self) -> Option<Arc<dyn Places>> {
        Some(self.places.clone())
    }

    fn committer(&mut self) -> Option<Arc<dyn Committer>> {
        self.is_committed = true;
        self.files.keeper.clone().map(|keeper| Arc::new(keeper) as _)
    }

    fn receipts(&self) -> Option<Arc<dyn Receipts>> {
        self.current.as_ref().and_then(|current| current.receipts.clone())
    }
}

impl Drop for FileSetSource {
    fn drop(&mut self) {
        for Ready { prepared, .. } in &self.ready {
            prepared.resume.iter().for_each(|resume| resume.positions.end(None));
        }
    }
}

#[cfg(test)]
mod tests;
