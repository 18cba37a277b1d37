//! Parses YAML into the tree. One document; no anchors, aliases or tags.

use std::borrow::Cow;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, StrInput};

use crate::{
    problem::{Problem, Problems},
    tree::{Entry, Node, Place, Span, Value, plain_scalar},
};

/// Deeper than any configuration needs; bounds the recursion on hostile input.
const MAX_DEPTH: usize = 32;

/// Reads the text of a YAML file; an empty one is [blank](Node::is_blank). `None` if it is not
/// YAML; the problems say why.
pub(crate) fn parse(text: &str, problems: &mut Problems) -> Option<Node> {
    let mut reader = YamlReader { parser: Parser::new_from_str(text), text };
    match reader.document() {
        Ok(node) => Some(node),
        Err(problem) => {
            problems.push(problem);
            None
        }
    }
}

struct YamlReader<'input> {
    parser: Parser<'input, StrInput<'input>>,
    text: &'input str,
}

type Step<'input> = (Event<'input>, saphyr_parser::Span);

impl<'input> YamlReader<'input> {
    fn next(&mut self) -> Result<Step<'input>, Problem> {
        match self.parser.next_event() {
            Some(Ok(step)) => Ok(step),
            Some(Err(error)) => Err(syntax(&error, self.text)),
            None => Ok((Event::StreamEnd, saphyr_parser::Span::default())),
        }
    }

    fn document(&mut self) -> Result<Node, Problem> {
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(Node::blank()),
                (Event::StreamStart | Event::DocumentStart(_), _) => {}
                step => {
                    let node = self.node(step, 0)?;
                    self.end()?;
                    return Ok(node);
                }
            }
        }
    }

    fn end(&mut self) -> Result<(), Problem> {
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(()),
                (Event::DocumentEnd | Event::Nothing, _) => {}
                (_, span) => {
                    return Err(Problem::error("a second document in the file", place(span))
                        .help("keep one document; remove the rest, from `---` on"));
                }
            }
        }
    }

    fn node(&mut self, (event, span): Step<'input>, depth: usize) -> Result<Node, Problem> {
        if depth > MAX_DEPTH {
            return Err(Problem::error("nested too deeply", place(span)));
        }
        let value = match event {
            Event::Scalar(text, style, anchor, tag) => {
                plain(anchor, tag.is_some(), span)?;
                scalar(text, style)
            }
            Event::SequenceStart(anchor, tag) => {
                plain(anchor, tag.is_some(), span)?;
                self.list(depth)?
            }
            Event::MappingStart(anchor, tag) => {
                plain(anchor, tag.is_some(), span)?;
                self.map(depth)?
            }
            _ => return Err(reference(span)),
        };
        Ok(Node::new(value, place(span)))
    }

    fn list(&mut self, depth: usize) -> Result<Value, Problem> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::List(items)),
                step => items.push(self.node(step, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, Problem> {
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let (key, at) = match self.next()? {
                (Event::MappingEnd, _) => return Ok(Value::Map(entries)),
                (Event::Scalar(text, _, anchor, tag), span) => {
                    plain(anchor, tag.is_some(), span)?;
                    (text.into_owned(), place(span))
                }
                (_, span) => return Err(Problem::error("a key has to be text", place(span))),
            };
            let step = self.next()?;
            let node = self.node(step, depth + 1)?;
            entries.push(Entry { key, place: at, node });
        }
    }
}

fn scalar(text: Cow<'_, str>, style: ScalarStyle) -> Value {
    match style {
        ScalarStyle::Plain => plain_scalar(&text),
        _ => Value::Text(text.into_owned()),
    }
}

fn plain(anchor: usize, tagged: bool, span: saphyr_parser::Span) -> Result<(), Problem> {
    match (anchor, tagged) {
        (0, false) => Ok(()),
        (0, true) => Err(Problem::error("tags are not supported", place(span))
            .help("write the value without `!`; quote it if it is text")),
        _ => Err(reference(span)),
    }
}

fn reference(span: saphyr_parser::Span) -> Problem {
    Problem::error("anchors and aliases are not supported", place(span))
        .help("write the value out where it is used, or use `${NAME}`")
}

fn syntax(error: &ScanError, text: &str) -> Problem {
    let at = error.marker();
    let span = Span { line: at.line().max(1), column: at.col() + 1, width: 1 };
    let problem =
        Problem::error(format!("this is not valid YAML: {}", error.info()), Place::Source(span));
    let line = text.lines().nth(span.line - 1).unwrap_or_default();
    if line.contains("${") {
        return problem.help("inside `{ }` and `[ ]`, `${NAME}` needs quotes: `\"${NAME}\"`");
    }
    problem
}

/// Blocks span lines; the stretch shown is the part on the first line.
fn place(span: saphyr_parser::Span) -> Place {
    let width = if span.start.line() == span.end.line() { span.len().max(1) } else { 1 };
    Place::Source(Span { line: span.start.line().max(1), column: span.start.col() + 1, width })
}
