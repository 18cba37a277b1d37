//! A configuration as text: YAML and TOML, with every problem and its line.
//!
//! ```text
//! YAML, TOML ─▶ keys and what is written, each with its line ─▶ settings ─▶ checks
//! ```

use greenroom_config::{
    Format, Place, Problem, Problems, Toml, Yaml,
    tree::{Entry, Node, Value},
};

use super::{ConfigError, ConfigErrors, ConfigProblem, EventPoolConfig, PRESET, known};

impl EventPoolConfig {
    /// The settings of a YAML text: a mapping from keys to values. A key that is left out is
    /// as in [`default`](Self::default), or as its `preset` says, wherever that stands. With
    /// the feature `config`.
    ///
    /// ```
    /// use greenroom::event_pool::EventPoolConfig;
    ///
    /// let config = EventPoolConfig::from_yaml("inboxSize: 200\npreset: orders")?;
    /// assert_eq!((config.pool_size, config.inbox_size), (256, 200));
    ///
    /// let errors = EventPoolConfig::from_yaml("pool_size: 0\nengin: keyed").unwrap_err();
    /// assert_eq!(errors.to_string(), "\
    /// line 1: pool_size is 0, but must be 1 to 65,536
    /// line 2: there is no key engin; did you mean engine?");
    /// # Ok::<(), greenroom::event_pool::ConfigErrors>(())
    /// ```
    ///
    /// # Errors
    /// Everything that is wrong, in one go.
    pub fn from_yaml(text: &str) -> Result<Self, ConfigErrors> {
        read(Yaml, text)
    }

    /// As [`from_yaml`](Self::from_yaml), of a TOML text.
    ///
    /// ```
    /// # use greenroom::event_pool::EventPoolConfig;
    /// let config = EventPoolConfig::from_toml("pool_size = 64\nengine = 'shared'")?;
    /// assert_eq!(config.pool_size, 64);
    /// # Ok::<(), greenroom::event_pool::ConfigErrors>(())
    /// ```
    ///
    /// # Errors
    /// Everything that is wrong, in one go.
    pub fn from_toml(text: &str) -> Result<Self, ConfigErrors> {
        read(Toml, text)
    }
}

/// A known key, and its place.
#[derive(Debug, Clone, Copy)]
struct Given<'a> {
    name: &'static str,
    entry: &'a Entry,
}

fn read(format: Format, text: &str) -> Result<EventPoolConfig, ConfigErrors> {
    let mut problems = Problems::new("", text);
    let root = format.parse(text, &mut problems);
    let mut errors: Vec<_> = problems.sorted().into_iter().map(unreadable).collect();
    let entries = match &root {
        Some(Node { value: Value::Map(entries), .. }) => entries.as_slice(),
        Some(Node { value: Value::Null, .. }) | None => &[],
        Some(Node { place, .. }) => {
            let mapping = Problem::error("a configuration is a mapping", place.clone());
            errors.push(unreadable(&mapping));
            &[]
        }
    };
    let mut given = Vec::new();
    for entry in entries {
        match known_once(entry, &given) {
            Ok(found) => given.push(found),
            Err(error) => errors.push(at(error, entry)),
        }
    }
    // The other keys override the preset.
    given.sort_by_key(|given| given.name != PRESET.name);
    let mut config = EventPoolConfig::default();
    for Given { name, entry } in &given {
        let set = config.set(name, &written(&entry.node, text));
        errors.extend(set.map_err(|error| at(error, entry)).err());
    }
    if errors.is_empty() {
        errors.extend(config.check().err().iter().flatten().cloned());
        errors.iter_mut().for_each(|error| error.line = line_of(error, &given));
    }
    ConfigErrors::of(errors).map(|()| config)
}

fn known_once<'a>(entry: &'a Entry, given: &[Given<'_>]) -> Result<Given<'a>, ConfigError> {
    let name = known(&entry.key)?.name;
    match given.iter().find(|before| before.name == name) {
        None => Ok(Given { name, entry }),
        Some(before) => {
            let first = line(&before.entry.place);
            Err(ConfigError::new(&entry.key, ConfigProblem::Twice { first }))
        }
    }
}

/// The error says the key as it is written.
fn at(error: ConfigError, entry: &Entry) -> ConfigError {
    ConfigError { key: entry.key.clone(), line: line(&entry.place), ..error }
}

/// The place of the key with the error; or else of a preset, which sets the
/// keys that are not given.
fn line_of(error: &ConfigError, given: &[Given<'_>]) -> Option<usize> {
    let of = |name: &str| given.iter().find(|given| given.name == name);
    let found = of(&error.key).or_else(|| of("pool_size")).or_else(|| of(PRESET.name));
    found.and_then(|found| line(&found.entry.place))
}

fn unreadable(problem: &Problem) -> ConfigError {
    let reason = problem.message.clone();
    let error = ConfigError::new("", ConfigProblem::Unreadable { reason });
    ConfigError { line: line(&problem.place), ..error }
}

fn line(place: &Place) -> Option<usize> {
    match place {
        Place::Source(span) => Some(span.line),
        Place::Set(_) => None,
    }
}

/// The value of a key as text: a number keeps its form.
fn written(node: &Node, text: &str) -> String {
    match &node.value {
        Value::Text(text) => text.clone(),
        Value::Null => String::new(),
        Value::List(_) => "a list".to_owned(),
        Value::Map(_) => "a mapping".to_owned(),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => match &node.place {
            Place::Source(span) => {
                let line = text.lines().nth(span.line - 1).unwrap_or_default();
                line.chars().skip(span.column - 1).take(span.width).collect()
            }
            Place::Set(path) => path.to_string(),
        },
    }
}
