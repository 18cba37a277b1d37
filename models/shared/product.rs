//! The files of the product that are tried, and stand-ins for what they touch of the rest.
//!
//! | file | here |
//! |---|---|
//! | `greenroom-queue` | the product's, but for its locks, its watchdog and its clock: see `queues.rs` |
//! | `mailbox`, `core/push`, `core/waiters`, `core/mail`, `core/take`, `core/place`, `core/park` | the product's |
//! | `core/sweep` | the product's: messages that are withdrawn from a shard |
//! | `lifecycle`, `left_over`, `starts`, `frame/gate`, `frame/end`, `core/shut`, `core/drain` | the product's: whether the pool accepts messages, who waits for its workers and its end, and what becomes of what waits then |
//! | `core/backlog`, `core/room`, `core/parked` | the product's: the bound behind a key, its senders in line, keys that are parked |
//! | `handoff/pool_exchange` | the product's |
//! | `outgoing`, `pool_payload`, `counters`, `class`, `dead_letter` | the product's |
//! | `worker/driver`, `in_flight/take`, `in_flight/worker_context`, `in_flight/presence` | the product's: what a worker does next, how it takes messages, suspends, parks and is woken |
//! | `core`, `frame`, `slot_state`, the rest of `in_flight` and `worker` | played: they need actors, policies and a runtime; see `core.rs`, `frame.rs`, `in_flight.rs` and `player/worker.rs` |
//! | `frame/members`, `stop/run` | played: the slot of a worker that joins or goes is there, and a stop has no deadline; see `core.rs` and `ends.rs` |
//! | `clock` | played: a list of what is parked |
//! | `failed`, a way back | played: what an attempt failed of is a reason, and a port knows that it was resolved |
//! | `life`, `exit_reason` | played: they need addresses, channels and the hook that says where a panic was |

/// Of an actor, its types are enough.
pub(crate) trait Actor: Sized + Send + 'static {
    type Message: Send + 'static;
    type Reply: Send + 'static;
    type Error: Send + 'static;
}

#[path = "../../crates/greenroom/src/class.rs"]
mod class;
#[path = "../../crates/greenroom/src/dead_letter.rs"]
mod dead_letter;

pub(crate) use class::Class;
pub(crate) use dead_letter::{DeadLetter, DeadLetterReason};
pub(crate) use delivery::ReplyPort;

/// How a call ended without a reply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CallError<E> {
    Failed(E),
    Parked,
    NoWorkers,
    Stopped,
}

/// What a pool tells of its keys.
pub(crate) enum PoolEvent {
    KeyParked,
    KeyReleased,
}

/// Why a worker has gone: handed on to its life, and looked at by nobody here.
#[derive(Clone)]
pub(crate) enum ExitReason {
    Normal,
    Shutdown,
}

/// Who may be tied to a life.
pub(crate) struct AnyAddress;

/// What a mailbox has for its worker beside messages.
pub(crate) mod life {
    use std::marker::PhantomData;

    use crate::{
        ExitReason,
        sync::{AtomicBool, Ordering},
    };

    /// Nobody is tied to it.
    pub(crate) struct Life<W>(AtomicBool, PhantomData<W>);

    impl<W> Default for Life<W> {
        fn default() -> Self {
            Self(AtomicBool::new(false), PhantomData)
        }
    }

    impl<W> Life<W> {
        pub(crate) fn end(&self, _reason: &ExitReason) {
            self.0.store(true, Ordering::SeqCst);
        }

        pub(crate) fn has_ended(&self) -> bool {
            self.0.load(Ordering::SeqCst)
        }
    }

    pub(crate) struct Signal<W>(pub(crate) PhantomData<W>);
}

/// As the product's, as far as queues look at it.
pub(crate) mod delivery {
    use std::{
        marker::PhantomData,
        sync::{
            Arc,
            atomic::{AtomicU32, Ordering},
        },
    };

    use crate::{CallError, Class, pool::failed::Failed, stamp::Stamp, sync::Mutex};

    pub(crate) struct Delivery<M, R, E> {
        pub(crate) message: Option<M>,
        pub(crate) extra: Option<Box<Extra<R, E>>>,
        pub(crate) class: Class,
        pub(crate) stamp: Stamp,
    }

    impl<M, R, E> Delivery<M, R, E> {
        pub(crate) fn is_call(&self) -> bool {
            self.extra.as_ref().is_some_and(|extra| extra.port.is_some())
        }
    }

    pub(crate) struct Extra<R, E> {
        pub(crate) port: Option<ReplyPort<R, E>>,
        pub(crate) failures: u32,
        pub(crate) attempts: u32,
        pub(crate) kills: u32,
        pub(crate) next: NextAttempt,
        pub(crate) failed: Option<Arc<Failed<E>>>,
    }

    #[derive(Default)]
    pub(crate) struct NextAttempt {
        pub(crate) parked: bool,
        pub(crate) for_good: bool,
    }

    impl<R, E> Extra<R, E> {
        /// Of a call.
        pub(crate) fn new(port: Option<ReplyPort<R, E>>) -> Box<Self> {
            Box::new(Self {
                port,
                failures: 0,
                attempts: 0,
                kills: 0,
                next: NextAttempt::default(),
                failed: None,
            })
        }

        /// Of a message that waits for another attempt, or for an operator.
        pub(crate) fn parked(failed: Option<Arc<Failed<E>>>) -> Box<Self> {
            let (failures, attempts) = (1, 1);
            Box::new(Self {
                port: None,
                failures,
                attempts,
                kills: 0,
                next: NextAttempt { parked: true, for_good: failed.is_some() },
                failed,
            })
        }
    }

    /// A way back. It is counted how many of a caller's were told that the pool has no reply: the
    /// key is parked, no worker is left, or the pool has ended.
    pub(crate) struct ReplyPort<R, E> {
        told: Arc<AtomicU32>,
        reply: Reply<R, E>,
    }

    impl<R, E> ReplyPort<R, E> {
        pub(crate) fn new(told: &Arc<AtomicU32>) -> Self {
            Self { told: told.clone(), reply: Reply::default() }
        }

        pub(crate) fn reply(self, reply: R) -> Result<(), R> {
            *self.reply.given.lock() = Some(reply);
            Ok(())
        }

        pub(crate) fn resolve(self, error: CallError<E>) {
            match error {
                CallError::Failed(_) => {}
                CallError::Parked | CallError::NoWorkers | CallError::Stopped => {
                    self.told.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// What comes out of a port. Nobody waits for it: whoever has it looks when all is over.
    pub(crate) struct Reply<R, E> {
        given: Arc<Mutex<Option<R>>>,
        types: PhantomData<fn() -> E>,
    }

    impl<R, E> Default for Reply<R, E> {
        fn default() -> Self {
            Self { given: Arc::new(Mutex::new(None)), types: PhantomData }
        }
    }

    impl<R, E> Reply<R, E> {
        pub(crate) fn given(&self) -> Option<R> {
            self.given.lock().take()
        }
    }

    pub(crate) fn channel<R, E>() -> (ReplyPort<R, E>, Reply<R, E>) {
        let port = ReplyPort::new(&Arc::default());
        let reply = Reply { given: port.reply.given.clone(), types: PhantomData };
        (port, reply)
    }
}

/// The way back of a call.
pub(crate) mod reply {
    pub(crate) use super::delivery::{Reply, channel};
}

#[path = "pool.rs"]
pub(crate) mod pool;
