//! `greenroom test FILE`: cases for a configuration, against stand-ins (C23).
//!
//! ```text
//! case ──event──▶ the engine of a run, on virtual time ──▶ handlers, outputs: stand-ins ──▶ compared
//! ```
//!
//! Routing, keys, layers, retries, outputs and dead letters are those of a run. Only the targets
//! are replaced, by the kinds themselves ([`greenroom_bus::stand_in`]): nothing is connected to,
//! started or written, and no wait takes real time.

mod compare;
mod given;
mod load;
mod options;
mod trial;

use std::{
    fmt::Write as _,
    io::{self, Write as _},
    process::ExitCode,
};

use greenroom_bus::printable::printable;

use self::{
    compare::Difference,
    load::LoadedTests,
    options::{CaseOptions, TestFile},
};
use crate::{
    cli::TestArgs,
    config::{self, plural},
    exit::{self, Exit},
    logging::{colour_on_stderr, colour_on_stdout},
};

/// The schema of test files.
pub(super) fn json_schema() -> serde_json::Value {
    config::json_schema_of::<TestFile>("Greenroom tests")
}

/// Runs the cases of a file, and prints those that fail.
pub fn test(arguments: &TestArgs) -> ExitCode {
    let loaded = match load::load(&arguments.file) {
        Ok(loaded) => loaded,
        Err(problems) => {
            // Nothing is left to be told when standard error is gone.
            let _ = io::stderr().write_all(problems.render(colour_on_stderr()).as_bytes());
            return Exit::BadConfiguration.into();
        }
    };
    let paint = colour_on_stdout();
    let mut failed = 0;
    let mut out = String::new();
    for case in &loaded.tests.cases {
        let differences = match trial::run(&loaded.config, &loaded.tests, case) {
            Ok(came) => compare::differences(&case.expect, &came),
            Err(why) => vec![Difference { about: why, expected: Vec::new(), came: Vec::new() }],
        };
        failed += usize::from(!differences.is_empty());
        verdict(&mut out, &loaded, case, &differences, paint);
    }
    let passed = loaded.tests.cases.len() - failed;
    let cases = plural(loaded.tests.cases.len(), "case");
    // Writing into a String cannot fail.
    let _ = writeln!(out, "{cases}: {passed} passed, {failed} failed");
    let printed = exit::answer(&out);
    if failed > 0 { Exit::CouldNotRun.into() } else { printed }
}

fn verdict(
    out: &mut String,
    loaded: &LoadedTests,
    case: &CaseOptions,
    differences: &[Difference],
    paint: bool,
) {
    let name = printable(&case.name);
    let painted = |code: u8, text: &str| match paint {
        true => format!("\x1b[{code}m{text}\x1b[0m"),
        false => text.to_owned(),
    };
    if differences.is_empty() {
        let _ = writeln!(out, "{}    {name}", painted(32, "ok"));
        return;
    }
    let place = loaded.places.at(&format!("cases.{}", case.name)).place;
    let place = loaded.problems.place(&config::Problem::error("", place));
    let _ = writeln!(out, "{}  {name}\n      --> {place}", painted(31, "FAIL"));
    for Difference { about, expected, came } in differences {
        let _ = writeln!(out, "      {}", printable(about));
        let nothing = ["nothing".to_owned()];
        let is_told = !(expected.is_empty() && came.is_empty());
        let lines = |lines: &[String]| match lines {
            [] => nothing.to_vec(),
            lines => lines.to_vec(),
        };
        for line in lines(expected).iter().filter(|_| is_told) {
            let _ = writeln!(out, "        {}", painted(31, &format!("- {}", printable(line))));
        }
        for line in lines(came).iter().filter(|_| is_told) {
            let _ = writeln!(out, "        {}", painted(32, &format!("+ {}", printable(line))));
        }
    }
}
