//! The files that a path names, if it can name several: those of a directory, or those that a
//! pattern matches.

mod entry;
mod walk;

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use glob::Pattern;

use self::{
    entry::is_link,
    walk::{PatternWalk, matches},
};

pub use entry::UnreadableEntry;
pub(super) use entry::known_by;

/// The files of a directory that are read: by how their names end.
pub const EXTENSIONS: [&str; 5] = ["ndjson", "jsonl", "json", "gz", "zst"];

/// The files that a directory or a pattern names, in the order in which they are read: by their
/// paths, compared byte by byte, name by name.
///
/// A directory names the files directly in it whose names end in one of [`EXTENSIONS`] and do not
/// begin with a dot. A pattern has `*` and `?` for any and for one character of a name, `[abc]` or
/// `[!a-z]` for one of some, and `**` for any number of directories. Directories that it matches
/// are left out. Links are followed, except to a directory that was entered before.
///
/// An entry that cannot be read keeps no other from being found: it is [told](Self::unreadable).
#[derive(Debug, Clone)]
pub struct FileSet {
    files: Vec<PathBuf>,
    named_twice: Vec<(PathBuf, PathBuf)>,
    unreadable: Vec<UnreadableEntry>,
    takes: Takes,
    absolute: PathBuf,
}

#[derive(Debug, Clone)]
enum Takes {
    /// With its path as the system has it.
    Directory(PathBuf),
    /// With the part that is there as the system has it.
    Pattern(Pattern),
}

impl FileSet {
    /// The present files. `None` if a path names one file: standard input (`-`), an existing entry
    /// of exactly this name that is not a directory, or a name without `*`, `?` and `[`.
    ///
    /// # Errors
    /// It is no pattern, or the directory that it begins with cannot be read; in words for an
    /// operator.
    pub fn find(path: &Path) -> Result<Option<Self>, String> {
        if path == Path::new("-") {
            return Ok(None);
        }
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => Self::of_directory(path).map(Some),
            Ok(_) => Ok(None),
            Err(_) if !has_wildcards(path) => Ok(None),
            Err(_) => Self::of_pattern(path).map(Some),
        }
    }

    /// The files, in order.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Second names of files that are read under another one: links.
    pub fn named_twice(&self) -> &[(PathBuf, PathBuf)] {
        &self.named_twice
    }

    /// The named entries that cannot be read.
    pub fn unreadable(&self) -> &[UnreadableEntry] {
        &self.unreadable
    }

    /// The directory or pattern, from the root.
    pub fn absolute(&self) -> &Path {
        &self.absolute
    }

    /// Whether a regular file of this path, from the root, would be one of them.
    pub fn takes(&self, path: &Path) -> bool {
        match &self.takes {
            Takes::Directory(directory) => path.parent() == Some(directory) && is_data(path),
            Takes::Pattern(pattern) => matches(pattern, path.as_os_str()),
        }
    }

    fn of_directory(path: &Path) -> Result<Self, String> {
        let unreadable = |error| format!("the directory cannot be read: {error}");
        let mut found = Vec::new();
        for entry in fs::read_dir(path).map_err(unreadable)? {
            let file = path.join(entry.map_err(unreadable)?.file_name());
            if is_data(&file) {
                found.push(file);
            }
        }
        let absolute = path.canonicalize().map_err(unreadable)?;
        Ok(Self::collected((found, Vec::new()), Takes::Directory(absolute.clone()), absolute))
    }

    fn of_pattern(path: &Path) -> Result<Self, String> {
        let wrong = |error: glob::PatternError| {
            format!("there is no such file, and it is no pattern: {error}")
        };
        let (there, rest) = split(path);
        let full = there.canonicalize().map_err(|error| error.to_string())?;
        let takes = Takes::Pattern(Pattern::new(&pattern(&full, rest)?).map_err(wrong)?);
        let found = PatternWalk::new(rest).map_err(wrong)?.walk(there)?;
        Ok(Self::collected(found, takes, full.join(rest)))
    }

    fn collected(
        (mut found, mut unreadable): (Vec<PathBuf>, Vec<UnreadableEntry>),
        takes: Takes,
        absolute: PathBuf,
    ) -> Self {
        found.sort();
        let (mut files, mut named_twice) = (Vec::new(), Vec::new());
        let mut known: std::collections::HashMap<_, PathBuf> = std::collections::HashMap::new();
        for path in found {
            let identity = match identity(&path) {
                Ok(Some(identity)) => identity,
                Ok(None) => continue,
                Err(why) => {
                    unreadable.push(UnreadableEntry { path, why });
                    continue;
                }
            };
            match known.get(&identity) {
                Some(first) => named_twice.push((path, first.clone())),
                None => {
                    known.insert(identity, path.clone());
                    files.push(path);
                }
            }
        }
        Self { files, named_twice, unreadable, takes, absolute }
    }
}

fn has_wildcards(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().iter().any(|byte| b"*?[".contains(byte))
}

fn is_data(path: &Path) -> bool {
    let is_hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
    let extension = path.extension().and_then(OsStr::to_str);
    !is_hidden && extension.is_some_and(|extension| EXTENSIONS.contains(&extension))
}

/// The part of a path that is there under its very name, and the rest, which is a pattern.
fn split(path: &Path) -> (&Path, &Path) {
    let is_there = |part: &&Path| !part.as_os_str().is_empty() && part.exists();
    let there = path.ancestors().skip(1).find(is_there).unwrap_or(Path::new("."));
    (there, path.strip_prefix(there).unwrap_or(path))
}

