//! The settings of a pool that are functions.

use super::overflow::Overflow;
use crate::pool::{
    batch::hand::Batching, bytes::SizeOf, policy::Policy, shares::Share, sticky::StickyBy,
};
use crate::{DeadLetter, FailurePolicy, FailureTable};

/// How to tell the key of a message.
pub(crate) type KeyOf<M, K> = Box<dyn Fn(&M) -> Option<K> + Send + Sync>;
/// How to tell the share of a message.
pub(crate) type ShareOf<M> = Box<dyn Fn(&M) -> Share + Send + Sync>;
/// How to copy a message before its first attempt.
pub(crate) type CopyOf<M> = fn(&M) -> M;
/// Hears of dead letters.
pub(crate) type OnDeadLetter<M, E> = Box<dyn Fn(DeadLetter<M, E>) + Send + Sync>;
/// Whether a message is still to be started.
pub(crate) type StartsIf<M> = Box<dyn Fn(&M) -> bool + Send + Sync>;
/// Hears of messages that park their keys.
pub(crate) type OnParked<M, E> =
    Box<dyn Fn(Option<&mut M>, Option<&E>, Option<&str>) + Send + Sync>;

/// The functions of a pool, whatever its actors and its keys are.
pub(crate) struct Functions<M, R, E> {
    pub(crate) overflow: Overflow<M, R, E>,
    /// `None` if workers pull.
    pub(crate) dispatch: Option<Box<dyn Policy<M>>>,
    /// The function for the key, if keys stick to workers. Taken out when the pool is made.
    pub(crate) sticky: Option<StickyBy<M>>,
    /// Present if a policy may choose several workers.
    pub(crate) copy_for_several: Option<CopyOf<M>>,
    /// The bound on bytes and how to tell the size of a message, if bytes are bounded. Taken out
    /// when the pool is made.
    pub(crate) bytes: Option<(usize, SizeOf<M>)>,
    /// Present if several messages are handled together.
    pub(crate) batching: Option<Box<dyn Batching<M, R, E>>>,
    /// Present if a batch is also full by its size. Taken out when the pool is made.
    pub(crate) batch_bytes: Option<(usize, SizeOf<M>)>,
    pub(crate) policy: Box<dyn FailurePolicy<E>>,
    /// Present if another attempt may be asked for.
    pub(crate) copy: Option<CopyOf<M>>,
    /// Is asked before each attempt. In a box of its own, as `on_parked`.
    pub(crate) starts_if: Option<Box<StartsIf<M>>>,
    pub(crate) on_dead_letter: Option<OnDeadLetter<M, E>>,
    /// Is told of each message that parks its key. In a box of its own: hardly any pool has one,
    /// and actors are many.
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

/// The functions of a pool of these actors.
pub(crate) type FunctionsOf<A> =
    Functions<<A as crate::Actor>::Message, <A as crate::Actor>::Reply, <A as crate::Actor>::Error>;
