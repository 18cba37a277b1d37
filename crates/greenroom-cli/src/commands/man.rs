//! `greenroom man`: manual pages, generated from the command line that the program parses (C17).

use std::{fs, io, path::Path, process::ExitCode};

use clap::{Command, CommandFactory};
use clap_mangen::{
    Man,
    roff::{Roff, bold, roman},
};

use crate::{
    cli::{Cli, ManArgs},
    exit::{self, Exit},
};

/// The text on a page of a command besides its options: a heading, and a term with its text in each
/// line.
type Section = (&'static str, &'static [(&'static str, &'static str)]);

const EXIT_STATUS: Section = (
    "EXIT STATUS",
    &[
        ("0", "Done. For a run: every event was handled, ignored or stored as a dead letter."),
        ("1", "It could not run. For test: a case failed."),
        ("2", "The command line or the configuration is wrong."),
        ("3", "A run ended with events refused or unsettled; a demo found a defect."),
    ],
);

const ENVIRONMENT: Section = (
    "ENVIRONMENT",
    &[
        ("RUST_LOG", "The least severe log lines shown, unless --log-level is given."),
        (
            "NO_COLOR",
            "If it contains any text, nothing is coloured. Only a terminal gets colours at all.",
        ),
        ("TERM", "If it is `dumb`, nothing is coloured either."),
        ("GREENROOM_ADMIN_TOKEN", "The token that `greenroom why` shows to the admin listener."),
    ],
);

const SEE_ALSO: Section = (
    "SEE ALSO",
    &[
        ("greenroom --help", "the commands; `greenroom COMMAND --help` the options of one"),
        ("greenroom schema --reference", "every key of the configuration file"),
    ],
);

/// Prints one page, or writes all of them.
pub fn man(arguments: &ManArgs) -> ExitCode {
    match (&arguments.dir, &arguments.command) {
        (Some(directory), _) => match write_all(directory) {
            Ok(written) => exit::answer(&written),
            Err(why) => Exit::CouldNotRun.because(why),
        },
        (None, None) => exit::answer(&page(command())),
        (None, Some(name)) => match command().find_subcommand(name) {
            Some(found) => exit::answer(&page(found.clone())),
            None => Exit::BadConfiguration.because(unknown(name)),
        },
    }
}

/// The command line with every name filled in, without the `help` that clap adds.
fn command() -> Command {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    command
}

fn unknown(name: &str) -> String {
    let command = command();
    let names: Vec<_> = command.get_subcommands().map(Command::get_name).collect();
    format!("there is no command `{name}`; there are: {}", names.join(", "))
}

/// Writes every page, and prints their names.
fn write_all(directory: &Path) -> Result<String, String> {
    fs::create_dir_all(directory).map_err(|error| {
        format!("cannot create the directory `{}`: {error}", directory.display())
    })?;
    let command = command();
    let pages = std::iter::once(&command).chain(command.get_subcommands());
    pages.map(|command| write(directory, command)).collect()
}

fn write(directory: &Path, command: &Command) -> Result<String, String> {
    let path = directory.join(file_name(command));
    fs::write(&path, page(command.clone()))
        .map_err(|error| format!("cannot write `{}`: {error}", path.display()))?;
    Ok(format!("wrote {}\n", path.display()))
}

fn file_name(command: &Command) -> String {
    format!("{}.1", command.get_display_name().unwrap_or_else(|| command.get_name()))
}

fn page(command: Command) -> String {
    let mut page = Vec::new();
    // Writing into memory cannot fail.
    let _ = render(command, &mut page);
    String::from_utf8_lossy(&page).into_owned()
}

fn render(command: Command, page: &mut Vec<u8>) -> io::Result<()> {
    let has_commands = command.has_subcommands();
    // An empty date would be left out, and the next field taken for it. A date of the build would
    // make every page differ.
    let man = Man::new(command).date(" ").source(source()).manual("Greenroom");
    man.render_title(page)?;
    man.render_name_section(page)?;
    man.render_synopsis_section(page)?;
    man.render_description_section(page)?;
    man.render_options_section(page)?;
    if has_commands {
        man.render_subcommands_section(page)?;
    }
    [EXIT_STATUS, ENVIRONMENT, SEE_ALSO].iter().try_for_each(|section| extra(section, page))
}

fn source() -> &'static str {
    concat!("greenroom ", env!("CARGO_PKG_VERSION"))
}

fn extra((heading, terms): &Section, page: &mut Vec<u8>) -> io::Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", [*heading]);
    for (term, text) in *terms {
        roff.control("TP", []);
        roff.text([bold(*term)]);
        roff.text([roman(*text)]);
    }
    roff.to_writer(page)
}
