//! A configuration as text: YAML and TOML, with every problem and its line.
//!
//! ```text
//! YAML ─┐
//!       ├─▶ keys and what is written, each with its line ─▶ settings ─▶ checks
//! TOML ─┘
//! ```

use saphyr_parser::{Event, Parser, Span};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    config::{EventPoolConfig, Key},
    config_error::{ConfigError, ConfigErrors, ConfigProblem},
};

/// A key, and what is written behind it.
struct Entry {
    key: String,
    value: String,
    line: usize,
}

impl EventPoolConfig {
    /// The settings that a YAML text makes: a mapping from keys to values. What it leaves out is as in
    /// [`default`](Self::default), or as its `preset` says, wherever that stands. With the feature `config`.
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
        read(yaml(text))
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
        read(toml(text))
    }
}

fn read(entries: Result<Vec<Entry>, ConfigError>) -> Result<EventPoolConfig, ConfigErrors> {
    let mut errors = Vec::new();
    let entries = entries.unwrap_or_else(|error| {
        errors.push(error);
        Vec::new()
    });
    let mut given: Vec<(Key, &Entry)> = Vec::new();
    for entry in &entries {
        match known(entry, &given) {
            Ok(key) => given.push((key, entry)),
            Err(error) => errors.push(error),
        }
    }
    given.sort_by_key(|(key, _)| *key != Key::Preset);
    let (mut config, mut lines) = (EventPoolConfig::default(), Vec::new());
    for (key, entry) in given {
        lines.push((key, entry.line));
        errors.extend(config.set_key(key, &entry.value).map_err(|error| at(error, entry)).err());
    }
    if errors.is_empty() {
        errors.extend(config.check().err().iter().flatten().cloned());
        errors.iter_mut().for_each(|error| error.line = line_of(error, &lines));
    }
    ConfigErrors::of(errors).map(|()| config)
}

fn known(entry: &Entry, given: &[(Key, &Entry)]) -> Result<Key, ConfigError> {
    let key = Key::named(&entry.key).map_err(|error| at(error, entry))?;
    match given.iter().find(|(before, _)| *before == key) {
        None => Ok(key),
        Some((_, first)) => {
            let twice = ConfigProblem::Twice { first: Some(first.line) };
            Err(at(ConfigError::new(&entry.key, twice), entry))
        }
    }
}

/// The error says the key as it is written.
fn at(error: ConfigError, entry: &Entry) -> ConfigError {
    ConfigError { key: entry.key.clone(), line: Some(entry.line), ..error }
}

/// Where the key of an error was given, or else a preset, which gives what is not given by itself.
fn line_of(error: &ConfigError, lines: &[(Key, usize)]) -> Option<usize> {
    let of = |key: Key| lines.iter().find(|(given, _)| *given == key).map(|(_, line)| *line);
    Key::named(&error.key)
        .ok()
        .and_then(of)
        .or_else(|| of(Key::PoolSize))
        .or_else(|| of(Key::Preset))
}

fn unreadable(what: &str, line: usize, reason: &str) -> ConfigError {
    let reason = format!("this is not valid {what}: {}", reason.replace('\n', "; "));
    let error = ConfigError::new("", ConfigProblem::Unreadable { reason });
    ConfigError { line: Some(line), ..error }
}

fn yaml(text: &str) -> Result<Vec<Entry>, ConfigError> {
    let mut reader = Yaml(Parser::new_from_str(text));
    let mut entries = Vec::new();
    loop {
        match reader.next()? {
            (Event::StreamEnd, _) => return Ok(entries),
            (Event::MappingStart(..), _) => break,
            // An empty document is one that leaves everything out.
            (Event::Scalar(text, ..), _) if matches!(&*text, "" | "~" | "null") => {}
            (Event::Scalar(..) | Event::SequenceStart(..) | Event::Alias(_), span) => {
                return Err(unreadable("YAML", line(span), "a configuration is a mapping"));
            }
            _ => {}
        }
    }
    loop {
        match reader.next()? {
            (Event::Scalar(key, ..), span) => {
                let value = reader.value()?;
                entries.push(Entry { key: key.into_owned(), value, line: line(span) });
            }
            (Event::MappingEnd, _) => return Ok(entries),
            (_, span) => return Err(unreadable("YAML", line(span), "a key has to be text")),
        }
    }
}

struct Yaml<'a>(Parser<'a, saphyr_parser::StrInput<'a>>);

impl<'a> Yaml<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), ConfigError> {
        match self.0.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(unreadable("YAML", error.marker().line(), error.info())),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    /// What stands behind a key. What is no plain value is read over.
    fn value(&mut self) -> Result<String, ConfigError> {
        let (mut depth, mut what) = (0, None);
        loop {
            let (event, _) = self.next()?;
            let (step, is) = match event {
                Event::Scalar(text, ..) => (0, text.into_owned()),
                Event::SequenceStart(..) => (1, "a list".to_owned()),
                Event::MappingStart(..) => (1, "a mapping".to_owned()),
                Event::SequenceEnd | Event::MappingEnd => (-1, String::new()),
                _ => (0, "a reference".to_owned()),
            };
            depth += step;
            let what = &*what.get_or_insert(is);
            if depth <= 0 {
                return Ok(what.clone());
            }
        }
    }
}

fn line(span: Span) -> usize {
    span.start.line().max(1)
}

fn toml(text: &str) -> Result<Vec<Entry>, ConfigError> {
    let line = |at: usize| text.get(..at).unwrap_or_default().matches('\n').count() + 1;
    let (table, errors) = DeTable::parse_recoverable(text);
    if let Some(error) = errors.first() {
        let at = error.span().map_or(0, |span| span.start);
        return Err(unreadable("TOML", line(at), error.message()));
    }
    let entries = table.get_ref().iter().map(|(key, value)| Entry {
        key: key.get_ref().to_string(),
        value: written(text, value),
        line: line(key.span().start),
    });
    let mut entries: Vec<_> = entries.collect();
    // The table is sorted by name.
    entries.sort_by_key(|entry| entry.line);
    Ok(entries)
}

fn written(text: &str, value: &Spanned<DeValue<'_>>) -> String {
    match value.get_ref() {
        DeValue::String(text) => text.to_string(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a mapping".to_owned(),
        _ => text.get(value.span()).unwrap_or_default().to_owned(),
    }
}
