//! Units in which bounds are declared.

/// A day, in milliseconds.
pub(super) const DAY_MS: u64 = 86_400_000;

/// A gibibyte, in bytes.
pub(super) const GIB: u64 = 1 << 30;
