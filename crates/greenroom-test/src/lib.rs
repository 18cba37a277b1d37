//! Tools that tests of Greenroom share. It is not published, and no product depends on it.
//!
//! | module | what it is for |
//! |---|---|
//! | [`partitioned`] | a source in memory whose partitions come and go, with repeats and gaps |
//! | [`mod@conformance`] | what every connector has to do, as one entry point (V01) |
//! | [`programs`] | random programs on virtual time, on all cores |

pub mod conformance;
pub mod partitioned;
pub mod programs;
