//! The number of notices of each kind.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

use super::event::Kind;

const KINDS: usize = Kind::ALL.len();

#[derive(Default)]
pub(super) struct Counters([AtomicU64; KINDS]);

impl Counters {
    pub(super) fn count(&self, kind: Kind) {
        self.0[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> PoolEventCounts {
        PoolEventCounts(self.0.each_ref().map(|counter| counter.load(Ordering::Relaxed)))
    }
}

/// A snapshot of the number of notices of each kind, received or not.
///
/// ```
/// # use greenroom::PoolEvents;
/// for (kind, notices) in PoolEvents::global().counts().iter() {
///     println!("notices_total{{kind=\"{}\"}} {notices}", kind.name());
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolEventCounts([u64; KINDS]);

impl PoolEventCounts {
    /// The number of this kind.
    pub fn of(&self, kind: Kind) -> u64 {
        self.0[kind as usize]
    }

    /// All kinds, including those that never happened.
    pub fn iter(&self) -> impl Iterator<Item = (Kind, u64)> {
        Kind::ALL.iter().copied().zip(self.0)
    }

    /// The number of all kinds.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl fmt::Debug for PoolEventCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let happened = self.iter().filter(|(_, notices)| *notices > 0);
        f.debug_map().entries(happened.map(|(kind, notices)| (kind.name(), notices))).finish()
    }
}
