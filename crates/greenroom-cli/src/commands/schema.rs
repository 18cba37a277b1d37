//! `greenroom schema`: the options, for editors and for people.

use std::process::ExitCode;

use super::test;
use crate::{config, exit};

/// Prints a JSON Schema, or the reference page.
pub fn print(reference: bool, tests: bool) -> ExitCode {
    if reference {
        return exit::answer(&config::reference());
    }
    let schema = if tests { test::json_schema() } else { config::json_schema() };
    exit::answer(&format!("{schema:#}\n"))
}
