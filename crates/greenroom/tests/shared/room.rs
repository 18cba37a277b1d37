//! The room of a pool, measured by reserving it.

use greenroom::{Actor, NotAccepted, Pool};

/// Checks that there is room for exactly this many messages.
pub(crate) fn assert_room<A: Actor>(pool: &Pool<A>, messages: usize) {
    let permits: Vec<_> = (0..messages).map(|_| pool.try_reserve()).collect();
    assert!(permits.iter().all(Result::is_ok), "a permit was lost");
    assert_eq!(pool.try_reserve().err(), Some(NotAccepted::Full), "a permit came from nowhere");
}
