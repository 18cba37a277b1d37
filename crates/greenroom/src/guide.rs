//! The pages of the guide: their Rust is compiled and run with the other doctests.

#[doc = include_str!("../../../docs/guide/start/pool.md")]
pub struct FirstPool;

#[doc = include_str!("../../../docs/guide/concepts/pull-and-push.md")]
pub struct PullAndPush;

#[doc = include_str!("../../../docs/guide/concepts/keys-and-lanes.md")]
pub struct KeysAndLanes;

#[doc = include_str!("../../../docs/guide/concepts/outcome-and-settlement.md")]
pub struct OutcomeAndSettlement;

#[doc = include_str!("../../../docs/guide/recipes/batches-by-key.md")]
pub struct BatchesByKey;

#[doc = include_str!("../../../docs/guide/recipes/cpu-bound-work.md")]
pub struct CpuBoundWork;

#[doc = include_str!("../../../docs/guide/compare/ergo.md")]
pub struct Ergo;

#[doc = include_str!("../../../docs/guide/compare/caf.md")]
pub struct Caf;

#[doc = include_str!("../../../docs/guide/compare/akka.md")]
pub struct Akka;
