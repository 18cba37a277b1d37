//! Counters, audits, and the final report of a run. This part depends on no other part of the
//! engine.

pub(crate) mod by_partition;
pub(crate) mod ledger;
pub(crate) mod log_limit;
pub(crate) mod order_audit;
pub(crate) mod report;
pub(crate) mod settlements;
