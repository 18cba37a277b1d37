//! What is sent to a pool: how much it takes, in which order and how soon, what becomes of the
//! rest, permits, services and sinks, and what is withdrawn again.

mod bytes;
mod capacity;
mod classes;
mod limits;
mod overflow;
mod permits;
mod sends;
mod service;
mod settle;
mod sink;
mod withdraw;

use crate::shared::room;
