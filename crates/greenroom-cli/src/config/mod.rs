//! The configuration file: its options, each declared once, and the checks across them.
//!
//! ```text
//! YAML or TOML ─▶ tree with places ─▶ --set ─▶ ${NAME}, file: ─▶ options ─▶ checks
//! ```
//!
//! Everything else belongs to [`greenroom_config`].

mod check;
mod effect;
mod flow;
mod json_schema;
mod kinds;
mod lacking;
mod options;
mod pattern;
mod reach;
#[cfg(test)]
mod tests;

use std::{env, path::Path};

pub(crate) use greenroom_config::units::{duration, rate, size};
pub use greenroom_config::{
    CountOr, Kinds, Options, Place, Problem, Problems, Secret, Severity, Span, Word, plural,
    units::Rate,
};
use greenroom_config::{Format, World, apply, decode, directory_of, interpolate, text_of};

pub(crate) use self::json_schema::plain as json;
pub(crate) use self::lacking::lacking;
pub(crate) use self::reach::identity;
pub use self::{
    kinds::{HANDLERS, Handlers, INPUTS, Inputs, LETTERS, Letters, OUTPUTS, Outputs},
    options::*,
};

/// The schema of the configuration file.
pub fn json_schema() -> serde_json::Value {
    json_schema_of::<Config>("Greenroom configuration")
}

/// The schema of a file with these options.
pub(crate) fn json_schema_of<T: Options>(title: &str) -> serde_json::Value {
    json_schema::json_schema::<T>(title)
}

/// The page `docs/configuration.md`.
pub fn reference() -> String {
    greenroom_config::reference::<Config>(INTRODUCTION)
}

const INTRODUCTION: &str = "\
# Configuration

<!-- Written by `greenroom schema --reference` from the declared options; a test keeps it current. -->

This page lists every option of a configuration file. The file is YAML, or TOML with the same names if it ends in `.toml`.
Every name may also be written in camel case. `greenroom check FILE` finds all problems at once; `greenroom schema` prints
a JSON Schema for editors.

- Durations: `200ms`, `5s`, `1m`, `1h`. Ranges: `200ms..30s`. Sizes: `64KiB`, `1MiB`, or bytes. Rates: `20/s`,
  `100/min`. Counts may be grouped: `1_000_000`.
- `${NAME}` and `${NAME:-default}` in a value, and in a default, are replaced from the environment; `$${` is a plain `${`.
- A value `file:PATH` is replaced by the content of that file, without a final newline. Values from the environment or
  a file never appear in messages.
- `--set a.b=value` sets a single value; it is read as YAML.
- **Live** options change at a reload, while greenroom runs (docs/admin.md). A reload also adds and removes inputs and
  outputs. Other options need a restart.

";

/// How to start a configuration.
const START: &str = "`greenroom init` writes one to start from";

/// Loads a file, applies the settings of the command line (`a.b=value`), and checks everything,
/// including the files and programs that it names. Relative paths start at the directory of the
/// file.
///
/// Returns all problems, and the configuration unless there are errors; warnings may come with a
/// configuration.
pub fn load(file: &Path, settings: &[String]) -> (Option<Config>, Problems) {
    load_with(file, settings, true)
}

/// Like [`load`], but looks outside the file only for values that are read from there.
pub(crate) fn load_as_written(file: &Path, settings: &[String]) -> (Option<Config>, Problems) {
    load_with(file, settings, false)
}

fn load_with(file: &Path, settings: &[String], reach: bool) -> (Option<Config>, Problems) {
    let text = match text_of(file) {
        Ok(text) => text,
        Err(unread) => {
            let mut problems = Problems::new(file.display().to_string(), &unread.text);
            let problem = unread.problem;
            problems.push(if problem.help.is_none() { problem.help(START) } else { problem });
            return (None, problems);
        }
    };
    let lookup = |name: &str| env::var(name).ok();
    let directory = directory_of(file);
    let world = World { env: &lookup, directory };
    let mut problems = Problems::new(file.display().to_string(), &text);
    let config =
        ConfigSource { file, text: &text, settings, world: &world, reach }.config(&mut problems);
    (config.filter(|_| problems.errors() == 0), problems)
}

/// The sources of a configuration.
struct ConfigSource<'a> {
    file: &'a Path,
    text: &'a str,
    settings: &'a [String],
    world: &'a World<'a>,
    /// Whether to check that the files and programs that it names exist.
    reach: bool,
}

impl ConfigSource<'_> {
    fn config(&self, problems: &mut Problems) -> Option<Config> {
        let mut root = Format::of(self.file).parse(self.text, problems)?;
        if root.is_blank() {
            let problem = Problem::error("the configuration is empty", Place::whole_file());
            problems.push(problem.help(START));
            return None;
        }
        for setting in self.settings {
            apply(&mut root, setting, problems);
        }
        interpolate(&mut root, self.world, problems);
        let (config, places) = decode::<Config>(&root, self.world.directory, problems);
        let config = config?;
        check::check(&config, &places, problems);
        if self.reach {
            lacking::check(&places, problems);
            reach::check(&config, self.file, &places, self.world.directory, problems);
        }
        // Both check the configuration as a whole, which has gaps after errors.
        if problems.errors() == 0 {
            flow::check(&config, &places, problems);
            effect::check(&config, &places, problems);
        }
        Some(config)
    }
}
