//! Checks, independently of how order is kept, that events of a key leave in the order in which they came.
//!
//! The memory is that of pending keys: a key is forgotten with its last pending event.

use std::{
    collections::HashMap,
    hash::{BuildHasher, Hash, Hasher},
    sync::Arc,
};

use parking_lot::Mutex;

/// The line that an event stands in: its input, its handler and its key. Hashed once: lines are looked up several times
/// for each event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    hash: u64,
    pub(crate) input: u32,
    pub(crate) handler: u32,
    pub(crate) key: Arc<str>,
}

impl Line {
    pub(crate) fn new(input: u32, handler: u32, key: Arc<str>, hasher: &impl BuildHasher) -> Self {
        Self { hash: hasher.hash_one((input, handler, &*key)), input, handler, key }
    }
}

impl Hash for Line {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

#[derive(Debug, Default)]
struct Pending {
    events: u32,
    /// The highest number that has left.
    last: u64,
}

type Lines = HashMap<Line, Pending, foldhash::fast::RandomState>;

/// Locks are spread over this many parts.
const PARTS: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct OrderAudit {
    parts: [Mutex<Lines>; PARTS],
    hasher: foldhash::quality::RandomState,
}

impl OrderAudit {
    fn part(&self, line: &Line) -> &Mutex<Lines> {
        &self.parts[line.hash as usize % PARTS]
    }

    /// The line of this key.
    pub(crate) fn line(&self, input: u32, handler: usize, key: Arc<str>) -> Line {
        Line::new(input, handler as u32, key, &self.hasher)
    }

    /// An event of this line has been taken.
    pub(crate) fn taken(&self, line: &Line) {
        let mut lines = self.part(line).lock();
        match lines.get_mut(line) {
            Some(pending) => pending.events += 1,
            None => {
                lines.insert(line.clone(), Pending { events: 1, last: 0 });
            }
        }
    }

    /// The event with this number (rising from 1 in its input) leaves. False when a later one has left before it.
    pub(crate) fn left(&self, line: &Line, number: u64) -> bool {
        let mut lines = self.part(line).lock();
        let Some(pending) = lines.get_mut(line) else { return true };
        let in_order = number > pending.last;
        pending.last = pending.last.max(number);
        in_order
    }

    /// The event has been settled.
    pub(crate) fn settled(&self, line: &Line) {
        let mut lines = self.part(line).lock();
        let Some(pending) = lines.get_mut(line) else { return };
        pending.events -= 1;
        if pending.events == 0 {
            lines.remove(line);
        }
        if lines.is_empty() && lines.capacity() > 1_024 {
            lines.shrink_to_fit();
        }
    }

    /// How many events of this line were taken and are not settled. `None` where there are none.
    pub(crate) fn unsettled(&self, line: &Line) -> Option<u32> {
        self.part(line).lock().get(line).map(|pending| pending.events)
    }

    #[cfg(test)]
    fn remembered(&self) -> usize {
        self.parts.iter().map(|part| part.lock().len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(key: &str) -> Line {
        Line::new(0, 0, key.into(), &foldhash::quality::FixedState::default())
    }

    #[test]
    fn o11_two_swapped_events_are_out_of_order() {
        let audit = OrderAudit::default();
        for _ in 0..3 {
            audit.taken(&line("a"));
        }
        assert!(audit.left(&line("a"), 1));
        assert!(audit.left(&line("a"), 3));
        assert!(!audit.left(&line("a"), 2));
    }

    #[test]
    fn lines_do_not_mix_and_are_forgotten_with_their_last_event() {
        let audit = OrderAudit::default();
        audit.taken(&line("a"));
        audit.taken(&line("b"));
        assert!(audit.left(&line("b"), 2));
        assert!(audit.left(&line("a"), 1));
        audit.settled(&line("a"));
        assert_eq!(audit.remembered(), 1);
        audit.settled(&line("b"));
        assert_eq!(audit.remembered(), 0);
    }
}

#[cfg(test)]
mod engine_tests;
