//! A queue in blocks, so that growing it never copies what is in it while a lock is held.

use std::collections::VecDeque;

/// Entries per block. Large enough that a block is allocated once in 64 pushes, small enough that an almost empty
/// queue wastes little.
const BLOCK: usize = 64;

/// An empty queue with room for more blocks than this gives the memory back.
const KEPT_WHEN_EMPTY: usize = 64;

/// A first-in first-out queue of fixed-size blocks: one that is emptied, full ones, and one that is filled.
#[derive(Debug)]
pub(crate) struct BlockQueue<T> {
    /// Popped from.
    front: VecDeque<T>,
    full: VecDeque<VecDeque<T>>,
    /// Pushed to.
    back: Vec<T>,
    /// An emptied block, kept for the next push that needs one.
    spare: Vec<T>,
    len: usize,
}

impl<T> BlockQueue<T> {
    pub(crate) const fn new() -> Self {
        Self {
            front: VecDeque::new(),
            full: VecDeque::new(),
            back: Vec::new(),
            spare: Vec::new(),
            len: 0,
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub(crate) fn push_back(&mut self, item: T) {
        self.make_room();
        self.push_into_room(item);
    }

    /// Sees to it that there is room for one more item. By itself, so that the item need not be in hand yet: what is, is put
    /// aside for a call that is hardly ever made.
    #[inline(always)]
    pub(crate) fn make_room(&mut self) {
        if self.back.len() == self.back.capacity() {
            self.extend_back();
        }
    }

    /// As `push_back`, for an item that is made once there is room: so it is moved once, from where it lies into its place.
    #[inline(always)]
    pub(crate) fn push_made(&mut self, make: impl FnOnce() -> T) {
        self.make_room();
        self.len += 1;
        // Not `push`, which would have the item in hand while it asks for room.
        self.back.extend(std::iter::once_with(make));
    }

    /// As `push_back`, where there is room.
    #[inline(always)]
    pub(crate) fn push_into_room(&mut self, item: T) {
        self.len += 1;
        self.back.push(item);
    }

    #[cold]
    #[inline(never)]
    fn extend_back(&mut self) {
        match self.back.len() {
            BLOCK.. => self.close_back(),
            len => self.back.reserve_exact(len.max(4).min(BLOCK - len)),
        }
    }

    fn close_back(&mut self) {
        let empty = self.block();
        let full = VecDeque::from(std::mem::replace(&mut self.back, empty));
        if self.front.is_empty() && self.full.is_empty() {
            self.spare = std::mem::replace(&mut self.front, full).into();
        } else {
            self.full.push_back(full);
        }
    }

    pub(crate) fn push_front(&mut self, item: T) {
        self.len += 1;
        if self.front.len() == BLOCK {
            let empty = VecDeque::from(self.block());
            let full = std::mem::replace(&mut self.front, empty);
            self.full.push_front(full);
        }
        self.front.push_front(item);
    }

    #[inline(always)]
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        if self.front.is_empty() {
            if self.len == 0 {
                return None;
            }
            self.next_block();
        }
        // Before the item is in hand: what is written in between would be written around it.
        self.len -= 1;
        self.front.pop_front()
    }

    /// Takes out what is there, where that is one item that has just been pushed to an empty queue.
    #[inline]
    pub(crate) fn pop_only(&mut self) -> Option<T> {
        if self.len != 1 {
            return None;
        }
        let only = self.back.pop()?;
        self.len = 0;
        Some(only)
    }

    /// Moves everything of another queue behind what is here. No item is copied.
    pub(crate) fn append(&mut self, other: &mut Self) {
        if self.is_empty() {
            return std::mem::swap(self, other);
        }
        let blocks = [std::mem::take(&mut self.back).into(), std::mem::take(&mut other.front)];
        self.full.extend(blocks.into_iter().filter(|block| !block.is_empty()));
        self.full.append(&mut other.full);
        std::mem::swap(&mut self.back, &mut other.back);
        self.len += std::mem::take(&mut other.len);
    }

    /// What comes out next, where it lies in the block that is emptied.
    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        self.front.front()
    }

