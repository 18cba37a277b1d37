//! A queue of blocks: growing it never copies its items while a lock is held.

use crate::deque::{self, Deque, FEW};

/// Entries per block, unless they are large. A block is allocated only once in 64 pushes, and an
/// almost empty queue wastes little.
const BLOCK: usize = 64;

/// A block of large entries has fewer of them (but no fewer than a new queue has room for), so that
/// it takes no more than this many bytes. The memory of a popped entry is then still in the caches
/// when the next one is written there.
const BYTES_OF_A_BLOCK: usize = 512 * 1024;

/// Entries per block, for entries of this many bytes.
const fn entries_per_block(bytes: usize) -> usize {
    match BYTES_OF_A_BLOCK.checked_div(bytes) {
        Some(..FEW) => FEW,
        Some(entries @ ..BLOCK) => entries,
        _ => BLOCK,
    }
}

/// An empty queue with room for more blocks than this releases the memory.
const KEPT_WHEN_EMPTY: usize = 64;

/// A first-in first-out queue of fixed-size blocks: the one being emptied, full ones, and the one
/// being filled. The field order matters: what each message needs comes first.
#[repr(C)]
pub struct BlockQueue<T> {
    len: usize,
    /// Popped from.
    front: Deque<T>,
    /// Pushed to.
    back: Deque<T>,
    full: Deque<Deque<T>>,
    /// An emptied block, kept for the next push that needs one.
    spare: Deque<T>,
}

impl<T> BlockQueue<T> {
    const BLOCK: usize = entries_per_block(size_of::<T>());

    /// An empty queue, which holds no memory.
    pub const fn new() -> Self {
        Self {
            len: 0,
            front: Deque::new(),
            back: Deque::new(),
            full: Deque::new(),
            spare: Deque::new(),
        }
    }

    /// The number of items.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if the queue is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends an item.
    #[inline]
    pub fn push_back(&mut self, item: T) {
        self.make_room();
        self.push_into_room(item);
    }

    /// Makes room for one more item. It is a separate function, called before the item is in hand:
    /// otherwise the item would be spilled for a call that is rarely made.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn make_room(&mut self) {
        if !self.back.has_room() {
            self.extend_back();
        }
    }

    /// Like `push_back`, but makes the item once there is room. The item moves once, from its
    /// source into its place.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn push_made(&mut self, make: impl FnOnce() -> T) {
        self.make_room();
        self.len += 1;
        self.back.push_made(make);
    }

    /// Like `push_back`, after [`make_room`](Self::make_room).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn push_into_room(&mut self, item: T) {
        self.len += 1;
        self.back.push_made(|| item);
    }

    #[cold]
    #[inline(never)]
    fn extend_back(&mut self) {
        match self.back.capacity() {
            places if places >= Self::BLOCK => self.close_back(),
            places => self.back.grow(places.max(FEW).min(Self::BLOCK - places)),
        }
    }

    fn close_back(&mut self) {
        let empty = self.block();
        let full = std::mem::replace(&mut self.back, empty);
        match self.has_no_block() {
            true => self.begin_front(full),
            false => self.full.push_back(full),
        }
    }

    /// Starts to take items from this block: the previous one is empty.
    fn begin_front(&mut self, block: Deque<T>) {
        let mut emptied = std::mem::replace(&mut self.front, block);
        emptied.rewind();
        match self.back.capacity() {
            0 => self.back = emptied,
            _ => self.spare = emptied,
        }
    }

    /// True if an item pushed now is the next to be taken out.
    fn has_no_block(&self) -> bool {
        self.front.is_empty() && self.full.is_empty()
    }

    /// Puts an item before all others.
    pub fn push_front(&mut self, item: T) {
        self.len += 1;
        if self.front.len() >= Self::BLOCK {
            let full = std::mem::take(&mut self.front);
            self.full.push_front(full);
        }
        self.front.push_front(item);
    }

    /// Takes out the next item.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn pop_front(&mut self) -> Option<T> {
        if self.front.is_empty() {
            if self.len == 0 {
                return None;
            }
            self.next_block();
        }
        // Before the item is in hand: otherwise these writes would have to go around it.
        self.len -= 1;
        self.front.pop_front()
    }

    /// Takes out the only item, if it has just been pushed to an empty queue.
    #[inline]
    pub fn pop_only(&mut self) -> Option<T> {
        if self.len != 1 {
            return None;
        }
        let only = self.back.pop_front()?;
        self.back.rewind();
        self.len = 0;
        Some(only)
    }

    /// Moves all items of another queue behind those here. No item is copied.
    pub fn append(&mut self, other: &mut Self) {
        if self.is_empty() {
            return std::mem::swap(self, other);
        }
        let last = std::mem::take(&mut self.back);
        self.append_block(last);
        self.append_block(std::mem::take(&mut other.front));
        self.full.append(&mut other.full);
        std::mem::swap(&mut self.back, &mut other.back);
        self.len += std::mem::take(&mut other.len);
    }

    fn append_block(&mut self, block: Deque<T>) {
        if !block.is_empty() {
            self.full.push_back(block);
        }
    }

    /// The next item.
    #[inline]
    pub fn front(&mut self) -> Option<&T> {
        if self.front.is_empty() && self.len > 0 {
            self.next_block();
        }
        self.front.front()
    }

    /// Takes out the first of the next `most` items that matches. The others keep their places.
    pub fn remove_near(&mut self, most: usize, is_such: &dyn Fn(&T) -> bool) -> Option<T> {
        let (mut items, mut place) = (self.iter(), 0);
        while place < most {
            if is_such(items.next()?) {
                return self.remove(place);
            }
            place += 1;
        }
        None
    }

    /// Takes out the item at this place of those that `iter` gives.
    pub fn remove(&mut self, mut place: usize) -> Option<T> {
        self.len -= 1;
        if place < self.front.len() {
            return self.front.remove(place);
        }
        place -= self.front.len();
        let mut block = 0;
        while let Some(items) = self.full.get_mut(block) {
            if place < items.len() {
                return items.remove(place);
            }
            place -= items.len();
            block += 1;
        }
        self.back.remove(place)
    }

    /// Iterates from the front to the back.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter { items: self.front.iter(), full: self.full.iter(), back: self.back.iter() }
    }

    /// Takes out the first item that matches. The others keep their places.
    pub fn pop_first(&mut self, is_such: &dyn Fn(&T) -> bool) -> Option<T> {
        self.remove_near(self.len, is_such)
    }

    /// Moves on to the next block: the front one is empty, and there are more.
    #[cold]
    #[inline(never)]
    fn next_block(&mut self) {
        let next = loop {
            match self.full.pop_front() {
                // It has lost its contents and is of no use.
                Some(block) if block.is_empty() => {}
                Some(block) => break block,
                None => break std::mem::take(&mut self.back),
            }
        };
        self.begin_front(next);
        if self.full.is_empty() && self.full.capacity() > KEPT_WHEN_EMPTY {
            self.full = Deque::new();
        }
    }

    /// The number of full blocks that the queue has room for.
    pub fn room(&self) -> usize {
        self.full.capacity()
    }

    /// An empty block. Only the first block grows with its entries, so a short queue takes little
    /// memory.
    fn block(&mut self) -> Deque<T> {
        let mut block = std::mem::take(&mut self.spare);
        if block.capacity() == 0 {
            block.grow(Self::BLOCK);
        }
        block
    }
}

