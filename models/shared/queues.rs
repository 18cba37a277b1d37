//! The queues: the files of `greenroom-queue`, and what is played of it.
//!
//! | file | here |
//! |---|---|
//! | all but those below | the product's; a thread is the model's, whichever token it was given |
//! | `coarse` | played in `core.rs`: no time passes, no message is measured, and none is late |
//! | `lock` | a mutex of the checker: a spin lock is one whose waiters are not seen to wait |
//! | `sync` | the checker's, a module of that name at the root |
//! | `watchdog` | played: a thread that looks now and then |

#[path = "../../crates/greenroom-queue/src/backlog.rs"]
pub(crate) mod backlog;
#[path = "../../crates/greenroom-queue/src/block_queue.rs"]
pub(crate) mod block_queue;
#[path = "../../crates/greenroom-queue/src/credit_map.rs"]
pub(crate) mod credit_map;
#[path = "../../crates/greenroom-queue/src/deque.rs"]
pub(crate) mod deque;
#[path = "../../crates/greenroom-queue/src/discard.rs"]
pub(crate) mod discard;
#[path = "../../crates/greenroom-queue/src/entry.rs"]
pub(crate) mod entry;
#[path = "../../crates/greenroom-queue/src/handoff/mod.rs"]
pub(crate) mod handoff;
#[path = "../../crates/greenroom-queue/src/key_lines.rs"]
pub(crate) mod key_lines;
#[path = "../../crates/greenroom-queue/src/lanes/mod.rs"]
pub(crate) mod lanes;
#[path = "../../crates/greenroom-queue/src/offer.rs"]
pub(crate) mod offer;
#[path = "../../crates/greenroom-queue/src/pacing/mod.rs"]
pub(crate) mod pacing;
#[path = "../../crates/greenroom-queue/src/padded.rs"]
pub(crate) mod padded;
#[path = "../../crates/greenroom-queue/src/payload.rs"]
pub(crate) mod payload;
#[path = "../../crates/greenroom-queue/src/per_slot.rs"]
pub(crate) mod per_slot;
#[path = "../../crates/greenroom-queue/src/permits.rs"]
pub(crate) mod permits;
#[path = "../../crates/greenroom-queue/src/places.rs"]
pub(crate) mod places;
#[path = "../../crates/greenroom-queue/src/queue.rs"]
pub(crate) mod queue;
#[expect(unused_imports, reason = "what is handed on is more than the models name")]
#[path = "../../crates/greenroom-queue/src/shard/mod.rs"]
pub(crate) mod shard;
#[expect(unused_imports, reason = "what is handed on is more than the models name")]
#[path = "../../crates/greenroom-queue/src/shares/mod.rs"]
pub(crate) mod shares;
#[path = "../../crates/greenroom-queue/src/slot.rs"]
pub(crate) mod slot;
#[path = "../../crates/greenroom-queue/src/stamp.rs"]
pub(crate) mod stamp;
#[path = "../../crates/greenroom-queue/src/urgency.rs"]
pub(crate) mod urgency;
#[path = "../../crates/greenroom-queue/src/visits.rs"]
pub(crate) mod visits;
#[path = "../../crates/greenroom-queue/src/wake/mod.rs"]
pub(crate) mod wake;
#[path = "watchdog.rs"]
pub(crate) mod watchdog;
#[path = "../../crates/greenroom-queue/src/watchdog_handle.rs"]
pub(crate) mod watchdog_handle;

/// The locks around the queues of a shard, and around shares.
pub(crate) mod lock {
    pub(crate) type Mutex<T> = crate::sync::Mutex<T>;
    pub(crate) type Lock<T> = crate::sync::Mutex<T>;
    pub(crate) type Locked<'a, T> = crate::sync::MutexGuard<'a, T>;

    /// Users have nothing here.
    pub(crate) fn user_code_follows() {}

    pub(crate) fn locked<T>(lock: &Lock<T>) -> Locked<'_, T> {
        lock.lock()
    }
}
