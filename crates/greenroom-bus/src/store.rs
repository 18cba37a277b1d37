//! Data that outlives a run.

#[cfg(feature = "store")]
pub mod letters;
#[cfg(feature = "store")]
pub mod seen;
#[cfg(feature = "store")]
pub(crate) mod sqlite;

pub use crate::source::log;
