//! Errors in a configuration.

use std::fmt;

/// One thing that is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigError {
    /// The key, as it was written; empty if the text cannot be read at all.
    pub key: String,
    /// The line, from 1, if it comes from a text.
    pub line: Option<usize>,
    /// The problem.
    pub problem: ConfigProblem,
}

/// A problem with a key of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigProblem {
    /// There is no such key.
    Unknown {
        /// The key that may have been meant.
        did_you_mean: Option<&'static str>,
    },
    /// The key does not take this value.
    Wrong {
        /// The value as written.
        value: String,
        /// The allowed values.
        expected: String,
        /// The word that may have been meant, if it is a word.
        did_you_mean: Option<&'static str>,
    },
    /// It was given before, perhaps in another spelling.
    Twice {
        /// The line of its first occurrence.
        first: Option<usize>,
    },
    /// The text cannot be read.
    Unreadable {
        /// Why not.
        reason: String,
    },
}

impl ConfigError {
    pub(super) fn new(key: impl Into<String>, problem: ConfigProblem) -> Self {
        Self { key: key.into(), line: None, problem }
    }

    pub(super) fn wrong(
        key: impl Into<String>,
        value: impl fmt::Display,
        expected: impl Into<String>,
    ) -> Self {
        let (value, expected) = (value.to_string(), expected.into());
        Self::new(key, ConfigProblem::Wrong { value, expected, did_you_mean: None })
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        let key = &self.key;
        match &self.problem {
            ConfigProblem::Unknown { did_you_mean } => {
                write!(f, "there is no key {key}")?;
                meant(f, *did_you_mean)
            }
            ConfigProblem::Wrong { value, expected, did_you_mean } => {
                let value = if value.is_empty() { "empty" } else { value };
                write!(f, "{key} is {value}, but must be {expected}")?;
                meant(f, *did_you_mean)
            }
            ConfigProblem::Twice { first: Some(line) } => {
                write!(f, "{key} is given twice, first on line {line}")
            }
            ConfigProblem::Twice { first: None } => write!(f, "{key} is given twice"),
            ConfigProblem::Unreadable { reason } => f.write_str(reason),
        }
    }
}

fn meant(f: &mut fmt::Formatter<'_>, name: Option<&str>) -> fmt::Result {
    name.map_or(Ok(()), |name| write!(f, "; did you mean {name}?"))
}

impl std::error::Error for ConfigError {}

/// All errors in a configuration, in the order of its text. There is at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(Vec<ConfigError>);

impl ConfigErrors {
    /// `Ok` if there is no error.
    pub(super) fn of(mut errors: Vec<ConfigError>) -> Result<(), Self> {
        errors.sort_by_key(|error| error.line);
        if errors.is_empty() { Ok(()) } else { Err(Self(errors)) }
    }

    /// One after the other.
    pub fn iter(&self) -> std::slice::Iter<'_, ConfigError> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a ConfigErrors {
    type Item = &'a ConfigError;
    type IntoIter = std::slice::Iter<'a, ConfigError>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for ConfigErrors {
    /// One to a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.iter().map(ConfigError::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for ConfigErrors {}
