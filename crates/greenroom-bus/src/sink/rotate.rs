//! A file that is put aside when it is large or old, and begun anew (B05, C12).
//!
//! ```text
//! 1. done.ndjson ─▶ done.000007.ndjson   renamed, while every line of it is whole, synced and confirmed
//! 2. done.ndjson                         made anew and locked; the directory is synced
//! 3. done.000001.ndjson                  removed, if there are more than `keep`
//! ```
//!
//! A crash leaves one of these states, and none of them loses or doubles a line: after 1 there is
//! no file at the path, which the next run makes; nothing is confirmed in the new file before 2 is
//! done; what 3 has left is removed by the next rotation. Numbers follow from the names that are
//! there, so there is no state to keep, and a clock that is set back changes no order.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use greenroom_config::{
    At, count, duration, options, size,
    units::{DAY_MS, GIB},
};

use super::storage::{AppendFile, Storage, sync_directory};

/// A number has as many digits at least, so that names sort by age.
const DIGITS: usize = 6;

options! {
    /// The file is renamed and begun again, between two lines. A rotated file has a number before
    /// its extension (`done.000001.ndjson`); newer files have higher numbers, across runs.
    #[derive(Copy, Eq, Default)]
    pub struct Rotate = "`rotate`", then Rotate::is_ever_due {
        /// The file is rotated after the line that makes it this large. Without it, size does not
        /// matter.
        size: Option<u64> = size(1024..=1024 * GIB).optional();
        /// The file is rotated at the end of each period: `1h` ends at each full hour, `1d` at
        /// midnight UTC. A file without a line is not rotated. Without it, time does not matter.
        every: Option<Duration> = duration(1_000..=366 * DAY_MS).optional();
        /// How many rotated files are kept; the oldest are removed. Without it, all are kept.
        keep: Option<usize> = count(1..=1_000_000).optional();
    }
}

impl Rotate {
    fn is_ever_due(self, at: &mut At<'_>) -> Option<Self> {
        if self.size.is_some() || self.every.is_some() {
            return Some(self);
        }
        // One of them that is wrong has been reported.
        if !at.has("size") && !at.has("every") {
            let help = "write `size: 100MiB`, `every: 1d`, or both";
            at.error("", "nothing says when the file is put aside", help);
        }
        None
    }
}

/// Tells the time.
pub(crate) type Clock = Box<dyn Fn() -> SystemTime + Send>;

/// What is done in the directory, step by step. A trait, so that tests can make each fail.
pub(crate) trait Steps: Send + 'static {
    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    /// Opens the file anew, which also makes its name safe if there was none.
    fn begin(&mut self, path: &Path) -> io::Result<AppendFile> {
        AppendFile::open(path, false)
    }

    fn sync_directory(&mut self, path: &Path) -> io::Result<()> {
        sync_directory(path)
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }
}

/// As the system does them.
#[derive(Debug)]
pub(crate) struct OnDisk;

impl Steps for OnDisk {}

/// A regular file that rotates.
pub(crate) struct RotatingFile<S> {
    file: AppendFile,
    rotate: Rotate,
    names: Names,
    clock: Clock,
    steps: S,
    /// When its first line came, as far as is known; `None` while it has none.
    begun: Option<SystemTime>,
    remark: Option<String>,
}

impl RotatingFile<OnDisk> {
    /// Rotates this file.
    ///
    /// # Errors
    /// It is no regular file.
    pub(crate) fn new(file: AppendFile, path: &Path, rotate: Rotate) -> io::Result<Self> {
        Self::build(file, path, rotate, Box::new(SystemTime::now), OnDisk)
    }
}

impl<S: Steps> RotatingFile<S> {
    pub(crate) fn build(
        file: AppendFile,
        path: &Path,
        rotate: Rotate,
        clock: Clock,
        steps: S,
    ) -> io::Result<Self> {
        if !file.is_regular() {
            return Err(io::Error::other("only a regular file can be rotated"));
        }
        // A link goes on pointing to the file that is written.
        let names = Names::new(&path.canonicalize()?);
        let begun = if file.length() > 0 { Some(file.modified()?) } else { None };
        Ok(Self { file, rotate, names, clock, steps, begun, remark: None })
    }

    fn is_due(&self) -> bool {
        let is_old = || self.rotates_in().is_some_and(|left| left.is_zero());
        let is_large = self.file.length() > 0 && self.room() == 0;
        is_large || is_old()
    }

    fn go_on(&mut self) -> io::Result<()> {
        let path = self.names.path.clone();
        let aside = self.names.next()?;
        self.steps.rename(&path, &aside)?;
        let next = self.steps.begin(&path)?;
        if !next.is_new() {
            self.steps.sync_directory(&path)?;
        }
        self.file.go_on_in(next);
        self.begun = None;
        tracing::info!(file = %path.display(), aside = %aside.display(), "rotated");
        Ok(())
    }

