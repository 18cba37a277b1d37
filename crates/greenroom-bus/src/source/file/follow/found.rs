//! Which files are there.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::{
    super::select::{FileSet, known_by},
    content::written,
};

/// What a file is known by as long as it is open, whatever it is called.
pub(super) type Id = (u64, u64, PathBuf);

/// A file that is there.
#[derive(Debug, Clone)]
pub(super) struct FoundFile {
    pub(super) path: PathBuf,
    pub(super) id: Id,
    /// In bytes.
    pub(super) length: u64,
    pub(super) modified: SystemTime,
    /// Which was made first tells those apart that were last written to in the same tick of the
    /// clock, as one that was renamed and its successor.
    created: SystemTime,
}

/// What a path names now.
pub(super) struct NamedFiles {
    /// In the order in which they were last written to, then of their names.
    pub(super) files: Vec<FoundFile>,
    /// It is a directory or a pattern.
    pub(super) is_set: bool,
}

impl FoundFile {
    /// The same file, of which nothing is known any more.
    pub(super) fn anew(path: PathBuf, id: Id, length: u64) -> Self {
        let now = SystemTime::now();
        Self { path, id, length, modified: now, created: now }
    }
}

impl NamedFiles {
    /// One that vanishes meanwhile is left out.
    ///
    /// # Errors
    /// A directory cannot be read, or it names something that is no regular file.
    pub(super) fn by(path: &Path) -> Result<Self, String> {
        let (paths, is_set) = match FileSet::at(path)? {
            Some(set) => (set.files().to_vec(), true),
            None => (vec![path.to_owned()], false),
        };
        let mut files = Vec::with_capacity(paths.len());
        for path in paths {
            if let Some(found) = at(path)? {
                files.push(found);
            }
        }
        let order = |found: &FoundFile| (found.modified, found.created, found.path.clone());
        files.sort_by_cached_key(order);
        Ok(Self { files, is_set })
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

/// Beside a file of this name: files whose inode is one of these.
pub(super) fn beside(path: &Path, inodes: &[u64]) -> Vec<FoundFile> {
    let Some(Ok(entries)) = directory(path).map(fs::read_dir) else { return Vec::new() };
    // What cannot be looked at is not found: what is missed then is told.
    let paths = entries.flatten().map(|entry| entry.path());
    let found = paths.filter_map(|path| at(path).ok().flatten());
    found.filter(|found| inodes.contains(&found.id.1)).collect()
}

/// Beside a file of this name: files whose names begin with it and that were written to after this.
pub(super) fn successors(path: &Path, after: SystemTime) -> Vec<PathBuf> {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let Some(Ok(entries)) = directory(path).map(fs::read_dir) else { return Vec::new() };
    let is_named = |path: &Path| {
        let other = path.file_name().unwrap_or_default().as_encoded_bytes();
        other.len() > name.len() && other.starts_with(name)
    };
    let paths = entries.flatten().map(|entry| entry.path()).filter(|path| is_named(path));
    let found = paths.filter_map(|path| at(path).ok().flatten());
    found.filter(|found| found.modified > after).map(|found| found.path).collect()
}

fn directory(path: &Path) -> Option<&Path> {
    let parent = path.parent()?;
    Some(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })
}

fn at(path: PathBuf) -> Result<Option<FoundFile>, String> {
    let metadata = match fs::metadata(&path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{} cannot be read: {error}", path.display())),
    };
    if !metadata.is_file() {
        let path = path.display();
        return Err(format!("{path} is no regular file, and only such a file can be followed"));
    }
    let modified = written(&metadata);
    let created = metadata.created().unwrap_or(modified);
    let (id, length) = (known_by(&metadata, &path), metadata.len());
    Ok(Some(FoundFile { path, id, length, modified, created }))
}
