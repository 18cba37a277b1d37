//! From a source to the pools: how one input takes events, limits those under way, and hands them
//! over.
//!
//! ```text
//! source ──▶ reader ──▶ budget ──▶ route ──▶ overflow ──▶ pool
//!              └──▶ ticket: the settlement, which gives the room back
//! ```
//!
//! The whole state of an input is here: [`input`] holds one input's state, [`inputs`] all inputs.

mod aside;
pub(crate) mod budget;
pub(crate) mod destinations;
pub(crate) mod fences;
pub(crate) mod held_back;
pub(crate) mod held_by;
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
