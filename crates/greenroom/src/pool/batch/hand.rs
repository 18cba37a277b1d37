//! The interface between batches and workers (K12): the services that a batch needs from the worker
//! that has it in hand, and the worker's steps in a pool of batches.
//!
//! Batches know messages, but neither actors nor keys. Only the builder method for batches mentions
//! [`InBatches`](in_batches::InBatches): a program without batches contains only the worker's part.

pub(crate) mod in_batches;

use std::sync::Arc;

use greenroom_queue::coarse::CoarseClock;
use tokio::sync::Notify;

use super::bytes::BatchBytes;
use crate::{
    Answer, DeadLetterReason, Delivery,
    address::vtable::BoxFuture,
    pool::{
        membership::slot_state::SlotState,
        stats::{Measurement, counters::PoolCounters},
        worker::in_flight::Taken,
    },
};

/// How messages are handled together.
pub(crate) trait Batching<M, R, E>: Send + Sync {
    /// Takes waiting messages that may be handled with the one in hand, and waits for more if that
    /// was requested. False if nothing is left in hand: all of it was withdrawn.
    fn collect<'a>(&'a self, hand: &'a mut dyn Hand<M, R, E>) -> BoxFuture<'a, bool>;

    /// Settles every message of a batch whose handler has returned.
    fn settle(&self, hand: &mut dyn Hand<M, R, E>, result: Result<Answer<R>, E>);

    /// Settles every message of a batch that ended otherwise. It is unknown which message is at
    /// fault: if there are several, each is retried alone. Returns false if there is no batch.
    fn end(&self, hand: &mut dyn Hand<M, R, E>, end: &BatchEnd) -> bool;
}

/// How a batch ended.
pub(crate) enum BatchEnd {
    Panicked(String),
    TimedOut,
    /// Its worker was killed.
    Killed,
    /// Its pool has ended, or its runtime.
    Stopped,
}

/// A worker that has a message in hand, and perhaps others of its batch with it.
pub(crate) trait Hand<M, R, E>: Send {
    /// The messages in hand.
    fn in_hand(&mut self) -> HeldMessages<'_, M, R, E>;

    /// True if the message in hand has a key, which is the worker's.
    fn has_key(&self) -> bool;

    /// True if the worker must start no further message.
    fn has_to_end(&self) -> bool;

    /// Begins the next message that may be handled with the one in hand, in its place. `None` if
    /// none waits.
    fn begin_next(&mut self) -> Option<Taken>;

    /// The worker rests until more messages of its key have arrived, and leaves its shard to
    /// others. The result is notified once this many wait.
    fn wait_for(&mut self, messages: usize) -> Arc<Notify>;

    /// The wait has ended: looks for arrivals.
    fn look_again(&mut self);

    /// Settles the message in hand, whose handler has returned.
    fn settle_one(&mut self, result: Result<Answer<R>, E>);

    /// The message in hand is retried alone: its batch has failed.
    fn retry_alone(&mut self, reason: DeadLetterReason, panic: Option<String>);

    /// The message in hand is a dead letter.
    fn bury(&mut self, reason: DeadLetterReason, panic: Option<String>);

    /// The message in hand is withdrawn.
    fn withdraw_one(&mut self);

    /// The message in hand, which has not begun, is at the head of its line again.
    fn put_off(&mut self);

    /// The message in hand is given back.
    fn return_one(&mut self);

    /// Messages to retry are kept from now on, because others of their batch still need the key.
    fn defer(&mut self);

    /// The kept ones return to the front of their lane, in order. `handled` messages had the key
    /// together; 0 if that does not count.
    fn go_on(&mut self, handled: u64);
}

/// The messages in hand, and the data that a batch reads with them.
pub(crate) struct HeldMessages<'a, M, R, E> {
    /// The first message, and the others of its batch.
    pub(crate) delivery: &'a mut Delivery<M, R, E>,
    /// A copy of the first for a retry.
    pub(crate) spare: &'a mut Option<M>,
    /// False once its outcome is settled.
    pub(crate) is_there: &'a mut bool,
    /// Present if its times are measured.
    pub(crate) measurement: &'a mut Option<Measurement>,
    /// Whether nothing in hand has begun.
    pub(crate) begins_later: bool,
    pub(crate) slot_state: &'a SlotState,
    pub(crate) clock: &'a CoarseClock,
    pub(crate) counters: &'a PoolCounters,
    /// Present if a batch is also full by its size.
    pub(crate) bound: Option<&'a BatchBytes<M>>,
    /// Decides whether a message should still be started.
    pub(crate) starts_if: Option<&'a (dyn Fn(&M) -> bool + Send + Sync)>,
}
