//! Sending to a pool: how much it accepts, in which order and how soon, the outcome of the rest,
//! permits, services and sinks, and withdrawals.

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
