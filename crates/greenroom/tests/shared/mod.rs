//! Helpers for the tests of several folders.

pub(crate) mod room;
