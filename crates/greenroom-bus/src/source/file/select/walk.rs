//! The files below a directory that a pattern matches, name by name.
//!
//! Directories are read before links to directories, and each is entered once for each part of the
//! pattern: so links that lead upwards, or to each other, end the walk instead of making it longer,
//! and a file is found under the name that needs no link, if it has one. A link to a directory in
//! which the walk begins is not entered, since all of that would be below it.

use std::{
    collections::{HashSet, VecDeque},
    ffi::{OsStr, OsString},
    fs, io,
    path::{Component, Path, PathBuf},
};

use glob::{MatchOptions, Pattern, PatternError};

use super::entry::{UnreadableEntry, is_link, known_by};

/// As a shell does it: a star crosses no directory, and takes no name that begins with a dot.
const AS_A_SHELL: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// Whether a name or a path matches. Bytes that are not UTF-8 count as some character.
pub(super) fn matches(pattern: &Pattern, name: &OsStr) -> bool {
    pattern.matches_with(&name.to_string_lossy(), AS_A_SHELL)
}

/// A part of a pattern, between two slashes.
enum PatternPart {
    /// A name without wildcards, or `..`.
    Name(OsString),
    Matching(Pattern),
    /// `**`.
    Deeper,
}

/// A directory to look into, and for which part.
type Place = (PathBuf, usize);

type DirectoryId = (u64, u64, PathBuf);

pub(super) struct PatternWalk {
    parts: Vec<PatternPart>,
    todo: VecDeque<Place>,
    /// Links to directories, for which no directory waits.
    links: VecDeque<Place>,
    entered: HashSet<(DirectoryId, usize)>,
    /// The start of the walk is inside these: links to them are not entered.
    above: HashSet<DirectoryId>,
    found: Vec<PathBuf>,
    unreadable: Vec<UnreadableEntry>,
}

impl PatternWalk {
    /// Along this pattern, whose last part matches file names.
    ///
    /// # Errors
    /// A part is no pattern.
    pub(super) fn new(pattern: &Path) -> Result<Self, PatternError> {
        let mut parts = pattern.components().map(part).collect::<Result<Vec<_>, _>>()?;
        if let Some(PatternPart::Deeper) = parts.last() {
            parts.push(PatternPart::Matching(Pattern::new("*")?));
        }
        Ok(Self {
            parts,
            todo: VecDeque::new(),
            links: VecDeque::new(),
            entered: HashSet::new(),
            above: HashSet::new(),
            found: Vec::new(),
            unreadable: Vec::new(),
        })
    }

    /// The contents of this directory, and the parts that cannot be read.
    ///
    /// # Errors
    /// The directory cannot be read, in words for an operator.
    pub(super) fn walk(
        mut self,
        directory: &Path,
    ) -> Result<(Vec<PathBuf>, Vec<UnreadableEntry>), String> {
        let full = directory.canonicalize().unwrap_or_default();
        self.above = full.ancestors().skip(1).filter_map(identity).collect();
        self.todo.push_back((directory.to_owned(), 0));
        while let Some((at, part)) = self.todo.pop_front().or_else(|| self.links.pop_front()) {
            match self.enter(&at, part) {
                Ok(()) => {}
                Err(error) if at == directory => {
                    return Err(format!("{} {}", at.display(), super::super::unreadable(&error)));
                }
                // It has vanished.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    let why = super::super::unreadable(&error);
                    self.unreadable.push(UnreadableEntry { path: at, why });
                }
            }
        }
        Ok((self.found, self.unreadable))
    }

    fn enter(&mut self, directory: &Path, part: usize) -> io::Result<()> {
        let identity = known_by(&fs::metadata(directory)?, directory);
        if !self.entered.insert((identity, part)) {
            return Ok(());
        }
        match &self.parts[part] {
            PatternPart::Name(name) => {
                let path = joined(directory, name);
                if path.exists() || is_link(&path) {
                    self.meet(path, part);
                }
            }
            PatternPart::Matching(pattern) => {
                let entries = names(directory)?.into_iter();
                let met: Vec<_> = entries.filter(|name| matches(pattern, name)).collect();
                met.iter().for_each(|name| self.meet(joined(directory, name), part));
            }
            PatternPart::Deeper => {
                self.todo.push_back((directory.to_owned(), part + 1));
                let is_shown = |name: &OsString| !name.as_encoded_bytes().starts_with(b".");
                for name in names(directory)?.into_iter().filter(is_shown) {
                    self.enter_later(joined(directory, &name), part);
                }
            }
        }
        Ok(())
    }

    /// This matches a part that is not `**`.
    fn meet(&mut self, path: PathBuf, part: usize) {
        match part + 1 == self.parts.len() {
            true => self.found.push(path),
            false => self.enter_later(path, part + 1),
        }
    }

    /// If it is a directory.
    fn enter_later(&mut self, path: PathBuf, part: usize) {
        match (path.is_dir(), is_link(&path)) {
            (false, _) => {}
            (true, false) => self.todo.push_back((path, part)),
            (true, true) if identity(&path).is_some_and(|of| self.above.contains(&of)) => {}
            (true, true) => self.links.push_back((path, part)),
        }
    }
}

fn identity(directory: &Path) -> Option<DirectoryId> {
    Some(known_by(&fs::metadata(directory).ok()?, directory))
}

