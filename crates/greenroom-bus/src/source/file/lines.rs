//! From chunks to items: lines are numbered and parsed, still on the reading thread.

use super::chunks::Chunk;
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
    Items(Vec<Taken>),
    /// The input has been read to its end.
    End,
    /// The input cannot be read any further.
    Failed {
        /// Why.
        reason: String,
        /// The number of the last line before.
        line: u64,
    },
}

pub(super) struct Lines {
    max_event: usize,
    /// The number of the last line, blank ones included.
    line: u64,
}

impl Lines {
    pub(super) fn new(max_event: usize) -> Self {
        Self { max_event, line: 0 }
    }

    /// Gives what a chunk holds, in batches. False when nobody wants more.
    pub(super) fn of(&mut self, chunk: Chunk, mut give: impl FnMut(Batch) -> bool) -> bool {
        match chunk {
            Chunk::Lines(lines) => self.parse(&lines, give),
            Chunk::NoLine { raw, reason } => {
                self.line += 1;
                let no_event = match raw.len() > self.max_event {
                    true => Malformed::too_large(raw, reason),
                    false => Malformed::new(raw, reason),
                };
                let event = Err(no_event);
                give(Batch::Items(vec![Taken { position: self.line, event }]))
            }
            Chunk::End => give(Batch::End),
            Chunk::Failed(reason) => give(Batch::Failed { reason, line: self.line }),
        }
    }

    fn parse(&mut self, mut lines: &[u8], mut give: impl FnMut(Batch) -> bool) -> bool {
        let mut items = Vec::new();
        while !lines.is_empty() {
            let length = memchr::memchr(b'\n', lines).unwrap_or(lines.len());
            let (line, rest) = lines.split_at(length);
            lines = rest.get(1..).unwrap_or_default();
            self.line += 1;
            if let Some(event) = read_line(line, self.max_event) {
                items.push(Taken { position: self.line, event });
            }
            if items.len() == ITEMS_PER_BATCH && !give(Batch::Items(std::mem::take(&mut items))) {
                return false;
            }
        }
        give(Batch::Items(items))
    }
}

/// None for a blank line.
fn read_line(line: &[u8], max_event: usize) -> Option<Result<Event, Malformed>> {
    let line = line.strip_suffix(&[CARRIAGE_RETURN]).unwrap_or(line);
    if line.len() > max_event {
        let reason =
            format!("the line has {} bytes, more than `max_event` ({max_event})", line.len());
        return Some(Err(Malformed::too_large(line.to_vec(), reason)));
    }
    match Event::parse(line) {
        Ok(event) => Some(Ok(event)),
        Err(_) if line.trim_ascii().is_empty() => None,
        Err(error) => Some(Err(Malformed::new(line.to_vec(), error.to_string()))),
    }
}
