//! From a configuration to a running engine, and from its first event to its report.
//!
//! ```text
//! builder ──▶ engine ──▶ run: read ──▶ drain ──▶ flush ──▶ commit ──▶ report
//! ```
//!
//! This is the top of the engine: it knows all the other parts, and none of them knows it but for
//! the [`phase`].

pub(crate) mod builder;
pub(crate) mod commits;
pub(crate) mod depths;
pub(crate) mod ending;
pub(crate) mod engine;
pub(crate) mod phase;
pub(crate) mod pools;
pub(crate) mod run;
pub(crate) mod standalone;
pub(crate) mod standstill;
pub(crate) mod tasks;
