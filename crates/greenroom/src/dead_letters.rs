//! Kept dead letters: list, inspect, replay and remove them.
//!
//! A message that could not be handled is most often due to a fault that will be fixed: in a
//! handler, a database, or the message itself. So it waits here until an operator decides.
//!
//! ```text
//!           ┌────┬────┬─────────────┬────┬─────┐ ──remove──▶ the caller
//! pool ───▶ │ 17 │ 18 │ 21 (in use) │ 22 │ ... │ ──replay──▶ an address: accepted again, at the end
//!           └────┴────┴─────────────┴────┴─────┘             of its key's line; refused: back in its place
//!    at the bound,      └─ while it is looked at or replayed, it is out of the queue;
//!    the oldest goes       its number keeps its place
//! ```
//!
//! A letter has its message if the handler had not taken it, or the pool kept a copy while it was
//! in hand ([`keep_copies`](crate::PoolBuilder::keep_copies),
//! [`retry`](crate::PoolBuilder::retry)). By default a pool keeps none: the letter then records the
//! failure and its reason, and [`has_message`](LetterInfo::has_message) is false.
//!
//! Predicates, closures and key functions run on a letter that has been taken out. So they block no
//! other user, may use the queue themselves, and may panic: the letter returns to its place.
//!
//! # Price
//! Up to the bound, messages are kept until they are removed. A message that is
//! handled costs nothing.

use std::{marker::PhantomData, sync::Arc};

use greenroom_queue::lock::Mutex;

mod in_use;
mod info;
mod replay;
mod store;

use self::{
    in_use::InUse,
    store::{Store, own},
};
pub use self::{
    info::{Kept, LetterInfo, NoLetter},
    replay::{NotReplayed, Replayed},
};
use greenroom_queue::discard::discard;

use crate::DeadLetter;

/// The default number of letters that are kept.
pub(crate) const DEFAULT_BOUND: usize = 1_000;

/// A bounded queue of dead letters. A clone is the same queue.
///
/// ```
/// use greenroom::{DeadLetters, prelude::*};
/// # use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
/// # static MENDED: AtomicBool = AtomicBool::new(false);
/// # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = (); type Error = ();
/// # async fn handle(&mut self, _: u8, _: &mut Context<Self>) -> Result<(), ()> {
/// # if MENDED.load(SeqCst) { Ok(()) } else { Err(()) } } }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let letters = DeadLetters::default();
/// let kept = letters.clone();
/// let clerks = Pool::new(|_slot| Clerk)
///     .keep_copies() // otherwise a message that a handler has taken is gone
///     .on_dead_letter(move |letter| drop(kept.push(letter)))
///     .spawn()
///     .await?;
/// clerks.send(7).await?; // fails
/// # while letters.is_empty() { tokio::task::yield_now().await; }
/// let page = letters.list(None, 10);
/// assert_eq!(letters.inspect(page[0].id, |letter| letter.message)?, Some(7));
/// # MENDED.store(true, SeqCst);
/// // the clerks have been mended:
/// assert_eq!(letters.replay_all(&clerks).replayed, 1);
/// assert!(letters.is_empty());
/// # Ok(()) }
/// ```
pub struct DeadLetters<M, E> {
    /// Held for a few steps in a tree; no user code runs under it.
    store: Arc<Mutex<Store>>,
    of: PhantomData<Exactly<M, E>>,
}

/// Invariant in both: a value stored in erased form is taken out as the type that was put in.
type Exactly<M, E> = fn(M, E) -> (M, E);

impl<M, E> DeadLetters<M, E> {
    /// An empty queue for this many letters; 1,000 in [`default`](Self::default). A letter takes
    /// the memory of its message. 0 keeps none, but counts them.
    pub fn new(bound: usize) -> Self {
        Self { store: Arc::new(Mutex::new(Store::new(bound))), of: PhantomData }
    }

    /// Information on the letters after this one (on all, after `None`), oldest first, up to the
    /// limit. The next page begins after the last one's id, even if letters are added or removed in
    /// between.
    pub fn list(&self, after: Option<u64>, limit: usize) -> Vec<LetterInfo> {
        self.store.lock().list(after, limit)
    }

    /// How many letters are kept, those in use included.
    pub fn len(&self) -> usize {
        self.store.lock().letters.len()
    }

    /// True if none is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many letters may be kept.
    pub fn bound(&self) -> usize {
        self.store.lock().bound
    }

    /// How many letters have been dropped because the queue was at its bound.
    pub fn dropped(&self) -> u64 {
        self.store.lock().dropped
    }
}

impl<M: Send + 'static, E: Send + 'static> DeadLetters<M, E> {
    /// Adds a letter as the newest. At the bound, the oldest is returned, so that the caller can
    /// drop it where its `Drop` may run.
    pub fn push(&self, letter: DeadLetter<M, E>) -> Kept<M, E> {
        let (info, letter) = (LetterInfo::of(&letter), Box::new(letter));
        let (id, dropped) = self.store.lock().push(letter, info);
        Kept { id, dropped: dropped.and_then(own) }
    }

    /// Inspects a letter. It is in use for that time: any other access to
    /// it gets [`NoLetter::InUse`].
    ///
    /// # Errors
    /// If there is no such letter, or it is in use.
    ///
    /// # Panics
    /// If the closure panics. The letter is kept.
    pub fn inspect<T>(
        &self,
        id: u64,
        look: impl FnOnce(&DeadLetter<M, E>) -> T,
    ) -> Result<T, NoLetter> {
        self.take_out(id)?.letter.as_ref().map(look).ok_or(NoLetter::InUse)
    }

    /// Takes a letter away.
    ///
    /// # Errors
    /// If there is no such letter, or it is in use.
    pub fn remove(&self, id: u64) -> Result<DeadLetter<M, E>, NoLetter> {
        let letter = self.store.lock().remove(id)?;
        own(letter).ok_or(NoLetter::Unknown)
    }

    /// Takes all letters away, oldest first, except those in use.
    pub fn remove_all(&self) -> Vec<DeadLetter<M, E>> {
        let letters = self.store.lock().remove_all();
        letters.into_iter().filter_map(own).collect()
    }

    fn take_out(&self, id: u64) -> Result<InUse<'_, M, E>, NoLetter> {
        let out = self.store.lock().take_out(id)?;
        Ok(InUse::new(&self.store, out))
    }
}

impl<M, E> Default for DeadLetters<M, E> {
    fn default() -> Self {
        Self::new(DEFAULT_BOUND)
    }
}

impl_clone!([M, E] DeadLetters<M, E>: store, of);

impl_debug!([M, E] DeadLetters<M, E>, |this| len: this.len(), dropped: this.dropped());

impl Drop for Store {
    /// The `Drop` of a message may panic, wherever the last clone happens to be dropped.
    fn drop(&mut self) {
        self.remove_all().into_iter().for_each(discard);
    }
}
