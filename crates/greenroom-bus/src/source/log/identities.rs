//! Which events were stored within a window of time and number (D14).
//!
//! Identified by the first 128 bits of the SHA-256 of source and id. The probability that two
//! events of a window of a million share them is 2⁻⁸⁹; finding such a pair deliberately is
//! infeasible.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    time::Duration,
};

use ring::digest::{Context, SHA256};

use super::clock::millis;

/// Of an event.
pub(super) type EventIdentity = [u8; 16];

/// In the file, an identity and its time.
const ENTRY: usize = 24;

pub(super) fn identity(source: &str, id: &str) -> EventIdentity {
    let mut context = Context::new(&SHA256);
    // With its length, so that source and id cannot be cut elsewhere.
    context.update(&(source.len() as u64).to_le_bytes());
    context.update(source.as_bytes());
    context.update(id.as_bytes());
    let digest = context.finish();
    digest.as_ref().first_chunk().copied().unwrap_or_default()
}

/// The last events that were stored.
pub(super) struct Identities {
    window: u64,
    most: usize,
    /// How often each is in `order`: an event that was stored again after its window is there
    /// twice when the log is opened, and is known until the last of them is forgotten.
    known: HashMap<EventIdentity, u32, foldhash::fast::RandomState>,
    /// One for each event without a gap, oldest first, each with its time.
    order: VecDeque<(EventIdentity, u64)>,
}

impl Identities {
    pub(super) fn new(window: Duration, most: usize) -> Self {
        let most = if window.is_zero() { 0 } else { most };
        Self { window: millis(window), most, known: HashMap::default(), order: VecDeque::new() }
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }

    pub(super) fn contains(&self, identity: &EventIdentity) -> bool {
        self.known.contains_key(identity)
    }

    /// An event was stored at this time.
    pub(super) fn insert(&mut self, identity: EventIdentity, time: u64) {
        if self.most == 0 {
            return;
        }
        if self.order.len() >= self.most {
            self.forget_oldest();
        }
        *self.known.entry(identity).or_default() += 1;
        self.order.push_back((identity, time));
    }

    pub(super) fn expire(&mut self, now: u64) {
        let oldest = now.saturating_sub(self.window);
        while self.order.front().is_some_and(|(_, time)| *time < oldest) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some((identity, _)) = self.order.pop_front() else { return };
        if let Entry::Occupied(mut known) = self.known.entry(identity) {
            *known.get_mut() -= 1;
            if *known.get() == 0 {
                known.remove();
            }
        }
    }

    /// The identities of events below `sequence`, where the last stored event is before `next`, in
    /// the format that is kept with the segments.
    pub(super) fn below(&self, sequence: u64, next: u64) -> Vec<u8> {
        let kept = (next - sequence) as usize;
        let count = self.order.len().saturating_sub(kept);
        let mut bytes = Vec::with_capacity(count * ENTRY);
        for (identity, time) in self.order.iter().take(count) {
            bytes.extend(identity);
            bytes.extend(time.to_le_bytes());
        }
        bytes
    }

    /// Restores the result of [`below`](Self::below) for `sequence`, for events below `first`,
    /// which are not read from segments.
    pub(super) fn restore(&mut self, bytes: &[u8], sequence: u64, first: u64) {
        let twice = sequence.saturating_sub(first) as usize;
        let entries = bytes.chunks_exact(ENTRY);
        let count = entries.len().saturating_sub(twice);
        for entry in entries.take(count) {
            if let Some((identity, time)) = entry.split_first_chunk()
                && let Some(time) = time.first_chunk()
            {
                self.insert(*identity, u64::from_le_bytes(*time));
            }
        }
    }
}
