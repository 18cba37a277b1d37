//! How much room a pool has: what it lets somebody reserve.

use greenroom::{Actor, NotAccepted, Pool};

/// So many messages have room, and not one more.
pub(crate) fn assert_room<A: Actor>(pool: &Pool<A>, messages: usize) {
    let permits: Vec<_> = (0..messages).map(|_| pool.try_reserve()).collect();
    assert!(permits.iter().all(Result::is_ok), "a permit was lost");
    assert_eq!(pool.try_reserve().err(), Some(NotAccepted::Full), "a permit came from nowhere");
}
