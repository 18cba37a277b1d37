//! A queue in blocks, so that growing it never copies its items while a lock is held.
//!
//! Most blocks hold items as they are taken out. A run is a deque that a sender filled: it becomes
//! a block as it lies there, and its messages are made items when they are taken out, so sending
//! moves none of them.

use std::{
    collections::{VecDeque, vec_deque},
    slice,
};

use super::stamp::Stamp;

/// Entries per block, if they are not large: enough that a block is allocated once in 64 pushes,
/// and few enough that an almost empty queue wastes little.
const BLOCK: usize = 64;

/// A block of large entries has fewer, at least the minimum, so that it is no longer than this: the
/// memory of an entry that was taken out is still in the caches when the next one is put there.
const BYTES_OF_A_BLOCK: usize = 512 * 1024;

/// So many entries at least: what a queue begins with.
const FEW: usize = 4;

/// Entries per block, of so many bytes each.
const fn entries_per_block(bytes: usize) -> usize {
    match BYTES_OF_A_BLOCK.checked_div(bytes) {
        Some(..FEW) => FEW,
        Some(entries @ ..BLOCK) => entries,
        _ => BLOCK,
    }
}

/// An empty queue with room for more blocks than this gives the memory back.
const KEPT_WHEN_EMPTY: usize = 64;

/// Emptied runs that are kept for senders, which want one for each that they leave.
const SPARE_RUNS: usize = 4;

/// An item that may come from a run.
pub trait OfRun {
    /// What lies in a run.
    type Message;

    /// The item of a message that is taken out of its run.
    fn of_run(message: Self::Message, stamp: Stamp) -> Self;
}

/// Messages that were sent together.
pub struct Run<M> {
    /// In the order in which they were sent.
    pub messages: VecDeque<M>,
    /// The stamp of all but one.
    pub stamp: Stamp,
    /// How many are left from that one on, itself included, and its stamp: 0 for none.
    pub sample: (usize, Stamp),
}

impl<M> Run<M> {
    const fn new() -> Self {
        Self { messages: VecDeque::new(), stamp: Stamp::NONE, sample: (0, Stamp::NONE) }
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<(M, Stamp)> {
        let left = self.messages.len();
        let stamp = if left == self.sample.0 { self.sample.1 } else { self.stamp };
        Some((self.messages.pop_front()?, stamp))
    }
}

enum Block<T: OfRun> {
    Items(VecDeque<T>),
    Run(Run<T::Message>),
}

impl<T: OfRun> Block<T> {
    fn len(&self) -> usize {
        match self {
            Self::Items(items) => items.len(),
            Self::Run(run) => run.messages.len(),
        }
    }
}

/// A first-in first-out queue of fixed-size blocks: the ones being emptied, full ones, and the one
/// being filled. In the order of its fields: what each message needs comes first.
#[repr(C)]
pub struct BlockQueue<T: OfRun> {
    len: usize,
    /// Popped from.
    front: VecDeque<T>,
    /// Pushed to.
    back: Vec<T>,
    /// Popped from when the front is empty.
    run: Run<T::Message>,
    full: VecDeque<Block<T>>,
    /// An emptied block, kept for the next push that needs one.
    spare: Vec<T>,
    spare_runs: Vec<VecDeque<T::Message>>,
    /// Of a new block, so many entries are written to before they are filled, because another core
    /// has them in its caches.
    elsewhere: usize,
}

impl<T: OfRun> BlockQueue<T> {
    const BLOCK: usize = entries_per_block(size_of::<T>());

    /// An empty queue, which holds no memory.
    pub const fn new() -> Self {
        Self {
            front: VecDeque::new(),
            run: Run::new(),
            full: VecDeque::new(),
            back: Vec::new(),
            spare: Vec::new(),
            spare_runs: Vec::new(),
            elsewhere: 0,
            len: 0,
        }
    }

    /// How many items there are, those of runs included.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there is none.
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

    /// Makes room for one more item. A function of its own, called before the item is in hand: an
    /// item in hand would have to be put aside for a call that is hardly ever made.
    #[inline(always)]
    pub fn make_room(&mut self) {
        if self.back.len() == self.back.capacity() {
            self.extend_back();
        }
    }

