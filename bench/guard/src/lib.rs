//! The guard of the hot paths: what Greenroom's side takes in instructions per message, beside what
//! is recorded in a file of the repository. A row that grew fails it; one that fell is told, so
//! that it is recorded and the next growth is seen.
//!
//! Time says nothing on a machine that is shared; instructions repeat to less than a
//! hundredth. They say nothing of cache lines that go to and fro, so a row that did not grow
//! may still have become slower.

pub mod callgrind;
mod recorded;

use std::{
    fmt,
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use recorded::{Figures, Made, Recorded};

pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The compiler that built this program.
pub const COMPILER: &str = env!("BUILT_BY");

/// A change beyond this is told, in percent: several times what rows differ from run to run.
const TOLERATED: f64 = 5.0;

/// What is compared with what.
pub struct Guard<'a> {
    /// The program, as errors and the file name it.
    pub program: &'a str,
    /// What its figures are, in a sentence.
    pub about: &'a str,
    pub rows: Vec<&'static str>,
    /// The figures of before, by row.
    pub file: PathBuf,
    /// Writes the file instead of comparing with it.
    pub record: bool,
}

impl<'a> Guard<'a> {
    /// Of these rows, with the options `--record` and `--file FILE`.
    ///
    /// # Errors
    /// Another option, or one without its value.
    pub fn of(mut self, args: &[&str]) -> Result<Self, Failure> {
        let mut args = args.iter();
        while let Some(name) = args.next() {
            match *name {
                "--record" => self.record = true,
                "--file" => self.file = args.next().ok_or("--file needs a value")?.into(),
                other => return Err(format!("unknown option {other} of `guard`").into()),
            }
        }
        Ok(self)
    }
}

/// A row as it was recorded and as it is.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Change {
    row: &'static str,
    recorded: f64,
    counted: f64,
}

impl Change {
    /// In percent of what was recorded, negative where it fell.
    fn percent(self) -> f64 {
        (self.counted / self.recorded - 1.0) * 100.0
    }

    fn grew(self) -> bool {
        self.percent() > TOLERATED
    }

    fn fell(self) -> bool {
        self.percent() < -TOLERATED
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { row, recorded, counted } = self;
        write!(f, "{row} (recorded {recorded:.1}, counted {counted:.1}, {:+.1} %)", self.percent())
    }
}

/// Counts, and compares or records.
///
/// # Errors
/// When a row grew by more than 5 %, when valgrind is missing, or when the file
/// is not one of these rows.
pub fn run(guard: &Guard<'_>, count: Count<'_>) -> Result<(), Failure> {
    let made = Made::now(callgrind::version()?);
    match guard.record {
        true => record(guard, made, count),
        false => compare(guard, &made, count),
    }
}

/// Whether the file of a guard has a figure for each of its rows.
///
/// # Errors
/// What is wrong with it.
pub fn check(guard: &Guard<'_>) -> Result<(), Failure> {
    Recorded::read(guard).map(drop)
}

