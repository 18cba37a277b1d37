//! An event in a pool: attempts, the handling of failures, and the results of success.
//!
//! ```text
//! job ──▶ worker ──▶ attempt ──▶ handler ──▶ emit ──▶ outputs, or back in
//!                       └─ failed ──▶ judge ──▶ again, later, dead letter, parked
//! ```

pub(crate) mod attempt;
pub(crate) mod attempt_figures;
pub(crate) mod circuit;
pub(crate) mod circuits;
pub(crate) mod emit;
pub(crate) mod entries;
pub(crate) mod failures;
pub(crate) mod fair_share;
pub(crate) mod gates;
pub(crate) mod job;
pub(crate) mod judge;
pub(crate) mod key_audit;
pub(crate) mod loopback;
pub(crate) mod managed;
pub(crate) mod origin;
pub(crate) mod parked;
pub(crate) mod pause;
pub(crate) mod pool_shares;
pub(crate) mod processing;
pub(crate) mod produced;
pub(crate) mod recording;
pub(crate) mod rejections;
pub(crate) mod replaying;
pub(crate) mod retries;
pub(crate) mod share_rooms;
pub(crate) mod shown;
pub(crate) mod under_way;
pub(crate) mod worker;
