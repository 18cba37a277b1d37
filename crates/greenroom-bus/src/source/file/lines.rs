//! From chunks to items: lines are numbered and parsed, on the reading thread, or on others as
//! well while the engine waits for it.

use std::sync::{Arc, mpsc};

use tokio::sync::oneshot;

use super::{
    blank, chunks::Chunk, demand::Demand, form::Form, marks::Mark, parsers, skip::Skip,
    too_long::TooLong,
};
use crate::{
    event::Event,
    source::{Malformed, Taken},
};

/// At most this many items per batch, so that a chunk of short lines does not become one huge
/// batch.
const ITEMS_PER_BATCH: usize = 4_096;
/// The line feed is not part of a line; the carriage return of a foreign one is not, either.
const CARRIAGE_RETURN: u8 = b'\r';

/// A message from the thread.
pub(super) enum ReadBatch {
    /// Events and lines that are none, in order. Empty for a chunk of blank lines: giving it shows
    /// whether anybody still wants more.
    Items(Items),
    /// The same, which another thread is about to make.
    Promised(oneshot::Receiver<Items>),
    /// The input has been read to its end.
    End,
    /// The input cannot be read any further.
    Failed {
        /// Why.
        reason: String,
        /// The number of the line at hand, which was not taken.
        line: u64,
        /// Its offset in the decompressed input.
        at: u64,
        /// It would be of no use to restore it.
        is_whole: bool,
    },
}

/// Items in order.
pub(super) struct Items {
    pub(super) items: Vec<Taken>,
    /// A place at or before the first of them from which to read on later; none in the later
    /// batches of a chunk.
    pub(super) mark: Option<Mark>,
    /// Dropped once they have been taken: the reading thread waits for that.
    pub(super) _awaited: Option<mpsc::Sender<()>>,
}

pub(super) struct Lines {
    parser: Arc<Parser>,
    /// The number of the last line, blank ones included.
    line: u64,
    demand: Demand,
    /// The reader takes a step at a time: it waits for nothing, and no other thread parses.
    is_stepwise: bool,
}

/// Makes items of lines, on any thread.
struct Parser {
    form: Form,
    /// Lines that were done in an earlier run.
    skip: Option<Skip>,
}

impl Lines {
    pub(super) fn new(form: Form) -> Self {
        Self::behind(0, Parser { form, skip: None })
    }

    /// Continues from this line, and skips the settled ones.
    pub(super) fn going_on(form: Form, from: Mark, skip: Skip) -> Self {
        Self::behind(from.line - 1, Parser { form, skip: Some(skip) })
    }

    fn behind(line: u64, parser: Parser) -> Self {
        Self { parser: Arc::new(parser), line, demand: Demand::default(), is_stepwise: false }
    }

    /// For a reader that takes a step at a time, and waits for none.
    pub(super) fn stepwise(self) -> Self {
        Self { is_stepwise: true, ..self }
    }

    /// The number of the last line, blank ones included.
    pub(super) fn last(&self) -> u64 {
        self.line
    }

    /// Shows whether the engine waits.
    pub(super) fn demand(&self) -> Demand {
        self.demand.clone()
    }

    /// Gives the lines of a chunk, in batches. False if no more is wanted.
    pub(super) fn parse(&mut self, chunk: Chunk, mut give: impl FnMut(ReadBatch) -> bool) -> bool {
        match chunk {
            Chunk::Lines { bytes, at } => self.parse_lines(bytes, at, give),
            Chunk::TooLong(too_long) => self.give_alone(too_long, give),
            Chunk::End => give(ReadBatch::End),
            Chunk::Failed { reason, at, is_whole } => {
                give(ReadBatch::Failed { reason, line: self.line + 1, at, is_whole })
            }
        }
    }

