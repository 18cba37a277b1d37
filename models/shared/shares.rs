//! No pool has shares here.

use std::hash::Hash;

use super::{Core, take::TakenMessage};
use crate::Actor;

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    #[expect(clippy::unused_self, reason = "as in the product")]
    pub(super) fn look_at_shares(&self, _taken: u64) {}

    #[expect(clippy::unused_self, reason = "as in the product")]
    pub(super) fn take_strays(&self) -> TakenMessage<A, K> {
        None
    }
}
