//! The settings of a pool that are functions.

use super::overflow::Overflow;
use crate::pool::{
    batch::hand::Batching, bytes::SizeOf, policy::Policy, shares::Share, sticky::StickyBy,
};
use crate::{DeadLetter, FailurePolicy, FailureTable};

/// Returns the key of a message.
pub(crate) type KeyOf<M, K> = Box<dyn Fn(&M) -> Option<K> + Send + Sync>;
/// Returns the share of a message.
pub(crate) type ShareOf<M> = Box<dyn Fn(&M) -> Share + Send + Sync>;
/// Copies a message before its first attempt.
pub(crate) type CopyOf<M> = fn(&M) -> M;
/// Receives dead letters.
pub(crate) type OnDeadLetter<M, E> = Box<dyn Fn(DeadLetter<M, E>) + Send + Sync>;
/// Whether a message should still be started.
pub(crate) type StartsIf<M> = Box<dyn Fn(&M) -> bool + Send + Sync>;
/// Receives messages that park their keys.
pub(crate) type OnParked<M, E> =
    Box<dyn Fn(Option<&mut M>, Option<&E>, Option<&str>) + Send + Sync>;

/// The functions of a pool, for any type of actor and key.
pub(crate) struct Functions<M, R, E> {
    pub(crate) overflow: Overflow<M, R, E>,
    /// `None` if workers pull.
    pub(crate) dispatch: Option<Box<dyn Policy<M>>>,
    /// The function for the key, if keys stick to workers. Taken out when the pool is made.
    pub(crate) sticky: Option<StickyBy<M>>,
    /// Present if a policy may choose several workers.
    pub(crate) copy_for_several: Option<CopyOf<M>>,
    /// The bound on bytes and the function for the size of a message, if bytes are bounded. Taken
    /// out when the pool is made.
    pub(crate) bytes: Option<(usize, SizeOf<M>)>,
    /// Present if several messages are handled together.
    pub(crate) batching: Option<Box<dyn Batching<M, R, E>>>,
    /// Present if a batch is also full by its size. Taken out when the pool is made.
    pub(crate) batch_bytes: Option<(usize, SizeOf<M>)>,
    pub(crate) policy: Box<dyn FailurePolicy<E>>,
    /// Present if a retry may be requested.
    pub(crate) copy: Option<CopyOf<M>>,
    /// Called before each attempt. Boxed separately, like `on_parked`.
    pub(crate) starts_if: Option<Box<StartsIf<M>>>,
    pub(crate) on_dead_letter: Option<OnDeadLetter<M, E>>,
    /// Called for each message that parks its key. Boxed separately: hardly any pool has one, and
    /// there are many actors.
    pub(crate) on_parked: Option<Box<OnParked<M, E>>>,
}

impl<M, R, E: 'static> Default for Functions<M, R, E> {
    fn default() -> Self {
        Self {
            overflow: Overflow::Wait,
            dispatch: None,
            sticky: None,
            copy_for_several: None,
            bytes: None,
            batching: None,
            batch_bytes: None,
            policy: Box::new(FailureTable::default()),
            copy: None,
            starts_if: None,
            on_dead_letter: None,
            on_parked: None,
        }
    }
}

/// The functions of a pool with these actors.
pub(crate) type FunctionsOf<A> =
    Functions<<A as crate::Actor>::Message, <A as crate::Actor>::Reply, <A as crate::Actor>::Error>;