/// The items of a queue, block after block. Written out, because a chain of iterators would compile
/// to ten times as much code for each type of item.
pub struct Iter<'a, T> {
    items: deque::Items<'a, T>,
    full: deque::Items<'a, Deque<T>>,
    back: deque::Items<'a, T>,
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        loop {
            if let Some(item) = self.items.next() {
                return Some(item);
            }
            match self.full.next() {
                Some(items) => self.items = items.iter(),
                None => return self.back.next(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::{BlockQueue, entries_per_block};

    #[test]
    fn what_each_message_needs_comes_first() {
        type Numbers = BlockQueue<usize>;
        let [front, back] =
            [std::mem::offset_of!(Numbers, back), std::mem::offset_of!(Numbers, full)];
        assert_eq!((front, back), (40, 72), "the ends of the first and of the last block");
    }

    #[test]
    fn a_block_of_large_entries_has_fewer() {
        let entries = [0, 1, 8_192, 8_193, 65_536, 131_072, 1 << 20].map(entries_per_block);
        assert_eq!(entries, [64, 64, 64, 63, 8, 4, 4]);
        let mut queue = BlockQueue::new();
        for items in [1, 8, 30] {
            (0..items).for_each(|n| queue.push_back(Large([n; 8_192])));
            let taken = std::iter::from_fn(|| queue.pop_front()).map(|large| large.0[8_191]);
            assert!(taken.eq(0..items));
            let capacities = [queue.back.capacity(), queue.spare.capacity()];
            assert!(capacities.iter().all(|capacity| *capacity <= 8), "{capacities:?}");
        }
    }

    /// 64 KiB in size.
    struct Large([usize; 8_192]);

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
                        prop_assert_eq!(ours.remove_near(n % 65, &|item| item % 3 == 0), expected);
                    }
                    8 if n % 8 == 1 => {
                        let only = ours.pop_only();
                        prop_assert!(only.is_none() || model.len() == 1);
                        prop_assert_eq!(only, only.and_then(|_| model.pop_front()));
                    }
                    2 => { later.push_back(n); model_of_later.push_back(n); }
                    8 if n % 8 == 2 => {
                        let such = |item: &usize| item.is_multiple_of(5);
                        let expected = model.iter().position(such).and_then(|at| model.remove(at));
                        prop_assert_eq!(ours.pop_first(&such), expected);
                    }
                    8 if n % 8 == 3 => prop_assert_eq!(ours.front(), model.front()),
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
