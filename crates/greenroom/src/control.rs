//! Decisions about the size of a pool, made from what it looks like.
//!
//! ```text
//! pool ──sample──▶ autoscale ──change, if any──▶ pool
//! pool ──sample──▶ advisor ──advice──▶ operator
//! ```
//!
//! Nothing here knows a pool, an actor, a task or a clock: the caller builds the samples, says what
//! time it is, and applies the changes. So each decision is tried on plain samples. The tasks that
//! do this for a pool lie in `pool/controllers/`.
//!
//! | | sees | when | decides |
//! |---|---|---|---|
//! | [`Autoscaler`](autoscale::Autoscaler) | a [`Sample`](autoscale::Sample) | each second | the number of workers |
//! | [`Judge`](advisor::Judge) | the [`Figures`](advisor::Figures) of a period | every few minutes | the bound, and the number of workers |
//!
//! Limits on what is in flight lie in `pool/limits/`: they see each outcome.

pub mod advisor;
pub mod autoscale;
mod peaks;
