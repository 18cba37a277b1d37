//! What the engine promises, seen from outside: in-memory sources, outputs and dead
//! letters, on virtual time.

mod acks;
mod advised;
mod bounds;
mod counts;
mod drain;
mod effects;
mod ends;
mod failing_parts;
mod failures;
mod inheritance;
mod inputs;
mod isolation;
mod limits;
mod live;
mod look;
mod loopback;
mod outage;
mod outputs;
mod parked;
mod partitions;
mod positions;
mod random_partitions;
mod random_runs;
mod recording;
mod rejections;
#[cfg(feature = "store")]
mod replays;
mod retries;
mod router;
mod routing;
mod scenarios;
mod shares;
pub(crate) mod support;
mod weights;
