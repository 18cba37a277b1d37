//! Withdrawn messages: those that wait, in any place, and those that should not be started any
//! more.

mod clerk;
mod places;
mod starts;
mod threads;
mod user_code;
