//! Problems of a configuration, collected in one run and shown the way rustc does.

mod masked;

use std::fmt::{self, Write};

use self::masked::{SecretSpan, masked, structure};
use crate::tree::{Node, Place, Span};

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The configuration cannot be run.
    Error,
    /// The configuration can be run, but probably not as intended.
    Warning,
}

/// One problem: its message, its place and the next step.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// The problem in words.
    pub message: String,
    /// Where.
    pub place: Place,
    /// How to fix it.
    pub help: Option<String>,
}

impl Problem {
    /// A problem that keeps the configuration from being run.
    pub fn error(message: impl Into<String>, place: Place) -> Self {
        Self { severity: Severity::Error, message: message.into(), place, help: None }
    }

    /// A problem that does not keep it from being run.
    pub fn warning(message: impl Into<String>, place: Place) -> Self {
        Self { severity: Severity::Warning, ..Self::error(message, place) }
    }

    /// Adds how to fix it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// All problems of one configuration, with everything needed to show them.
#[derive(Debug, Clone, Default)]
pub struct Problems {
    list: Vec<Problem>,
    file: String,
    lines: Vec<String>,
    /// The places of values that may be secrets. `None`: the text could not be parsed, so all of it
    /// may be.
    secrets: Option<Vec<SecretSpan>>,
}

impl Problems {
    /// No problems yet, in a file of this name and text.
    pub fn new(file: impl Into<String>, text: &str) -> Self {
        Self {
            list: Vec::new(),
            file: file.into(),
            lines: lines_of(text).map(str::to_owned).collect(),
            secrets: None,
        }
    }

    /// From now on, excerpts show all text that is not [hidden](Self::hide).
    pub(crate) fn understood(&mut self) {
        self.secrets.get_or_insert_default();
    }

    /// No excerpt shows this value; for a URL, neither its credentials nor its query.
    pub(crate) fn hide(&mut self, node: &Node, is_url: bool) {
        self.secrets.get_or_insert_default().extend(SecretSpan::of(node, is_url));
    }

    /// A line of the file as an excerpt shows it.
    fn shown(&self, number: usize, line: &str) -> String {
        match &self.secrets {
            Some(secrets) => masked(line, number, secrets),
            None => structure(line),
        }
    }

    /// Adds one.
    pub fn push(&mut self, problem: Problem) {
        self.list.push(problem);
    }

    /// The problems, in the order of the file; those of `--set` last.
    pub fn sorted(&self) -> Vec<&Problem> {
        let mut list: Vec<_> = self.list.iter().collect();
        list.sort_by(|a, b| (&a.place, a.severity).cmp(&(&b.place, b.severity)));
        list
    }

    /// The file that they are in.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Where a problem is, for example `orders.yaml:3:13`.
    pub fn place(&self, problem: &Problem) -> String {
        match &problem.place {
            Place::Set(path) => format!("--set {}", shortened(path)),
            Place::Source(span) => {
                format!("{}:{}:{}", printable(&self.file), span.line, span.column)
            }
        }
    }

    /// The number of errors.
    pub fn errors(&self) -> usize {
        self.list.iter().filter(|problem| problem.severity == Severity::Error).count()
    }

    /// The number of warnings.
    pub fn warnings(&self) -> usize {
        self.list.len() - self.errors()
    }

    /// All problems and a summary as text, with colour codes if `colour`. Empty when there are
    /// none.
    pub fn render(&self, colour: bool) -> String {
        if self.list.is_empty() {
            return String::new();
        }
        let paint = Paint { colour };
        let mut out = String::new();
        for problem in self.sorted() {
            self.render_one(problem, &paint, &mut out);
        }
        out.push_str(&self.summary());
        out.push('\n');
        out
    }

    /// For example `2 errors, 1 warning`.
    pub fn summary(&self) -> String {
        let parts = [(self.errors(), "error"), (self.warnings(), "warning")];
        let parts: Vec<_> = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(n, word)| plural(*n, word))
            .collect();
        if parts.is_empty() { "no problems".to_owned() } else { parts.join(", ") }
    }

