//! Files that replaced the followed one, and were put aside before a look found them.
//!
//! With a single path, a look finds the file that has the name. If that is a new one, others, even
//! several, may have had the name since the last look: while the input was held up, or the process
//! was stopped. They are in the same directory under the name with a number or a date, or under a
//! name like that of a file that was followed before and renamed. Files that existed already are
//! not among them, nor are files that were created, or last written, before the last known one.

use std::{
    collections::HashSet,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::found::{FoundFile, Id, directory, find_file};

/// Words that may follow a name in place of a number.
const WORDS: [&str; 4] = ["old", "bak", "prev", "backup"];

/// The identity of a file: inodes are reused.
type Seen = (Id, SystemTime);

#[derive(Default)]
pub(super) struct Successors {
    /// These are none.
    seen: HashSet<Seen>,
    /// When the last file that is known was made, and when it was last written to as it was found.
    after: Option<(SystemTime, SystemTime)>,
}

impl Successors {
    /// Files in the directory of this path existed before, unless they were written after this
    /// time.
    pub(super) fn begin(path: &Path, after: Option<SystemTime>) -> Self {
        let was_there = |found: &FoundFile| after.is_none_or(|after| found.modified <= after);
        let there = put_aside(path, &[]).into_iter().filter(was_there);
        Self { seen: there.map(|found| seen(&found)).collect(), after: None }
    }

    /// Only files that came after this one qualify.
    pub(super) fn came_after(&mut self, found: &FoundFile) {
        self.after = self.after.max(Some((found.created, found.modified)));
        // A file that was created earlier does not qualify, seen or not.
        let first = self.after.map(|(created, _)| created);
        self.seen.retain(|(_, created)| Some(*created) >= first);
        self.seen.insert(seen(found));
    }

    /// Existing files in the directory of this path do not qualify: a cut file has a copy there.
    pub(super) fn was_cut(&mut self, path: &Path) {
        self.seen.extend(put_aside(path, &[]).iter().map(seen));
    }

    /// Those of this path, the first one first. `renamed`: where files of this path are now.
    pub(super) fn find(&self, path: &Path, renamed: &[PathBuf]) -> Vec<FoundFile> {
        let mut all = put_aside(path, renamed);
        all.retain(|found| {
            let is_late =
                |(created, modified)| found.created >= created && found.modified >= modified;
            !self.seen.contains(&seen(found)) && self.after.is_none_or(is_late)
        });
        all
    }
}

fn seen(found: &FoundFile) -> Seen {
    (found.id.clone(), found.created)
}

/// Files whose names show that they had the name of this path, in its directory and in those of
/// these files.
pub(super) fn put_aside(path: &Path, renamed: &[PathBuf]) -> Vec<FoundFile> {
    let names: Vec<String> =
        renamed.iter().filter_map(|path| path.file_name()).map(shape).collect();
    let is_one = |name: &OsStr| {
        let is_like_one = names.contains(&shape(name)) && Some(name) != path.file_name();
        is_numbered(name, path) || is_like_one
    };
    let places = [path].into_iter().chain(renamed.iter().map(PathBuf::as_path));
    let entries = places.filter_map(directory).filter_map(|place| fs::read_dir(place).ok());
    let entries = entries.flatten().flatten().filter(|entry| is_one(&entry.file_name()));
    let mut known = HashSet::new();
    // Entries that cannot be examined cannot be read.
    let found = entries.filter_map(|entry| find_file(&entry.path()).ok().flatten());
    found.filter(|found| known.insert(found.id.clone())).collect()
}

/// Whether this is the name of that path with a number or a date, compressed or not.
fn is_numbered(name: &OsStr, path: &Path) -> bool {
    let name = unpacked(name);
    let text = |name: Option<&OsStr>| name.unwrap_or_default().to_string_lossy().into_owned();
    if let Some(rest) = name.strip_prefix(&text(path.file_name())) {
        return is_number(rest) || rest.get(1..).is_some_and(|rest| WORDS.contains(&rest));
    }
    let extension = format!(".{}", text(path.extension()));
    let middle = name.strip_prefix(&text(path.file_stem()));
    middle.and_then(|middle| middle.strip_suffix(&extension)).is_some_and(is_number)
}

/// Behind a dot, a dash or the like.
fn is_number(rest: &str) -> bool {
    let mut rest = rest.chars();
    let is_apart = rest.next().is_some_and(|first| !first.is_alphanumeric());
    is_apart && rest.next().is_some_and(|second| second.is_ascii_digit())
}

fn unpacked(name: &OsStr) -> String {
    let name = name.to_string_lossy();
    let plain = [".gz", ".zst"].iter().find_map(|end| name.strip_suffix(end));
    plain.unwrap_or(&name).to_owned()
}

/// A name in which all numbers are one.
fn shape(name: &OsStr) -> String {
    let mut shape = unpacked(name).replace(|digit: char| digit.is_ascii_digit(), "0");
    while shape.contains("00") {
        shape = shape.replace("00", "0");
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b01_which_names_say_that_a_file_was_put_aside() {
        let is = |name: &str, path: &str| is_numbered(OsStr::new(name), Path::new(path));
        for name in [
            "app.ndjson.1",
            "app.ndjson.12.gz",
            "app.ndjson-20260101",
            "app-20260101.ndjson",
            "app-20260101.ndjson.gz",
            "app.2026-01-01T10.ndjson",
            "app_1.ndjson.zst",
            "app.ndjson.old",
        ] {
            assert!(is(name, "logs/app.ndjson"), "{name}");
        }
        for name in [
            "app.ndjson",
            "app.ndjson.gz",
            "app.ndjson.checkpoint",
            "app.ndjson.tmp",
            "app-errors.ndjson",
            "app-errors.ndjson.1",
            "app2.ndjson",
            "other.ndjson.1",
        ] {
            assert!(!is(name, "logs/app.ndjson"), "{name}");
        }
        assert!(is("messages-20260101", "messages") && !is("messages2", "messages"));
        assert_eq!(shape(OsStr::new("old-17.a.gz")), shape(OsStr::new("old-4.a")));
    }
}
