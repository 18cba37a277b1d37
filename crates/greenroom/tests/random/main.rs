//! Random programs against models, and pools under load. `GREENROOM_PROGRAMS` sets how many
//! programs a test tries.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod adoptions;
mod campaign;
mod crews;
mod keys;
mod programs;
mod quiet;
mod sticky;
mod stress;
