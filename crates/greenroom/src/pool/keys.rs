//! The keys of a pool: their states, and decisions on those that wait for an operator.

use std::{any::type_name, fmt, hash::Hash, sync::Arc, time::Duration};

use tokio::time::Instant;

use super::core::Core;
pub use super::stats::sketch::HotKey;
use crate::{Actor, DeadLetterReason, pool::admin::control::Control};

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

/// How many keys have messages in hand or waiting, by their state. Messages in a queue behind other
/// keys that can be started as soon as they are reached are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct KeyCounts {
    /// A message is in hand.
    pub running: usize,
    /// A message waits for its next attempt.
    pub retrying: usize,
    /// They wait for an operator.
    pub parked: usize,
    /// They have yielded to others, and wait for a worker.
    pub ready: usize,
    /// Messages that wait behind all of these.
    pub waiting: usize,
}

/// The state of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyState {
    /// Its first message waits in the queue; it only needs its turn.
    Queued,
    /// A message is in hand.
    Running {
        /// The slot of the worker that has it.
        worker: usize,
        /// Since when, to a few milliseconds.
        since: Duration,
    },
    /// A message waits for its next attempt.
    Retrying {
        /// Since its last attempt failed.
        since: Duration,
        /// The time from now, to a few milliseconds.
        next: Duration,
        /// The worker that had it in hand last.
        worker: usize,
    },
    /// It waits for an operator.
    Parked {
        /// Since when.
        since: Duration,
        /// How its message has failed.
        reason: DeadLetterReason,
        /// The worker that had it in hand.
        worker: usize,
    },
    /// It has yielded to others and waits for a worker.
    Ready,
}

/// Why a key waits. The message in hand belongs to the handler and may not be printable, so it is
/// identified by its worker, its attempt and its time; a failed one, by its error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyStatus {
    /// Its state.
    pub state: KeyState,
    /// How many messages wait behind the one that is in hand, retried or parked.
    pub waiting: usize,
    /// The number of its present or last attempt; 0 if there was none.
    pub attempt: u32,
    /// The error of its last attempt.
    pub last_error: Option<String>,
    /// When that failed: it distinguishes this failure of the key from any other.
    pub failed_at: Option<Instant>,
    /// How long the first of the waiting messages has waited.
    pub oldest: Option<Duration>,
}

impl fmt::Display for KeyStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} waiting; ", self.waiting)?;
        match self.state {
            KeyState::Queued => f.write_str("in the queue")?,
            KeyState::Ready => f.write_str("has given way to others, next in its turn")?,
            KeyState::Running { worker, since } => {
                write!(f, "in hand of worker {worker} for {since:.1?}, attempt {}", self.attempt)?;
            }
            KeyState::Retrying { since, next, .. } => {
                write!(f, "attempt {} failed {since:.1?} ago, next in {next:.1?}", self.attempt)?;
            }
            KeyState::Parked { since, .. } => {
                write!(f, "parked for {since:.1?} after attempt {}", self.attempt)?;
            }
        }
        self.last_error.iter().try_for_each(|error| write!(f, ", last error: {error}"))
    }
}

/// A key that waits for an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParkedKey<K> {
    /// The key.
    pub key: Arc<K>,
    /// How long it has waited.
    pub since: Duration,
    /// How its message has failed.
    pub reason: DeadLetterReason,
    /// How many messages wait behind that one.
    pub waiting: usize,
}

/// A key whose message a worker has in hand.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyInHand<K> {
    /// The slot of the worker.
    pub worker: usize,
    /// The key.
    pub key: Arc<K>,
}

/// The key with the most messages in line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LongestLine<K> {
    /// The key. `None` for one that is only in a queue and is not among the hottest.
    pub key: Option<Arc<K>>,
    /// How many messages wait.
    pub messages: usize,
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
        self.core.key_counts()
    }

    /// The keys that wait for an operator, longest first.
    pub fn parked(&self) -> Vec<ParkedKey<K>> {
        let mut parked = self.core.parked_keys();
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
        self.core.keys_in_hand()
    }

    /// The state of a key and the reason. `describe` puts the error of its last attempt into words;
    /// it is called under no lock. `None` if none of its messages is in hand or waits.
    ///
    /// # Panics
    /// If `describe` panics.
    pub fn status(&self, key: &K, describe: impl FnOnce(&A::Error) -> String) -> Option<KeyStatus> {
        self.core.why_key(key, describe)
    }

    /// The keys with the most messages, at most 64.
    pub fn hottest_by_count(&self, most: usize) -> Vec<HotKey<K, u64>> {
        self.core
            .frame
            .telemetry
            .sketch
            .as_ref()
            .map_or_else(Vec::new, |sketch| sketch.by_count(most))
    }

    /// The keys whose messages have been in hand for longest in total, at most 64.
    pub fn hottest_by_time(&self, most: usize) -> Vec<HotKey<K, Duration>> {
        self.core
            .frame
            .telemetry
            .sketch
            .as_ref()
            .map_or_else(Vec::new, |sketch| sketch.by_time(most))
    }

    /// The longest line. Looks at every waiting message.
    pub fn longest_line(&self) -> Option<LongestLine<K>> {
        self.core.longest_line()
    }

    /// Releases a parked key after the failed message, which becomes a dead letter; so do other
    /// messages of its batch that have failed for good with it. False if the key is not parked.
    pub fn release(&self, key: &K) -> bool {
        self.core.release_key(key, None)
    }

    /// Like [`release`](Self::release), if it was parked by the failure at that moment
    /// ([`KeyStatus::failed_at`]): so a decision never affects another message than the one that
    /// was inspected.
    pub fn release_if(&self, key: &K, failed_at: Instant) -> bool {
        self.core.release_key(key, Some(failed_at))
    }

    /// Releases a parked key with the failed message: it is attempted again, as if it had not
    /// failed before. False if the key is not parked.
    pub fn replay(&self, key: &K) -> bool {
        self.core.replay_key(key, None)
    }

    /// Like [`replay`](Self::replay), if it was parked by the failure at that moment.
    pub fn replay_if(&self, key: &K, failed_at: Instant) -> bool {
        self.core.replay_key(key, Some(failed_at))
    }

    /// Whether this key is parked: cheap enough to ask before each message, as it costs a lock of
    /// one shard.
    pub fn is_parked(&self, key: &K) -> bool {
        self.core.is_parked(key)
    }

    /// Takes out the line of a parked key, the failed message first; the messages count as
    /// returned. Later messages of the key are handled. `None` if the key is not parked.
    pub fn remove(&self, key: &K) -> Option<Vec<A::Message>> {
        self.core.remove_key(key, None)
    }

    /// Like [`remove`](Self::remove), if it was parked by the failure at that moment.
    pub fn remove_if(&self, key: &K, failed_at: Instant) -> Option<Vec<A::Message>> {
        self.core.remove_key(key, Some(failed_at))
    }
}

impl<A: Actor, K> fmt::Debug for Keys<A, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("type", &type_name::<K>()).finish_non_exhaustive()
    }
}
