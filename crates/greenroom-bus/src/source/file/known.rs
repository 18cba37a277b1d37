//! The records of a checkpoint for the files that exist now.

use std::{collections::HashMap, path::Path, sync::Arc};

use super::{
    OpenedFile,
    checkpoint::{Checkpoint, Contents, StoredCheckpoint, StoredSet},
    identity::inode,
    keeper::Kept,
    plan::Plan,
    resume::{NoStart, Start},
};
use crate::source::Resumed;

/// By the indices of the files; then the records of files that cannot be read now.
pub(super) struct Known {
    pub(super) kept: Vec<Option<Kept>>,
    pub(super) resumed: Option<Resumed>,
}

/// Records that no file was found for yet.
struct Unclaimed {
    by_inode: HashMap<u64, Vec<usize>>,
    records: Vec<Option<Arc<StoredCheckpoint>>>,
}

impl Known {
    /// Finds the record of each file, by its inode and its content; so a renamed file still has its
    /// own.
    ///
    /// # Errors
    /// The checkpoint cannot be used: it is damaged, or of another input; or a file cannot be read.
    pub(super) fn find(checkpoint: &Checkpoint, input: &str, plan: &Plan) -> Result<Self, String> {
        let unusable = |why: String| checkpoint.unusable(&why);
        let set = match checkpoint.read().map_err(|why| unusable(why.to_string()))? {
            None => {
                let kept = plan.paths().map(|_| None).collect();
                return Ok(Self { kept, resumed: None });
            }
            Some(Contents::One(one)) => StoredSet { input: one.input.clone(), files: vec![one] },
            Some(Contents::Several(set)) => set,
        };
        let is_same_input = set.input == input || set.files.is_empty();
        let mut unclaimed = Unclaimed::new(set.files);
        let (mut kept, mut resumed, mut any) = (Vec::new(), Resumed::default(), false);
        for path in plan.paths() {
            let found = unclaimed.claim(path, checkpoint)?;
            any |= found.is_known;
            resumed = resumed + found.resumed.unwrap_or_default();
            kept.push(found.kept);
        }
        if !any && !is_same_input {
            return Err(unusable(format!("it is of another input, {}", set.input)));
        }
        let mut records = std::mem::take(&mut unclaimed.records);
        for record in records.extract_if(.., |record| {
            record.as_ref().is_some_and(|record| plan.passes_over(Path::new(&record.input)))
        }) {
            kept.extend(record.map(|record| Some(Kept::Stored(record, 0))));
        }
        let gone = records.iter().flatten().count();
        if gone > 0 {
            tracing::info!(input, files = gone, "files of the checkpoint are not there any more");
        }
        // All of them are one partition.
        let resumed = Resumed { partitions: resumed.partitions.min(1), ..resumed };
        Ok(Self { kept, resumed: Some(resumed) })
    }
}

/// The findings about one file.
#[derive(Default)]
struct FileFindings {
    kept: Option<Kept>,
    resumed: Option<Resumed>,
    /// The checkpoint has a record of it, be it of another content.
    is_known: bool,
}

impl Unclaimed {
    fn new(records: Vec<StoredCheckpoint>) -> Self {
        let mut by_inode: HashMap<u64, Vec<usize>> = HashMap::new();
        for (place, record) in records.iter().enumerate() {
            by_inode.entry(record.identity.inode()).or_default().push(place);
        }
        Self { by_inode, records: records.into_iter().map(|one| Some(Arc::new(one))).collect() }
    }

    fn claim(&mut self, path: &Path, checkpoint: &Checkpoint) -> Result<FileFindings, String> {
        let in_file = |why: String| format!("{} {why}", path.display());
        let unreadable = |error| in_file(super::unreadable(&error));
        let mut opened = OpenedFile::open(path).map_err(in_file)?;
        let mut differs = None;
        let inode = inode(&opened.beside).map_err(unreadable)?;
        let same_inode = self.by_inode.get(&inode);
        for place in same_inode.into_iter().flatten() {
            let Some(record) = &self.records[*place] else { continue };
            match Start::after(record, &mut opened.beside, opened.is_plain) {
                Ok(Start { resumed, .. }) => {
                    let again = resumed.unwrap_or_default().again_at_most;
                    let kept = Some(Kept::Stored(record.clone(), again));
                    self.records[*place] = None;
                    return Ok(FileFindings { kept, resumed, is_known: true });
                }
                Err(NoStart::Differs(why)) => differs = Some(why),
                Err(NoStart::Unusable(why)) => return Err(checkpoint.unusable(&why.to_string())),
                Err(NoStart::Unreadable(error)) => return Err(unreadable(error)),
            }
        }
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let of_its_name = self
            .records
            .iter_mut()
            .find(|record| record.as_ref().is_some_and(|record| Path::new(&record.input) == path));
        let Some(record) = of_its_name else { return Ok(FileFindings::default()) };
        *record = None;
        let why = differs.unwrap_or_else(|| "another file is in its place".to_owned());
        checkpoint.tell_other_content(&path, &why);
        Ok(FileFindings { is_known: true, ..FileFindings::default() })
    }
}