    /// As `push_back`, for an item that is made once there is room: it is moved once, from its
    /// source into its place.
    #[inline(always)]
    pub fn push_made(&mut self, make: impl FnOnce() -> T) {
        self.make_room();
        self.len += 1;
        // Not `push`, which would have the item in hand while it asks for room.
        self.back.extend(std::iter::once_with(make));
    }

    /// As `push_back`, if there is room.
    #[inline(always)]
    pub fn push_into_room(&mut self, item: T) {
        self.len += 1;
        self.back.push(item);
    }

    #[cold]
    #[inline(never)]
    fn extend_back(&mut self) {
        match self.back.len() {
            len if len >= Self::BLOCK => self.close_back(),
            0 if self.elsewhere > 0 && self.spare.capacity() > 0 => self.back = self.block(),
            len => self.back.reserve_exact(len.max(FEW).min(Self::BLOCK - len)),
        }
    }

    fn close_back(&mut self) {
        let empty = self.block();
        let full = VecDeque::from(std::mem::replace(&mut self.back, empty));
        if self.has_no_block() {
            self.spare = std::mem::replace(&mut self.front, full).into();
        } else {
            self.full.push_back(Block::Items(full));
        }
    }

    /// True if an item pushed now is the next to be taken out.
    fn has_no_block(&self) -> bool {
        self.front.is_empty() && self.run.messages.is_empty() && self.full.is_empty()
    }

    /// Appends messages in their own deque. Returns an empty deque in exchange.
    pub fn push_run(&mut self, run: Run<T::Message>) -> VecDeque<T::Message> {
        self.len += run.messages.len();
        if !self.back.is_empty() {
            self.close_back();
        }
        if self.has_no_block() {
            return std::mem::replace(&mut self.run, run).messages;
        }
        self.full.push_back(Block::Run(run));
        self.spare_runs.pop().unwrap_or_default()
    }

    /// Puts an item before all others.
    pub fn push_front(&mut self, item: T) {
        self.len += 1;
        if self.front.len() >= Self::BLOCK {
            if !self.run.messages.is_empty() {
                let run = std::mem::replace(&mut self.run, Run::new());
                self.full.push_front(Block::Run(run));
            }
            let empty = VecDeque::from(self.block());
            let full = std::mem::replace(&mut self.front, empty);
            self.full.push_front(Block::Items(full));
        }
        self.front.push_front(item);
    }

    /// Takes out the next message if it belongs to the run that is being emptied.
    #[inline(always)]
    pub fn pop_of_run(&mut self) -> Option<(T::Message, Stamp)> {
        if !self.is_in_run() {
            return None;
        }
        // As in `pop_front`.
        self.len -= 1;
        self.run.pop()
    }

    /// True if the next message to be taken out belongs to the run that is being emptied.
    #[inline(always)]
    pub fn is_in_run(&self) -> bool {
        self.front.is_empty() && !self.run.messages.is_empty()
    }

    /// Takes out the next item.
    #[inline(always)]
    pub fn pop_front(&mut self) -> Option<T> {
        if self.front.is_empty() {
            if self.len == 0 {
                return None;
            }
            self.next_block();
        }
        // Before the item is in hand: writes in between would have to go around it.
        self.len -= 1;
        self.front.pop_front()
    }

    /// Takes out the only item, if it has just been pushed to an empty queue.
    #[inline]
    pub fn pop_only(&mut self) -> Option<T> {
        if self.len != 1 {
            return None;
        }
        let only = self.back.pop()?;
        self.len = 0;
        Some(only)
    }

    /// Moves all items of another queue behind those here. No item is copied.
    pub fn append(&mut self, other: &mut Self) {
        if self.is_empty() {
            return std::mem::swap(self, other);
        }
        let items = Block::Items(std::mem::take(&mut self.back).into());
        self.push_block(items);
        self.push_block(Block::Items(std::mem::take(&mut other.front)));
        self.push_block(Block::Run(std::mem::replace(&mut other.run, Run::new())));
        self.full.append(&mut other.full);
        std::mem::swap(&mut self.back, &mut other.back);
        self.len += std::mem::take(&mut other.len);
    }

