//! The files of the product that are tried, and stand-ins for what they touch of the rest.
//!
//! | file | here |
//! |---|---|
//! | `wake`, `bell`, `permits`, `shard`, `mailbox`, `core/take`, `core/place`, `core/park` | the product's |
//! | `in_place` | the product's; whether a thread drives somebody is not asked: the threads of a model share one |
//! | `block_queue`, `entry`, `lanes`, `padded`, `parcel`, `seats`, `stamp`, `tally`, `discard` | the product's |
//! | `class`, `dead_letter`, `stats/dead_letters` | the product's |
//! | `lock` | a mutex of the checker: a spin lock is one whose waiters are not seen to wait |
//! | `core`, `hold`, `seat`, `worker` | played: they need actors, policies and a runtime; see `core.rs` and `player.rs` |
//! | `watch`, `clock` | played: a thread that looks now and then, and a list of what is parked |
//! | `coarse` | played: no time passes, and no message is measured |
//! | `life`, `exit_reason` | played: they need addresses, channels and the hook that says where a panic was |

/// Of an actor, its types are enough.
pub(crate) trait Actor: Sized + Send + 'static {
    type Message: Send + 'static;
    type Reply: Send + 'static;
    type Error: Send + 'static;
}

#[path = "../../crates/greenroom/src/class.rs"]
pub(crate) mod class;
#[path = "../../crates/greenroom/src/dead_letter.rs"]
mod dead_letter;

pub(crate) use dead_letter::DeadLetterReason;

/// Why a message was not accepted: named by the permits, told to nobody here.
pub(crate) enum NotAccepted {
    Full,
    Dropped,
    Refused,
}

/// Why a worker has gone: handed on to its life, and looked at by nobody here.
pub(crate) enum ExitReason {
    Normal,
}

/// What a mailbox has for its worker beside messages.
pub(crate) mod life {
    use crate::{
        ExitReason,
        sync::{AtomicBool, Ordering},
    };

    /// Nobody is tied to it.
    #[derive(Default)]
    pub(crate) struct Life(AtomicBool);

    impl Life {
        pub(crate) fn end(&self, _reason: &ExitReason) {
            self.0.store(true, Ordering::SeqCst);
        }

        pub(crate) fn has_ended(&self) -> bool {
            self.0.load(Ordering::SeqCst)
        }
    }

    pub(crate) struct Signal;
}

/// As the product's, without a way back.
pub(crate) mod delivery {
    use std::marker::PhantomData;

    use crate::{Class, pool::stamp::Stamp};

    pub(crate) struct Delivery<M, R, E> {
        pub(crate) message: Option<M>,
        pub(crate) extra: Option<Box<Extra<R, E>>>,
        pub(crate) class: Class,
        pub(crate) stamp: Stamp,
    }

    pub(crate) struct Extra<R, E> {
        pub(crate) parked: bool,
        types: PhantomData<fn() -> (R, E)>,
    }

    impl<R, E> Extra<R, E> {
        pub(crate) fn parked() -> Box<Self> {
            Box::new(Self { parked: true, types: PhantomData })
        }
    }
}

#[path = "pool.rs"]
pub(crate) mod pool;