fn part(component: Component<'_>) -> Result<PatternPart, PatternError> {
    let name = component.as_os_str();
    Ok(match name.to_string_lossy() {
        text if text == "**" => PatternPart::Deeper,
        text if text.contains(['*', '?', '[']) => PatternPart::Matching(Pattern::new(&text)?),
        _ => PatternPart::Name(name.to_owned()),
    })
}

fn names(directory: &Path) -> io::Result<Vec<OsString>> {
    let names = fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name()));
    let mut names = names.collect::<io::Result<Vec<_>>>()?;
    names.sort_unstable();
    Ok(names)
}

/// Entries of the working directory are named without a dot.
fn joined(directory: &Path, name: &OsStr) -> PathBuf {
    if directory == Path::new(".") { PathBuf::from(name) } else { directory.join(name) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::{ffi::OsStrExt, fs::symlink, net::UnixListener};

    use rand::{RngExt, SeedableRng, rngs::StdRng};

    use super::super::FileSet;
    use super::*;

    fn set(path: &Path) -> FileSet {
        FileSet::find(path).unwrap().unwrap()
    }

    #[test]
    fn b01_a_name_that_is_not_utf8_is_a_name_like_others() {
        let directory = tempfile::tempdir().unwrap();
        let name = |bytes: &[u8]| directory.path().join(OsStr::from_bytes(bytes));
        for bytes in [&b"a.ndjson"[..], b"caf\xe9.tmp", b"caf\xe9.ndjson", b"\xff\xfe"] {
            fs::write(name(bytes), "").unwrap();
        }
        fs::create_dir(name(b"d\xe9")).unwrap();
        fs::write(name(b"d\xe9/b.ndjson"), "").unwrap();
        let found = |pattern: &str| set(&directory.path().join(pattern)).files().to_vec();
        assert_eq!(found("*.ndjson"), [name(b"a.ndjson"), name(b"caf\xe9.ndjson")]);
        assert_eq!(found("caf?.ndjson"), [name(b"caf\xe9.ndjson")]);
        assert_eq!(found("*/*.ndjson"), [name(b"d\xe9/b.ndjson")]);
        let below = FileSet::find(&name(b"d\xe9/*.ndjson")).unwrap().unwrap();
        assert_eq!(below.files(), [name(b"d\xe9/b.ndjson")]);
        assert!(below.takes(&name(b"d\xe9/b.ndjson").canonicalize().unwrap()));
    }

    #[test]
    fn b01_links_that_lead_upwards_are_entered_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::create_dir_all(path("x/y")).unwrap();
        fs::write(path("x/a.ndjson"), "").unwrap();
        fs::write(path("x/y/b.ndjson"), "").unwrap();
        for name in ["x/a", "x/b", "x/y/c", "x/y/d"] {
            symlink("..", path(name)).unwrap();
        }
        symlink(path("x/y"), path("0")).unwrap();
        symlink("/", path("x/root")).unwrap();
        let found = set(&path("**/*.ndjson"));
        assert_eq!(found.files(), [path("x/a.ndjson"), path("x/y/b.ndjson")]);
        assert_eq!(found.unreadable(), []);
        assert_eq!(set(&path("**")).files(), found.files(), "the last part may be two stars");
        // A link to what is not below it is entered.
        let other = tempfile::tempdir().unwrap();
        fs::write(other.path().join("c.ndjson"), "").unwrap();
        symlink(other.path(), path("x/other")).unwrap();
        assert_eq!(set(&path("**/*.ndjson")).files().len(), 3);
    }

    /// What is made of an entry: what it is, and whether it is a file that can be read.
    fn make(kind: u32, path: &Path) -> bool {
        match kind {
            0..4 => fs::write(path, "").unwrap(),
            4 => symlink("nowhere", path).unwrap(),
            5 => symlink(path.file_name().unwrap(), path).unwrap(),
            6 => drop(UnixListener::bind(path).unwrap()),
            7 => symlink("/dev/null", path).unwrap(),
            8 => symlink("..", path).unwrap(),
            _ => fs::create_dir(path).unwrap(),
        }
        kind < 4
    }

    /// Whatever stands beside it, every file that can be read is found, and every other is told.
    #[test]
    fn b01_an_entry_that_cannot_be_read_is_told_and_the_others_are_found() {
        for seed in 0..60 {
            let mut random = StdRng::seed_from_u64(seed);
            let directory = tempfile::tempdir().unwrap();
            fs::create_dir_all(directory.path().join("d/e")).unwrap();
            let (mut files, mut bad) = (Vec::new(), Vec::new());
            for number in 0..random.random_range(1..20) {
                let place = ["", "d", "d/e"][random.random_range(0..3)];
                let mut name = format!("{number:02}").into_bytes();
                if random.random_bool(0.2) {
                    name.push(0xe9);
                }
                name.extend(b".ndjson");
                let path = directory.path().join(place).join(OsStr::from_bytes(&name));
                match random.random_range(0..10) {
                    kind if make(kind, &path) => files.push(path),
                    4..8 => bad.push(path),
                    _ => {}
                }
            }
            let found = set(&directory.path().join("**/*.ndjson"));
            let mut told: Vec<_> = found.unreadable().iter().map(|one| one.path.clone()).collect();
            files.sort();
            told.sort();
            bad.sort();
            // Under a link to its directory, a file has a second name.
            assert_eq!((found.files(), told), (&*files, bad), "seed {seed}");
        }
    }
}
