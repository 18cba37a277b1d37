//! Which files are open.
//!
//! An open file can be read to its end even if it is renamed or removed. So new files are opened at
//! once, as long as descriptors are free, and files that were read to their end are closed again,
//! if there are many. Their identity is remembered, and they are reopened when they have grown.

use std::{fs, io, path::Path, sync::Arc};

use tokio::time::Instant;

use super::{
    super::super::{
        OpenedFile,
        identity::inode,
        keeper::{Keeper, Kept},
        positions::FilePositions,
        resume::{NoStart, Start},
        unreadable,
    },
    super::{
        followed::{Followed, LastTold},
        piece::{Piece, Visited},
    },
    FollowReader, Woken,
};

impl FollowReader {
    /// Opens files that were never open, in order, as far as there is room. One descriptor is
    /// reserved for the file whose turn it is: it may have been closed, and unread files are not
    /// closed for it.
    pub(super) fn open_new(&mut self) {
        if self.files.iter().all(|file| file.has_begun) {
            return;
        }
        self.turns.room = self.free(0).saturating_sub(1);
        for at in 0..self.files.len() {
            if self.turns.room > 0 && !self.files[at].has_begun {
                self.open(at);
            }
        }
    }

    /// This many files may be opened: as many as leave a quarter of the descriptors to the rest of
    /// the process, and at least `least` if none is open.
    fn free(&self, least: usize) -> usize {
        let Some(limit) = limit() else { return usize::MAX };
        let each = 1 + usize::from(self.keeper.is_some());
        let open = self.files.iter().filter(|file| file.file.is_some()).count();
        let used = fs::read_dir("/proc/self/fd").map_or(open * each, Iterator::count);
        let free = (limit - limit / 4).saturating_sub(used) / each;
        let held = self.keeper.as_ref().map_or(0, Keeper::held_open);
        if open + held == 0 { free.max(least) } else { free }
    }

    /// Sees to it that a file is open.
    pub(super) fn wake(&mut self, at: usize, pieces: &mut Vec<Piece>) -> Woken {
        if self.files[at].file.is_some() {
            return Woken::Open;
        }
        if self.turns.room == 0 {
            self.turns.room = self.free(1);
        }
        if self.turns.room == 0 {
            self.put_to_sleep(pieces, 0);
            self.turns.room = self.free(1);
            // Closed ones may be held until a commit.
            self.keeper.iter().for_each(|keeper| keeper.due().notify_one());
        }
        match self.turns.room {
            0 => Woken::NoRoom,
            _ => self.open(at),
        }
    }

    fn open(&mut self, at: usize) -> Woken {
        let opened = match self.files[at].has_begun {
            true => self.reopen(at),
            false => self.begin_file(at),
        };
        let path = self.files[at].path.clone();
        match opened {
            Ok(true) => {
                self.turns.room = self.turns.room.saturating_sub(1);
                self.has_no_trouble(&path);
                Woken::Open
            }
            Ok(false) => Woken::Unreadable,
            Err(why) => {
                self.has_trouble(&path, why);
                Woken::Unreadable
            }
        }
    }

    /// The file that was found by this name. `None` if that is another one by now.
    fn opened(&self, at: usize) -> Result<Option<OpenedFile>, String> {
        let Followed { path, id, .. } = &self.files[at];
        let opened = match OpenedFile::open(path) {
            Ok(opened) => opened,
            Err(_) if !path.exists() => return Ok(None),
            Err(why) => return Err(why),
        };
        let is_it = inode(&opened.file).map_err(|error| unreadable(&error))? == id.1;
        Ok(is_it.then_some(opened))
    }

    /// Opens a file for the first time: it is read from its start, or from the position of an
    /// earlier run. Returns false if another one has its name by now.
    fn begin_file(&mut self, at: usize) -> Result<bool, String> {
        let Some(opened) = self.opened(at)? else { return Ok(false) };
        let stored = self.files[at].visited.place.zip(self.keeper.clone());
        let mut begun = match stored {
            Some((place, keeper)) => self.resumed(at, place, &keeper, opened)?,
            None => self.begun(at, opened).map_err(|error| unreadable(&error))?,
        };
        begun.is_there = self.files[at].is_there;
        self.files[at] = begun;
        Ok(true)
    }

    fn begun(&self, at: usize, opened: OpenedFile) -> io::Result<Followed> {
        let (path, id) = (self.files[at].path.clone(), self.files[at].id.clone());
        let start = Start::at_the_beginning();
        let kept = self.kept_anew(&path, &opened, &start, None)?;
        self.followed((path, id), kept, opened, start)
    }

