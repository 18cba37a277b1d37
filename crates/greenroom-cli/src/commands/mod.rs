//! The commands, one per file.

pub mod check;
pub mod init;
pub mod run;
pub mod schema;