    fn push_block(&mut self, block: Block<T>) {
        if block.len() > 0 {
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

    /// Takes out the first of the next `most` items that matches; no message of a run does. The
    /// others keep their places.
    pub fn remove_near(&mut self, most: usize, mut is_such: impl FnMut(&T) -> bool) -> Option<T> {
        for (place, item) in self.iter().take(most).enumerate() {
            if is_such(item) {
                return self.remove(place);
            }
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
        for block in &mut self.full {
            let Block::Items(items) = block else { continue };
            if place < items.len() {
                return items.remove(place);
            }
            place -= items.len();
        }
        Some(self.back.remove(place))
    }

    /// From the front to the back, without those of runs.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter { block: self.front.iter(), full: self.full.iter(), back: self.back.iter() }
    }

    /// The stamp of the first run.
    pub fn first_run(&self) -> Option<Stamp> {
        if !self.run.messages.is_empty() {
            return Some(self.run.stamp);
        }
        for block in &self.full {
            if let Block::Run(run) = block
                && !run.messages.is_empty()
            {
                return Some(run.stamp);
            }
        }
        None
    }

    /// Takes out the first item that is such a one. Those before it are looked at and stay.
    pub fn pop_first(&mut self, is_such: impl Fn(&T) -> bool) -> Option<T> {
        let (mut others, mut found) = (Vec::new(), None);
        while found.is_none()
            && let Some(item) = self.pop_front()
        {
            match is_such(&item) {
                true => found = Some(item),
                false => others.push(item),
            }
        }
        while let Some(item) = others.pop() {
            self.push_front(item);
        }
        found
    }

    /// The front is empty and there is more: puts the next item there, or a block of them.
    #[cold]
    #[inline(never)]
    fn next_block(&mut self) {
        if self.run.messages.is_empty() {
            self.open_next();
        }
        if let Some((message, stamp)) = self.run.pop() {
            self.front.push_front(T::of_run(message, stamp));
        }
    }

    /// Goes on to the next block when the front and the run are empty.
    fn open_next(&mut self) {
        // A block that has lost its contents is of no use.
        let full = std::iter::from_fn(|| self.full.pop_front()).find(|block| block.len() > 0);
        match full {
            Some(Block::Items(full)) => self.open(full),
            Some(Block::Run(run)) => {
                let emptied = std::mem::replace(&mut self.run, run).messages;
                if emptied.capacity() > 0 && self.spare_runs.len() < SPARE_RUNS {
                    self.spare_runs.push(emptied);
                }
            }
            None => {
                let back = std::mem::take(&mut self.back);
                self.open(back.into());
            }
        }
        if self.full.is_empty() && self.full.capacity() > KEPT_WHEN_EMPTY {
            self.full = VecDeque::new();
        }
    }

    fn open(&mut self, block: VecDeque<T>) {
        let emptied = std::mem::replace(&mut self.front, block);
        self.keep(emptied.into());
    }

    /// How many full blocks the queue has room for.
    pub fn room(&self) -> usize {
        self.full.capacity()
    }

    /// An empty block. Only the first one grows with its entries, so that a short queue takes
    /// little memory.
    fn block(&mut self) -> Vec<T> {
        let block = match self.spare.capacity() {
            0 => Vec::with_capacity(Self::BLOCK),
            _ => std::mem::take(&mut self.spare),
        };
        match self.elsewhere {
            0 => block,
            most => fetched(block, most),
        }
    }

    /// The queue, which is empty, was emptied on the senders' thread.
    pub fn lies_here(&mut self) {
        self.elsewhere = 0;
    }

    /// The queue is empty, and so many of its items were taken out on another thread than the
    /// senders'. As many are expected again.
    pub fn lies_elsewhere(&mut self, items: usize) {
        debug_assert!(self.is_empty());
        self.elsewhere = items.min(Self::BLOCK);
        // The next push is to begin a block.
        if self.back.capacity() > 0 {
            self.spare = std::mem::take(&mut self.back);
        }
    }

    fn keep(&mut self, emptied: Vec<T>) {
        match self.back.capacity() {
            0 => self.back = emptied,
            _ => self.spare = emptied,
        }
    }
}

/// The items of a queue, block after block. Written out: as a chain of iterators it would be ten
/// times as much code for each type of items.
pub struct Iter<'a, T: OfRun> {
    block: vec_deque::Iter<'a, T>,
    full: vec_deque::Iter<'a, Block<T>>,
    back: slice::Iter<'a, T>,
}

impl<'a, T: OfRun> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        loop {
            if let Some(item) = self.block.next() {
                return Some(item);
            }
            match self.full.next() {
                Some(Block::Items(items)) => self.block = items.iter(),
                Some(Block::Run(_)) => {}
                None => return self.back.next(),
            }
        }
    }
}

