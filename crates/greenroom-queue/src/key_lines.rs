//! Senders that wait for room behind a key.

use crate::sync::AtomicU64;

/// The shards in which senders wait for room behind a key, one bit each.
#[derive(Debug, Default)]
pub struct KeyLines(pub AtomicU64);
