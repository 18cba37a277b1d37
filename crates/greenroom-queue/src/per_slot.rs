//! A row with one element per slot, which grows while others read it.
//!
//! Elements never move, so a worker's element is found by its index without a lock. The first chunk
//! is as long as the pool was when it started; each further chunk is twice as long as the one
//! before.

use std::sync::{
    OnceLock,
    atomic::{AtomicUsize, Ordering},
};

/// The length of the first further chunk, as a power of two.
const FIRST_CHUNK: u32 = 4;

/// Enough chunks for more workers than a pool may have.
const CHUNKS: usize = 14;

type Chunks<T> = [OnceLock<Box<[T]>>];

/// A row that grows, never shrinks, and gives out shared references.
pub struct PerSlot<T> {
    first: Box<[T]>,
    /// Allocated when the pool grows for the first time.
    more: OnceLock<Box<Chunks<T>>>,
    len: AtomicUsize,
}

impl<T: Default> PerSlot<T> {
    /// A row with this many elements.
    pub fn new(len: usize) -> Self {
        Self { first: row(len), more: OnceLock::new(), len: AtomicUsize::new(len) }
    }

    /// Makes sure that there are at least this many elements.
    pub fn grow_to(&self, len: usize) {
        if len > self.first.len() {
            let more = self.more.get_or_init(|| row(CHUNKS));
            let (last, _) = place(len - 1 - self.first.len());
            for (chunk, cell) in more.iter().enumerate().take(last + 1) {
                cell.get_or_init(|| row(1 << (FIRST_CHUNK as usize + chunk)));
            }
        }
        self.len.fetch_max(len, Ordering::AcqRel);
    }
}

impl<T> PerSlot<T> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// The element with this index.
    ///
    /// # Panics
    /// If there is no such element: an index must come from this row.
    #[inline]
    #[expect(clippy::expect_used, reason = "an index outside is a bug of the pool")]
    pub fn at(&self, index: usize) -> &T {
        match self.first.get(index) {
            Some(slot_state) => slot_state,
            None => self.further(index - self.first.len()).expect("there is such an element"),
        }
    }

    #[cold]
    fn further(&self, index: usize) -> Option<&T> {
        let (chunk, offset) = place(index);
        self.more.get()?.get(chunk)?.get()?.get(offset)
    }

    /// Iterates over all elements, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len()).map(|index| self.at(index))
    }
}

/// This many default elements.
fn row<T: Default>(len: usize) -> Box<[T]> {
    let mut row = Vec::with_capacity(len);
    for _ in 0..len {
        row.push(T::default());
    }
    row.into()
}

/// The chunk, and the place in it.
#[inline]
fn place(index: usize) -> (usize, usize) {
    let shifted = index + (1 << FIRST_CHUNK);
    let power = shifted.ilog2();
    ((power - FIRST_CHUNK) as usize, shifted - (1 << power))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::PerSlot;

    #[test]
    fn elements_stay_where_they_are_while_the_row_grows() {
        let slots: PerSlot<AtomicUsize> = PerSlot::new(3);
        for len in [3, 4, 20, 21, 1_000, 65_536] {
            slots.grow_to(len);
            assert_eq!(slots.len(), len);
            for index in 0..len {
                let before = slots.at(index).load(Ordering::Relaxed);
                assert!(before == 0 || before == index + 1, "the element of {index} is its own");
                slots.at(index).store(index + 1, Ordering::Relaxed);
            }
        }
        assert_eq!(slots.iter().count(), 65_536);
    }
}
