//! Messages that are withdrawn: those that wait, wherever that is, and those that are not to be
//! started any more.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod clerk;
mod places;
mod starts;
mod threads;
mod user_code;