    /// What cannot be removed stops nothing: the disk only holds more than it was to.
    fn remove_the_oldest(&mut self) -> io::Result<()> {
        let Some(keep) = self.rotate.keep else { return Ok(()) };
        let all = self.names.all()?;
        let excess = all.len().saturating_sub(keep);
        all[..excess].iter().try_for_each(|(_, path)| self.steps.remove(path))
    }
}

impl<S: Steps> Storage for RotatingFile<S> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        // Another one may be in its place since: another process has rotated it, or cut it.
        if self.begun.is_none() || self.file.length() == 0 {
            self.begun = Some((self.clock)());
        }
        self.file.append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }

    fn revert(&mut self) -> io::Result<()> {
        self.file.revert()
    }

    fn reopen(&mut self) -> io::Result<()> {
        self.file.reopen()
    }

    fn room(&self) -> u64 {
        self.rotate.size.map_or(u64::MAX, |size| size.saturating_sub(self.file.length()))
    }

    fn rotates_in(&self) -> Option<Duration> {
        let (every, begun) = (self.rotate.every?, self.begun?);
        if self.file.length() == 0 {
            return None;
        }
        let now = since_1970((self.clock)());
        Some(end_of_period(since_1970(begun), every).saturating_sub(now))
    }

    fn rotate(&mut self) -> io::Result<()> {
        if !self.is_due() {
            return Ok(());
        }
        if !self.file.is_in_place()? {
            // Another process has rotated it.
            self.begun = None;
            return self.file.reopen();
        }
        self.go_on()
            .map_err(|error| io::Error::new(error.kind(), format!("rotating it: {error}")))?;
        if let Err(error) = self.remove_the_oldest() {
            self.remark = Some(format!(
                "of the files that were put aside, the oldest cannot be removed: {error}; remove them by hand"
            ));
        }
        Ok(())
    }

    fn take_remark(&mut self) -> Option<String> {
        self.file.take_remark().or_else(|| self.remark.take())
    }

    fn close(&mut self) {
        self.file.close();
    }
}

fn since_1970(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The end of the period that this moment is in. Periods are whole seconds.
fn end_of_period(at: Duration, every: Duration) -> Duration {
    let every = every.as_secs().max(1);
    Duration::from_secs((at.as_secs() / every).saturating_add(1).saturating_mul(every))
}

/// The names of a file and of those that were put aside: its own, with a number before the
/// extension.
#[derive(Debug)]
struct Names {
    path: PathBuf,
    /// Before the number, with the dot.
    before: OsString,
    /// Behind it: nothing, or the extension with its dot.
    behind: OsString,
}

impl Names {
    fn new(path: &Path) -> Self {
        let mut before = path.file_stem().unwrap_or_default().to_owned();
        before.push(".");
        let mut behind = OsString::new();
        if let Some(extension) = path.extension() {
            behind.push(".");
            behind.push(extension);
        }
        Self { path: path.to_owned(), before, behind }
    }

    fn numbered(&self, number: u64) -> PathBuf {
        let mut name = self.before.clone();
        name.push(format!("{number:0DIGITS$}"));
        name.push(&self.behind);
        self.path.with_file_name(name)
    }

    /// The number in a name that we have given.
    fn number_of(&self, name: &OsStr) -> Option<u64> {
        let name = name.as_encoded_bytes().strip_prefix(self.before.as_encoded_bytes())?;
        let digits = name.strip_suffix(self.behind.as_encoded_bytes())?;
        let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
        (format!("{number:0DIGITS$}").as_bytes() == digits).then_some(number)
    }

    /// Those that are there, the oldest first.
    fn all(&self) -> io::Result<Vec<(u64, PathBuf)>> {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        let mut all = Vec::new();
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            all.extend(self.number_of(&entry.file_name()).map(|number| (number, entry.path())));
        }
        all.sort_unstable();
        Ok(all)
    }

    /// One that nothing has.
    fn next(&self) -> io::Result<PathBuf> {
        let last = self.all()?.last().map_or(0, |(number, _)| *number);
        let number = last.checked_add(1).ok_or_else(|| io::Error::other("no number is left"))?;
        Ok(self.numbered(number))
    }
}

/// What a rotation calls the file at `path` when it puts it aside under this number.
pub fn rotated_name(path: &Path, number: u64) -> PathBuf {
    Names::new(path).numbered(number)
}

/// Whether a rotation of `path` could give its file this name; both as they are written.
pub fn is_rotated_name(path: &Path, name: &Path) -> bool {
    let number = name.file_name().and_then(|name| Names::new(path).number_of(name));
    path.parent() == name.parent() && number.is_some()
}

#[cfg(test)]
mod tests;
