//! Senders that wait for room behind a key.

use crate::sync::AtomicU64;

/// Shards in which senders wait for room behind a key: a bit each.
#[derive(Debug, Default)]
pub struct KeyLines(pub AtomicU64);
