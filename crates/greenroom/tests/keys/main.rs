//! What waits behind one key, and what an operator sees of it and decides (keyed-pools.md, K07 to K11).

mod asked;
mod bounds;
mod clerk;
mod ends;
mod keyless;
mod parked;