    fn render_one(&self, problem: &Problem, paint: &Paint, out: &mut String) {
        let (word, code) = match problem.severity {
            Severity::Error => ("error", RED),
            Severity::Warning => ("warning", YELLOW),
        };
        // Writing into a String cannot fail.
        let _ = writeln!(
            out,
            "{}: {}",
            paint.with(code, word),
            paint.with(BOLD, &shortened(&problem.message))
        );
        let _ = writeln!(out, " {} {}", paint.with(BLUE, "-->"), self.place(problem));
        if let Place::Source(span) = &problem.place
            && let Some(line) = self.lines.get(span.line - 1).filter(|_| span.width > 0)
        {
            let excerpt = Excerpt::of(&self.shown(span.line, line), *span);
            let caret = underline(&excerpt.line, excerpt.column, excerpt.width);
            snippet(span.line, &excerpt.line, &paint.with(code, &caret), paint, out);
        }
        if let Some(help) = &problem.help {
            let _ = writeln!(out, "  {} help: {}", paint.with(BLUE, "="), shortened(help));
        }
        out.push('\n');
    }
}

impl fmt::Display for Problems {
    /// Like [`render`](Self::render), without colours.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Problems {}

/// The lines of a file. As in YAML, a lone carriage return also ends a line.
fn lines_of(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('\r'))
}

fn snippet(number: usize, line: &str, caret: &str, paint: &Paint, out: &mut String) {
    let number = number.to_string();
    let gutter = " ".repeat(number.len());
    let bar = paint.with(BLUE, "|");
    let number = paint.with(BLUE, &number);
    let _ = writeln!(out, "{gutter} {bar}\n{number} {bar} {}", printable(line.trim_end()));
    let _ = writeln!(out, "{gutter} {bar} {caret}");
}

/// The part of a line that is shown: for a long line, the text around the place.
struct Excerpt {
    line: String,
    column: usize,
    width: usize,
}

/// The longest line that is shown whole, and the length shown of a longer one, in characters.
const LONGEST_LINE: usize = 160;
const BEFORE: usize = 40;
const SHOWN: usize = 100;

impl Excerpt {
    fn of(line: &str, Span { column, width, .. }: Span) -> Self {
        let line = line.trim_end();
        if line.chars().nth(LONGEST_LINE).is_none() {
            return Self { line: line.to_owned(), column, width };
        }
        let start = (column - 1).saturating_sub(BEFORE);
        let mut shown: String = line.chars().skip(start).take(SHOWN).collect();
        let mut column = column - start;
        let width = width.min((SHOWN + 1).saturating_sub(column));
        if line.chars().nth(start + SHOWN).is_some() {
            shown.push('…');
        }
        if start > 0 {
            shown.insert(0, '…');
            column += 1;
        }
        Self { line: shown, column, width }
    }
}

/// The most characters in a message, which may quote text of any length.
const LONGEST_MESSAGE: usize = 600;

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_MESSAGE) {
        Some((end, _)) => printable(&text[..end]) + "…",
        None => printable(text),
    }
}

/// The content of a file must not control the terminal. Tabs stay, one character for one.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect()
}

/// Tabs before the caret stay tabs, so that it appears under its character.
fn underline(line: &str, column: usize, width: usize) -> String {
    let indent = line.chars().chain(std::iter::repeat(' ')).take(column - 1);
    let indent: String = indent.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    let room = line.trim_end().chars().count().saturating_sub(column - 1).max(1);
    indent + &"^".repeat(width.clamp(1, room))
}

/// `1 input`, `2 inputs`, `1,234,567 inputs`.
pub fn plural(count: usize, word: &str) -> String {
    format!("{} {word}{}", grouped(count as u64), if count == 1 { "" } else { "s" })
}

/// `1234567` as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

const RED: &str = "1;31";
const YELLOW: &str = "1;33";
const BLUE: &str = "1;34";
const BOLD: &str = "1";

struct Paint {
    colour: bool,
}

impl Paint {
    fn with(&self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_place_is_found_behind_a_lone_carriage_return() {
        let mut problems = Problems::new("a.yaml", "# one\r# two\r\n\r\nbad: [\n");
        let span = Span { line: 4, column: 1, width: 3 };
        problems.push(Problem::error("wrong", Place::Source(span)));
        assert!(problems.render(false).contains("4 | bad: ["), "{problems}");
    }

    #[test]
    fn neither_a_setting_nor_the_name_of_a_file_steers_the_terminal() {
        let mut problems = Problems::new("\u{1b}[2J.yaml", "");
        problems.push(Problem::error("wrong", Place::whole_file()));
        problems.push(Problem::error("wrong", Place::Set("a\u{1b}[2Jb".into())));
        assert!(!problems.render(false).contains('\u{1b}'), "{:?}", problems.render(false));
    }
}
