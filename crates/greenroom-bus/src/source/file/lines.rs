//! From chunks to items: lines are numbered and parsed, still on the reading thread.

use std::sync::mpsc;

use super::{chunks::Chunk, form::Form, marks::Mark, skip::Skip, too_long::TooLong};
use crate::{
    event::Event,
    source::{Malformed, Taken},
};

/// At most so many items per batch, so that a chunk of short lines is no load of its own.
const ITEMS_PER_BATCH: usize = 4_096;
/// The line feed is not part of a line; the carriage return of a foreign one is not, either.
const CARRIAGE_RETURN: u8 = b'\r';

/// What the thread hands over.
pub(super) enum Batch {
    /// Events and lines that are none, in order. Empty for a chunk of blank lines: giving it shows whether anybody still
    /// wants more.
    Items(Items),
    /// The input has been read to its end.
    End,
    /// The input cannot be read any further.
    Failed {
        /// Why.
        reason: String,
        /// The number of the line at hand, which was not taken.
        line: u64,
        /// Where it begins in the decompressed input.
        at: u64,
    },
}

/// Items in order.
pub(super) struct Items {
    pub(super) items: Vec<Taken>,
    /// A place at or before the first of them from which to read on later; none in the later batches of a chunk.
    pub(super) mark: Option<Mark>,
    /// Dropped once they have been taken: the reading thread waits for that.
    pub(super) _awaited: Option<mpsc::Sender<()>>,
}

pub(super) struct Lines {
    form: Form,
    /// The number of the last line, blank ones included.
    line: u64,
    /// Lines that were done in an earlier run.
    skip: Option<Skip>,
}

impl Lines {
    pub(super) fn new(form: Form) -> Self {
        Self { form, line: 0, skip: None }
    }

    /// Goes on from this line, and skips those that are done.
    pub(super) fn going_on(form: Form, from: Mark, skip: Skip) -> Self {
        Self { form, line: from.line - 1, skip: Some(skip) }
    }

    /// Gives what a chunk holds, in batches. False when nobody wants more.
    pub(super) fn of(&mut self, chunk: Chunk, mut give: impl FnMut(Batch) -> bool) -> bool {
        match chunk {
            Chunk::Lines { bytes, at } => self.parse(&bytes, at, give),
            Chunk::TooLong(too_long) => self.give_alone(too_long, give),
            Chunk::End => give(Batch::End),
            Chunk::Failed { reason, at } => give(Batch::Failed { reason, line: self.line + 1, at }),
        }
    }

    /// Waits until it has been taken: the next one may be as large.
    fn give_alone(&mut self, line: TooLong, mut give: impl FnMut(Batch) -> bool) -> bool {
        let position = self.next_line();
        let item = position.map(|position| Taken { position, event: Err(line.malformed()) });
        let (awaited, taken) = mpsc::channel();
        let items = item.into_iter().collect();
        let wanted = give(Batch::Items(Items { items, mark: None, _awaited: Some(awaited) }));
        // Nothing is ever sent: it ends when the other side is dropped.
        let _ = taken.recv();
        wanted
    }

    /// The number of the line at hand; none where it is done.
    fn next_line(&mut self) -> Option<u64> {
        self.line += 1;
        let is_done = self.skip.as_ref().is_some_and(|skip| skip.skips(self.line));
        (!is_done).then_some(self.line)
    }

    fn parse(&mut self, mut lines: &[u8], at: u64, mut give: impl FnMut(Batch) -> bool) -> bool {
        let mut items = Vec::new();
        let mut mark = Some(Mark { line: self.line + 1, byte: at });
        while !lines.is_empty() {
            let length = memchr::memchr(b'\n', lines).unwrap_or(lines.len());
            let (line, rest) = lines.split_at(length);
            lines = rest.get(1..).unwrap_or_default();
            let Some(position) = self.next_line() else { continue };
            if let Some(event) = read_line(line, position, &self.form) {
                items.push(Taken { position, event });
            }
            if items.len() == ITEMS_PER_BATCH {
                let items = std::mem::take(&mut items);
                if !give(Batch::Items(Items { items, mark: mark.take(), _awaited: None })) {
                    return false;
                }
            }
        }
        give(Batch::Items(Items { items, mark, _awaited: None }))
    }
}

/// None for a blank line.
fn read_line(whole: &[u8], number: u64, form: &Form) -> Option<Result<Event, Malformed>> {
    let line = whole.strip_suffix(&[CARRIAGE_RETURN]).unwrap_or(whole);
    if line.len() > form.max_event {
        return Some(Err(TooLong::of(whole, form.max_event).malformed()));
    }
    form.event(line, number)
}
