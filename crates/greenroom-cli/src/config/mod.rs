//! The configuration file: from text to typed structs, with every problem found in one run.
//!
//! ```text
//! YAML or TOML ─▶ tree with places ─▶ --set ─▶ ${NAME}, file: ─▶ table of options ─▶ structs ─▶ checks
//! ```

mod build;
mod check;
mod effect;
mod flow;
mod layers;
mod options;
mod pattern;
mod reach;
#[cfg(test)]
mod tests;
mod types;

use std::{collections::HashMap, env, fs, io::Read, path::Path};

pub(crate) use greenroom_config::units::{duration, rate};
use greenroom_config::{
    decode,
    interpolate::{self, World},
    overrides, toml,
    tree::Node,
    yaml,
};
pub use greenroom_config::{
    problem::{Problem, Problems, Severity, plural},
    tree::{Place, Span},
    units::{DurationRange, Rate},
};

use self::build::Builder;
pub(crate) use self::reach::identity;
pub use self::{
    layers::{Breaker, LayerConfig, Schema},
    types::{
        AdminConfig, Config, ExecConfig, GeneratorConfig, HandlerConfig, HandlerKind, HttpConfig,
        HttpMode, InputConfig, InputKind, LoopbackConfig, NoHandler, OnFinalFailure, OnFull,
        OutageConfig, OutputConfig, PoolConfig, Retry,
    },
};

/// The schema of the configuration file.
pub fn json_schema() -> serde_json::Value {
    greenroom_config::json_schema::json_schema("Greenroom configuration", &options::ROOT)
}

/// The page `docs/configuration.md`.
pub fn reference() -> String {
    greenroom_config::reference::reference(INTRODUCTION, &options::ROOT)
}

const INTRODUCTION: &str = "\
# Configuration

<!-- Written by `greenroom schema --reference` from the table of options; a test keeps it current. -->

YAML, or TOML with the same names when the file ends in `.toml`. Every name may be written in camel case too.
`greenroom check FILE` finds all problems at once; `greenroom schema` prints a JSON Schema for editors.

- Durations: `200ms`, `5s`, `1m`, `1h`. Ranges: `200ms..30s`. Sizes: `64KiB`, `1MiB`, or bytes. Rates: `20/s`,
  `100/min`. Counts may be grouped: `1_000_000`.
- `${NAME}` and `${NAME:-default}` in a value are replaced from the environment; `$${` is a plain `${`.
- A value `file:PATH` is replaced by the content of that file, without the newline at its end. Values that come
  from the environment or a file never appear in messages.
- `--set a.b=value` sets a single value; it is read as YAML.

";

/// A configuration is written by hand; a larger file is a mistake.
const MAX_FILE: u64 = 16 << 20;

/// Loads a file, applies the settings of the command line (`a.b=value`), and checks everything, the files and
/// programs that it names included. Relative paths are resolved against the directory of the file.
///
/// Returns the configuration, unless there were errors, and all problems; warnings may stand beside a configuration.
pub fn load(file: &Path, settings: &[String]) -> (Option<Config>, Problems) {
    let text = match read(file) {
        Ok(text) => text,
        Err(unread) => {
            let mut problems = Problems::new(file.display().to_string(), &unread.text);
            problems.push(unread.problem);
            return (None, problems);
        }
    };
    let lookup = |name: &str| env::var(name).ok();
    let directory = file.parent().unwrap_or(Path::new(""));
    let world = World { env: &lookup, directory };
    let mut problems = Problems::new(file.display().to_string(), &text);
    let config = Source { file, text: &text, settings, world: &world }.config(&mut problems);
    (config.filter(|_| problems.errors() == 0), problems)
}

/// Why there is no text, and what of it can be shown.
struct Unread {
    problem: Problem,
    text: String,
}

fn read(file: &Path) -> Result<String, Unread> {
    let unread = |why: String| Unread {
        problem: Problem::error(
            format!("cannot read the configuration: {why}"),
            Place::whole_file(),
        )
        .help("`greenroom init` writes one to start from"),
        text: String::new(),
    };
    let found = fs::metadata(file).map_err(|error| unread(error.to_string()))?;
    if found.is_dir() {
        return Err(unread("it is a directory".to_owned()));
    }
    let mut bytes = Vec::new();
    let opened = fs::File::open(file).map_err(|error| unread(error.to_string()))?;
    let read = opened.take(MAX_FILE + 1).read_to_end(&mut bytes);
    read.map_err(|error| unread(error.to_string()))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(unread(format!("it holds more than {} MiB", MAX_FILE >> 20)));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        not_text(error.as_bytes(), valid)
    })
}

/// `valid`: how many bytes of it are UTF-8.
fn not_text(bytes: &[u8], valid: usize) -> Unread {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let (what, place) = match bytes {
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => ("this is UTF-16, not UTF-8", Place::whole_file()),
        _ => {
            let before = String::from_utf8_lossy(&bytes[..valid]);
            let line_start = before.rfind('\n').map_or(0, |end| end + 1);
            let column = before[line_start..].chars().count() + 1;
            let line = before.matches('\n').count() + 1;
            ("this is not UTF-8 text", Place::Source(Span { line, column, width: 1 }))
        }
    };
    Unread { problem: Problem::error(what, place).help("save the file as UTF-8"), text }
}

/// All that a configuration is made from.
struct Source<'a> {
    file: &'a Path,
    text: &'a str,
    settings: &'a [String],
    world: &'a World<'a>,
}

impl Source<'_> {
    fn config(&self, problems: &mut Problems) -> Option<Config> {
        let mut root = self.tree(problems)?;
        for setting in self.settings {
            overrides::apply(&mut root, setting, problems);
        }
        interpolate::interpolate(&mut root, self.world, problems);
        let (record, places) = decode::decode(&root, &options::ROOT, problems);
        let directory = self.world.directory;
        let config = Builder { directory, places: &places, problems, breakers: HashMap::new() }
            .config(record)?;
        check::check(&config, &places, problems);
        reach::check(&config, self.file, &places, problems);
        // Both look at the configuration as a whole, of which parts are missing where there were
        // errors.
        if problems.errors() == 0 {
            flow::check(&config, &places, problems);
            effect::check(&config, &places, problems);
        }
        Some(config)
    }

    fn tree(&self, problems: &mut Problems) -> Option<Node> {
        let toml = self.file.extension().is_some_and(|extension| extension == "toml");
        if toml { toml::parse(self.text, problems) } else { yaml::parse(self.text, problems) }
    }
}