/// The whole as a pattern: the existing part is literal, whatever characters it has.
fn pattern(there: &Path, rest: &Path) -> Result<String, String> {
    let rest = rest.to_str().ok_or_else(|| "a pattern has to be valid UTF-8".to_owned())?;
    let there = Pattern::escape(there.to_string_lossy().trim_end_matches('/'));
    Ok(format!("{there}/{rest}"))
}

/// Identifies a file whatever its name; `None` for a directory, and for a file that has vanished.
fn identity(path: &Path) -> Result<Option<(u64, u64, PathBuf)>, String> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(None),
        Ok(found) if found.is_file() => Ok(Some(known_by(&found, path))),
        Ok(_) => Err("is no regular file: name it in an input of its own".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_link(path) => Ok(None),
        Err(error) => Err(super::unreadable(&error)),
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn directory(files: &[&str]) -> TempDir {
        let directory = tempfile::tempdir().unwrap();
        for file in files {
            let path = directory.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        directory
    }

    fn found(directory: &TempDir, path: &str) -> Vec<String> {
        let set = FileSet::find(&directory.path().join(path)).unwrap().unwrap();
        let name = |file: &PathBuf| {
            file.strip_prefix(directory.path()).unwrap().to_str().unwrap().to_owned()
        };
        assert!(set.files().iter().all(|file| {
            let full = directory.path().canonicalize().unwrap();
            set.takes(&full.join(file.strip_prefix(directory.path()).unwrap()))
        }));
        set.files().iter().map(name).collect()
    }

    const FILES: [&str; 9] = [
        "b.ndjson",
        "a.ndjson",
        "c.json",
        "d.ndjson.gz",
        ".hidden.ndjson",
        "notes.txt",
        "a.ndjson.tmp",
        "more/e.ndjson",
        "more/deep/f.ndjson",
    ];

    #[test]
    fn b01_a_directory_names_the_data_in_it_by_name() {
        let directory = directory(&FILES);
        fs::create_dir(directory.path().join("g.ndjson")).unwrap();
        assert_eq!(found(&directory, ""), ["a.ndjson", "b.ndjson", "c.json", "d.ndjson.gz"]);
        assert_eq!(found(&directory, "more/"), ["more/e.ndjson"]);
        assert!(found(&directory, "g.ndjson").is_empty());
    }

    #[test]
    fn b01_a_pattern_matches_as_in_a_shell() {
        let directory = directory(&FILES);
        for (pattern, expected) in [
            ("*.ndjson", &["a.ndjson", "b.ndjson"][..]),
            ("?.json", &["c.json"]),
            ("[bc].*", &["b.ndjson", "c.json"]),
            ("[!a].ndjson", &["b.ndjson"]),
            ("*/*.ndjson", &["more/e.ndjson"]),
            ("m*/**/*.ndjson", &["more/deep/f.ndjson", "more/e.ndjson"]),
            ("*", &["a.ndjson", "a.ndjson.tmp", "b.ndjson", "c.json", "d.ndjson.gz", "notes.txt"]),
            ("none/*.ndjson", &[]),
            ("*.csv", &[]),
        ] {
            assert_eq!(found(&directory, pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn b01_a_name_that_is_there_means_that_file_whatever_its_characters() {
        let directory =
            directory(&["a[1].ndjson", "a1.ndjson", "d[x]/b.ndjson", "dx/c.ndjson", "*"]);
        let path = |name: &str| directory.path().join(name);
        assert!(FileSet::find(&path("a[1].ndjson")).unwrap().is_none());
        assert!(FileSet::find(&path("*")).unwrap().is_none());
        assert!(FileSet::find(&path("none.ndjson")).unwrap().is_none());
        assert!(FileSet::find(Path::new("-")).unwrap().is_none());
        assert_eq!(found(&directory, "d[x]/*.ndjson"), ["d[x]/b.ndjson"]);
        assert_eq!(found(&directory, "a[12].ndjson"), ["a1.ndjson"]);
    }

    #[test]
    fn b01_what_is_no_pattern_is_told() {
        let directory = directory(&["a.ndjson"]);
        let wrong = FileSet::find(&directory.path().join("[a.ndjson")).unwrap_err();
        assert!(wrong.starts_with("there is no such file, and it is no pattern: "), "{wrong}");
    }

    #[test]
    fn b01_a_file_with_two_names_is_read_once() {
        let directory = directory(&["a.ndjson"]);
        let second = directory.path().join("b.ndjson");
        fs::hard_link(directory.path().join("a.ndjson"), &second).unwrap();
        assert_eq!(found(&directory, "*"), ["a.ndjson"]);
        let set = FileSet::find(directory.path()).unwrap().unwrap();
        assert_eq!(set.named_twice(), [(second, directory.path().join("a.ndjson"))]);
    }

    #[test]
    fn c02_whether_a_file_that_is_not_there_yet_would_be_read() {
        let directory = directory(&FILES);
        let full = directory.path().canonicalize().unwrap();
        let takes = |path: &str, file: &str| {
            FileSet::find(&directory.path().join(path)).unwrap().unwrap().takes(&full.join(file))
        };
        assert!(takes("", "done.ndjson") && !takes("", "done.txt") && !takes("", "more/x.ndjson"));
        assert!(takes("*.ndjson", "done.ndjson") && !takes("*.ndjson", "more/done.ndjson"));
    }
}
