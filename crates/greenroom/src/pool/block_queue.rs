//! A queue in blocks, so that growing it never copies what is in it while a lock is held.

use std::collections::VecDeque;

/// Entries per block. Large enough that a block is allocated once in 64 pushes, small enough that an almost empty
/// queue wastes little.
const BLOCK: usize = 64;

/// An empty queue with room for more blocks than this gives the memory back.
const KEPT_WHEN_EMPTY: usize = 64;

/// A first-in first-out queue of fixed-size blocks, of which one emptied block is kept for the next push.
#[derive(Debug)]
pub(crate) struct BlockQueue<T> {
    /// Every block but the last is full or being emptied; none but the only one is empty.
    blocks: VecDeque<VecDeque<T>>,
    /// An emptied block, kept.
    spare: Option<VecDeque<T>>,
    len: usize,
}

impl<T> BlockQueue<T> {
    pub(crate) const fn new() -> Self {
        Self { blocks: VecDeque::new(), spare: None, len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn push_back(&mut self, item: T) {
        self.len += 1;
        match self.blocks.back_mut() {
            Some(block) if block.len() < BLOCK => block.push_back(item),
            _ => {
                let mut block = self.block();
                block.push_back(item);
                self.blocks.push_back(block);
            }
        }
    }

    pub(crate) fn push_front(&mut self, item: T) {
        self.len += 1;
        match self.blocks.front_mut() {
            Some(block) if block.len() < BLOCK => block.push_front(item),
            _ => {
                let mut block = self.block();
                block.push_front(item);
                self.blocks.push_front(block);
            }
        }
    }

    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let block = self.blocks.front_mut()?;
        let item = block.pop_front();
        self.len -= usize::from(item.is_some());
        if block.is_empty() {
            self.spare = self.blocks.pop_front();
            if self.blocks.is_empty() && self.blocks.capacity() > KEPT_WHEN_EMPTY {
                self.blocks = VecDeque::new();
            }
        }
        item
    }

    /// How many blocks the queue has room for.
    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        self.blocks.capacity()
    }

    fn block(&mut self) -> VecDeque<T> {
        self.spare.take().unwrap_or_else(|| VecDeque::with_capacity(BLOCK))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::BlockQueue;

    proptest! {
        #[test]
        fn behaves_as_a_plain_deque(steps in prop::collection::vec(0u8..8, 0..2000)) {
            let (mut ours, mut model) = (BlockQueue::new(), VecDeque::new());
            for (n, step) in steps.into_iter().enumerate() {
                match step {
                    0 => { ours.push_front(n); model.push_front(n); }
                    1..=4 => { ours.push_back(n); model.push_back(n); }
                    _ => prop_assert_eq!(ours.pop_front(), model.pop_front()),
                }
                prop_assert_eq!(ours.len(), model.len());
                prop_assert_eq!(ours.is_empty(), model.is_empty());
            }
        }
    }
}
