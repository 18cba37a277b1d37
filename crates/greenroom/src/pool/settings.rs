//! What the builder of a pool has settled.

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use super::{
    advisor::Advisor,
    autoscale::Autoscale,
    batch_bytes::BatchBytes,
    batches::Batches,
    bytes::ByteBound,
    crowd::KeyBounds,
    limits::Gate,
    overflow::Overflow,
    policy::Policy,
    restart::{Restarts, WhenExhausted},
    sticky::StickyBy,
    worker::Factory,
};
use crate::{Actor, DeadLetter, FailurePolicy, FinalAction, PoolEvents, RestartPolicy};

/// How to tell the key of a message.
pub(crate) type KeyOf<A, K> = Box<dyn Fn(&<A as Actor>::Message) -> Option<K> + Send + Sync>;
/// How to copy a message before its first attempt.
pub(crate) type CopyOf<A> = fn(&<A as Actor>::Message) -> <A as Actor>::Message;
/// Who is told of dead letters.
pub(crate) type OnDeadLetter<A> =
    Box<dyn Fn(DeadLetter<<A as Actor>::Message, <A as Actor>::Error>) + Send + Sync>;

/// Whether a message is still to be started.
pub(crate) type StartsIf<A> = Box<dyn Fn(&<A as Actor>::Message) -> bool + Send + Sync>;

/// Who is told of messages that park their keys.
pub(crate) type OnParked<A> = Box<
    dyn Fn(Option<&mut <A as Actor>::Message>, Option<&<A as Actor>::Error>, Option<&str>)
        + Send
        + Sync,
>;

/// What the builder has settled.
pub(crate) struct Settings<A: Actor, K> {
    pub(crate) name: Arc<str>,
    pub(crate) factory: Factory<A>,
    /// How many the pool starts with, and how many it may have.
    pub(crate) workers: usize,
    pub(crate) bounds: RangeInclusive<usize>,
    /// Present where the capacity follows the size.
    pub(crate) mailbox_each: Option<usize>,
    /// Without workers, messages are accepted up to the capacity, and wait.
    pub(crate) holds_when_empty: bool,
    pub(crate) capacity: usize,
    /// How many messages may wait in a worker's own mailbox.
    pub(crate) mailbox: usize,
    pub(crate) overflow: Overflow<A::Message, A::Reply, A::Error>,
    /// `None` where workers pull.
    pub(crate) dispatch: Option<Box<dyn Policy<A::Message>>>,
    /// How to tell the key, and the number of table slots, where keys stick to workers. Taken out when the pool is made.
    pub(crate) sticky: Option<(StickyBy<A::Message>, usize)>,
    /// Present where a policy may choose several workers.
    pub(crate) copy_for_several: Option<CopyOf<A>>,
    /// `None` for a pool without order.
    pub(crate) key_of: Option<KeyOf<A, K>>,
    /// A message without a key is refused.
    pub(crate) key_required: bool,
    /// How many messages may wait behind one key.
    pub(crate) key_bounds: KeyBounds,
    /// Present where bytes are bounded.
    pub(crate) bytes: Option<Box<ByteBound<A::Message>>>,
    /// A policy chooses, or bytes are bounded: a message is not simply queued.
    pub(crate) is_weighed: bool,
    /// Present where the bound of one key follows the capacity: the part of it.
    pub(crate) key_share: Option<usize>,
    /// What follows when no further attempt is made, where that was said.
    pub(crate) finally: Option<FinalAction>,
    pub(crate) policy: Box<dyn FailurePolicy<A::Error>>,
    /// Present where another attempt may be asked for.
    pub(crate) copy: Option<CopyOf<A>>,
    /// Is asked before each attempt. In a box of its own, as `on_parked`.
    pub(crate) starts_if: Option<Box<StartsIf<A>>>,
    /// There is one of the two: a message is not simply started.
    pub(crate) looks_at_start: bool,
    pub(crate) poison_limit: u32,
    pub(crate) restarts: Restarts,
    pub(crate) restart_policy: RestartPolicy,
    /// What follows when a slot's budget is used up.
    pub(crate) when_exhausted: WhenExhausted,
    /// The pool is one actor: it ends with it.
    pub(crate) single: bool,
    /// Present where it is said, instead of measured, whether handlers are quick.
    pub(crate) quick: Option<bool>,
    /// Present where several messages are handled together.
    pub(crate) batches: Option<Batches>,
    /// Present where a batch is full by its size, too.
    pub(crate) batch_bytes: Option<BatchBytes<A::Message>>,
    /// Callers may do the work of a worker that they have woken.
    pub(crate) calls_in_place: bool,
    /// Callers may give a worker the message, past the queue: nothing is to be done with that but to handle it.
    pub(crate) serves_at_hatch: bool,
    /// Present where the pool sizes itself; in range.
    pub(crate) autoscale: Option<Autoscale>,
    /// Present where the pool is advised; in range.
    pub(crate) advisor: Option<Box<Advisor>>,
    /// Present where the pool has limits, or may come to have some.
    pub(crate) gate: Option<Arc<Gate>>,
    /// How long a handler may take.
    pub(crate) time_limit: Option<Duration>,
    pub(crate) on_dead_letter: Option<OnDeadLetter<A>>,
    /// Is told of each message that parks its key. In a box of its own: hardly any pool has one,
    /// and actors are many.
    pub(crate) on_parked: Option<Box<OnParked<A>>>,
    /// How many dead letters the pool keeps, where no hook takes them.
    pub(crate) dead_letters: usize,
    /// Who is told what happens.
    pub(crate) notices: PoolEvents,
    pub(crate) seed: u64,
    /// The seed was said: what is random comes out the same each time.
    pub(crate) is_seeded: bool,
}

impl<A: Actor, K> Settings<A, K> {
    /// Whether messages pass a gate now, before they are started.
    pub(crate) fn is_limited(&self) -> bool {
        self.gate.as_deref().is_some_and(Gate::is_engaged)
    }
}
