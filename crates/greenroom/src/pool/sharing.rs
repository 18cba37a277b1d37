//! The steps of a pool whose messages have shares, which others omit.
//!
//! Only the builder method for shares mentions the implementation: a program without shares
//! contains none of its code.

use super::{pool_payload::Queued, shares::Share, worker::in_flight::Source};
use crate::Actor;

/// For the pool `C`, whose workers are `A`.
pub(crate) trait Sharing<A: Actor, K, C>: Send + Sync {
    /// The share of a message. If the function panics, it is the common share.
    fn share_of(&self, pool: &C, message: &A::Message) -> Share;

    /// Takes the first message of the share whose turn it is. The caller has no place.
    fn take_out(&self, pool: &C, worker: usize, cursor: &mut u32)
    -> Option<(Source, Queued<A, K>)>;

    /// Handlers may turn out to be quick. Until the watchdog has checked, messages are started in
    /// the order of acceptance; without a watchdog, in the order of their shares.
    fn begin(&self, pool: &C);

    /// Called by the watchdog, with the number of messages taken since the last call: decides
    /// whether messages are started in the order of their shares. If handlers are quick and few
    /// messages wait, the order of acceptance is as fair, within 32 ms.
    fn look(&self, pool: &C, taken: u64);

    /// Returns lanes from the lines of shares to the ready lanes of their shards, if messages are
    /// not started in the order of shares. Nothing is taken.
    fn take_strays(&self, pool: &C) -> Option<(Source, Queued<A, K>)>;

    /// The next message to handle together with the one that this worker has in hand: one with its
    /// key and its share or, without a key, its share.
    fn next(&self, pool: &C, worker: usize, source: Source) -> Option<Queued<A, K>>;
}
