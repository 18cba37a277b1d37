//! Tests of programs that are built on Greenroom, and of Greenroom itself.
//!
//! | module | purpose |
//! |---|---|
//! | [`stage`] | your handlers, your router and a whole engine, on virtual time with a broker in memory, and chaos by a seed (V02) |
//! | [`mod@conformance`] | the tests that every connector has to pass, as one entry point (V01) |
//! | [`partitioned`] | a source in memory whose partitions come and go, with repeats and gaps |
//! | `programs` | random programs on virtual time, on all cores (feature `programs`) |

pub mod conformance;
pub mod partitioned;
#[cfg(feature = "programs")]
pub mod programs;
mod seed;
pub mod stage;

pub use self::{seed::seed, stage::Stage};

// The pages whose code is compiled and run with this crate.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/recipes/testing-handlers.md")]
pub struct TestingHandlers;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
