use std::sync::Arc;

use parking_lot::Mutex;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use tempfile::TempDir;

use super::*;

const HOUR: Duration = Duration::from_secs(3_600);

/// A directory with an output, and a clock that a test moves.
struct Stage {
    directory: TempDir,
    now: Arc<Mutex<SystemTime>>,
}

impl Stage {
    fn new() -> Self {
        // Ten minutes before a full hour.
        let now = UNIX_EPOCH + 24 * 7 * HOUR + Duration::from_secs(50 * 60);
        Self { directory: tempfile::tempdir().unwrap(), now: Arc::new(Mutex::new(now)) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn open(&self, rotate: Rotate) -> RotatingFile<OnDisk> {
        self.open_with(rotate, OnDisk)
    }

    fn open_with<S: Steps>(&self, rotate: Rotate, steps: S) -> RotatingFile<S> {
        let path = self.path("done.ndjson");
        let now = self.now.clone();
        let clock: Clock = Box::new(move || *now.lock());
        let file = AppendFile::open(&path, false).unwrap();
        RotatingFile::build(file, &path, rotate, clock, steps).unwrap()
    }

    fn pass(&self, time: Duration) {
        *self.now.lock() += time;
    }

    /// All names, sorted.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The lines of all files of the output, in the order in which they were written. Each is
    /// whole.
    fn lines(&self) -> Vec<u64> {
        let names = Names::new(&self.path("done.ndjson"));
        let aside = names.all().unwrap().into_iter().map(|(_, path)| path);
        let live = Some(names.path.clone()).filter(|path| path.exists());
        let texts = aside.chain(live).map(|path| fs::read_to_string(path).unwrap());
        texts.flat_map(|text| text.lines().map(number).collect::<Vec<_>>()).collect()
    }
}

fn line(number: u64) -> String {
    format!("{{{number}}}\n")
}

fn number(line: &str) -> u64 {
    line.strip_prefix('{').unwrap().strip_suffix('}').unwrap().parse().unwrap()
}

fn store(file: &mut RotatingFile<impl Steps>, text: &str) {
    file.append(text.as_bytes()).unwrap();
    file.sync().unwrap();
    file.rotate().unwrap();
}

fn by_size(size: u64) -> Rotate {
    Rotate { size: Some(size), ..Rotate::default() }
}

#[test]
fn c12_a_file_is_put_aside_once_it_is_large_and_begun_anew() {
    let stage = Stage::new();
    let mut file = stage.open(by_size(8));
    for number in 1..=5 {
        store(&mut file, &line(number));
    }
    assert_eq!(stage.names(), ["done.000001.ndjson", "done.000002.ndjson", "done.ndjson"]);
    assert_eq!(stage.read("done.000001.ndjson"), "{1}\n{2}\n");
    assert_eq!((stage.read("done.ndjson"), file.room()), ("{5}\n".to_owned(), 4));
    assert_eq!(stage.lines(), [1, 2, 3, 4, 5]);
}

#[test]
fn c12_at_the_end_of_a_period_a_file_with_lines_is_put_aside() {
    let stage = Stage::new();
    let mut file = stage.open(Rotate { every: Some(HOUR), ..Rotate::default() });
    assert_eq!(file.rotates_in(), None, "there is nothing to put aside");
    store(&mut file, "{1}\n");
    assert_eq!(file.rotates_in(), Some(Duration::from_secs(600)));
    stage.pass(Duration::from_secs(599));
    store(&mut file, "{2}\n");
    assert_eq!(stage.names(), ["done.ndjson"]);
    stage.pass(Duration::from_secs(1));
    assert_eq!(file.rotates_in(), Some(Duration::ZERO));
    file.rotate().unwrap();
    assert_eq!(stage.read("done.000001.ndjson"), "{1}\n{2}\n");
    stage.pass(5 * HOUR);
    file.rotate().unwrap();
    assert_eq!(stage.names(), ["done.000001.ndjson", "done.ndjson"], "no line, no file");
    store(&mut file, "{3}\n");
    assert_eq!(file.rotates_in(), Some(HOUR));
}

#[test]
fn c12_a_file_of_an_earlier_period_is_put_aside_when_a_run_begins() {
    let stage = Stage::new();
    let path = stage.path("done.ndjson");
    fs::write(&path, "{1}\n").unwrap();
    let before = *stage.now.lock() - HOUR;
    fs::File::options().append(true).open(&path).unwrap().set_modified(before).unwrap();
    let mut file = stage.open(Rotate { every: Some(HOUR), ..Rotate::default() });
    assert_eq!(file.rotates_in(), Some(Duration::ZERO));
    file.rotate().unwrap();
    store(&mut file, "{2}\n");
    assert_eq!((stage.read("done.000001.ndjson"), stage.lines()), ("{1}\n".to_owned(), vec![1, 2]));
}

#[test]
fn c12_a_clock_that_is_set_back_puts_nothing_aside() {
    let stage = Stage::new();
    let mut file = stage.open(Rotate { every: Some(HOUR), ..Rotate::default() });
    store(&mut file, "{1}\n");
    *stage.now.lock() -= 3 * HOUR;
    store(&mut file, "{2}\n");
    assert_eq!(stage.names(), ["done.ndjson"]);
}

#[test]
fn c12_numbers_go_on_and_only_own_names_are_removed() {
    let stage = Stage::new();
    let foreign = [
        "done.000001",
        "done.1.ndjson",
        "done.0000002.ndjson",
        "done.00000a.ndjson",
        "other.000001.ndjson",
        "done.000003.ndjson.gz",
    ];
    for name in foreign {
        fs::write(stage.path(name), "theirs").unwrap();
    }
    for number in 5..=7 {
        fs::write(stage.path(&format!("done.{number:06}.ndjson")), "{0}\n").unwrap();
    }
    let rotate = Rotate { keep: Some(2), ..by_size(1) };
    store(&mut stage.open(rotate), "{1}\n");
    store(&mut stage.open(rotate), "{2}\n");
    let ours: Vec<_> =
        stage.names().into_iter().filter(|name| !foreign.contains(&name.as_str())).collect();
    assert_eq!(ours, ["done.000008.ndjson", "done.000009.ndjson", "done.ndjson"]);
    assert!(foreign.iter().all(|name| stage.read(name) == "theirs"));
}

#[test]
fn numbers_beyond_their_digits_sort_by_number() {
    let stage = Stage::new();
    for name in ["done.999999.ndjson", "done.1000000.ndjson"] {
        fs::write(stage.path(name), "{0}\n").unwrap();
    }
    store(&mut stage.open(Rotate { keep: Some(2), ..by_size(1) }), "{1}\n");
    assert_eq!(stage.names(), ["done.1000000.ndjson", "done.1000001.ndjson", "done.ndjson"]);
}

#[test]
fn names_keep_their_extension() {
    for (path, expected) in [
        ("/d/done.ndjson", "/d/done.000007.ndjson"),
        ("/d/done", "/d/done.000007"),
        ("/d/a.b.c", "/d/a.b.000007.c"),
        ("/d/.done", "/d/.done.000007"),
    ] {
        let aside = Names::new(Path::new(path)).numbered(7);
        assert_eq!(aside, Path::new(expected));
        assert!(is_rotated_name(Path::new(path), &aside));
        assert!(!is_rotated_name(Path::new(path), Path::new(path)));
        assert!(!is_rotated_name(Path::new(path), Path::new("/other/done.000007.ndjson")));
    }
}

#[test]
fn a_link_goes_on_pointing_to_the_file_that_is_written() {
    let stage = Stage::new();
    fs::create_dir(stage.path("disk")).unwrap();
    std::os::unix::fs::symlink(stage.path("disk/live"), stage.path("done.ndjson")).unwrap();
    fs::write(stage.path("disk/live"), "").unwrap();
    store(&mut stage.open(by_size(1)), "{1}\n");
    assert_eq!(stage.read("disk/live.000001"), "{1}\n");
    assert_eq!(stage.read("done.ndjson"), "");
}

#[test]
fn a_file_that_somebody_else_has_rotated_is_left_to_him() {
    let stage = Stage::new();
    let mut file = stage.open(by_size(1));
    file.append(b"{1}\n").unwrap();
    file.sync().unwrap();
    fs::rename(stage.path("done.ndjson"), stage.path("done.ndjson.1")).unwrap();
    file.rotate().unwrap();
    assert_eq!(stage.names(), ["done.ndjson", "done.ndjson.1"]);
    assert!(file.take_remark().unwrap().contains("renamed or replaced"));
}

/// Otherwise its thread would look again and again.
#[test]
fn c12_a_file_that_others_have_rotated_or_cut_is_not_due_before_it_has_a_line() {
    let stage = Stage::new();
    let path = stage.path("done.ndjson");
    let mut file = stage.open(Rotate { every: Some(HOUR), ..Rotate::default() });
    store(&mut file, "{1}\n");
    fs::rename(&path, stage.path("theirs")).unwrap();
    file.reopen().unwrap();
    stage.pass(2 * HOUR);
    assert_eq!(file.rotates_in(), None);
    store(&mut file, "{2}\n");
    fs::File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
    file.sync().unwrap();
    stage.pass(2 * HOUR);
    assert_eq!(file.rotates_in(), None);
    store(&mut file, "{3}\n");
    assert!(file.rotates_in() > Some(Duration::ZERO));
    assert_eq!(stage.names(), ["done.ndjson", "theirs"]);
}

#[test]
fn b05_the_file_put_aside_is_let_go_of_and_the_new_one_is_locked() {
    let stage = Stage::new();
    let mut file = stage.open(by_size(1));
    store(&mut file, "{1}\n");
    drop(AppendFile::open(&stage.path("done.000001.ndjson"), false).unwrap());
    let error = AppendFile::open(&stage.path("done.ndjson"), false).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
}

#[test]
fn what_cannot_be_removed_is_told_and_stops_nothing() {
    let stage = Stage::new();
    // A directory in the place of a file.
    fs::create_dir(stage.path("done.000001.ndjson")).unwrap();
    let mut file = stage.open(Rotate { keep: Some(1), ..by_size(1) });
    store(&mut file, "{1}\n");
    store(&mut file, "{2}\n");
    assert!(file.take_remark().unwrap().contains("cannot be removed"));
    assert_eq!(stage.read("done.000003.ndjson"), "{2}\n");
}

/// Fails at one step, before or after it was done. A failure stands in for a crash.
#[derive(Clone, Default)]
struct Crashing(Arc<Mutex<Option<(u32, bool)>>>);

impl Crashing {
    fn step<T>(&self, step: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let mut plan = self.0.lock();
        let Some((left, is_done)) = plan.as_mut() else { return step() };
        if *left > 0 {
            *left -= 1;
            return step();
        }
        if *is_done {
            drop(step()?);
        }
        *plan = None;
        Err(io::Error::other("the crash"))
    }
}

impl Steps for Crashing {
    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(|| OnDisk.rename(from, to))
    }

    fn begin(&mut self, path: &Path) -> io::Result<AppendFile> {
        self.step(|| OnDisk.begin(path))
    }

    fn sync_directory(&mut self, path: &Path) -> io::Result<()> {
        self.step(|| OnDisk.sync_directory(path))
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.step(|| OnDisk.remove(path))
    }
}

/// Whatever step a crash comes at, a line that was confirmed is there once, whole and in order, and
/// one that was not at most once.
#[test]
fn b05_no_crash_while_a_file_rotates_loses_doubles_or_tears_a_line() {
    for seed in 0..30 {
        let mut chance = StdRng::seed_from_u64(seed);
        let stage = Stage::new();
        let rotate = Rotate {
            size: Some(chance.random_range(1..40)),
            every: chance.random_bool(0.5).then_some(HOUR),
            keep: None,
        };
        let (mut next, mut confirmed) = (0, Vec::new());
        for _ in 0..5 {
            let steps = Crashing::default();
            *steps.0.lock() = Some((chance.random_range(0..8), chance.random_bool(0.5)));
            let mut file = stage.open_with(rotate, steps);
            run(&stage, &mut file, &mut chance, &mut next, &mut confirmed);
            drop(file);
            // What opening makes of what the crash has left.
            drop(stage.open(rotate));
            let found = stage.lines();
            assert!(found.is_sorted_by(|a, b| a < b), "seed {seed}: {found:?}");
            let is_there = |line| found.binary_search(line).is_ok();
            assert!(confirmed.iter().all(is_there), "seed {seed}: {found:?}, {confirmed:?}");
        }
    }
}

/// Writes, syncs and rotates until a crash, which may also come in the middle of a line.
fn run(
    stage: &Stage,
    file: &mut RotatingFile<Crashing>,
    chance: &mut StdRng,
    next: &mut u64,
    confirmed: &mut Vec<u64>,
) {
    for _ in 0..chance.random_range(1..60) {
        let first = *next;
        for _ in 0..chance.random_range(0..3) {
            file.append(line(*next).as_bytes()).unwrap();
            *next += 1;
        }
        stage.pass(HOUR / chance.random_range(1..20));
        if chance.random_bool(0.9) {
            file.sync().unwrap();
            confirmed.extend(first..*next);
            if file.rotate().is_err() {
                return;
            }
        } else if chance.random_bool(0.2) {
            break;
        } else {
            file.sync().unwrap();
            confirmed.extend(first..*next);
        }
    }
    if chance.random_bool(0.5) {
        file.append(b"{torn").unwrap();
    }
}

/// The oldest go: what is left is the end of what was written.
#[test]
fn c12_with_keep_what_is_left_is_the_end_also_after_crashes() {
    for seed in 0..20 {
        let mut chance = StdRng::seed_from_u64(seed);
        let stage = Stage::new();
        let rotate = Rotate { keep: Some(chance.random_range(1..4)), ..by_size(1) };
        let mut next = 0;
        for _ in 0..4 {
            let steps = Crashing::default();
            *steps.0.lock() = Some((chance.random_range(0..12), chance.random_bool(0.5)));
            let mut file = stage.open_with(rotate, steps);
            for _ in 0..10 {
                file.append(line(next).as_bytes()).unwrap();
                next += 1;
                file.sync().unwrap();
                if file.rotate().is_err() {
                    break;
                }
            }
        }
        store(&mut stage.open(rotate), &line(next));
        let found = stage.lines();
        let kept = found.len() as u64;
        assert_eq!(found, (next + 1 - kept..=next).collect::<Vec<_>>(), "seed {seed}");
        let most = rotate.keep.unwrap() + 1;
        assert!(stage.names().len() <= most, "seed {seed}: {:?}", stage.names());
    }
}
