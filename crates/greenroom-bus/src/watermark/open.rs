//! The positions that were received and are not settled, as bits in blocks of 64.

use std::{collections::VecDeque, ops::Range};

/// Positions of a block.
const BITS: u64 = 64;
/// This many hollow blocks are left in place, whatever the others: moving few is not worth it.
const SPARE: usize = 16;
/// Memory for this many times the blocks that there are is given back, so that
/// a burst does not keep it.
const SLACK: usize = 8;

/// Grows at its end, shrinks anywhere.
///
/// A block in the middle that has no open position any more is hollow, and stays until there are as
/// many hollow ones as others; then all are removed. So each removal pays for moving one block, and
/// memory is at most twice that of the open positions.
#[derive(Debug, Default)]
pub(super) struct OpenSet {
    /// Rising by index; the first is not hollow.
    blocks: VecDeque<PositionBlock>,
    /// How many blocks are hollow.
    hollow: usize,
    /// How many positions are open.
    open: usize,
    /// How many of them are in hand.
    in_hand: usize,
}

#[derive(Debug, Clone, Copy)]
struct PositionBlock {
    /// Of the first position, divided by 64.
    index: u64,
    open: u64,
    /// Of those, the ones without a result; the others were refused.
    in_hand: u64,
}

/// The state of a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    NotOpen,
    InHand,
    Refused,
}

impl OpenSet {
    pub(super) fn len(&self) -> usize {
        self.open
    }

    pub(super) fn in_hand(&self) -> usize {
        self.in_hand
    }

    pub(super) fn lowest(&self) -> Option<u64> {
        let first = self.blocks.front()?;
        Some(first.index * BITS + u64::from(first.open.trailing_zeros()))
    }

    /// Opens a position above all that ever were in here. It is in hand.
    pub(super) fn push(&mut self, position: u64) {
        let (index, bit) = place(position);
        match self.blocks.back_mut() {
            Some(last) if last.index == index => {
                self.hollow -= usize::from(last.open == 0);
                last.open |= bit;
                last.in_hand |= bit;
            }
            _ => self.blocks.push_back(PositionBlock { index, open: bit, in_hand: bit }),
        }
        self.open += 1;
        self.in_hand += 1;
    }

    pub(super) fn state(&self, position: u64) -> State {
        let (index, bit) = place(position);
        let Some(block) = self.find(index).map(|at| self.blocks[at]) else { return State::NotOpen };
        match (block.open & bit != 0, block.in_hand & bit != 0) {
            (false, _) => State::NotOpen,
            (true, true) => State::InHand,
            (true, false) => State::Refused,
        }
    }

    /// Of a position that was refused: it is in hand again.
    pub(super) fn take(&mut self, position: u64) {
        let (index, bit) = place(position);
        if let Some(at) = self.find(index) {
            self.blocks[at].in_hand |= bit;
            self.in_hand += 1;
        }
    }

    /// Of a position in hand: it stays open.
    pub(super) fn refuse(&mut self, position: u64) {
        let (index, bit) = place(position);
        if let Some(at) = self.find(index) {
            self.blocks[at].in_hand &= !bit;
            self.in_hand -= 1;
        }
    }

    /// Of a position in hand: it is settled.
    pub(super) fn remove(&mut self, position: u64) {
        let (index, bit) = place(position);
        let Some(at) = self.find(index) else { return };
        let block = &mut self.blocks[at];
        block.open &= !bit;
        block.in_hand &= !bit;
        let is_hollow = block.open == 0;
        self.open -= 1;
        self.in_hand -= 1;
        if is_hollow {
            self.hollow += 1;
            self.tidy();
        }
    }

    /// The index of the block with this number: its place without gaps, or found by binary search.
    fn find(&self, index: u64) -> Option<usize> {
        let first = self.blocks.front()?.index;
        let guess = usize::try_from(index.checked_sub(first)?).unwrap_or(usize::MAX);
        if self.blocks.get(guess).is_some_and(|block| block.index == index) {
            return Some(guess);
        }
        self.blocks.binary_search_by_key(&index, |block| block.index).ok()
    }

    fn tidy(&mut self) {
        while self.blocks.front().is_some_and(|first| first.open == 0) {
            self.blocks.pop_front();
            self.hollow -= 1;
        }
        if self.hollow > SPARE + self.blocks.len() / 2 {
            self.blocks.retain(|block| block.open != 0);
            self.hollow = 0;
        }
        if self.blocks.capacity() > SLACK * (SPARE + self.blocks.len()) {
            self.blocks.shrink_to(2 * (SPARE + self.blocks.len()));
        }
    }

    /// The open positions in rising order, neighbours together.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<u64>> {
        self.blocks.iter().flat_map(PositionBlock::ranges)
    }

    /// Blocks that there is memory for.
    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        self.blocks.capacity()
    }
}

impl PositionBlock {
    fn ranges(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let (start, mut open) = (self.index * BITS, self.open);
        std::iter::from_fn(move || {
            if open == 0 {
                return None;
            }
            let from = open.trailing_zeros();
            let end = from + (open >> from).trailing_ones();
            open &= u64::MAX.checked_shl(end).unwrap_or(0);
            Some(start + u64::from(from)..start + u64::from(end))
        })
    }
}

/// The index of its block, and its bit in there.
fn place(position: u64) -> (u64, u64) {
    (position / BITS, 1 << (position % BITS))
}
