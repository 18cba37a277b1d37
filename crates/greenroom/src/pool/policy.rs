//! Policies: choose the worker for a message.
//!
//! ```text
//! pulling (default, and with keys)          choosing (RoundRobin, Random, LeastLoaded, your own)
//! sender ─▶ pool's queue ─▶ any free worker   sender ─ policy ─▶ mailbox of one worker ─▶ that worker
//! ```
//!
//! If workers pull, no message waits while a worker is idle. A policy that chooses binds a message
//! to a worker before it is known which will be free first. Use one if a worker has something that
//! others lack (a cache, a connection, a share of the keys), or if a fixed order is wanted.
//! Messages that a chosen worker has not started when it leaves or is disabled go to any other.
//!
//! A policy runs in the sender, before the message is accepted, under no lock. Only a message that
//! it [holds](Choice::Hold) is accepted first; the policy is then asked again.
//!
//! A worker that calls its own pool does not get its own call, for which it would wait forever. If
//! the policy would take another worker ([`is_strict`](Policy::is_strict) is false), this one is
//! skipped; otherwise the call is refused with
//! [`CallError::WouldDeadlock`](crate::CallError::WouldDeadlock).

use crate::{AnyAddress, Class};

mod least_loaded;
mod random;
mod round_robin;

pub use least_loaded::LeastLoaded;
pub use random::Random;
pub use round_robin::RoundRobin;

/// Chooses the worker for a message.
///
/// ```
/// use greenroom::{policy::{About, Choice, Crew, Policy}, prelude::*};
///
/// /// Odd numbers have a worker to themselves.
/// struct OddsFirst;
///
/// impl Policy<u64> for OddsFirst {
///     fn choose(&self, number: &u64, _about: &About<'_>, crew: &Crew<'_>) -> Choice {
///         let place = if number % 2 == 1 { 0 } else { 1 + (*number as usize / 2) % (crew.len() - 1).max(1) };
///         Choice::At(place)
///     }
/// }
/// # struct Clerk; impl Actor for Clerk { type Message = u64; type Reply = usize; type Error = ();
/// # async fn handle(&mut self, _: u64, cx: &mut Context<Self>) -> Result<usize, ()> { Ok(cx.slot()) } }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::new(|_slot| Clerk).workers(3).dispatch(OddsFirst).spawn().await?;
/// assert_eq!(pool.call(7).await, Ok(0));
/// # Ok(()) }
/// ```
pub trait Policy<M>: Send + Sync + 'static {
    /// Chooses. A panic unwinds into the sender, and nothing is accepted.
    fn choose(&self, message: &M, about: &About<'_>, crew: &Crew<'_>) -> Choice;

    /// True if the message is for the chosen worker and no other: a sender waits for room there.
    /// False if any worker with room would do, and the policy has looked for one: a sender waits
    /// for room anywhere.
    fn is_strict(&self) -> bool {
        true
    }
}

/// The choice of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Choice {
    /// The worker at this place of the crew, from 0.
    At(usize),
    /// The worker in this slot. If it has gone, the policy is asked again, three times in total;
    /// after that the choice is `Any`.
    Slot(usize),
    /// A copy for each of these slots, if the pool was set up with
    /// [`dispatch_copies`](crate::PoolBuilder::dispatch_copies); otherwise the message goes to the
    /// least loaded of them. All or none: if one of them is full, the pool counts as full, and the
    /// sender does not wait. Under [`Overflow::DropOldest`](crate::Overflow::DropOldest) the oldest
    /// message of each full one makes room.
    Several(Vec<usize>),
    /// The first free worker.
    Any,
    /// No worker now: the policy is asked again when a worker has started. The message holds a
    /// permit until then.
    Hold,
    /// No worker, ever: the sender gets it back with
    /// [`NotAccepted::Refused`](crate::NotAccepted::Refused).
    Refuse,
}

/// The metadata of a message.
#[derive(Debug)]
#[non_exhaustive]
pub struct About<'a> {
    /// Its class.
    pub class: Class,
    /// True for a call.
    pub is_call: bool,
    /// The sender, if given.
    pub sender: Option<&'a AnyAddress>,
}

/// The live workers of a pool, in the order in which they joined, as far as the sender knows.
pub struct Crew<'a> {
    pub(crate) members: &'a dyn Members,
}

/// The workers, as far as a policy may know them.
pub(crate) trait Members {
    fn len(&self) -> usize;
    fn member(&self, place: usize) -> Member;
}

/// One worker, as a policy sees it: current figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Member {
    /// Its slot.
    pub slot: usize,
    /// Messages that wait in its own mailbox.
    pub waiting: usize,
    /// Messages in its hand: 0 or 1.
    pub in_hand: usize,
    /// How many messages may wait in its mailbox.
    pub capacity: usize,
}

impl Member {
    /// True if no further message fits in.
    pub fn is_full(&self) -> bool {
        self.waiting >= self.capacity
    }

    /// Messages waiting and in hand.
    pub fn load(&self) -> usize {
        self.waiting + self.in_hand
    }
}

impl Crew<'_> {
    /// The number of workers. At least one: without workers no policy is asked.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// True if there is no worker.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The worker at this place, from 0.
    pub fn get(&self, place: usize) -> Option<Member> {
        (place < self.len()).then(|| self.members.member(place))
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = Member> + '_ {
        (0..self.len()).map(|place| self.members.member(place))
    }

    /// The first place at or after this one, going round, whose worker has room; the place itself
    /// if none has.
    pub fn with_room_from(&self, place: usize) -> usize {
        let len = self.len().max(1);
        let places = (0..len).map(|step| (place % len + step) % len);
        let mut with_room = places.filter(|place| self.get(*place).is_some_and(|m| !m.is_full()));
        with_room.next().unwrap_or(place % len)
    }
}

impl std::fmt::Debug for Crew<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
