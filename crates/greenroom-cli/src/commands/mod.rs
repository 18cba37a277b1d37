//! The commands, one per file.

pub mod advise;
mod agreed;
pub mod bench;
pub mod check;
pub mod completions;
pub mod dead_letters;
pub mod demo;
pub mod explain_status;
pub mod init;
pub mod man;
pub mod operate;
pub mod route;
pub mod run;
pub mod schema;
pub mod send;
pub mod status;
pub mod store;
pub mod test;
pub mod top;
mod trial;
pub mod why;
