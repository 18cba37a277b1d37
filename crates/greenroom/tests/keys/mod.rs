//! Pools with keys (keyed-pools.md): order per key (K01 to K12), messages behind a key and an
//! operator's decisions about it, and keys that stay with their worker (T01 to T04).

mod asked;
mod batches;
mod bounds;
mod clerk;
mod ends;
mod keyed;
mod keyless;
mod parked;
mod sticky;

use crate::shared::room;
