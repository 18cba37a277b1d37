//! Whether messages are being withdrawn from a pool: by one thread at a time.
//!
//! What is withdrawn is chosen by user code, which runs under no lock. So messages are out of their places meanwhile, and whoever
//! must not miss them waits until they are back: without a lock, because the user code may come to the pool itself. On the
//! thread that withdraws nobody waits for that.

use crate::sync::{AtomicUsize, Ordering, this_thread, yield_now};

/// No thread has this token.
const NOBODY: usize = 0;

/// Who withdraws messages.
#[derive(Debug)]
pub(crate) struct Withdrawal(AtomicUsize);

/// Until it is dropped, nobody else withdraws messages.
#[derive(Debug)]
pub(crate) struct Begun<'a>(&'a Withdrawal);

impl Withdrawal {
    pub(crate) const fn new() -> Self {
        Self(AtomicUsize::new(NOBODY))
    }

    /// Begins once no other thread withdraws any more. None where this one does.
    pub(crate) fn begin(&self) -> Option<Begun<'_>> {
        let me = this_thread();
        loop {
            match self.0.compare_exchange(NOBODY, me, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return Some(Begun(self)),
                Err(by) if by == me => return None,
                Err(_) => yield_now(),
            }
        }
    }

    /// True while this thread does.
    pub(crate) fn is_here(&self) -> bool {
        self.0.load(Ordering::SeqCst) == this_thread()
    }

    /// True while any does.
    pub(crate) fn is_on(&self) -> bool {
        self.0.load(Ordering::SeqCst) != NOBODY
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.0.0.store(NOBODY, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_withdraws_and_it_only_once() {
        let withdrawal = Withdrawal::new();
        let begun = withdrawal.begin();
        assert!(begun.is_some() && withdrawal.begin().is_none() && withdrawal.is_here());
        std::thread::scope(|scope| {
            let seen = scope.spawn(|| (withdrawal.is_on(), withdrawal.is_here()));
            assert!(matches!(seen.join(), Ok((true, false))));
            let other = scope.spawn(|| withdrawal.begin().is_some());
            drop(begun);
            assert!(matches!(other.join(), Ok(true)), "it waits for its turn");
        });
        assert!(withdrawal.begin().is_some());
    }
}
