//! Messages that are withdrawn: those that wait, wherever that is, and those that are not to be
//! started any more.

mod clerk;
mod places;
mod starts;
mod threads;
mod user_code;
