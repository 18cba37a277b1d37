//! The commands, one per file.

pub mod bench;
pub mod check;
pub mod demo;
pub mod init;
pub mod run;
pub mod schema;
