//! Checks, independently of how order is kept, that a key is in the hands of one handler call at a
//! time (V03). A sample of the keys is watched, chosen by their hash.
//!
//! Price: a lock and a table look-up at the start and end of each attempt at a watched key, and an
//! entry for each of them that is in hand. An engine without an audit has none of it.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;

use crate::engine::account::order_audit::OrderLine;

/// Watches a share of the keys.
#[derive(Debug)]
pub(crate) struct KeyAudit {
    /// Keys with a hash up to this are watched.
    most: u64,
    /// By the hash of its line, the number of its attempts in hand: 1, or there is a violation.
    in_hand: Mutex<HashMap<u64, u32>>,
    violations: AtomicU64,
}

/// An attempt at a watched key, until it ends or is dropped.
pub(super) struct AuditedAttempt<'a> {
    audit: &'a KeyAudit,
    line: u64,
}

impl KeyAudit {
    /// Watches this share of the keys, from 0 to 1.
    pub(crate) fn new(share: f64) -> Self {
        // The conversion saturates.
        let most = (share * u64::MAX as f64) as u64;
        Self { most, in_hand: Mutex::default(), violations: AtomicU64::new(0) }
    }

    /// How often a second attempt at a key has begun.
    pub(crate) fn violations(&self) -> u64 {
        self.violations.load(Ordering::Relaxed)
    }

    /// An attempt at an event of this line begins; `None` if its key is not watched.
    pub(super) fn begin(&self, line: &OrderLine, event: &str) -> Option<AuditedAttempt<'_>> {
        let hash = line.number();
        if hash > self.most {
            return None;
        }
        let attempts = {
            let mut in_hand = self.in_hand.lock();
            let attempts = in_hand.entry(hash).or_default();
            *attempts += 1;
            *attempts
        };
        if attempts > 1 {
            self.violations.fetch_add(1, Ordering::Relaxed);
            let (key, handler, input) = (&*line.key, line.handler, line.input);
            tracing::error!(
                invariant = "one_at_a_time",
                key,
                event,
                handler,
                input,
                attempts,
                "two events of one key are in hand at once: the order of this key is not kept; this \
                 is a defect of greenroom, so please report it with this line, and set `workers: 1` \
                 for the pool if the order matters more than speed"
            );
        }
        Some(AuditedAttempt { audit: self, line: hash })
    }
}

impl Drop for AuditedAttempt<'_> {
    fn drop(&mut self) {
        if let Entry::Occupied(mut attempts) = self.audit.in_hand.lock().entry(self.line) {
            match *attempts.get() {
                0 | 1 => drop(attempts.remove()),
                _ => *attempts.get_mut() -= 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(key: &str) -> OrderLine {
        OrderLine::new(0, 0, key.into(), &foldhash::quality::FixedState::default())
    }

    #[test]
    fn v03_a_second_attempt_at_a_key_is_a_violation() {
        let audit = KeyAudit::new(1.0);
        let (a, b) = (line("a"), line("b"));
        let first = audit.begin(&a, "1");
        let other = audit.begin(&b, "2");
        drop(first);
        let next = audit.begin(&a, "3");
        assert_eq!(audit.violations(), 0);
        let second = audit.begin(&a, "4");
        assert_eq!(audit.violations(), 1);
        drop((next, other, second));
        assert!(audit.in_hand.lock().is_empty(), "nothing is kept of a key that is not in hand");
        assert_eq!((audit.begin(&a, "5").is_some(), audit.violations()), (true, 1));
    }

    #[test]
    fn v03_a_share_of_the_keys_is_watched_by_their_hash() {
        let watched = |share| {
            let audit = KeyAudit::new(share);
            (0..1_000).filter(|key| audit.begin(&line(&key.to_string()), "e").is_some()).count()
        };
        assert_eq!((watched(0.0), watched(1.0)), (0, 1_000));
        assert!((60..140).contains(&watched(0.1)), "{}", watched(0.1));
        let audit = KeyAudit::new(0.1);
        let begins = |key: &str| audit.begin(&line(key), "e").is_some();
        assert!((0..50).all(|key| begins(&key.to_string()) == begins(&key.to_string())));
    }
}
