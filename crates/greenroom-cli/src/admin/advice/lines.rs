//! Lines of a configuration, as they appear in the file.

use std::fmt::Write;

/// The format of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum ConfigFormat {
    Yaml,
    Toml,
}

/// Options with their values, below one place of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct OptionLines {
    /// The place: `pools`, `erp`.
    under: Vec<String>,
    options: Vec<(&'static str, String)>,
}

impl OptionLines {
    pub(super) fn under<const N: usize>(under: [&str; N]) -> Self {
        Self { under: under.map(str::to_owned).to_vec(), options: Vec::new() }
    }

    pub(super) fn option(mut self, name: &'static str, value: impl ToString) -> Self {
        self.options.push((name, value.to_string()));
        self
    }

    pub(super) fn if_any(self) -> Option<Self> {
        (!self.options.is_empty()).then_some(self)
    }

    /// The lines as text.
    pub(super) fn text(&self, format: ConfigFormat) -> String {
        let mut text = String::new();
        // Writing into a String cannot fail.
        match format {
            ConfigFormat::Yaml => {
                for (depth, name) in self.under.iter().enumerate() {
                    let _ = writeln!(text, "{:1$}{name}:", "", 2 * depth);
                }
                for (name, value) in &self.options {
                    let _ = writeln!(text, "{:1$}{name}: {value}", "", 2 * self.under.len());
                }
            }
            ConfigFormat::Toml => {
                let _ = writeln!(text, "[{}]", self.under.join("."));
                for (name, value) in &self.options {
                    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
                    let quote = if is_number { "" } else { "\"" };
                    let _ = writeln!(text, "{name} = {quote}{value}{quote}");
                }
            }
        }
        text.truncate(text.trim_end().len());
        text
    }
}
