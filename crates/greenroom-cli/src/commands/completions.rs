//! `greenroom completions SHELL`: a script that completes commands and options (C17).

use std::process::ExitCode;

use clap::{Command, CommandFactory};
use clap_complete::{Generator, generate, shells};

use crate::{
    cli::{Cli, Shell},
    exit,
};

/// Prints the script of a shell.
pub fn print(shell: Shell) -> ExitCode {
    exit::answer(&script(shell))
}

fn script(shell: Shell) -> String {
    match shell {
        Shell::Bash => generated(shells::Bash),
        Shell::Zsh => generated(shells::Zsh),
        Shell::Fish => generated(shells::Fish),
    }
}

fn generated(generator: impl Generator) -> String {
    let mut bytes = Vec::new();
    generate(generator, &mut visible(&Cli::command()), "greenroom", &mut bytes);
    // Made only of our own texts, which are UTF-8.
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The visible parts of a command. `clap_complete` would also offer hidden options.
fn visible(command: &Command) -> Command {
    let options = command.get_arguments().filter(|option| !option.is_hide_set());
    let offered = Command::new(command.get_name().to_owned())
        .about(command.get_about().cloned().unwrap_or_default())
        .allow_missing_positional(command.is_allow_missing_positional_set())
        .args(options.cloned())
        .subcommands(command.get_subcommands().map(visible));
    match command.get_version() {
        Some(version) => offered.version(version.to_owned()),
        None => offered,
    }
}
