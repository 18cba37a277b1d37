//! From a text to a configuration, if nothing else is needed.

use std::path::Path;

use crate::{decode::decode, options::Options, problem::Problems, toml, tree::Node, yaml};

/// How a configuration is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// YAML 1.2, one document, without anchors and tags.
    Yaml,
    /// TOML 1.0, with the same names.
    Toml,
}

pub use Format::{Toml, Yaml};

impl Format {
    /// The format of a file, by its name: TOML if it ends in `.toml`.
    pub fn of(file: &Path) -> Self {
        if file.extension().is_some_and(|extension| extension == "toml") { Toml } else { Yaml }
    }

    /// Reads a text into a tree. `None`: it cannot be read, and the problems say why.
    pub fn parse(self, text: &str, problems: &mut Problems) -> Option<Node> {
        match self {
            Yaml => yaml::parse(text, problems),
            Toml => toml::parse(text, problems),
        }
    }
}

/// Reads a configuration from a text alone: nothing in it refers to the environment or to a file.
/// An empty text leaves every option out.
///
/// # Errors
/// Every problem, with its line and column.
pub fn read<T: Options>(format: Format, text: &str) -> Result<T, Problems> {
    let mut problems = Problems::new("", text);
    let root = format.parse(text, &mut problems);
    let root = root.or_else(|| (problems.errors() == 0).then(Node::blank));
    let config = root.and_then(|root| decode(&root, Path::new(""), &mut problems).0);
    config.filter(|_| problems.errors() == 0).ok_or(problems)
}
