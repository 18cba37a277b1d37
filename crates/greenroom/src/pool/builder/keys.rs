//! How many messages may wait behind one key, and the fate of a key whose message fails for good.

use std::hash::Hash;

use greenroom_queue::backlog::KeyBounds;

use super::PoolBuilder;
use crate::{Actor, FinalAction, SpawnError, size::check_range};

/// One key gets one part in this many of the capacity by default.
const SHARE_OF_A_KEY: usize = 4;

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> PoolBuilder<A, K> {
    /// Replaces the failure policy's final actions: if no further attempt is made, `finally` takes
    /// the place of dead letters and of errors that are given back. [Keeps
    /// copies](Self::keep_copies), so that [`FinalAction::ParkKey`] has a message to wait with.
    ///
    /// ```
    /// # use greenroom::{CallError, FinalAction, prelude::*};
    /// # struct Till; impl Actor for Till { type Message = (u32, i64); type Reply = (); type Error = &'static str;
    /// # async fn handle(&mut self, (_, cents): (u32, i64), _: &mut Context<Self>) -> Result<(), &'static str> {
    /// #     if cents < 0 { Err("overdrawn") } else { Ok(()) } } }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let tills = Pool::new(|_slot| Till)
    ///     .workers(4)
    ///     .ordered_by(|entry: &(u32, i64)| entry.0)
    ///     .on_final_failure(FinalAction::ParkKey)
    ///     .spawn()
    ///     .await?;
    /// tills.send((7, -1)).await?; // fails
    /// assert_eq!(tills.call((7, 5)).await, Err(CallError::Parked)); // waits in line behind it, but not its caller
    /// assert_eq!(tills.call((8, 5)).await, Ok(())); // other keys go on
    /// let keys = tills.keys::<u32>()?;
    /// assert_eq!(keys.parked().len(), 1);
    /// assert!(keys.release(&7)); // without the message that failed, which is a dead letter from here on
    /// # Ok(()) }
    /// ```
    pub fn on_final_failure(self, finally: FinalAction) -> Self
    where
        A::Message: Clone,
    {
        self.keep_copies().finally(finally)
    }

    /// Like [`on_final_failure`](Self::on_final_failure), but without copies.
    /// [`FinalAction::ParkKey`] then requires an actor that leaves its messages in place
    /// ([`Actor::KEEPS_MESSAGE`]), or [`retry_with`](Self::retry_with); otherwise
    /// [`spawn`](Self::spawn) refuses it.
    pub fn finally(mut self, finally: FinalAction) -> Self {
        self.config.failure.finally = Some(finally);
        self
    }

    /// How many messages may wait behind one key, so that one key cannot fill the pool; a quarter
    /// of the capacity by default. A sender of a key at its bound waits, unless the pool's
    /// [`overflow`](Self::overflow) says otherwise; [`try_send`](crate::Address::try_send) gives
    /// the message back with [`TrySendError::KeyFull`](crate::TrySendError::KeyFull). Other keys
    /// are not affected.
    pub fn max_per_key(mut self, messages: usize) -> Self {
        self.config.keys.max_per_key = Some(messages);
        self
    }

    /// How many messages may wait behind a parked key; 1,000 by default. Further ones are refused
    /// with [`SendError::Parked`](crate::SendError::Parked). Messages that were accepted before the
    /// key was parked stay in its line.
    pub fn max_parked(mut self, messages: usize) -> Self {
        self.config.keys.max_parked = messages;
        self
    }

    /// Messages behind parked keys take no room of the pool: others continue however many keys are
    /// parked. Only [`max_parked`](Self::max_parked) bounds them, for each key alone. So this is
    /// for senders that bound their unsettled messages, and for senders that stop when
    /// [`PoolStats::parked`](crate::PoolStats) is too high. When a key continues, its messages take
    /// room again, and new messages wait until there is some.
    ///
    /// ```
    /// # use greenroom::{FinalAction, prelude::*};
    /// # struct Till; impl Actor for Till { type Message = (u32, i64); type Reply = (); type Error = &'static str;
    /// # async fn handle(&mut self, (_, cents): (u32, i64), _: &mut Context<Self>) -> Result<(), &'static str> {
    /// #     if cents < 0 { Err("overdrawn") } else { Ok(()) } } }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let tills = Pool::new(|_slot| Till)
    ///     .capacity(2)
    ///     .ordered_by(|entry: &(u32, i64)| entry.0)
    ///     .on_final_failure(FinalAction::ParkKey)
    ///     .parked_apart()
    ///     .spawn()
    ///     .await?;
    /// for account in 0..10 {
    ///     tills.send((account, -1)).await?; // fails, and waits for an operator
    /// }
    /// assert_eq!(tills.call((10, 5)).await, Ok(())); // finds room
    /// assert_eq!(tills.stats().parked, 10);
    /// # Ok(()) }
    /// ```
    pub fn parked_apart(mut self) -> Self {
        self.config.keys.parked_apart = true;
        self
    }

    /// Sets a hook that gets each message that parks its key, before it waits there: the message,
    /// unless it is gone, and the cause (the handler's error or the panic's message). The hook
    /// should log it, because the pool does not. It runs on the worker, so it must not block; a
    /// panic in it is logged and has no other effect.
    pub fn on_parked(
        mut self,
        tell: impl Fn(Option<&mut A::Message>, Option<&A::Error>, Option<&str>) + Send + Sync + 'static,
    ) -> Self {
        self.functions.on_parked = Some(Box::new(Box::new(tell)));
        self
    }

    /// How many bytes may wait in the pool, by the `size` of each message: a bound in addition to
    /// the one on messages. At either bound a sender waits, or learns that the pool is full. A
    /// message larger than the bound is accepted if nothing else waits. Messages that wait for a
    /// retry no longer count, and neither do messages sent to a single worker.
    ///
    /// `size` runs in the sender, before the message is accepted, and costs an
    /// allocation for each message.
    ///
    /// ```
    /// # use greenroom::{prelude::*, TrySendError};
    /// # struct Shelf; impl Actor for Shelf { type Message = Vec<u8>; type Reply = (); type Error = ();
    /// # async fn handle(&mut self, _: Vec<u8>, _: &mut Context<Self>) -> Result<(), ()> { Ok(()) } }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let shelf = Pool::new(|_slot| Shelf).max_bytes(64 << 20, |page: &Vec<u8>| page.len()).spawn().await?;
    /// shelf.try_send(vec![0; 40 << 20])?;
    /// assert!(matches!(shelf.try_send(vec![0; 40 << 20]), Err(TrySendError::Full(_))));
    /// # Ok(()) }
    /// ```
    pub fn max_bytes(
        mut self,
        bytes: usize,
        size: impl Fn(&A::Message) -> usize + Send + Sync + 'static,
    ) -> Self {
        self.functions.bytes = Some((bytes, Box::new(size)));
        self
    }

    /// Refuses messages without a key ([`SendError::KeyRequired`](crate::SendError::KeyRequired))
    /// in a pool with [`ordered_by_opt`](Self::ordered_by_opt) or
    /// [`sticky_by_opt`](Self::sticky_by_opt). Otherwise they are handled in any order.
    pub fn key_required(mut self) -> Self {
        self.config.keys.key_required = true;
        self
    }

    /// The part of the capacity that one key may have, if no number was set.
    pub(super) fn key_share(&self) -> Option<usize> {
        (self.key_of.is_some() && self.config.keys.max_per_key.is_none()).then_some(SHARE_OF_A_KEY)
    }

    pub(super) fn checked_key_bounds(&self, capacity: usize) -> Result<KeyBounds, SpawnError> {
        if self.key_of.is_none() {
            return Ok(KeyBounds::NONE);
        }
        let keys = &self.config.keys;
        let waiting = keys.max_per_key.unwrap_or(capacity.div_ceil(SHARE_OF_A_KEY));
        check_range(waiting > 0, "max per key", waiting, "1 or more")?;
        check_range(keys.max_parked > 0, "max parked", keys.max_parked, "1 or more")?;
        Ok(KeyBounds { waiting, parked: keys.max_parked, apart: keys.parked_apart })
    }
}
