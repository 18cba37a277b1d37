//! A configuration as an engine that runs: what is opened for it, the layers around its handlers,
//! and the settings that change while it runs.
//!
//! The command `run` starts and ends it, and the admin listener queries and changes it.

pub(crate) mod assemble;
pub(crate) mod layers;
pub(crate) mod reload;
pub(crate) mod stand_ins;
pub(crate) mod targets;
