//! Entries of a directory.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// An entry that the path names and that is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableEntry {
    /// A link to nothing, something that is no regular file, or a directory.
    pub path: PathBuf,
    /// Why, in words that follow the path.
    pub why: String,
}

/// Also a dangling one.
pub(super) fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
}

/// The identity of a file or a directory, whatever its name.
pub(in super::super) fn known_by(found: &fs::Metadata, _path: &Path) -> (u64, u64, PathBuf) {
    use std::os::unix::fs::MetadataExt;
    (found.dev(), found.ino(), PathBuf::new())
}
