//! The keys of a pool: their states, and decisions on those that wait for an operator.

use std::{any::type_name, hash::Hash, sync::Arc, time::Duration};

use tokio::time::Instant;

pub use self::figures::{KeyCounts, KeyInHand, KeyState, KeyStatus, LongestLine, ParkedKey};
use super::core::{
    Core,
    keys::{key_counts, keys_in_hand, longest_line, parked_keys, why_key},
    parked::{is_parked, release_key, remove_key, replay_key},
};
pub use super::stats::sketch::HotKey;
use crate::{Actor, pool::admin::control::Control};

pub(crate) mod figures;

/// The keys of a pool with [`ordered_by`](crate::PoolBuilder::ordered_by).
///
/// Nothing is counted for it while messages pass: it looks on request, and takes the lock of each
/// shard, or of the one that a key belongs to, for as long as it takes to walk over that queue.
/// Keys are compared, as everywhere; queued messages of a key are counted by its hash, which one
/// pair of keys in four billion shares.
///
/// ```
/// # use greenroom::prelude::*;
/// # struct Clerk; impl Actor for Clerk { type Message = (u32, u8); type Reply = (); type Error = &'static str;
/// # async fn handle(&mut self, _: (u32, u8), _: &mut Context<Self>) -> Result<(), Self::Error> {
/// #     std::future::pending().await } }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::new(|_slot| Clerk).workers(4).ordered_by(|page: &(u32, u8)| page.0).spawn().await?;
/// pool.send((7, 1)).await?;
/// pool.send((7, 2)).await?;
/// tokio::task::yield_now().await;
/// let keys = pool.keys::<u32>()?;
/// assert_eq!(keys.counts().running, 1);
/// if let Some(why) = keys.status(&7, |error| error.to_string()) {
///     println!("{why}"); // 1 waiting; in hand of worker 0 for 12 ms, attempt 1
/// #   assert_eq!(why.waiting, 1);
/// }
/// assert!(keys.status(&8, |error| error.to_string()).is_none());
/// # pool.stop(Stop::within(std::time::Duration::ZERO)).await;
/// # Ok(()) }
/// ```
pub struct Keys<A: Actor, K> {
    core: Arc<Core<A, K>>,
}

/// The keys of the pool have another type, or it has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the pool has {}, not keys of type {asked}", match is {
    Some(is) => format!("keys of type {is}"),
    None => "no keys".to_owned(),
})]
pub struct WrongKeyType {
    /// The requested type.
    pub asked: &'static str,
    /// Their actual type.
    pub is: Option<&'static str>,
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Keys<A, K> {
    /// The keys of the pool behind `control`.
    pub(super) fn of(control: &Arc<dyn Control<A>>) -> Result<Self, WrongKeyType> {
        let core = control.clone().typed().downcast::<Core<A, K>>().ok();
        match core.filter(|core| core.keyed()) {
            Some(core) => Ok(Self { core }),
            None => Err(WrongKeyType { asked: type_name::<K>(), is: control.key_type() }),
        }
    }

    /// How many keys run, retry, are parked, and are ready.
    pub fn counts(&self) -> KeyCounts {
        key_counts(&self.core)
    }

    /// The keys that wait for an operator, longest first.
    pub fn parked(&self) -> Vec<ParkedKey<K>> {
        let mut parked = parked_keys(&self.core);
        parked.sort_by_key(|parked| std::cmp::Reverse(parked.since));
        parked
    }

    /// The keys in the hands of workers whose handlers wait for something, such as an answer from
    /// elsewhere. The key of a message in its first poll (it computes, or blocks its thread) is
    /// named only if it is among the [hottest](Self::hottest_by_count). Looks at every key that is
    /// in hand or waits.
    ///
    /// ```
    /// # use greenroom::prelude::*;
    /// # struct Clerk; impl Actor for Clerk { type Message = (u32, u8); type Reply = (); type Error = ();
    /// # async fn handle(&mut self, _: (u32, u8), _: &mut Context<Self>) -> Result<(), ()> {
    /// #     std::future::pending().await } }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::new(|_slot| Clerk).workers(1).ordered_by(|page: &(u32, u8)| page.0).spawn().await?;
    /// pool.send((7, 1)).await?;
    /// tokio::task::yield_now().await;
    /// let in_hand = pool.keys::<u32>()?.in_hand();
    /// assert_eq!((in_hand[0].worker, *in_hand[0].key), (0, 7));
    /// # pool.stop(Stop::within(std::time::Duration::ZERO)).await;
    /// # Ok(()) }
    /// ```
    pub fn in_hand(&self) -> Vec<KeyInHand<K>> {
        keys_in_hand(&self.core)
    }

    /// The state of a key and the reason. `describe` puts the error of its last attempt into words;
    /// it is called under no lock. `None` if none of its messages is in hand or waits.
    ///
    /// # Panics
    /// If `describe` panics.
    pub fn status(&self, key: &K, describe: impl FnOnce(&A::Error) -> String) -> Option<KeyStatus> {
        why_key(&self.core, key, describe)
    }

    /// The keys with the most messages, at most 64.
    pub fn hottest_by_count(&self, most: usize) -> Vec<HotKey<K, u64>> {
        let sketch = self.core.frame.telemetry.sketch.as_ref();
        sketch.map_or_else(Vec::new, |sketch| sketch.by_count(most))
    }

    /// The keys whose messages have been in hand for longest in total, at most 64.
    pub fn hottest_by_time(&self, most: usize) -> Vec<HotKey<K, Duration>> {
        let sketch = self.core.frame.telemetry.sketch.as_ref();
        sketch.map_or_else(Vec::new, |sketch| sketch.by_time(most))
    }

    /// The longest line. Looks at every waiting message.
    pub fn longest_line(&self) -> Option<LongestLine<K>> {
        longest_line(&self.core)
    }

    /// Releases a parked key after the failed message, which becomes a dead letter; so do other
    /// messages of its batch that have failed for good with it. False if the key is not parked.
    pub fn release(&self, key: &K) -> bool {
        release_key(&self.core, key, None)
    }

    /// Like [`release`](Self::release), if it was parked by the failure at that moment
    /// ([`KeyStatus::failed_at`]): so a decision never affects another message than the one that
    /// was inspected.
    pub fn release_if(&self, key: &K, failed_at: Instant) -> bool {
        release_key(&self.core, key, Some(failed_at))
    }

    /// Releases a parked key with the failed message: it is retried as if it had not failed before.
    /// False if the key is not parked.
    pub fn replay(&self, key: &K) -> bool {
        replay_key(&self.core, key, None)
    }

    /// Like [`replay`](Self::replay), if it was parked by the failure at that moment.
    pub fn replay_if(&self, key: &K, failed_at: Instant) -> bool {
        replay_key(&self.core, key, Some(failed_at))
    }

    /// Whether this key is parked: cheap enough to ask before each message, as it costs a lock of
    /// one shard.
    pub fn is_parked(&self, key: &K) -> bool {
        is_parked(&self.core, key)
    }

    /// Takes out the line of a parked key, the failed message first; the messages count as
    /// returned. Later messages of the key are handled. `None` if the key is not parked.
    pub fn remove(&self, key: &K) -> Option<Vec<A::Message>> {
        remove_key(&self.core, key, None)
    }

    /// Like [`remove`](Self::remove), if it was parked by the failure at that moment.
    pub fn remove_if(&self, key: &K, failed_at: Instant) -> Option<Vec<A::Message>> {
        remove_key(&self.core, key, Some(failed_at))
    }
}

impl_debug!([A: Actor, K] Keys<A, K>, |_| of: type_name::<K>());
