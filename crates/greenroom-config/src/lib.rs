//! Configuration files: from text to checked values, with every problem found in one run.
//!
//! ```text
//! YAML or TOML ─▶ tree with places ─▶ --set ─▶ ${NAME}, file: ─▶ table of options ─▶ record
//! ```
//!
//! This crate knows no option: whoever has some writes a table of them ([`schema`]), from which decoding, defaults, the
//! JSON Schema and the reference page come.

pub mod decode;
pub mod interpolate;
#[cfg(feature = "json-schema")]
pub mod json_schema;
mod meant;
pub mod near;
pub mod overrides;
pub mod problem;
pub mod record;
pub mod reference;
mod scalar;
pub mod schema;
pub mod toml;
pub mod tree;
pub mod units;
pub mod yaml;
