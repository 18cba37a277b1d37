//! The world outside the file: inputs that must exist, and directories to write to. Each kind
//! checks programs, certificates and libraries itself.

use std::{
    collections::HashMap,
    fs::{self, OpenOptions},
    io,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

use greenroom_bus::{
    kind::FileRole,
    sink::{is_rotated_name, rotated_name},
    source::file::{EXTENSIONS, FileSet},
};
use greenroom_config::{At, Kinds, Places, Problem, Problems, STANDARD_INPUT, Written};

use super::options::{Config, DeduplicationConfig, LayerConfig, LettersTo};

/// Reports every file, directory and program that cannot be reached from here.
pub(super) fn check(
    config: &Config,
    file: &Path,
    places: &Places,
    directory: &Path,
    problems: &mut Problems,
) {
    let mut reach = Reach {
        places,
        problems,
        directory,
        read: HashMap::new(),
        written: HashMap::new(),
        sets: Vec::new(),
        rotated: Vec::new(),
    };
    reach.reads(file, "the configuration file".to_owned());
    if [STANDARD_INPUT, "/dev/stdin"].iter().any(|stdin| file == Path::new(stdin)) {
        let stdin = KnownFile::Path(STANDARD_INPUT.into());
        reach.read.insert(stdin, "the configuration".to_owned());
    }
    // All inputs are known before any output is checked.
    reach.inputs(config);
    reach.outputs(config);
    reach.letters(config);
    reach.layers(config);
    reach.rotated_names();
    for handler in &config.handlers {
        let path = format!("handlers.{}.{}", handler.name, handler.kind.key());
        handler.kind.reach(&mut reach.place(&path));
    }
    if let Some(tls) = config.otlp().and_then(|otlp| otlp.tls.as_ref()) {
        tls.reach(&mut reach.place("telemetry.otlp.tls"));
    }
}

struct Reach<'a> {
    places: &'a Places,
    problems: &'a mut Problems,
    /// Where relative paths start.
    directory: &'a Path,
    read: HashMap<KnownFile, String>,
    written: HashMap<KnownFile, String>,
    /// Inputs that are several files, with the place of each.
    sets: Vec<(String, FileSet)>,
    /// Files that are rotated, with the place of each.
    rotated: Vec<(String, PathBuf)>,
}

/// The identity of a file: one with several names (hard links) is still one file.
#[derive(PartialEq, Eq, Hash)]
enum KnownFile {
    Path(PathBuf),
    Inode(u64, u64),
}

impl KnownFile {
    fn all(path: &Path) -> Vec<Self> {
        let by_path = Self::Path(identity(path));
        [by_path].into_iter().chain(Self::inode(path)).collect()
    }

    fn inode(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(path).ok().map(|found| Self::Inode(found.dev(), found.ino()))
    }
}

