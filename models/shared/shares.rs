//! No pool has shares here: those are tried in `scenarios/shares.rs`.

use std::hash::Hash;

use super::{Core, take::TakenMessage};
use crate::Actor;

pub(crate) enum Sharing {}

impl Sharing {
    pub(super) fn look<A: Actor, K>(&self, _core: &Core<A, K>, _taken: u64) {
        match *self {}
    }

    pub(super) fn take_strays<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
        &self,
        _core: &Core<A, K>,
    ) -> TakenMessage<A, K> {
        match *self {}
    }
}
