//! Pools with shares (shares.md): fairness by time (Q01 to Q03), caps and rates (Q04), what stays
//! as it is (Q05), holds (Q06), changes while messages wait (Q09) and memory (Q10).

mod batches;
mod caps;
mod clerk;
mod fair;
mod holds;
mod order;
