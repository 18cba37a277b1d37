//! The guard of the hot paths: what Greenroom's side takes in instructions per message, beside what is recorded in a file of the
//! repository. A row that grew fails it; one that fell is told, so that it is recorded and the next growth is seen.
//!
//! Time says nothing on a machine that is shared; instructions repeat to less than a hundredth. They say nothing of cache lines
//! that go to and fro, so a row that did not grow may still have become slower.

use std::{
    fmt,
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use crate::{
    Failure,
    instructions::{per_message, valgrind},
    recorded::{Figures, Made, Recorded},
    rounds::Side,
    rows::Row,
};

/// A change beyond this is told, in percent: several times what rows differ from run to run.
const TOLERATED: f64 = 5.0;

pub struct Guard {
    pub rows: Vec<Row>,
    pub file: PathBuf,
    /// Writes the file instead of comparing with it.
    pub record: bool,
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
/// When a row grew by more than 5 %, when valgrind is missing, or when the file is not one of these rows.
pub fn run(guard: &Guard) -> Result<(), Failure> {
    let made = Made::now(valgrind()?);
    match guard.record {
        true => record(guard, made),
        false => compare(guard, &made),
    }
}

fn record(guard: &Guard, made: Made) -> Result<(), Failure> {
    let figures = count(&guard.rows)?;
    figures.iter().for_each(|(row, counted)| println!("{row:<12} {counted:>10.1}"));
    Recorded { made, figures }.write(&guard.file)?;
    println!("recorded in {}", guard.file.display());
    Ok(())
}

fn compare(guard: &Guard, made: &Made) -> Result<(), Failure> {
    let names: Vec<_> = guard.rows.iter().map(|row| row.name).collect();
    let recorded = Recorded::read(&guard.file, &names)?;
    if recorded.made.architecture != made.architecture {
        let (then, now) = (&recorded.made.architecture, &made.architecture);
        println!(
            "not compared: recorded on {then}, this is {now}, and neither says anything of the other"
        );
        return Ok(());
    }
    recorded.made.differences(made).iter().for_each(|line| println!("note: {line}"));
    let counted = count(&guard.rows)?;
    let changes: Vec<_> =
        names.iter().map(|row| change(row, &recorded.figures, &counted)).collect();
    println!(
        "instructions per message\n\n{:<12} {:>10} {:>10}  change",
        "row", "recorded", "counted"
    );
    changes.iter().for_each(|change| println!("{}", line(*change)));
    judge(&changes)
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
        "{row:<12} {recorded:>10.1} {counted:>10.1} {:>+7.1} %  {verdict}",
        change.percent()
    );
    text.trim_end().to_owned()
}

fn judge(changes: &[Change]) -> Result<(), Failure> {
    let those = |which: fn(Change) -> bool| {
        let rows: Vec<_> =
            changes.iter().filter(|row| which(**row)).map(Change::to_string).collect();
        rows.join(", ")
    };
    let (grew, fell) = (those(Change::grew), those(Change::fell));
    if !fell.is_empty() {
        println!(
            "\nfell by more than {TOLERATED} %: {fell}; record it with `pools guard --record`"
        );
    }
    if grew.is_empty() {
        return Ok(());
    }
    let next = "find out why; where it is meant, `pools guard --record`, in a commit that says why";
    Err(format!("grew by more than {TOLERATED} %: {grew}; {next}").into())
}

/// What all rows take, several at once: counts don't depend on what else runs.
fn count(rows: &[Row]) -> Result<Figures, Failure> {
    let (next, counted) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = thread::available_parallelism().map_or(1, usize::from).min(rows.len());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let count = per_message(*row, Side::Greenroom);
                    let mut counted =
                        counted.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    counted.push((row.name, count));
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
        let told = judge(&changes).unwrap_err().to_string();
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
        assert!(judge(&[fell]).is_ok());
        assert!(line(fell).ends_with("-25.0 %  fell"), "{}", line(fell));
    }

    #[test]
    fn one_that_fell_does_not_make_up_for_one_that_grew() {
        assert!(judge(&[changed("A4", 200.0, 100.0), changed("D1", 900.0, 990.0)]).is_err());
    }
}
