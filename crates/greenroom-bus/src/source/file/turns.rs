//! Which file has a position, where several are read in turn under positions that rise over all of
//! them.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;

use super::positions::FilePositions;
use crate::{
    settlement::Settled,
    source::{Partition, Place, Places, Receipts},
};

/// Turns of files that are remembered, so that reports can name a line; more, when lines of as many
/// turns are open.
const TURNS: usize = 1_024;

/// Tells the lines of a file by the positions of a turn.
pub(super) struct OfTurn {
    /// Added to the number of a line. It may be below zero, and wraps.
    pub(super) base: u64,
    pub(super) positions: FilePositions,
}

impl Receipts for OfTurn {
    fn settled(&self, position: u64, how: Settled) {
        self.positions.settled(position.wrapping_sub(self.base), how);
    }
}

/// In which file a position is.
pub(super) struct Turns {
    /// The name of the input.
    name: Arc<str>,
    /// Each with the position before its first line, rising; the offset of its lines; its file.
    begun: Mutex<VecDeque<(u64, u64, Arc<str>)>>,
}

impl Turns {
    /// Of an input of this name, before its first file.
    pub(super) fn new(name: &str) -> Arc<Self> {
        Arc::new(Self { name: name.into(), begun: Mutex::default() })
    }

    /// `oldest`: positions below it are not looked up any more, if it is known.
    pub(super) fn begin(&self, behind: u64, base: u64, name: Arc<str>, oldest: Option<u64>) {
        let mut begun = self.begun.lock();
        begun.push_back((behind, base, name));
        let oldest = oldest.unwrap_or(behind);
        while begun.len() > TURNS && begun.get(1).is_some_and(|(behind, ..)| *behind < oldest) {
            begun.pop_front();
        }
    }
}

impl Places for Turns {
    fn place(&self, _: Option<Partition>, position: u64) -> Place {
        let begun = self.begun.lock();
        // Among files without an event, the last one that begins there has it.
        let behind = begun.partition_point(|(behind, ..)| *behind < position);
        match behind.checked_sub(1).map(|at| &begun[at]) {
            Some((_, base, name)) => {
                Place { source: name.clone(), position: position.wrapping_sub(*base) }
            }
            None => Place { source: self.name.clone(), position },
        }
    }
}
