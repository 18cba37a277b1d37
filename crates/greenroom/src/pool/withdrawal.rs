//! Whether messages are being withdrawn from a pool: by one thread at a time.
//!
//! User code selects messages to withdraw, and runs under no lock. So messages are out of their
//! places during that time, and an operation that must not miss them waits until they are back:
//! without a lock, because the user code may call the pool itself. The withdrawing thread itself
//! never waits for that.
//!
//! There is one list for the whole process, because hardly any pool ever needs it, and there are
//! many actors.

use std::thread::yield_now;

use greenroom_queue::lock::Mutex;
use greenroom_queue::sync::this_thread;

/// The pools that messages are being withdrawn from, with the thread of each.
static WITHDRAWALS: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// The withdrawal from the pool with this identity, if there is one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Withdrawal(pub(crate) usize);

/// Until it is dropped, no other thread withdraws messages from this pool.
#[derive(Debug)]
pub(crate) struct Begun(usize);

impl Withdrawal {
    /// Begins once no other thread withdraws. `None` if this thread already does.
    pub(crate) fn begin(self) -> Option<Begun> {
        let me = this_thread();
        loop {
            let mut withdrawals = WITHDRAWALS.lock();
            match by(&withdrawals, self.0) {
                None => {
                    withdrawals.push((self.0, me));
                    return Some(Begun(self.0));
                }
                Some(by) if by == me => return None,
                Some(_) => {}
            }
            drop(withdrawals);
            yield_now();
        }
    }

    /// True while this thread withdraws.
    pub(crate) fn is_here(self) -> bool {
        by(&WITHDRAWALS.lock(), self.0) == Some(this_thread())
    }

    /// True while any thread withdraws.
    pub(crate) fn is_on(self) -> bool {
        by(&WITHDRAWALS.lock(), self.0).is_some()
    }
}

/// The thread that withdraws from this pool.
fn by(withdrawals: &[(usize, usize)], pool: usize) -> Option<usize> {
    withdrawals.iter().find(|(of, _)| *of == pool).map(|(_, by)| *by)
}

impl Drop for Begun {
    fn drop(&mut self) {
        WITHDRAWALS.lock().retain(|(of, _)| *of != self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_withdraws_from_a_pool_and_it_only_once() {
        // There is no pool with these identities.
        let (withdrawal, another) = (Withdrawal(1), Withdrawal(2));
        let begun = withdrawal.begin();
        assert!(begun.is_some() && withdrawal.begin().is_none() && withdrawal.is_here());
        assert!(another.begin().is_some() && !another.is_on());
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
