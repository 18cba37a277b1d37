//! The command line.

use std::path::PathBuf;

use crate::{
    Failure,
    rounds::Amount,
    rows::{ROWS, Row},
};

pub const USAGE: &str = "\
usage: compare [--only ROW,..] [--systems NAME,..] [--rounds N] [--messages N] [--json FILE] [--plots FOLDER] [--list]

  Builds greenroom and the systems that it is compared with, as far as their tools are installed, and runs them in turn.

  --only       rows to run, by name (A4) or by workload (A); all unless said otherwise
  --systems    systems to run beside greenroom, by a part of their names; all unless said otherwise
  --rounds     rounds that count, after one repetition that does not; 5 unless said otherwise
  --messages   messages of a repetition, at most; 5000000 unless said otherwise
  --json       writes the raw figures to a file
  --plots      writes a bar chart of each row to a folder, as SVG
  --list       builds and starts all of them, says what they offer, and ends
";

#[derive(Debug)]
pub struct Options {
    pub rows: Vec<&'static Row>,
    /// Parts of names; all systems where there is none.
    pub systems: Vec<String>,
    pub amount: Amount,
    pub json: Option<PathBuf>,
    pub plots: Option<PathBuf>,
    pub list: bool,
}

/// `None` where help is asked for.
pub fn parse(args: &[String]) -> Result<Option<Options>, Failure> {
    let mut options = Options {
        rows: ROWS.iter().collect(),
        systems: Vec::new(),
        amount: Amount { rounds: 5, messages: 5_000_000 },
        json: None,
        plots: None,
        list: false,
    };
    let mut args = args.iter();
    while let Some(name) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{name} needs a value"));
        match name.as_str() {
            "--only" => options.rows = only(value()?)?,
            "--systems" => options.systems = value()?.split(',').map(str::to_lowercase).collect(),
            "--rounds" => options.amount.rounds = usize::try_from(at_least(value()?, 1)?)?,
            "--messages" => options.amount.messages = at_least(value()?, 10_000)?,
            "--json" => options.json = Some(PathBuf::from(value()?)),
            "--plots" => options.plots = Some(PathBuf::from(value()?)),
            "--list" => options.list = true,
            "--help" | "-h" | "help" => return Ok(None),
            other => return Err(format!("unknown option {other}\n{USAGE}").into()),
        }
    }
    Ok(Some(options))
}

fn at_least(text: &str, least: u64) -> Result<u64, Failure> {
    match text.parse() {
        Ok(number) if number >= least => Ok(number),
        _ => Err(format!("{text} must be a whole number from {least} up").into()),
    }
}

/// In the order of the table, each once.
fn only(names: &str) -> Result<Vec<&'static Row>, Failure> {
    let names: Vec<_> = names.split(',').collect();
    if let Some(name) = names.iter().find(|name| !ROWS.iter().any(|row| row.is_called(name))) {
        let all: Vec<_> = ROWS.iter().map(|row| row.name).collect();
        return Err(format!("no row {name}; there are {}", all.join(", ")).into());
    }
    Ok(ROWS.iter().filter(|row| names.iter().any(|name| row.is_called(name))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Options, String> {
        let args: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
        parse(&args).map_err(|error| error.to_string()).map(Option::unwrap)
    }

    #[test]
    fn rows_are_chosen_by_name_or_workload() {
        let rows = |text| {
            let options = parsed(text).unwrap();
            options.rows.iter().map(|row| row.name).collect::<Vec<_>>()
        };
        assert_eq!(rows("--only D,A4"), ["A4", "D1", "D64"]);
        assert_eq!(rows("").len(), 14);
        let error = parsed("--only A5").unwrap_err();
        assert!(error.starts_with("no row A5; there are A4, "), "{error}");
    }

    #[test]
    fn what_makes_no_sense_is_an_error() {
        assert_eq!(parsed("--rounds").unwrap_err(), "--rounds needs a value");
        assert_eq!(parsed("--rounds 0").unwrap_err(), "0 must be a whole number from 1 up");
        assert!(parsed("--fast").unwrap_err().starts_with("unknown option --fast"));
    }
}
