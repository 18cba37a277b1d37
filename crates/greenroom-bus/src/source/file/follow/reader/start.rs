//! The records of an earlier run in its checkpoint.

use std::{
    io::{self, Read, Seek, SeekFrom},
    path::Path,
    sync::Arc,
};

use super::{
    super::super::{
        OpenedFile,
        checkpoint::{Checkpoint, Contents, StoredCheckpoint},
        decompress::decompressed,
        identity::{BYTES, FileIdentity},
        keeper::{Keeper, Kept},
        resume::{NoStart, Start},
    },
    super::{
        found::{FoundFile, beside, in_order},
        successors::{Successors, put_aside},
    },
    FollowReader, absolute,
};
use crate::source::Resumed;

/// The record of an existing file.
struct Claimed {
    record: StoredCheckpoint,
    found: FoundFile,
    /// Unknown if it cannot be read now.
    resumed: Option<Resumed>,
}

impl Claimed {
    fn is_packed(&self) -> bool {
        OpenedFile::open(&self.found.path).is_ok_and(|opened| !opened.is_plain)
    }
}

impl FollowReader {
    /// Finds the files that a checkpoint knows, whatever they are called by now. They are opened
    /// by the first look, as others are.
    pub(super) fn go_on(
        &mut self,
        mut found: Vec<FoundFile>,
        checkpoint: Checkpoint,
    ) -> Result<(), String> {
        let unusable = |why: String| checkpoint.unusable(&why);
        let input = absolute(&self.path);
        let (of, records) = match checkpoint.read().map_err(|why| unusable(why.to_string()))? {
            None => (input.clone(), Vec::new()),
            Some(Contents::One(one)) => (one.input.clone(), vec![one]),
            Some(Contents::Several(set)) => (set.input, set.files),
        };
        let had_any = !records.is_empty();
        // Under another name, it is a replaced one, as long as this is the followed name.
        if of == input {
            found.extend(renamed(&self.path, &records, &found));
        }
        let mut copies = put_aside(&self.path, &[]);
        let aside: Vec<_> = copies.iter().map(|found| found.id.clone()).collect();
        copies.retain(|copy| found.iter().all(|found| found.id != copy.id));
        let (mut claimed, mut left) = (Vec::new(), Vec::new());
        for (at, record) in records.into_iter().enumerate() {
            match claim(record, &mut found, &checkpoint)? {
                Ok(claim) => claimed.push((at, claim)),
                Err(record) => left.push((at, record)),
            }
        }
        // The file named by the path itself is new.
        copies.extend(found.extract_if(.., |found| found.path != self.path));
        in_order(&mut copies);
        let mut differ: Vec<_> = left.iter().map(|(_, record)| record.identity.clone()).collect();
        let is_looked_for = |record: &StoredCheckpoint| !record.is_complete() || !self.is_set;
        left.retain(|(at, record)| {
            let copy = is_looked_for(record).then(|| claim_copy(record, &mut copies)).flatten();
            let is_left = copy.is_none();
            if copy.as_ref().is_some_and(Claimed::is_packed) {
                // A compressed original is removed, so another file has its inode by now.
                differ.retain(|identity| identity.inode() != record.identity.inode());
            }
            claimed.extend(copy.map(|copy| (*at, copy)));
            is_left
        });
        // Files that were cut, rewritten and then put aside.
        let differs = |file| differ.iter().any(|identity| identity.is_inode_of(file));
        copies.retain(|found| differs((found.id.1, found.created)) && aside.contains(&found.id));
        claimed.sort_by_key(|(at, _)| *at);
        let claimed: Vec<_> = claimed.into_iter().map(|(_, claimed)| claimed).collect();
        let left: Vec<_> = left.into_iter().map(|(_, record)| record).collect();
        let is_known = !claimed.is_empty() || left.iter().any(|record| record.input == input);
        if had_any && !is_known && of != input {
            return Err(unusable(format!("it is of another input, {of}")));
        }
        self.successors = self.successors_of(&claimed, had_any, &checkpoint);
        let resumed = claimed.iter().filter_map(|claimed| claimed.resumed);
        let resumed = resumed.reduce(|all, one| all + one);
        let resumed = resumed.map(|all| Resumed { partitions: all.partitions.min(1), ..all });
        let keeper = Keeper::of_several(self.name.clone(), checkpoint, input, Vec::new(), resumed);
        self.tell_left(&left);
        for Claimed { record, found, resumed } in claimed {
            let again = resumed.map_or(0, |resumed| resumed.again_at_most);
            let place = keeper.add(Kept::Stored(Arc::new(record), again));
            let file = self.unopened(found, Some(place));
            self.files.push(file);
        }
        for found in copies {
            self.successors.came_after(&found);
            let file = self.unopened(found, None);
            self.files.push(file);
        }
        self.keeper = Some(keeper);
        for record in left.into_iter().filter(StoredCheckpoint::is_complete) {
            self.keep_past(record);
        }
        Ok(())
    }

