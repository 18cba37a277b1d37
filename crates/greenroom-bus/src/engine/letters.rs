//! Dead letters on their way to their store.
//!
//! A worker cannot make more of them than the events it has in hand, but an input can: of lines that are no events, or
//! of types that nobody handles, as many as it reads. Inputs therefore pause while too many letters are not stored.

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::ledger::Ledger;
use crate::{
    dead_letter::Reason,
    settlement::{Ack, Refusal, Settle, Settled},
};

/// With this many letters not yet stored, inputs pause: as many as may wait beside full pools.
const LETTERS: usize = 10_000;

/// Or with this many bytes in them: a few of the largest lines that a source lets through.
const BYTES: usize = 64 << 20;

/// Letters that were handed to the store, and are neither stored nor refused.
#[derive(Debug, Default)]
pub(crate) struct Letters {
    count: AtomicUsize,
    bytes: AtomicUsize,
    /// Letters that could not be stored.
    lost: AtomicU64,
    /// Told each time one of the two falls below its bound.
    freed: Notify,
}

impl Letters {
    /// Letters that are not stored yet.
    pub(crate) fn open(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Letters that could not be stored.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    fn has_room(&self) -> bool {
        self.count.load(Ordering::Acquire) < LETTERS && self.bytes.load(Ordering::Acquire) < BYTES
    }

    /// Waits until there is room for more. What is then read in one batch may exceed the bounds.
    ///
    /// # Cancel safety
    /// A dropped future has done nothing.
    pub(crate) async fn room(&self) {
        while !self.has_room() {
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            if !self.has_room() {
                freed.await;
            }
        }
    }

    fn leave(&self, bytes: usize) {
        let fewer = self.count.fetch_sub(1, Ordering::AcqRel) == LETTERS;
        let before = self.bytes.fetch_sub(bytes, Ordering::AcqRel);
        if fewer || (before >= BYTES && before - bytes < BYTES) {
            self.freed.notify_waiters();
        }
    }
}

/// The settlement of a letter. Only a letter that was stored counts as one, and settles its event.
pub(crate) struct LetterTicket {
    ledger: Arc<Ledger>,
    reason: Reason,
    /// The place of the pool that the event was for, where it reached one.
    pool: Option<usize>,
    bytes: usize,
    /// The event's own settlement, until the letter has its outcome.
    event: Mutex<Option<Ack>>,
}

impl LetterTicket {
    /// What the store is to confirm in place of the event's settlement.
    pub(crate) fn ack(
        ledger: &Arc<Ledger>,
        reason: Reason,
        pool: Option<usize>,
        bytes: usize,
        event: Ack,
    ) -> Ack {
        ledger.letters.count.fetch_add(1, Ordering::AcqRel);
        ledger.letters.bytes.fetch_add(bytes, Ordering::AcqRel);
        let event = Mutex::new(Some(event));
        Ack::new(Self { ledger: ledger.clone(), reason, pool, bytes, event })
    }
}

impl Settle for LetterTicket {
    fn settled(&self, how: Settled) {
        self.ledger.letters.leave(self.bytes);
        let Some(event) = self.event.lock().take() else { return };
        if !how.is_acknowledged() {
            self.ledger.letters.lost.fetch_add(1, Ordering::Relaxed);
            return event.refuse(Refusal::NotStored);
        }
        self.ledger.count_letter(self.reason, self.pool);
        event.confirm();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(ledger: &Arc<Ledger>, bytes: usize) -> Ack {
        LetterTicket::ack(ledger, Reason::Malformed, None, bytes, Ack::detached())
    }

    #[tokio::test(start_paused = true)]
    async fn d03_there_is_no_room_while_too_many_letters_are_not_stored() {
        let ledger = Arc::new(Ledger::new(0));
        let mut open: Vec<Ack> = (0..LETTERS).map(|_| letter(&ledger, 1)).collect();
        let waiter = ledger.clone();
        let waits = tokio::spawn(async move { waiter.letters.room().await });
        tokio::task::yield_now().await;
        assert!(!waits.is_finished());
        open.pop().unwrap().confirm();
        waits.await.unwrap();
        drop(open);
        assert!(ledger.letters.has_room());
    }

    #[tokio::test(start_paused = true)]
    async fn d03_nor_while_they_are_too_large() {
        let ledger = Arc::new(Ledger::new(0));
        let (large, small) = (letter(&ledger, BYTES), letter(&ledger, 1));
        let waiter = ledger.clone();
        let waits = tokio::spawn(async move { waiter.letters.room().await });
        small.confirm();
        tokio::task::yield_now().await;
        assert!(!waits.is_finished());
        large.refuse(Refusal::NotStored);
        waits.await.unwrap();
    }

    #[test]
    fn g08_only_a_stored_letter_counts_by_its_reason() {
        let ledger = Arc::new(Ledger::new(1));
        LetterTicket::ack(&ledger, Reason::PoolFull, Some(0), 0, Ack::detached()).confirm();
        LetterTicket::ack(&ledger, Reason::Malformed, None, 0, Ack::detached())
            .refuse(Refusal::NotStored);
        assert_eq!(*ledger.reasons.lock(), [("pool_full", 1)].into());
        assert_eq!(ledger.letters_of_pool(0), 1);
        assert_eq!((ledger.letters.open(), ledger.letters.lost()), (0, 1));
    }
}
