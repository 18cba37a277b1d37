//! What is followed, and in which order it is read. All of this blocks.

use std::{
    collections::{HashMap, VecDeque},
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use tokio::time::Instant;

use super::super::{
    FileSourceOptions, OpenedFile,
    checkpoint::{Checkpoint, Contents, StoredCheckpoint},
    form::Form,
    keeper::{Keeper, Kept},
    lines::Lines,
    positions::FilePositions,
    resume::{NoStart, Start},
    unreadable,
};
use super::{
    followed::{Followed, LastTold, Visit},
    found::{FoundFile, NamedFiles, beside, successors},
    piece::{Piece, Visited},
};
use crate::source::{Resumed, SourceError};

/// So many files are held open because they may grow. Of more, those that have been quiet for
/// longest are closed, and opened again when they are longer at a later look.
const AWAKE: usize = 64;

/// A directory that never says the same twice is believed after so many times.
const AGAIN: usize = 10;

/// Files that are gone and of which the checkpoint knows still, so that a compressed copy is not
/// read as if it were new.
const PAST: usize = 64;

/// What a step came to.
pub(super) struct ReadStep {
    pub(super) pieces: Vec<Piece>,
    /// There is more to be read before the next look.
    pub(super) has_more: bool,
    /// Bytes that are there and were not read.
    pub(super) behind: u64,
}

pub(super) struct FollowReader {
    path: PathBuf,
    /// What reports call it.
    name: String,
    options: FileSourceOptions,
    keeper: Option<Keeper>,
    /// In the order in which they are read.
    files: Vec<Followed>,
    /// Of those, the ones that have grown, as the last look found.
    round: VecDeque<usize>,
    /// The path names several files.
    is_set: bool,
    /// What keeps files from being read, so that it is told once.
    trouble: Option<String>,
    /// Said that nothing is there yet.
    is_awaited: bool,
    past: VecDeque<Past>,
}

/// A file that was read to its end and is gone.
struct Past {
    place: Option<usize>,
    content: ContentMark,
}

/// What tells whether something has the same content.
enum ContentMark {
    /// How it begins, and its length.
    Read(Vec<u8>, u64),
    Stored(Arc<StoredCheckpoint>),
}

impl ContentMark {
    fn is(&self, beginning: &[u8], length: u64) -> bool {
        match self {
            Self::Read(begins, read) => *read == length && begins == beginning,
            Self::Stored(stored) => {
                stored.read == Some(length) && stored.identity.begins_with(beginning)
            }
        }
    }
}

impl FollowReader {
    /// Finds the files that a checkpoint knows. What is new is found by the first look.
    ///
    /// # Errors
    /// It can never be followed, or the checkpoint cannot be used; in words for an operator.
    pub(super) fn begin(
        path: &Path,
        name: String,
        options: FileSourceOptions,
        checkpoint: Option<Checkpoint>,
    ) -> Result<Self, String> {
        if path == Path::new("-") {
            return Err(
                "standard input cannot be followed: it is read until it closes; leave `follow` out"
                    .to_owned(),
            );
        }
        let named = NamedFiles::by(path)?;
        let mut reader = Self {
            path: path.to_owned(),
            name,
            options,
            keeper: None,
            files: Vec::new(),
            round: VecDeque::new(),
            is_set: named.is_set,
            trouble: None,
            is_awaited: false,
            past: VecDeque::new(),
        };
        match checkpoint {
            Some(checkpoint) => reader.go_on(named.files, checkpoint)?,
            None => reader.refuse_compressed(&named.files)?,
        }
        Ok(reader)
    }

    #[cfg(test)]
    pub(super) fn open_files(&self) -> usize {
        self.files.iter().filter(|file| file.file.is_some()).count()
    }

    pub(super) fn keeper(&self) -> Option<Keeper> {
        self.keeper.clone()
    }

    /// Early, so that it is told before a run begins.
    fn refuse_compressed(&self, found: &[FoundFile]) -> Result<(), String> {
        match found {
            [one] if !self.is_set => match OpenedFile::at(&one.path) {
                Ok(opened) if !opened.is_plain => Err(compressed()),
                // It is waited for until it can be read.
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn go_on(&mut self, mut found: Vec<FoundFile>, checkpoint: Checkpoint) -> Result<(), String> {
        self.refuse_compressed(&found)?;
        let unusable = |why: String| checkpoint.unusable(&why);
        let input = absolute(&self.path);
        let (of, records) = match checkpoint.read().map_err(|why| unusable(why.to_string()))? {
            None => (input.clone(), Vec::new()),
            Some(Contents::One(one)) => (one.input.clone(), vec![one]),
            Some(Contents::Several(set)) => (set.input, set.files),
        };
        let had_any = !records.is_empty();
        let inodes: Vec<u64> = records.iter().map(|one| one.identity.inode()).collect();
        // Under another name, it is one that was replaced: as long as this is what is followed.
        let others = if of == input { beside(&self.path, &inodes) } else { Vec::new() };
        for other in others {
            if found.iter().all(|known| known.id != other.id) {
                found.push(other);
            }
        }
        let (mut claimed, mut left) = (Vec::new(), Vec::new());
        for record in records {
            match self.claim(&record, &mut found, &checkpoint)? {
                Some(begun) => claimed.push((record, begun)),
                None => left.push(record),
            }
        }
        let is_known = !claimed.is_empty() || left.iter().any(|record| record.input == input);
        if had_any && !is_known && of != input {
            return Err(unusable(format!("it is of another input, {of}")));
        }
        let resumed = claimed.iter().filter_map(|(_, (_, _, start))| start.resumed);
        let resumed = resumed.reduce(|all, one| all + one);
        let resumed = resumed.map(|all| Resumed { partitions: all.partitions.min(1), ..all });
        let keeper = Keeper::of_several(self.name.clone(), checkpoint, input, Vec::new(), resumed);
        self.keeper = Some(keeper);
        self.tell_left(&left);
        self.tell_missed(&claimed.iter().map(|(_, (found, ..))| found.clone()).collect::<Vec<_>>());
        for (record, (found, opened, start)) in claimed {
            let path = found.path.clone();
            self.resume(record, found, opened, start)
                .map_err(|error| format!("{} {}", path.display(), unreadable(&error)))?;
        }
        for record in left.into_iter().filter(StoredCheckpoint::is_complete) {
            self.keep_past(record);
        }
        Ok(())
    }

    /// The file of this record, and where to go on in it.
    fn claim(
        &self,
        record: &StoredCheckpoint,
        found: &mut Vec<FoundFile>,
        checkpoint: &Checkpoint,
    ) -> Result<Option<(FoundFile, OpenedFile, Start)>, String> {
        let inode = record.identity.inode();
        let Some(at) = found.iter().position(|found| found.id.1 == inode) else { return Ok(None) };
        let path = found[at].path.clone();
        let in_file = |why: String| format!("{} {why}", path.display());
        let mut opened = OpenedFile::at(&path).map_err(in_file)?;
        match Start::after(record, &mut opened.beside, opened.is_plain) {
            Ok(start) => Ok(Some((found.remove(at), opened, start))),
            Err(NoStart::Differs(why)) => {
                checkpoint.tell_other_content(&path, &why);
                Ok(None)
            }
            Err(NoStart::Unusable(why)) => Err(checkpoint.unusable(&why.to_string())),
            Err(NoStart::Unreadable(error)) => Err(in_file(unreadable(&error))),
        }
    }

    /// What a file that is gone may have had, nobody can read any more.
    fn tell_left(&self, left: &[StoredCheckpoint]) {
        for record in left.iter().filter(|record| !record.is_complete()) {
            let open = record.positions().map_or(0, |positions| positions.count_open());
            tracing::warn!(
                input = self.name,
                file = record.input,
                open,
                "a file of the checkpoint is not there any more, or was cut: its lines that were not done, and those that \
                 were written since it was read, are lost unless a copy has them"
            );
        }
    }

    /// Of one file, the names under which its predecessors are kept are not known: what came and
    /// went while nobody looked was not read.
    fn tell_missed(&self, claimed: &[FoundFile]) {
        if self.is_set || claimed.is_empty() {
            return;
        }
        let last = claimed.iter().map(|found| found.modified).max();
        let known = |path: &PathBuf| claimed.iter().any(|found| found.path == *path);
        let mut missed = successors(&self.path, last.unwrap_or(SystemTime::UNIX_EPOCH));
        missed.retain(|path| !known(path));
        if !missed.is_empty() {
            tracing::warn!(
                input = self.name,
                files = ?missed,
                "these were written after the last file that was read, and may have replaced each other meanwhile: they are not \
                 read; follow a pattern that matches them, too"
            );
        }
    }

    fn resume(
        &mut self,
        record: StoredCheckpoint,
        found: FoundFile,
        opened: OpenedFile,
        start: Start,
    ) -> io::Result<()> {
        let Some(keeper) = self.keeper.clone() else { return Ok(()) };
        let is_read = record.is_complete() && record.read == Some(opened.length);
        if is_read && !opened.is_plain {
            let place = keeper.add(Kept::Stored(Arc::new(record), 0));
            let file = self.followed(found, (Some(place), None), opened, start)?;
            self.files.push(file);
            if let Some(file) = self.files.last_mut() {
                file.pass_archive();
            }
            return Ok(());
        }
        let positions = positions_of(&found.path, &opened, &start, &keeper)?;
        let place = keeper.add(Kept::Open(positions.clone()));
        let is_compressed = !opened.is_plain;
        let file = self.followed(found, (Some(place), Some(positions)), opened, start)?;
        self.files.push(file);
        if let (true, Some(file)) = (is_compressed, self.files.last_mut()) {
            file.begin_archive()?;
        }
        Ok(())
    }

    /// A file from here on.
    fn followed(
        &self,
        found: FoundFile,
        (place, positions): (Option<usize>, Option<FilePositions>),
        opened: OpenedFile,
        start: Start,
    ) -> io::Result<Followed> {
        let FileSourceOptions { max_event, records } = self.options.clone();
        let form = Form::of(max_event, records, &found.path, Some(&opened.file));
        let mark = start.mark;
        let lines = match &self.keeper {
            Some(keeper) => Lines::going_on(form, mark, keeper.skip(&start)),
            None => Lines::new(form),
        };
        let name = Arc::from(format!("file:{}", found.path.display()));
        let visited = Arc::new(Visited { name, positions });
        let (file, offset) = (Some(opened.file), mark.byte);
        let of = (found.path, found.id);
        let mut followed = Followed::new(of, (place, visited), file, (lines, offset, max_event));
        followed.length = opened.length;
        followed.remember()?;
        Ok(followed)
    }

    /// Reads on until there is something to tell, or until nothing has grown.
    ///
    /// # Errors
    /// A file cannot be read, or cannot be followed.
    pub(super) fn step(&mut self, now: Instant) -> Result<ReadStep, SourceError> {
        let mut pieces = Vec::new();
        if self.round.is_empty() {
            self.look(now, &mut pieces)?;
        }
        while pieces.is_empty() {
            let Some(at) = self.round.front().copied() else { break };
            let visit = self.files[at].visit();
            match visit.map_err(|error| self.unreadable(at, &error))? {
                Visit::Lines(items) => {
                    let of = self.files[at].visited.clone();
                    self.files[at].told = LastTold::Lines;
                    pieces.extend(items.into_iter().map(|items| Piece::Items(of.clone(), items)));
                }
                Visit::Nothing => {}
                Visit::Done => {
                    self.round.pop_front();
                }
                Visit::Cut(why) => self.begin_anew(at, &why)?,
                Visit::Compressed => self.unpack(at, now)?,
            }
        }
        let behind = self.files.iter().map(|file| file.length.saturating_sub(file.read()));
        Ok(ReadStep { pieces, has_more: !self.round.is_empty(), behind: behind.sum() })
    }

    fn unreadable(&self, at: usize, error: &io::Error) -> SourceError {
        let file = &self.files[at];
        let line = file.lines_read() + 1;
        let reason = format!(
            "reading failed in line {line}, from byte {} on: {error}; the lines before it were delivered, and it was not taken: \
             mend that, then run again",
            file.read() - file.at_hand().min(file.read())
        );
        SourceError::new(file.visited.name.to_string(), reason)
    }

    /// Finds out which files are there, and which of them have grown.
    fn look(&mut self, now: Instant, pieces: &mut Vec<Piece>) -> Result<(), SourceError> {
        match self.named() {
            Ok(named) => self.meet(named)?,
            Err(why) => self.has_trouble(why),
        }
        // From the last to the first: see the module's documentation.
        for at in (0..self.files.len()).rev() {
            let grown = self.files[at].look().map_err(|error| self.unreadable(at, &error))?;
            if grown && self.wake(at) {
                (self.files[at].told, self.files[at].quiet_since) = (LastTold::Lines, None);
                self.round.push_front(at);
            }
        }
        self.tell_quiet(now, pieces);
        self.put_to_sleep(pieces);
        Ok(())
    }

    /// What the path names now. While files are renamed, a directory that is read may leave one out
    /// that is there: so where one is new, it is read until it says the same twice. That a file
    /// comes after one that took its place would put its lines in the wrong order.
    fn named(&self) -> Result<NamedFiles, String> {
        let is_known = |found: &FoundFile| self.files.iter().any(|file| file.id == found.id);
        let mut named = NamedFiles::by(&self.path)?;
        for _ in 0..AGAIN {
            if named.files.iter().all(is_known) {
                break;
            }
            let again = NamedFiles::by(&self.path)?;
            if again.is_same(&named) {
                break;
            }
            named = again;
        }
        Ok(named)
    }

    /// These are there now.
    fn meet(&mut self, named: NamedFiles) -> Result<(), SourceError> {
        self.is_set = named.is_set;
        let places: HashMap<_, _> =
            self.files.iter().enumerate().map(|(at, file)| (file.id.clone(), at)).collect();
        self.files.iter_mut().for_each(|file| file.is_there = false);
        let mut new = Vec::new();
        for found in named.files {
            match places.get(&found.id) {
                Some(at) => {
                    let file = &mut self.files[*at];
                    file.is_there = true;
                    if file.file.is_none() {
                        file.was_found(&found);
                    }
                    file.path = found.path;
                }
                None => new.push(found),
            }
        }
        self.tell_awaited(new.is_empty());
        for found in new {
            let path = found.path.clone();
            match self.open(found) {
                Ok(true) => {}
                // Another one has its name by now: the next look finds that.
                Ok(false) => return Ok(()),
                Err(why) => {
                    // Those behind it wait: their lines belong behind its own.
                    self.has_trouble(format!("{} {why}", path.display()));
                    return Ok(());
                }
            }
        }
        if self.trouble.take().is_some() {
            tracing::info!(input = self.name, "what kept it from being read is gone");
        }
        Ok(())
    }

    fn tell_awaited(&mut self, none_is_new: bool) {
        let is_awaited = none_is_new && self.files.is_empty();
        if is_awaited && !self.is_awaited {
            tracing::info!(input = self.name, "nothing is there yet: it is waited for");
        }
        self.is_awaited = is_awaited;
    }

    fn has_trouble(&mut self, why: String) {
        if self.trouble.as_ref() != Some(&why) {
            tracing::warn!(input = self.name, why, "it cannot be read now, and is tried again");
            self.trouble = Some(why);
        }
    }

    /// Follows a file from its start. False where it is not the one that was found.
    fn open(&mut self, found: FoundFile) -> Result<bool, String> {
        let opened = match OpenedFile::at(&found.path) {
            Ok(opened) => opened,
            Err(_) if !found.path.exists() => return Ok(false),
            Err(why) => return Err(why),
        };
        let inode = super::super::identity::inode(&opened.file);
        if inode.map_err(|error| unreadable(&error))? != found.id.1 {
            return Ok(false);
        }
        let (path, start) = (found.path.clone(), Start::at_the_beginning());
        let kept = self.kept_anew(&path, &opened, &start).map_err(|error| unreadable(&error))?;
        let file = self.followed(found, kept, opened, start);
        let file = file.map_err(|error| unreadable(&error))?;
        if !self.files.is_empty() {
            tracing::info!(input = self.name, file = %path.display(), "a new file is followed");
        }
        self.files.push(file);
        Ok(true)
    }

    /// Where it is kept what is done of a file that begins.
    fn kept_anew(
        &self,
        path: &Path,
        opened: &OpenedFile,
        start: &Start,
    ) -> io::Result<(Option<usize>, Option<FilePositions>)> {
        let Some(keeper) = &self.keeper else { return Ok((None, None)) };
        let positions = positions_of(path, opened, start, keeper)?;
        Ok((Some(keeper.add(Kept::Open(positions.clone()))), Some(positions)))
    }

    /// It was cut, or written anew: what is in it now is read from its start.
    fn begin_anew(&mut self, at: usize, why: &str) -> Result<(), SourceError> {
        let old = &self.files[at];
        let (path, id, is_there) = (old.path.clone(), old.id.clone(), old.is_there);
        let open = old.visited.positions.as_ref().map_or(0, FilePositions::open_lines);
        tracing::warn!(
            input = self.name,
            file = %path.display(),
            why,
            at_hand = old.at_hand(),
            open,
            "it is read from its start again: what was written between the last look and then is lost unless a copy has it; so \
             are bytes of the line at hand, and open lines should this run end before they are done"
        );
        if let (Some(keeper), Some(place)) = (&self.keeper, old.place) {
            keeper.forget(place);
        }
        let again = self.opened_again(at).and_then(|opened| {
            let start = Start::at_the_beginning();
            let kept = self.kept_anew(&path, &opened, &start)?;
            let found = FoundFile::anew(path, id, opened.length);
            self.followed(found, kept, opened, start)
        });
        let mut again = again.map_err(|error| self.unreadable(at, &error))?;
        again.is_there = is_there;
        self.files[at] = again;
        Ok(())
    }

    /// The very file, with cursors that nobody else moves, whatever it is called by now.
    fn opened_again(&mut self, at: usize) -> io::Result<OpenedFile> {
        let Some(file) = self.files[at].file.take() else {
            return Err(io::Error::other("its file was closed"));
        };
        let beside = reopened(&file, &self.files[at].path)?;
        let length = file.metadata()?.len();
        Ok(OpenedFile { file, beside, length, is_plain: true })
    }

    /// Opens a file that sleeps and has grown. False where that has to wait.
    fn wake(&mut self, at: usize) -> bool {
        let file = &self.files[at];
        if file.file.is_some() {
            return true;
        }
        match self.opened_after_sleep(at) {
            Ok(is_awake) => is_awake,
            Err(error) => {
                let why = format!("{} {}", self.files[at].path.display(), unreadable(&error));
                self.has_trouble(why);
                false
            }
        }
    }

    fn opened_after_sleep(&mut self, at: usize) -> io::Result<bool> {
        let path = self.files[at].path.clone();
        let opened = OpenedFile::at(&path).map_err(io::Error::other)?;
        if super::super::identity::inode(&opened.file)? != self.files[at].id.1 {
            return Ok(false);
        }
        if let (Some(keeper), Some(place)) = (self.keeper.clone(), self.files[at].place) {
            match keeper.reopened(place) {
                Ok(_) => {}
                Err(stored) => {
                    // All that was read of it is stored.
                    let done = stored.positions().map_err(io::Error::other)?;
                    let start = Start { done, mark: stored.mark, resumed: None };
                    let positions = positions_of(&path, &opened, &start, &keeper)?;
                    keeper.replace(place, positions.clone());
                    let name = self.files[at].visited.name.clone();
                    self.files[at].visited = Arc::new(Visited { name, positions: Some(positions) });
                }
            }
        }
        self.files[at].length = opened.length;
        self.files[at].file = Some(opened.file);
        Ok(true)
    }

    /// Tells of files that were read as far as they go, and ends those that have been replaced.
    fn tell_quiet(&mut self, now: Instant, pieces: &mut Vec<Piece>) {
        // No later file has been written to.
        let mut is_last = true;
        for at in (0..self.files.len()).rev() {
            let was_last = is_last;
            is_last &= self.files[at].length == 0;
            let file = &mut self.files[at];
            if file.length != file.read() {
                continue;
            }
            file.quiet_since.get_or_insert(now);
            let (read, is_quiet) = (file.read(), file.is_quiet(now));
            let is_over = !file.is_there && is_quiet && (!was_last || file.is_removed());
            if is_over {
                let of = file.visited.clone();
                for items in file.finish() {
                    pieces.push(Piece::Items(of.clone(), items));
                }
                pieces.push(Piece::Quiet { of, read, is_left: true });
                let gone = self.files.remove(at);
                self.is_past(gone);
                // Places have moved.
                self.round.iter_mut().filter(|other| **other > at).for_each(|other| *other -= 1);
            } else if file.at_hand() == 0 && is_quiet && file.told != LastTold::Quiet {
                file.told = LastTold::Quiet;
                pieces.push(Piece::Quiet { of: file.visited.clone(), read, is_left: false });
            } else if file.at_hand() == 0 && file.told == LastTold::Lines {
                file.told = LastTold::CaughtUp;
                pieces.push(Piece::CaughtUp(file.visited.clone()));
            }
        }
    }

    fn is_past(&mut self, mut gone: Followed) {
        let stored = || self.keeper.as_ref()?.stored(gone.place?).map(ContentMark::Stored);
        let content =
            stored().or_else(|| gone.content().map(|(of, read)| ContentMark::Read(of, read)));
        if let Some(content) = content {
            self.past.push_back(Past { place: gone.place, content });
        }
        self.prune_past();
    }

    fn keep_past(&mut self, stored: StoredCheckpoint) {
        let Some(keeper) = &self.keeper else { return };
        let stored = Arc::new(stored);
        let place = keeper.add(Kept::Stored(stored.clone(), 0));
        self.past.push_back(Past { place: Some(place), content: ContentMark::Stored(stored) });
        self.prune_past();
    }

    fn prune_past(&mut self) {
        while self.past.len() > PAST
            && let Some(oldest) = self.past.front()
        {
            if let (Some(keeper), Some(place)) = (&self.keeper, oldest.place) {
                if keeper.stored(place).is_none() {
                    // Something of it is not settled.
                    break;
                }
                keeper.forget(place);
            }
            self.past.pop_front();
        }
    }

    /// Closes files that have been quiet for longest, if too many are open.
    fn put_to_sleep(&mut self, pieces: &mut Vec<Piece>) {
        let open = self.files.iter().filter(|file| file.file.is_some()).count();
        let mut sleepy: Vec<(Instant, usize)> = self
            .files
            .iter()
            .enumerate()
            .filter(|(_, file)| {
                file.file.is_some() && file.told == LastTold::Quiet && file.is_there
            })
            .filter_map(|(at, file)| Some((file.quiet_since?, at)))
            .collect();
        sleepy.sort_unstable();
        for (_, at) in sleepy.into_iter().take(open.saturating_sub(AWAKE)) {
            let file = &mut self.files[at];
            file.file = None;
            let (of, read) = (file.visited.clone(), file.read());
            pieces.push(Piece::Quiet { of, read, is_left: true });
        }
    }

    /// What is compressed is read once, when it does not grow any more; not at all, if it is what
    /// was read before it was compressed.
    fn unpack(&mut self, at: usize, now: Instant) -> Result<(), SourceError> {
        if !self.is_set {
            return Err(SourceError::new(self.files[at].visited.name.to_string(), compressed()));
        }
        if !self.files[at].is_steady(now) {
            self.round.retain(|other| *other != at);
            return Ok(());
        }
        let copy = self.is_copy(at);
        let file = &mut self.files[at];
        let begun = copy.and_then(|is_copy| match is_copy {
            true => {
                let path = file.path.display();
                tracing::info!(input = self.name, file = %path, "it was read before it was compressed");
                file.pass_archive();
                Ok(())
            }
            false => file.begin_archive(),
        });
        begun.map_err(|error| self.unreadable(at, &error))
    }

    /// Whether its content is that of a file that was read.
    fn is_copy(&mut self, at: usize) -> io::Result<bool> {
        let (beginning, length) = self.files[at].unpacked()?;
        let stored = |file: &Followed| self.keeper.as_ref()?.stored(file.place?);
        let asleep = self.files.iter().filter_map(stored).map(ContentMark::Stored);
        let is_known = asleep.into_iter().any(|content| content.is(&beginning, length))
            || self.past.iter().any(|past| past.content.is(&beginning, length));
        // What is compressed stays until its copy is whole.
        Ok(is_known || self.files.iter_mut().any(|file| file.has_read(&beginning, length)))
    }
}

fn positions_of(
    path: &Path,
    opened: &OpenedFile,
    start: &Start,
    keeper: &Keeper,
) -> io::Result<FilePositions> {
    let beside = opened.beside.try_clone()?;
    let positions = FilePositions::new(path, beside, start, opened.is_plain, keeper.due())?;
    positions.set_followed(true);
    Ok(positions)
}

/// The same file with a cursor of its own, by its name or, where that leads elsewhere, by what the
/// system has for an open file.
fn reopened(file: &File, path: &Path) -> io::Result<File> {
    if let Ok(beside) = File::open(path)
        && super::super::identity::are_same(file, &beside)?
    {
        return Ok(beside);
    }
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
    }
    #[cfg(not(target_os = "linux"))]
    Err(io::Error::other("it was renamed and cut at once"))
}

fn compressed() -> String {
    "it is compressed, and such a file cannot be followed: leave `follow` out, or follow a directory or a pattern, of which \
     compressed files are read once they are whole"
        .to_owned()
}

/// From the root, also of what is not there yet.
fn absolute(path: &Path) -> String {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let full = path
        .canonicalize()
        .ok()
        .or_else(|| Some(parent.canonicalize().ok()?.join(path.file_name()?)));
    full.unwrap_or_else(|| path.to_owned()).display().to_string()
}