    /// Files that came after the last known one. If none of the known ones exists, files that were
    /// written after the checkpoint was stored.
    fn successors_of(
        &self,
        claimed: &[Claimed],
        had_any: bool,
        checkpoint: &Checkpoint,
    ) -> Successors {
        if claimed.is_empty() {
            let stored = checkpoint.path().metadata().and_then(|found| found.modified());
            return Successors::begin(&self.path, stored.ok().filter(|_| had_any));
        }
        let mut successors = Successors::default();
        claimed.iter().for_each(|claimed| successors.came_after(&claimed.found));
        successors
    }

    /// The unread lines of a removed file are lost.
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
}

/// In the directory of the path, files that the records know and that were not found by its name.
fn renamed(path: &Path, records: &[StoredCheckpoint], found: &[FoundFile]) -> Vec<FoundFile> {
    let is_known = |one: &FoundFile| found.iter().any(|known| known.id == one.id);
    beside(path, |one| {
        !is_known(one) && records.iter().any(|record| record.identity.inode() == one.id.1)
    })
}

/// The copy of this record's file: it was copied and cut, or compressed, while no process followed
/// it. An unreadable file is not a copy.
fn claim_copy(record: &StoredCheckpoint, copies: &mut Vec<FoundFile>) -> Option<Claimed> {
    let of_copy = |copy: &FoundFile| copied(record, OpenedFile::open(&copy.path).ok()?).ok()?;
    let (at, record) =
        copies.iter().enumerate().find_map(|(at, copy)| Some((at, of_copy(copy)?)))?;
    let found = copies.remove(at);
    tracing::info!(file = record.input, copy = %found.path.display(), "its copy is read on");
    let done = record.positions().ok()?;
    let again_at_most = done.count_open() + record.taken_below.saturating_sub(done.next());
    let resumed = Resumed { partitions: 1, files: 1, done: done.count_done(), again_at_most };
    Some(Claimed { record, found, resumed: Some(resumed) })
}

/// The record of this file, if it is a copy of the record's file, plain or compressed.
fn copied(
    record: &StoredCheckpoint,
    mut opened: OpenedFile,
) -> io::Result<Option<StoredCheckpoint>> {
    let Some(identity) = record.identity.copied(&opened.file)? else { return Ok(None) };
    if opened.is_plain {
        let differs = identity.difference(&mut opened.beside, &record.tail)?;
        return Ok(differs.is_none().then(|| record.of_copy(identity)));
    }
    let identity = FileIdentity::read(&mut opened.beside)?;
    let mut beginning = Vec::new();
    opened.file.seek(SeekFrom::Start(0))?;
    decompressed(opened.file)?.take(BYTES).read_to_end(&mut beginning)?;
    Ok(record.identity.begins_with(&beginning).then(|| record.of_archive(identity)))
}

/// The file of this record; the record again, if there is none.
fn claim(
    record: StoredCheckpoint,
    found: &mut Vec<FoundFile>,
    checkpoint: &Checkpoint,
) -> Result<Result<Claimed, StoredCheckpoint>, String> {
    let inode = record.identity.inode();
    let Some(at) = found.iter().position(|found| found.id.1 == inode) else {
        return Ok(Err(record));
    };
    let start = OpenedFile::open(&found[at].path)
        .map(|mut opened| Start::after(&record, &mut opened.beside, opened.is_plain));
    let resumed = match start {
        Ok(Ok(start)) => start.resumed,
        Ok(Err(NoStart::Differs(why))) => {
            checkpoint.tell_other_content(&found[at].path, &why);
            return Ok(Err(record));
        }
        Ok(Err(NoStart::Unusable(why))) => return Err(checkpoint.unusable(&why.to_string())),
        // It is reported when it is opened, and tried again.
        Ok(Err(NoStart::Unreadable(_))) | Err(_) => None,
    };
    Ok(Ok(Claimed { record, found: found.remove(at), resumed }))
}
