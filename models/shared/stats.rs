//! What the product's tallies need of its statistics: the counters of dead letters.

#[path = "../../crates/greenroom/src/pool/stats/dead_letters.rs"]
mod dead_letters;

pub(crate) use dead_letters::DeadLetterTally;
