//! The average size of messages, from a small sample of them.

use std::cell::Cell;

use greenroom_queue::lock::Mutex;

/// The size of a message, in bytes, until one is measured.
pub(super) const ASSUMED: u64 = 200;

/// One message in this many is measured: a measurement may walk through the whole message, and more
/// would cost too much. A prime, so that no rhythm of messages hides a size.
const SAMPLED: u32 = 61;

/// The average covers about this many of the last samples: sizes change with the time of day.
const REMEMBERED: u64 = 4_096;

/// Returns the size of a message, in bytes.
pub(super) type MessageSize<M> = Box<dyn Fn(&M) -> usize + Send + Sync>;

/// The average size of messages. A message that is not sampled costs a look at a thread-local
/// number.
pub(super) struct Sizes<M> {
    /// `None` if nothing is measured.
    size_of: Option<MessageSize<M>>,
    /// No user code runs under it.
    samples: Mutex<Samples>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Samples {
    number: u64,
    sum: u64,
}

impl Samples {
    fn add(&mut self, size: u64) {
        if self.number >= REMEMBERED {
            (self.number, self.sum) = (self.number / 2, self.sum / 2);
        }
        self.number += 1;
        self.sum = self.sum.saturating_add(size);
    }
}

impl<M> Sizes<M> {
    pub(super) fn new(size_of: Option<MessageSize<M>>) -> Self {
        Self { size_of, samples: Mutex::default() }
    }

    /// Measures a message occasionally. Runs user code.
    #[inline]
    pub(super) fn see(&self, message: &M) {
        if let Some(size_of) = &self.size_of
            && is_sampled()
        {
            let size = size_of(message) as u64;
            self.samples.lock().add(size);
        }
    }

    /// The average, if there is one.
    pub(super) fn measured(&self) -> Option<u64> {
        let samples = *self.samples.lock();
        samples.sum.checked_div(samples.number)
    }
}

/// True for the first message of a thread, and then for one in [`SAMPLED`].
fn is_sampled() -> bool {
    thread_local! {
        static SKIPPED: Cell<u32> = const { Cell::new(0) };
    }
    let left = SKIPPED.get();
    SKIPPED.set(left.checked_sub(1).unwrap_or(SAMPLED - 1));
    left == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h03_one_message_in_sixty_one_is_measured_and_the_first_of_a_thread() {
        let looks = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counter = looks.clone();
        let sizes = Sizes::new(Some(Box::new(move |size: &usize| {
            counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            *size
        })));
        assert_eq!(sizes.measured(), None);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                sizes.see(&500);
                assert_eq!(sizes.measured(), Some(500));
                (0..6_100).for_each(|_| sizes.see(&500));
            });
        });
        assert_eq!(looks.load(std::sync::atomic::Ordering::Relaxed), 101);
    }

    #[test]
    fn h03_an_average_follows_sizes_that_change() {
        let mut samples = Samples::default();
        (0..100_000).for_each(|_| samples.add(100));
        (0..20_000).for_each(|_| samples.add(1_000));
        let average = samples.sum / samples.number;
        assert!(average > 950, "{average}");
    }
}
