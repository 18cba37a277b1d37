//! The followed files, and the order in which they are read. All of this blocks.

mod opening;
mod start;

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::time::Instant;

use super::super::{
    FileSourceOptions, OpenedFile,
    checkpoint::{Checkpoint, StoredCheckpoint},
    form::Form,
    identity::Fingerprint,
    keeper::{Keeper, Kept},
    lines::Lines,
    positions::FilePositions,
    resume::Start,
};
use super::{
    followed::{Followed, LastTold, Visit},
    found::{FoundFile, Id, NamedFiles, beside, in_order},
    piece::{GRACE, Piece, Visited},
    successors::Successors,
};
use crate::source::SourceError;

/// A directory listing that keeps changing is accepted after this many tries.
const AGAIN: usize = 10;

/// Removed files that the checkpoint still remembers, so that a compressed copy is not read as if
/// it were new.
const PAST: usize = 64;

/// This many files are held open because they may grow. Beyond that, files that were read to their
/// end are closed, the longest quiet first.
const AWAKE: usize = 64;

/// The result of opening a file.
enum Woken {
    Open,
    /// It cannot be read now, or has another name by now: the next look finds that.
    Unreadable,
    /// No descriptor is free.
    NoRoom,
}

/// The result of a step.
pub(super) struct ReadStep {
    pub(super) pieces: Vec<Piece>,
    /// There is more to be read before the next look.
    pub(super) has_more: bool,
    /// Bytes that are there and were not read.
    pub(super) behind: u64,
    /// Files that have unread data and are not open: removing them loses that data.
    pub(super) at_risk: usize,
}

pub(super) struct FollowReader {
    path: PathBuf,
    /// Its name in reports.
    name: String,
    options: FileSourceOptions,
    keeper: Option<Keeper>,
    /// In the order in which they are read.
    files: Vec<Followed>,
    turns: ReadTurns,
    /// The path names several files.
    is_set: bool,
    /// Files that cannot be read, and why: so each is reported once.
    troubles: BTreeMap<PathBuf, String>,
    /// Said that nothing is there yet.
    is_awaited: bool,
    past: VecDeque<Past>,
    /// Detects files that had the path's name in between.
    successors: Successors,
}

/// Whose turn it is to be read.
#[derive(Default)]
struct ReadTurns {
    /// The files that have grown, as the last look found.
    round: VecDeque<usize>,
    /// No descriptor is free for the first of them.
    waits_for_room: bool,
    /// This many files may be opened before the number of free descriptors is checked again.
    room: usize,
}

/// A file that was read to its end and is gone.
struct Past {
    place: Option<usize>,
    content: ContentMark,
}

/// The mark by which the same content is recognized.
enum ContentMark {
    /// How it begins, and its length.
    Read(Fingerprint, u64),
    Stored(Arc<StoredCheckpoint>),
}

impl ContentMark {
    fn is(&self, beginning: &[u8], length: u64) -> bool {
        match self {
            Self::Read(begins, read) => *read == length && begins.is_of(beginning),
            Self::Stored(stored) => {
                stored.read == Some(length) && stored.identity.begins_with(beginning)
            }
        }
    }
}

