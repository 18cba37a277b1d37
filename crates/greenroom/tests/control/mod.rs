//! Controllers of a pool: keepers, sizes that follow the load (P23), advice (H10), and event-bus
//! pools (H01 to H12).

mod advisor;
mod autoscale;
mod event_pool;
mod keeper;
