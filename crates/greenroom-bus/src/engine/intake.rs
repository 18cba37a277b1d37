//! From a source to the pools: how one input takes events, limits those under way, and hands them
//! over.
//!
//! ```text
//! source ──▶ reader ──▶ budget ──▶ route ──▶ overflow ──▶ pool
//!              └──▶ ticket: the settlement, which gives the room back
//! ```
//!
//! Here lives all that is kept for an input: [`input`] holds its state, [`inputs`] those that there
//! are.

pub(crate) mod budget;
pub(crate) mod destinations;
pub(crate) mod fences;
pub(crate) mod held_back;
pub(crate) mod input;
pub(crate) mod inputs;
pub(crate) mod leases;
pub(crate) mod overflow;
pub(crate) mod partition;
pub(crate) mod reader;
pub(crate) mod replay;
pub(crate) mod returning;
pub(crate) mod rotation;
pub(crate) mod route;
pub(crate) mod ticket;
pub(crate) mod view;
