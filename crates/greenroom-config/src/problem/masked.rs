//! Lines of a file without possible secrets: stars replace their characters one by one, so that
//! columns stay the same.

use crate::tree::{Node, Place, Value};

/// A stretch of a line that may be a secret.
#[derive(Debug, Clone)]
pub(super) struct SecretSpan {
    line: usize,
    /// From 0, in characters.
    start: usize,
    /// `None`: to the end of the line.
    width: Option<usize>,
    /// Only the credentials, the query and the fragment are secret.
    is_url: bool,
}

impl SecretSpan {
    /// The stretch of a single value that was written in the file.
    pub(super) fn of(node: &Node, is_url: bool) -> Option<Self> {
        let Place::Source(span) = &node.place else { return None };
        // The end of a value on several lines is not known.
        let is_on_one = match &node.value {
            Value::Text(text) => span.width > 1 || text.chars().nth(1).is_none(),
            _ => true,
        };
        let width = is_on_one.then_some(span.width);
        Some(Self { line: span.line, start: span.column.saturating_sub(1), width, is_url })
    }
}

/// The line of this number, without the known secrets.
pub(super) fn masked(line: &str, number: usize, secrets: &[SecretSpan]) -> String {
    let mut shown: Vec<char> = line.chars().collect();
    for secret in secrets.iter().filter(|secret| secret.line == number) {
        let end = secret.width.map_or(shown.len(), |width| secret.start + width).min(shown.len());
        let value = &mut shown[secret.start.min(end)..end];
        // The parsed stretch may extend one blank past the value.
        let length = value.iter().rposition(|c| !c.is_whitespace()).map_or(0, |last| last + 1);
        let value = &mut value[..length];
        match secret.is_url {
            true => mask_url(value),
            false => mask_value(value),
        }
    }
    shown.into_iter().collect()
}

/// Quotes stay, and so does a reference to a secret.
fn mask_value(value: &mut [char]) {
    let inner = match value {
        ['"', .., '"'] | ['\'', .., '\''] => 1..value.len() - 1,
        _ => 0..value.len(),
    };
    let inner = &mut value[inner];
    let text: String = inner.iter().collect();
    let is_variable = text.starts_with("${") && text.ends_with('}') && !text.contains(":-");
    let is_file = text.starts_with("file:") && !text.starts_with("file://");
    if !is_variable && !is_file {
        hide(inner);
    }
}

/// Scheme, host and path stay.
fn mask_url(value: &mut [char]) {
    let text: String = value.iter().collect();
    let Some(scheme) = text.find("://") else { return mask_value(value) };
    // A scheme is ASCII, or it is none: it has as many characters as bytes.
    let start = scheme + 3;
    if !text.is_char_boundary(start) || !text[..start].is_ascii() {
        return hide(value);
    }
    let rest = &mut value[start..];
    let path = rest.iter().position(|c| matches!(c, '/' | '?' | '#')).unwrap_or(rest.len());
    if let Some(host) = rest[..path].iter().rposition(|c| *c == '@') {
        hide(&mut rest[..host]);
    }
    if let Some(query) = rest.iter().position(|c| matches!(c, '?' | '#')) {
        let end = rest.len() - usize::from(matches!(rest.last(), Some('"' | '\'')));
        hide(&mut rest[query + 1..end]);
    }
}

fn hide(value: &mut [char]) {
    value.iter_mut().filter(|c| !c.is_whitespace()).for_each(|c| *c = '*');
}

/// A line of a text that could not be parsed: its keys and its punctuation, but no value.
pub(super) fn structure(line: &str) -> String {
    let mut shown: Vec<char> = line.chars().collect();
    let (mut at, mut quote) = (0, None);
    while at < shown.len() {
        let c = shown[at];
        let mut end = at + 1;
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => hide(&mut shown[at..end]),
            None if matches!(c, '"' | '\'') => quote = Some(c),
            None if is_of_word(c) => {
                // In one go: a line may be a single long word.
                end = at + shown[at..].iter().take_while(|c| is_of_word(**c)).count();
                if !is_key(&shown[end..]) {
                    shown[at..end].split_mut(|c| *c == '-').for_each(hide);
                }
            }
            None if " \t{}[],:=#|>&*!".contains(c) => {}
            None => hide(&mut shown[at..end]),
        }
        at = end;
    }
    shown.into_iter().collect()
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Whether the text before this is a key: `key: value`, `key = value`.
fn is_key(rest: &[char]) -> bool {
    matches!(rest, [':'] | [':', ' ' | '\t', ..] | [' ', '=', ' ', ..])
}

#[cfg(test)]
mod tests {
    use super::structure;

    #[test]
    fn c10_of_a_line_that_was_not_understood_keys_and_marks_are_shown() {
        for (line, shown) in [
            ("password: hunter2", "password: *******"),
            ("  auth: { bearer: \"hunter2 }", "  auth: { bearer: \"******* *"),
            ("url: http://u:p@host/?key=k", "url: ****:*****************"),
            ("token = 'a b'", "token = '* *'"),
            ("- &a hunter2 # hunter2", "- &* ******* # *******"),
            ("bad: [", "bad: ["),
            ("", ""),
        ] {
            let found = structure(line);
            assert_eq!(found.chars().count(), line.chars().count(), "{line}");
            assert!(!found.contains("hunter2") && !found.contains("u:p"), "{found}");
            if !line.starts_with("url") {
                assert_eq!(found, shown);
            }
        }
    }
}
