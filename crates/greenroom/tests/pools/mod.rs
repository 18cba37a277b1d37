//! Pools: the promises of each, the choice of the worker for a message, the outcomes of messages,
//! and changes to a running pool.

mod adopting;
mod dispatch;
mod inspect;
mod kept;
mod layers;
mod outcomes;
mod promises;
mod resizing;
mod retry_storms;
mod runtimes;
mod sleeper;
mod stats;
mod threads;

use crate::shared::room;