/// Counts the instructions per message of a row.
pub type Count<'a> = &'a (dyn Fn(&'static str) -> Result<f64, Failure> + Sync);

fn record(guard: &Guard<'_>, made: Made, count: Count<'_>) -> Result<(), Failure> {
    let figures = counted(&guard.rows, count)?;
    figures.iter().for_each(|(row, counted)| println!("{row:<14} {counted:>10.1}"));
    Recorded { made, figures }.write(guard)?;
    println!("recorded in {}", guard.file.display());
    Ok(())
}

fn compare(guard: &Guard<'_>, made: &Made, count: Count<'_>) -> Result<(), Failure> {
    let recorded = Recorded::read(guard)?;
    if recorded.made.architecture != made.architecture {
        let (then, now) = (&recorded.made.architecture, &made.architecture);
        println!(
            "not compared: recorded on {then}, this is {now}, and neither says anything of the other"
        );
        return Ok(());
    }
    recorded.made.differences(made).iter().for_each(|line| println!("note: {line}"));
    let counted = counted(&guard.rows, count)?;
    let changes: Vec<_> =
        guard.rows.iter().map(|row| change(row, &recorded.figures, &counted)).collect();
    println!(
        "instructions per message\n\n{:<14} {:>10} {:>10}  change",
        "row", "recorded", "counted"
    );
    changes.iter().for_each(|change| println!("{}", line(*change)));
    judge(&changes, guard.program)
}

/// Both have every row by now.
fn change(row: &'static str, recorded: &Figures, counted: &Figures) -> Change {
    Change { row, recorded: recorded[row], counted: counted[row] }
}

fn line(change: Change) -> String {
    let verdict = match change {
        change if change.grew() => "GREW",
        change if change.fell() => "fell",
        _ => "",
    };
    let Change { row, recorded, counted } = change;
    let text = format!(
        "{row:<14} {recorded:>10.1} {counted:>10.1} {:>+7.1} %  {verdict}",
        change.percent()
    );
    text.trim_end().to_owned()
}

fn judge(changes: &[Change], program: &str) -> Result<(), Failure> {
    let those = |which: fn(Change) -> bool| {
        let rows: Vec<_> =
            changes.iter().filter(|row| which(**row)).map(Change::to_string).collect();
        rows.join(", ")
    };
    let (grew, fell) = (those(Change::grew), those(Change::fell));
    if !fell.is_empty() {
        println!(
            "\nfell by more than {TOLERATED} %: {fell}; record it with `{program} guard --record`"
        );
    }
    if grew.is_empty() {
        return Ok(());
    }
    let next = format!(
        "find out why; where it is meant, `{program} guard --record`, in a commit that says why"
    );
    Err(format!("grew by more than {TOLERATED} %: {grew}; {next}").into())
}

/// What all rows take, several at once: counts don't depend on what else runs.
fn counted(rows: &[&'static str], count: Count<'_>) -> Result<Figures, Failure> {
    let (next, counted) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = thread::available_parallelism().map_or(1, usize::from).min(rows.len());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let count = count(row);
                    let mut counted =
                        counted.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    counted.push((*row, count));
                }
            });
        }
    });
    let counted = counted.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    counted
        .into_iter()
        .map(|(row, count)| match count {
            Ok(count) => Ok((row.to_owned(), count)),
            Err(error) => Err(format!("{row}: {error}").into()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(row: &'static str, recorded: f64, counted: f64) -> Change {
        Change { row, recorded, counted }
    }

    #[test]
    fn growth_beyond_the_tolerated_fails_with_row_figures_and_percent() {
        let changes = [changed("A4", 200.0, 211.0), changed("D1", 900.0, 900.0)];
        let told = judge(&changes, "pools").unwrap_err().to_string();
        assert!(told.contains("A4 (recorded 200.0, counted 211.0, +5.5 %)"), "{told}");
        assert!(!told.contains("D1"), "{told}");
    }

    #[test]
    fn what_is_tolerated_passes_on_either_side() {
        let verdicts = |counted| {
            let change = changed("A4", 1_000.0, counted);
            (change.grew(), change.fell())
        };
        assert_eq!(verdicts(1_049.0), (false, false));
        assert_eq!(verdicts(1_051.0), (true, false));
        assert_eq!(verdicts(951.0), (false, false));
        assert_eq!(verdicts(949.0), (false, true));
    }

    #[test]
    fn a_row_that_fell_is_marked_but_passes() {
        let fell = changed("A4", 200.0, 150.0);
        assert!(judge(&[fell], "pools").is_ok());
        assert!(line(fell).ends_with("-25.0 %  fell"), "{}", line(fell));
    }

    #[test]
    fn one_that_fell_does_not_make_up_for_one_that_grew() {
        assert!(
            judge(&[changed("A4", 200.0, 100.0), changed("D1", 900.0, 990.0)], "pools").is_err()
        );
    }

    #[test]
    fn the_guard_compares_unless_it_is_to_record() {
        let of = |args: &[&str]| {
            let guard = Guard {
                program: "pools",
                about: "",
                rows: vec!["A4"],
                file: "old.json".into(),
                record: false,
            };
            guard.of(args).map(|guard| (guard.record, guard.file))
        };
        assert_eq!(of(&[]).unwrap(), (false, "old.json".into()));
        assert_eq!(of(&["--record", "--file", "new.json"]).unwrap(), (true, "new.json".into()));
        assert!(of(&["--file"]).is_err());
        assert!(of(&["--only"]).is_err());
    }
}