    /// Waits until it has been taken: the next one may be as large.
    fn give_alone(&mut self, line: TooLong, mut give: impl FnMut(ReadBatch) -> bool) -> bool {
        let position = self.next_line();
        let item = position.map(|position| Taken { position, event: Err(line.malformed()) });
        let (awaited, taken) = mpsc::channel();
        let items = item.into_iter().collect();
        if self.is_stepwise {
            return give(ReadBatch::Items(Items { items, mark: None, _awaited: None }));
        }
        let wanted = give(self.ready(Items { items, mark: None, _awaited: Some(awaited) }));
        // Nothing is ever sent: it ends when the other side is dropped.
        let _ = taken.recv();
        wanted
    }

    /// The number of the current line; `None` if it is settled.
    fn next_line(&mut self) -> Option<u64> {
        self.line += 1;
        self.parser.wants(self.line).then_some(self.line)
    }

    fn parse_lines(
        &mut self,
        lines: Vec<u8>,
        at: u64,
        mut give: impl FnMut(ReadBatch) -> bool,
    ) -> bool {
        let mark = Mark { line: self.line + 1, byte: at };
        let lines = match self.promised(lines, mark) {
            Ok(promised) => return give(promised),
            Err(lines) => lines,
        };
        let (mut rest, mut mark) = (&*lines, Some(mark));
        loop {
            let items = self.parser.items(&mut rest, &mut self.line);
            let is_last = rest.is_empty();
            if !give(self.ready(Items { items, mark: mark.take(), _awaited: None })) {
                return false;
            }
            if is_last {
                return true;
            }
        }
    }

    fn ready(&self, items: Items) -> ReadBatch {
        self.demand.made();
        ReadBatch::Items(items)
    }

    /// Has another thread parse them, if that helps: it takes time, the engine waits, and a thread
    /// has nothing to do. Otherwise they are given back. Of lines so short that they would be
    /// several batches, more than parsing costs time.
    fn promised(&mut self, lines: Vec<u8>, mark: Mark) -> Result<ReadBatch, Vec<u8>> {
        if self.is_stepwise || !self.demand.is_waiting() || !self.parser.form.parses() {
            return Err(lines);
        }
        let ended = memchr::memchr_iter(b'\n', &lines).count();
        let count = ended + usize::from(!lines.ends_with(b"\n"));
        if count > ITEMS_PER_BATCH {
            return Err(lines);
        }
        let Some(helper) = parsers::idle() else { return Err(lines) };
        let (promise, promised) = oneshot::channel();
        let (parser, demand) = (self.parser.clone(), self.demand.clone());
        helper.run(move || {
            let items = parser.items(&mut &*lines, &mut (mark.line - 1));
            demand.made();
            // Otherwise it is not wanted any more.
            let _ = promise.send(Items { items, mark: Some(mark), _awaited: None });
        });
        self.line += count as u64;
        Ok(ReadBatch::Promised(promised))
    }
}

impl Parser {
    fn wants(&self, line: u64) -> bool {
        self.skip.as_ref().is_none_or(|skip| !skip.skips(line))
    }

    /// The items of the next lines, as many as a batch may have. `line` is the number of the last
    /// line before them, and of them.
    fn items(&self, lines: &mut &[u8], line: &mut u64) -> Vec<Taken> {
        let mut items = Vec::new();
        while !lines.is_empty() && items.len() < ITEMS_PER_BATCH {
            let length = memchr::memchr(b'\n', lines).unwrap_or(lines.len());
            let (text, rest) = lines.split_at(length);
            *lines = rest.get(1..).unwrap_or_default();
            *line += 1;
            let position = *line;
            if self.wants(position)
                && let Some(event) = read_line(text, position, &self.form)
            {
                items.push(Taken { position, event });
            }
        }
        items
    }
}

/// None for a blank line.
fn read_line(whole: &[u8], number: u64, form: &Form) -> Option<Result<Event, Malformed>> {
    let whole = &whole[blank::at_the_start(whole)..];
    let line = whole.strip_suffix(&[CARRIAGE_RETURN]).unwrap_or(whole);
    if line.len() > form.max_event {
        return Some(Err(TooLong::new(whole, form.max_event).malformed()));
    }
    form.event(line, number)
}
