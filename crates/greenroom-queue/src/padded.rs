//! A value on cache lines of its own.

use std::ops::Deref;

/// Separates values that different threads write. Two lines of 64 bytes, because processors fetch
/// them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Padded<T>(pub T);

impl<T> Deref for Padded<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}
