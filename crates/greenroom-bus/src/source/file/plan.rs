//! Which files of a set a run reads, and which it cannot.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use super::select::{FileSet, UnreadableEntry};

pub(super) struct Planned {
    pub(super) path: PathBuf,
    /// In bytes, when the run began.
    pub(super) length: u64,
    /// The lengths of those before it.
    pub(super) behind: u64,
}

impl Planned {
    /// Of these together.
    pub(super) fn length_of(files: &[Self]) -> u64 {
        files.last().map_or(0, |last| last.behind + last.length)
    }
}

/// The plan of a run's reading.
pub(super) struct Plan {
    /// In order.
    pub(super) files: Vec<Planned>,
    /// The entries that cannot be read.
    pub(super) unread: Vec<UnreadableEntry>,
}

impl Plan {
    /// # Errors
    /// There is nothing to read.
    pub(super) fn new(set: &FileSet, input: &str) -> Result<Self, String> {
        let mut plan = Self { files: Vec::new(), unread: set.unreadable().to_vec() };
        for path in set.files() {
            match File::open(path).and_then(|file| file.metadata()) {
                Ok(found) => {
                    let (path, length) = (path.clone(), found.len());
                    plan.files.push(Planned {
                        path,
                        length,
                        behind: Planned::length_of(&plan.files),
                    });
                }
                Err(error) => {
                    let (path, why) = (path.clone(), super::unreadable(&error));
                    plan.unread.push(UnreadableEntry { path, why });
                }
            }
        }
        for UnreadableEntry { path, why } in &plan.unread {
            tracing::warn!(input, entry = %path.display(), why, "it is passed over");
        }
        match plan.files.is_empty() {
            true => Err(plan.nothing()),
            false => Ok(plan),
        }
    }

    fn nothing(&self) -> String {
        match self.unread.first() {
            Some(UnreadableEntry { path, why }) => format!("{} {why}", path.display()),
            None => {
                "there is no file to read: check the path, or wait until there is one".to_owned()
            }
        }
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| &*file.path)
    }

    /// Whether this absolute path is an unreadable one, or below one.
    pub(super) fn passes_over(&self, path: &Path) -> bool {
        let is_at = |entry: &UnreadableEntry| entry.path.canonicalize().ok();
        self.unread.iter().filter_map(is_at).any(|entry| path.starts_with(entry))
    }
}