    /// Takes out the first of the next `most` items that is such a one. The others keep their places.
    pub(crate) fn remove_near(
        &mut self,
        most: usize,
        is_such: impl FnMut(&T) -> bool,
    ) -> Option<T> {
        let mut place = self.iter().take(most).position(is_such)?;
        self.len -= 1;
        for block in std::iter::once(&mut self.front).chain(&mut self.full) {
            match place.checked_sub(block.len()) {
                None => return block.remove(place),
                Some(behind) => place = behind,
            }
        }
        Some(self.back.remove(place))
    }

    /// From the front to the back.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.front.iter().chain(self.full.iter().flatten()).chain(&self.back)
    }

    /// Takes out the first item that is such a one. Those before it are looked at and stay.
    pub(crate) fn pop_first(&mut self, is_such: impl Fn(&T) -> bool) -> Option<T> {
        let mut others = Vec::new();
        let found = std::iter::from_fn(|| self.pop_front()).find_map(|item| match is_such(&item) {
            true => Some(item),
            false => {
                others.push(item);
                None
            }
        });
        others.into_iter().rev().for_each(|item| self.push_front(item));
        found
    }

    #[cold]
    fn next_block(&mut self) {
        // One that has lost what was in it is of no use.
        let full = std::iter::from_fn(|| self.full.pop_front()).find(|block| !block.is_empty());
        let next = match full {
            Some(full) => full,
            None => std::mem::take(&mut self.back).into(),
        };
        let emptied = std::mem::replace(&mut self.front, next);
        self.keep(emptied.into());
        if self.full.is_empty() && self.full.capacity() > KEPT_WHEN_EMPTY {
            self.full = VecDeque::new();
        }
    }

    /// How many full blocks the queue has room for.
    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        self.full.capacity()
    }

    /// An empty block. Only the first one grows with its entries, so that a queue of a few takes little.
    fn block(&mut self) -> Vec<T> {
        match self.spare.capacity() {
            0 => Vec::with_capacity(BLOCK),
            _ => std::mem::take(&mut self.spare),
        }
    }

    fn keep(&mut self, emptied: Vec<T>) {
        match self.back.capacity() {
            0 => self.back = emptied,
            _ => self.spare = emptied,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::BlockQueue;

    proptest! {
        #[test]
        fn behaves_as_a_plain_deque(steps in prop::collection::vec(0u8..9, 0..2000)) {
            let (mut ours, mut model) = (BlockQueue::new(), VecDeque::new());
            let (mut later, mut model_of_later) = (BlockQueue::new(), VecDeque::new());
            for (n, step) in steps.into_iter().enumerate() {
                match step {
                    0 => { ours.push_front(n); model.push_front(n); }
                    1 => {
                        let place = model.iter().take(n % 65).position(|item| item % 3 == 0);
                        let expected = place.and_then(|place| model.remove(place));
                        prop_assert_eq!(ours.remove_near(n % 65, |item| item % 3 == 0), expected);
                    }
                    8 if n % 8 == 1 => {
                        let only = ours.pop_only();
                        prop_assert!(only.is_none() || model.len() == 1);
                        prop_assert_eq!(only, only.and_then(|_| model.pop_front()));
                    }
                    2 => { later.push_back(n); model_of_later.push_back(n); }
                    8 if n % 8 == 0 => {
                        ours.append(&mut later);
                        model.append(&mut model_of_later);
                        prop_assert!(later.is_empty());
                    }
                    3..=4 => { ours.push_back(n); model.push_back(n); }
                    _ => prop_assert_eq!(ours.pop_front(), model.pop_front()),
                }
                prop_assert_eq!(ours.len(), model.len());
                prop_assert_eq!(ours.is_empty(), model.is_empty());
                prop_assert!(ours.iter().eq(&model));
            }
        }
    }
}