/// Writes to the first entries of an empty block, so that all their cache lines come over from
/// another core together. Otherwise each push would wait for its own line: the lock that is taken
/// next lets nothing pass before earlier writes.
fn fetched<T>(block: Vec<T>, most: usize) -> Vec<T> {
    if size_of::<Option<T>>() != size_of::<T>() {
        return block;
    }
    let most = most.min(block.capacity());
    // The memory stays the same in both directions: the standard library collects in place if sizes
    // are the same.
    let mut entries: Vec<Option<T>> = block.into_iter().map(Some).collect();
    entries.resize_with(most, || None);
    std::hint::black_box(&mut entries);
    entries.into_iter().map_while(|entry| entry).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::{BLOCK, BlockQueue, OfRun, Run, entries_per_block, fetched};
    use crate::stamp::Stamp;

    impl OfRun for usize {
        type Message = Self;

        fn of_run(message: Self, _stamp: Stamp) -> Self {
            message
        }
    }

    fn run(messages: impl IntoIterator<Item = usize>) -> Run<usize> {
        let messages = messages.into_iter().collect();
        Run { messages, stamp: Stamp::NONE, sample: (0, Stamp::NONE) }
    }

    #[test]
    fn what_each_message_needs_comes_first() {
        type Numbers = BlockQueue<usize>;
        let [front, back] =
            [std::mem::offset_of!(Numbers, back), std::mem::offset_of!(Numbers, run)];
        assert_eq!((front, back), (40, 64), "the ends of the first and of the last block");
    }

    #[test]
    fn a_block_that_is_fetched_is_the_same_and_empty() {
        let block: Vec<Box<u8>> = Vec::with_capacity(BLOCK);
        let place = block.as_ptr();
        let block = fetched(block, BLOCK);
        assert_eq!((block.as_ptr(), block.len(), block.capacity()), (place, 0, BLOCK));
        assert_eq!(fetched(Vec::<usize>::with_capacity(BLOCK), BLOCK).capacity(), BLOCK);
        assert_eq!(fetched(Vec::<Box<u8>>::new(), BLOCK).capacity(), 0);
    }

    /// As large as an `Option` of it, as entries are: blocks of these are fetched.
    impl OfRun for Box<usize> {
        type Message = Self;

        fn of_run(message: Self, _stamp: Stamp) -> Self {
            message
        }
    }

    #[test]
    fn items_in_blocks_that_are_fetched_come_out_in_their_order() {
        let mut queue = BlockQueue::new();
        for items in [1, BLOCK - 1, BLOCK, 3 * BLOCK + 1, 2] {
            (0..items).for_each(|n| queue.push_back(Box::new(n)));
            let taken: Vec<usize> = std::iter::from_fn(|| queue.pop_front()).map(|n| *n).collect();
            assert!(taken.into_iter().eq(0..items));
            queue.lies_elsewhere(items);
        }
    }

    #[test]
    fn the_next_push_to_a_queue_that_was_emptied_elsewhere_begins_a_block() {
        let mut queue = BlockQueue::new();
        (0..BLOCK * 3).for_each(|n| queue.push_back(n));
        while queue.pop_front().is_some() {}
        assert!(queue.back.capacity() > 0);
        queue.lies_elsewhere(1_000);
        assert_eq!(
            (queue.elsewhere, queue.back.capacity()),
            (BLOCK, 0),
            "the next push has to look"
        );
        queue.push_back(1);
        assert_eq!((queue.back.capacity(), queue.pop_front()), (BLOCK, Some(1)));
    }

    #[test]
    fn a_queue_of_a_few_takes_little_also_where_it_was_emptied_elsewhere() {
        let mut queue = BlockQueue::new();
        for n in 0..2 {
            queue.lies_elsewhere(2);
            queue.push_back(n);
            assert!(queue.back.capacity() < BLOCK / 2);
            assert_eq!(queue.pop_only(), Some(n));
        }
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

    /// Of 64 KiB.
    struct Large([usize; 8_192]);

    impl OfRun for Large {
        type Message = Self;

        fn of_run(message: Self, _stamp: Stamp) -> Self {
            message
        }
    }

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
                    8 if n % 8 == 2 && ours.is_empty() => ours.lies_elsewhere(n % 100),
                    8 if n % 8 == 3 && ours.is_empty() => ours.lies_here(),
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

        #[test]
        fn runs_keep_their_place_among_items(steps in prop::collection::vec(0u8..10, 0..2000)) {
            let (mut ours, mut model) = (BlockQueue::new(), VecDeque::new());
            let (mut later, mut model_of_later) = (BlockQueue::new(), VecDeque::new());
            let such = |item: &usize| item.is_multiple_of(5);
            for (n, step) in steps.into_iter().enumerate() {
                let numbers = || (1..=n % 20).map(move |place| 100 * n + place);
                match step {
                    0 => { ours.push_front(n); model.push_front(n); }
                    1 if n % 4 == 0 => {
                        ours.append(&mut later);
                        model.append(&mut model_of_later);
                    }
                    1 => {
                        let expected = model.iter().position(such).and_then(|at| model.remove(at));
                        prop_assert_eq!(ours.pop_first(such), expected);
                    }
                    2 => { later.push_run(run(numbers())); model_of_later.extend(numbers()); }
                    3 => { ours.push_run(run(numbers())); model.extend(numbers()); }
                    4 => { ours.push_back(n); model.push_back(n); }
                    5 => { later.push_back(n); model_of_later.push_back(n); }
                    6 if n % 3 == 0 => prop_assert_eq!(ours.front(), model.front()),
                    7 => {
                        if let Some((message, _)) = ours.pop_of_run() {
                            prop_assert_eq!(Some(message), model.pop_front());
                        }
                    }
                    _ => prop_assert_eq!(ours.pop_front(), model.pop_front()),
                }
                prop_assert_eq!(ours.len(), model.len());
            }
            let left: Vec<_> = std::iter::from_fn(|| ours.pop_front()).collect();
            prop_assert!(left.iter().eq(&model), "{left:?} {model:?}");
        }
    }

    #[test]
    fn a_run_says_when_it_was_sent_and_which_of_it_is_measured() {
        let (sent, measured) = (Stamp::coarse(7), Stamp::sampled(8, 1));
        let mut queue = BlockQueue::<usize>::new();
        assert_eq!(queue.first_run(), None);
        queue.push_run(Run { stamp: sent, sample: (2, measured), ..run([1, 2, 3]) });
        queue.push_run(Run { stamp: Stamp::coarse(9), ..run([4]) });
        assert_eq!(queue.first_run(), Some(sent));
        let popped: Vec<_> = std::iter::from_fn(|| queue.pop_of_run()).collect();
        assert_eq!(popped, [(1, sent), (2, measured), (3, sent)]);
        assert_eq!(queue.first_run(), Some(Stamp::coarse(9)));
        assert_eq!((queue.pop_front(), queue.first_run()), (Some(4), None));
    }

    #[test]
    fn senders_get_emptied_runs_back() {
        let mut queue = BlockQueue::<usize>::new();
        let mut rooms = Vec::new();
        for _ in 0..5 {
            for _ in 0..2 {
                rooms.push(queue.push_run(run(0..20)).capacity());
            }
            while queue.pop_front().is_some() {}
        }
        assert_eq!(rooms.iter().filter(|room| **room == 0).count(), 2, "{rooms:?}");
    }
}
