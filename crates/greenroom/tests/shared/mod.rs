//! What the tests of several folders use.

pub(crate) mod room;
