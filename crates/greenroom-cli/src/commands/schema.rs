//! `greenroom schema`: the options, for editors and for people.

use std::process::ExitCode;

use crate::{config, exit};

/// Prints the JSON Schema, or the reference page.
pub fn print(reference: bool) -> ExitCode {
    if reference {
        return exit::answer(&config::reference());
    }
    exit::answer(&format!("{:#}\n", config::json_schema()))
}