impl<'a> Reach<'a> {
    fn place(&mut self, path: &str) -> At<'_> {
        At::new(path, self.places, self.directory, self.problems)
    }

    fn inputs(&mut self, config: &Config) {
        let inputs = config.inputs.iter().flat_map(|input| {
            let path = format!("inputs.{}.{}", input.name, input.kind.key());
            let files = input.kind.files().into_iter();
            files.map(move |file| (format!("{path}.{}", file.option), file))
        });
        let inputs: Vec<_> = inputs.collect();
        for (key, file) in &inputs {
            if let FileRole::Read { waits } = file.role {
                self.input(key, file.path, waits);
            }
        }
        for (key, file) in &inputs {
            match file.role {
                FileRole::Read { .. } => {}
                FileRole::Checkpoint { of } => self.checkpoint(key, of, file.path),
                FileRole::Log => self.log_store(key, file.path),
            }
        }
        for input in &config.inputs {
            let path = format!("inputs.{}.{}", input.name, input.kind.key());
            input.kind.reach(&mut self.place(&path));
        }
    }

    fn outputs(&mut self, config: &Config) {
        for output in &config.outputs {
            let path = format!("outputs.{}.{}", output.name, output.kind.key());
            if let Some(file) = output.kind.writes() {
                let key = format!("{path}.{}", file.option);
                if output.is_standard() {
                    self.standard_output(&key);
                } else {
                    self.output(&key, file.path);
                    self.rotates(&path, file.path, file.rotates);
                }
            }
            output.kind.reach(&mut self.place(&path));
        }
    }

    fn letters(&mut self, config: &Config) {
        match config.dead_letters.destination() {
            LettersTo::Store(store) => self.store("dead_letters.store.path", &store.path),
            LettersTo::File(letters) => {
                self.output("dead_letters.file.path", &letters.path);
                self.rotates("dead_letters.file", &letters.path, letters.rotate.is_some());
            }
            LettersTo::Broker(broker) => {
                broker.reach(&mut self.place(&format!("dead_letters.{}", broker.key())));
            }
        }
    }

    fn layers(&mut self, config: &Config) {
        for handler in &config.handlers {
            for (place, layer) in handler.layers.iter().enumerate() {
                if let LayerConfig::Deduplication(DeduplicationConfig {
                    store: Some(path), ..
                }) = layer
                {
                    let key =
                        format!("handlers.{}.layers.{place}.deduplication.store", handler.name);
                    self.store(&key, path);
                }
            }
        }
    }

    fn error(&mut self, at: &Written, message: String, help: &str) {
        self.problems.push(Problem::error(message, at.place.clone()).help(help));
    }

    fn warning(&mut self, at: &Written, message: String, help: &str) {
        self.problems.push(Problem::warning(message, at.place.clone()).help(help));
    }

    fn reads(&mut self, path: &Path, what: String) {
        self.read.extend(KnownFile::all(path).into_iter().map(|known| (known, what.clone())));
    }

    /// `waits`: the run waits for a missing file.
    fn input(&mut self, key: &str, path: &Path, waits: bool) {
        let at = self.places.at(key);
        if path == Path::new("-") {
            let stdin = KnownFile::Path(path.to_owned());
            if self.read.insert(stdin, key.to_owned()).is_some() {
                let help = "it has the configuration, or one input reads it";
                self.error(&at, "standard input is read twice".to_owned(), help);
            }
            return;
        }
        let shown = at.show(&path.display().to_string());
        match FileSet::find(path) {
            Ok(None) => {}
            Ok(Some(set)) => return self.set(key, &at, (path, waits), set),
            Err(why) => {
                let help = "paths start at the directory of the configuration file";
                return self.error(&at, format!("cannot read `{shown}`: {why}"), help);
            }
        }
        match fs::metadata(path) {
            // Opening a pipe would wait for its writer.
            Ok(found) => {
                match if found.is_file() { fs::File::open(path).map(drop) } else { Ok(()) } {
                    Ok(()) => {
                        self.reads(path, format!("`{key}`"));
                    }
                    Err(error) => {
                        self.error(
                            &at,
                            format!("cannot read `{shown}`: {error}"),
                            "make it readable",
                        );
                    }
                }
            }
            Err(error) if waits && error.kind() == io::ErrorKind::NotFound => {
                self.reads(path, format!("`{key}`"));
            }
            Err(error) => {
                let help = "paths start at the directory of the configuration file";
                self.error(&at, format!("cannot read `{shown}`: {error}"), help);
            }
        }
    }

    /// The files of a directory or a pattern.
    fn set(&mut self, key: &str, at: &Written, (path, waits): (&Path, bool), set: FileSet) {
        if set.files().is_empty() && !waits {
            self.none_is_there(at, path);
        }
        self.unreadable(at, &set, waits);
        if let Some((second, first)) = set.named_twice().first() {
            let [first, second] = [first, second].map(|file| at.show(&file.display().to_string()));
            let text = format!("`{first}` and `{second}` are one file");
            self.warning(at, text, "it is read once, under the first name");
        }
        for file in set.files() {
            self.reads(file, format!("`{key}`"));
        }
        self.sets.push((key.to_owned(), set));
    }

    /// It may appear before a run, which otherwise ends with an error.
    fn none_is_there(&mut self, at: &Written, path: &Path) {
        let shown = at.show(&path.display().to_string());
        if path.is_dir() {
            let text = format!("there is no file to read in the directory `{shown}`");
            let ends = EXTENSIONS.join(", .");
            let help = format!("files in a directory are read if they end in .{ends}");
            self.warning(at, text, &help);
        } else {
            let help = "a run ends with an error unless there is one by then";
            self.warning(at, format!("no file matches `{shown}`"), help);
        }
    }

    /// `waits`: a file that cannot be read now is tried again.
    fn unreadable(&mut self, at: &Written, set: &FileSet, waits: bool) {
        let told = set.unreadable().iter().map(|entry| (&entry.path, entry.why.clone()));
        let refused = set.files().iter().filter_map(|file| {
            let error = fs::File::open(file).err()?;
            Some((file, format!("cannot be read: {error}")))
        });
        let mut unreadable = told.chain(refused);
        let Some((path, why)) = unreadable.next() else { return };
        let others = match unreadable.count() {
            0 => String::new(),
            others => format!(" (and {others} more)"),
        };
        let text = format!("`{}`{others} {why}", at.show(&path.display().to_string()));
        let help = match waits {
            true => {
                "the others are read, and this one is retried: make it readable, or narrow the pattern"
            }
            false => {
                "the others are read, and the run then ends with an error: make it readable, or narrow the pattern"
            }
        };
        self.warning(at, text, help);
    }

    /// Positions can be kept only for a file that can be read again, and only in one that can be
    /// replaced.
    fn checkpoint(&mut self, key: &str, input: &Path, path: &Path) {
        let at = self.places.at(key);
        let shown = at.show(&path.display().to_string());
        let special = |path: &Path| fs::metadata(path).is_ok_and(|found| !found.is_file());
        if path == Path::new("-") || special(path) {
            let text = format!("a checkpoint cannot be kept in `{shown}`");
            self.error(&at, text, "name a file");
        } else if special(input) && !input.is_dir() {
            let text =
                "the input is not a regular file, so a later run cannot continue it".to_owned();
            self.error(&at, text, "leave `checkpoint` out");
        } else {
            self.output(key, path);
        }
    }

    /// A directory that a store needs for itself.
    fn store(&mut self, key: &str, path: &Path) {
        let at = self.places.at(key);
        let shown = at.show(&path.display().to_string());
        if let Some(other) = self.written.insert(KnownFile::Path(identity(path)), key.to_owned()) {
            let text = format!("`{shown}` is used by `{other}` as well");
            return self.error(&at, text, "each store has a directory of its own");
        }
        let parent = path.parent().filter(|parent| *parent != Path::new(""));
        let parent = parent.unwrap_or(Path::new("."));
        if path.is_file() || path == Path::new("-") {
            let text = format!("`{shown}` is not a directory");
            self.error(&at, text, "name one that is empty, or that does not exist yet");
        } else if !parent.is_dir() {
            let text = format!("the directory of `{shown}` is missing");
            self.error(&at, text, "create the directory");
        }
    }

    fn output(&mut self, key: &str, path: &Path) {
        let at = self.places.at(key);
        let shown = at.show(&path.display().to_string());
        if path == Path::new("-") {
            let text = "only an output can be standard output".to_owned();
            self.error(&at, text, "name a file");
            return;
        }
        let full = identity(path);
        if let Some((reader, _)) = self.sets.iter().find(|(_, set)| set.takes(&full)) {
            let text = format!("`{shown}` would be read by `{reader}`");
            self.error(&at, text, "write to another directory, or narrow the pattern of the input");
            return;
        }
        let known = KnownFile::all(path);
        if let Some(reader) = known.iter().find_map(|known| self.read.get(known)) {
            let text = format!("`{shown}` would be written over {reader}, which is read");
            self.error(&at, text, "choose another file");
            return;
        }
        // Several writers may share a device (`/dev/null`), but not a file.
        let device = fs::metadata(path).is_ok_and(|found| !found.is_file());
        let other = known.iter().find_map(|known| self.written.get(known)).cloned();
        self.written.extend(known.into_iter().map(|known| (known, key.to_owned())));
        if let Some(other) = other.filter(|_| !device) {
            let text = format!("`{shown}` is written by `{other}` too");
            self.error(&at, text, "choose another file");
        }
        if let Err(error) = try_to_write(path) {
            let help = "greenroom creates files, not directories; create the directory, or make it writable";
            self.error(&at, format!("cannot write `{shown}`: {error}"), help);
        }
    }

    fn standard_output(&mut self, key: &str) {
        let known = KnownFile::Path(PathBuf::from("-"));
        if let Some(other) = self.written.insert(known, key.to_owned()) {
            let text = format!("standard output is written by `{other}` too");
            self.error(&self.places.at(key), text, "one output can write it");
        }
    }

    /// Only a regular file can be rotated.
    fn rotates(&mut self, key: &str, path: &Path, rotates: bool) {
        if !rotates {
            return;
        }
        if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            let at = self.places.at(&format!("{key}.rotate"));
            let text = "only a regular file can be rotated".to_owned();
            return self.error(&at, text, "leave `rotate` out");
        }
        self.rotated.push((format!("{key}.rotate"), identity(path)));
    }

    /// A rotation may also remove files with the names that it creates; none of them may be read.
    fn rotated_names(&mut self) {
        for (key, path) in std::mem::take(&mut self.rotated) {
            let has_such_a_name = |(known, what): (&KnownFile, &String)| match known {
                KnownFile::Path(other) if is_rotated_name(&path, other) => Some(what.clone()),
                _ => None,
            };
            let read = self.read.iter().filter_map(has_such_a_name);
            let written = self.written.iter().filter_map(has_such_a_name);
            let written = written.map(|writer| format!("`{writer}`"));
            let first = rotated_name(&path, 1);
            let sets = self.sets.iter().filter(|(_, set)| set.takes(&first));
            let sets = sets.map(|(reader, _)| format!("`{reader}`"));
            if let Some(other) = read.chain(written).chain(sets).min() {
                let at = self.places.at(&key);
                let text = format!("a rotated file has a name that {other} uses");
                self.error(&at, text, "choose another path for one of them");
            }
        }
    }

    /// The directory of a log: it exists or can be created, and belongs to one input.
    fn log_store(&mut self, key: &str, path: &Path) {
        let at = self.places.at(key);
        let shown = at.show(&path.display().to_string());
        if let Some(first) = self.written.insert(KnownFile::Path(identity(path)), key.to_owned()) {
            let text = format!("`{shown}` is the store of `{first}` already");
            return self.error(&at, text, "a log has one input: name another directory");
        }
        let reachable = match fs::metadata(path) {
            Ok(found) if found.is_dir() => try_to_create_beside(&path.join("segment")),
            Ok(_) => Err(io::Error::other("it is not a directory")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => try_to_create_beside(path),
            Err(error) => Err(error),
        };
        if let Err(error) = reachable {
            let text = format!("a log cannot be kept in `{shown}`: {error}");
            let help = "name a writable directory; its parent must exist";
            self.error(&at, text, help);
        }
    }
}

/// A file has one identity however its path is written; a missing one is identified by its
/// directory.
pub(crate) fn identity(path: &Path) -> PathBuf {
    if let Ok(full) = path.canonicalize() {
        return full;
    }
    let directory =
        path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (directory.canonicalize(), path.file_name()) {
        (Ok(directory), Some(name)) => directory.join(name),
        _ => path.to_owned(),
    }
}

/// Permissions are not enough (read-only mounts, other users): the file is opened; if it is
/// missing, another one is created next to it and removed again. Never the file itself: a run that
/// has just rotated it may create it at the same moment, and would lose its output.
fn try_to_write(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::Error::other("it is a directory")),
        // Opening a pipe would wait for its reader.
        Ok(found) if !found.is_file() => Ok(()),
        Ok(_) => OpenOptions::new().append(true).open(path).map(drop),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Err(_) => try_to_create_beside(path),
    }
}

fn try_to_create_beside(path: &Path) -> io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let beside = path.with_file_name(format!(".greenroom-check-{}-{number}", process::id()));
    OpenOptions::new().write(true).create_new(true).open(&beside)?;
    fs::remove_file(beside)
}