    fn resumed(
        &self,
        at: usize,
        place: usize,
        keeper: &Keeper,
        mut opened: OpenedFile,
    ) -> Result<Followed, String> {
        let (path, id) = (self.files[at].path.clone(), self.files[at].id.clone());
        let io = |error| unreadable(&error);
        let Some(stored) = keeper.stored(place) else { return self.begun(at, opened).map_err(io) };
        let start = match Start::after(&stored, &mut opened.beside, opened.is_plain) {
            Ok(start) => start,
            Err(NoStart::Differs(why)) => {
                keeper.tell_other_content(&path, &why);
                keeper.forget(place);
                return self.begun(at, opened).map_err(io);
            }
            Err(NoStart::Unusable(why)) => return Err(why.to_string()),
            Err(NoStart::Unreadable(error)) => return Err(unreadable(&error)),
        };
        let is_plain = opened.is_plain;
        let is_read = stored.is_complete() && stored.read == Some(opened.length);
        let positions = match is_plain || !is_read {
            true => Some(positions_of(&path, &opened, &start, keeper).map_err(io)?),
            false => None,
        };
        if let Some(positions) = &positions {
            keeper.opened(place, positions.clone());
        }
        let file = self.followed((path, id), (Some(place), positions), opened, start);
        let mut file = file.map_err(io)?;
        match (is_plain, is_read) {
            (true, _) => {}
            (false, true) => file.pass_archive(),
            (false, false) => file.begin_archive().map_err(io)?,
        }
        Ok(file)
    }

    /// The keeper entry of a file that begins; at this index, if it has one: their order is that in
    /// which they are read after a restart.
    pub(super) fn kept_anew(
        &self,
        path: &Path,
        opened: &OpenedFile,
        start: &Start,
        place: Option<usize>,
    ) -> io::Result<(Option<usize>, Option<FilePositions>)> {
        let Some(keeper) = &self.keeper else { return Ok((None, None)) };
        let positions = positions_of(path, opened, start, keeper)?;
        let place = match place {
            Some(place) => {
                keeper.opened(place, positions.clone());
                place
            }
            None => keeper.add(Kept::Open(positions.clone())),
        };
        Ok((Some(place), Some(positions)))
    }

    /// Opens a file that was closed. False if another one has its name by now.
    fn reopen(&mut self, at: usize) -> Result<bool, String> {
        let Some(opened) = self.opened(at)? else { return Ok(false) };
        let visited = self.files[at].visited.clone();
        if let (Some(keeper), Some(place)) = (self.keeper.clone(), visited.place) {
            match keeper.reopened(place) {
                Ok(Some(positions)) => positions.reopened(opened.beside),
                Ok(None) => {}
                Err(stored) => {
                    // All that was read of it is stored.
                    let done = stored.positions().map_err(|why| why.to_string())?;
                    let start = Start { done, mark: stored.mark, resumed: None };
                    let positions = positions_of(&self.files[at].path, &opened, &start, &keeper);
                    let positions = positions.map_err(|error| unreadable(&error))?;
                    keeper.opened(place, positions.clone());
                    let name = visited.name.clone();
                    let (place, positions) = (visited.place, Some(positions));
                    self.files[at].visited = Arc::new(Visited { name, place, positions });
                }
            }
        }
        self.files[at].length = opened.length;
        self.files[at].file = Some(opened.file);
        Ok(true)
    }

    /// Closes files of a set that were read to their end, the longest quiet first, until only this
    /// many are open.
    pub(super) fn put_to_sleep(&mut self, pieces: &mut Vec<Piece>, most: usize) {
        let open = self.files.iter().filter(|file| file.file.is_some()).count();
        let is_sleepy =
            |file: &Followed| file.file.is_some() && file.is_there && file.length == file.read();
        let sleepy =
            self.files.iter().enumerate().filter(|(_, file)| is_sleepy(file) && self.is_set);
        let mut sleepy: Vec<(Option<Instant>, usize)> =
            sleepy.map(|(at, file)| (file.quiet_since, at)).collect();
        sleepy.sort_unstable_by_key(|(since, at)| (since.is_none(), *since, *at));
        for (_, at) in sleepy.into_iter().take(open.saturating_sub(most)) {
            let file = &mut self.files[at];
            file.file = None;
            let read = (file.at_hand() == 0).then_some(file.read());
            if read.is_some() {
                file.told = LastTold::Quiet;
            }
            pieces.push(Piece::Quiet { of: file.visited.clone(), read, is_left: true });
        }
    }
}

/// How many descriptors the process may have.
fn limit() -> Option<usize> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.and_then(|limit| usize::try_from(limit).ok())
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
