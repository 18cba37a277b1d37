//! A small deque.
//!
//! Queues hold messages, so all of their code is compiled for each message type. The standard
//! library's deque is a lot of code, mostly for cases that no queue has. This one is a row of
//! places with the items in the middle, and needs no ring.
//!
//! ```text
//!   places:  _ _ _ a b c d _ _
//!                 head    tail
//! ```

/// The number of places that a deque starts with.
pub(crate) const FEW: usize = 4;

/// A first-in first-out queue with a few more operations.
pub struct Deque<T> {
    /// The places outside of `head..tail` are empty, and only those.
    places: Vec<Option<T>>,
    head: u32,
    tail: u32,
}

impl<T> Deque<T> {
    /// An empty deque, which holds no memory.
    pub const fn new() -> Self {
        Self { places: Vec::new(), head: 0, tail: 0 }
    }

    /// A deque with this one item.
    pub fn only(item: T) -> Self {
        let mut deque = Self::new();
        deque.push_back(item);
        deque
    }

    /// The number of items.
    #[inline]
    pub fn len(&self) -> usize {
        (self.tail - self.head) as usize
    }

    /// True if the deque is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// The number of items that it has memory for.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.places.len()
    }

    /// The item at this place, counted from the front.
    pub fn get(&self, place: usize) -> Option<&T> {
        self.places.get(self.head as usize + place)?.as_ref()
    }

    /// Like `get`, but mutable.
    pub fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        self.places.get_mut(self.head as usize + place)?.as_mut()
    }

    /// The next item.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        self.get(0)
    }

    /// Iterates from the front to the back.
    pub fn iter(&self) -> Items<'_, T> {
        Items(self.places.get(self.head as usize..self.tail as usize).unwrap_or_default())
    }

    /// Appends an item.
    pub fn push_back(&mut self, item: T) {
        if !self.has_room() {
            self.make_room();
        }
        self.push_made(|| item);
    }

    /// True if the next item can be appended without allocating.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        (self.tail as usize) < self.places.len()
    }

    /// Appends an item if there is room. The item is made in its place.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn push_made(&mut self, make: impl FnOnce() -> T) {
        if let Some(place) = self.places.get_mut(self.tail as usize) {
            // The place was empty. Forgetting instead of dropping means that nothing has to be kept
            // across a call that never happens.
            std::mem::forget(place.replace(make()));
            self.tail += 1;
        }
    }

    /// Makes room behind the items.
    #[cold]
    fn make_room(&mut self) {
        match self.head as usize > self.places.len() / 2 {
            true => self.shift_to(0),
            false => self.grow(self.places.len().max(FEW)),
        }
    }

    /// Adds this many places behind the others.
    pub(crate) fn grow(&mut self, places: usize) {
        self.places.reserve_exact(places);
        for _ in 0..places {
            self.places.push(None);
        }
    }

    /// Moves the items so that they start at this place.
    fn shift_to(&mut self, head: usize) {
        let (from, items) = (self.head as usize, self.len());
        for step in 0..items {
            // Start from the end that is not overwritten.
            let item = if head < from { step } else { items - 1 - step };
            self.places.swap(from + item, head + item);
        }
        (self.head, self.tail) = (head as u32, (head + items) as u32);
    }

    /// Puts an item before all others.
    pub fn push_front(&mut self, item: T) {
        if self.head == 0 {
            if self.places.len() < self.len() * 2 + 1 {
                self.grow(self.len().max(FEW));
            }
            self.shift_to(self.places.len() - self.len());
        }
        self.head -= 1;
        if let Some(place) = self.places.get_mut(self.head as usize) {
            *place = Some(item);
        }
    }

    /// Takes out the next item.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        let place = self.places.get_mut(self.head as usize)?;
        // The item is not inspected: each further move of a large one costs time.
        self.head += u32::from(place.is_some());
        place.take()
    }

    /// Puts an item before the one at this place, which is near the front.
    pub fn insert(&mut self, place: usize, item: T) {
        self.push_front(item);
        let head = self.head as usize;
        for before in head..head + place {
            self.places.swap(before, before + 1);
        }
    }

    /// Takes out the item at this place, which is near the front.
    pub fn remove(&mut self, place: usize) -> Option<T> {
        if place >= self.len() {
            return None;
        }
        let head = self.head as usize;
        for before in (head..head + place).rev() {
            self.places.swap(before, before + 1);
        }
        self.pop_front()
    }

    /// Moves all items of another deque behind those here.
    pub fn append(&mut self, other: &mut Self) {
        while let Some(item) = other.pop_front() {
            self.push_back(item);
        }
    }

    /// Lets an empty deque start at its first place again.
    pub(crate) fn rewind(&mut self) {
        debug_assert!(self.is_empty(), "items would be lost");
        (self.head, self.tail) = (0, 0);
    }
}

impl<T> Default for Deque<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// The items of a deque, from the front to the back.
pub struct Items<'a, T>(&'a [Option<T>]);

impl<T> Default for Items<'_, T> {
    fn default() -> Self {
        Self(&[])
    }
}

impl<'a, T> Iterator for Items<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        let (first, others) = self.0.split_first()?;
        self.0 = others;
        first.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::Deque;

    #[test]
    fn a_deque_of_few_items_takes_little_memory() {
        let mut deque = Deque::new();
        assert_eq!(deque.capacity(), 0);
        for n in 0..1_000 {
            deque.push_back(n);
            deque.push_back(n);
            assert_eq!(deque.pop_front(), Some(n));
            deque.push_front(n);
            assert_eq!((deque.pop_front(), deque.pop_front()), (Some(n), Some(n)));
        }
        assert!(deque.is_empty() && deque.capacity() <= 8, "{} places", deque.capacity());
    }

    proptest! {
        #[test]
        fn behaves_as_the_deque_of_the_standard_library(
            steps in prop::collection::vec((0u8..10, 0usize..9), 0..500),
        ) {
            let (mut ours, mut model) = (Deque::new(), VecDeque::new());
            for (n, (step, place)) in steps.into_iter().enumerate() {
                match step {
                    0..=2 => { ours.push_back(n); model.push_back(n); }
                    3..=4 => { ours.push_front(n); model.push_front(n); }
                    5 => {
                        let place = place.min(model.len());
                        ours.insert(place, n);
                        model.insert(place, n);
                    }
                    6 => prop_assert_eq!(ours.remove(place), model.remove(place)),
                    7 if ours.is_empty() => ours.rewind(),
                    8 => {
                        let (mut more, mut model_of_more) = (Deque::new(), VecDeque::new());
                        for item in 0..place { more.push_back(item); model_of_more.push_back(item); }
                        ours.append(&mut more);
                        model.append(&mut model_of_more);
                        prop_assert!(more.is_empty());
                    }
                    _ => prop_assert_eq!(ours.pop_front(), model.pop_front()),
                }
                prop_assert!(ours.iter().eq(&model) && ours.len() == model.len());
                prop_assert_eq!((ours.front(), ours.is_empty()), (model.front(), model.is_empty()));
                prop_assert_eq!(ours.get(place), model.get(place));
                prop_assert_eq!(ours.get_mut(place), model.get_mut(place));
                prop_assert!(ours.capacity() >= ours.len());
            }
        }
    }
}
