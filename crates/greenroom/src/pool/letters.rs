//! A pool's dead letters, with the way back into the pool.

use std::ops::Deref;

use crate::{
    Address, DeadLetters,
    dead_letters::{LetterInfo, NotReplayed, Replayed},
};

/// The dead letters of a pool, with its address for replays. It counts as an address: it keeps the
/// pool running.
///
/// Letters stay after the pool has stopped; they can then be inspected and removed. A letter holds
/// its message, unless the handler had taken it and the pool [keeps no
/// copies](crate::PoolBuilder::keep_copies), as by default. If the message holds an address of its
/// own pool, it keeps the pool running for as long as the letter is kept.
///
/// ```
/// # use greenroom::prelude::*;
/// # use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
/// # static MENDED: AtomicBool = AtomicBool::new(false);
/// # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = (); type Error = ();
/// # async fn handle(&mut self, _: u8, _: &mut Context<Self>) -> Result<(), ()> {
/// # if MENDED.load(SeqCst) { Ok(()) } else { Err(()) } } }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clerks = Pool::new(|_slot| Clerk).keep_copies().dead_letters(100).spawn().await?;
/// clerks.send(7).await?; // fails
/// let letters = clerks.dead_letters();
/// # while letters.is_empty() { tokio::task::yield_now().await; }
/// let page = letters.list(None, 10);
/// assert_eq!(letters.inspect(page[0].id, |letter| letter.message)?, Some(7));
/// # MENDED.store(true, SeqCst);
/// // the clerks have been mended:
/// letters.replay(page[0].id)?;
/// assert!(letters.is_empty());
/// # Ok(()) }
/// ```
pub struct PoolDeadLetters<M, R, E> {
    letters: DeadLetters<M, E>,
    address: Address<M, R, E>,
}

impl<M: Send + 'static, R, E: Send + 'static> PoolDeadLetters<M, R, E> {
    pub(super) fn new(letters: DeadLetters<M, E>, address: Address<M, R, E>) -> Self {
        Self { letters, address }
    }

    /// The queue alone, which keeps no pool running; for replaying to other addresses,
    /// for instance.
    pub fn queue(&self) -> &DeadLetters<M, E> {
        &self.letters
    }

    /// Sends the message of a letter to the pool again, without waiting: a new acceptance, at the
    /// end of its key's line.
    ///
    /// # Errors
    /// Why it was not replayed. The letter stays in its place.
    ///
    /// # Panics
    /// If the key function of the pool panics. The letter stays in its place.
    pub fn replay(&self, id: u64) -> Result<(), NotReplayed> {
        self.letters.replay(id, &self.address)
    }

    /// Replays the letters that the predicate selects, oldest first: those of one key, for
    /// instance.
    ///
    /// # Panics
    /// If the predicate or the key function of the pool panics. Letters that were not accepted stay
    /// in their places.
    pub fn replay_where(&self, choose: impl FnMut(&LetterInfo, Option<&M>) -> bool) -> Replayed {
        self.letters.replay_where(choose, &self.address)
    }

    /// Replays all letters, oldest first, as far as there is room.
    ///
    /// # Panics
    /// If the key function of the pool panics. Letters that were not accepted stay in their places.
    pub fn replay_all(&self) -> Replayed {
        self.letters.replay_all(&self.address)
    }
}

/// Listing, inspecting and removing are those of the queue.
impl<M, R, E> Deref for PoolDeadLetters<M, R, E> {
    type Target = DeadLetters<M, E>;

    fn deref(&self) -> &DeadLetters<M, E> {
        &self.letters
    }
}

impl_clone!([M, R, E] PoolDeadLetters<M, R, E>: letters, address);

impl_debug!([M, R, E] PoolDeadLetters<M, R, E>, |this| letters: this.letters);
