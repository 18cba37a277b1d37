//! Parses TOML into the tree: the same names as in YAML.

use std::ops::Range;

use toml::{
    Spanned,
    de::{DeInteger, DeTable, DeValue},
};

use crate::{
    problem::{Problem, Problems},
    tree::{Entry, Node, Place, Span, Value},
};

/// A file with more errors than this is no TOML at all: the time to find the place of each grows
/// with the length of the file.
const MOST_ERRORS: usize = 50;

/// Reads the text of a TOML file; an empty one is [blank](Node::is_blank). `None` if it is not
/// TOML; the problems say why.
pub(crate) fn parse(text: &str, problems: &mut Problems) -> Option<Node> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let reader = TomlReader { text };
    if !errors.is_empty() {
        for error in errors.iter().take(MOST_ERRORS) {
            let place = error.span().map_or_else(Place::whole_file, |span| reader.place(span));
            problems.push(Problem::error(
                format!("this is not valid TOML: {}", error.message().replace('\n', "; ")),
                place,
            ));
        }
        return None;
    }
    if table.get_ref().is_empty() {
        return Some(Node::blank());
    }
    Some(Node::new(reader.map(table.get_ref()), Place::whole_file()))
}

struct TomlReader<'a> {
    text: &'a str,
}

impl TomlReader<'_> {
    fn map(&self, table: &DeTable<'_>) -> Value {
        let mut entries: Vec<(usize, Entry)> = table
            .iter()
            .map(|(key, value)| (key.span().start, self.entry(key.get_ref(), key.span(), value)))
            .collect();
        // The table is sorted by name; messages and reports follow the file.
        entries.sort_by_key(|(start, _)| *start);
        Value::Map(entries.into_iter().map(|(_, entry)| entry).collect())
    }

    fn entry(&self, key: &str, span: Range<usize>, value: &Spanned<DeValue<'_>>) -> Entry {
        Entry { key: key.to_owned(), place: self.place(span), node: self.node(value) }
    }

    fn node(&self, value: &Spanned<DeValue<'_>>) -> Node {
        let plain = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(number) => integer(number),
            DeValue::Float(number) => float(number.as_str()),
            DeValue::Boolean(value) => Value::Bool(*value),
            DeValue::Datetime(time) => Value::Text(time.to_string()),
            DeValue::Array(items) => {
                Value::List(items.iter().map(|item| self.node(item)).collect())
            }
            DeValue::Table(table) => self.map(table),
        };
        Node::new(plain, self.place(value.span()))
    }

    fn place(&self, span: Range<usize>) -> Place {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        // A lone carriage return is no TOML, but ends a line where the error is shown.
        let line_start = before.rfind(['\n', '\r']).map_or(0, |at| at + 1);
        let inside = self.text.get(span).unwrap_or_default();
        let width = inside.lines().next().unwrap_or_default().chars().count();
        Place::Source(Span {
            line: before.matches(['\n', '\r']).count() - before.matches("\r\n").count() + 1,
            column: before[line_start..].chars().count() + 1,
            width: width.max(1),
        })
    }
}

fn integer(number: &DeInteger<'_>) -> Value {
    match i128::from_str_radix(number.as_str(), number.radix()) {
        Ok(value) => Value::Int(value),
        Err(_) => float(number.as_str()),
    }
}

fn float(text: &str) -> Value {
    text.parse().map_or_else(|_| Value::Text(text.to_owned()), Value::Float)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_errors_names_the_first_of_them() {
        let text = "%\n".repeat(100_000);
        let mut problems = Problems::new("greenroom.toml", &text);
        assert_eq!((parse(&text, &mut problems), problems.errors()), (None, MOST_ERRORS));
    }
}
