//! Kafka for Greenroom.

mod client;
pub mod commit_set;
mod decode;
pub mod output;
pub mod source;

pub use client::Properties;
pub use decode::RecordFormat;
