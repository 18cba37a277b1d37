//! Data that outlives a run.

#[cfg(feature = "store")]
pub mod letters;
pub mod log;
#[cfg(feature = "store")]
pub mod seen;
#[cfg(feature = "store")]
pub(crate) mod sqlite;
