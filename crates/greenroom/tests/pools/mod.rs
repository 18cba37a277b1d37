//! Pools: what each promises, which worker handles a message, what becomes of it, and how a pool
//! changes while it works.

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
