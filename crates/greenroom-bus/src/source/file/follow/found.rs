//! Which files are there.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::{
    super::{
        select::{FileSet, UnreadableEntry, known_by},
        unreadable,
    },
    content::written,
};

/// The identity of a file as long as it is open, whatever its name.
pub(super) type Id = (u64, u64, PathBuf);

/// A file that is there.
#[derive(Debug, Clone)]
pub(super) struct FoundFile {
    pub(super) path: PathBuf,
    pub(super) id: Id,
    /// In bytes.
    pub(super) length: u64,
    pub(super) modified: SystemTime,
    /// The time of creation distinguishes files that were last written in the same tick of the
    /// clock, such as a renamed one and its successor.
    pub(super) created: SystemTime,
}

/// The files that a path names now.
pub(super) struct NamedFiles {
    /// In the order in which they were last written to, then of their names.
    pub(super) files: Vec<FoundFile>,
    /// It is a directory or a pattern.
    pub(super) is_set: bool,
    /// The named entries that cannot be read.
    pub(super) unreadable: Vec<UnreadableEntry>,
}

impl NamedFiles {
    /// A file that vanishes in between is left out.
    ///
    /// # Errors
    /// A directory cannot be read, or one file that is named by itself cannot be followed.
    pub(super) fn find(path: &Path) -> Result<Self, String> {
        let Some(set) = FileSet::find(path)? else {
            let found = find_file(path).map_err(|why| format!("{} {why}", path.display()))?;
            let files = found.into_iter().collect();
            return Ok(Self { files, is_set: false, unreadable: Vec::new() });
        };
        let mut unreadable = set.unreadable().to_vec();
        let mut files = Vec::with_capacity(set.files().len());
        for path in set.files() {
            match find_file(path) {
                Ok(found) => files.extend(found),
                Err(why) => unreadable.push(UnreadableEntry { path: path.clone(), why }),
            }
        }
        in_order(&mut files);
        Ok(Self { files, is_set: true, unreadable })
    }

    /// Whether both name the same files, by the same names.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let names = |named: &Self| {
            let mut names: Vec<_> =
                named.files.iter().map(|found| (found.path.clone(), found.id.clone())).collect();
            names.sort_unstable();
            names
        };
        names(self) == names(other)
    }
}

/// In the order in which they were last written to, then made, then of their names.
pub(super) fn in_order(files: &mut [FoundFile]) {
    files.sort_by_cached_key(|found| (found.modified, found.created, found.path.clone()));
}

/// Files in the directory of this one for which this is true.
pub(super) fn beside(path: &Path, is_one: impl Fn(&FoundFile) -> bool) -> Vec<FoundFile> {
    let Some(Ok(entries)) = directory(path).map(fs::read_dir) else { return Vec::new() };
    // Entries that cannot be examined are left out.
    let found = entries.flatten().filter_map(|entry| find_file(&entry.path()).ok().flatten());
    found.filter(is_one).collect()
}

pub(super) fn directory(path: &Path) -> Option<&Path> {
    let parent = path.parent()?;
    Some(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })
}

/// The file at this path, if there is one.
///
/// # Errors
/// Why it cannot be followed, in words that follow the path.
pub(super) fn find_file(path: &Path) -> Result<Option<FoundFile>, String> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(&error)),
    };
    if !metadata.is_file() {
        return Err("is no regular file, and only such a file can be followed".to_owned());
    }
    let modified = written(&metadata);
    let created = metadata.created().unwrap_or(modified);
    let (id, length) = (known_by(&metadata, path), metadata.len());
    Ok(Some(FoundFile { path: path.to_owned(), id, length, modified, created }))
}
