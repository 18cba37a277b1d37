//! The steps of a pool whose messages have shares, which others omit.
//!
//! Only the builder method for shares mentions the implementation: a program without shares
//! contains none of its code.

use super::{pool_payload::Queued, shares::Share, worker::in_flight::Source};
use crate::Actor;

/// For the pool `C`, whose workers are `A`.
pub(crate) trait Sharing<A: Actor, K, C>: Send + Sync {
    /// The share of a message. One whose function panics is in the common one.
    fn share_of(&self, pool: &C, message: &A::Message) -> Share;

    /// Takes the first message of the share whose turn it is. The caller has no place.
    fn take_out(&self, pool: &C, worker: usize, cursor: &mut u32)
    -> Option<(Source, Queued<A, K>)>;

    /// Handlers may turn out to be quick. Until the watchdog has looked, messages are started in
    /// the order of acceptance; without it, in the order of their shares.
    fn begin(&self, pool: &C);

    /// Called by the watchdog, with the messages that were taken since the last time: decides
    /// whether messages are started in the order of their shares. If handlers are quick and little
    /// waits, the order of acceptance is as fair, within 32 ms.
    fn look(&self, pool: &C, taken: u64);

    /// Lanes that stand in lines although messages are not started in the order of their shares go
    /// back to the ready lanes of their shards. Nothing is taken.
    fn take_strays(&self, pool: &C) -> Option<(Source, Queued<A, K>)>;

    /// The next message that is handled together with what this worker has in hand: of its key and
    /// its share, or, without a key, of its share.
    fn next(&self, pool: &C, worker: usize, source: Source) -> Option<Queued<A, K>>;
}
