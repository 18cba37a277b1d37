//! What an operator does: with keys that are parked, and with messages that wait.

use std::sync::Arc;

use super::{Numbers, PoolOf, message::Keyed};
use crate::pool::core::parked::{parked_messages, release_key, remove_key, replay_key};
use crate::{
    checker::{JoinHandle, spawn, yield_now},
    pool::core::sweep::{Sieve, sweep},
};

impl<K: Keyed> PoolOf<K> {
    /// Waits until a key is parked.
    pub(crate) fn wait_for_parked(&self) {
        while parked_messages(&self.core) == 0 {
            yield_now();
        }
    }

    /// Lets a parked key go on without the message that has failed.
    pub(crate) fn release(&self, key: u32) {
        assert!(release_key(&self.core, &K::from(key), None));
        let letters = std::mem::take(&mut *self.core.letters.lock());
        assert_eq!(letters.len(), 1, "what has failed is a dead letter");
        let mut ledger = self.ledger();
        ledger.handled.extend(letters);
        let over = ledger.done() == self.expected;
        drop(ledger);
        if over {
            self.core.end();
        }
    }

    /// Lets a parked key go on with the message that has failed.
    pub(crate) fn replay(&self, key: u32) {
        assert!(replay_key(&self.core, &K::from(key), None));
    }

    /// Takes the line of a parked key.
    pub(crate) fn remove(&self, key: u32) -> Vec<u32> {
        let line = remove_key(&self.core, &K::from(key), None).expect("the key is parked");
        let mut ledger = self.ledger();
        ledger.handled.extend(&line);
        let over = ledger.done() == self.expected;
        drop(ledger);
        if over {
            self.core.end();
        }
        line
    }

    /// Withdraws what waits in the shards and is chosen: the steps of the product's `withdraw`.
    /// Says which messages those were.
    pub(crate) fn withdraw(&self, mut is_such: impl FnMut(&u32) -> bool) -> Vec<u32> {
        let mut sieve = Sieve::<Numbers, K>::new(&mut is_such);
        for index in 0..self.core.queue.shards.len() {
            sweep(&self.core, index, &mut sieve);
        }
        let mut ledger = self.ledger();
        let numbers: Vec<_> = sieve.withdrawn.iter().map(|entry| entry.message).collect();
        for number in &numbers {
            assert!(ledger.handled.insert(*number), "nothing is withdrawn that is handled");
        }
        let over = !numbers.is_empty() && ledger.done() == self.expected;
        drop(ledger);
        if over {
            self.core.end();
        }
        self.core.serve_waiters();
        numbers
    }

    /// Who withdraws these, so often.
    pub(crate) fn withdrawer(
        self: &Arc<Self>,
        times: usize,
        numbers: &'static [u32],
    ) -> JoinHandle<()> {
        let pool = self.clone();
        spawn(move || {
            for _ in 0..times {
                pool.withdraw(|number| {
                    // Others have their turn while user code chooses.
                    yield_now();
                    numbers.contains(number)
                });
            }
        })
    }
}