impl FollowReader {
    /// Finds the files that a checkpoint knows. New ones are found by the first look.
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
        let named = NamedFiles::find(path)?;
        let mut reader = Self {
            path: path.to_owned(),
            name,
            options,
            keeper: None,
            files: Vec::new(),
            turns: ReadTurns::default(),
            is_set: named.is_set,
            troubles: BTreeMap::new(),
            is_awaited: false,
            past: VecDeque::new(),
            successors: Successors::default(),
        };
        reader.refuse_compressed(&named.files)?;
        match checkpoint {
            Some(checkpoint) => reader.go_on(named.files, checkpoint)?,
            None => reader.successors = Successors::begin(path, None),
        }
        // An open file can be read, even if it is renamed before the first look.
        reader.open_new();
        Ok(reader)
    }

    #[cfg(test)]
    pub(super) fn open_files(&self) -> usize {
        self.files.iter().filter(|file| file.file.is_some()).count()
    }

    pub(super) fn keeper(&self) -> Option<Keeper> {
        self.keeper.clone()
    }

    /// Early, so that it is reported before a run begins.
    fn refuse_compressed(&self, found: &[FoundFile]) -> Result<(), String> {
        match found {
            [one] if !self.is_set => match OpenedFile::open(&one.path) {
                Ok(opened) if !opened.is_plain => Err(compressed()),
                // It is waited for until it can be read.
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// A file that was found, as it is before it is opened.
    fn unopened(&self, found: FoundFile, place: Option<usize>) -> Followed {
        let max_event = self.options.max_event;
        let lines = Lines::new(Form::new(max_event, None, &found.path, None));
        let visited = Arc::new(Visited { name: name_of(&found.path), place, positions: None });
        let mut file = Followed::new((found.path, found.id), visited, None, (lines, 0, max_event));
        file.length = found.length;
        file
    }

    /// A file from here on.
    fn followed(
        &self,
        (path, id): (PathBuf, Id),
        (place, positions): (Option<usize>, Option<FilePositions>),
        opened: OpenedFile,
        start: Start,
    ) -> io::Result<Followed> {
        let FileSourceOptions { max_event, records } = self.options.clone();
        let form = Form::new(max_event, records, &path, Some(&opened.file));
        let mark = start.mark;
        let lines = match &self.keeper {
            Some(keeper) => Lines::going_on(form, mark, keeper.skip(&start)),
            None => Lines::new(form),
        };
        let visited = Arc::new(Visited { name: name_of(&path), place, positions });
        let (file, offset) = (Some(opened.file), mark.byte);
        let mut followed = Followed::new((path, id), visited, file, (lines, offset, max_event));
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
        self.turns.waits_for_room = false;
        if self.turns.round.is_empty() {
            self.look(now, &mut pieces)?;
        }
        while pieces.is_empty() {
            let Some(at) = self.turns.round.front().copied() else { break };
            match self.wake(at, &mut pieces) {
                Woken::Open => {}
                Woken::Unreadable => {
                    self.turns.round.pop_front();
                    continue;
                }
                // Those behind it are not read before it; nor are earlier ones again, even if they
                // keep growing.
                Woken::NoRoom => {
                    self.turns.waits_for_room = true;
                    break;
                }
            }
            let visit = self.files[at].visit();
            match visit.map_err(|error| self.unreadable(at, &error))? {
                Visit::Lines(items) => {
                    let of = self.files[at].visited.clone();
                    self.files[at].told = LastTold::Lines;
                    pieces.extend(items.into_iter().map(|items| Piece::Items(of.clone(), items)));
                }
                Visit::Nothing => {}
                Visit::Done => {
                    self.turns.round.pop_front();
                }
                Visit::Cut(why) => self.begin_anew(at, &why)?,
                Visit::Compressed => self.unpack(at, now)?,
            }
        }
        Ok(self.came_to(pieces))
    }

    /// Finds and opens new files while the engine takes nothing, so that they are still there when
    /// they are read.
    pub(super) fn watch(&mut self) -> ReadStep {
        self.find();
        self.came_to(Vec::new())
    }

    fn came_to(&self, pieces: Vec<Piece>) -> ReadStep {
        let unread = |file: &Followed| file.length.saturating_sub(file.read());
        let is_at_risk = |file: &&Followed| file.file.is_none() && unread(file) > 0;
        ReadStep {
            pieces,
            has_more: !self.turns.round.is_empty() && !self.turns.waits_for_room,
            behind: self.files.iter().map(unread).sum(),
            at_risk: self.files.iter().filter(is_at_risk).count(),
        }
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
        self.find();
        self.search(pieces);
        // From the last to the first: see the module's documentation.
        for at in (0..self.files.len()).rev() {
            let grown = self.files[at].look().map_err(|error| self.unreadable(at, &error))?;
            if grown {
                (self.files[at].told, self.files[at].quiet_since) = (LastTold::Lines, None);
                self.turns.round.push_front(at);
            }
        }
        self.tell_quiet(now, pieces);
        self.put_to_sleep(pieces, AWAKE);
        Ok(())
    }

    fn find(&mut self) {
        match self.named() {
            Ok(named) => {
                self.tell_troubles(&named);
                self.meet(named);
            }
            Err(why) => self.has_trouble(&self.path.clone(), why),
        }
        self.open_new();
    }

    /// The files that the path names now. While files are renamed, a directory listing may omit one
    /// that exists: so if there is a new one, the directory is read until two listings agree. A
    /// file that is found after its successor would put its lines in the wrong order.
    fn named(&self) -> Result<NamedFiles, String> {
        let known: HashSet<&Id> = self.files.iter().map(|file| &file.id).collect();
        let mut named = self.named_once(&known)?;
        for _ in 0..AGAIN {
            if named.files.iter().all(|found| known.contains(&found.id)) {
                break;
            }
            let again = self.named_once(&known)?;
            if again.is_same(&named) {
                break;
            }
            named = again;
        }
        Ok(named)
    }

    /// For a single path: preceded by the files that had its name since the last look.
    fn named_once(&self, known: &HashSet<&Id>) -> Result<NamedFiles, String> {
        let mut named = NamedFiles::find(&self.path)?;
        let is_new = |found: &FoundFile| !known.contains(&found.id);
        if !named.is_set && named.files.iter().all(is_new) {
            let mut before = self.successors.find(&self.path, &self.renamed());
            let is_named = |found: &FoundFile| named.files.iter().any(|is| is.id == found.id);
            before.retain(|found| is_new(found) && !is_named(found) && !self.has_copy(found));
            in_order(&mut before);
            before.append(&mut named.files);
            named.files = before;
        }
        Ok(named)
    }

    /// Whether this is a copy of a file that is followed, as one leaves it that is then cut.
    fn has_copy(&self, found: &FoundFile) -> bool {
        let Ok(mut opened) = OpenedFile::open(&found.path) else { return false };
        opened.is_plain && self.files.iter().any(|file| file.is_begun_by(&mut opened.beside))
    }

    /// Where files are that had the path's name, as the system tells it.
    fn renamed(&self) -> Vec<PathBuf> {
        let path = PathBuf::from(absolute(&self.path));
        let now = self.files.iter().filter_map(|file| path_now(file.file.as_ref()?));
        now.filter(|now| *now != path && now.exists()).collect()
    }

    /// These are there now.
    fn meet(&mut self, named: NamedFiles) {
        self.is_set = named.is_set;
        let places: HashMap<_, _> =
            self.files.iter().enumerate().map(|(at, file)| (file.id.clone(), at)).collect();
        self.files.iter_mut().for_each(|file| file.is_there = false);
        let mut new = Vec::new();
        for found in named.files {
            match places.get(&found.id) {
                Some(at) => self.files[*at].is_found(found),
                None => new.push(found),
            }
        }
        self.tell_awaited(new.is_empty());
        self.tell_gone(&new);
        for found in new {
            if !self.is_set {
                self.successors.came_after(&found);
            }
            if !self.files.is_empty() {
                tracing::info!(input = self.name, file = %found.path.display(), "a new file is followed");
            }
            let is_there = self.is_set || found.path == self.path;
            let mut file = self.unopened(found, None);
            file.is_there = is_there;
            self.files.push(file);
        }
    }

    /// Several files had the name since the last look: removed ones among them are unknown.
    fn tell_gone(&self, new: &[FoundFile]) {
        let is_gone = self.files.last().is_some_and(Followed::is_removed);
        if !self.is_set && new.len() > 1 && is_gone {
            tracing::warn!(
                input = self.name,
                files = new.len(),
                "the file was replaced several times since it was last looked at, and the one that was read is removed: what \
                 replaced it and was removed, too, is not read"
            );
        }
    }

    /// Closed files whose name is not followed any more: they are found under another name in the
    /// directory, or are gone.
    fn search(&mut self, pieces: &mut Vec<Piece>) {
        for at in (0..self.files.len()).rev() {
            let file = &self.files[at];
            if file.is_there || file.file.is_some() {
                continue;
            }
            match beside(&file.path, |found| found.id == file.id).pop() {
                Some(found) => {
                    let is_there = self.files[at].is_there;
                    self.files[at].is_found(found);
                    self.files[at].is_there = is_there;
                }
                None => self.leave(at, pieces),
            }
        }
    }

    /// A file is gone.
    fn leave(&mut self, at: usize, pieces: &mut Vec<Piece>) {
        let mut gone = self.files.remove(at);
        let (of, unread) = (gone.visited.clone(), gone.length.saturating_sub(gone.read()));
        match unread {
            0 => pieces
                .extend(gone.finish().into_iter().map(|items| Piece::Items(of.clone(), items))),
            _ => tracing::warn!(
                input = self.name,
                file = %gone.path.display(),
                bytes = unread,
                "it was removed before it was read: these bytes are lost unless a copy has them"
            ),
        }
        let read = (unread == 0).then_some(gone.read());
        pieces.push(Piece::Quiet { of, read, is_left: true });
        if gone.has_begun {
            self.is_past(gone);
        }
    }

    fn tell_awaited(&mut self, none_is_new: bool) {
        let is_awaited = none_is_new && self.files.is_empty();
        if is_awaited && !self.is_awaited {
            tracing::info!(input = self.name, "nothing is there yet: it is waited for");
        }
        self.is_awaited = is_awaited;
    }

    /// This cannot be read now, and is tried again.
    fn has_trouble(&mut self, path: &Path, why: String) {
        if self.troubles.get(path) != Some(&why) {
            let entry = path.display();
            tracing::warn!(input = self.name, %entry, why, "it cannot be read now, and is tried again; the others are read");
            self.troubles.insert(path.to_owned(), why);
        }
    }

    /// Reports files that cannot be read, and files that can be read again.
    fn tell_troubles(&mut self, named: &NamedFiles) {
        for entry in &named.unreadable {
            self.has_trouble(&entry.path, entry.why.clone());
        }
        let is_unopened = |path: &PathBuf| {
            self.files.iter().any(|file| file.file.is_none() && file.path == *path)
        };
        let is_named = |path: &PathBuf| named.unreadable.iter().any(|entry| entry.path == *path);
        let over: Vec<_> = self
            .troubles
            .keys()
            .filter(|path| !is_named(path) && !is_unopened(path))
            .cloned()
            .collect();
        over.iter().for_each(|path| self.has_no_trouble(path));
    }

    fn has_no_trouble(&mut self, path: &Path) {
        if self.troubles.remove(path).is_some() {
            tracing::info!(input = self.name, entry = %path.display(), "what kept it from being read is gone");
        }
    }

    /// It was cut, or rewritten: its present content is read from the start.
    fn begin_anew(&mut self, at: usize, why: &str) -> Result<(), SourceError> {
        let old = &self.files[at];
        let (path, id, is_there) = (old.path.clone(), old.id.clone(), old.is_there);
        let open = old.visited.positions.as_ref().map_or(0, FilePositions::open_lines);
        tracing::warn!(
            input = self.name,
            file = %path.display(),
            why,
            at_hand = old.at_hand(),
            unread = old.length.saturating_sub(old.read()),
            open,
            "it is read from its start again: what was written between the last look and then is lost unless a copy has it; so \
             are bytes of the line at hand, and open lines should this run end before they are done"
        );
        let place = old.visited.place;
        if !self.is_set {
            self.successors.was_cut(&path);
        }
        let again = self.opened_again(at).and_then(|opened| {
            let start = Start::at_the_beginning();
            let kept = self.kept_anew(&path, &opened, &start, place)?;
            self.followed((path, id), kept, opened, start)
        });
        let mut again = again.map_err(|error| self.unreadable(at, &error))?;
        again.is_there = is_there;
        self.files[at] = again;
        Ok(())
    }

    /// The same file, with separate cursors, whatever its present name.
    fn opened_again(&mut self, at: usize) -> io::Result<OpenedFile> {
        let Some(file) = self.files[at].file.take() else {
            return Err(io::Error::other("its file was closed"));
        };
        let beside = reopened(&file, &self.files[at].path)?;
        let length = file.metadata()?.len();
        Ok(OpenedFile { file, beside, length, is_plain: true })
    }

    /// Reports files that were read as far as possible, and ends those that have been replaced.
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
                pieces.push(Piece::Quiet { of, read: Some(read), is_left: true });
                let gone = self.files.remove(at);
                self.is_past(gone);
                // Places have moved.
                self.turns
                    .round
                    .iter_mut()
                    .filter(|other| **other > at)
                    .for_each(|other| *other -= 1);
            } else if file.at_hand() == 0 && is_quiet && file.told != LastTold::Quiet {
                file.told = LastTold::Quiet;
                let (of, read) = (file.visited.clone(), Some(read));
                pieces.push(Piece::Quiet { of, read, is_left: false });
            } else if file.at_hand() == 0 && file.told == LastTold::Lines {
                file.told = LastTold::CaughtUp;
                pieces.push(Piece::CaughtUp(file.visited.clone()));
            }
        }
    }

    fn is_past(&mut self, gone: Followed) {
        let stored = || self.keeper.as_ref()?.stored(gone.visited.place?).map(ContentMark::Stored);
        let content =
            stored().or_else(|| gone.content().map(|(of, read)| ContentMark::Read(of, read)));
        if let Some(content) = content {
            self.past.push_back(Past { place: gone.visited.place, content });
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

    /// A compressed file is read once, when it does not grow any more; not at all if it is a copy
    /// of a file that was read before. Files that came after it wait for it, for a limited time.
    fn unpack(&mut self, at: usize, now: Instant) -> Result<(), SourceError> {
        if !self.is_set && self.files[at].is_there {
            return Err(SourceError::new(self.files[at].visited.name.to_string(), compressed()));
        }
        if !self.files[at].is_steady(now) {
            match self.files[at].has_waited(now, GRACE) {
                true => self.turns.round.retain(|other| *other != at),
                false => self.turns.round.clear(),
            }
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
        let stored = |file: &Followed| self.keeper.as_ref()?.stored(file.visited.place?);
        let unopened = self.files.iter().filter_map(stored).map(ContentMark::Stored);
        let has_read = |file: &Followed| {
            let content = file.content().map(|(of, read)| ContentMark::Read(of, read));
            content.is_some_and(|content| content.is(&beginning, length))
        };
        // A compressed file stays until its copy is complete.
        Ok(self.files.iter().any(has_read)
            || unopened.into_iter().any(|content| content.is(&beginning, length))
            || self.past.iter().any(|past| past.content.is(&beginning, length)))
    }
}

/// The same file with a cursor of its own, by its name or, if that refers to another file, through
/// the system's entry for open files.
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

fn name_of(path: &Path) -> Arc<str> {
    format!("file:{}", path.display()).into()
}

/// The present name of an open file.
#[cfg(target_os = "linux")]
fn path_now(file: &File) -> Option<PathBuf> {
    use std::os::fd::AsRawFd;
    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
}

#[cfg(not(target_os = "linux"))]
fn path_now(_: &File) -> Option<PathBuf> {
    None
}

/// From the root, even if it does not exist yet.
fn absolute(path: &Path) -> String {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let full = path
        .canonicalize()
        .ok()
        .or_else(|| Some(parent.canonicalize().ok()?.join(path.file_name()?)));
    full.unwrap_or_else(|| path.to_owned()).display().to_string()
}
